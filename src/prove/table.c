/* From runs to rows: which runs are of one configuration, which of them are the FP32 side, and their means.
 *
 * Invariant: a row is of one configuration and one policy, and every run in it has a seed of its own; a run that is in
 * no row, and a row that has one side, have a note.
 */
#include "prove/table.h"

#include "base/status.h"
#include "prove/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_NAMED = 4, LABEL = 600 };

mixt_status mixt__table_note(mixt_table *t, const char *format, ...)
{
    char text[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *kept = mixt__arena_strdup(&t->arena, text);
    if (!kept || !mixt__grow((void **)&t->notes, &t->note_capacity, t->note_count, sizeof *t->notes))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a table");
    t->notes[t->note_count++] = kept;
    return MIXT_OK;
}

/* ---- what is of one configuration ---- */

bool mixt__table_key_free(mixt__config_key key, bool *policy)
{
    mixt__compare_relation relation = mixt__compare_relation_of(key);
    *policy = relation == MIXT_RELATION_POLICY;
    return *policy || relation == MIXT_RELATION_IGNORED;
}

/** Keys in which two configurations differ, but for precision and seed; the first KEYS_NAMED of them in `keys`. */
static int differences(const mixt_config *a, const mixt_config *b, mixt__config_key keys[KEYS_NAMED])
{
    int count = 0;
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        bool policy;
        if (mixt__table_key_free((mixt__config_key)key, &policy))
            continue;
        char *x = mixt__config_text(a, (mixt__config_key)key), *y = mixt__config_text(b, (mixt__config_key)key);
        bool same = x && y && !strcmp(x, y);
        if (!same && count < KEYS_NAMED)
            keys[count] = (mixt__config_key)key;
        count += !same;
        free(x);
        free(y);
    }
    return count;
}

static void find_groups(mixt_table *t)
{
    mixt__config_key keys[KEYS_NAMED];
    for (int64_t i = 0; i < t->run_count; i++) {
        mixt__table_run *run = &t->runs[i];
        run->group = i;
        for (int64_t j = 0; j < i && run->group == i; j++) {
            const mixt__table_run *other = &t->runs[j];
            bool first = other->group == j, same_name = !run->name || !other->name || !strcmp(run->name, other->name);
            bool one = run->alone && run->alone == other->alone; // an experiment is one, whatever differs
            if (first && same_name && run->alone == other->alone &&
                (one || !differences(run->config, other->config, keys)))
                run->group = j;
        }
    }
}

/* ---- names ---- */

static const char *plain_name(const mixt_table *t, int64_t group)
{
    for (int64_t i = group; i < t->run_count; i++)
        if (t->runs[i].group == group && t->runs[i].name)
            return t->runs[i].name;
    return mixt__config_string(t->runs[group].config, MIXT_KEY_MODEL);
}

/** Adds " key=value" of the keys that tell this group from others of the same name. */
static void tell_apart(const mixt_table *t, int64_t group, const char *name, char label[LABEL])
{
    bool wanted[MIXT_KEY_COUNT] = {false};
    mixt__config_key keys[KEYS_NAMED];
    for (int64_t other = 0; other < t->run_count; other++) {
        if (t->runs[other].group != other || other == group || strcmp(plain_name(t, other), name))
            continue;
        int count = differences(t->runs[group].config, t->runs[other].config, keys);
        for (int i = 0; i < count && i < KEYS_NAMED; i++)
            wanted[keys[i]] = true;
    }
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        char *value = wanted[key] ? mixt__config_text(t->runs[group].config, (mixt__config_key)key) : NULL;
        size_t used = strlen(label);
        if (value)
            snprintf(label + used, LABEL - used, " %s=%s", mixt__config_table[key].name, value);
        free(value);
    }
}

static const char *label_of(mixt_table *t, int64_t group)
{
    char label[LABEL];
    const char *name = plain_name(t, group);
    snprintf(label, sizeof label, "%.200s", name);
    tell_apart(t, group, name, label);
    return mixt__arena_strdup(&t->arena, label);
}

/* ---- rows ---- */

static mixt_status add_row(mixt_table *t, int64_t group)
{
    if (!mixt__grow((void **)&t->rows, &t->row_capacity, t->row_count, sizeof *t->rows))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a table");
    t->rows[t->row_count] = (mixt__table_row){.group = group, .shown.model = label_of(t, group)};
    return t->rows[t->row_count++].shown.model ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a table");
}

/** The first run of a side in a group; NULL: none. */
static const mixt__table_run *first_of(const mixt_table *t, int64_t group, mixt_table_side side)
{
    for (int64_t i = group; i < t->run_count; i++)
        if (t->runs[i].group == group && t->runs[i].side == side)
            return &t->runs[i];
    return NULL;
}

/** Whether an earlier run is the same in all that counts, the seed included. */
static const mixt__table_run *repeated(const mixt_table *t, int64_t index)
{
    const mixt__table_run *run = &t->runs[index];
    for (int64_t i = run->group; i < index; i++) {
        const mixt__table_run *other = &t->runs[i];
        if (other->group == run->group && other->side == run->side && other->seed == run->seed &&
            !strcmp(other->policy, run->policy))
            return other;
    }
    return NULL;
}

/** The row of a mixed run: that of the first one with its policy. */
static mixt_status place_mixed(mixt_table *t, int64_t index)
{
    mixt__table_run *run = &t->runs[index];
    run->counts = true;
    for (int64_t i = run->group; i < index; i++)
        if (t->runs[i].group == run->group && t->runs[i].side == run->side && !strcmp(t->runs[i].policy, run->policy)) {
            run->row = t->runs[i].row;
            return MIXT_OK;
        }
    MIXT_TRY(add_row(t, run->group));
    run->row = t->row_count - 1;
    return MIXT_OK;
}

/** FP32 runs go beside every mixed policy of their group. */
static mixt_status place_fp32(mixt_table *t, int64_t index)
{
    mixt__table_run *run = &t->runs[index];
    const mixt__table_run *first = first_of(t, run->group, MIXT_TABLE_FP32);
    if (strcmp(first->policy, run->policy))
        return mixt__table_note(t, "%s: left out: an FP32 run with other settings of precision than %s", run->folder,
                                first->folder);
    run->counts = true;
    return MIXT_OK;
}

/** "train.lr (0.1, there 0.01)" of the run of the other side that differs least; "" where there is none. */
static void tell_nearest(const mixt_table *t, const mixt__table_run *run, char text[LABEL])
{
    mixt__config_key keys[KEYS_NAMED], best_keys[KEYS_NAMED];
    const mixt__table_run *best = NULL;
    int fewest = MIXT_KEY_COUNT + 1;
    for (int64_t i = 0; i < t->run_count; i++) {
        const mixt__table_run *other = &t->runs[i];
        if (other->side == run->side || other->alone || strcmp(plain_name(t, run->group), plain_name(t, other->group)))
            continue;
        int count = differences(run->config, other->config, keys);
        if (count && count < fewest) {
            fewest = count;
            best = other;
            memcpy(best_keys, keys, sizeof keys);
        }
    }
    text[0] = '\0';
    if (!best)
        return;
    snprintf(text, LABEL, "; the nearest, %.150s, has another", best->folder);
    for (int i = 0; i < fewest && i < KEYS_NAMED; i++) {
        char *here = mixt__config_text(run->config, best_keys[i]),
             *there = mixt__config_text(best->config, best_keys[i]);
        size_t used = strlen(text);
        snprintf(text + used, LABEL - used, "%s %s (%.60s, here %.60s)", i ? "," : "",
                 mixt__config_table[best_keys[i]].name, there ? there : "", here ? here : "");
        free(here);
        free(there);
    }
}

static mixt_status note_single(mixt_table *t, int64_t group, mixt_table_side side)
{
    char nearest[LABEL];
    const mixt__table_run *run = first_of(t, group, side);
    tell_nearest(t, run, nearest);
    return mixt__table_note(t, "%s (%s): there is no %s run of the same configuration%s", run->folder, run->precision,
                            side == MIXT_TABLE_FP32 ? "mixed" : "FP32", nearest);
}

static mixt_status place_runs(mixt_table *t)
{
    for (int64_t i = 0; i < t->run_count; i++) {
        mixt__table_run *run = &t->runs[i];
        const mixt__table_run *before = repeated(t, i);
        if (before)
            MIXT_TRY(
                mixt__table_note(t, "%s: left out: the same precision and seed as %s", run->folder, before->folder));
        else
            MIXT_TRY(run->side == MIXT_TABLE_FP32 ? place_fp32(t, i) : place_mixed(t, i));
        if (run->group != i)
            continue;
        bool fp32 = first_of(t, i, MIXT_TABLE_FP32), mixed = first_of(t, i, MIXT_TABLE_MIXED);
        if (!mixed)
            MIXT_TRY(add_row(t, i));
        if (!fp32 || !mixed)
            MIXT_TRY(note_single(t, i, fp32 ? MIXT_TABLE_FP32 : MIXT_TABLE_MIXED));
    }
    return MIXT_OK;
}

/* ---- figures ---- */

static mixt_table_mean mean_of(const double *values, int64_t count)
{
    mixt_stats_summary s = mixt_stats_summarise(values, count);
    return (mixt_table_mean){count ? s.mean : (double)NAN, mixt_stats_t_interval(&s, 0.95)};
}

/** @param runs `count` of them, of one side of a row; @param room for as many numbers */
static void fill_cell(mixt_table_cell *cell, const mixt__table_run *const *runs, int64_t count, double *room)
{
    int64_t good = 0;
    *cell = (mixt_table_cell){.precision = count ? runs[0]->precision : "", .runs = count, .samples_s = NAN};
    cell->memory = (mixt_table_memory){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    for (int64_t i = 0; i < count; i++) {
        room[i] = runs[i]->samples_s;
        cell->diverged += runs[i]->diverged;
        if (isnan(cell->memory.weights) && !isnan(runs[i]->memory.total)) // with its roles, where one run has them
            cell->memory =
                !isnan(runs[i]->memory.weights) || isnan(cell->memory.total) ? runs[i]->memory : cell->memory;
    }
    if (count)
        cell->samples_s = mean_of(room, count).mean;
    for (int64_t i = 0; i < count; i++)
        if (!runs[i]->diverged)
            room[good++] = runs[i]->loss;
    cell->loss = mean_of(room, good);
    good = 0;
    for (int64_t i = 0; i < count; i++)
        if (!runs[i]->diverged)
            room[good++] = runs[i]->accuracy;
    cell->accuracy = mean_of(room, good);
}

/** @param chosen, @param room for as many as there are runs */
static void fill_row(const mixt_table *t, mixt__table_row *row, const mixt__table_run **chosen, double *room)
{
    mixt_table_row *shown = &row->shown;
    for (int side = 0; side < MIXT_TABLE_SIDES; side++) {
        int64_t count = 0;
        for (int64_t i = row->group; i < t->run_count; i++) {
            const mixt__table_run *run = &t->runs[i];
            bool here = side == MIXT_TABLE_FP32 || &t->rows[run->row] == row;
            if (run->group == row->group && (int)run->side == side && run->counts && here)
                chosen[count++] = run;
        }
        fill_cell(&shown->sides[side], chosen, count, room);
    }
    const mixt_table_cell *fp32 = &shown->sides[MIXT_TABLE_FP32], *mixed = &shown->sides[MIXT_TABLE_MIXED];
    shown->speedup = mixed->samples_s / fp32->samples_s;
    shown->saved = 1 - mixed->memory.total / fp32->memory.total;
}

static mixt_status fill_rows(mixt_table *t)
{
    const mixt__table_run **chosen = mixt__alloc((size_t)t->run_count * sizeof *chosen);
    double *room = mixt__alloc((size_t)t->run_count * sizeof *room);
    bool good = chosen && room;
    for (int64_t i = 0; good && i < t->row_count; i++)
        fill_row(t, &t->rows[i], chosen, room);
    mixt__free(chosen);
    mixt__free(room);
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a table");
}

/* ---- the table ---- */

void mixt__table_drop(mixt_table *t, int64_t count)
{
    while (t->run_count > count)
        mixt_config_free(t->runs[--t->run_count].config);
}

/** Adds a source, or notes why it is left out; fails where nothing is there, for then the name is wrong. */
static mixt_status read_one(mixt_table *t, const char *path)
{
    mixt__table_run source;
    int64_t before = t->run_count;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__table_find_source(t, path, &source));
    mixt_status status = mixt__table_read_source(t, source);
    if (status == MIXT_OK || status == MIXT_ERROR_MEMORY)
        return status;
    mixt__table_drop(t, before);
    return mixt__table_note(t, "left out: %s", mixt_error_text());
}

static mixt_status read_all(mixt_table *t, const char *const *paths, int64_t count)
{
    if (count < 1 || count > MIXT_TABLE_SOURCES_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld sources: expected 1 to %d", (long long)count,
                          MIXT_TABLE_SOURCES_MAX);
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY(read_one(t, paths[i]));
    if (!t->run_count)
        return mixt__fail(MIXT_ERROR_DATA, "no row can be made: %s", t->notes[0]);
    find_groups(t);
    MIXT_TRY(place_runs(t));
    return fill_rows(t);
}

mixt_status mixt_table_read(const char *const *paths, int64_t count, mixt_table **table)
{
    MIXT_TRY(mixt__need(table));
    *table = NULL;
    MIXT_TRY(mixt__need(paths));
    mixt_table *t = mixt__alloc(sizeof *t);
    if (!t)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a table");
    mixt__handle_add(&t->handle, t, "table", NULL);
    mixt_status status = read_all(t, paths, count);
    if (status == MIXT_OK)
        *table = t;
    else
        mixt_table_free(t);
    return status;
}

void mixt_table_free(mixt_table *t)
{
    if (!t || mixt__need_open(t, "table") != MIXT_OK)
        return;
    mixt__handle_remove(t);
    mixt__table_drop(t, 0);
    mixt__free(t->runs);
    mixt__free(t->rows);
    mixt__free(t->notes);
    mixt__arena_free(&t->arena);
    free(t->text);
    mixt__free(t);
}

const mixt_table_row *mixt_table_row_at(const mixt_table *t, int64_t index)
{
    if (mixt__need_open(t, "table") != MIXT_OK)
        return NULL;
    return index >= 0 && index < t->row_count ? &t->rows[index].shown : NULL;
}

const char *mixt_table_note(const mixt_table *t, int64_t index)
{
    if (mixt__need_open(t, "table") != MIXT_OK)
        return NULL;
    return index >= 0 && index < t->note_count ? t->notes[index] : NULL;
}
