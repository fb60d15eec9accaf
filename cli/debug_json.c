/* A look into a step as JSON. */
#include "cli/debug_print.h"

#include "cli/json.h"

#include <fnmatch.h>

static const char *pass_of(bool backward)
{
    return backward ? "backward" : "forward";
}

static void set_real(json_t *o, const char *name, double value)
{
    cli_json_set(o, name, cli_json_real(value));
}

/** Exponents that occur: {"-3": 120, …}, by powers of two. */
static json_t *exponents_json(const mixt_debug_value *v)
{
    json_t *o = json_object();
    char name[16];
    for (int e = 1; v->exponents && e < MIXT_DEBUG_EXPONENTS - 1; e++)
        if (v->exponents[e]) {
            snprintf(name, sizeof name, "%d", e - 127);
            cli_json_set(o, name, json_integer((json_int_t)v->exponents[e]));
        }
    return o;
}

static json_t *value_json(const mixt_debug_value *v)
{
    json_t *o = cli_json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "tensor", v->tensor, "layer",
                              v->layer, "op", v->op, "pass", pass_of(v->backward), "gradient_of", v->name, "format",
                              mixt_dtype_name(v->dtype), "count", (json_int_t)v->count, "zeros", (json_int_t)v->zeros,
                              "nan", (json_int_t)v->nan, "inf", (json_int_t)v->inf);
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"mean", v->mean},
                   {"std", v->std},
                   {"min", v->min},
                   {"max", v->max},
                   {"amax", v->amax},
                   {"margin", v->margin},
                   {"tiny", v->tiny},
                   {"beyond_fp16", v->beyond_fp16},
                   {"flushed_fp16", v->flushed_fp16},
                   {"error", v->error},
                   {"inherited_error", v->inherited},
                   {"snr", v->snr},
                   {"flushed", v->flushed},
                   {"fp32_amax", v->reference}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        set_real(o, numbers[i].name, numbers[i].value);
    cli_json_set(o, "compared", json_boolean(v->compared)); // an error that is null then has no end
    cli_json_set(o, "exponents", exponents_json(v));
    return o;
}

static json_t *issues_json(const mixt_debug *d, mixt_debug_kind kind)
{
    json_t *list = json_array();
    const mixt_debug_issue *issue;
    for (int64_t i = 0; (issue = mixt_debug_issue_at(d, i)); i++)
        if (issue->kind == kind) {
            const mixt_debug_value *v = mixt_debug_value_at(d, issue->value);
            cli_json_add(list, cli_json_pack("{s:s, s:s, s:s}", "layer", v ? v->layer : "", "text", issue->text,
                                             "remedy", issue->remedy));
        }
    return list;
}

/** An input of the op that made the first number that is not finite. */
static json_t *input_json(const mixt_debug_value *v)
{
    json_t *o = cli_json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "made_by", v->op, "layer", v->layer,
                              "parameter", v->name, "format", mixt_dtype_name(v->dtype), "count", (json_int_t)v->count,
                              "zeros", (json_int_t)v->zeros, "nan", (json_int_t)v->nan, "inf", (json_int_t)v->inf);
    set_real(o, "min", v->min);
    set_real(o, "max", v->max);
    set_real(o, "mean", v->mean);
    set_real(o, "std", v->std);
    return o;
}

static json_t *origin_json(const mixt_debug *d)
{
    const mixt_debug_origin *from = mixt_debug_origin_of(d);
    if (!from)
        return json_null();
    json_t *o = cli_json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:b, s:I, s:I}", "step",
                              (json_int_t)mixt_debug_describe(d).step.step, "pass", pass_of(from->backward), "layer",
                              from->layer, "op", from->op, "cause", mixt_debug_cause_name(from->cause), "format",
                              mixt_dtype_name(from->value.dtype), "micro_step", (json_int_t)from->pass + 1, "fused",
                              from->fused, "nan", (json_int_t)from->value.nan, "inf", (json_int_t)from->value.inf);
    json_t *inputs = json_array();
    for (int i = 0; i < from->input_count; i++)
        cli_json_add(inputs, input_json(&from->inputs[i]));
    cli_json_set(o, "parameter", *from->source ? cli_json_string(from->source) : json_null());
    cli_json_set(o, "sample", from->sample >= 0 ? json_integer((json_int_t)from->sample) : json_null());
    cli_json_set(o, "inputs", inputs);
    return o;
}

static json_t *side_json(const mixt_debug_side *s)
{
    json_t *o = json_object();
    if (!s->values)
        return o;
    set_real(o, "error", s->error);
    set_real(o, "inherited_error", s->inherited);
    set_real(o, "flushed", s->flushed);
    set_real(o, "margin", s->margin);
    cli_json_set(o, "nonfinite", json_integer((json_int_t)s->nonfinite));
    return o;
}

static json_t *layers_json(const mixt_debug *d)
{
    const mixt_debug_layer *l;
    json_t *list = json_array();
    for (int64_t i = 0; (l = mixt_debug_layer_at(d, i)); i++)
        cli_json_add(list, cli_json_pack("{s:s, s:o, s:o, s:b, s:f, s:s}", "layer", l->name, "forward",
                                         side_json(&l->forward), "backward", side_json(&l->backward), "jumps", l->jumps,
                                         "blame", l->blame, "why", l->why));
    return list;
}

static json_t *use_json(const mixt_debug *d)
{
    const mixt_debug_use *u;
    json_t *list = json_array();
    for (int64_t i = 0; (u = mixt_debug_use_at(d, i)); i++)
        cli_json_add(list,
                     cli_json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "format", mixt_dtype_name(u->dtype), "ops",
                                   (json_int_t)u->ops, "values", (json_int_t)u->values, "numbers",
                                   (json_int_t)u->numbers, "value_bytes", (json_int_t)u->value_bytes, "parameters",
                                   (json_int_t)u->parameters, "parameter_bytes", (json_int_t)u->parameter_bytes));
    return list;
}

void cli_debug_json(const mixt_debug *d, const char *layer, const char *checkpoint, FILE *stream)
{
    mixt_debug_info info = mixt_debug_describe(d);
    const mixt_debug_value *v;
    json_t *remedies = json_array(), *tensors = json_array();
    json_t *o =
        cli_json_pack("{s:I, s:o, s:o, s:o}", "step", (json_int_t)info.step.step, "loss", cli_json_real(info.step.loss),
                      "loss_scale", cli_json_real(info.step.scale), "grad_norm", cli_json_real(info.step.grad_norm));
    set_real(o, "loss_in_fp32", info.full_loss);
    cli_json_set(o, "checkpoint", *checkpoint ? cli_json_string(checkpoint) : json_null());
    cli_json_set(o, "first_nonfinite", origin_json(d));
    cli_json_set(o, "bad_parameter", *info.source ? cli_json_string(info.source) : json_null());
    cli_json_set(o, "nonfinite_in_fp32", info.shadow ? json_integer((json_int_t)info.full_nonfinite) : json_null());
    cli_json_set(o, "gradient_issues", issues_json(d, MIXT_DEBUG_GRADIENT));
    cli_json_set(o, "precision_issues", issues_json(d, MIXT_DEBUG_PRECISION));
    for (int64_t i = 0; i < info.issues; i++)
        cli_json_add(remedies,
                     cli_json_format("%s: %s", mixt_debug_issue_at(d, i)->text, mixt_debug_issue_at(d, i)->remedy));
    for (int64_t i = 0; (v = mixt_debug_value_at(d, i)); i++)
        if (!layer || !fnmatch(layer, v->layer, 0))
            cli_json_add(tensors, value_json(v));
    cli_json_set(o, "recommendations", remedies);
    cli_json_set(o, "precision_use", use_json(d));
    cli_json_set(o, "layers", layers_json(d));
    cli_json_set(o, "tensors", tensors);
    cli_json_print(o, stream, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
}
