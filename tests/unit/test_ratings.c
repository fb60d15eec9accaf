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
    };
    (void)state;
    temp_folder_make();
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        mixt_data *data = open_text(forms[i], MIXT_DATA_OPTIONS(.split = "all"));
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

static void the_newest_are_held_out(void **state)
{
    const char *text = "1::a::1::30\n2::b::2::10\n3::c::3::40\n4::d::4::20\n5::e::5::40\n";
    (void)state;
    temp_folder_make();
    mixt_data *train = open_text(text, MIXT_DATA_OPTIONS(.split = "train", .val = 0.2, .test = 0.2, .by_time = true));
    mixt_data *val = open_text(text, MIXT_DATA_OPTIONS(.split = "val", .val = 0.2, .test = 0.2, .by_time = true));
    mixt_data *test = open_text(text, MIXT_DATA_OPTIONS(.split = "test", .val = 0.2, .test = 0.2, .by_time = true));
    assert_true(train && val && test);
    assert_int_equal(mixt_data_describe(train)->samples, 3);
    expect(train, 0, "2", "b", 2);
    expect(train, 2, "1", "a", 1);
    expect(val, 0, "3", "c", 3); // of equal times the first line
    expect(test, 0, "5", "e", 5);
    mixt_data_close(train);
    mixt_data_close(val);
    mixt_data_close(test);
    assert_null(open_text("1::a::1\n2::b::2::3\n", MIXT_DATA_OPTIONS(.split = "train", .by_time = true)));
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
    };
    (void)state;
    temp_folder_make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(open_text(cases[i].text, MIXT_DATA_OPTIONS(.split = "all")));
        if (!strstr(mixt_error_text(), cases[i].words))
            fail_msg("expected \"%s\", got \"%s\"", cases[i].words, mixt_error_text());
    }
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
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, by_item, MIXT_LOSS_OWN), .batch = 64);
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
    assert_int_equal(mixt_ratings_rank(t, train, val, &(mixt_ranking_options){.cut = 100}, &ranking), MIXT_OK);
    assert_true(ranking.hit_rate == 1); // nothing is behind place 100 of 100
    for (int i = 0; i < 200; i++)
        worth[i] = 1; // a model that says the same of all items hits nothing
    assert_int_equal(mixt_trainer_param_set(t, 0, worth), MIXT_OK);
    assert_int_equal(mixt_ratings_rank(t, train, val, NULL, &ranking), MIXT_OK);
    assert_true(ranking.hit_rate == 0 && ranking.ndcg == 0);
    assert_int_equal(mixt_ratings_top(t, train, 300, 1, best, &found), MIXT_ERROR_ARGUMENT);
    mixt_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms_are_read),
        cmocka_unit_test(the_newest_are_held_out),
        cmocka_unit_test(at_random_every_rating_has_one_part),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(items_are_ranked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
