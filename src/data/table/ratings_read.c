/* Lines of user, item, rating and perhaps time, separated by "::" or as in CSV.
 *
 * Users and items are names, whatever they look like. A header may put the fields into another order; words that it
 * does not know stand for what is left, in the usual order.
 */
#include "data/table/ratings.h"

#include "data/table/lines.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { USER, ITEM, RATING, TIME, FIELDS, SHOWN = 40 };

/** Where a line has its fields; those that it has not are behind its end. */
typedef struct order {
    int at[FIELDS];
} order;

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its ratings", data->kind->name, data->path);
}

bool mixt__ratings_room(mixt__ratings *r, int64_t count)
{
    size_t n = (size_t)count;
    r->user = mixt__alloc_uninit(n * sizeof *r->user);
    r->item = mixt__alloc_uninit(n * sizeof *r->item);
    r->value = mixt__alloc_uninit(n * sizeof *r->value);
    r->time = mixt__alloc_uninit(n * sizeof *r->time);
    return r->user && r->item && r->value && r->time;
}

void mixt__ratings_free(mixt__ratings *r)
{
    mixt__free(r->user);
    mixt__free(r->item);
    mixt__free(r->value);
    mixt__free(r->time);
    mixt__free(r->trained);
    mixt__names_free(&r->users);
    mixt__names_free(&r->items);
}

/* ---- a header ---- */

static bool is_number(const mixt__csv_field *field)
{
    double value;
    return mixt__csv_number(field, &value);
}

/** A first line of words names the columns: no rating is one. */
static bool is_header(const mixt__csv_field *fields, int count)
{
    bool words = count >= RATING + 1 && count <= FIELDS;
    for (int i = 0; words && i < count; i++)
        words = !is_number(&fields[i]) && !mixt__csv_missing(&fields[i]);
    return words;
}

/** What a column of this name holds, "userId", "movie_id", "Rating"; FIELDS: the name says nothing. */
static int meaning_of(const mixt__csv_field *field)
{
    static const struct {
        const char *word;
        int means;
    } words[] = {{"user", USER},    {"reviewer", USER}, {"item", ITEM},      {"movie", ITEM}, {"product", ITEM},
                 {"book", ITEM},    {"song", ITEM},     {"track", ITEM},     {"film", ITEM},  {"rating", RATING},
                 {"stars", RATING}, {"score", RATING},  {"timestamp", TIME}, {"time", TIME}};
    char plain[SHOWN] = "";
    for (int64_t i = 0, n = 0; i < field->length && n < SHOWN - 1; i++)
        if (isalpha((unsigned char)field->text[i]))
            plain[n++] = (char)tolower((unsigned char)field->text[i]);
    size_t length = strlen(plain);
    if (length > 2 && !strcmp(plain + length - 2, "id"))
        plain[length - 2] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(plain, words[i].word))
            return words[i].means;
    return FIELDS;
}

static mixt_status read_header(const mixt_data *data, const mixt__csv_field *fields, int count, order *o)
{
    bool taken[FIELDS] = {false};
    for (int m = 0; m < FIELDS; m++)
        o->at[m] = -1;
    for (int i = 0; i < count; i++) {
        int means = meaning_of(&fields[i]);
        if (means == FIELDS)
            continue;
        if (o->at[means] >= 0)
            return mixt__fail(MIXT_ERROR_DATA, "%s: columns %d and %d of its header are both called %ss", data->path,
                              o->at[means] + 1, i + 1, (const char *[]){"user", "item", "rating", "time"}[means]);
        o->at[means] = i;
        taken[i] = true;
    }
    for (int m = 0, next = 0; m < FIELDS; m++) {
        while (next < FIELDS && taken[next])
            next++;
        if (o->at[m] < 0)
            o->at[m] = next++;
    }
    return MIXT_OK;
}

/* ---- lines ---- */

static mixt_status wrong_field(const mixt_data *data, int64_t line, const mixt__csv_field *field, const char *what)
{
    return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: %.*s '%.*s': expected %s", data->path, (long long)line,
                      (int)strcspn(what, ":"), what, (int)(field->length < SHOWN ? field->length : SHOWN), field->text,
                      strchr(what, ':') + 2);
}

/** The number of a name. @param like the array whose names have numbers already: INT32_MAX where it has no such; NULL:
 *  a new one has the next. -1: memory ends. */
static int64_t number_of(mixt__names *names, const mixt__csv_field *field, const mixt_data_array *like)
{
    int64_t number = like ? mixt__names_number(names, field->text, field->length)
                          : mixt__names_add(names, field->text, field->length);
    return like && number < 0 ? INT32_MAX : number;
}

/** The array of users, or items, of `like` where that has names. */
static const mixt_data_array *like_of(const mixt_data *data, int side)
{
    const mixt_data_info *like = data->options.like ? &data->options.like->info : NULL;
    return like && side < like->array_count && like->arrays[side].names ? &like->arrays[side] : NULL;
}

static mixt_status add_line(mixt_data *data, mixt__ratings *r, const mixt__csv_field *fields, int count, int64_t line,
                            const order *o)
{
    double value, time = NAN;
    if (count < 3 || count > FIELDS)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld has %d field%s: expected user, item, rating and perhaps time",
                          data->path, (long long)line, count, count == 1 ? "" : "s");
    const mixt__csv_field *user = &fields[o->at[USER]], *item = &fields[o->at[ITEM]], *rating = &fields[o->at[RATING]];
    if (!user->length || !item->length)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld names no %s", data->path, (long long)line,
                          user->length ? "item" : "user");
    if (!mixt__csv_number(rating, &value) || !isfinite(value) || fabs(value) > 1e6)
        return wrong_field(data, line, rating, "rating: a finite number up to a million");
    if (o->at[TIME] < count && (!mixt__csv_number(&fields[o->at[TIME]], &time) || !isfinite(time)))
        return wrong_field(data, line, &fields[o->at[TIME]], "time: a number of seconds");
    int64_t who = number_of(&r->users, user, like_of(data, USER)),
            what = number_of(&r->items, item, like_of(data, ITEM));
    if (who < 0 || what < 0)
        return no_memory(data);
    r->user[r->count] = (int32_t)who;
    r->item[r->count] = (int32_t)what;
    r->value[r->count] = (float)value;
    r->time[r->count++] = time;
    return MIXT_OK;
}

static mixt_status read_lines(mixt_data *data, mixt__bytes *file, mixt__ratings *r)
{
    mixt__lines lines = mixt__lines_of(file);
    mixt__csv_field fields[FIELDS] = {{0}};
    order o = {{USER, ITEM, RATING, TIME}};
    bool first = true;
    for (int count; (count = mixt__lines_next(&lines, fields, FIELDS)) >= 0; first = false) {
        if (first && is_header(fields, count))
            MIXT_TRY(read_header(data, fields, count, &o));
        else
            MIXT_TRY(add_line(data, r, fields, count, lines.text.line, &o));
    }
    return r->count ? MIXT_OK : mixt__fail(MIXT_ERROR_DATA, "%s: holds no ratings", data->path);
}

/* ---- who is known ---- */

/** Numbers of names as `like` has them, where it has names. */
static mixt_status take_remembered(const mixt_data *data, mixt__ratings *r)
{
    mixt__names *names[] = {&r->users, &r->items};
    for (int side = USER; side <= ITEM; side++) {
        const mixt_data_array *like = like_of(data, side);
        for (int64_t i = 0; like && i < like->ids; i++)
            if (mixt__names_add(names[side], like->names[i], (int64_t)strlen(like->names[i])) < 0)
                return no_memory(data);
    }
    return MIXT_OK;
}

/** Leaves out the ratings of users or items that are not known. */
static mixt_status leave_unknown(mixt_data *data, mixt__ratings *r)
{
    int64_t kept = 0, all = r->count;
    for (int64_t i = 0; i < all; i++) {
        if (r->user[i] == INT32_MAX || r->item[i] == INT32_MAX)
            continue;
        r->user[kept] = r->user[i];
        r->item[kept] = r->item[i];
        r->value[kept] = r->value[i];
        r->time[kept++] = r->time[i];
    }
    r->count = kept;
    if (!kept)
        return mixt__fail(MIXT_ERROR_DATA, "%s: none of its %lld ratings has a user and an item of the training data",
                          data->path, (long long)all);
    return kept == all
               ? MIXT_OK
               : mixt__data_warn(
                     data, "%s: %lld of %lld ratings are dropped: their users or items are not in the training data",
                     data->path, (long long)(all - kept), (long long)all);
}

mixt_status mixt__ratings_read(mixt_data *data, const char *path, mixt__ratings *r)
{
    mixt__bytes file;
    MIXT_TRY(take_remembered(data, r));
    MIXT_TRY(mixt__lines_read(path, &file));
    mixt_status status = mixt__ratings_room(r, mixt__lines_count(&file)) ? read_lines(data, &file, r) : no_memory(data);
    mixt__bytes_free(&file);
    return status == MIXT_OK ? leave_unknown(data, r) : status;
}
