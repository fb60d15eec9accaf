/* Ratings: what a file says, who is held out, and how items are ranked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "mixt/mixt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static mixt_data *open_text(const char *text, mixt_data_options options)
{
    char spec[600];
    const char *path = temp_path("ratings.dat");
    mixt_data *data;
    assert_true(temp_write(path, text, strlen(text)));
    snprintf(spec, sizeof spec, "ratings:%s", path);
    return mixt_data_open_with(spec, &options, &data) == MIXT_OK ? data : NULL;
}

/** Rating `index` by names. */
static void expect(const mixt_data *data, int64_t index, const char *user, const char *item, float rating)
{
    const mixt_data_info *info = mixt_data_describe(data);
    int32_t input[64];
    float target;
    int64_t valid;
    assert_int_equal(mixt_data_read(data, index, 1, input, &target, &valid), MIXT_OK);
    assert_string_equal(info->arrays[0].names[input[0]], user);
    assert_string_equal(info->arrays[1].names[input[mixt_data_array_at(data, 1, 1) / 4]], item);
    assert_true(target == rating);
}

static void all_forms_are_read(void **state)
{
    static const char *const forms[] = {
        "7::a b::4.5::100\n8::x::3::50\n7::x::1::200\n",
        "user,item,rating,time\n7,a b,4.5,100\n8,x,3,50\r\n\n7,x,1,200",
        "# what they said\n7;a b;4.5\n8;x;3\n7;x;1\n",
        "userId\tmovieId\trating\n7\t\"a b\"\t4.5\n8\tx\t3\n7\tx\t1\n",
        "movieId,userId,rating\na b,7,4.5\nx,8,3\nx,7,1\n", // a header says which is which
        "timestamp,Rating,user_id,item_id\n100,4.5,7,a b\n50,3,8,x\n200,1,7,x\n",
        "rating::what::user\n4.5::a b::7\n3::x::8\n1::x::7\n", // and those that it does not know are what is left
    };
    (void)state;
    temp_folder_make();
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        mixt_data *data = open_text(forms[i], MIXT_OPTIONS(mixt_data_options, .split = "all"));
        if (!data)
            fail_msg("form %zu: %s", i, mixt_error_text());
        const mixt_data_info *info = mixt_data_describe(data);
        assert_int_equal(info->samples, 3);
        assert_int_equal(info->arrays[0].ids, 2);
        assert_int_equal(info->arrays[1].ids, 2);
        assert_true(fabs(info->target_mean - 8.5 / 3) < 1e-6);
        expect(data, 0, "7", "a b", 4.5f);
        expect(data, 1, "8", "x", 3);
        expect(data, 2, "7", "x", 1);
        mixt_data_close(data);
    }
    temp_folder_remove();
}

static void two_quotes_are_one(void **state)
{
    (void)state;
    temp_folder_make();
    mixt_data *data = open_text("7,\"x\"\"y\",2\n8,\"\"\"\",3\n", MIXT_OPTIONS(mixt_data_options, .split = "all"));
    assert_non_null(data);
    expect(data, 0, "7", "x\"y", 2);
    expect(data, 1, "8", "\"", 3);
    mixt_data_close(data);
    temp_folder_remove();
}

static void the_newest_are_held_out(void **state)
{
    const char *text = "1::a::1::30\n2::b::2::10\n3::c::3::40\n4::d::4::20\n5::e::5::40\n";
    (void)state;
    temp_folder_make();
    mixt_data *train =
        open_text(text, MIXT_OPTIONS(mixt_data_options, .split = "train", .val = 0.2, .test = 0.2, .by_time = true));
    mixt_data *val =
        open_text(text, MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.2, .test = 0.2, .by_time = true));
    mixt_data *test =
        open_text(text, MIXT_OPTIONS(mixt_data_options, .split = "test", .val = 0.2, .test = 0.2, .by_time = true));
    assert_true(train && val && test);
    assert_int_equal(mixt_data_describe(train)->samples, 3);
    expect(train, 0, "2", "b", 2);
    expect(train, 2, "1", "a", 1);
    expect(val, 0, "3", "c", 3); // of equal times the first line
    expect(test, 0, "5", "e", 5);
    mixt_data_close(train);
    mixt_data_close(val);
    mixt_data_close(test);
    assert_null(open_text("1::a::1\n2::b::2::3\n", MIXT_OPTIONS(mixt_data_options, .split = "train", .by_time = true)));
    assert_non_null(strstr(mixt_error_text(), "rating 1 has no time"));
    temp_folder_remove();
}

static void at_random_every_rating_has_one_part(void **state)
{
    static const char *const parts[] = {"train", "val", "test"};
    (void)state;
    double sum = 0;
    int64_t count = 0;
    for (int p = 0; p < 3; p++) {
        mixt_data *data;
        static int32_t input[4096];
        static float target[1024];
        int64_t valid;
        assert_int_equal(mixt_data_open("ratings:", &data, .split = parts[p], .samples = 1000, .test = 0.1), MIXT_OK);
        assert_int_equal(mixt_data_read(data, 0, 1000, input, target, &valid), MIXT_OK);
        for (int64_t i = 0; i < valid; i++)
            sum += (double)target[i];
        count += valid;
        mixt_data_close(data);
    }
    mixt_data *all;
    assert_int_equal(mixt_data_open("ratings:", &all, .split = "all", .samples = 1000), MIXT_OK);
    assert_int_equal(count, 1000);
    assert_true(fabs(sum / 1000 - mixt_data_describe(all)->target_mean) < 1e-6);
    mixt_data_close(all);
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "the file is empty"},
        {"user,item,rating\n", "holds no ratings"},
        {"1::2::3::4\n1::2\n", "line 2 has 2 fields"},
        {"1::2::3::4::5\n", "line 1 has 5 fields"},
        {"1::2::3\n1::2::nan\n", "line 2: rating 'nan'"},
        {"1::2::3\n1::2::inf\n", "line 2: rating 'inf'"},
        {"1::2::3\n1::2::four\n", "line 2: rating 'four'"},
        {"1::2::3::noon\n", "line 1: time 'noon'"},
        {"1::2::3\n::2::3\n", "line 2 names no user"},
        {"1::2::3\n1::::3\n", "line 2 names no item"},
        {"user,user_id,rating\n1,2,3\n", "columns 1 and 2 of its header are both called users"},
    };
    (void)state;
    temp_folder_make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(open_text(cases[i].text, MIXT_OPTIONS(mixt_data_options, .split = "all")));
        if (!strstr(mixt_error_text(), cases[i].words))
            fail_msg("expected \"%s\", got \"%s\"", cases[i].words, mixt_error_text());
    }
    temp_folder_remove();
}

/* ---- features ---- */

/** Opens ratings with a file of items beside them. */
static mixt_data *open_items(const char *text, const char *items, mixt_data_options options)
{
    const char *path = temp_path("items.dat");
    assert_true(temp_write(path, items, strlen(items)));
    options.items = "items.dat";
    return open_text(text, options);
}

/** Array `index` of a sample. */
static const float *row_of(const mixt_data *data, int64_t sample, int index)
{
    static int32_t input[256];
    float target;
    int64_t valid;
    assert_true(mixt_data_input_bytes(data, 1) <= sizeof input);
    assert_int_equal(mixt_data_read(data, sample, 1, input, &target, &valid), MIXT_OK);
    return (const float *)(const void *)&input[mixt_data_array_at(data, 1, index) / 4];
}

static void expect_row(const float *row, const double *wanted, int count)
{
    for (int i = 0; i < count; i++)
        if (!(fabs((double)row[i] - wanted[i]) < 1e-6))
            fail_msg("feature %d: %g, expected %g", i, (double)row[i], wanted[i]);
}

static void features_of_items_are_read(void **state)
{
    /* A title with its year, categories of which Odd is nobody else's, names, a number, nothing: 1 + 2 + 0 + 1. */
    const char *const forms[] = {
        "x::\"X (2000)::A|B::Ann::1::\ny::Y (2004)::B|Odd|B::Bob::3::\nw::W (1900)::A::Cy::9::\nz::Z "
        "(2000)::A::Di::NA::\n",
        "item,title,genres,by,stars,more\nx,\"X (2000)\",A|B,Ann,1,\ny,Y (2004),B|Odd|B,Bob,3,\nz,Z (2000),A,Di,NA,\n"};
    (void)state;
    temp_folder_make();
    for (int i = 0; i < 2; i++) {
        mixt_data *data = open_items("1::x::1\n2::y::2\n3::u::3\n4::z::3\n4::y::3\n", forms[i],
                                     MIXT_OPTIONS(mixt_data_options, .split = "all"));
        if (!data)
            fail_msg("form %d: %s", i, mixt_error_text());
        const mixt_data_info *info = mixt_data_describe(data);
        assert_int_equal(info->array_count, 4);
        assert_string_equal(info->arrays[2].name, "item.features");
        assert_int_equal(info->arrays[2].elements, 4);
        assert_non_null(strstr(info->warnings, "says nothing of 1 of 4 items"));
        assert_non_null(strstr(info->warnings, "column 4 is ignored: hardly two"));
        const double half = sqrt(0.5); // of two categories; years and numbers have mean 0 over what is rated
        expect_row(row_of(data, 0, 2), (double[]){-1, half, half, -sqrt(2)}, 4);
        expect_row(row_of(data, 1, 2), (double[]){1, 0, 1, half}, 4);
        expect_row(row_of(data, 2, 2), (double[]){0, 0, 0, 0}, 4);
        expect_row(row_of(data, 3, 2), (double[]){-1, 1, 0, 0}, 4);
        mixt_data_close(data);
    }
    temp_folder_remove();
}

static void a_word_among_numbers_is_told(void **state)
{
    char ratings[1024] = "", items[1024] = "";
    (void)state;
    temp_folder_make();
    for (int i = 0; i < 24; i++) {
        snprintf(ratings + strlen(ratings), sizeof ratings - strlen(ratings), "1::%d::1\n", i);
        snprintf(items + strlen(items), sizeof items - strlen(items), "%d::%d%s::x\n", i, i * i, i == 9 ? "!" : "");
    }
    mixt_data *data = open_items(ratings, items, MIXT_OPTIONS(mixt_data_options, .split = "all"));
    assert_non_null(data);
    assert_non_null(strstr(mixt_data_describe(data)->warnings, "column 2 holds words: line 10 has '81!', though"));
    mixt_data_close(data);
    temp_folder_remove();
}

static void a_rating_does_not_count_itself(void **state)
{
    const char *text = "1::a::1::1\n1::b::1::2\n1::c::1::3\n2::a::1::4\n2::b::1::5\n3::c::1::6\n";
    mixt_data *parts[2];
    (void)state;
    temp_folder_make();
    for (int i = 0; i < 2; i++) { // user 1 has 3 ratings to train on, user 2 one, user 3 none; items 2, 1, 1
        parts[i] = open_text(text, MIXT_OPTIONS(mixt_data_options, .split = i ? "val" : "train", .val = 0.333,
                                                .by_time = true, .counts = true));
        assert_non_null(parts[i]);
        assert_string_equal(mixt_data_describe(parts[i])->arrays[2].name, "user.features");
        assert_string_equal(mixt_data_describe(parts[i])->arrays[3].name, "item.features");
    }
    double two = log(3), mean = 0.75 * two, deviation = sqrt(0.75 * 0.25) * two; // two others, three times; then none
    expect_row(row_of(parts[0], 0, 2), (double[]){(two - mean) / deviation}, 1);
    expect_row(row_of(parts[0], 3, 2), (double[]){-mean / deviation}, 1);
    expect_row(row_of(parts[1], 0, 2), (double[]){(log(2) - mean) / deviation}, 1); // of what is held out all count
    expect_row(row_of(parts[1], 1, 2), (double[]){-mean / deviation}, 1);
    expect_row(row_of(parts[0], 0, 3), (double[]){1}, 1);
    expect_row(row_of(parts[0], 1, 3), (double[]){-1}, 1);
    mixt_data_close(parts[0]);
    mixt_data_close(parts[1]);
    temp_folder_remove();
}

static void names_that_are_numbers_are_features(void **state)
{
    const char *text = "1::0099::1\n2::0099::1\n3::9::1\n4::odd::1\n";
    (void)state;
    temp_folder_make();
    mixt_data *data = open_text(text, MIXT_OPTIONS(mixt_data_options, .split = "all", .item_numbers = true));
    assert_non_null(data);
    assert_int_equal(mixt_data_describe(data)->array_count, 4);
    assert_non_null(
        strstr(mixt_data_describe(data)->warnings, "the names of 1 of 3 items are not numbers from 0 on, such as '"));
    expect_row(row_of(data, 0, 2), (double[]){sqrt(0.5)}, 1); // log 100, twice, and log 10: mean 0, deviation 1
    expect_row(row_of(data, 2, 2), (double[]){-sqrt(2)}, 1);
    expect_row(row_of(data, 3, 2), (double[]){0}, 1);
    mixt_data_close(data);
    data = open_items(
        text, "9::2\n0099::4\n",
        MIXT_OPTIONS(mixt_data_options, .split = "all", .item_numbers = true, .user_numbers = true, .counts = true));
    assert_non_null(data);
    assert_int_equal(mixt_data_describe(data)->arrays[2].elements, 2);
    expect_row(row_of(data, 2, 3), (double[]){-sqrt(2), -sqrt(2), -1}, 3); // the file, the name, the count
    mixt_data_close(data);
    assert_null(
        open_text("1::a::1\n1::-2::2\n", MIXT_OPTIONS(mixt_data_options, .split = "all", .item_numbers = true)));
    assert_non_null(strstr(mixt_error_text(), "no item has a number as its name (the first is 'a')"));
    temp_folder_remove();
}

static int32_t day_of(const mixt_data *data, int64_t sample)
{
    return *(const int32_t *)(const void *)row_of(data, sample, 2);
}

static void times_of_ratings_are_known(void **state)
{
    /* To train on: user 1 on a day, and on the next twice, user 2. Held out: user 1 on his second day, user 2 on
     * another. */
    const char *text = "1::a::1::86399\n1::b::1::86400\n1::c::1::86401\n2::a::1::86402\n"
                       "1::d::1::86500\n2::b::1::172800\n";
    const int trained[] = {1, 2, 2, 3};
    mixt_data *parts[2];
    (void)state;
    temp_folder_make();
    for (int i = 0; i < 2; i++) {
        parts[i] = open_text(text, MIXT_OPTIONS(mixt_data_options, .split = i ? "val" : "train", .val = 0.333,
                                                .by_time = true, .times = true));
        assert_non_null(parts[i]);
        assert_string_equal(mixt_data_describe(parts[i])->arrays[2].name, "user.day");
        assert_int_equal(mixt_data_describe(parts[i])->arrays[2].ids, 4);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(day_of(parts[0], i), trained[i]);
    assert_int_equal(day_of(parts[1], 0), 2);
    assert_int_equal(day_of(parts[1], 1), 0);
    for (int side = 3; side <= 4; side++) { // half of (0 to 3 - mean) / deviation, up to half of 3 deviations
        assert_int_equal(mixt_data_describe(parts[0])->arrays[side].elements, 1);
        expect_row(row_of(parts[0], 3, side), (double[]){1.5 / sqrt(1.25) / 2}, 1);
        expect_row(row_of(parts[1], 1, side), (double[]){1.5}, 1);
    }
    mixt_data_close(parts[0]);
    mixt_data_close(parts[1]);
    assert_null(open_text("1::a::1::5\n1::b::2\n", MIXT_OPTIONS(mixt_data_options, .split = "all", .times = true)));
    assert_non_null(strstr(mixt_error_text(), "rating 2 has no time: data.times needs one"));
    temp_folder_remove();
}

static void wrong_features_are_named(void **state)
{
    static const struct {
        const char *items, *words;
    } cases[] = {
        {"", "items.dat: the file is empty"},
        {"a\nb\n", "items.dat: line 1 has 1 field: expected item and 1 to 63 features"},
        {"a::x::1\nb::x\n", "items.dat: line 2 has 2 fields, those before 3"},
        {"a::x\n::x\n", "items.dat: line 2 names no item"},
        {"a::x\nb::x\na::x\n", "items.dat: line 3: item a has a line already"},
        {"k::x\nl::x\n", "items.dat: none of its 2 lines names a rated item"},
        {"a::x\nb::y\n", "items.dat: no column holds numbers, or categories that two items share"},
    };
    (void)state;
    temp_folder_make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(open_items("1::a::1\n1::b::2\n", cases[i].items, MIXT_OPTIONS(mixt_data_options, .split = "all")));
        if (!strstr(mixt_error_text(), cases[i].words))
            fail_msg("expected \"%s\", got \"%s\"", cases[i].words, mixt_error_text());
    }
    mixt_data *train =
                  open_items("1::a::1\n1::b::2\n", "a::1\nb::2\n", MIXT_OPTIONS(mixt_data_options, .split = "all")),
              *other;
    assert_non_null(train);
    other = open_items("1::a::1\n1::b::2\n", "a::1::2\nb::2::1\n",
                       MIXT_OPTIONS(mixt_data_options, .split = "all", .like = train));
    assert_null(other);
    assert_non_null(strstr(mixt_error_text(), "2 of item.features where the model was trained with 1 of"));
    mixt_data_close(train);
    assert_int_equal(mixt_data_open("digits:", &other, .items = "items.dat"), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "'items' is not for digits"));
    temp_folder_remove();
}

/** Ratings are what is known of the item. */
static mixt_value by_feature(mixt_builder *b, mixt_value x)
{
    mixt_value weight = mixt_param(b, "weight", .rank = 2, .dims = {1, 1}, .ones = true);
    mixt_value rating = mixt_mul(b, mixt_input(b, "item.features"), weight);
    (void)x;
    mixt_loss_add(b, mixt_loss_mse(b, rating, mixt_target(b, "rating")), 1);
    return rating;
}

static void the_best_items_have_their_features(void **state)
{
    mixt_rated best[3];
    int64_t found;
    (void)state;
    temp_folder_make();
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_data *train = open_items("1::a::1\n2::b::2\n2::c::2\n2::d::2\n", "a::5\nb::20\nc::10\nd::30\n",
                                  MIXT_OPTIONS(mixt_data_options, .split = "all"));
    assert_non_null(train);
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, by_feature, MIXT_LOSS_CUSTOM), .batch = 2);
    assert_int_equal(mixt_trainer_compile(t, train), MIXT_OK);
    assert_int_equal(mixt_ratings_top(t, train, 0, 3, best, &found), MIXT_OK);
    assert_int_equal(found, 3);
    assert_true(best[0].item == 3 && best[1].item == 1 && best[2].item == 2);
    mixt_data *timed =
        open_text("1::a::1::1\n2::b::2::3\n", MIXT_OPTIONS(mixt_data_options, .split = "all", .times = true));
    assert_non_null(timed);
    t = mixt_trainer_new(mixt_model_new(context, by_feature, MIXT_LOSS_CUSTOM), .batch = 2);
    assert_int_equal(mixt_trainer_compile(t, timed), MIXT_OK);
    assert_int_equal(mixt_ratings_top(t, timed, 0, 3, best, &found), MIXT_OK);
    assert_true(found == 1 && best[0].item == 1 && best[0].rating == 0.5); // the newest time, half a deviation
    mixt_close(context);
    mixt_data_close(timed);
    mixt_data_close(train);
    temp_folder_remove();
}

/** Ratings are the item's number, whoever rates: so the order of items is known. */
static mixt_value by_item(mixt_builder *b, mixt_value x)
{
    mixt_value table = mixt_param(b, "worth", .rank = 2, .dims = {200, 1});
    mixt_value rating = mixt_embedding_lookup(b, table, mixt_input(b, "item"));
    (void)x;
    mixt_loss_add(b, mixt_loss_mse(b, rating, mixt_target(b, "rating")), 1);
    return rating;
}

static void items_are_ranked(void **state)
{
    float worth[200];
    mixt_rated best[250];
    int64_t found;
    mixt_ranking ranking;
    (void)state;
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_data *train = mixt_data_new(context, "ratings:", .samples = 4000, .split = "train");
    mixt_data *val = mixt_data_new(context, "ratings:", .samples = 4000, .split = "val");
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, by_item, MIXT_LOSS_CUSTOM), .batch = 64);
    assert_int_equal(mixt_trainer_compile(t, train), MIXT_OK);
    for (int i = 0; i < 200; i++)
        worth[i] = (float)i;
    assert_int_equal(mixt_trainer_param_set(t, 0, worth), MIXT_OK);
    assert_int_equal(mixt_ratings_top(t, train, 3, 250, best, &found), MIXT_OK);
    assert_in_range(found, 150, 199); // all but those that he has rated
    for (int64_t i = 0; i < found; i++) {
        assert_true(best[i].rating == (double)best[i].item);
        assert_true(!i || best[i].item < best[i - 1].item);
    }
    int64_t first = best[0].item;
    assert_int_equal(mixt_ratings_top(t, train, 3, 1, best, &found), MIXT_OK);
    assert_true(found == 1 && best[0].item == first);
    assert_int_equal(mixt_ratings_rank(t, train, val, NULL, &ranking), MIXT_OK);
    assert_in_range(ranking.count, 50, 400);
    assert_true(ranking.hit_rate > 0 && ranking.hit_rate < 0.4 && ranking.ndcg > 0 && ranking.ndcg < ranking.hit_rate);
    assert_int_equal(mixt_ratings_rank(t, train, val, MIXT_OPTIONS_AT(mixt_ranking_options, .cut = 100), &ranking),
                     MIXT_OK);
    assert_true(ranking.hit_rate == 1); // nothing is behind place 100 of 100
    assert_true(ranking.among == 100);
    assert_int_equal(
        mixt_ratings_rank(t, train, val, MIXT_OPTIONS_AT(mixt_ranking_options, .others = 5000, .cut = 200), &ranking),
        MIXT_OK);
    assert_true(ranking.hit_rate == 1 && ranking.among > 100 && ranking.among < 200); // each of 200 items once
    for (int i = 0; i < 200; i++)
        worth[i] = 1; // a model that says the same of all items hits nothing
    assert_int_equal(mixt_trainer_param_set(t, 0, worth), MIXT_OK);
    assert_int_equal(mixt_ratings_rank(t, train, val, NULL, &ranking), MIXT_OK);
    assert_true(ranking.hit_rate == 0 && ranking.ndcg == 0);
    assert_int_equal(mixt_ratings_rank(t, train, val, MIXT_OPTIONS_AT(mixt_ranking_options, .others = 0), &ranking),
                     MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_ratings_rank(t, train, val, MIXT_OPTIONS_AT(mixt_ranking_options, .cut = 0), &ranking),
                     MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_ratings_top(t, train, 300, 1, best, &found), MIXT_ERROR_ARGUMENT);
    mixt_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms_are_read),
        cmocka_unit_test(two_quotes_are_one),
        cmocka_unit_test(the_newest_are_held_out),
        cmocka_unit_test(at_random_every_rating_has_one_part),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(features_of_items_are_read),
        cmocka_unit_test(a_word_among_numbers_is_told),
        cmocka_unit_test(a_rating_does_not_count_itself),
        cmocka_unit_test(names_that_are_numbers_are_features),
        cmocka_unit_test(times_of_ratings_are_known),
        cmocka_unit_test(wrong_features_are_named),
        cmocka_unit_test(the_best_items_have_their_features),
        cmocka_unit_test(items_are_ranked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
