/* A verification as a file of JSON: all that was measured, for mixt table and for scripts. */
#include "verify/verify.h"

#include "judge/judge.h"
#include "run/open/inputs.h"
#include "run/report/metrics.h"
#include "run/report/rows.h"
#include "store/json.h"

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
    mixt__json_set_text(o, "side", side == MIXT_VERIFY_FP32 ? "fp32" : "mixed");
    mixt__json_set(o, "seed", json_integer(v->first_seed + index));
    mixt__json_set(o, "steps", json_integer(r->steps));
    mixt__json_set(o, "skipped", json_integer(r->skipped));
    mixt__json_set(o, "not_finite", json_integer(r->not_finite));
    mixt__json_set(o, "step_seconds", mixt__rows_number(r->step_seconds));
    mixt__json_set(o, "samples_s", mixt__rows_number(samples_s));
    mixt__json_set(o, "loss", mixt__rows_number(r->loss));
    mixt__json_set(o, "accuracy", mixt__rows_number(r->accuracy));
    mixt__json_set(o, "target_steps", mixt__rows_number(r->target_steps));
    mixt__json_set(o, "tensor_cores", mixt__rows_number(r->tensor_cores));
    mixt__json_set(o, "tensor_active", mixt__rows_number(r->tensor_active));
    mixt__json_set(o, "products_share", mixt__rows_number(r->products_share));
    mixt__json_set(o, "products_active", mixt__rows_number(r->products_active));
    mixt__json_set(o, "memory", mixt__metrics_roles(&r->memory));
    return o;
}

static json_t *line_object(const mixt_verify_line *l)
{
    json_t *o = json_object();
    mixt__json_set_text(o, "name", l->name);
    mixt__json_set(o, "value", l->measured ? mixt__rows_number(l->value) : json_null());
    mixt__json_set(o, "low", mixt__rows_number(l->low));
    mixt__json_set(o, "high", mixt__rows_number(l->high));
    mixt__json_set(o, "threshold", mixt__rows_number(l->threshold));
    mixt__json_set(o, "pass", l->measured ? json_boolean(l->pass) : json_null());
    mixt__json_set_text(o, "note", l->note);
    return o;
}

static json_t *figure_object(const mixt_verify_figure *f)
{
    json_t *o = json_object();
    mixt__json_set_text(o, "name", f->name);
    mixt__json_set(o, "fp32", mixt__rows_number(f->fp32));
    mixt__json_set(o, "mixed", mixt__rows_number(f->mixed));
    mixt__json_set(o, "ratio", mixt__rows_number(f->ratio));
    mixt__json_set(o, "low", mixt__rows_number(f->low));
    mixt__json_set(o, "high", mixt__rows_number(f->high));
    return o;
}

/** The configuration as YAML, for free(); NULL: no memory. */
static char *config_text(const mixt_config *config)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    bool good = stream && mixt__config_print(config, stream, false) == MIXT_OK;
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
    mixt_verification_info info = mixt_verification_describe(v);
    json_t *all = json_object(), *lines = json_array(), *figures = json_array(), *runs = json_array();
    json_t *judgements = json_array(), *parts = json_array();
    mixt__json_set_text(all, "kind", MIXT_VERIFY_KIND);
    mixt__json_set(all, "version", json_integer(1));
    mixt__json_set_text(all, "model", v->model);
    mixt__json_set_text(all, "precision", v->precision);
    mixt__json_set_text(all, "safe", mixt_verdict_name(info.safe));
    mixt__json_set_text(all, "worth_it", mixt_verdict_name(info.worth_it));
    mixt__json_set(all, "checklist", json_boolean(info.checklist));
    for (mixt_claim c = 0; c < MIXT_CLAIM_COUNT; c++)
        if (mixt_verification_judgement(v, c))
            mixt__json_add(judgements, mixt__judgement_object(mixt_verification_judgement(v, c)));
    for (int i = 0; i < MIXT_VERIFY_PARTS; i++)
        mixt__json_add(parts, mixt__judgement_object(&v->parts[i]));
    mixt__json_set(all, "judgements", judgements);
    mixt__json_set(all, "safe_parts", parts);
    for (int i = 0; i < MIXT_VERIFY_LINES; i++)
        mixt__json_add(lines, line_object(&v->lines[i]));
    for (int64_t i = 0; i < v->seeds * MIXT_VERIFY_SIDES; i++)
        mixt__json_add(runs, run_object(v, i / MIXT_VERIFY_SIDES, (mixt_verify_side)(i % MIXT_VERIFY_SIDES)));
    for (int i = 0; i < MIXT_VERIFY_FIGURES; i++)
        mixt__json_add(figures, figure_object(&v->figures[i]));
    mixt__json_set(all, "lines", lines);
    mixt__json_set(all, "figures", figures);
    mixt__json_set(all, "runs", runs);
    mixt__json_set_text(all, "config", config);
    free(config);
    if (!json_object_get(all, "config")) { // texts that are not UTF-8 give none
        json_decref(all);
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: the configuration has a text that is not UTF-8, which JSON cannot hold", path);
    }
    return mixt__run_json_write(path, all, overwrite);
}
