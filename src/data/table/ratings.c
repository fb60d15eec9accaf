/* Ratings of items by users: one line each, user, item, rating and perhaps the time of it.
 *
 * Lines are read by ratings_read.c. All parts number the whole file, so that they agree. Without a path mixt draws
 * ratings itself: tastes and items with a few hidden properties.
 *
 * Where options ask for features of users or items, or for times, they are inputs beside the two ids.
 */
#include "data/columns.h"
#include "data/table/features.h"
#include "data/table/ratings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2 };          // users, items
enum { DAY = 24 * 60 * 60 }; // seconds
enum { DRAWN_USERS = 300, DRAWN_ITEMS = 200, DRAWN_PROPERTIES = 3, DRAWN_RATINGS = 20000 };

/** What is known beside ids. */
typedef struct beside {
    mixt__features side[SIDES];
    float *when;  // (rows) times with mean 0 over the training part; NULL: nobody asks
    float newest; // of the training part: when a pair is rated that no line has
    int64_t rows;
} beside;

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its ratings", data->kind->name, data->path);
}

/* ---- ratings that mixt draws ---- */

/** A number between -1 and 1, the same for every run. */
static double drawn(uint64_t key, uint64_t index)
{
    return (double)(mixt__rng_key(key, MIXT_STREAM_RATINGS, index) >> 11) / 4503599627370496.0 - 1;
}

static double taste_of(uint64_t key, int64_t user, int64_t item)
{
    double sum = 0;
    for (int k = 0; k < DRAWN_PROPERTIES; k++)
        sum += drawn(key + 1, (uint64_t)(user * 16 + k)) * drawn(key + 2, (uint64_t)(item * 16 + k));
    return sum + 0.7 * drawn(key + 1, (uint64_t)(user * 16 + 15)) + 0.7 * drawn(key + 2, (uint64_t)(item * 16 + 15));
}

static mixt_status draw(mixt_data *data, mixt__ratings *r)
{
    uint64_t key = data->options.seed * 8 + 8;
    int64_t count = data->options.samples ? data->options.samples : DRAWN_RATINGS;
    char name[32];
    if (count > INT32_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "ratings: data.samples=%lld: at most %d", (long long)count, INT32_MAX);
    if (!mixt__ratings_room(r, count))
        return no_memory(data);
    for (int64_t i = 0; i < DRAWN_USERS + DRAWN_ITEMS; i++) {
        snprintf(name, sizeof name, "%lld", (long long)(i < DRAWN_USERS ? i : i - DRAWN_USERS) + 1);
        if (mixt__names_add(i < DRAWN_USERS ? &r->users : &r->items, name, (int64_t)strlen(name)) < 0)
            return no_memory(data);
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i * 4;
        r->user[i] = (int32_t)((drawn(key, at) + 1) / 2 * DRAWN_USERS);
        r->item[i] = (int32_t)((drawn(key, at + 1) + 1) / 2 * DRAWN_ITEMS);
        double value = 3 + taste_of(key, r->user[i], r->item[i]) + 0.5 * drawn(key, at + 2);
        r->value[i] = (float)(round(2 * fmin(fmax(value, 0.5), 5)) / 2); // half stars
        r->time[i] = (double)i;
    }
    r->count = count;
    return MIXT_OK;
}

/* ---- parts ---- */

typedef struct moment {
    double time;
    int64_t row;
} moment;

static int earlier(const void *a, const void *b)
{
    const moment *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/** The oldest ratings are for training, the newest for testing. */
static mixt_status share_by_time(mixt_data *data, const mixt__ratings *r, mixt__columns *c)
{
    mixt__shares shares;
    MIXT_TRY(mixt__shares_of(data, r->count, false, false, &shares));
    int64_t first[] = {0, shares.train, shares.train + shares.val, 0};
    int64_t counts[] = {shares.train, shares.val, shares.test, r->count};
    data->info.samples = counts[data->part];
    if (!data->info.samples)
        return mixt__part_missing(data);
    moment *order = mixt__alloc_uninit((size_t)r->count * sizeof *order);
    c->chosen = mixt__alloc_uninit((size_t)data->info.samples * sizeof *c->chosen);
    mixt_status status = order && c->chosen ? MIXT_OK : no_memory(data);
    for (int64_t i = 0; i < r->count && status == MIXT_OK; i++) {
        order[i] = (moment){r->time[i], i};
        if (isnan(r->time[i]))
            status = mixt__fail(MIXT_ERROR_DATA, "%s: rating %lld has no time: data.split_by=time needs one",
                                data->path, (long long)i + 1);
    }
    if (status == MIXT_OK) {
        qsort(order, (size_t)r->count, sizeof *order, earlier);
        for (int64_t i = 0; i < data->info.samples; i++)
            c->chosen[i] = order[first[data->part] + i].row;
        for (int64_t i = 0; r->trained && i < shares.train; i++)
            r->trained[order[i].row] = true;
    }
    mixt__free(order);
    return status;
}

/** Any may be in any part. */
static mixt_status share_at_random(mixt_data *data, const mixt__ratings *r, mixt__columns *c)
{
    mixt__shares shares;
    MIXT_TRY(mixt__columns_share(data, c));
    MIXT_TRY(mixt__shares_of(data, r->count, false, false, &shares));
    for (int64_t i = 0; r->trained && i < r->count; i++)
        r->trained[i] = mixt__part_of_row(&shares, i) == MIXT_PART_TRAIN;
    return MIXT_OK;
}

/** The mean over the part: a model begins there. Of other parts that of the training set, where it is known. */
static double mean_of(const mixt_data *data, const mixt__columns *c, const float *values)
{
    double sum = 0;
    if (data->options.like)
        return data->options.like->info.target_mean;
    for (int64_t i = 0; i < data->info.samples; i++)
        sum += (double)values[c->chosen ? c->chosen[i] : i];
    return sum / (double)data->info.samples;
}

/* ---- times ---- */

/** What a user's day is called. */
static int64_t name_day(const mixt__ratings *r, const int32_t *users, int64_t row, char *name, size_t room)
{
    return snprintf(name, room, "%d %.0f", (int)users[row], floor(r->time[row] / DAY));
}

/** Days of users that the training part has, from 1 on; others are 0. `like` has those of its own training part.
 *  @param days (r->count) */
static mixt_status number_days(const mixt_data *data, const mixt__ratings *r, const int32_t *users, int32_t *days,
                               mixt__names *names)
{
    const mixt_data_info *like = data->options.like ? &data->options.like->info : NULL;
    int known = mixt_data_array_find(like, "user.day");
    const mixt_data_array *before = known >= 0 && like->arrays[known].names ? &like->arrays[known] : NULL;
    char name[400];                                // a time may have 309 digits
    bool full = mixt__names_add(names, "", 0) < 0; // of days that nobody knows
    for (int64_t i = 1; before && i < before->ids && !full; i++)
        full = mixt__names_add(names, before->names[i], (int64_t)strlen(before->names[i])) < 0;
    for (int64_t i = 0; i < r->count && !full; i++) {
        if (isnan(r->time[i]))
            return mixt__fail(MIXT_ERROR_DATA, "%s: rating %lld has no time: data.times needs one", data->path,
                              (long long)i + 1);
        if (r->trained[i] && !before)
            full = mixt__names_add(names, name, name_day(r, users, i, name, sizeof name)) < 0;
    }
    for (int64_t i = 0; i < r->count && !full; i++) {
        int64_t day = mixt__names_number(names, name, name_day(r, users, i, name, sizeof name));
        days[i] = day < 0 ? 0 : (int32_t)day;
    }
    return full ? no_memory(data) : MIXT_OK;
}

/** Puts days between ids and ratings. */
static mixt_status add_days(mixt_data *data, const mixt__ratings *r, mixt__columns *c)
{
    mixt__names names = {0};
    if (!data->options.times)
        return MIXT_OK;
    int32_t *days = mixt__alloc_uninit((size_t)r->count * sizeof *days);
    mixt_status status = days ? number_days(data, r, c->column[0].values, days, &names) : no_memory(data);
    mixt_data_array array = {.name = "user.day", .dtype = MIXT_DTYPE_INT32, .elements = 1, .ids = names.count};
    if (status == MIXT_OK && !(array.names = mixt__names_list(&names, &data->arena)))
        status = no_memory(data);
    c->column[c->count] = c->column[c->count - 1];
    c->column[c->count - 1] = (mixt__column){.values = days, .array = array};
    c->count++;
    mixt__names_free(&names);
    return status;
}

/** Times as features have them: deviations over the training part, halved, so that what one user or one item makes of
 *  time is believed less than what it makes of other features. Every time is known to be there. */
static mixt_status scale_times(mixt_data *data, const mixt__ratings *r, beside *b)
{
    double count = 0, sum = 0, squares = 0, newest = -HUGE_VAL;
    if (!data->options.times)
        return MIXT_OK;
    b->when = mixt__arena_alloc(&data->arena, (size_t)r->count * sizeof *b->when);
    if (!b->when)
        return no_memory(data);
    for (int64_t i = 0; i < r->count; i++)
        if (r->trained[i]) {
            count++;
            sum += r->time[i];
            newest = fmax(newest, r->time[i]);
        }
    double mean = count > 0 ? sum / count : 0;
    for (int64_t i = 0; i < r->count; i++)
        squares += r->trained[i] ? pow(r->time[i] - mean, 2) : 0;
    double scale = count > 0 ? mixt__features_scale(squares / count) : 0;
    for (int64_t i = 0; i < r->count; i++)
        b->when[i] = (float)(mixt__features_scaled(r->time[i], mean, scale) / 2);
    b->newest = count > 0 ? (float)(mixt__features_scaled(newest, mean, scale) / 2) : 0;
    b->rows = r->count;
    return MIXT_OK;
}

/* ---- features ---- */

static bool has_features(const mixt_data_options *o)
{
    return o->counts || o->times || o->user_numbers || o->item_numbers || (o->users && *o->users) ||
           (o->items && *o->items);
}

/** A path, or the name of a file beside the ratings. */
static const char *find_features(mixt_data *data, const char *name)
{
    const char *slash = strrchr(data->path, '/'), *folder = data->path;
    if (mixt__path_is_file(name))
        return name;
    if (!mixt__path_is_directory(data->path))
        folder = slash ? mixt__arena_printf(&data->arena, "%.*s", (int)(slash - data->path), data->path) : ".";
    const char *beside = folder ? mixt__path_find(data, folder, name) : NULL;
    return beside ? beside : name;
}

/** Of one side: counts, numbers of names, and what its file says. */
static mixt_status open_features(mixt_data *data, const mixt__ratings *r, const mixt__column *column, int side,
                                 mixt__features *f)
{
    const mixt_data_options *o = &data->options;
    const int32_t *ids = column->values;
    const char *file = side ? o->items : o->users;
    const mixt__names *names = side ? &r->items : &r->users;
    *f = (mixt__features){.side = side ? "item" : "user", .ids = names->count, .timed = o->times};
    f->count = mixt__arena_alloc(&data->arena, (size_t)f->ids * sizeof *f->count);
    if (!f->count)
        return no_memory(data);
    for (int64_t i = 0; i < r->count; i++)
        f->count[ids[i]] += r->trained[i];
    if (o->counts)
        mixt__features_use_count(f);
    if (side ? o->item_numbers : o->user_numbers)
        MIXT_TRY(mixt__features_use_names(data, column->array.names, f));
    return file && *file ? mixt__features_read(data, find_features(data, file), names, f) : MIXT_OK;
}

/** Puts features between ids and ratings. */
static mixt_status add_features(mixt_data *data, const mixt__ratings *r, mixt__columns *c)
{
    static const char *const names[SIDES] = {"user.features", "item.features"};
    if (!has_features(&data->options))
        return MIXT_OK;
    beside *b = c->more = mixt__arena_alloc(&data->arena, sizeof *b);
    mixt__column rating = c->column[--c->count];
    mixt_status status = b ? scale_times(data, r, b) : no_memory(data);
    for (int side = 0; side < SIDES && status == MIXT_OK; side++) {
        status = open_features(data, r, &c->column[side], side, &b->side[side]);
        int64_t width = mixt__features_width(&b->side[side]);
        if (status == MIXT_OK && width)
            c->column[c->count++] = (mixt__column){
                .source = MIXT_COLUMN_MADE,
                .of = side,
                .array = {
                    .name = names[side], .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {width}, .elements = width}};
    }
    c->column[c->count++] = rating;
    return status;
}

/** Features of a user and an item to their places. @param row the line; -1: none, the pair is rated last of all */
static void write_features(const mixt_data *data, const int32_t *ids, int64_t row, bool own, char *const *at)
{
    const mixt__columns *c = data->state;
    const beside *b = c->more;
    float when = b && b->when ? row < 0 ? b->newest : b->when[row] : 0;
    for (int i = SIDES; i < c->count; i++)
        if (c->column[i].source == MIXT_COLUMN_MADE)
            mixt__features_write(&b->side[c->column[i].of], ids[c->column[i].of], own, when, (float *)(void *)at[i]);
}

static mixt_status arrays(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                          char *const *at)
{
    MIXT_TRY(mixt__columns_arrays(data, as, index, epoch, at));
    const int32_t ids[SIDES] = {*(const int32_t *)(void *)at[0], *(const int32_t *)(void *)at[1]};
    const mixt__columns *c = data->state;
    write_features(data, ids, c->chosen ? c->chosen[index] : index,
                   data->part == MIXT_PART_TRAIN || data->part == MIXT_PART_ALL, at);
    return MIXT_OK;
}

void mixt__ratings_pair(const mixt_data *data, int32_t user, int32_t item, char *const *at)
{
    const int32_t ids[SIDES] = {user, item};
    *(int32_t *)(void *)at[0] = user;
    *(int32_t *)(void *)at[1] = item;
    if (data->kind != &mixt__data_ratings)
        return;
    if (data->options.times)
        *(int32_t *)(void *)at[SIDES] = 0; // of no day that is known
    write_features(data, ids, -1, false, at);
}

/** Features of each side, then the columns. */
static const void *raw(const mixt_data *data, int index, size_t *bytes)
{
    const mixt__columns *c = data->state;
    const beside *b = c->more;
    for (int side = 0; b && side < SIDES; side++) {
        const mixt__features *f = &b->side[side];
        *bytes = (size_t)(f->ids * f->width) * sizeof *f->values;
        if (f->width && !index--)
            return f->values;
        *bytes = (size_t)f->ids * sizeof *f->number;
        if (f->number && !index--)
            return f->number;
        *bytes = (size_t)f->ids * sizeof *f->count;
        if (!index--)
            return f->count;
    }
    *bytes = b ? (size_t)b->rows * sizeof *b->when : 0;
    if (b && b->when && !index--)
        return b->when;
    return mixt__columns_raw(data, index, bytes);
}

/* ---- opening ---- */

/** A user or an item that `like` does not know has no row in its model; features must be as many. */
static mixt_status check_like(const mixt_data *data, const mixt__columns *c)
{
    const mixt_data_info *like = data->options.like ? &data->options.like->info : NULL;
    for (int i = 0; like && i < c->count && like->array_count > i; i++)
        if (c->column[i].array.ids > like->arrays[i].ids && (i < SIDES || like->arrays[i].ids))
            return mixt__fail(
                MIXT_ERROR_DATA, "%s: %lld %ss, but the model was trained with %lld: this is another data set",
                data->path, (long long)c->column[i].array.ids, c->column[i].array.name, (long long)like->arrays[i].ids);
    for (int i = SIDES; like && like->array_count > SIDES && i < c->count; i++) {
        const mixt_data_array *own = &c->column[i].array, *known = i < like->array_count ? &like->arrays[i] : NULL;
        if (!known || strcmp(own->name, known->name) || own->elements != known->elements)
            return mixt__fail(MIXT_ERROR_DATA,
                              "%s: %lld of %s where the model was trained with %lld of %s: they are other features",
                              data->path, (long long)own->elements, own->name, (long long)(known ? known->elements : 0),
                              known ? known->name : "none");
    }
    return MIXT_OK;
}

/** Hands what was read to columns. */
static mixt_status make_columns(mixt_data *data, mixt__ratings *r, mixt__columns *c)
{
    *c = (mixt__columns){.rows = r->count, .count = 3};
    c->column[0].array = (mixt_data_array){.name = "user", .dtype = MIXT_DTYPE_INT32, .elements = 1};
    c->column[1].array = (mixt_data_array){.name = "item", .dtype = MIXT_DTYPE_INT32, .elements = 1};
    c->column[2].array = (mixt_data_array){.name = "rating", .target = true, .dtype = MIXT_DTYPE_FP32, .elements = 1};
    c->column[0].values = r->user;
    c->column[1].values = r->item;
    c->column[2].values = r->value;
    r->user = r->item = NULL;
    r->value = NULL;
    mixt__names *names[] = {&r->users, &r->items};
    for (int i = 0; i < SIDES; i++) {
        c->column[i].array.ids = names[i]->count;
        c->column[i].array.names = mixt__names_list(names[i], &data->arena);
        if (!c->column[i].array.names)
            return no_memory(data);
    }
    r->trained = has_features(&data->options) ? mixt__alloc((size_t)r->count) : NULL;
    if (has_features(&data->options) && !r->trained)
        return no_memory(data);
    MIXT_TRY(data->options.by_time ? share_by_time(data, r, c) : share_at_random(data, r, c));
    data->info.target_mean = mean_of(data, c, c->column[2].values);
    MIXT_TRY(add_days(data, r, c));
    MIXT_TRY(add_features(data, r, c));
    return check_like(data, c);
}

const char *mixt__ratings_file(mixt_data *data, const char *folder)
{
    const char *path = mixt__path_find(data, folder, "ratings.dat");
    return path ? path : mixt__path_find(data, folder, "ratings.csv");
}

static mixt_status open(mixt_data *data)
{
    mixt__ratings r = {0};
    mixt__columns c = {0};
    const char *path = data->path;
    if (mixt__path_is_directory(path)) {
        path = mixt__ratings_file(data, path);
        if (!path)
            return mixt__fail(MIXT_ERROR_FILE, "ratings:%s: has neither ratings.dat nor ratings.csv", data->path);
    }
    mixt_status status = *path ? mixt__ratings_read(data, path, &r) : draw(data, &r);
    if (status == MIXT_OK)
        status = make_columns(data, &r, &c);
    mixt__ratings_free(&r);
    if (status == MIXT_OK)
        return mixt__columns_adopt(data, &c);
    mixt__columns_free(&c);
    return status;
}

const mixt__data_kind mixt__data_ratings = {
    .name = "ratings",
    .what = "ratings of items by users",
    .uses = MIXT_DATA_RATINGS | MIXT_DATA_SAMPLES,
    .open = open,
    .arrays = arrays,
    .close = mixt__columns_close,
    .raw = raw,
    .draws = true,
};
