/* What a search has on disk: a folder beside the policy's file, FILE.search, with
 *
 *   candidates.jsonl  only ever appended to, a row a write: first what was asked for, then every policy tried with its
 *                     figures so far (a later row of the same policy counts) and what was settled once for all
 *   config.yaml       the configuration that all this holds for
 *   front.json, .svg  the Pareto front so far
 *
 * A process that is killed leaves at most one row cut short at the end, which the next one drops. The folder is locked
 * while a search is at work in it; the lock ends with the process.
 */
#include "choose/search.h"

#include "base/files.h"
#include "base/status.h"
#include "store/checksum.h"
#include "store/file.h"
#include "store/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char rows_file[] = "candidates.jsonl", config_file[] = "config.yaml";
static const char *const files[] = {rows_file, config_file, "front.json", "front.svg"};

enum { PATH_SIZE = 4400 };

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a search");
}

const char *mixt__search_state_file(const mixt__search_state *state, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", state->folder, name);
    return path;
}

/* ---- rows ---- */

/** One write: a row is whole or, where the process is killed or the disk full, cut short and dropped later. */
static mixt_status append(const mixt__search_state *state, json_t *row)
{
    char *text = row ? mixt__json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(17) | JSON_PRESERVE_ORDER) : NULL;
    size_t length = text ? strlen(text) : 0;
    char *line = text ? realloc(text, length + 2) : NULL;
    json_decref(row);
    if (!line) {
        free(text);
        return no_memory();
    }
    memcpy(line + length, "\n", 2);
    off_t end = lseek(state->rows, 0, SEEK_END);
    bool good = mixt__file_write_some(state->rows, line, length + 1, -1) == (ssize_t)(length + 1);
    int reason = errno;
    if (good)
        (void)fdatasync(state->rows); // best effort, against a power cut
    else if (end >= 0)
        (void)!ftruncate(state->rows, end);
    free(line);
    return good ? MIXT_OK
                : mixt__fail(MIXT_ERROR_FILE, "%s/%s: cannot be written: %s", state->folder, rows_file,
                             strerror(reason));
}

static mixt__search_try *lookup(const mixt__search_state *state, const char *levels)
{
    for (int64_t i = 0; i < state->count; i++)
        if (!strcmp(state->tries[i]->levels, levels))
            return state->tries[i];
    return NULL;
}

mixt__search_try *mixt__search_state_find(mixt__search_state *state, const char *levels)
{
    mixt__search_try *t = lookup(state, levels);
    if (t)
        return t;
    t = mixt__alloc(sizeof *t);
    if (!t || !mixt__grow((void **)&state->tries, &state->capacity, state->count, sizeof(mixt__search_try *))) {
        mixt__free(t);
        return NULL;
    }
    t->ms = NAN;
    t->levels = mixt__strdup(levels);
    if (!t->levels) {
        mixt__free(t);
        return NULL;
    }
    state->tries[state->count++] = t;
    return t;
}

static json_t *losses_json(const mixt__search_losses *losses)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < losses->count; i++)
        mixt__json_add(list, isfinite(losses->at[i]) ? json_real(losses->at[i]) : json_null());
    return list;
}

/** What the final word rests on. */
static void add_fresh(json_t *row, const mixt__search_try *t)
{
    json_t *looks = json_array();
    for (int i = 0; i < t->look_count; i++)
        mixt__json_add(looks, json_integer(t->looks[i]));
    mixt__json_set(row, "finalist", json_integer(t->finalist));
    mixt__json_set(row, "looks", looks);
    mixt__json_set(row, "fresh", losses_json(&t->losses[MIXT_SEARCH_FRESH]));
    mixt__json_set(row, "fresh_fp32", losses_json(&t->fp32));
}

mixt_status mixt__search_state_save(const mixt__search_state *state, const mixt__search_try *t, json_t *derived)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:I}", "candidate", t->levels, "policy", t->line, "config", state->config,
                            "memory", (json_int_t)t->memory);
    mixt__json_set(row, "ms", isnan(t->ms) ? json_null() : json_real(t->ms));
    mixt__json_set(row, "losses", losses_json(&t->losses[MIXT_SEARCH_SEEN]));
    if (t->finalist)
        add_fresh(row, t);
    mixt__json_merge(row, derived);
    json_decref(derived);
    return append(state, row);
}

static void read_losses(mixt__search_losses *losses, const json_t *list)
{
    losses->count = 0;
    for (size_t i = 0; i < json_array_size(list) && i < MIXT_SEARCH_TRIALS_ALL; i++) {
        const json_t *loss = json_array_get(list, i);
        losses->at[losses->count++] = json_is_number(loss) ? json_number_value(loss) : (double)INFINITY;
    }
}

/** What the final word rests on; figures that nobody can have written are not believed. */
static void read_fresh(mixt__search_try *t, const json_t *row)
{
    const json_t *looks = json_object_get(row, "looks");
    int64_t before = 0, finalist = json_integer_value(json_object_get(row, "finalist"));
    t->look_count = 0;
    t->finalist = 0;
    t->fp32.count = t->losses[MIXT_SEARCH_FRESH].count = 0;
    for (size_t i = 0; i < json_array_size(looks) && i < MIXT_SEARCH_LOOKS_MAX; i++) {
        int64_t pairs = json_integer_value(json_array_get(looks, i));
        if (pairs <= before || pairs > MIXT_SEARCH_TRIALS_ALL)
            break;
        t->looks[t->look_count++] = before = pairs;
    }
    if (!t->look_count || finalist < 1 || finalist > MIXT_SEARCH_FINALISTS_MAX)
        return;
    t->finalist = finalist;
    read_losses(&t->losses[MIXT_SEARCH_FRESH], json_object_get(row, "fresh"));
    read_losses(&t->fp32, json_object_get(row, "fresh_fp32"));
    for (int64_t i = 0; i < t->fp32.count; i++)
        if (!(isfinite(t->fp32.at[i]) && t->fp32.at[i] > 0))
            t->fp32.count = i;
    if (t->losses[MIXT_SEARCH_FRESH].count > t->fp32.count)
        t->losses[MIXT_SEARCH_FRESH].count = t->fp32.count;
    if (t->fp32.count > t->losses[MIXT_SEARCH_FRESH].count + 1)
        t->fp32.count = t->losses[MIXT_SEARCH_FRESH].count + 1;
}

/** Takes in one row; what it does not know it passes over. @param groups letters that a policy has */
static mixt_status read_row(mixt__search_state *state, const json_t *row, size_t groups)
{
    const char *levels = json_string_value(json_object_get(row, "candidate"));
    const char *fact = json_string_value(json_object_get(row, "fact"));
    if (fact)
        mixt__json_set(state->facts, fact, json_incref(json_object_get(row, "value")));
    bool known = levels && strlen(levels) == groups;
    for (size_t i = 0; known && i < groups; i++)
        known = mixt__search_level_of(levels[i]) != NULL;
    if (!known)
        return MIXT_OK;
    mixt__search_try *t = mixt__search_state_find(state, levels);
    if (!t)
        return no_memory();
    const json_t *ms = json_object_get(row, "ms");
    t->ms = json_is_number(ms) ? json_number_value(ms) : (double)NAN;
    t->memory = json_integer_value(json_object_get(row, "memory"));
    read_losses(&t->losses[MIXT_SEARCH_SEEN], json_object_get(row, "losses"));
    read_fresh(t, row);
    return MIXT_OK;
}

const json_t *mixt__search_state_fact(const mixt__search_state *state, const char *name)
{
    return json_object_get(state->facts, name);
}

mixt_status mixt__search_state_settle(mixt__search_state *state, const char *name, json_t *value)
{
    if (!value || mixt__json_set(state->facts, name, json_incref(value)))
        return no_memory();
    return append(state, json_pack("{s:s, s:o}", "fact", name, "value", value));
}

/* ---- going on ---- */

/** "train.lr is 0.1, was 0.2" for the first keys that differ; "" for none. */
static void find_config_changes(const mixt_config *before, const mixt_config *now, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        char *values[2] = {mixt__config_text(before, (mixt__config_key)key),
                           mixt__config_text(now, (mixt__config_key)key)};
        if (values[0] && values[1] && strcmp(values[0], values[1]) && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s is %s, was %s", used ? "; " : "",
                                     mixt__config_table[key].name, values[1], values[0]);
        free(values[0]);
        free(values[1]);
    }
}

/** The same for what the search was asked for. */
static void find_header_changes(const json_t *before, const json_t *now, char *text, size_t size)
{
    const char *key;
    json_t *value;
    size_t used = 0;
    text[0] = '\0';
    json_object_foreach((json_t *)(uintptr_t)now, key, value)
    {
        const json_t *old = json_object_get(before, key);
        if (json_equal(old, value) || used >= size)
            continue;
        char *is = mixt__json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
        char *was = old ? mixt__json_dumps(old, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
        used += (size_t)snprintf(text + used, size - used, "%s%s is %.80s, was %.80s", used ? "; " : "", key,
                                 is ? is : "?", was ? was : "not there");
        free(is);
        free(was);
    }
}

static mixt_status refuse(const mixt__search_state *state, const char *changes)
{
    return mixt__fail(MIXT_ERROR_STATE,
                      "%s: there is another search: %s; use its settings to continue it, write to another file, or "
                      "start again with --fresh",
                      state->folder, changes);
}

static mixt_status check_config(const mixt__search_state *state, const mixt_config *config)
{
    char path[PATH_SIZE], changes[600];
    mixt_config *before;
    MIXT_TRY(mixt_config_new(&before));
    mixt_status status = mixt_config_load(before, mixt__search_state_file(state, config_file, path, sizeof path));
    if (status == MIXT_OK) {
        find_config_changes(before, config, changes, sizeof changes);
        status = *changes ? refuse(state, changes) : MIXT_OK;
    }
    mixt_config_free(before);
    return status;
}

static mixt_status cannot_read(const mixt__search_state *state)
{
    char path[PATH_SIZE];
    return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s",
                      mixt__search_state_file(state, rows_file, path, sizeof path), strerror(errno));
}

/** The rows as they are, cut behind the last whole one, as text for free(). */
static mixt_status read_rows(const mixt__search_state *state, char **rows)
{
    struct stat info;
    off_t length = 0;
    *rows = NULL;
    if (fstat(state->rows, &info))
        return cannot_read(state);
    char *text = malloc((size_t)info.st_size + 1);
    if (!text)
        return no_memory();
    while (length < info.st_size) { // all of it, before something is cut off
        ssize_t got = pread(state->rows, text + length, (size_t)(info.st_size - length), length);
        if (got <= 0 && (!got || errno != EINTR)) {
            free(text);
            return cannot_read(state);
        }
        length += got > 0 ? got : 0;
    }
    text[length] = '\0';
    char *last = strrchr(text, '\n'); // a byte 0 in a damaged file ends it there: later rows are measured again
    off_t whole = last ? last + 1 - text : 0;
    text[whole] = '\0';
    if (whole < info.st_size && ftruncate(state->rows, whole)) {
        free(text);
        return cannot_read(state);
    }
    *rows = text;
    return MIXT_OK;
}

/** Takes in what an earlier search has left; *found says whether there was one. */
static mixt_status go_on(mixt__search_state *state, const json_t *header, const mixt_config *config, bool *found)
{
    char *text, changes[600], *rest = NULL;
    size_t groups = json_array_size(json_object_get(header, "groups"));
    *found = false;
    mixt_status status = read_rows(state, &text);
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && status == MIXT_OK;
         line = strtok_r(NULL, "\n", &rest)) {
        json_t *row; // a damaged one is passed over: it is measured again
        MIXT_TRY_CLEANUP(mixt__json_row(line, &row));
        const json_t *before = json_object_get(row, "search");
        if (before && !*found) {
            *found = true;
            status = check_config(state, config);
            find_header_changes(before, header, changes, sizeof changes);
            if (status == MIXT_OK && *changes)
                status = refuse(state, changes);
        } else if (*found) {
            status = read_row(state, row, groups);
        }
        json_decref(row);
    }
cleanup:
    free(text);
    return status;
}

/* ---- opening ---- */

/** Whether a search made the policy in a file. */
static bool made_by_search(const char *path)
{
    mixt_policy *policy;
    bool mine = mixt_policy_load(path, &policy) == MIXT_OK && !strcmp(mixt_policy_made_by(policy), MIXT_SEARCH_MADE_BY);
    mixt_policy_free(policy);
    return mine;
}

/** A file that someone else made is not replaced, nor the policy of a search whose folder is gone. */
static mixt_status check_file(const mixt__search_state *state, bool fresh)
{
    struct stat info;
    char path[PATH_SIZE];
    mixt__file_writer writer;
    MIXT_TRY(mixt__file_writer_open(&writer, state->path, true)); // says what is wrong with the place
    mixt__file_writer_abandon(&writer);
    if (fresh || stat(state->path, &info))
        return MIXT_OK;
    if (!made_by_search(state->path))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: exists already and is not of a search: choose another file, or replace it with --fresh",
                          state->path);
    if (stat(mixt__search_state_file(state, rows_file, path, sizeof path), &info))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: is the result of a search whose folder %s is missing: choose another file, or start "
                          "again with --fresh",
                          state->path, state->folder);
    return MIXT_OK;
}

static mixt_status make_folder(mixt__search_state *state)
{
    if (mkdir(state->folder, 0777) && errno != EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", state->folder, strerror(errno));
    state->lock = mixt__folder_open(AT_FDCWD, state->folder);
    if (state->lock < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", state->folder, mixt__file_problem(errno));
    if (flock(state->lock, LOCK_EX | LOCK_NB))
        return mixt__fail(MIXT_ERROR_STATE, "%s: another search is running there: wait for it or stop it",
                          state->folder);
    return MIXT_OK;
}

/** Checksum of all keys: what every row holds for. */
static mixt_status sum_config(mixt__search_state *state, const mixt_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return no_memory();
    mixt_status status = mixt__config_print(config, stream, false);
    if (fclose(stream) && status == MIXT_OK)
        status = no_memory();
    if (status == MIXT_OK)
        snprintf(state->config, sizeof state->config, "%016llx", (unsigned long long)mixt__checksum(text, size));
    free(text);
    return status;
}

static mixt_status begin(mixt__search_state *state, const json_t *header, const mixt_config *config)
{
    char path[PATH_SIZE];
    if (ftruncate(state->rows, 0))
        return mixt__fail(MIXT_ERROR_FILE, "%s/%s: cannot be written: %s", state->folder, rows_file, strerror(errno));
    MIXT_TRY(mixt_config_write(config, mixt__search_state_file(state, config_file, path, sizeof path)));
    return append(state, json_pack("{s:O, s:s}", "search", header, "config", state->config));
}

static mixt_status open_folder(mixt__search_state *state, const mixt_config *config, const json_t *header, bool fresh)
{
    char path[PATH_SIZE];
    bool found = false;
    MIXT_TRY(check_file(state, fresh));
    MIXT_TRY(sum_config(state, config));
    MIXT_TRY(make_folder(state));
    for (size_t i = 0; fresh && i < sizeof files / sizeof files[0]; i++)
        mixt__folder_remove_file(state->folder, files[i]);
    mixt__search_state_file(state, rows_file, path, sizeof path);
    state->rows = mixt__file_open_write(path, O_RDWR | O_CREAT | O_APPEND);
    if (state->rows < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", path, mixt__file_problem(errno));
    MIXT_TRY(go_on(state, header, config, &found));
    return found ? MIXT_OK : begin(state, header, config);
}

mixt_status mixt__search_state_open(mixt__search_state *state, const char *path, const mixt_config *config,
                                    const json_t *header, bool fresh)
{
    char folder[PATH_SIZE];
    *state = (mixt__search_state){.lock = -1, .rows = -1};
    if (snprintf(folder, sizeof folder, "%s.search", path) > (int)sizeof folder - 64)
        return mixt__fail(MIXT_ERROR_FILE, "the name of the policy's file is too long: %.80s…", path);
    state->path = mixt__strdup(path);
    state->folder = mixt__strdup(folder);
    state->facts = json_object();
    if (!state->path || !state->folder || !state->facts)
        return no_memory();
    return open_folder(state, config, header, fresh);
}

void mixt__search_state_close(mixt__search_state *state)
{
    for (int64_t i = 0; i < state->count; i++) {
        mixt__free(state->tries[i]->levels);
        mixt__free(state->tries[i]->line);
        mixt__free(state->tries[i]);
    }
    mixt__free(state->tries);
    json_decref(state->facts);
    if (state->path && state->rows >= 0)
        close(state->rows);
    if (state->path && state->lock >= 0)
        close(state->lock);
    mixt__free(state->path);
    mixt__free(state->folder);
    *state = (mixt__search_state){.lock = -1, .rows = -1};
}

mixt_status mixt__search_state_write(const mixt__search_state *state, const char *name, const char *text)
{
    char path[PATH_SIZE];
    return mixt__file_put(mixt__search_state_file(state, name, path, sizeof path), text, strlen(text), true);
}
