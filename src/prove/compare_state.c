/* What an experiment has on disk: runs/compare-NAME with
 *
 *   a.yaml, b.yaml          the two configurations
 *   compare.jsonl           only ever appended to: what was asked for, each run that is done with its figures, each
 *                           verdict that was given
 *   pair-0001-a, -b, …      the directory of each run
 *   curves.svg, report.html what they look like
 *
 * A process that is killed leaves at most one row cut short, which is dropped, and one run that goes on from its newest
 * checkpoint. The file of rows is locked while an experiment is at work.
 */
#include "prove/compare.h"

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/files.h"
#include "base/status.h"
#include "prove/prove.h"
#include "store/json.h"
#include "store/json_rows.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const side_names[MIXT_COMPARE_SIDES] = {"a", "b"};

/** Figures of a run in a row, by name. */
static const struct {
    const char *name;
    size_t offset;
    bool count; // int64_t, else double
} fields[] = {
#define FIELD(name, count)                                                                                             \
    {                                                                                                                  \
#name, offsetof(mixt_compare_run, name), count                                                                 \
    }
    FIELD(steps, true),        FIELD(skipped, true),        FIELD(spikes, true),     FIELD(alerts, true),
    FIELD(start_loss, false),  FIELD(train_loss, false),    FIELD(loss, false),      FIELD(best_loss, false),
    FIELD(accuracy, false),    FIELD(step_seconds, false),  FIELD(samples_s, false), FIELD(seconds, false),
    FIELD(memory, false),      FIELD(energy, false),        FIELD(grad_norm, false), FIELD(grad_norm_max, false),
    FIELD(equal_steps, false), FIELD(equal_seconds, false),
#undef FIELD
};

static const char *file_in(const mixt_comparison *c, const char *name, char path[MIXT_COMPARE_PATH + 100])
{
    snprintf(path, MIXT_COMPARE_PATH + 100, "%s/%s", c->folder, name);
    return path;
}

const char *mixt__compare_run_folder(const mixt_comparison *c, int64_t pair, mixt_compare_side side,
                                     char path[MIXT_COMPARE_PATH + 100])
{
    snprintf(path, MIXT_COMPARE_PATH + 100, "%s/pair-%04lld-%s", c->folder, (long long)(pair + 1), side_names[side]);
    return path;
}

mixt_status mixt__compare_state_grow(mixt_comparison *c, int64_t pairs)
{
    while (c->count < pairs) {
        if (!mixt__grow((void **)&c->pairs, &c->capacity, c->count, sizeof *c->pairs))
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld pairs", (long long)pairs);
        c->pairs[c->count++] = (mixt__compare_pair){0};
    }
    return MIXT_OK;
}

/* ---- rows ---- */

/** As a row will have it: what is told now and what is told after a restart must be the same. */
static double rounded(double value)
{
    char text[40];
    if (!isfinite(value))
        return NAN;
    mixt__print_number(text, sizeof text, "%.9g", value);
    return mixt__read_double(text, NULL);
}

mixt_status mixt__compare_state_run(mixt_comparison *c, int64_t pair, mixt_compare_side side)
{
    mixt_compare_run *run = &c->pairs[pair].runs[side];
    json_t *row =
        json_pack("{s:I, s:s, s:b}", "pair", (json_int_t)pair + 1, "side", side_names[side], "diverged", run->diverged);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char *at = (char *)run + fields[i].offset;
        if (!fields[i].count)
            *(double *)(void *)at = rounded(*(double *)(void *)at);
        mixt__json_set(row, fields[i].name,
                       fields[i].count ? json_integer(*(int64_t *)(void *)at)
                                       : mixt__rows_number(*(double *)(void *)at));
    }
    return mixt__rows_add(&c->rows, row);
}

mixt_status mixt__compare_state_look(mixt_comparison *c, int64_t pairs)
{
    if (c->look_count && c->looks[c->look_count - 1] >= pairs)
        return MIXT_OK;
    if (c->look_count == MIXT_STATS_LOOKS_MAX)
        return mixt__fail(MIXT_ERROR_STATE, "%s: has had %d looks, which is the limit for the error rate", c->folder,
                          MIXT_STATS_LOOKS_MAX);
    c->looks[c->look_count++] = pairs;
    return mixt__rows_add(&c->rows, json_pack("{s:I}", "look", (json_int_t)pairs));
}

static mixt_status read_run(mixt_comparison *c, const json_t *row)
{
    int64_t pair = json_integer_value(json_object_get(row, "pair"));
    const char *name = json_string_value(json_object_get(row, "side"));
    mixt_compare_side side = name && !strcmp(name, side_names[1]) ? MIXT_COMPARE_B : MIXT_COMPARE_A;
    if (pair < 1 || pair > MIXT_COMPARE_PAIRS_MAX || !name)
        return MIXT_OK; // not of this version: it is made again
    MIXT_TRY(mixt__compare_state_grow(c, pair));
    mixt_compare_run *run = &c->pairs[pair - 1].runs[side];
    run->diverged = json_is_true(json_object_get(row, "diverged"));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char *at = (char *)run + fields[i].offset;
        const json_t *value = json_object_get(row, fields[i].name);
        if (fields[i].count)
            *(int64_t *)(void *)at = json_integer_value(value);
        else
            *(double *)(void *)at = json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    c->pairs[pair - 1].done[side] = true;
    return MIXT_OK;
}

static mixt_status read_look(mixt_comparison *c, const json_t *look)
{
    int64_t pairs = json_integer_value(look);
    if (pairs < MIXT_STATS_PAIRS_MIN || pairs > MIXT_COMPARE_PAIRS_MAX) // nobody can have looked at so many
        return mixt__fail(MIXT_ERROR_FORMAT, "the row is damaged: a look at %lld pairs, where %d to %d are possible",
                          (long long)pairs, MIXT_STATS_PAIRS_MIN, MIXT_COMPARE_PAIRS_MAX);
    if (c->look_count < MIXT_STATS_LOOKS_MAX && pairs > (c->look_count ? c->looks[c->look_count - 1] : 0))
        c->looks[c->look_count++] = pairs;
    return MIXT_OK;
}

/* ---- the same experiment ---- */

static json_t *header_of(const mixt_comparison *c)
{
    return json_pack("{s:s, s:f, s:b}", "metric", c->metric->name, "margin", c->info.margin, "absolute",
                     c->options.absolute);
}

static mixt_status check_header(const mixt_comparison *c, const json_t *before)
{
    json_t *now = header_of(c), *value;
    const char *key;
    mixt_status status = now ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a comparison");
    json_object_foreach(now, key, value)
    {
        const json_t *old = json_object_get(before, key);
        if (status != MIXT_OK || json_equal(old, value))
            continue;
        char *is = mixt__json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        char *was = mixt__json_dumps(old, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        status = mixt__prove_refuse(c->folder, key, is ? is : "?", was ? was : "not there");
        free(is);
        free(was);
    }
    json_decref(now);
    return status;
}

static mixt_status check_config(const mixt_comparison *c, mixt_compare_side side)
{
    char path[MIXT_COMPARE_PATH + 100];
    return mixt__prove_same_config(c->folder, file_in(c, side ? "b.yaml" : "a.yaml", path), c->configs[side],
                                   side ? " of B" : " of A");
}

/* ---- opening ---- */

typedef struct reading {
    mixt_comparison *c;
    bool found; // the header
} reading;

static mixt_status take_row(void *user, json_t *row)
{
    reading *r = user;
    const json_t *header = json_object_get(row, "compare"), *look = json_object_get(row, "look");
    if (!r->found && header) {
        r->found = true;
        MIXT_TRY(check_header(r->c, header));
        MIXT_TRY(check_config(r->c, MIXT_COMPARE_A));
        return check_config(r->c, MIXT_COMPARE_B);
    }
    if (!r->found)
        return mixt__fail(MIXT_ERROR_FORMAT, "the row that says what is compared is missing");
    return look ? read_look(r->c, look) : read_run(r->c, row);
}

static mixt_status read_rows(mixt_comparison *c, bool *found)
{
    reading r = {.c = c};
    FILE *file = mixt__file_open_stream(c->rows.path);
    if (!file)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", c->rows.path, mixt__file_problem(errno));
    mixt_status status = mixt__json_rows_read(file, c->rows.path, take_row, &r);
    fclose(file);
    *found = r.found;
    return mixt__prove_rows_advice(status, c->folder);
}

mixt_status mixt__compare_state_open(mixt_comparison *c)
{
    char path[MIXT_COMPARE_PATH + 100];
    bool found = false;
    MIXT_TRY(mixt__prove_make_folder("runs"));
    MIXT_TRY(mixt__prove_make_folder(c->folder));
    MIXT_TRY(mixt__rows_open(&c->rows, file_in(c, "compare.jsonl", path), INT64_MAX));
    c->rows.sealed = true;
    MIXT_TRY(read_rows(c, &found));
    if (found)
        return MIXT_OK;
    c->fresh = true;
    for (int side = 0; side < MIXT_COMPARE_SIDES; side++)
        MIXT_TRY(mixt_config_write(c->configs[side], file_in(c, side ? "b.yaml" : "a.yaml", path)));
    MIXT_TRY(mixt__rows_add(&c->rows, json_pack("{s:o}", "compare", header_of(c))));
    return mixt__rows_flush(&c->rows);
}

void mixt__compare_state_discard(mixt_comparison *c)
{
    const char *const names[] = {"a.yaml", "b.yaml", "compare.jsonl"};
    char path[MIXT_COMPARE_PATH + 100];
    struct stat info;
    bool begun = !stat(mixt__compare_run_folder(c, 0, MIXT_COMPARE_A, path), &info);
    if (!c->fresh || begun)
        return;
    mixt__rows_close(&c->rows);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        mixt__folder_remove_file(c->folder, names[i]);
    rmdir(c->folder);
    rmdir("runs"); // stays where there is something in it
}
