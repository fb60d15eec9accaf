/* Reports: predictions counted against what they should have been.
 *
 * Values keep a running mean and sum of squared deviations of their targets (Welford), so that one pass is enough and
 * large offsets cost no digits. Shares are only computed when asked for.
 */
#include "mixt/report.h"

#include "api/api.h"
#include "mixt/predict.h"

#include <math.h>
#include <string.h>

/** One output of a model of values. */
typedef struct value_sums {
    double mean, varied; // of the targets: mean, sum of squared deviations from it
    double missed;       // sum of squared errors
} value_sums;

struct mixt_report {
    mixt__handle handle;
    mixt_report_info info;
    int64_t outputs;
    mixt_class_figures *figures; // classes
    int64_t *confusion;
    value_sums *values; // values
    double distance;    // sum of absolute errors
};

/* ---- adding ---- */

static int64_t best_of(const float *outputs, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}

static mixt_status add_class(mixt_report *r, const float *outputs, int32_t label)
{
    if (label < 0 || label >= r->outputs)
        return mixt__fail(MIXT_ERROR_DATA, "a sample of class %d, but the model knows %lld", (int)label,
                          (long long)r->outputs);
    int64_t guess = best_of(outputs, r->outputs);
    r->figures[label].count++;
    r->figures[guess].guessed++;
    r->figures[label].right += guess == label;
    if (r->confusion)
        r->confusion[label * r->outputs + guess]++;
    return MIXT_OK;
}

static void add_values(mixt_report *r, const float *outputs, const float *targets)
{
    double seen = (double)r->info.samples + 1;
    for (int64_t i = 0; i < r->outputs; i++) {
        value_sums *v = &r->values[i];
        double target = (double)targets[i], error = (double)outputs[i] - target, off = target - v->mean;
        v->mean += off / seen;
        v->varied += off * (target - v->mean);
        v->missed += error * error;
        r->distance += fabs(error);
    }
}

mixt_status mixt_report_add(mixt_report *r, const float *outputs, const void *targets, int64_t count)
{
    MIXT_TRY(mixt__need_open(r, "report"));
    MIXT_TRY(mixt__need(outputs));
    MIXT_TRY(mixt__need(targets));
    for (int64_t i = 0; i < count; i++) {
        const float *own = outputs + i * r->outputs;
        MIXT_TRY(mixt_outputs_check(own, r->outputs));
        if (r->figures)
            MIXT_TRY(add_class(r, own, ((const int32_t *)targets)[i]));
        else
            add_values(r, own, (const float *)targets + i * r->outputs);
        r->info.samples++;
    }
    return MIXT_OK;
}

/* ---- the figures ---- */

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : (double)NAN;
}

/** The mean of what is there: a class that never came up or was never guessed has no share. */
typedef struct mean {
    double sum;
    int64_t count;
} mean;

static void take(mean *m, double value)
{
    if (isnan(value))
        return;
    m->sum += value;
    m->count++;
}

static double value_of(mean m)
{
    return share(m.sum, (double)m.count);
}

static void describe_classes(mixt_report *r)
{
    mean precision = {0}, recall = {0}, f1 = {0};
    int64_t right = 0;
    for (int64_t i = 0; i < r->outputs; i++) {
        mixt_class_figures *f = &r->figures[i];
        f->precision = share((double)f->right, (double)f->guessed);
        f->recall = share((double)f->right, (double)f->count);
        f->f1 = share(2 * (double)f->right, (double)(f->count + f->guessed));
        take(&precision, f->precision);
        take(&recall, f->recall);
        take(&f1, f->count ? f->f1 : (double)NAN);
        right += f->right;
    }
    r->info.accuracy = share((double)right, (double)r->info.samples);
    r->info.precision = value_of(precision);
    r->info.recall = value_of(recall);
    r->info.f1 = value_of(f1);
}

static void describe_values(mixt_report *r)
{
    double numbers = (double)(r->info.samples * r->outputs), missed = 0;
    mean r2 = {0};
    for (int64_t i = 0; i < r->outputs; i++) {
        missed += r->values[i].missed;
        take(&r2, 1 - share(r->values[i].missed, r->values[i].varied));
    }
    r->info.mae = share(r->distance, numbers);
    r->info.rmse = sqrt(share(missed, numbers));
    r->info.r2 = value_of(r2);
}

const mixt_report_info *mixt_report_describe(mixt_report *r)
{
    static const mixt_report_info none;
    if (!r || mixt__need_open(r, "report") != MIXT_OK)
        return &none;
    if (r->figures)
        describe_classes(r);
    else
        describe_values(r);
    return &r->info;
}

/* ---- making ---- */

mixt_status mixt_report_new(mixt_target_kind target, int64_t outputs, mixt_report **report)
{
    MIXT_TRY(mixt__need(report));
    *report = NULL;
    if ((target != MIXT_TARGET_CLASS && target != MIXT_TARGET_VALUES) || outputs < 1)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "a report is on classes or on values, with at least one output");
    mixt_report *r = mixt__alloc(sizeof *r);
    bool good = r != NULL, classes = target == MIXT_TARGET_CLASS;
    if (good) {
        mixt__handle_add(&r->handle, r, "report", NULL);
        r->outputs = outputs;
        r->figures = classes ? mixt__alloc((size_t)outputs * sizeof *r->figures) : NULL;
        r->values = classes ? NULL : mixt__alloc((size_t)outputs * sizeof *r->values);
        if (classes && outputs <= MIXT_CONFUSION_MAX)
            r->confusion = mixt__alloc((size_t)(outputs * outputs) * sizeof *r->confusion);
        good = classes ? r->figures && (r->confusion || outputs > MIXT_CONFUSION_MAX) : r->values != NULL;
    }
    if (!good) {
        mixt_report_free(r);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a report on %lld outputs", (long long)outputs);
    }
    r->info = (mixt_report_info){.figures = r->figures, .confusion = r->confusion, .classes = classes ? outputs : 0};
    r->info.accuracy = r->info.precision = r->info.recall = r->info.f1 = NAN;
    r->info.mae = r->info.rmse = r->info.r2 = NAN;
    *report = r;
    return MIXT_OK;
}

void mixt_report_free(mixt_report *report)
{
    if (!report || mixt__need_open(report, "report") != MIXT_OK)
        return;
    mixt__handle_remove(report);
    mixt__free(report->figures);
    mixt__free(report->confusion);
    mixt__free(report->values);
    mixt__free(report);
}

/** What one batch of predictions needs; each is NULL where there was no memory. */
typedef struct batch {
    void *input, *target;
    float *output;
} batch;

static mixt_status predict_all(mixt_report *r, mixt_trainer *t, const mixt_data *data, const batch *b, int64_t size)
{
    int64_t samples = mixt_data_describe(data)->samples, valid;
    for (int64_t first = 0; first < samples; first += size) {
        int64_t count = samples - first < size ? samples - first : size;
        MIXT_TRY(mixt_data_read(data, first, count, b->input, b->target, &valid));
        MIXT_TRY(mixt_trainer_predict(t, b->input, valid, b->output));
        MIXT_TRY(mixt_report_add(r, b->output, b->target, valid));
    }
    return MIXT_OK;
}

/** Samples and targets are those that the trainer was compiled for. */
static mixt_status check_shapes(const mixt_report *r, const mixt_trainer *t, const mixt_data_info *info)
{
    const mixt__batch_spec *spec = mixt__trainer_spec(t->inner);
    int64_t elements = 0;
    mixt__array a;
    for (int i = 0; mixt__spec_array(spec, i, &a) && !a.target; i++)
        elements += mixt__shape_count(&a.shape) / a.shape.dims[0];
    if (info->input_elements != elements || info->input_dtype != spec->input_dtype)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s (%s): samples of %lld numbers, but the model takes %lld", info->path,
                          info->split, (long long)info->input_elements, (long long)elements);
    if (r->values && info->target_elements != r->outputs)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s (%s): %lld values per sample, but the model gives %lld", info->path,
                          info->split, (long long)info->target_elements, (long long)r->outputs);
    return MIXT_OK;
}

static mixt_status fill(mixt_report *r, mixt_trainer *t, const mixt_data *data)
{
    const mixt_data_info *info = mixt_data_describe(data);
    int64_t size = mixt__trainer_settings_of(t->inner)->eval_batch;
    MIXT_TRY(check_shapes(r, t, info));
    batch b = {.input = mixt__alloc(mixt_data_input_bytes(data, size)),
               .target = mixt__alloc(mixt_data_target_bytes(data, size)),
               .output = mixt__alloc((size_t)(size * r->outputs) * sizeof(float))};
    mixt_status status = b.input && b.target && b.output
                             ? predict_all(r, t, data, &b, size)
                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a batch of predictions");
    mixt__free(b.input);
    mixt__free(b.target);
    mixt__free(b.output);
    return status;
}

mixt_status mixt_report_of(mixt_trainer *trainer, const mixt_data *data, mixt_report **report)
{
    int64_t outputs;
    MIXT_TRY(mixt__need(report));
    *report = NULL;
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__need_made(data, "data"));
    if (mixt__trainer_model(trainer->inner)->loss == MIXT_LOSS_BCE)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "a report on a model trained with binary cross-entropy");
    MIXT_TRY(mixt_trainer_outputs(trainer, &outputs));
    MIXT_TRY(mixt_report_new(mixt_data_describe(data)->target, outputs, report));
    mixt_status status = fill(*report, trainer, data);
    if (status != MIXT_OK) {
        mixt_report_free(*report);
        *report = NULL;
    }
    return status;
}
