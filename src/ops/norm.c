/* Layer norm (over the last dimension) and batch norm (each channel over all other dimensions), with gradients.
 *
 * Both take and give the format of their source and compute in FP32 inside; statistics and parameters are FP32.
 * Forward: (src, weight, bias[, running_mean, running_var][, mask][, addend]) → (dst, mean, rstd).
 * Gradient: (src, weight, mean, rstd, grad_dst[, mask][, bias or addend]) → (grad_src, grad_weight, grad_bias[,
 * totals]).
 */
#include "ops/rules.h"

static mixt_status check_params(const mixt__graph *graph, const mixt__node *node, int from, int to)
{
    const mixt__shape *x = &mixt__in(graph, node, 0)->shape;
    for (int i = from; i < to; i++) {
        const mixt__shape *p = &mixt__in(graph, node, i)->shape;
        if (x->rank < 1 || p->rank != 1 || p->dims[0] != mixt__last_dim(x)) {
            char tx[128], tp[128];
            return mixt__fail(MIXT_ERROR_SHAPE, "norm of %s with a parameter of shape %s",
                              mixt__shape_text(x, tx, sizeof tx), mixt__shape_text(p, tp, sizeof tp));
        }
    }
    return MIXT_OK;
}

/** The last input, of src's shape and format. */
static mixt_status check_addend(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__value *x = mixt__in(graph, node, 0), *addend = mixt__in(graph, node, node->in_count - 1);
    if (addend->dtype == x->dtype && mixt__shape_equal(&addend->shape, &x->shape))
        return MIXT_OK;
    char tx[128], ta[128];
    return mixt__fail(MIXT_ERROR_SHAPE, "norm of %s %s with an addend of %s %s", mixt_dtype_name(x->dtype),
                      mixt__shape_text(&x->shape, tx, sizeof tx), mixt_dtype_name(addend->dtype),
                      mixt__shape_text(&addend->shape, ta, sizeof ta));
}

/** One number for each of src's first dimensions: those that a batch norm sums over, or the first few of them. */
static mixt_status check_mask(const mixt__graph *graph, const mixt__node *node, int input)
{
    const mixt__value *x = mixt__in(graph, node, 0), *mask = mixt__in(graph, node, input);
    bool fits = mask->dtype == MIXT_DTYPE_FP32 && mask->shape.rank >= 1 && mask->shape.rank < x->shape.rank;
    for (int i = 0; fits && i < mask->shape.rank; i++)
        fits = mask->shape.dims[i] == x->shape.dims[i];
    if (fits)
        return MIXT_OK;
    char tx[128], tm[128];
    return mixt__fail(MIXT_ERROR_SHAPE, "norm of %s with a mask of %s %s: expected fp32 of its first dimensions",
                      mixt__shape_text(&x->shape, tx, sizeof tx), mixt_dtype_name(mask->dtype),
                      mixt__shape_text(&mask->shape, tm, sizeof tm));
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    const mixt__norm_attrs *at = node->attrs;
    bool batch = node->op == &mixt__op_batch_norm, addend = batch && at->addend;
    MIXT_TRY(check_params(graph, node, 1, batch ? 5 : 3));
    if (batch && at->masked)
        MIXT_TRY(check_mask(graph, node, 5));
    if (addend)
        MIXT_TRY(check_addend(graph, node));
    mixt__shape stat = x->shape;
    if (batch)
        stat = mixt__vector_shape(mixt__last_dim(&x->shape));
    else
        stat.rank--;
    mixt__set_out(r, 0, &x->shape, x->dtype);
    mixt__set_out(r, 1, &stat, MIXT_DTYPE_FP32);
    mixt__set_out(r, 2, &stat, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return 8.0 * (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

/** out = a · b, or a - b, in FP32. */
static mixt_status combine(mixt__gradients *g, mixt__pw_code code, int32_t a, int32_t b, int32_t *out)
{
    return mixt__gradient_pointwise(g, (mixt__pw_instr){.code = code}, (int32_t[]){a, b}, 2, MIXT_DTYPE_FP32, out);
}

/** What of a gradient counts: 0 where a mask is. */
static mixt_status grad_masked(mixt__gradients *g, const mixt__node *node, int32_t *dy)
{
    if (!((const mixt__norm_attrs *)node->attrs)->masked)
        return MIXT_OK;
    int32_t mask = node->in[5];
    mixt__shape shape = g->graph->values[mask].shape;
    while (shape.rank < g->graph->values[node->in[0]].shape.rank)
        shape.dims[shape.rank++] = 1;
    MIXT_TRY(mixt__gradient_reshape(g, mask, &shape, &mask));
    return mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_WHERE}, (int32_t[]){mask, *dy}, 2,
                                    g->graph->values[*dy].dtype, dy);
}

/** Batch norm with statistics that do not depend on src: an affine map of each channel. */
static mixt_status grad_fixed(mixt__gradients *g, const mixt__node *node)
{
    int32_t x = node->in[0], weight = node->in[1], bias = node->in[2], mean = node->out[1], rstd = node->out[2];
    int32_t dy = mixt__gradient_of(g, node->out[0]), t;
    MIXT_TRY(grad_masked(g, node, &dy));
    mixt__reduce_attrs channels = {.axes = (1u << (g->graph->values[x].shape.rank - 1)) - 1};
    if (mixt__gradient_wanted(g, x)) {
        MIXT_TRY(combine(g, MIXT_PW_MUL, weight, rstd, &t));
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_MUL}, (int32_t[]){dy, t}, 2,
                                          g->graph->values[x].gradient, &t));
        MIXT_TRY(mixt__gradient_add(g, x, t));
    }
    if (mixt__gradient_wanted(g, weight)) {
        MIXT_TRY(combine(g, MIXT_PW_SUB, x, mean, &t));
        MIXT_TRY(combine(g, MIXT_PW_MUL, t, rstd, &t));
        MIXT_TRY(combine(g, MIXT_PW_MUL, t, dy, &t));
        MIXT_TRY(mixt__gradient_emit(g, &mixt__op_reduce, &channels, &t, 1, &weight));
    }
    return mixt__gradient_wanted(g, bias) ? mixt__gradient_emit(g, &mixt__op_reduce, &channels, &dy, 1, &bias)
                                          : MIXT_OK;
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    if (node->op == &mixt__op_batch_norm && !((const mixt__norm_attrs *)node->attrs)->training)
        return grad_fixed(g, node);
    const mixt__op *op = node->op == &mixt__op_batch_norm ? &mixt__op_batch_norm_grad : &mixt__op_layer_norm_grad;
    bool masked = ((const mixt__norm_attrs *)node->attrs)->masked;
    int32_t in[6] = {node->in[0], node->in[1], node->out[1], node->out[2], mixt__gradient_of(g, node->out[0])};
    in[5] = masked ? node->in[5] : 0;
    return mixt__gradient_emit(g, op, node->attrs, in, masked ? 6 : 5, node->in);
}

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    const mixt__norm_attrs *at = node->attrs;
    bool batch = node->op == &mixt__op_batch_norm_grad;
    if (batch && at->masked)
        MIXT_TRY(check_mask(graph, node, 5));
    if (batch && at->relu)
        MIXT_TRY(check_params(graph, node, node->in_count - 1, node->in_count));
    else if (node->op == &mixt__op_layer_norm_grad && at->addend)
        MIXT_TRY(check_addend(graph, node));
    mixt__set_out(r, 0, &x->shape, x->dtype);
    mixt__set_out(r, 1, &w->shape, MIXT_DTYPE_FP32);
    mixt__set_out(r, 2, &w->shape, MIXT_DTYPE_FP32);
    if (at->totals)
        mixt__set_out(r, 3, &w->shape, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

const mixt__op mixt__op_layer_norm = {
    .name = "layer_norm",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_NORMS,
    .attrs_size = sizeof(mixt__norm_attrs),
    .fp32_inputs = 6,
    .infer = infer,
    .grad = grad,
    .flops = flops,
};

const mixt__op mixt__op_layer_norm_grad = {
    .name = "layer_norm_grad",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_NORMS,
    .attrs_size = sizeof(mixt__norm_attrs),
    .fp32_inputs = 14,
    .accumulate_outputs = 14,
    .infer = grad_infer,
    .flops = flops,
};

static bool moves(const mixt__node *node, double *share)
{
    const mixt__norm_attrs *at = node->attrs;
    *share = (double)at->momentum;
    return at->training;
}

/** Frozen statistics: the forward pass normalises by them, as in inference, and leaves them. */
static void freeze(void *attrs)
{
    ((mixt__norm_attrs *)attrs)->training = false;
}

static void repeat(void *attrs)
{
    ((mixt__norm_attrs *)attrs)->repeated = true;
}

const mixt__op mixt__op_batch_norm = {
    .name = "batch_norm",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_NORMS,
    .attrs_size = sizeof(mixt__norm_attrs),
    .fp32_inputs = 62, // a mask too; an addend comes later, when formats are chosen
    .written_inputs = 3u << 3,
    .moves = moves,
    .freeze = freeze,
    .repeat = repeat,
    .infer = infer,
    .grad = grad,
    .flops = flops,
};

const mixt__op mixt__op_batch_norm_grad = {
    .name = "batch_norm_grad",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_NORMS,
    .attrs_size = sizeof(mixt__norm_attrs),
    .fp32_inputs = 110,
    .accumulate_outputs = 6,
    .infer = grad_infer,
    .flops = flops,
};

MIXT_PLAY(mixt_layer_norm_with, out[0] = mixt_layer_norm_with(b, c->name, in[0], options))
MIXT_PLAY(mixt_batch_norm_with, out[0] = mixt_batch_norm_with(b, c->name, in[0], options))

static mixt_value norm(mixt_builder *b, const mixt__op *op, const char *name, mixt_value x,
                       const mixt_norm_options *given)
{
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    mixt_norm_options own = MIXT_OPTIONS(mixt_norm_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_norm_options, &own, given))
        return (mixt_value){0};
    mixt__kept_call call = {.name = name,
                            .in = {x},
                            .in_count = 1,
                            .options = &own,
                            .options_size = sizeof own,
                            .inside = offsetof(mixt_norm_options, mask)};
    call.play = op == &mixt__op_batch_norm ? play_mixt_batch_norm_with : play_mixt_layer_norm_with;
    if (mixt__tape_on(b))
        return mixt__tape_call(b, &call, NULL);
    if (!mixt__builder_number(b, name, ".eps", o->eps))
        return (mixt_value){0};
    if (op == &mixt__op_batch_norm && !(o->momentum >= 0 && o->momentum <= 1))
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name, ".momentum %g: must be from 0 to 1",
                                   (double)o->momentum);
    mixt__norm_attrs at = {.eps = o->eps, .momentum = o->momentum};
    at.training = b->graph->training;
    mixt__param one = {.shape = mixt__vector_shape(mixt__last_dim(&b->graph->values[x.id].shape)), .trainable = true};
    one.init = MIXT_INIT_ONE;
    mixt__param zero = one;
    zero.init = MIXT_INIT_ZERO;
    mixt_value in[6] = {x, mixt__builder_param(b, name, "weight", o->zero ? &zero : &one),
                        mixt__builder_param(b, name, "bias", &zero)};
    int count = 3;
    if (op == &mixt__op_batch_norm) {
        zero.trainable = one.trainable = false;
        in[count++] = mixt__builder_param(b, name, "running_mean", &zero);
        in[count++] = mixt__builder_param(b, name, "running_var", &one);
        if (o->mask.id) {
            at.masked = true;
            in[count++] = o->mask;
        }
    }
    return mixt__builder_node(b, op, name, &at, in, count);
}

mixt_value mixt_layer_norm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_norm_options *o)
{
    return norm(b, &mixt__op_layer_norm, name, x, o);
}

mixt_value mixt_batch_norm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_norm_options *o)
{
    return norm(b, &mixt__op_batch_norm, name, x, o);
}
