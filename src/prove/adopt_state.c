/* What an adoption has on disk: runs/adopt-NAME with
 *
 *   original.yaml            the configuration that was given
 *   history.jsonl            only ever appended to: figures, stages done with decision and reason, stages taken back
 *   versions/N-STAGE.yaml    the configuration of each stage that was done, N-policy.yaml its policy with the evidence
 *   baseline, mixed          runs; tuned.yaml and tuned.yaml.search are the search's
 *   adopted.yaml             what to use now
 *   report.md, report.html   why
 *
 * All but the history can be made again from it and from the versions. A process that is killed leaves at most one row
 * cut short, which is dropped, and files of a stage that is gone on with.
 */
#include "prove/adopt.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/status.h"
#include "judge/judge.h"
#include "mixt/policy.h"
#include "prove/compare.h"
#include "prove/prove.h"
#include "store/file.h"
#include "store/json.h"
#include "store/json_rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

mixt_status mixt__adopt_new(const char *name, mixt_adoption **adoption)
{
    MIXT_TRY(mixt__prove_check_name(name, MIXT_ADOPT_NAME));
    mixt_adoption *a = mixt__alloc(sizeof *a);
    if (!a)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for an adoption");
    mixt__handle_add(&a->handle, a, "adoption", NULL);
    a->history = json_array();
    a->figures = json_array();
    snprintf(a->name, sizeof a->name, "%s", name);
    snprintf(a->folder, sizeof a->folder, "runs/adopt-%s", name);
    *adoption = a;
    return MIXT_OK;
}

const char *mixt__adopt_file(const mixt_adoption *a, const char *name, char path[MIXT_ADOPT_PATH])
{
    snprintf(path, MIXT_ADOPT_PATH, "runs/adopt-%s/%s", a->name, name);
    return path;
}

const char *mixt__adopt_proof(const mixt_adoption *a, const json_t *stage, char path[MIXT_ADOPT_PATH])
{
    snprintf(path, MIXT_ADOPT_PATH, "runs/compare-adopt-%s-%lld", a->name,
             (long long)json_integer_value(json_object_get(stage, "version")));
    return path;
}

const json_t *mixt__adopt_question(const mixt_adoption *a)
{
    const json_t *row;
    size_t i;
    json_array_foreach(a->figures, i, row)
    {
        if (!strcmp(mixt__adopt_text(row, "figure"), MIXT_ADOPT_SECOND))
            return a->stack[MIXT_ADOPT_MIXED];
    }
    return a->done > MIXT_ADOPT_TUNED ? a->stack[MIXT_ADOPT_TUNED] : NULL;
}

const char *mixt__adopt_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

double mixt__adopt_number(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* ---- rows ---- */

/** Forgets the figures of a stage. */
static void drop_figures(mixt_adoption *a, const char *stage)
{
    for (size_t i = json_array_size(a->figures); i-- > 0;)
        if (!strcmp(mixt__adopt_text(json_array_get(a->figures, i), "stage"), stage))
            json_array_remove(a->figures, i);
}

/** Where a stage's files are follows from its number and name: they are in the folder, whatever the row says. */
static int set_files(const mixt_adoption *a, json_t *row)
{
    char name[80], path[MIXT_ADOPT_PATH];
    long long version = json_integer_value(json_object_get(row, "version"));
    snprintf(name, sizeof name, "versions/%lld-%s.yaml", version, mixt__adopt_text(row, "stage"));
    int failed = mixt__json_set_text(row, "config", mixt__adopt_file(a, name, path));
    snprintf(name, sizeof name, "versions/%lld-policy.yaml", version);
    return failed | mixt__json_set_text(row, "policy", mixt__adopt_file(a, name, path));
}

/** What a row says, whether it was read or is new. One of another kind, by another version of mixt, says nothing. A
 * stage that does not follow from the rows before it means that some are lost. */
static mixt_status take_row(void *adoption, json_t *row)
{
    mixt_adoption *a = adoption;
    bool figure = json_object_get(row, "figure"), undo = json_object_get(row, "undo");
    const char *stage = mixt__adopt_text(row, undo ? "undo" : "stage");
    if (!figure && !*stage)
        return MIXT_OK;
    if (!figure && (int64_t)mixt_adopt_stage_find(stage) != a->done - undo)
        return mixt__fail(MIXT_ERROR_FORMAT, "an earlier row is missing: %s cannot %s where %lld stages are done",
                          stage, undo ? "be dropped" : "follow", (long long)a->done);
    bool stands = !figure && !undo;
    if ((stands && set_files(a, row)) || mixt__json_add(figure ? a->figures : a->history, json_incref(row)))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the history of an adoption");
    if (undo) {
        drop_figures(a, stage);
        a->done--;
    } else if (stands) {
        a->stack[a->done++] = row;
        a->versions++;
    }
    a->current = a->done ? a->stack[a->done - 1] : NULL;
    return MIXT_OK;
}

static mixt_status add_row(mixt_adoption *a, json_t *row)
{
    char now[32];
    time_t seconds = time(NULL);
    struct tm utc;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    if (!row || mixt__json_set_text(row, "time", now)) {
        json_decref(row);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the history of an adoption");
    }
    mixt_status status = mixt__rows_add(&a->rows, json_incref(row));
    if (status == MIXT_OK)
        status = mixt__rows_flush(&a->rows);
    if (status == MIXT_OK)
        status = take_row(a, row);
    json_decref(row);
    return status;
}

static mixt_status read_rows(mixt_adoption *a)
{
    char path[MIXT_ADOPT_PATH];
    FILE *file = mixt__file_open_stream(mixt__adopt_file(a, "history.jsonl", path));
    if (!file)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s; nothing was started under the name %s", path,
                          mixt__file_problem(errno), a->name);
    mixt_status status = mixt__json_rows_read(file, path, take_row, a);
    fclose(file);
    return mixt__prove_rows_advice(status, a->folder);
}

mixt_status mixt__adopt_state_open(mixt_adoption *a, bool write)
{
    char path[MIXT_ADOPT_PATH];
    if (!write)
        return read_rows(a);
    if (a->config) {
        MIXT_TRY(mixt__prove_make_folder("runs"));
        MIXT_TRY(mixt__prove_make_folder(a->folder));
        MIXT_TRY(mixt__prove_make_folder(mixt__adopt_file(a, "versions", path)));
    }
    if (!a->config || !access(mixt__adopt_file(a, "history.jsonl", path), F_OK) || errno != ENOENT)
        MIXT_TRY(read_rows(a)); // before anything is made of it
    mixt__adopt_file(a, "original.yaml", path);
    if (a->config && !access(path, F_OK))
        MIXT_TRY(mixt__prove_same_config(a->folder, path, a->config, ""));
    else if (a->config) {
        a->fresh = true;
        MIXT_TRY(mixt_config_write(a->config, path));
    }
    MIXT_TRY(mixt__rows_open(&a->rows, mixt__adopt_file(a, "history.jsonl", path), INT64_MAX));
    a->rows.sealed = true;
    return MIXT_OK;
}

void mixt__adopt_state_discard(mixt_adoption *a)
{
    static const char *const names[] = {"original.yaml", "history.jsonl", "report.md", "report.html"};
    char path[MIXT_ADOPT_PATH];
    if (!a->fresh || a->done || json_array_size(a->figures) || !access(mixt__adopt_file(a, "baseline", path), F_OK))
        return;
    mixt__rows_close(&a->rows);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        mixt__folder_remove_file(a->folder, names[i]);
    rmdir(mixt__adopt_file(a, "versions", path));
    rmdir(a->folder);
    rmdir("runs"); // stays where there is something in it
}

mixt_status mixt__adopt_state_figure(mixt_adoption *a, const mixt_adopt_figure *f, const char *verdict,
                                     const mixt_judgement *judgements, int count, json_t *details)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        mixt__json_add(list, mixt__judgement_object(&judgements[i]));
    json_t *row = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:s, s:s, s:o}", "figure", f->name, "stage",
                            mixt_adopt_stage_name(f->stage), "loss", mixt__rows_number(f->loss), "accuracy",
                            mixt__rows_number(f->accuracy), "step_seconds", mixt__rows_number(f->step_seconds),
                            "memory", mixt__rows_number(f->memory), "good", f->good, "note", f->note, "verdict",
                            verdict, "judgements", list);
    if (row && details)
        mixt__json_set(row, "details", json_incref(details));
    json_decref(details);
    return add_row(a, row);
}

const json_t *mixt__adopt_state_find(const mixt_adoption *a, const char *name)
{
    const char *stage = mixt_adopt_stage_name((mixt_adopt_stage)a->done);
    const json_t *row;
    size_t i;
    json_array_foreach(a->figures, i, row)
    {
        if (!strcmp(mixt__adopt_text(row, "figure"), name) && !strcmp(mixt__adopt_text(row, "stage"), stage))
            return row;
    }
    return NULL;
}

/* ---- versions ---- */

/** The policy of a precision, with what this stage adds to its evidence. */
static mixt_status write_policy(const mixt_adoption *a, const mixt__adopt_end *end, const char *path)
{
    const char *stage = mixt_adopt_stage_name((mixt_adopt_stage)a->done);
    char *before = NULL, *found = NULL, *all = NULL;
    mixt_policy *policy;
    MIXT_TRY(mixt_policy_open(end->precision, &policy));
    json_t *row =
        json_pack("{s:s, s:s, s:s}", "decision", end->decision, "reason", end->reason, "evidence", end->evidence);
    mixt_status status = mixt_policy_evidence(policy, &before);
    if (status == MIXT_OK)
        found = mixt__json_dumps(row, JSON_PRESERVE_ORDER);
    size_t room = (before ? strlen(before) : 0) + (found ? strlen(found) : 0) + 64;
    all = found ? malloc(room) : NULL;
    if (status == MIXT_OK && !all)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a policy");
    if (status == MIXT_OK) {
        snprintf(all, room, "%s\nadopt_%s: %s\n", before, stage, found);
        status = mixt_policy_set_evidence(policy, all);
    }
    if (status == MIXT_OK)
        status = mixt_policy_set_made_by(policy, "mixt adopt");
    if (status == MIXT_OK)
        status = mixt_policy_write(policy, path);
    json_decref(row);
    free(before);
    free(found);
    free(all);
    mixt_policy_free(policy);
    return status;
}

static mixt_status write_config(const mixt_adoption *a, const char *policy, const char *path)
{
    char setting[MIXT_ADOPT_PATH + 20];
    mixt_config *config;
    MIXT_TRY(mixt_config_copy(a->config, &config));
    snprintf(setting, sizeof setting, "precision=%s", policy);
    mixt_status status = mixt_config_set(config, setting, "adopt");
    if (status == MIXT_OK)
        status = mixt_config_write(config, path);
    mixt_config_free(config);
    return status;
}

mixt_status mixt__adopt_state_stage(mixt_adoption *a, const mixt__adopt_end *end)
{
    const char *stage = mixt_adopt_stage_name((mixt_adopt_stage)a->done);
    const char *shown = *end->shown ? end->shown : end->precision;
    char name[60], policy[MIXT_ADOPT_PATH], config[MIXT_ADOPT_PATH];
    snprintf(name, sizeof name, "versions/%lld-policy.yaml", (long long)a->versions + 1);
    MIXT_TRY(write_policy(a, end, mixt__adopt_file(a, name, policy)));
    snprintf(name, sizeof name, "versions/%lld-%s.yaml", (long long)a->versions + 1, stage);
    MIXT_TRY(write_config(a, policy, mixt__adopt_file(a, name, config)));
    return add_row(a, json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "stage", stage, "version",
                                (json_int_t)a->versions + 1, "precision", shown, "decision", end->decision, "reason",
                                end->reason, "evidence", end->evidence, "config", config, "policy", policy, "outcome",
                                end->outcome ? end->outcome : ""));
}

mixt_status mixt__adopt_state_undo(mixt_adoption *a)
{
    char path[MIXT_ADOPT_PATH];
    const char *stage = mixt__adopt_text(a->current, "stage");
    if (!a->current)
        return mixt__fail(MIXT_ERROR_STATE, "%s: no stage is done: there is nothing to undo", a->folder);
    bool search = mixt_adopt_stage_find(stage) == MIXT_ADOPT_TUNED;
    MIXT_TRY(add_row(a, json_pack("{s:s}", "undo", stage)));
    mixt__folder_remove_all(mixt__adopt_file(a, stage, path));
    if (search) {
        mixt__folder_remove_all(mixt__adopt_file(a, "tuned.yaml", path));
        mixt__folder_remove_all(mixt__adopt_file(a, "tuned.yaml.search", path));
    }
    return MIXT_OK;
}

mixt_status mixt__adopt_state_publish(const mixt_adoption *a)
{
    char path[MIXT_ADOPT_PATH];
    mixt__adopt_file(a, "adopted.yaml", path);
    if (a->current)
        MIXT_TRY(mixt__file_copy_own(mixt__adopt_text(a->current, "config"), path));
    else
        (void)unlink(path);
    MIXT_TRY(mixt__adopt_report_write(a, mixt__adopt_file(a, "report.md", path)));
    return mixt__adopt_page_write(a, mixt__adopt_file(a, "report.html", path));
}
