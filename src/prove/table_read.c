/* Sources of a table: a run directory, a file of verify, the folder of an experiment. Each becomes one or more runs;
 * what a source does not say is NaN.
 */
#include "prove/table.h"

#include "base/files.h"
#include "base/status.h"
#include "mixt/run.h"
#include "prove/compare.h"
#include "prove/prove.h"
#include "store/file.h"
#include "store/json.h"
#include "store/json_rows.h"
#include "verify/verify.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_MAX_BYTES = 4096, POLICY_MAX_BYTES = 1 << 16 };

static const mixt_table_memory unknown = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a table");
}

/** Takes over the configuration, also where it fails. */
static mixt_status add_run(mixt_table *t, mixt__table_run run)
{
    if (!mixt__grow((void **)&t->runs, &t->run_capacity, t->run_count, sizeof *t->runs)) {
        mixt_config_free(run.config);
        return no_memory();
    }
    t->runs[t->run_count++] = run;
    return MIXT_OK;
}

/* ---- precision ---- */

/** What a policy file says; NULL where it cannot be read. */
static const char *file_text(mixt_table *t, const char *path)
{
    FILE *file = mixt__file_open_stream(path);
    char *text = file ? mixt__arena_alloc(&t->arena, POLICY_MAX_BYTES) : NULL;
    if (text)
        text[fread(text, 1, POLICY_MAX_BYTES - 1, file)] = '\0';
    if (file)
        fclose(file);
    return text;
}

/** The name to show, and a text that is the same for runs of the same policy alone. */
static mixt_status find_policy(mixt_table *t, mixt__table_run *run)
{
    char name[200];
    const char *precision = mixt__config_string(run->config, MIXT_KEY_PRECISION);
    const char *content = strchr(precision, '/') ? file_text(t, precision) : NULL;
    run->precision = mixt__arena_strdup(&t->arena, mixt__prove_precision(precision, name, sizeof name));
    const char *all = content ? content : precision;
    for (int key = 0; all && key < MIXT_KEY_COUNT; key++) {
        bool policy;
        (void)mixt__table_key_free((mixt__config_key)key, &policy);
        char *value =
            policy && key != MIXT_KEY_PRECISION ? mixt__config_text(run->config, (mixt__config_key)key) : NULL;
        if (value)
            all = mixt__arena_printf(&t->arena, "%s\n%s=%s", all, mixt__config_table[key].name, value);
        free(value);
    }
    run->policy = all;
    run->side = strcmp(precision, "fp32") ? MIXT_TABLE_MIXED : MIXT_TABLE_FP32;
    run->seed = mixt__config_int(run->config, MIXT_KEY_SEED);
    return run->precision && run->policy ? MIXT_OK : no_memory();
}

/* ---- memory ---- */

/** Bytes by role of a row, or of a file of verify. */
static mixt_table_memory read_memory(const json_t *roles)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
#define FIELD(name, role) {name, offsetof(mixt_table_memory, role)}
        FIELD("masters", weights),     FIELD("copies", weights),  FIELD("state", weights),
        FIELD("gradients", gradients), FIELD("moments", moments), FIELD("activations", activations),
        FIELD("workspace", workspace), FIELD("batches", other),   FIELD("control", other),
#undef FIELD
    };
    mixt_table_memory m = {0};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const json_t *value = json_object_get(roles, fields[i].name);
        double bytes = json_is_number(value) ? json_number_value(value) : (double)NAN;
        *(double *)(void *)((char *)&m + fields[i].offset) += bytes;
        m.total += bytes;
    }
    return m;
}

static mixt_status take_memory(void *user, const char *text, int64_t line)
{
    mixt_table_memory *most = user;
    json_t *row;
    (void)line;
    if (!strstr(text, "\"memory_by_role\""))
        return MIXT_OK;
    MIXT_TRY(mixt__json_row(text, &row));
    mixt_table_memory m = row ? read_memory(json_object_get(row, "memory_by_role")) : unknown;
    if (!(m.total <= most->total) && !isnan(m.total))
        *most = m;
    json_decref(row);
    return MIXT_OK;
}

/** That of the plan that took most; of a run of an older version the total alone. */
static mixt_status run_memory(const char *folder, double total, mixt_table_memory *most)
{
    char path[PATH_MAX_BYTES];
    *most = unknown;
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    MIXT_TRY(mixt__json_lines_read(path, take_memory, most));
    if (isnan(most->total))
        most->total = total;
    return MIXT_OK;
}

/* ---- a run ---- */

static mixt_status read_run(mixt_table *t, mixt__table_run run)
{
    mixt_compare_run figures = {0};
    MIXT_TRY(mixt_run_folder_config(run.folder, &run.config));
    int64_t samples =
        mixt__config_int(run.config, MIXT_KEY_TRAIN_BATCH) * mixt__config_int(run.config, MIXT_KEY_TRAIN_ACCUMULATE);
    mixt_status status = mixt__compare_measure(run.folder, samples, &figures);
    if (status == MIXT_OK)
        status = find_policy(t, &run);
    if (status == MIXT_OK)
        status = run_memory(run.folder, figures.memory, &run.memory);
    if (status != MIXT_OK) {
        mixt_config_free(run.config);
        return status;
    }
    run.diverged = !isfinite(figures.loss);
    run.samples_s = figures.samples_s;
    run.loss = figures.loss;
    run.accuracy = figures.accuracy;
    return add_run(t, run);
}

/* ---- an experiment ---- */

/** Both runs of a pair, or neither. A is the side that is trusted, whatever its precision. */
static mixt_status read_pair(mixt_table *t, mixt__table_run like, int pair)
{
    int64_t before = t->run_count;
    for (int side = 0; side < MIXT_TABLE_SIDES; side++) {
        like.folder = mixt__arena_printf(&t->arena, "%s/pair-%04d-%c", like.source, pair, side ? 'b' : 'a');
        mixt_status status = like.folder ? read_run(t, like) : no_memory();
        if (status != MIXT_OK) {
            mixt__table_drop(t, before);
            return status;
        }
        t->runs[t->run_count - 1].side = (mixt_table_side)side;
    }
    return MIXT_OK;
}

/** Which sides of a pair are done, by the rows of an experiment. */
static mixt_status take_done(void *user, const char *text, int64_t line)
{
    unsigned char *done = user; // (MIXT_COMPARE_PAIRS_MAX + 1)
    json_t *row;
    (void)line;
    MIXT_TRY(mixt__json_row(text, &row));
    json_int_t pair = json_integer_value(json_object_get(row, "pair"));
    const char *side = json_string_value(json_object_get(row, "side"));
    if (pair > 0 && pair <= MIXT_COMPARE_PAIRS_MAX && side)
        done[pair] = (unsigned char)(done[pair] | (*side == 'b' ? 2 : 1));
    json_decref(row);
    return MIXT_OK;
}

/** The pairs that are done and whose runs can be read. */
static mixt_status read_experiment(mixt_table *t, mixt__table_run like, const char *rows)
{
    unsigned char done[MIXT_COMPARE_PAIRS_MAX + 1] = {0};
    MIXT_TRY(mixt__json_lines_read(rows, take_done, done));
    int64_t before = t->run_count;
    for (int pair = 1; pair <= MIXT_COMPARE_PAIRS_MAX; pair++) {
        mixt_status status = done[pair] == 3 ? read_pair(t, like, pair) : MIXT_OK;
        if (status == MIXT_ERROR_MEMORY)
            return status;
        if (status != MIXT_OK)
            MIXT_TRY(mixt__table_note(t, "left out, with the other run of its pair: %s", mixt_error_text()));
    }
    return t->run_count > before
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_DATA, "%s: no pair of this experiment is done and can be read", like.source);
}

/* ---- a file of verify ---- */

static double number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static mixt_status read_verified(mixt_table *t, mixt__table_run run, const json_t *facts, const char *yaml)
{
    const char *side = json_string_value(json_object_get(facts, "side"));
    bool fp32 = side && !strcmp(side, "fp32");
    MIXT_TRY(mixt_config_new(&run.config));
    mixt_status status = mixt_config_parse(run.config, yaml, run.source);
    if (status == MIXT_OK && fp32)
        status = mixt_config_set(run.config, "precision=fp32", "verify");
    if (status == MIXT_OK)
        status = find_policy(t, &run);
    if (status != MIXT_OK) {
        mixt_config_free(run.config);
        return status;
    }
    run.side = fp32 ? MIXT_TABLE_FP32 : MIXT_TABLE_MIXED;
    run.seed = json_integer_value(json_object_get(facts, "seed"));
    run.loss = number_of(facts, "loss");
    run.accuracy = number_of(facts, "accuracy");
    run.samples_s = number_of(facts, "samples_s");
    run.diverged = !isfinite(run.loss);
    run.memory = read_memory(json_object_get(facts, "memory"));
    return add_run(t, run);
}

static mixt_status read_verify(mixt_table *t, mixt__table_run like)
{
    mixt__file_map map;
    json_t *all = NULL, *facts;
    MIXT_TRY(mixt__file_map_open(like.source, &map));
    mixt_status status = mixt__json_parse(like.source, map.data, map.bytes, 0, &all); // what is no JSON is told below
    mixt__file_map_close(&map);
    if (status == MIXT_ERROR_MEMORY)
        return status;
    status = MIXT_OK;
    const char *kind = json_string_value(json_object_get(all, "kind")),
               *yaml = json_string_value(json_object_get(all, "config"));
    json_t *runs = json_object_get(all, "runs");
    size_t i;
    if (!kind || strcmp(kind, MIXT_VERIFY_KIND) || !yaml || !json_array_size(runs))
        status = mixt__fail(MIXT_ERROR_DATA,
                            "%s: is not a file of 'mixt verify --out': a table takes those, run directories and "
                            "folders of 'mixt compare'",
                            like.source);
    json_array_foreach(runs, i, facts) if (status == MIXT_OK) status = read_verified(t, like, facts, yaml);
    json_decref(all);
    return status;
}

/* ---- any of them ---- */

mixt_status mixt__table_find_source(mixt_table *t, const char *path, mixt__table_run *run)
{
    struct stat info;
    const char *equals = strchr(path, '=');
    *run = (mixt__table_run){.source = path};
    if (stat(path, &info) && equals && equals > path) {
        run->name = mixt__arena_printf(&t->arena, "%.*s", (int)(equals - path), path);
        run->source = equals + 1;
    }
    run->source = run->folder = mixt__arena_strdup(&t->arena, run->source);
    if (!run->source)
        return no_memory();
    if (stat(run->source, &info))
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", run->source, strerror(errno));
    return MIXT_OK;
}

mixt_status mixt__table_read_source(mixt_table *t, mixt__table_run run)
{
    char rows[PATH_MAX_BYTES];
    struct stat info;
    if (!stat(run.source, &info) && !S_ISDIR(info.st_mode)) {
        run.alone = t->run_count + 1;
        return read_verify(t, run);
    }
    if (snprintf(rows, sizeof rows, "%s/compare.jsonl", run.source) >= (int)sizeof rows - 40)
        return mixt__fail(MIXT_ERROR_FILE, "%.80s…: is too long a path", run.source);
    if (!stat(rows, &info)) {
        run.alone = t->run_count + 1;
        return read_experiment(t, run, rows);
    }
    return read_run(t, run);
}
