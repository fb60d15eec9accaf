/* What a run will do, before it does: facts, and five lines of them for people.
 *
 * Everything is known once the run is open and validation planned: nothing is computed on data, no memory is taken.
 */
#include "run/report/summary.h"

#include "mixt/plan.h"
#include "run/open/without_data.h"
#include "run/open/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE = MIXT_LINE_TEXT };

/** Appends to a line; what does not fit is left out. */
static void add(char *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *line, const char *format, ...)
{
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, LINE - used, format, args);
    va_end(args);
}

static void add_bytes(char *line, size_t bytes, const char *what)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    add(line, "%.*f %s%s", unit == 0 || value >= 100 ? 0 : 1, value, units[unit], what);
}

/* ---- facts ---- */

static void count_parameters(const mixt__params *params, mixt_summary *s)
{
    for (int64_t i = 0; i < params->count; i++) {
        const mixt__param *p = &params->table[i];
        s->parameters += p->trainable ? p->count : 0; // the others are running statistics
        s->frozen += p->trainable && p->frozen ? p->count : 0;
    }
}

static mixt_status share_formats(const mixt_trainer *trainer, mixt_summary *s)
{
    mixt_plan_info info;
    mixt_plan_node node;
    MIXT_TRY(mixt_plan_describe(trainer, &info));
    for (int64_t i = 0; i < info.nodes; i++) {
        MIXT_TRY(mixt_plan_node_at(trainer, i, &node));
        if (node.matrix && info.matrix_flops > 0)
            s->share[node.arithmetic] += node.flops / info.matrix_flops;
    }
    return MIXT_OK;
}

/* ---- lines ---- */

/** A path without its folder. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void data_line(const mixt_summary *s, char *line)
{
    const mixt_data_info *t = s->train;
    const char *name = base_name(t->path);
    add(line, "%s%s%.60s: %lld samples to train on, ", t->kind, *name ? " " : "", name, (long long)t->samples);
    if (s->val)
        add(line, "%lld to validate on", (long long)s->val->samples);
    else
        add(line, "none to validate on");
    if (s->lengths)
        add(line, "; padded to %lld lengths", (long long)s->lengths);
    if (t->target == MIXT_TARGET_CLASS)
        add(line, "; %lld %s", (long long)t->classes, strcmp(t->kind, "pairs") ? "classes" : "captions");
    else if (t->target == MIXT_TARGET_VALUES)
        add(line, "; %lld value%s each", (long long)t->target_elements, t->target_elements == 1 ? "" : "s");
    else if (t->target == MIXT_TARGET_TEXT)
        add(line, "; texts of up to %lld letters, %lld different ones",
            (long long)t->arrays[mixt_data_array_find(t, "target")].dims[0], (long long)t->classes - 1);
}

static void add_numbers(char *line, const float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        add(line, "%s%.3g", i ? ", " : "", (double)numbers[i]);
}

/** "user of 300, item of 200": several inputs by their names. */
static void name_inputs(const mixt_data_info *t, char *line)
{
    for (int i = 0; i < t->array_count && !t->arrays[i].target; i++) {
        const mixt_data_array *a = &t->arrays[i];
        add(line, "%s%s", i ? ", " : "", a->name);
        if (a->ids)
            add(line, " of %lld", (long long)a->ids);
        for (int k = 0; k < a->rank; k++)
            add(line, "%s%lld", k ? " x " : " ", (long long)a->dims[k]);
    }
}

static void input_line(const mixt_summary *s, char *line)
{
    enum { SHOWN = 4 }; // means of so many channels fit into a line
    const mixt_data_info *t = s->train;
    bool plain = true;
    if (!strcmp(t->kind, "labelled")) {
        add(line, "texts of up to %lld tokens, a vocabulary of %lld", (long long)t->arrays[0].dims[0],
            (long long)t->arrays[0].ids);
        return;
    }
    if (t->array_count > 2) {
        name_inputs(t, line);
        return;
    }
    for (int i = 0; i < t->input_rank; i++)
        add(line, "%s%lld", i ? " x " : "", (long long)t->input_dims[i]);
    if (t->target == MIXT_TARGET_TOKENS)
        add(line, " tokens, a vocabulary of %lld", (long long)t->classes);
    else if (t->input_rank == 1)
        add(line, " numbers");
    else if (t->input_rank == 3)
        add(line, " (height, width, channels)");
    for (int64_t c = 0; c < t->channels; c++)
        plain = plain && t->mean[c] == 0 && t->std[c] == 1;
    if (plain) {
        add(line, "%s", t->channels ? ", not normalised" : "");
        return;
    }
    if (t->channels > SHOWN) {
        add(line, ", each normalised by its own mean and std");
        return;
    }
    add(line, "; normalised: mean ");
    add_numbers(line, t->mean, t->channels);
    add(line, ", std ");
    add_numbers(line, t->std, t->channels);
}

static void model_line(const mixt_summary *s, char *line)
{
    static const char *const losses[] = {"cross-entropy", "mean squared error", "binary cross-entropy",
                                         "a loss of its own"};
    const mixt_data_info *t = s->train;
    add(line, "%s, %lld parameters", s->model, (long long)s->parameters);
    if (s->frozen)
        add(line, " (%lld of them frozen)", (long long)s->frozen);
    if (t->array_count > 2 && !strcmp(t->arrays[1].name, "caption"))
        add(line, "; matches images and captions");
    else if (t->array_count > 2 && !strcmp(t->arrays[0].name, "source"))
        add(line, "; translates");
    else if (t->target == MIXT_TARGET_CLASS)
        add(line, "; a classifier of %lld classes", (long long)t->classes);
    else
        add(line, "; predicts %s",
            t->target == MIXT_TARGET_VALUES ? "values"
            : t->target == MIXT_TARGET_TEXT ? "the text"
            : t->next_tokens                ? "the next token"
                                            : "hidden tokens");
    add(line, " by %s", t->target == MIXT_TARGET_TEXT ? "CTC" : losses[s->loss]);
    if (*s->teacher)
        add(line, " and from %.80s", s->teacher);
}

/** The format with the largest share of those not done; MIXT_DTYPE_NONE: none is left. */
static mixt_dtype next_format(const mixt_summary *s, const bool *done)
{
    int found = MIXT_DTYPE_NONE;
    for (int i = 0; i < MIXT_DTYPE_COUNT; i++)
        if (!done[i] && s->share[i] > 0 && (found == MIXT_DTYPE_NONE || s->share[i] > s->share[found]))
            found = i;
    return (mixt_dtype)found;
}

static void formats_line(const mixt_summary *s, char *line)
{
    bool done[MIXT_DTYPE_COUNT] = {false};
    const char *what = "% of matrix work in ";
    add(line, "%.60s: ", base_name(s->policy));
    for (mixt_dtype d; (d = next_format(s, done)) != MIXT_DTYPE_NONE; what = "% in ") {
        double share = s->share[d] > 1 - 1e-9 ? 1 : fmin(s->share[d], 0.99); // all only where there is nothing else
        add(line, "%.*f%s%s, ", share < 0.01 ? 2 : 0, 100 * share, what, mixt_dtype_name(d));
        done[d] = true;
    }
    add(line, "norms and loss in fp32; ");
    if (s->loss_scale > 0)
        add(line, "loss scale %g%s", s->loss_scale, s->scale_moves ? ", dynamic" : "");
    else
        add(line, "no loss scaling");
}

static void memory_line(const mixt_summary *s, char *line)
{
    const mixt_run_memory *m = &s->run_memory;
    add_bytes(line, s->memory.total, " for the step, ");
    if (m->validation.host)
        add_bytes(line, m->validation.host + m->validation.device, " for validation, ");
    add_bytes(line, m->data.host + m->tokens.host, " for the data; in all ");
    if (m->total.device)
        add_bytes(line, m->total.device, " on the GPU, ");
    add_bytes(line, m->total.host, m->total.device ? " on the host" : "");
    add(line, " (%s)", s->device);
}

/** Training opens no part for testing: it is counted where a share of the data was asked for. */
static void add_tests(const mixt_run *run, char *line)
{
    mixt_data *test;
    if (!(mixt__config_float(run->config, MIXT_KEY_DATA_TEST_FRACTION) > 0) ||
        mixt__experiment_part(&run->experiment, "test", &test) != MIXT_OK)
        return;
    add(line, "; %lld more to test on", (long long)mixt_data_describe(test)->samples);
    mixt_data_close(test);
}

static void write_lines(mixt_run *run, mixt_summary *s)
{
    static const struct {
        const char *name;
        void (*write)(const mixt_summary *s, char *line);
    } lines[MIXT_SUMMARY_LINES] = {
        {"data", data_line},       {"input", input_line},   {"model", model_line},
        {"formats", formats_line}, {"memory", memory_line},
    };
    for (int i = 0; i < MIXT_SUMMARY_LINES; i++) {
        char *line = strcpy(run->summary[i], "");
        add(line, "%-8s ", lines[i].name);
        lines[i].write(s, line);
        if (i == 0)
            add_tests(run, line);
        s->lines[i] = line;
    }
}

mixt_status mixt_run_summary(mixt_run *run, mixt_summary *summary)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(summary));
    MIXT_TRY(mixt__without_data_data(run));
    const mixt__experiment *e = &run->experiment;
    const mixt__trainer *t = e->trainer->inner;
    *summary = (mixt_summary){.train = mixt_data_describe(e->train)};
    summary->val = e->val ? mixt_data_describe(e->val) : NULL;
    summary->model = mixt__config_string(run->config, MIXT_KEY_MODEL);
    summary->policy = run->precision ? run->precision : mixt__config_string(run->config, MIXT_KEY_PRECISION);
    summary->device = e->context->device->backend->name;
    summary->loss = mixt__trainer_model(t)->loss;
    summary->lengths = mixt_run_buckets(run);
    summary->teacher = mixt__config_string(run->config, MIXT_KEY_DISTILL_TEACHER);
    if (mixt__trainer_settings_of(t)->scaling.enabled) {
        summary->loss_scale = (double)mixt__trainer_settings_of(t)->scaling.initial;
        summary->scale_moves = mixt__trainer_settings_of(t)->scaling.dynamic;
    }
    count_parameters(mixt__trainer_params(t), summary);
    MIXT_TRY(share_formats(e->trainer, summary));
    MIXT_TRY(mixt_trainer_memory(e->trainer, &summary->memory));
    MIXT_TRY(mixt__run_plan_memory(run, &summary->run_memory));
    write_lines(run, summary);
    return MIXT_OK;
}

/** What became of the data, under the line that names it. */
static void tell_notes(mixt_run *run, const mixt_data_info *data)
{
    for (const char *line = data->notes; line && *line;) {
        int length = (int)strcspn(line, "\n");
        mixt__run_note(run, false, "%-8s %.*s", "", length, line);
        line += length + (line[length] == '\n');
    }
}

void mixt__summary_tell(mixt_run *run)
{
    mixt_summary summary;
    if (mixt_run_summary(run, &summary) == MIXT_OK) // what is wrong with it, the first step says
        for (int i = 0; i < MIXT_SUMMARY_LINES; i++) {
            mixt__run_note(run, false, "%s", summary.lines[i]);
            if (i == 0)
                tell_notes(run, summary.train);
        }
}
