/* A verification as a file of JSON: all that was measured, for mixt table and for scripts. */
#include "verify/verify.h"

#include "run/open/inputs.h"
#include "run/report/metrics.h"
#include "run/report/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *run_object(const mixt_verification *v, int64_t index, mixt_verify_side side)
{
    const mixt_verify_run *r = &v->runs[index][side];
    int64_t batch = mixt__config_int(v->config, MIXT_KEY_TRAIN_BATCH),
            accumulate = mixt__config_int(v->config, MIXT_KEY_TRAIN_ACCUMULATE);
    double samples_s = batch > 0 ? (double)(batch * accumulate) / r->step_seconds : (double)NAN;
    json_t *o = json_object();
    json_object_set_new(o, "side", json_string(side == MIXT_VERIFY_FP32 ? "fp32" : "mixed"));
    json_object_set_new(o, "seed", json_integer(v->first_seed + index));
    json_object_set_new(o, "steps", json_integer(r->steps));
    json_object_set_new(o, "skipped", json_integer(r->skipped));
    json_object_set_new(o, "not_finite", json_integer(r->not_finite));
    json_object_set_new(o, "step_seconds", mixt__rows_number(r->step_seconds));
    json_object_set_new(o, "samples_s", mixt__rows_number(samples_s));
    json_object_set_new(o, "loss", mixt__rows_number(r->loss));
    json_object_set_new(o, "accuracy", mixt__rows_number(r->accuracy));
    json_object_set_new(o, "target_steps", mixt__rows_number(r->target_steps));
    json_object_set_new(o, "tensor_cores", mixt__rows_number(r->tensor_cores));
    json_object_set_new(o, "tensor_active", mixt__rows_number(r->tensor_active));
    json_object_set_new(o, "products_share", mixt__rows_number(r->products_share));
    json_object_set_new(o, "products_active", mixt__rows_number(r->products_active));
    json_object_set_new(o, "memory", mixt__metrics_roles(&r->memory));
    return o;
}

static json_t *line_object(const mixt_verify_line *l)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(l->name));
    json_object_set_new(o, "value", l->measured ? mixt__rows_number(l->value) : json_null());
    json_object_set_new(o, "low", mixt__rows_number(l->low));
    json_object_set_new(o, "high", mixt__rows_number(l->high));
    json_object_set_new(o, "threshold", mixt__rows_number(l->threshold));
    json_object_set_new(o, "pass", l->measured ? json_boolean(l->pass) : json_null());
    json_object_set_new(o, "note", json_string(l->note));
    return o;
}

static json_t *figure_object(const mixt_verify_figure *f)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(f->name));
    json_object_set_new(o, "fp32", mixt__rows_number(f->fp32));
    json_object_set_new(o, "mixed", mixt__rows_number(f->mixed));
    json_object_set_new(o, "ratio", mixt__rows_number(f->ratio));
    json_object_set_new(o, "low", mixt__rows_number(f->low));
    json_object_set_new(o, "high", mixt__rows_number(f->high));
    return o;
}

/** The configuration as YAML, for free(); NULL: no memory. */
static char *config_text(const mixt_config *config)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    bool good = stream && mixt_config_print(config, stream, false) == MIXT_OK;
    if (stream && fclose(stream))
        good = false;
    if (good)
        return text;
    free(text);
    return NULL;
}

mixt_status mixt_verification_write(const mixt_verification *v, const char *path, bool overwrite)
{
    MIXT_TRY(mixt__need_open(v, "verification"));
    MIXT_TRY(mixt__need(path));
    char *config = config_text(v->config);
    if (!config)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %s", path);
    json_t *all = json_object(), *lines = json_array(), *figures = json_array(), *runs = json_array();
    json_object_set_new(all, "kind", json_string(MIXT_VERIFY_KIND));
    json_object_set_new(all, "version", json_integer(1));
    json_object_set_new(all, "model", json_string(v->model));
    json_object_set_new(all, "precision", json_string(v->precision));
    json_object_set_new(all, "accepted", json_boolean(mixt_verification_describe(v).accepted));
    for (int i = 0; i < MIXT_VERIFY_LINES; i++)
        json_array_append_new(lines, line_object(&v->lines[i]));
    for (int64_t i = 0; i < v->seeds * MIXT_VERIFY_SIDES; i++)
        json_array_append_new(runs, run_object(v, i / MIXT_VERIFY_SIDES, (mixt_verify_side)(i % MIXT_VERIFY_SIDES)));
    for (int i = 0; i < MIXT_VERIFY_FIGURES; i++)
        json_array_append_new(figures, figure_object(&v->figures[i]));
    json_object_set_new(all, "lines", lines);
    json_object_set_new(all, "figures", figures);
    json_object_set_new(all, "runs", runs);
    json_object_set_new(all, "config", json_string(config));
    free(config);
    if (!json_object_get(all, "config")) { // texts that are not UTF-8 give none
        json_decref(all);
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: the configuration has a text that is not UTF-8, which JSON cannot hold", path);
    }
    return mixt__run_json_write(path, all, overwrite);
}
