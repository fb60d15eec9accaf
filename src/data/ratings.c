/* Ratings of items by users: one line each, user, item, rating and perhaps the time of it.
 *
 * Fields are parted by "::" or as in CSV; users and items are names, whatever they look like, and get numbers in the
 * order in which the file brings them up. All parts number the whole file, so that they agree. Without a path mixt
 * draws ratings itself: tastes and items with a few hidden properties.
 */
#include "data/columns.h"
#include "data/csv_text.h"
#include "data/names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 4, DRAWN_USERS = 300, DRAWN_ITEMS = 200, DRAWN_PROPERTIES = 3, DRAWN_RATINGS = 20000 };

/** What a file says, a line a rating. */
typedef struct ratings {
    int32_t *user, *item;
    float *value;
    double *time; // NaN: the line does not say
    int64_t count, capacity;
    mixt__names users, items;
} ratings;

static void free_ratings(ratings *r)
{
    mixt__free(r->user);
    mixt__free(r->item);
    mixt__free(r->value);
    mixt__free(r->time);
    mixt__names_free(&r->users);
    mixt__names_free(&r->items);
}

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its ratings", data->kind->name, data->path);
}

/** Room for `count` ratings. */
static bool take_room(ratings *r, int64_t count)
{
    size_t n = (size_t)count;
    r->user = mixt__alloc_uninit(n * sizeof *r->user);
    r->item = mixt__alloc_uninit(n * sizeof *r->item);
    r->value = mixt__alloc_uninit(n * sizeof *r->value);
    r->time = mixt__alloc_uninit(n * sizeof *r->time);
    r->capacity = count;
    return r->user && r->item && r->value && r->time;
}

/* ---- lines ---- */

/** The fields of a line; returns how many there are, also beyond those that there is room for. */
static int split_line(mixt__csv_text *text, mixt__csv_field line, bool colons, mixt__csv_field *fields)
{
    int count = 0;
    if (!colons) {
        mixt__csv_field field;
        while (mixt__csv_next_field(text, &line, &field)) {
            if (count < FIELDS)
                fields[count] = field;
            count++;
        }
        return count;
    }
    const char *at = line.text, *end = line.text + line.length;
    while (at) {
        const char *next = memmem(at, (size_t)(end - at), "::", 2);
        if (count < FIELDS)
            fields[count] = (mixt__csv_field){.text = at, .length = (next ? next : end) - at};
        count++;
        at = next ? next + 2 : NULL;
    }
    return count;
}

static bool is_number(const mixt__csv_field *field)
{
    double value;
    return mixt__csv_number(field, &value);
}

/** A first line of words names the columns. */
static bool is_header(const mixt__csv_field *fields, int count)
{
    return count >= 3 && count <= FIELDS && !is_number(&fields[2]) && !mixt__csv_missing(&fields[2]);
}

static mixt_status add_line(mixt_data *data, ratings *r, const mixt__csv_field *fields, int count, int64_t line)
{
    double value, time = NAN;
    if (count < 3 || count > FIELDS)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld has %d field%s: expected user, item, rating and perhaps time",
                          data->path, (long long)line, count, count == 1 ? "" : "s");
    for (int i = 0; i < 2; i++)
        if (!fields[i].length)
            return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld names no %s", data->path, (long long)line,
                              i ? "item" : "user");
    if (!mixt__csv_number(&fields[2], &value) || !isfinite(value) || fabs(value) > 1e6)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: rating '%.*s': expected a finite number up to a million",
                          data->path, (long long)line, (int)(fields[2].length < 40 ? fields[2].length : 40),
                          fields[2].text);
    if (count == FIELDS && (!mixt__csv_number(&fields[3], &time) || !isfinite(time)))
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: time '%.*s': expected a number of seconds", data->path,
                          (long long)line, (int)(fields[3].length < 40 ? fields[3].length : 40), fields[3].text);
    int64_t user = mixt__names_add(&r->users, fields[0].text, fields[0].length);
    int64_t item = mixt__names_add(&r->items, fields[1].text, fields[1].length);
    if (user < 0 || item < 0)
        return no_memory(data);
    r->user[r->count] = (int32_t)user;
    r->item[r->count] = (int32_t)item;
    r->value[r->count] = (float)value;
    r->time[r->count++] = time;
    return MIXT_OK;
}

static mixt_status read_lines(mixt_data *data, const mixt__bytes *file, ratings *r)
{
    mixt__csv_text text = {.at = (const char *)file->bytes, .end = (const char *)file->bytes + file->size};
    mixt__csv_field line, fields[FIELDS] = {{0}};
    bool first = true, colons = false;
    while (mixt__csv_next_line(&text, &line)) {
        if (first) {
            colons = memmem(line.text, (size_t)line.length, "::", 2) != NULL;
            text.separator = mixt__csv_separator(&text, &line);
        }
        int count = split_line(&text, line, colons, fields);
        bool header = first && is_header(fields, count);
        first = false;
        if (!header)
            MIXT_TRY(add_line(data, r, fields, count, text.line));
    }
    return r->count ? MIXT_OK : mixt__fail(MIXT_ERROR_DATA, "%s: holds no ratings", data->path);
}

static int64_t count_lines(const mixt__bytes *file)
{
    int64_t lines = 1;
    for (int64_t i = 0; i < file->size; i++)
        lines += file->bytes[i] == '\n';
    return lines;
}

static mixt_status read_file(mixt_data *data, const char *path, ratings *r)
{
    mixt__bytes file;
    MIXT_TRY(mixt__bytes_read(path, &file));
    mixt_status status = mixt__text_check(path, file.bytes, file.size);
    if (status == MIXT_OK && count_lines(&file) > INT32_MAX)
        status = mixt__fail(MIXT_ERROR_DATA, "%s: more than %d lines", path, INT32_MAX);
    if (status == MIXT_OK && !take_room(r, count_lines(&file)))
        status = no_memory(data);
    if (status == MIXT_OK)
        status = read_lines(data, &file, r);
    mixt__bytes_free(&file);
    return status;
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

static mixt_status draw(mixt_data *data, ratings *r)
{
    uint64_t key = data->options.seed * 8 + 8;
    int64_t count = data->options.samples ? data->options.samples : DRAWN_RATINGS;
    char name[32];
    if (count > INT32_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "ratings: %lld ratings to draw: %d at most", (long long)count, INT32_MAX);
    if (!take_room(r, count))
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
static mixt_status share_by_time(mixt_data *data, const ratings *r, mixt__columns *c)
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
    }
    mixt__free(order);
    return status;
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

/* ---- opening ---- */

/** A user or an item that `like` does not know has no row in its model. */
static mixt_status check_like(const mixt_data *data, const mixt__columns *c)
{
    const mixt_data_info *like = data->options.like ? &data->options.like->info : NULL;
    for (int i = 0; like && i < 2 && like->array_count > i; i++)
        if (c->column[i].array.ids > like->arrays[i].ids)
            return mixt__fail(MIXT_ERROR_DATA, "%s: %lld %ss, but the model was trained with %lld: it is another set",
                              data->path, (long long)c->column[i].array.ids, i ? "item" : "user",
                              (long long)like->arrays[i].ids);
    return MIXT_OK;
}

/** Hands what was read to columns. */
static mixt_status make_columns(mixt_data *data, ratings *r, mixt__columns *c)
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
    for (int i = 0; i < 2; i++) {
        c->column[i].array.ids = names[i]->count;
        c->column[i].array.names = mixt__names_list(names[i], &data->arena);
        if (!c->column[i].array.names)
            return no_memory(data);
    }
    MIXT_TRY(check_like(data, c));
    MIXT_TRY(data->options.by_time ? share_by_time(data, r, c) : mixt__columns_share(data, c));
    data->info.target_mean = mean_of(data, c, c->column[2].values);
    return MIXT_OK;
}

const char *mixt__ratings_file(mixt_data *data, const char *folder)
{
    const char *path = mixt__path_find(data, folder, "ratings.dat");
    return path ? path : mixt__path_find(data, folder, "ratings.csv");
}

static mixt_status open(mixt_data *data)
{
    ratings r = {0};
    mixt__columns c = {0};
    const char *path = data->path;
    if (mixt__path_is_directory(path)) {
        path = mixt__ratings_file(data, path);
        if (!path)
            return mixt__fail(MIXT_ERROR_FILE, "ratings:%s: has neither ratings.dat nor ratings.csv", data->path);
    }
    mixt_status status = *path ? read_file(data, path, &r) : draw(data, &r);
    if (status == MIXT_OK)
        status = make_columns(data, &r, &c);
    free_ratings(&r);
    if (status == MIXT_OK)
        return mixt__columns_adopt(data, &c);
    mixt__columns_free(&c);
    return status;
}

const mixt__data_kind mixt__data_ratings = {
    .name = "ratings",
    .what = "ratings of items by users",
    .uses = MIXT_DATA_TIMES,
    .open = open,
    .arrays = mixt__columns_arrays,
    .close = mixt__columns_close,
    .raw = mixt__columns_raw,
};
