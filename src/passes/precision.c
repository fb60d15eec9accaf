/* The precision pass: rebuilds the graph with the formats that the policy asks for, inserting casts where they differ.
 *
 * A parameter never gets a cast: it has a working copy in the format its users want, kept in step by the optimizer.
 * (Only where two low formats of one parameter are wanted does the second come by a cast from the master; and a cast
 * by hand reads the master.)
 */
#include "passes/passes.h"

#include "graph/op.h"
#include "num/num.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <fnmatch.h>
#include <string.h>

typedef struct rewrite {
    const mixt__graph *source;
    mixt__graph *result;
    const mixt__policy *policy;
    bool typed_input;
    int32_t *map;                       // source value → result value
    int32_t (*casts)[MIXT_DTYPE_COUNT]; // by source value: casts made so far
} rewrite;

static bool rule_matches(const mixt__policy_rule *rule, const mixt__node *node)
{
    const char *op = node->op->acts_as ? node->op->acts_as : node->op->name;
    return (!rule->layer || !fnmatch(rule->layer, node->layer, 0)) && (!rule->op || !fnmatch(rule->op, op, 0));
}

/** A rule that no node of the training graph matches is a slip of the pen: the layer it meant would silently stay low.
 */
static mixt_status check_rules(const mixt__graph *source, const mixt__policy *policy)
{
    for (int64_t r = 0; source->training && r < policy->rule_count; r++) {
        const mixt__policy_rule *rule = &policy->rules[r];
        bool matched = false;
        for (int64_t i = 0; i < source->node_count && !matched; i++)
            matched = rule_matches(rule, &source->nodes[i]);
        if (!matched)
            return mixt__fail(MIXT_ERROR_CONFIG,
                              "policy rule %lld (layer '%s', op '%s') matches nothing in this model: 'mixt plan CONFIG "
                              "--graph' lists layers and ops",
                              (long long)(r + 1), rule->layer ? rule->layer : "*", rule->op ? rule->op : "*");
    }
    return MIXT_OK;
}

/** The format the policy gives to a node, and whether a rule (rather than the default) says so. */
static mixt_dtype policy_dtype(const mixt__policy *policy, const mixt__node *node, bool *forced)
{
    for (int64_t i = policy->rule_count - 1; i >= 0; i--) {
        const mixt__policy_rule *rule = &policy->rules[i];
        if (rule_matches(rule, node)) {
            *forced = true;
            return rule->forward;
        }
    }
    *forced = false;
    return policy->forward;
}

static mixt_status cast(rewrite *w, int32_t source_value, int32_t value, const char *layer, mixt_dtype dtype,
                        int32_t *out)
{
    if (w->casts[source_value][dtype]) {
        *out = w->casts[source_value][dtype];
        return MIXT_OK;
    }
    mixt__pointwise_attrs at = {.in_count = 1, .instr_count = 1, .out_count = 1};
    at.instrs[0].code = MIXT_PW_COPY;
    at.outs[0] = 1;
    at.out_dtypes[0] = dtype;
    int64_t index;
    MIXT_TRY(mixt__graph_node(w->result, &mixt__op_pointwise, layer, &at, &value, 1, &index));
    *out = w->casts[source_value][dtype] = w->result->nodes[index].out[0];
    return MIXT_OK;
}

/** A parameter in one format: its master, its working copy, or a cast when another low format came first. */
static mixt_status param_value(rewrite *w, int32_t source_value, const char *layer, mixt_dtype dtype, int32_t *out)
{
    int32_t param = w->source->values[source_value].param;
    const mixt__param *p = &w->result->params[param];
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
        if (dtype != MIXT_DTYPE_FP32 && p->low[d] && d != (int)dtype)
            return cast(w, source_value, mixt__graph_param_value(w->result, param, MIXT_DTYPE_FP32), layer, dtype, out);
    *out = mixt__graph_param_value(w->result, param, dtype);
    return *out ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for parameter '%s'", p->name);
}

static mixt_status input_as(rewrite *w, int32_t source_value, const char *layer, mixt_dtype dtype, int32_t *out)
{
    const mixt__value *v = &w->source->values[source_value];
    if (v->role == MIXT_ROLE_PARAM)
        return param_value(w, source_value, layer, dtype, out);
    if (v->role == MIXT_ROLE_STATE) {
        *out = mixt__graph_param_value(w->result, v->param, MIXT_DTYPE_FP32);
        return MIXT_OK;
    }
    if (v->role == MIXT_ROLE_CACHE && !w->map[source_value]) // written in place: it has the format, never a cast
        MIXT_TRY(mixt__graph_value(w->result, v->role, dtype, &v->shape, v->name, &w->map[source_value]));
    *out = w->map[source_value];
    if (!*out)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the graph");
    if (!mixt_dtype_is_float(w->result->values[*out].dtype) || w->result->values[*out].dtype == dtype)
        return MIXT_OK;
    return cast(w, source_value, *out, layer, dtype, out);
}

/** Widest format among the float inputs that are not parameters; NONE when there is none. */
static mixt_dtype widest_input(const rewrite *w, const mixt__node *node)
{
    mixt_dtype widest = MIXT_DTYPE_NONE;
    for (int i = 0; i < node->in_count; i++) {
        const mixt__value *v = &w->source->values[node->in[i]];
        if (v->role == MIXT_ROLE_PARAM || v->role == MIXT_ROLE_STATE || !mixt_dtype_is_float(v->dtype))
            continue;
        mixt_dtype d = w->result->values[w->map[node->in[i]]].dtype;
        widest = widest == MIXT_DTYPE_NONE || widest == d ? d : MIXT_DTYPE_FP32;
    }
    return widest;
}

/** The format in which a node takes its float inputs. */
static mixt_dtype input_dtype(const rewrite *w, const mixt__node *node, mixt_dtype low, bool forced)
{
    mixt_dtype widest = widest_input(w, node);
    switch (node->op->precision) {
    case MIXT_CLASS_LOW:
        return low;
    case MIXT_CLASS_FULL:
        return forced ? low : MIXT_DTYPE_FP32;
    case MIXT_CLASS_INSIDE:
    case MIXT_CLASS_FOLLOW:
        break;
    }
    return forced || widest == MIXT_DTYPE_NONE ? low : widest;
}

static mixt_status rewrite_node(rewrite *w, const mixt__node *node)
{
    bool forced;
    mixt_dtype wanted = policy_dtype(w->policy, node, &forced);
    mixt_dtype low = wanted == MIXT_DTYPE_TF32 ? MIXT_DTYPE_FP32 : wanted;
    mixt_dtype dtype = input_dtype(w, node, low, forced);
    bool by_hand = node->op == &mixt__op_pointwise && ((const mixt__pointwise_attrs *)node->attrs)->cast_by_hand;
    int32_t in[64];
    for (int i = 0; i < node->in_count; i++) {
        mixt_dtype d = node->op->fp32_inputs >> i & 1 ? MIXT_DTYPE_FP32 : dtype;
        if (by_hand) // from what is there: of a parameter the master
            d = w->map[node->in[i]] ? w->result->values[w->map[node->in[i]]].dtype : MIXT_DTYPE_FP32;
        MIXT_TRY(input_as(w, node->in[i], node->layer, d, &in[i]));
    }
    int64_t index;
    MIXT_TRY(mixt__graph_node(w->result, node->op, node->layer, node->attrs, in, node->in_count, &index));
    mixt__node *made = &w->result->nodes[index];
    made->arithmetic = mixt__node_arithmetic(w->result, made, wanted);
    for (int o = 0; o < node->out_count; o++) {
        w->map[node->out[o]] = made->out[o];
        w->result->values[made->out[o]].keep = w->source->values[node->out[o]].keep;
    }
    return MIXT_OK;
}

/** The one low format in which all users take a value that comes from outside; NONE when they do not agree, or any
 * computes in FP32. A view has its users' wish: moving numbers and rounding them commute. */
static mixt_dtype users_dtype(const rewrite *w, int32_t value)
{
    mixt_dtype agreed = MIXT_DTYPE_NONE;
    for (int64_t i = 0; i < w->source->node_count; i++) {
        const mixt__node *node = &w->source->nodes[i];
        for (int k = 0; k < node->in_count; k++) {
            bool forced;
            if (node->in[k] != value)
                continue;
            mixt_dtype dtype = policy_dtype(w->policy, node, &forced);
            if (node->op->view && node->in_count == 1 && node->out_count == 1 && !forced)
                dtype = users_dtype(w, node->out[0]);
            else if (node->op->precision != MIXT_CLASS_LOW || node->op->fp32_inputs >> k & 1)
                return MIXT_DTYPE_NONE;
            if ((dtype != MIXT_DTYPE_FP16 && dtype != MIXT_DTYPE_BF16) || (agreed && dtype != agreed))
                return MIXT_DTYPE_NONE;
            agreed = dtype;
        }
    }
    return agreed;
}

/** The format in which a batch is fed. */
static mixt_dtype fed_dtype(const rewrite *w, int32_t value)
{
    const mixt__value *v = &w->source->values[value];
    mixt_dtype low = MIXT_DTYPE_NONE;
    if (w->typed_input && value == w->source->input && v->dtype == MIXT_DTYPE_FP32 && !v->keep)
        low = users_dtype(w, value);
    return low == MIXT_DTYPE_NONE ? v->dtype : low;
}

static mixt_status copy_outside_values(rewrite *w)
{
    for (int64_t i = 0; i < w->source->param_count; i++) {
        mixt__param p = w->source->params[i];
        int32_t index;
        p.value = p.grad = 0;
        memset(p.low, 0, sizeof p.low);
        MIXT_TRY(mixt__graph_param(w->result, &p, &index));
    }
    for (int32_t i = 1; i < w->source->value_count; i++) {
        const mixt__value *v = &w->source->values[i];
        if (v->role != MIXT_ROLE_INPUT && v->role != MIXT_ROLE_TARGET)
            continue;
        MIXT_TRY(mixt__graph_value(w->result, v->role, fed_dtype(w, i), &v->shape, v->name, &w->map[i]));
    }
    return MIXT_OK;
}

static mixt_status run(rewrite *w)
{
    MIXT_TRY(check_rules(w->source, w->policy));
    MIXT_TRY(copy_outside_values(w));
    for (int64_t i = 0; i < w->source->node_count; i++)
        MIXT_TRY(rewrite_node(w, &w->source->nodes[i]));
    const mixt__graph *s = w->source;
    mixt__graph *r = w->result;
    r->input = w->map[s->input];
    r->target = w->map[s->target];
    r->logits = w->map[s->logits];
    r->loss = w->map[s->loss];
    r->metrics = w->map[s->metrics];
    r->positions = w->map[s->positions];
    r->cache_rows = s->cache_rows;
    r->training = s->training;
    return MIXT_OK;
}

mixt_status mixt__pass_precision(const mixt__graph *source, const mixt__policy *policy, bool typed_input,
                                 mixt__graph **result)
{
    rewrite w = {.source = source, .policy = policy, .typed_input = typed_input};
    mixt_status status = mixt__graph_new(&w.result);
    if (status != MIXT_OK)
        return status;
    w.map = mixt__alloc((size_t)source->value_count * sizeof *w.map);
    w.casts = mixt__alloc((size_t)source->value_count * sizeof *w.casts);
    status = w.map && w.casts ? run(&w) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the precision pass");
    mixt__free(w.map);
    mixt__free(w.casts);
    if (status != MIXT_OK) {
        mixt__graph_free(w.result);
        w.result = NULL;
    }
    *result = w.result;
    return status;
}
