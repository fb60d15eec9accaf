/* Rotary positions: pairs of numbers of a head are turned by an angle that grows with the token's place.
 *
 * rotary_table: INT32 ids (…, T), of which only T counts, or places (T) → table FP32 (T, dim); places (B, T) → (B, T,
 * dim): dim / 2 cosines, then as
 * many sines, of place · frequency. The product is rounded to FP32 before the cosine is taken: models were trained so.
 * rotary: (src (B, T, C), table (T, dim) or (B, T, dim)) → dst: (lo, hi) of each pair becomes (lo·cos - hi·sin, hi·cos
 * + lo·sin), number i of a head with number i + dim / 2; columns past the last turned head stay. In place those are not
 * touched. Heads may be wider than what is turned of them: then i with i + dim / 2 of their first dim numbers. Its
 * gradient is itself with the angles reversed. Computes in FP32 inside.
 */
#include "ops/rotary_attrs.h"
#include "ops/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the table ---- */

static mixt_status table_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__rotary_table_attrs *at = node->attrs;
    const mixt__value *ids = mixt__in(graph, node, 0);
    if (ids->dtype != MIXT_DTYPE_INT32 || ids->shape.rank < 1 || (at->places && ids->shape.rank > 2)) {
        char text[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "rotary_table needs tokens (…, T), got %s %s", mixt_dtype_name(ids->dtype),
                          mixt__shape_text(&ids->shape, text, sizeof text));
    }
    mixt__shape table = {2, {mixt__last_dim(&ids->shape), at->dim}};
    if (at->places && ids->shape.rank == 2)
        table = (mixt__shape){3, {ids->shape.dims[0], ids->shape.dims[1], at->dim}};
    mixt__set_out(r, 0, &table, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static void table_describe(const void *attrs, char *text, size_t size)
{
    const mixt__rotary_table_attrs *at = attrs;
    snprintf(text, size, "theta %.0f", at->theta);
}

const mixt__op mixt__op_rotary_table = {
    .name = "rotary_table",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__rotary_table_attrs),
    .infer = table_infer,
    .describe = table_describe,
};

/** Numbers that make no table; NULL: all is well. */
static const char *table_fault(const mixt_rotary_options *o)
{
    if (o->dim < 2 || o->dim % 2 || o->dim > MIXT_ROTARY_DIM_MAX)
        return ".dim must be even, from 2 to 512";
    if (!isfinite(o->theta) || o->theta <= 0)
        return ".theta must be above 0";
    if (!(o->factor >= 0 && o->low >= 0 && o->high >= 0 && o->original >= 0) || !isfinite(o->factor + o->original))
        return ".factor, .low, .high and .original must be 0 or above";
    if (o->high > 0 && (o->factor <= 0 || o->original <= 0 || o->high <= o->low))
        return ".high needs .factor and .original, and a .low below it";
    if (!(o->magnitude > 0) || !isfinite(o->magnitude))
        return ".magnitude must be above 0";
    if (o->divisor_count && o->divisor_count != o->dim / 2)
        return ".divisor_count must be 0 or half of .dim";
    for (int64_t i = 0; i < o->divisor_count; i++)
        if (!(o->divisors[i] > 0) || !isfinite(o->divisors[i]))
            return ".divisors must be above 0";
    return NULL;
}

MIXT_PLAY(mixt_rotary_table_with, out[0] = mixt_rotary_table_with(b, in[0], options))

mixt_value mixt_rotary_table_with(mixt_builder *b, mixt_value ids, const mixt_rotary_options *given)
{
    if (!mixt__builder_ready(b, NULL, &ids, 1))
        return (mixt_value){0};
    mixt_rotary_options own = MIXT_OPTIONS(mixt_rotary_options), *o = &own;
    if (!mixt__builder_options(b, NULL, mixt_rotary_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_rotary_table_with, .in = {ids}, .in_count = 1, .options = &own, .options_size = sizeof own);
    const char *fault = table_fault(o);
    if (fault)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "rotary_table: %s", fault);
    mixt__rotary_table_attrs at = {.dim = o->dim, .theta = o->theta, .factor = o->factor};
    at.low = o->low;
    at.high = o->high;
    at.original = o->original;
    at.magnitude = (float)o->magnitude;
    at.own = o->divisor_count > 0;
    memcpy(at.divisors, o->divisors, sizeof at.divisors);
    bool generating = mixt__builder_generating(b);
    at.places = generating || o->places;
    mixt_value in = generating ? (mixt_value){b->graph->positions} : ids;
    return mixt__builder_node(b, &mixt__op_rotary_table, NULL, &at, &in, 1);
}

/* ---- turning ---- */

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__rotary_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0), *table = mixt__in(graph, node, 1);
    const int64_t *dx = x->shape.dims, *dt = table->shape.dims;
    int rank = table->shape.rank;
    bool fits = rank == 2 ? dx[1] == dt[0] : rank == 3 && dx[0] == dt[0] && dx[1] == dt[1];
    if (x->shape.rank != 3 || !fits || dt[rank - 1] != at->dim || at->heads < 1 || at->dim > mixt__rotary_width(at) ||
        at->heads > dx[2] / mixt__rotary_width(at)) {
        char tx[128], tt[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "rotary of %lld heads needs (B, T, C) and a table (T, dim), got %s and %s",
                          (long long)at->heads, mixt__shape_text(&x->shape, tx, sizeof tx),
                          mixt__shape_text(&table->shape, tt, sizeof tt));
    }
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    mixt__rotary_attrs back = *(const mixt__rotary_attrs *)node->attrs;
    int32_t in[2] = {mixt__gradient_of(g, node->out[0]), node->in[1]};
    back.inverse = !back.inverse;
    return mixt__gradient_emit(g, &mixt__op_rotary, &back, in, 2, node->in);
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__rotary_attrs *at = node->attrs;
    const mixt__shape *x = &mixt__in(graph, node, 0)->shape;
    return 3.0 * (double)(mixt__row_count(x) * at->heads * at->dim);
}

/** In place, as a model's own product is turned: what is turned, read and written. */
static double bytes(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__rotary_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    double turned = (double)(mixt__row_count(&x->shape) * at->heads * at->dim) * (double)mixt_dtype_size(x->dtype);
    return 2 * turned + mixt__value_bytes(mixt__in(graph, node, 1));
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__rotary_attrs *at = attrs;
    char part[32] = "";
    if (mixt__rotary_width(at) != at->dim)
        snprintf(part, sizeof part, " in %lld", (long long)at->width);
    snprintf(text, size, "%lld heads of %lld%s%s", (long long)at->heads, (long long)at->dim, part,
             at->inverse ? ", back" : "");
}

const mixt__op mixt__op_rotary = {
    .name = "rotary",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_POINTWISE,
    .attrs_size = sizeof(mixt__rotary_attrs),
    .fp32_inputs = 1u << 1,
    .in_place_inputs = 1,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .bytes = bytes,
    .describe = describe,
};

MIXT_PLAY(mixt_rotary, out[0] = mixt_rotary(b, in[0], in[1], c->numbers[0]))
mixt_value mixt_rotary(mixt_builder *b, mixt_value x, mixt_value table, int64_t heads)
{
    MIXT_RECORD(b, mixt_rotary, .in = {x, table}, .in_count = 2, .numbers = {heads});
    return mixt_rotary_part(b, x, table, heads, 0);
}

MIXT_PLAY(mixt_rotary_part, out[0] = mixt_rotary_part(b, in[0], in[1], c->numbers[0], c->numbers[1]))
mixt_value mixt_rotary_part(mixt_builder *b, mixt_value x, mixt_value table, int64_t heads, int64_t width)
{
    MIXT_RECORD(b, mixt_rotary_part, .in = {x, table}, .in_count = 2, .numbers = {heads, width});
    mixt_value in[2] = {x, table};
    if (!mixt__builder_ready(b, NULL, in, 2))
        return (mixt_value){0};
    int rank = mixt_value_rank(b, table);
    int64_t dim = rank == 2 || rank == 3 ? mixt_value_dim(b, table, -1) : 0;
    if (heads < 1 || dim < 2 || dim % 2 || (width && width < dim))
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL,
                                   "rotary of %lld heads of %lld: needs a table of mixt_rotary_table and at least one",
                                   (long long)heads, (long long)dim);
    mixt__rotary_attrs at = {.heads = heads, .dim = dim, .width = width == dim ? 0 : width};
    return mixt__builder_node(b, &mixt__op_rotary, NULL, &at, in, 2);
}
