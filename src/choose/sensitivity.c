/* The analysis as a whole: formats, points of training, which cells are run, and the public functions. */
#include "choose/sensitivity.h"

#include "base/options.h"
#include "base/progress.h"
#include "base/threads.h"

#include "run/run.h"
#include "train/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TRIALS_MAX = 1000, STEPS_MAX = 10, SCALE_PASSES = 1 };

/** An analysis under way. */
typedef struct job {
    mixt_sensitivity *s;
    const mixt_sensitivity_options *options;
    mixt_trainer *trainer;
    mixt_data *data;
    mixt__snapshot start; // the trainer as it was
    int64_t *checkpoints; // steps, oldest last
    int64_t checkpoint_count;
    float *scales;       // of the loss, by point of training
    int64_t done, total; // passes
    int64_t point;       // of training, from 1
    double started;
} job;

/** So many passes more are done. */
static mixt_status tell(job *j, int64_t passes, const char *what)
{
    mixt_progress p = mixt__progress(MIXT_PROGRESS_STEP, "measuring");
    j->done += passes;
    p.what = what;
    p.unit = "passes";
    p.done = j->done;
    p.total = j->total;
    p.part = j->point;
    p.parts = j->s->info.points;
    p.seconds = mixt__time_now() - j->started;
    if (!mixt__tell_on((mixt__teller){j->options->progress, j->options->user}, &p))
        return mixt__fail(MIXT_ERROR_STATE, "stopped before all layers were measured: no result");
    return MIXT_OK;
}

/* ---- options ---- */

static mixt_status add_format(mixt_sensitivity_info *info, const char *word)
{
    mixt_dtype dtype, backward;
    (void)mixt__policy_word(word, &dtype, &backward);
    if (dtype == MIXT_DTYPE_FP32)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "formats: leave out fp32, the others are compared with it");
    char names[MIXT_FORMAT_NAMES];
    if (dtype == MIXT_DTYPE_NONE)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "formats: a layer cannot be trained in '%s': expected fp8, %s", word,
                          mixt__format_names(MIXT_MAY_MULTIPLY, "and", names, sizeof names));
    for (int i = 0; i < info->format_count; i++)
        if (info->formats[i] == dtype)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "formats: %s is named twice", word);
    info->formats[info->format_count++] = dtype;
    return MIXT_OK;
}

static mixt_status parse_formats(mixt_sensitivity_info *info, const char *text)
{
    char word[32];
    for (const char *at = text; *at;) {
        at += strspn(at, ", ");
        size_t length = strcspn(at, ", ");
        if (!length)
            break;
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        MIXT_TRY(add_format(info, word));
        at += length;
    }
    return info->format_count
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "formats: the list is empty; expected some of fp16, bf16 and tf32");
}

/** Samples in a batch of the analysis, so that all of it costs STEPS_MAX steps of training: FP32 and each format beside
 *  it, then each format for the whole model, and a pass that finds the loss scale. */
static int64_t batch_size(const mixt_sensitivity_info *info, int64_t batch)
{
    int64_t passes = info->trials * (1 + 2 * info->format_count) + SCALE_PASSES;
    int64_t fits = batch * STEPS_MAX / passes;
    return fits < 1 ? 1 : fits > batch ? batch : fits;
}

static mixt_status read_options(job *j)
{
    mixt_sensitivity_info *info = &j->s->info;
    const mixt_sensitivity_options *o = j->options;
    bool host = mixt__trainer_device(j->trainer->inner)->backend->host_memory;
    info->trials = o->trials;
    if (info->trials < 1 || info->trials > TRIALS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld trials: from 1 to %d", (long long)o->trials, TRIALS_MAX);
    MIXT_TRY(parse_formats(info, o->formats ? o->formats : host ? "fp16,bf16" : "fp16,bf16,tf32"));
    info->batch = batch_size(info, mixt__trainer_settings_of(j->trainer->inner)->batch);
    return MIXT_OK;
}

/* ---- points of training ---- */

static mixt_status list_checkpoints(job *j)
{
    char folder[MIXT_CHECKPOINT_PATH - 32];
    if (!j->options->folder)
        return MIXT_OK;
    if (snprintf(folder, sizeof folder, "%s/checkpoints", j->options->folder) >= (int)sizeof folder)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", j->options->folder);
    return mixt__checkpoints_list(folder, &j->checkpoints, &j->checkpoint_count);
}

/** Point 0 are the weights that the trainer had, the others its checkpoints, oldest first. */
static mixt_status go_to(job *j, int64_t point)
{
    char folder[MIXT_CHECKPOINT_PATH], path[MIXT_CHECKPOINT_PATH];
    static const char *const may_differ[] = {"precision", NULL}; // a run may have gone on under another policy
    mixt__checkpoint *checkpoint;
    if (!point)
        return mixt__snapshot_restore(&j->start, j->trainer->inner);
    snprintf(folder, sizeof folder, "%.*s/checkpoints", (int)sizeof folder - 64, j->options->folder);
    MIXT_TRY(mixt__checkpoint_open(mixt__checkpoint_path(folder, j->checkpoints[j->checkpoint_count - point], path),
                                   &checkpoint));
    mixt_status status = mixt__trainer_restore(j->trainer->inner, checkpoint, may_differ);
    mixt__checkpoint_close(checkpoint);
    return status;
}

/* ---- loss scale ---- */

/** The scale that FP16 would be trained with here: the trainer's own where it scales, else the one that a trainer of
 *  FP16 comes to from its first scale on, which falls while gradients overflow. */
static mixt_status find_scale(job *j, mixt__replay *r)
{
    mixt__trainer *t = j->trainer->inner;
    mixt__trainer_settings settings = *mixt__trainer_settings_of(t);
    mixt_policy *named;
    MIXT_TRY(mixt_policy_named("fp16", &named));
    mixt_status status = mixt__trainer_settings_parse(&j->trainer->options, named, &settings);
    mixt_policy_free(named);
    MIXT_TRY(status);
    const mixt__scaling *scaling = &settings.scaling;
    r->scale = !scaling->enabled                               ? 1
               : mixt__trainer_settings_of(t)->scaling.enabled ? mixt__trainer_control(t)->scale
                                                               : scaling->initial;
    if (!scaling->enabled || !scaling->dynamic || mixt__trainer_control(t)->step > 0)
        return MIXT_OK;
    return mixt__replay_settle_scale(r, scaling);
}

/* ---- cells ---- */

mixt__policy mixt__sense_policy(const mixt_sensitivity *s, int64_t layer, int format, int mode, mixt__policy_rule *rule)
{
    bool kept = mode == MIXT_SENSITIVITY_KEPT;
    mixt_dtype low = s->info.formats[format], own = kept ? MIXT_DTYPE_FP32 : low;
    mixt__policy policy = mixt__policy_of(kept ? low : MIXT_DTYPE_FP32);
    *rule = (mixt__policy_rule){
        .layer = s->layers.layers[layer].name, .forward = own, .backward = mixt__format_backward(own)};
    policy.rules = rule;
    policy.rule_count = 1;
    return policy;
}

static int64_t cell_count(const mixt_sensitivity *s)
{
    return s->layers.count * s->info.format_count * MIXT_SENSITIVITY_MODES;
}

/** What a run does not show, from the estimates: of a lowered layer its own output, and the range of its values. */
static void complete(mixt__seen *seen, const mixt__sense_cell *cell, int mode)
{
    const mixt__seen_sum *e = &cell->estimated;
    double n = (double)e->count;
    seen->overflow = fmax(seen->overflow, e->sum.overflow / n);
    seen->underflow = e->sum.underflow / n;
    seen->margin = e->sum.margin / n;
    if (mode == MIXT_SENSITIVITY_LOWERED)
        seen->snr_db = e->sum.snr_db / n;
}

static mixt_status confirm_cell(job *j, mixt__replay *r, int64_t index)
{
    mixt_sensitivity *s = j->s;
    int mode = (int)(index % MIXT_SENSITIVITY_MODES);
    int format = (int)(index / MIXT_SENSITIVITY_MODES % s->info.format_count);
    int64_t layer = index / MIXT_SENSITIVITY_MODES / s->info.format_count;
    mixt__policy_rule rule;
    mixt__policy policy = mixt__sense_policy(s, layer, format, mode, &rule);
    mixt__seen *seen = mixt__alloc((size_t)r->trials * sizeof *seen);
    if (!seen)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the figures of a layer");
    mixt_status status = mixt__replay_policy(r, &policy, s->layers.layers[layer].own, seen);
    for (int64_t i = 0; status == MIXT_OK && i < r->trials; i++) {
        complete(&seen[i], &s->cells[index], mode);
        mixt__seen_add(&s->cells[index].measured, &seen[i]);
    }
    mixt__free(seen);
    return status == MIXT_OK ? tell(j, r->trials, rule.layer) : status;
}

/** All cells where that is asked for, else the lowered ones with the lowest scores. */
static int64_t choose_cells(const job *j)
{
    mixt_sensitivity *s = j->s;
    int64_t wanted = j->options->confirm, chosen = 0;
    for (int64_t i = 0; i < cell_count(s) && j->options->replay_all; i++)
        chosen += s->cells[i].confirm = s->cells[i].exists;
    while (chosen < wanted && !j->options->replay_all) {
        int64_t worst = -1;
        for (int64_t i = MIXT_SENSITIVITY_LOWERED; i < cell_count(s); i += MIXT_SENSITIVITY_MODES)
            if (s->cells[i].exists && !s->cells[i].confirm &&
                (worst < 0 || mixt__seen_score(&s->cells[i].estimated) < mixt__seen_score(&s->cells[worst].estimated)))
                worst = i;
        if (worst < 0)
            break;
        s->cells[worst].confirm = true;
        chosen++;
    }
    return chosen;
}

/* ---- one point of training ---- */

static mixt_status estimate_with(job *j, mixt__replay *r, mixt__probe *probe)
{
    mixt_sensitivity_info *info = &j->s->info;
    MIXT_TRY(mixt__probe_reference(probe));
    MIXT_TRY(tell(j, r->trials, "fp32"));
    for (int64_t i = 0; i < r->trials; i++)
        info->loss += r->losses[i] / (double)(r->trials * info->points);
    MIXT_TRY(mixt__probe_formats(probe));
    return tell(j, r->trials * info->format_count, "every layer lowered");
}

static mixt_status estimate_cells(job *j, mixt__replay *r, int64_t point)
{
    mixt_sensitivity_info *info = &j->s->info;
    mixt__probe *probe;
    MIXT_TRY(find_scale(j, r));
    info->loss_scale = (double)(j->scales[point] = r->scale);
    MIXT_TRY(mixt__probe_open(j->s, r, &probe));
    mixt_status status = estimate_with(j, r, probe);
    mixt__probe_close(probe);
    const mixt__trainer *t = r->trainer;
    double step =
        mixt__executable_flops(mixt__trainer_compiled(t), true) * (double)mixt__trainer_settings_of(t)->accumulate;
    info->steps += step > 0 ? r->flops / step : 0;
    return status;
}

static mixt_status confirm_cells(job *j, mixt__replay *r, int64_t point)
{
    r->scale = j->scales[point];
    MIXT_TRY(mixt__replay_reference(r));
    MIXT_TRY(tell(j, r->trials, "fp32"));
    for (int64_t i = 0; i < cell_count(j->s); i++)
        if (j->s->cells[i].confirm)
            MIXT_TRY(confirm_cell(j, r, i));
    return MIXT_OK;
}

static mixt_status visit(job *j, int64_t point, mixt_status (*look)(job *, mixt__replay *, int64_t))
{
    mixt__replay r;
    j->point = point + 1;
    MIXT_TRY(go_to(j, point));
    mixt_status status = mixt__replay_open(&r, j->trainer->inner, j->data, j->s->info.batch, j->s->info.trials);
    if (status == MIXT_OK)
        status = look(j, &r, point);
    mixt__replay_close(&r);
    return status;
}

/* ---- all of it ---- */

static mixt_status make_cells(mixt_sensitivity *s)
{
    int64_t count = cell_count(s);
    s->cells = mixt__alloc((size_t)count * sizeof *s->cells);
    if (!s->cells)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld cells", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        int format = (int)(i / MIXT_SENSITIVITY_MODES % s->info.format_count);
        bool matrix = s->layers.layers[i / MIXT_SENSITIVITY_MODES / s->info.format_count].matrix;
        s->cells[i].exists = matrix || !mixt__dtype_way(s->info.formats[format]);
    }
    return MIXT_OK;
}

/** Estimates at all points, then the worst cells at all of them. */
static mixt_status measure(job *j)
{
    mixt_sensitivity_info *info = &j->s->info;
    int64_t wanted = j->options->confirm, cells = 0;
    for (int64_t i = 0; i < cell_count(j->s); i++)
        cells += j->s->cells[i].exists && (j->options->replay_all || i % MIXT_SENSITIVITY_MODES == 0);
    cells = j->options->replay_all || wanted > cells ? cells : wanted;
    j->total = info->points * info->trials * (1 + info->format_count + (cells ? 1 + cells : 0));
    for (int64_t p = 0; p < info->points; p++)
        MIXT_TRY(visit(j, p, estimate_cells));
    bool any = choose_cells(j) > 0;
    for (int64_t p = 0; any && p < info->points; p++)
        MIXT_TRY(visit(j, p, confirm_cells));
    return MIXT_OK;
}

static mixt_status analyse(job *j)
{
    mixt_sensitivity *s = j->s;
    MIXT_TRY(mixt__sense_layers_find(j->trainer->inner, &s->layers));
    MIXT_TRY(make_cells(s));
    MIXT_TRY(list_checkpoints(j));
    s->info.points = 1 + j->checkpoint_count;
    j->scales = mixt__alloc((size_t)s->info.points * sizeof *j->scales);
    mixt_status status = j->scales ? measure(j) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the points of training");
    mixt_status restored = mixt__snapshot_restore(&j->start, j->trainer->inner);
    s->info.steps /= (double)s->info.points;
    MIXT_TRY(status);
    MIXT_TRY(restored);
    return mixt__sense_rank(s);
}

static mixt_status run(job *j)
{
    mixt__trainer *t = j->trainer->inner;
    MIXT_TRY(read_options(j));
    if (mixt__trainer_has_hand_gradients(t))
        return mixt__fail(MIXT_ERROR_STATE,
                          "gradients are pending (mixt_trainer_backward): apply or discard them first");
    if (!mixt__trainer_compiled(t)) {
        mixt__batch_spec spec = mixt__trainer_spec_of(j->data, mixt__trainer_settings_of(t)->batch);
        MIXT_TRY(mixt__trainer_compile(t, &spec));
    }
    MIXT_TRY(mixt__trainer_allocate(t));
    MIXT_TRY(mixt__trainer_read_control(t));
    mixt_status status = mixt__snapshot_open(&j->start, t, MIXT_SNAPSHOT_WHOLE, false);
    if (status == MIXT_OK)
        status = mixt__snapshot_take(&j->start, t);
    mixt__device_plan_roughly(mixt__trainer_device(t),
                              true); // shadows run a few times each: timing algorithms for them would take longer
    if (status == MIXT_OK)
        status = analyse(j);
    mixt__device_plan_roughly(mixt__trainer_device(t), false);
    mixt__snapshot_close(&j->start);
    mixt__free(j->checkpoints);
    mixt__free(j->scales);
    return status;
}

mixt_status mixt_sensitivity_of(mixt_trainer *trainer, mixt_data *data, const mixt_sensitivity_options *options,
                                mixt_sensitivity **sensitivity)
{
    MIXT_TRY(mixt__need(sensitivity));
    *sensitivity = NULL;
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__need_made(data, "data"));
    mixt_sensitivity_options own = MIXT_OPTIONS(mixt_sensitivity_options);
    MIXT_TRY(mixt__options(mixt_sensitivity_options, &own, options));
    mixt_sensitivity *s = mixt__alloc(sizeof *s);
    if (!s)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a sensitivity analysis");
    mixt__handle_add(&s->handle, s, "sensitivity", NULL);
    job j = {.s = s, .options = &own, .trainer = trainer, .data = data, .started = mixt__time_now()};
    mixt_status status = run(&j);
    if (status == MIXT_OK)
        *sensitivity = s;
    else
        mixt_sensitivity_free(s);
    return status;
}

mixt_status mixt_sensitivity_new_with(mixt_run *run, const mixt_sensitivity_options *options,
                                      mixt_sensitivity **sensitivity)
{
    mixt_data *data;
    MIXT_TRY(mixt__need(sensitivity));
    *sensitivity = NULL;
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt_run_data(run, "train", &data));
    MIXT_TRY(mixt__run_begin(run));
    return mixt_sensitivity_of(run->experiment.trainer, data, options, sensitivity);
}

void mixt_sensitivity_free(mixt_sensitivity *s)
{
    if (!s || mixt__need_open(s, "sensitivity") != MIXT_OK)
        return;
    mixt__handle_remove(s);
    mixt__sense_layers_free(&s->layers);
    mixt__free(s->cells);
    mixt__free(s->rows);
    mixt__free(s);
}

/* ---- reading ---- */

const char *mixt_sensitivity_mode_name(mixt_sensitivity_mode mode)
{
    return mode == MIXT_SENSITIVITY_KEPT ? "kept" : "lowered";
}

int64_t mixt_sensitivity_rows(const mixt_sensitivity *s)
{
    return mixt__need_open(s, "sensitivity") == MIXT_OK ? s->row_count : 0;
}

const mixt_sensitivity_row *mixt_sensitivity_row_at(const mixt_sensitivity *s, int64_t index)
{
    return index >= 0 && index < mixt_sensitivity_rows(s) ? &s->rows[index] : NULL;
}

const mixt_sensitivity_row *mixt_sensitivity_find(const mixt_sensitivity *s, const char *layer, mixt_dtype format,
                                                  mixt_sensitivity_mode mode)
{
    for (int64_t i = 0; layer && i < mixt_sensitivity_rows(s); i++)
        if (s->rows[i].format == format && s->rows[i].mode == mode && !strcmp(s->rows[i].layer, layer))
            return &s->rows[i];
    return NULL;
}

int64_t mixt_sensitivity_layers(const mixt_sensitivity *s)
{
    return mixt__need_open(s, "sensitivity") == MIXT_OK ? s->layers.count : 0;
}

const mixt_sensitivity_layer *mixt_sensitivity_layer_at(const mixt_sensitivity *s, int64_t index)
{
    return index >= 0 && index < mixt_sensitivity_layers(s) ? &s->layers.layers[index].shown : NULL;
}

mixt_sensitivity_info mixt_sensitivity_describe(const mixt_sensitivity *s)
{
    return mixt__need_open(s, "sensitivity") == MIXT_OK ? s->info : (mixt_sensitivity_info){0};
}
