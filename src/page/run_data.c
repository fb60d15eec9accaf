/* Gathering a run's files, forgivingly: a page is most wanted of runs that went wrong. */
#include "page/run_data.h"

#include "base/files.h"
#include "base/status.h"
#include "config/config.h"
#include "mixt/metrics.h"
#include "mixt/run.h"
#include "page/layers_data.h"
#include "store/file.h"
#include "store/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS_MAX = 10000, PREDICTIONS_MAX = 1 << 20 }; // rows, bytes

static void problem(json_t *about, const char *format, const char *detail)
{
    char text[1200];
    snprintf(text, sizeof text, format, detail);
    mixt__json_add(json_object_get(about, "problems"), mixt__json_string(text));
}

/** "training" while a process has the run's metrics open. */
static const char *state_of(const char *folder)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    int fd = mixt__file_open_read(path);
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB);
    if (fd >= 0)
        close(fd);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    return locked ? "training" : access(path, F_OK) ? "stopped" : "finished";
}

/** The settings that differ from their defaults, in the order of the table of keys. */
static mixt_status list_settings(const mixt_config *config, json_t *about)
{
    mixt_config *plain;
    json_t *list = json_array();
    mixt_status status = mixt_config_new(&plain);
    const mixt_config_record *key;
    for (int64_t i = 0; status == MIXT_OK && (key = mixt_config_key(i)); i++) {
        char *value = mixt__config_text(config, (mixt__config_key)i);
        char *fallback = mixt__config_text(plain, (mixt__config_key)i);
        if (!value || !fallback)
            status = MIXT_ERROR_MEMORY;
        else if (!key->test && strcmp(value, fallback))
            mixt__json_add(list, json_pack("[s, s]", key->name, value));
        free(value);
        free(fallback);
    }
    mixt_config_free(plain);
    mixt__json_set(about, "settings", list);
    return status;
}

static void read_config(const char *folder, json_t *about)
{
    mixt_config *config;
    mixt_status status = mixt_run_folder_config(folder, &config);
    if (status == MIXT_ERROR_MEMORY)
        mixt__json_set(about, "model", NULL); // it is incomplete
    if (status != MIXT_OK) {
        problem(about, "its configuration cannot be read: %s", mixt_error_text());
        return;
    }
    const char *precision = mixt__config_string(config, MIXT_KEY_PRECISION), *slash = strrchr(precision, '/');
    mixt__json_set_text(about, "model", mixt__config_string(config, MIXT_KEY_MODEL));
    mixt__json_set_text(about, "precision", slash ? slash + 1 : precision);
    const char *kind = mixt__config_string(config, MIXT_KEY_DATA_KIND);
    const char *path = mixt__config_string(config, MIXT_KEY_DATA_PATH);
    const char *labels = mixt__config_string(config, MIXT_KEY_DATA_LABELS);
    bool column = *labels && !strcmp(kind, "csv");
    mixt__json_set(
        about, "data",
        json_sprintf("%s%s%s%s%s", kind, *path ? ": " : "", path, column ? ", to predict " : "", column ? labels : ""));
    mixt__json_set(about, "language", json_boolean(!strcmp(kind, "text") || !strcmp(kind, "tokens")));
    if (list_settings(config, about) != MIXT_OK)
        mixt__json_set(about, "settings", NULL); // it is incomplete
    mixt_config_free(config);
}

/** What became of the run, by its figures and by whether it goes on. */
static void set_verdict(mixt__run_data *data)
{
    static const char *const moods[] = {[MIXT_OUTCOME_UNDECIDED] = "open",
                                        [MIXT_OUTCOME_LEARNED] = "good",
                                        [MIXT_OUTCOME_OVERFITTING] = "open",
                                        [MIXT_OUTCOME_DIVERGED] = "bad"};
    mixt_metrics_outcome outcome = mixt_metrics_judge(data->metrics);
    mixt__json_set_text(data->about, "verdict", outcome.text);
    mixt__json_set_text(data->about, "mood", moods[outcome.outcome]);
}

static mixt_status read_metrics(const char *folder, mixt__run_data *data)
{
    mixt_status status = mixt_metrics_read(folder, &data->metrics);
    if (status == MIXT_ERROR_MEMORY)
        return status;
    if (status != MIXT_OK) {
        problem(data->about, "no figures: %s", mixt_error_text());
        return MIXT_OK;
    }
    mixt_metrics_info info = mixt_metrics_describe(data->metrics);
    char text[1000];
    snprintf(text, sizeof text, "%lld %s of its metrics %s left out; %s", (long long)info.left_out,
             info.left_out == 1 ? "row" : "rows", info.left_out == 1 ? "is" : "are", info.problem);
    if (info.left_out)
        problem(data->about, "%s", text);
    set_verdict(data);
    return MIXT_OK;
}

/** A decision without trouble has an action in place of a cause. */
static const char *cause_of(const json_t *row)
{
    const char *cause = json_string_value(json_object_get(row, "cause"));
    return cause ? cause : json_string_value(json_object_get(row, "action"));
}

static bool is_event(const json_t *row)
{
    return json_is_integer(json_object_get(row, "step")) && cause_of(row) &&
           json_is_string(json_object_get(row, "kind")) && json_is_string(json_object_get(row, "severity"));
}

/** What the page shows of an event: its evidence is the text; of a decision also what became of what. */
static json_t *shorten(json_t *row)
{
    const char *from = json_string_value(json_object_get(row, "from")),
               *to = json_string_value(json_object_get(row, "to"));
    const char *action = json_string_value(json_object_get(row, "action"));
    const json_t *evidence = json_object_get(row, "evidence");
    const char *text = json_string_value(json_object_get(evidence, "text"));
    const char *key = json_string_value(json_object_get(evidence, "key"));
    json_t *told = !text ? NULL
                   : to  ? json_sprintf("%s %s%s%s: %s",
                                       key      ? key
                                        : action ? action
                                                 : "",
                                       from ? from : "", from ? " → " : "", to, text)
                         : mixt__json_string(text);
    if (text)
        mixt__json_set(row, "text", told);
    mixt__json_set_text(row, "cause", cause_of(row));
    json_object_del(row, "evidence");
    return row;
}

/** @param what the rows are of */
static void tell_damaged(json_t *about, const char *what, const mixt__page_damage *damage)
{
    char text[200];
    snprintf(text, sizeof text, "%lld rows of its %s are left out, the first in line %lld", (long long)damage->rows,
             what, (long long)damage->first);
    if (damage->rows)
        problem(about, "%s", text);
}

static bool take_event(void *events, json_t *row)
{
    if (!is_event(row))
        return false;
    mixt__json_add(events, shorten(row));
    if (json_array_size(events) > EVENTS_MAX)
        json_array_remove(events, 0);
    return true;
}

static mixt_status read_events(const char *folder, json_t *about)
{
    mixt__page_damage damage;
    MIXT_TRY(mixt__page_rows(folder, "events.jsonl", take_event, json_object_get(about, "events"), &damage));
    tell_damaged(about, "events", &damage);
    return MIXT_OK;
}

static mixt_status read_layers(const char *folder, mixt__run_data *data)
{
    mixt__page_damage damage;
    MIXT_TRY(mixt__page_layers(folder, &data->layers, &damage));
    tell_damaged(data->about, "layers", &damage);
    return MIXT_OK;
}

/** What the run left of its predictions, if anything; the page takes of it what it understands. */
static void read_predictions(const char *folder, json_t *about)
{
    char path[4400];
    mixt__file_map map;
    json_t *found = NULL;
    snprintf(path, sizeof path, "%s/predictions.json", folder);
    if (access(path, F_OK)) // not every run has them
        return;
    mixt_status status = mixt__file_map_open_own(path, &map);
    if (status == MIXT_OK) {
        if (map.bytes <= PREDICTIONS_MAX)
            status = mixt__json_parse(path, map.data, map.bytes, 0, &found);
        mixt__file_map_close(&map);
    }
    if (status != MIXT_OK)
        problem(about, "its predictions cannot be read: %s", mixt_error_text());
    else if (json_is_object(found))
        mixt__json_set(about, "predictions", json_incref(found));
    json_decref(found);
}

json_t *mixt__run_about(const char *folder)
{
    char name[4096];
    snprintf(name, sizeof name, "%s", folder);
    for (size_t end = strlen(name); end > 1 && name[end - 1] == '/'; end--)
        name[end - 1] = '\0';
    json_t *about = json_pack("{s:s, s:s, s:s, s:s, s:[], s:[]}", "name", name, "model", "–", "precision", "–", "state",
                              state_of(folder), "problems", "events");
    if (about)
        read_config(folder, about);
    if (about)
        read_predictions(folder, about);
    return about;
}

/** What cannot be read is shown; for want of memory nothing is. */
static mixt_status told(json_t *about, mixt_status status)
{
    if (status != MIXT_OK && status != MIXT_ERROR_MEMORY)
        problem(about, "%s", mixt_error_text());
    return status == MIXT_ERROR_MEMORY ? status : MIXT_OK;
}

/** JSON has no other text than UTF-8. */
static mixt_status check_name(const char *folder)
{
    json_t *name = mixt__json_string(folder); // where what is not becomes something else
    bool same = name && !strcmp(json_string_value(name), folder);
    mixt_status status = MIXT_OK;
    if (!name)
        status = mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for a page", folder);
    else if (!same)
        status = mixt__fail(MIXT_ERROR_DATA, "%s: the folder's name is not UTF-8", folder);
    json_decref(name);
    return status;
}

mixt_status mixt__run_data_read(const char *folder, mixt__run_data *data)
{
    struct stat info;
    *data = (mixt__run_data){0};
    int error = stat(folder, &info) ? errno : 0;
    if (error && error != ENOENT && error != ENOTDIR)
        return mixt__fail(MIXT_ERROR_FILE, "%s: %s", folder, strerror(error));
    if (error || !S_ISDIR(info.st_mode))
        return mixt__fail(MIXT_ERROR_FILE, "%s: no such folder: expected a run directory made by 'mixt train'", folder);
    MIXT_TRY(check_name(folder));
    data->about = mixt__run_about(folder);
    if (!data->about)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for a page", folder);
    mixt_status status = read_metrics(folder, data);
    if (status == MIXT_OK)
        status = told(data->about, read_events(folder, data->about));
    if (status == MIXT_OK)
        status = told(data->about, read_layers(folder, data));
    if (status != MIXT_OK) {
        mixt__run_data_free(data);
        return status;
    }
    if (data->metrics || json_array_size(json_object_get(data->about, "events")) ||
        json_array_size(json_object_get(data->about, "problems")) < 2)
        return MIXT_OK;
    mixt__run_data_free(data); // neither a configuration nor figures
    return mixt__fail(MIXT_ERROR_FILE, "%s: has neither config.yaml nor metrics.jsonl: expected a run directory",
                      folder);
}

void mixt__run_data_free(mixt__run_data *data)
{
    mixt_metrics_free(data->metrics);
    json_decref(data->about);
    json_decref(data->layers);
    *data = (mixt__run_data){0};
}
