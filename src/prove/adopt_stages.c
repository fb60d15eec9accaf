/* What each stage of an adoption does. A stage is made of parts, each kept as a figure when it is done: after a kill
 * only the part under way is made again, and runs, search and comparison go on from what they have on disk themselves.
 */
#include "prove/adopt.h"

#include "api/api.h"
#include "base/files.h"
#include "base/progress.h"
#include "base/status.h"
#include "num/format.h"
#include "mixt/compare.h"
#include "mixt/machine.h"
#include "mixt/verify.h"
#include "prove/compare.h"
#include "prove/prove.h"
#include "store/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT_STEPS_MIN = 10, FORMAT_SHARE = 4 }; // formats are tried for a quarter of the updates

/* ---- hearing what others do ---- */

static bool hear_data(mixt_adoption *a, const mixt_progress *p)
{
    if (!mixt__tell_on((mixt__teller){a->options.progress, a->options.user}, p))
        a->halted = true;
    return !a->halted;
}

/** A run of a stage. */
static mixt_status hear_run(void *user, mixt_run *run, const mixt_event *e)
{
    mixt_adoption *a = user;
    bool more = true;
    if (e->kind == MIXT_EVENT_NOTE && e->warning)
        more = mixt__adopt_say(a, MIXT_PROGRESS_WARNING, e->text);
    if (e->kind == MIXT_EVENT_STEP) {
        mixt_progress p = mixt__progress(MIXT_PROGRESS_STEP, "");
        p.what = mixt_config_string(mixt_run_config(run), "precision");
        p.unit = "updates";
        p.done = e->step->step;
        p.total = mixt_run_describe(run).total_steps;
        p.loss = e->step->loss;
        p.accuracy = e->step->accuracy;
        more = mixt__adopt_tell(a, p);
    }
    if (!more)
        mixt_run_ask_stop(run);
    return MIXT_OK;
}

/** What verifying, comparing and a run's data tell: parts of a stage that end are steps of it. */
bool mixt__adopt_hear(void *user, const mixt_progress *told)
{
    mixt_progress p = *told;
    if (p.kind == MIXT_PROGRESS_DATA)
        return hear_data(user, told);
    if (p.kind == MIXT_PROGRESS_PART)
        p.kind = MIXT_PROGRESS_STEP;
    return mixt__adopt_tell(user, p);
}

/** A search: what it tried and found is worth a line. */
static bool hear_search(void *user, const mixt_progress *told)
{
    char text[700];
    if (told->kind == MIXT_PROGRESS_STEP || told->kind == MIXT_PROGRESS_DATA)
        return mixt__adopt_hear(user, told);
    snprintf(text, sizeof text, "search: %s", told->text);
    return mixt__adopt_say(user, MIXT_PROGRESS_NOTE, text);
}

/* ---- parts ---- */

void mixt__adopt_reason(mixt__adopt_end *end, const char *decision, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(end->reason, sizeof end->reason, format, args);
    va_end(args);
    snprintf(end->decision, sizeof end->decision, "%s", decision);
}

mixt_status mixt__adopt_in_precision(const mixt_adoption *a, const char *precision, mixt_config **config)
{
    char setting[MIXT_ADOPT_PATH + 20];
    snprintf(setting, sizeof setting, "precision=%s", precision);
    MIXT_TRY(mixt_config_copy(a->config, config));
    mixt_status status = mixt_config_set(*config, setting, "adopt");
    if (status != MIXT_OK)
        mixt_config_free(*config);
    return status;
}

mixt_status mixt__adopt_measure(const mixt_adoption *a, const char *folder, mixt_compare_run *run)
{
    int64_t samples =
        mixt__config_int(a->config, MIXT_KEY_TRAIN_BATCH) * mixt__config_int(a->config, MIXT_KEY_TRAIN_ACCUMULATE);
    run->diverged = false; // a run that ended is measured
    return mixt__compare_measure(folder, samples, run);
}

/** Trains to the end. @param why empty: it learned; else why it cannot be gone on with */
static mixt_status train_run(mixt_adoption *a, const mixt_config *config, const char *folder, mixt_compare_run *figures,
                             char why[200])
{
    char out[MIXT_ADOPT_PATH + 10];
    const char *const settings[] = {out, NULL};
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings, .observer = hear_run, .user = a,
                                            .progress = mixt__adopt_hear);
    mixt_run_result result = {0};
    mixt_run *run;
    snprintf(out, sizeof out, "out=%s", folder);
    char baseline[MIXT_ADOPT_PATH];
    mixt_status status = mixt__prove_open_run(config, folder, &options, &run);
    if (status == MIXT_ERROR_STATE && a->halted) // while its data was made ready
        return MIXT_OK;
    MIXT_TRY(status);
    status = mixt_run_train(run, &result);
    mixt_run_close(run);
    bool diverged = status == MIXT_ERROR_DATA && result.steps > 0;
    if (diverged)
        snprintf(why, 200, "it diverged: %.180s", mixt_error_text());
    else
        MIXT_TRY(status);
    status = mixt__prove_same_data(mixt__adopt_file(a, "baseline", baseline), folder);
    if (status != MIXT_OK) { // it is made again once the data is that of the baseline
        mixt__folder_remove_all(folder);
        return status;
    }
    if (result.stopped && a->halted)
        return MIXT_OK;
    mixt_status measured = mixt__adopt_measure(a, folder, figures);
    if (diverged) // which may have left no row at all
        return MIXT_OK;
    MIXT_TRY(measured);
    if (!isfinite(figures->loss))
        snprintf(why, 200, "its last validation loss is NaN or Inf");
    else if (!(figures->loss < figures->start_loss))
        snprintf(why, 200, "its loss, %.5g, did not fall below the initial %.5g", figures->loss, figures->start_loss);
    return MIXT_OK;
}

/** A whole run as a part of a stage, in a folder of the stage's name. */
static mixt_status train_part(mixt_adoption *a, mixt_adopt_stage stage, const char *precision)
{
    char folder[MIXT_ADOPT_PATH], why[200] = "";
    mixt_compare_run run = {.loss = NAN, .accuracy = NAN, .step_seconds = NAN, .memory = NAN};
    mixt_config *config;
    if (mixt__adopt_state_find(a, precision))
        return MIXT_OK;
    MIXT_TRY(mixt__adopt_in_precision(a, precision, &config));
    mixt__adopt_file(a, mixt_adopt_stage_name(stage), folder);
    mixt_status status = train_run(a, config, folder, &run, why);
    mixt_config_free(config);
    if (status != MIXT_OK || a->halted)
        return status;
    mixt_adopt_figure f = {.stage = stage,
                           .name = precision,
                           .loss = run.loss,
                           .accuracy = run.accuracy,
                           .step_seconds = run.step_seconds,
                           .memory = run.memory,
                           .good = !*why,
                           .note = *why ? why : "trained to its end"};
    return mixt__adopt_state_figure(a, &f, "", NULL, 0, NULL);
}

/* ---- baseline ---- */

static mixt_status baseline(mixt_adoption *a, mixt__adopt_end *end)
{
    MIXT_TRY(train_part(a, MIXT_ADOPT_BASELINE, "fp32"));
    if (a->halted)
        return MIXT_OK;
    const json_t *row = mixt__adopt_state_find(a, "fp32");
    if (!json_is_true(json_object_get(row, "good"))) {
        char note[300];
        snprintf(note, sizeof note, "%s", mixt__adopt_text(row, "note"));
        return mixt__fail(MIXT_ERROR_STATE,
                          "FP32 itself does not train: %s. There is nothing to compare with: correct the configuration "
                          "(train.lr, the data) and start again with another --name",
                          note);
    }
    snprintf(end->precision, sizeof end->precision, "fp32");
    mixt__adopt_file(a, "baseline", end->evidence);
    mixt__adopt_reason(end, "go on", "FP32 trains, to a loss of %.5g", mixt__adopt_number(row, "loss"));
    return MIXT_OK;
}

/* ---- formats ---- */

/** Formats lower than FP32 that the device of the configuration has something for. */
static int find_formats(const mixt_adoption *a, mixt_format_info found[MIXT_FORMATS_MAX])
{
    mixt_format_info all[MIXT_FORMATS_MAX];
    mixt_gpu_info gpu;
    const char *device = mixt_config_string(a->config, "device");
    int count = 0, kept = 0, number;
    if (!strcmp(device, "auto"))
        device = mixt_device_auto();
    if (!mixt__device_is_gpu(device, &number))
        count = mixt_cpu_formats(all);
    else if (mixt_gpu_describe(number, &gpu) == MIXT_OK)
        count = mixt_gpu_formats(&gpu, all);
    for (int i = 0; i < count; i++) {
        if (all[i].support != MIXT_SUPPORT_EMULATED && mixt__format_of(all[i].dtype)->preference)
            found[kept++] = all[i];
    }
    return kept;
}

static mixt_status try_format(mixt_adoption *a, const char *format, int64_t steps)
{
    char note[200];
    mixt_config *config;
    mixt_verification *v = NULL;
    if (mixt__adopt_state_find(a, format))
        return MIXT_OK;
    MIXT_TRY(mixt__adopt_in_precision(a, format, &config));
    mixt_status status = mixt_verify(config, &v, .seeds = 1, .steps = steps, .progress = mixt__adopt_hear, .user = a);
    mixt_config_free(config);
    if (a->halted) {
        mixt_verification_free(v);
        return MIXT_OK;
    }
    MIXT_TRY(status);
    const mixt_verify_run *fp32 = mixt_verification_run(v, 0, MIXT_VERIFY_FP32);
    const mixt_verify_run *run = mixt_verification_run(v, 0, MIXT_VERIFY_MIXED);
    bool good = !run->not_finite && isfinite(run->loss);
    snprintf(note, sizeof note, "%lld updates%s; FP32: loss %.5g, %.3f ms, %.2f MiB", (long long)steps,
             good ? "" : ", not all values stayed finite", fp32->loss, 1e3 * fp32->step_seconds,
             (double)fp32->memory.total / 1048576);
    mixt_adopt_figure f = {.stage = MIXT_ADOPT_FORMATS,
                           .name = format,
                           .loss = run->loss,
                           .accuracy = run->accuracy,
                           .step_seconds = run->step_seconds,
                           .memory = (double)run->memory.total,
                           .good = good,
                           .note = note};
    mixt_verification_free(v);
    return mixt__adopt_state_figure(a, &f, "", NULL, 0, NULL);
}

static mixt_status formats(mixt_adoption *a, mixt__adopt_end *end)
{
    char folder[MIXT_ADOPT_PATH];
    const char *key = a->options.goal == MIXT_SEARCH_TIME ? "step_seconds" : "memory";
    mixt_format_info found[MIXT_FORMATS_MAX];
    mixt_compare_run base;
    double best = INFINITY;
    int count = find_formats(a, found);
    MIXT_TRY(mixt__adopt_measure(a, mixt__adopt_file(a, "baseline", folder), &base));
    int64_t steps = base.steps / FORMAT_SHARE;
    steps = steps > FORMAT_STEPS_MIN ? steps : FORMAT_STEPS_MIN;
    snprintf(end->precision, sizeof end->precision, "fp32");
    for (int i = 0; i < count && !a->halted; i++) {
        MIXT_TRY(try_format(a, found[i].name, steps));
        const json_t *row = mixt__adopt_state_find(a, found[i].name);
        double cost = mixt__adopt_number(row, key);
        if (!json_is_true(json_object_get(row, "good")) || !(cost < best))
            continue;
        best = cost;
        snprintf(end->precision, sizeof end->precision, "%s", found[i].name);
    }
    mixt__adopt_file(a, "history.jsonl", end->evidence);
    if (strcmp(end->precision, "fp32"))
        mixt__adopt_reason(end, "go on",
                           "%s is the cheapest of %d formats by %s, and stays finite; one seed shows no more",
                           end->precision, count, a->options.goal == MIXT_SEARCH_TIME ? "time" : "memory");
    else
        mixt__adopt_reason(end, "keep FP32", "of the %d lower formats that this machine has, none stays finite", count);
    return MIXT_OK;
}

/* ---- mixed ---- */

static mixt_status mixed(mixt_adoption *a, mixt__adopt_end *end)
{
    char format[40];
    snprintf(format, sizeof format, "%s", mixt__adopt_text(a->current, "precision"));
    snprintf(end->precision, sizeof end->precision, "%s", format);
    mixt__adopt_file(a, "mixed", end->evidence);
    if (!strcmp(format, "fp32")) {
        mixt__adopt_file(a, "history.jsonl", end->evidence);
        mixt__adopt_reason(end, "keep FP32", "no lower format trains for all layers; the search may raise layers");
        return MIXT_OK;
    }
    MIXT_TRY(train_part(a, MIXT_ADOPT_MIXED, format));
    if (a->halted)
        return MIXT_OK;
    const json_t *row = mixt__adopt_state_find(a, format);
    if (json_is_true(json_object_get(row, "good"))) {
        mixt__adopt_reason(end, "go on", "%s trains to its end, to a loss of %.5g", format,
                           mixt__adopt_number(row, "loss"));
        return MIXT_OK;
    }
    snprintf(end->precision, sizeof end->precision, "fp32");
    mixt__adopt_reason(end, "keep FP32", "%s for all layers does not train: %s; the search may raise layers", format,
                       mixt__adopt_text(row, "note"));
    return MIXT_OK;
}

/* ---- tuned ---- */

static mixt_status search(mixt_adoption *a, const char *file)
{
    char note[700];
    mixt_search_result *found = NULL;
    if (mixt__adopt_state_find(a, "search"))
        return MIXT_OK;
    mixt_status status =
        mixt_search(a->config, &found, .lose = a->options.margin, .goal = a->options.goal, .budget = a->options.budget,
                    .write = file, .steps = a->options.search_steps, .progress = hear_search, .user = a);
    if (status == MIXT_ERROR_STATE && a->halted) // while its data was made ready
        return MIXT_OK;
    MIXT_TRY(status);
    mixt_search_info i = mixt_search_describe(found);
    const char *left = i.complete ? "" : ", more remain to try";
    const mixt_judgement *of = i.lower || !*i.refused ? &i.safe : &i.refused_safe;
    char *text = NULL;
    status = mixt_judgement_text(of, &text);
    if (i.lower)
        snprintf(note, sizeof note, "%lld policies tried%s; %s", (long long)i.tried, left, text ? text : "");
    else if (*i.refused)
        snprintf(note, sizeof note, "%lld policies tried%s; %.100s is excluded: %s", (long long)i.tried, left,
                 i.refused, text ? text : "");
    else
        snprintf(note, sizeof note, "%lld policies tried%s; none of them is cheaper than FP32", (long long)i.tried,
                 left);
    mixt_free(text);
    mixt_adopt_figure f = {.stage = MIXT_ADOPT_TUNED,
                           .name = "search",
                           .loss = NAN,
                           .accuracy = NAN,
                           .step_seconds = i.ms / 1e3,
                           .memory = (double)i.memory,
                           .good = i.lower,
                           .note = note};
    const char *verdict = !i.lower && i.complete ? "none" : ""; // all was tried, and FP32 stays
    mixt_judgement judged[3] = {*of};
    mixt__adopt_worth(a, i.fp32_ms / i.ms, 1 - (double)i.memory / (double)i.fp32_memory, &judged[1]);
    if (status == MIXT_OK && !a->halted)
        status = mixt__adopt_state_figure(a, &f, verdict, judged, 3, NULL);
    mixt_search_free(found);
    return status;
}

static mixt_status tuned(mixt_adoption *a, mixt__adopt_end *end)
{
    char file[MIXT_ADOPT_PATH];
    const char *before = mixt__adopt_text(a->current, "precision");
    MIXT_TRY(search(a, mixt__adopt_file(a, "tuned.yaml", file)));
    if (a->halted)
        return MIXT_OK;
    const json_t *row = mixt__adopt_state_find(a, "search");
    const char *note = mixt__adopt_text(row, "note");
    bool none = !strcmp(mixt__adopt_text(row, "verdict"), "none");
    mixt__adopt_file(a, "tuned.yaml.search", end->evidence);
    snprintf(end->precision, sizeof end->precision, "%s", none ? "fp32" : before);
    if (json_is_true(json_object_get(row, "good"))) {
        snprintf(end->precision, sizeof end->precision, "%s", file);
        mixt__prove_precision(file, end->shown, sizeof end->shown); // "tuned", or the one format that it has
        if (strcmp(end->shown, "tuned"))
            mixt__adopt_reason(end, "go on", "%s for all layers: %s", end->shown, note);
        else
            mixt__adopt_reason(end, "go on", "a format for each layer: %s", note);
    } else if (none || !strcmp(before, "fp32")) {
        mixt__adopt_reason(end, "keep FP32", "%s", note);
    } else {
        mixt__adopt_reason(end, "continue as before", "%s stays: the search has nothing better yet: %s", before, note);
    }
    return MIXT_OK;
}

mixt_status mixt__adopt_stage_run(mixt_adoption *a, mixt_adopt_stage stage, mixt__adopt_end *end)
{
    static mixt_status (*const stages[MIXT_ADOPT_STAGES])(mixt_adoption *, mixt__adopt_end *) = {
        baseline, formats, mixed, tuned, mixt__adopt_validated};
    return stages[stage](a, end);
}
