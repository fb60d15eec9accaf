/* predictions.json: figures of the validation part, and of a few classes the whole confusion matrix, of many the most
 * frequent mistakes, of values the first targets beside their predictions.
 */
#include "run/report/predictions.h"

#include "base/alloc.h"
#include "mixt/report.h"
#include "run/open/inputs.h"
#include "store/json.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CLASSES_SHOWN = 24, MISTAKES_SHOWN = 12, VALUES_SHOWN = 300, MEMORY_MOST = 256 << 20 };

/** The name of a class, or its number. */
static json_t *class_name(const mixt_data_info *data, int64_t class)
{
    return data->class_names ? mixt__json_string(data->class_names[class]) : json_sprintf("%lld", (long long)class);
}

static json_t *matrix_of(const mixt_report_info *r)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < r->classes; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < r->classes; j++)
            mixt__json_add(row, json_integer(r->confusion[i * r->classes + j]));
        mixt__json_add(rows, row);
    }
    return rows;
}

/** The place of the most frequent mistake that comes behind the one at `before`; -1: there is none. */
static int64_t next_mistake(const mixt_report_info *r, int64_t before)
{
    int64_t best = -1;
    for (int64_t i = 0; i < r->classes * r->classes; i++) {
        int64_t count = r->confusion[i];
        bool right = i / r->classes == i % r->classes;
        bool behind = before < 0 || count < r->confusion[before] || (count == r->confusion[before] && i > before);
        if (!right && count && behind && (best < 0 || count > r->confusion[best]))
            best = i;
    }
    return best;
}

static json_t *mistakes_of(const mixt_report_info *r, const mixt_data_info *data)
{
    json_t *list = json_array();
    int64_t at = -1;
    for (int i = 0; i < MISTAKES_SHOWN && (at = next_mistake(r, at)) >= 0; i++) {
        json_t *one = json_array();
        mixt__json_add(one, class_name(data, at / r->classes));
        mixt__json_add(one, class_name(data, at % r->classes));
        mixt__json_add(one, json_integer(r->confusion[at]));
        mixt__json_add(list, one);
    }
    return list;
}

static json_t *names_of(const mixt_data_info *data)
{
    json_t *names = json_array();
    for (int64_t c = 0; c < data->classes; c++)
        mixt__json_add(names, class_name(data, c));
    return names;
}

static void add_classes(json_t *o, const mixt_report_info *r, const mixt_data_info *data)
{
    mixt__json_set(o, "accuracy", json_real(r->accuracy));
    if (isfinite(r->f1))
        mixt__json_set(o, "f1", json_real(r->f1));
    if (r->confusion && r->classes <= CLASSES_SHOWN && r->classes == data->classes) {
        mixt__json_set(o, "classes", names_of(data));
        mixt__json_set(o, "confusion", matrix_of(r));
    } else if (r->confusion && r->classes == data->classes) {
        mixt__json_set(o, "mistakes", mistakes_of(r, data));
    }
}

/** The first value of some samples, targets beside predictions. */
static mixt_status add_values(json_t *o, mixt_trainer *trainer, const mixt_data *data)
{
    const mixt_data_info *info = mixt_data_describe(data);
    int64_t size = mixt__trainer_settings_of(trainer->inner)->eval_batch, outputs, valid;
    int64_t shown = info->samples < VALUES_SHOWN ? info->samples : VALUES_SHOWN;
    MIXT_TRY(mixt_trainer_outputs(trainer, &outputs));
    void *input = mixt__alloc(mixt_data_input_bytes(data, size)),
         *target = mixt__alloc(mixt_data_target_bytes(data, size));
    float *output = mixt__alloc((size_t)(size * outputs) * sizeof *output);
    json_t *list = json_array();
    mixt_status status = input && target && output ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to predict");
    for (int64_t first = 0; first < shown && status == MIXT_OK; first += size) {
        int64_t count = shown - first < size ? shown - first : size;
        status = mixt_data_read(data, first, count, input, target, &valid);
        if (status == MIXT_OK)
            status = mixt_trainer_predict(trainer, input, valid, output);
        for (int64_t i = 0; i < valid && status == MIXT_OK; i++)
            mixt__json_add(list, json_pack("[f, f]", (double)((const float *)target)[i * info->target_elements],
                                           (double)output[i * outputs]));
    }
    mixt__free(input);
    mixt__free(target);
    mixt__free(output);
    mixt__json_set(o, "values", list);
    return status;
}

static mixt_status predict(mixt_run *run, const mixt_data *data)
{
    char path[1200];
    mixt_report *report;
    mixt_trainer *trainer = run->experiment.trainer;
    MIXT_TRY(mixt_report_of(trainer, data, &report));
    const mixt_report_info *r = mixt_report_describe(report);
    json_t *o = json_pack("{s:I, s:s, s:I}", "step", (json_int_t)run->result.weights_step, "part", "val", "samples",
                          (json_int_t)r->samples);
    mixt_status status = MIXT_OK;
    if (r->classes) {
        add_classes(o, r, mixt_data_describe(data));
    } else {
        mixt__json_set(o, "mae", json_real(r->mae));
        mixt__json_set(o, "rmse", json_real(r->rmse));
        if (isfinite(r->r2))
            mixt__json_set(o, "r2", json_real(r->r2));
        status = add_values(o, trainer, data);
    }
    mixt_report_free(report);
    if (status == MIXT_OK)
        return mixt__run_json_write(mixt__run_dir_file(&run->dir, MIXT_PREDICTIONS_FILE, path), o, true);
    json_decref(o);
    return status;
}

void mixt__predictions_write(mixt_run *run)
{
    const mixt_data *data = run->experiment.val;
    if (!data || run->group || run->dir.silent)
        return;
    const mixt_data_info *info = mixt_data_describe(data);
    bool told = info->target == MIXT_TARGET_CLASS || info->target == MIXT_TARGET_VALUES;
    if (!told || !info->samples || !strcmp(info->kind, "pairs") ||
        mixt__trainer_model(run->experiment.trainer->inner)->loss == MIXT_LOSS_BCE || run->result.diverged)
        return;
    mixt_bytes more = run->result.run_memory.prediction; // training plans none of it
    if (more.host + more.device > MEMORY_MOST || mixt__config_int(run->config, MIXT_KEY_TRAIN_MEMORY))
        return;
    if (predict(run, data) != MIXT_OK)
        mixt__run_note(run, true, "%s was not written: %s", MIXT_PREDICTIONS_FILE, mixt_error_text());
}
