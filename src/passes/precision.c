/* The precision pass: rebuilds the graph with the formats that the policy asks for, inserting casts where they differ.
 *
 * A parameter never gets a cast: it has a working copy in the format its users want, kept in step by the optimizer.
 * (Only where two low formats of one parameter are wanted does the second come by a cast from the master; and a cast
 * by hand reads the master.)
 *
 * Values that a loss compares with real numbers (graph->of_values) are made in FP32: rounded to eight bits of mantissa,
 * 300 and 301 are one prediction. Their gradient goes on in the format of the backward pass.
 */
#include "passes/passes.h"

#include "graph/op.h"
#include "num/num.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/quantise.h"

#include <fnmatch.h>
#include <string.h>

/** What the policy says about a node. */
typedef struct formats {
    mixt_dtype forward, backward;
    const mixt__policy_rule *rule; // that decided; NULL: the policy's default
    const char *instead;           // why it is in the carrier of a format that the policy says; NULL: it is not
} formats;

typedef struct rewrite {
    const mixt__graph *source;
    mixt__graph *result;
    const mixt__policy *policy;
    const mixt__policy *teacher; // of a teacher's nodes; NULL: as the others
    bool typed_input;
    const mixt__node *values;           // of the source, whose result is made in FP32; NULL: none
    const mixt__node *node;             // of the source, that is being rebuilt
    formats formats;                    // of that node
    int input;                          // of that node, that is being made
    int32_t *map;                       // source value → result value
    int32_t (*casts)[MIXT_DTYPE_COUNT]; // by source value: casts made so far
} rewrite;

/** A teacher's rules name its layers as they were called when it was trained. */
static bool rule_matches(const mixt__policy_rule *rule, const mixt__node *node)
{
    const char *op = node->op->acts_as ? node->op->acts_as : node->op->name;
    const char *scope = node->teacher ? strchr(node->layer, '.') : NULL, *layer = scope ? scope + 1 : node->layer;
    return (!rule->layer || !fnmatch(rule->layer, layer, 0)) && (!rule->op || !fnmatch(rule->op, op, 0));
}

/** A rule that no node of the training graph matches is a slip of the pen: the layer it meant would silently stay low.
 */
static mixt_status check_rules(const mixt__graph *source, const mixt__policy *policy)
{
    for (int64_t r = 0; source->training && r < policy->rule_count; r++) {
        const mixt__policy_rule *rule = &policy->rules[r];
        bool matched = false;
        for (int64_t i = 0; i < source->node_count && !matched; i++)
            matched = !source->nodes[i].teacher && rule_matches(rule, &source->nodes[i]);
        if (!matched)
            return mixt__fail(MIXT_ERROR_CONFIG,
                              "policy rule %lld (layer '%s', op '%s') matches nothing in this model: 'mixt plan CONFIG "
                              "--graph' lists layers and ops",
                              (long long)(r + 1), rule->layer ? rule->layer : "*", rule->op ? rule->op : "*");
    }
    return MIXT_OK;
}

static formats said_of(const rewrite *w, const mixt__node *node)
{
    const mixt__policy *policy = node->teacher && w->teacher ? w->teacher : w->policy;
    for (int64_t i = policy->rule_count - 1; i >= 0; i--) {
        const mixt__policy_rule *rule = &policy->rules[i];
        if (rule_matches(rule, node))
            return (formats){.forward = rule->forward, .backward = rule->backward, .rule = rule};
    }
    return (formats){.forward = policy->forward, .backward = policy->backward};
}

static formats formats_of(const rewrite *w, const mixt__node *node)
{
    formats f = said_of(w, node);
    if (!mixt__format_scales_operands(f.forward) && !mixt__format_scales_operands(f.backward))
        return f;
    f.instead = mixt__quantise_refuses(w->source, node, f.rule != NULL);
    if (f.instead) {
        f.forward = mixt__format_scales_operands(f.forward) ? mixt__dtype_carrier(f.forward) : f.forward;
        f.backward = mixt__format_scales_operands(f.backward) ? mixt__dtype_carrier(f.backward) : f.backward;
    }
    return f;
}

static const char *decided(const rewrite *w, bool by_hand, mixt_dtype widest)
{
    const mixt__policy_rule *rule = w->formats.rule;
    const mixt__node *node = w->node;
    if (node->teacher && w->teacher)
        return "the teacher's own precision";
    if (node == w->values && !node->op->widen && !rule)
        return "the loss reads it";
    if (by_hand)
        return "cast by the model";
    if (!rule && node->op->precision != MIXT_CLASS_LOW && widest != MIXT_DTYPE_NONE)
        return mixt__class_reason(node->op);
    if (!rule)
        return mixt__arena_printf(&w->result->arena, "%s", w->policy->origin ? w->policy->origin : "the default");
    const char *layer = rule->layer ? rule->layer : "*", *op = rule->op ? rule->op : "*";
    if (rule->origin)
        return mixt__arena_printf(&w->result->arena, "%s (layer '%s', op '%s')", rule->origin, layer, op);
    return mixt__arena_printf(&w->result->arena, "rule %lld (layer '%s', op '%s')",
                              (long long)(rule - w->policy->rules + 1), layer, op);
}

/** What decided the formats of this node, in words; NULL when memory ends. */
static const char *reason(const rewrite *w, bool by_hand, mixt_dtype widest)
{
    const char *said = decided(w, by_hand, widest);
    return said && w->formats.instead ? mixt__arena_printf(&w->result->arena, "%s; %s", said, w->formats.instead)
                                      : said;
}

/** Why input w->input of this node is a cast. */
static const char *cast_reason(const rewrite *w, const mixt__value *given, mixt_dtype wanted)
{
    const char *layer = w->node->layer[0] ? w->node->layer : w->node->op->name;
    return mixt__arena_printf(&w->result->arena, "input %d of %s wants %s, %s gives %s", w->input, layer,
                              mixt_dtype_name(wanted), given->name, mixt_dtype_name(given->dtype));
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the precision pass");
}

/** The gradient of what this node makes, or takes through a cast, loses nothing that the backward format holds. */
static void type_gradient(const rewrite *w, int32_t value)
{
    mixt__value *v = &w->result->values[value];
    mixt_dtype forward = mixt__dtype_carrier(w->formats.forward), backward = mixt__dtype_carrier(w->formats.backward);
    if (forward != backward)
        v->gradient = mixt__dtype_widest(v->gradient, backward);
}

/** In which format this node keeps what its gradient reads again, and what decided that. */
static mixt_status type_saved(const rewrite *w, mixt__node *made)
{
    const mixt__policy_rule *rule = w->formats.rule;
    mixt_dtype keep = mixt__policy_kept(w->policy, rule);
    const char *origin = w->policy->keep_origin ? w->policy->keep_origin : "keep of the policy";
    if (keep == MIXT_DTYPE_FP32 || w->node->teacher)
        return MIXT_OK;
    if (rule && rule->keep != MIXT_DTYPE_NONE)
        origin = rule->origin ? rule->origin : "a rule of the policy";
    made->saves = keep;
    made->saves_why = mixt__arena_strdup(&w->result->arena, origin);
    return made->saves_why ? MIXT_OK : no_memory();
}

static mixt_status cast(rewrite *w, int32_t source_value, int32_t value, mixt_dtype dtype, int32_t *out)
{
    *out = w->casts[source_value][dtype];
    if (*out) {
        type_gradient(w, *out);
        return MIXT_OK;
    }
    mixt__pointwise_attrs at = {.in_count = 1, .instr_count = 1, .out_count = 1};
    at.instrs[0].code = MIXT_PW_COPY;
    at.outs[0] = 1;
    at.out_dtypes[0] = dtype;
    int64_t index;
    MIXT_TRY(mixt__graph_node(w->result, &mixt__op_pointwise, w->node->layer, &at, &value, 1, &index));
    mixt__node *made = &w->result->nodes[index];
    *out = w->casts[source_value][dtype] = made->out[0];
    made->teacher = w->node->teacher;
    type_gradient(w, *out);
    made->why = cast_reason(w, &w->result->values[value], dtype);
    return made->why ? type_saved(w, made) : no_memory();
}

/** A frozen parameter that is kept as numbers with scales, whatever format its readers compute in. */
static mixt_status pair_value(rewrite *w, int32_t param, int32_t *out)
{
    const mixt__param *p = &w->result->params[param];
    mixt_dtype dtype = p->frozen_in;
    if (!mixt__bit(w->node->op->pair_inputs, w->input))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "layer '%s': %s cannot read '%s', which is frozen and stored in %s",
                          w->node->layer, w->node->op->name, p->name, mixt_dtype_name(dtype));
    *out = mixt__graph_param_value(w->result, param, dtype);
    if (!*out)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for parameter '%s'", p->name);
    if (w->result->values[*out].scales.kind != MIXT_SCALE_NONE)
        return MIXT_OK;
    mixt__scale_kind kind = mixt__format_of(dtype)->scale;
    mixt__nf4_matrix matrix = mixt__param_matrix(&w->result->params[param]);
    return mixt__graph_pair(w->result, *out, MIXT_ROLE_SCALE, kind,
                            kind == MIXT_SCALE_NESTED ? mixt__nf4_words(&matrix) : 0);
}

/** A parameter in one format: its master, its working copy, or a cast when another low format came first, or is the
 *  only one. */
static mixt_status param_value(rewrite *w, int32_t source_value, mixt_dtype dtype, int32_t *out)
{
    int32_t param = w->source->values[source_value].param;
    mixt_dtype only = w->result->params[param].frozen_in;
    if (mixt__format_of(only)->scale != MIXT_SCALE_NONE)
        return pair_value(w, param, out);
    bool has = only != MIXT_DTYPE_NONE ? only == dtype : mixt__graph_param_has(w->result, param, dtype);
    *out = mixt__graph_param_value(w->result, param, has ? dtype : only != MIXT_DTYPE_NONE ? only : MIXT_DTYPE_FP32);
    if (!*out)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for parameter '%s'", w->result->params[param].name);
    return has ? MIXT_OK : cast(w, source_value, *out, dtype, out);
}

static mixt_status input_as(rewrite *w, int32_t source_value, mixt_dtype dtype, int32_t *out)
{
    const mixt__value *v = &w->source->values[source_value];
    if (v->role == MIXT_ROLE_PARAM)
        return param_value(w, source_value, dtype, out);
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
    return cast(w, source_value, *out, dtype, out);
}

/** Whether input i is a mask that chooses among the elements of another: its format says nothing about theirs. */
static bool is_mask(const mixt__node *node, int i)
{
    if (i != 0 || node->op != &mixt__op_pointwise)
        return false;
    mixt__pw_code code = ((const mixt__pointwise_attrs *)node->attrs)->instrs[0].code;
    return code == MIXT_PW_WHERE || code == MIXT_PW_WHERE_NOT || code == MIXT_PW_SELECT;
}

/** Widest format among the float inputs that are not parameters and may be low; NONE when there is none. */
static mixt_dtype widest_input(const rewrite *w, const mixt__node *node)
{
    mixt_dtype widest = MIXT_DTYPE_NONE;
    for (int i = 0; i < node->in_count; i++) {
        const mixt__value *v = &w->source->values[node->in[i]];
        if (v->role == MIXT_ROLE_PARAM || v->role == MIXT_ROLE_STATE || !mixt_dtype_is_float(v->dtype) ||
            mixt__bit(node->op->fp32_inputs | node->op->given_inputs, i) || is_mask(node, i))
            continue;
        widest = mixt__dtype_widest(widest, w->result->values[w->map[node->in[i]]].dtype);
    }
    return widest;
}

/** The format in which a node takes its float inputs. */
static mixt_dtype input_dtype(const rewrite *w, const mixt__node *node, mixt_dtype widest)
{
    mixt_dtype low = mixt__dtype_carrier(w->formats.forward);
    bool forced = w->formats.rule != NULL;
    switch (node->op->precision) {
    case MIXT_CLASS_LOW:
        return node == w->values && !node->op->widen && !forced ? MIXT_DTYPE_FP32 : low;
    case MIXT_CLASS_FULL:
        return forced ? low : MIXT_DTYPE_FP32;
    case MIXT_CLASS_INSIDE:
    case MIXT_CLASS_FOLLOW:
        break;
    }
    return forced || widest == MIXT_DTYPE_NONE ? low : widest;
}

/** The activation that a node passes on element by element, or as a view; 0: it does something else. */
static int32_t passed_on(const mixt__graph *graph, const mixt__node *node)
{
    int32_t from = 0;
    if (!node->op->view && node->op != &mixt__op_pointwise)
        return 0;
    for (int i = 0; i < node->in_count; i++) {
        if (graph->values[node->in[i]].role == MIXT_ROLE_PARAM)
            continue;
        if (from)
            return 0;
        from = node->in[i];
    }
    return from;
}

/** The matrix work that makes the values which a loss compares with real numbers; NULL: something else makes them, or
 * the model rounds them by hand. */
static const mixt__node *values_made_by(const mixt__graph *graph)
{
    int32_t value = graph->of_values ? graph->logits : 0;
    while (value && graph->values[value].producer >= 0 && graph->values[value].dtype == MIXT_DTYPE_FP32) {
        const mixt__node *node = &graph->nodes[graph->values[value].producer];
        if (node->op->matrix_work)
            return node;
        value = passed_on(graph, node);
    }
    return NULL;
}

/** The attributes with which a node is rebuilt on these inputs; NULL where an op has none, or memory ends. */
static const void *attrs_of(const rewrite *w, const mixt__node *node, const int32_t *in, mixt_dtype dtype)
{
    bool widens = node == w->values && node->op->widen && dtype != MIXT_DTYPE_FP32;
    bool gives = node->op->give && mixt__graph_has_pair(w->result, in, node->in_count);
    if (!widens && !gives)
        return node->attrs;
    void *attrs = mixt__arena_alloc(&w->result->arena, node->op->attrs_size);
    if (!attrs)
        return NULL;
    memcpy(attrs, node->attrs, node->op->attrs_size);
    if (widens)
        node->op->widen(attrs);
    if (gives)
        node->op->give(attrs, dtype);
    return attrs;
}

static mixt_status rewrite_node(rewrite *w, const mixt__node *node)
{
    w->node = node;
    w->formats = formats_of(w, node);
    mixt_dtype widest = widest_input(w, node), dtype = input_dtype(w, node, widest);
    bool by_hand = node->op == &mixt__op_pointwise && ((const mixt__pointwise_attrs *)node->attrs)->cast_by_hand;
    int32_t in[64];
    for (int i = 0; i < node->in_count; i++) {
        mixt_dtype d = mixt__bit(node->op->fp32_inputs, i) ? MIXT_DTYPE_FP32 : dtype;
        if (by_hand || mixt__bit(node->op->given_inputs, i)) // from what is there: of a parameter the master
            d = w->map[node->in[i]] ? w->result->values[w->map[node->in[i]]].dtype : MIXT_DTYPE_FP32;
        w->input = i;
        MIXT_TRY(input_as(w, node->in[i], d, &in[i]));
    }
    const void *attrs = attrs_of(w, node, in, dtype);
    int64_t index;
    if (node->attrs && !attrs)
        return no_memory();
    MIXT_TRY(mixt__graph_node(w->result, node->op, node->layer, attrs, in, node->in_count, &index));
    mixt__node *made = &w->result->nodes[index];
    made->arithmetic = mixt__node_arithmetic(w->result, made, w->formats.forward);
    made->gradient = w->formats.backward;
    made->source = (int32_t)(node - w->source->nodes);
    made->teacher = node->teacher;
    made->rule = w->formats.rule && !node->teacher ? (int32_t)(w->formats.rule - w->policy->rules) : -1;
    made->why = reason(w, by_hand, widest);
    for (int o = 0; o < node->out_count; o++) {
        w->map[node->out[o]] = made->out[o];
        type_gradient(w, made->out[o]);
        w->result->values[made->out[o]].output = w->source->values[node->out[o]].output;
    }
    return made->why ? type_saved(w, made) : no_memory();
}

/** The one low format in which all users take a value that comes from outside; NONE when they do not agree, or any
 * computes in FP32. A view has its users' wish, and so has what a mask leaves of a value: moving or choosing numbers
 * and rounding them commute. */
static mixt_dtype users_dtype(const rewrite *w, int32_t value)
{
    mixt_dtype agreed = MIXT_DTYPE_NONE;
    for (int64_t i = 0; i < w->source->node_count; i++) {
        const mixt__node *node = &w->source->nodes[i];
        for (int k = 0; k < node->in_count; k++) {
            if (node->in[k] != value)
                continue;
            formats f = formats_of(w, node);
            mixt_dtype dtype = mixt__dtype_carrier(f.forward);
            bool moved = (node->op->view && node->in_count == 1) || (k == 1 && is_mask(node, 0));
            if (moved && node->out_count == 1 && !f.rule)
                dtype = users_dtype(w, node->out[0]);
            else if (node->op->precision != MIXT_CLASS_LOW || mixt__bit(node->op->fp32_inputs, k))
                return MIXT_DTYPE_NONE;
            if (!mixt__format_may(dtype, MIXT_MAY_COPY) || (agreed && dtype != agreed))
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
    if (w->typed_input && v->role == MIXT_ROLE_INPUT && v->dtype == MIXT_DTYPE_FP32 && !v->output)
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
    memcpy(r->arrays, s->arrays, sizeof r->arrays);
    r->array_count = s->array_count;
    for (int i = 0; i < s->array_count; i++)
        r->arrays[i].value = w->map[s->arrays[i].value];
    mixt__graph_place_arrays(r);
    r->input = w->map[s->input];
    r->target = w->map[s->target];
    r->logits = w->map[s->logits];
    r->loss = w->map[s->loss];
    r->metrics = w->map[s->metrics];
    r->positions = w->map[s->positions];
    r->cache_rows = s->cache_rows;
    r->training = s->training;
    r->of_values = s->of_values;
    r->counts_correct = s->counts_correct;
    return MIXT_OK;
}

mixt_status mixt__pass_precision(const mixt__graph *source, const mixt__policy *policy, const mixt__policy *teacher,
                                 bool typed_input, mixt__graph **result)
{
    rewrite w = {.source = source,
                 .policy = policy,
                 .teacher = teacher,
                 .typed_input = typed_input,
                 .values = values_made_by(source)};
    mixt_status status = mixt__graph_new(&w.result);
    if (status != MIXT_OK)
        return status;
    w.map = mixt__alloc((size_t)source->value_count * sizeof *w.map);
    w.casts = mixt__alloc((size_t)source->value_count * sizeof *w.casts);
    status = w.map && w.casts ? run(&w) : no_memory();
    mixt__free(w.map);
    mixt__free(w.casts);
    if (status != MIXT_OK) {
        mixt__graph_free(w.result);
        w.result = NULL;
    }
    *result = w.result;
    return status;
}
