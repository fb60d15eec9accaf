/* From stage to stage: opening, taking back, going on, and what is known. */
#include "prove/adopt.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/threads.h"
#include "judge/judge.h"
#include "mixt/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const stage_names[MIXT_ADOPT_STAGES] = {"baseline", "formats", "mixed", "tuned", "validated"};
static const char *const outcome_names[] = {"under way", "adopted", "kept", "undecided"};

const char *mixt_adopt_stage_name(mixt_adopt_stage stage)
{
    return (unsigned)stage < MIXT_ADOPT_STAGES ? stage_names[stage] : "";
}

mixt_adopt_stage mixt_adopt_stage_find(const char *name)
{
    int stage = 0;
    while (stage < MIXT_ADOPT_STAGES && (!name || strcmp(stage_names[stage], name)))
        stage++;
    return (mixt_adopt_stage)stage;
}

const char *mixt_adopt_outcome_name(mixt_adopt_outcome outcome)
{
    return (unsigned)outcome <= MIXT_ADOPT_UNDECIDED ? outcome_names[outcome] : "";
}

bool mixt__adopt_tell(mixt_adoption *a, mixt_progress p)
{
    p.task = mixt_adopt_stage_name((mixt_adopt_stage)a->done);
    p.part = a->done + 1;
    p.parts = MIXT_ADOPT_STAGES;
    p.seconds = mixt__time_now() - a->started;
    p.budget = NAN; // a part of a stage may have one
    if (!mixt__tell_on((mixt__teller){a->options.progress, a->options.user}, &p))
        a->halted = true;
    return !a->halted;
}

bool mixt__adopt_say(mixt_adoption *a, mixt_progress_kind kind, const char *text)
{
    mixt_progress p = mixt__progress(kind, "");
    p.text = text;
    return mixt__adopt_tell(a, p);
}

/* ---- going on ---- */

static mixt_status find_stage(const char *name, const char *what, int64_t otherwise, int64_t *stage)
{
    *stage = name ? (int64_t)mixt_adopt_stage_find(name) : otherwise;
    if (name && *stage == MIXT_ADOPT_STAGES)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s '%.60s': expected baseline, formats, mixed, tuned or validated",
                          what, name);
    return MIXT_OK;
}

static mixt_status check_options(const mixt_adopt_options *o, int64_t *from, int64_t *to)
{
    MIXT_TRY(find_stage(o->from, "from", MIXT_ADOPT_STAGES, from));
    MIXT_TRY(find_stage(o->to, "to", MIXT_ADOPT_VALIDATED, to));
    if (*from<MIXT_ADOPT_STAGES && * from> * to)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "from %s to %s: the second stage comes before the first", o->from,
                          o->to);
    if (!(o->margin > 0 && o->margin <= 1) || !(o->budget >= 0) || o->search_steps < 0)
        return mixt__fail(
            MIXT_ERROR_ARGUMENT,
            "margin %g, budget %g s, %lld steps: expected a margin above 0, up to 1, and no negative number", o->margin,
            o->budget, (long long)o->search_steps);
    if (o->pairs && (o->pairs < MIXT_STATS_PAIRS_MIN || o->pairs > MIXT_COMPARE_PAIRS_MAX))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld pairs: expected %d to %d", (long long)o->pairs,
                          MIXT_STATS_PAIRS_MIN, MIXT_COMPARE_PAIRS_MAX);
    return MIXT_OK;
}

static mixt_status one_stage(mixt_adoption *a)
{
    char text[1200];
    mixt_adopt_stage stage = (mixt_adopt_stage)a->done;
    mixt__adopt_end end = {.outcome = NULL};
    MIXT_TRY(mixt__adopt_stage_run(a, stage, &end));
    if (a->halted)
        return MIXT_OK;
    snprintf(text, sizeof text, "%s: %s: %s", stage_names[stage], end.decision, end.reason);
    (void)mixt__adopt_say(a, MIXT_PROGRESS_PART, text);
    MIXT_TRY(mixt__adopt_state_stage(a, &end));
    return mixt__adopt_state_publish(a);
}

static mixt_status go(mixt_adoption *a, int64_t from, int64_t to)
{
    if (from > a->done && from < MIXT_ADOPT_STAGES)
        return mixt__fail(MIXT_ERROR_STATE, "from %s: the stage before it is not done yet: start with %s",
                          stage_names[from], stage_names[a->done]);
    while (from < a->done)
        MIXT_TRY(mixt__adopt_state_undo(a));
    while (a->done <= to && !a->halted)
        MIXT_TRY(one_stage(a));
    return mixt__adopt_state_publish(a);
}

mixt_status mixt_adopt_with(const mixt_config *config, const mixt_adopt_options *options, mixt_adoption **adoption)
{
    mixt_adoption *a;
    int64_t from, to;
    MIXT_TRY(mixt__need(adoption));
    *adoption = NULL;
    MIXT_TRY(mixt__need_open(config, "configuration"));
    MIXT_TRY(mixt__need(options));
    mixt_adopt_options own = MIXT_OPTIONS(mixt_adopt_options);
    MIXT_TRY(mixt__options(mixt_adopt_options, &own, options));
    MIXT_TRY(check_options(&own, &from, &to));
    MIXT_TRY(mixt_config_check(config));
    MIXT_TRY(mixt__adopt_new(own.name, &a));
    a->options = own;
    a->started = mixt__time_now();
    mixt_status status = mixt_config_copy(config, &a->config);
    if (status == MIXT_OK)
        status = mixt__adopt_state_open(a, true);
    if (status == MIXT_OK)
        status = go(a, from, to);
    if (status != MIXT_OK)
        mixt__adopt_state_discard(a);
    mixt__rows_close(&a->rows);
    if (status == MIXT_OK)
        *adoption = a;
    else
        mixt_adoption_free(a);
    return status;
}

static mixt_status open_named(const char *name, bool undo, mixt_adoption **adoption)
{
    mixt_adoption *a;
    MIXT_TRY(mixt__need(adoption));
    *adoption = NULL;
    MIXT_TRY(mixt__adopt_new(name, &a));
    mixt_status status = mixt__adopt_state_open(a, undo);
    if (status == MIXT_OK && undo)
        status = mixt__adopt_state_undo(a);
    if (status == MIXT_OK && undo)
        status = mixt__adopt_state_publish(a);
    mixt__rows_close(&a->rows);
    if (status == MIXT_OK)
        *adoption = a;
    else
        mixt_adoption_free(a);
    return status;
}

mixt_status mixt_adopt_open(const char *name, mixt_adoption **adoption)
{
    return open_named(name, false, adoption);
}

mixt_status mixt_adopt_undo(const char *name, mixt_adoption **adoption)
{
    return open_named(name, true, adoption);
}

/* ---- what is known ---- */

mixt_adoption_info mixt_adoption_describe(const mixt_adoption *a)
{
    mixt_adoption_info info = {.folder = "", .config = "", .policy = "", .precision = ""};
    info.best = info.best_precision = "";
    if (mixt__need_open(a, "adoption") != MIXT_OK)
        return info;
    info.done = a->done;
    info.figures = (int64_t)json_array_size(a->figures);
    info.entries = (int64_t)json_array_size(a->history);
    info.folder = a->folder;
    info.config = mixt__adopt_text(a->current, "config");
    info.policy = mixt__adopt_text(a->current, "policy");
    info.precision = mixt__adopt_text(a->current, "precision");
    info.stopped = a->halted;
    for (int i = MIXT_ADOPT_ADOPTED; i <= MIXT_ADOPT_UNDECIDED; i++)
        if (!strcmp(mixt__adopt_text(a->current, "outcome"), outcome_names[i]))
            info.outcome = (mixt_adopt_outcome)i;
    if (info.outcome == MIXT_ADOPT_UNDECIDED) {
        info.best = mixt__adopt_text(mixt__adopt_question(a), "config");
        info.best_precision = mixt__adopt_text(mixt__adopt_question(a), "precision");
    }
    return info;
}

bool mixt_adoption_judgement(const mixt_adoption *a, mixt_claim claim, mixt_judgement *judgement)
{
    const json_t *row, *found;
    size_t i, k;
    bool any = false;
    if (mixt__need_open(a, "adoption") != MIXT_OK || mixt__need(judgement) != MIXT_OK)
        return false;
    json_array_foreach(a->figures, i, row)
    {
        json_array_foreach(json_object_get(row, "judgements"), k, found)
        {
            mixt_judgement j;
            bool wanted = mixt__judgement_read(found, &j) && j.claim == claim;
            *judgement = wanted ? j : *judgement;
            any = any || wanted;
        }
    }
    return any;
}

bool mixt_adoption_figure(const mixt_adoption *a, int64_t index, mixt_adopt_figure *figure)
{
    if (mixt__need_open(a, "adoption") != MIXT_OK || mixt__need(figure) != MIXT_OK || index < 0)
        return false;
    const json_t *row = json_array_get(a->figures, (size_t)index);
    *figure = (mixt_adopt_figure){
        .stage = mixt_adopt_stage_find(mixt__adopt_text(row, "stage")),
        .name = mixt__adopt_text(row, "figure"),
        .loss = mixt__adopt_number(row, "loss"),
        .accuracy = mixt__adopt_number(row, "accuracy"),
        .step_seconds = mixt__adopt_number(row, "step_seconds"),
        .memory = mixt__adopt_number(row, "memory"),
        .good = json_is_true(json_object_get(row, "good")),
        .note = mixt__adopt_text(row, "note"),
    };
    return row != NULL;
}

bool mixt_adoption_entry(const mixt_adoption *a, int64_t index, mixt_adopt_entry *entry)
{
    if (mixt__need_open(a, "adoption") != MIXT_OK || mixt__need(entry) != MIXT_OK || index < 0)
        return false;
    const json_t *row = json_array_get(a->history, (size_t)index);
    const char *undone = mixt__adopt_text(row, "undo");
    *entry = (mixt_adopt_entry){
        .stage = mixt_adopt_stage_find(*undone ? undone : mixt__adopt_text(row, "stage")),
        .undo = *undone != '\0',
        .version = json_integer_value(json_object_get(row, "version")),
        .time = mixt__adopt_text(row, "time"),
        .precision = mixt__adopt_text(row, "precision"),
        .decision = mixt__adopt_text(row, "decision"),
        .reason = mixt__adopt_text(row, "reason"),
        .evidence = mixt__adopt_text(row, "evidence"),
        .config = mixt__adopt_text(row, "config"),
        .policy = mixt__adopt_text(row, "policy"),
    };
    return row != NULL;
}

void mixt_adoption_free(mixt_adoption *a)
{
    if (!a || mixt__need_open(a, "adoption") != MIXT_OK)
        return;
    mixt__handle_remove(a);
    mixt__rows_close(&a->rows);
    json_decref(a->history);
    json_decref(a->figures);
    mixt_config_free(a->config);
    mixt__free(a);
}
