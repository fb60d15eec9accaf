/* Public functions made of other ops: repeating, gathering, moving channels into space, norms over other dimensions. */
#include "ops/rules.h"

#include "mixt/ops.h"

#include <string.h>

static void play_mixt_expand(mixt_builder *b, const mixt__kept_call *c, const mixt_value *in, const void *options,
                             mixt_value *out)
{
    (void)options;
    out[0] = mixt_expand(b, in[0], c->number_count, c->numbers);
}

mixt_value mixt_expand(mixt_builder *b, mixt_value x, int rank, const int64_t *dims)
{
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return (mixt_value){0};
    if (rank < 0 || rank > MIXT_MAX_RANK)
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL, "expand to %d dimensions: 0 to %d", rank, MIXT_MAX_RANK);
    if (rank && !mixt__builder_ok(b, NULL, mixt__need(dims)))
        return (mixt_value){0};
    if (mixt__tape_on(b)) {
        mixt__kept_call call = {.play = play_mixt_expand, .in = {x}, .in_count = 1, .number_count = rank};
        for (int i = 0; i < rank; i++)
            call.numbers[i] = dims[i];
        return mixt__tape_call(b, &call, NULL);
    }
    mixt__shape shape = mixt__shape_of(rank, dims);
    if (!mixt__builder_ok(b, NULL, mixt__shape_check(&shape)))
        return (mixt_value){0};
    return mixt__pointwise_apply(b, (mixt__pw_instr){.code = MIXT_PW_COPY}, &x, &shape);
}

static void play_mixt_tile(mixt_builder *b, const mixt__kept_call *c, const mixt_value *in, const void *options,
                           mixt_value *out)
{
    (void)options;
    out[0] = mixt_tile(b, in[0], c->numbers);
}

mixt_value mixt_tile(mixt_builder *b, mixt_value x, const int64_t *counts)
{
    if (!mixt__builder_ready(b, NULL, &x, 1) || !mixt__builder_ok(b, NULL, mixt__need(counts)))
        return (mixt_value){0};
    int rank = b->graph->values[x.id].shape.rank;
    if (mixt__tape_on(b)) {
        mixt__kept_call call = {.play = play_mixt_tile, .in = {x}, .in_count = 1};
        for (int i = 0; i < rank; i++)
            call.numbers[i] = counts[i];
        return mixt__tape_call(b, &call, NULL);
    }
    // A dimension repeated is (before, 1, rest) spread to (before, count, rest): the copies lie behind each other.
    for (int i = 0; i < rank; i++) {
        mixt__shape s = b->graph->values[x.id].shape;
        int64_t before = 1, rest = 1;
        if (counts[i] < 1 || counts[i] > MIXT_ELEMENTS_MAX)
            return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "%lld copies along dimension %d: at least 1",
                                       (long long)counts[i], i);
        if (counts[i] == 1)
            continue;
        for (int k = 0; k < rank; k++)
            *(k < i ? &before : &rest) *= s.dims[k];
        x = mixt_expand(b, mixt_reshape(b, x, 3, (int64_t[]){before, 1, rest}), 3,
                        (int64_t[]){before, counts[i], rest});
        s.dims[i] *= counts[i];
        x = mixt_reshape(b, x, rank, s.dims);
        if (!x.id)
            return x;
    }
    return x;
}

MIXT_PLAY(mixt_gather, out[0] = mixt_gather(b, in[0], in[1], (int)c->numbers[0]))
mixt_value mixt_gather(mixt_builder *b, mixt_value x, mixt_value ids, int axis)
{
    MIXT_RECORD(b, mixt_gather, .in = {x, ids}, .in_count = 2, .numbers = {axis});
    mixt_value in[2] = {x, ids};
    if (!mixt__builder_ready(b, NULL, in, 2))
        return (mixt_value){0};
    mixt__shape s = b->graph->values[x.id].shape, i = b->graph->values[ids.id].shape, out = {0};
    int at = axis < 0 ? axis + s.rank : axis, order[MIXT_MAX_RANK], back[MIXT_MAX_RANK], used = 0;
    if (at < 0 || at >= s.rank || s.rank - 1 + i.rank > MIXT_MAX_RANK)
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL,
                                   "gather along dimension %d of %d by indices of %d dimensions: at most %d in all",
                                   axis, s.rank, i.rank, MIXT_MAX_RANK);
    order[used++] = at; // the dimension first: rows of a table
    int64_t rest = 1;
    for (int k = 0; k < s.rank; k++)
        if (k != at) {
            order[used++] = k;
            rest *= s.dims[k];
        }
    x = at ? mixt_transpose(b, x, order) : x;
    x = mixt_embedding_lookup(b, mixt_reshape(b, x, 2, (int64_t[]){s.dims[at], rest}), ids);
    for (int k = 0; k < i.rank; k++)
        out.dims[out.rank++] = i.dims[k];
    for (int k = 1; k < s.rank; k++)
        out.dims[out.rank++] = s.dims[order[k]];
    x = mixt_reshape(b, x, out.rank, out.dims);
    for (int k = 0; k < out.rank; k++) // what was before the dimension, the indices, what was behind it
        back[k] = k < at ? i.rank + k : k < at + i.rank ? k - at : k;
    return at && i.rank ? mixt_transpose(b, x, back) : x;
}

/** (N, H, W, C), each dimension a multiple of what it is divided by; false: an error has been recorded. */
static bool is_image(mixt_builder *b, const char *what, mixt_value x, int64_t block, bool deep, mixt__shape *s)
{
    char text[128];
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return false;
    *s = b->graph->values[x.id].shape;
    bool fits = s->rank == 4 && block >= 1 && block <= 65536;
    if (fits)
        fits = deep ? s->dims[3] % (block * block) == 0 : s->dims[1] % block == 0 && s->dims[2] % block == 0;
    if (!fits)
        mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL, "%s of %s with blocks of %lld", what,
                            mixt__shape_text(s, text, sizeof text), (long long)block);
    return fits;
}

MIXT_PLAY(mixt_depth_to_space, out[0] = mixt_depth_to_space(b, in[0], c->numbers[0], c->numbers[1] != 0))
mixt_value mixt_depth_to_space(mixt_builder *b, mixt_value x, int64_t block, bool channels_first)
{
    MIXT_RECORD(b, mixt_depth_to_space, .in = {x}, .in_count = 1, .numbers = {block, channels_first});
    mixt__shape s;
    if (!is_image(b, "depth_to_space", x, block, true, &s))
        return (mixt_value){0};
    int64_t n = s.dims[0], h = s.dims[1], w = s.dims[2], c = s.dims[3] / block / block;
    int64_t first[6] = {n, h, w, c, block, block}, last[6] = {n, h, w, block, block, c};
    x = mixt_reshape(b, x, 6, channels_first ? first : last);
    x = mixt_transpose(b, x, channels_first ? (int[]){0, 1, 4, 2, 5, 3} : (int[]){0, 1, 3, 2, 4, 5});
    return mixt_reshape(b, x, 4, (int64_t[]){n, h * block, w * block, c});
}

MIXT_PLAY(mixt_space_to_depth, out[0] = mixt_space_to_depth(b, in[0], c->numbers[0]))
mixt_value mixt_space_to_depth(mixt_builder *b, mixt_value x, int64_t block)
{
    MIXT_RECORD(b, mixt_space_to_depth, .in = {x}, .in_count = 1, .numbers = {block});
    mixt__shape s;
    if (!is_image(b, "space_to_depth", x, block, false, &s))
        return (mixt_value){0};
    int64_t n = s.dims[0], h = s.dims[1] / block, w = s.dims[2] / block, c = s.dims[3];
    x = mixt_reshape(b, x, 6, (int64_t[]){n, h, block, w, block, c});
    x = mixt_transpose(b, x, (int[]){0, 1, 3, 2, 4, 5});
    return mixt_reshape(b, x, 4, (int64_t[]){n, h, w, c * block * block});
}

/** x with the leading dimensions of `lead`, which it broadcasts to, in front of its last two. */
static mixt_value lead_by(mixt_builder *b, mixt_value x, const mixt__shape *lead)
{
    mixt__shape s = b->graph->values[x.id].shape, to = *lead;
    to.dims[to.rank - 2] = s.dims[s.rank - 2];
    to.dims[to.rank - 1] = s.dims[s.rank - 1];
    return mixt__shape_equal(&s, &to) ? x : mixt_expand(b, x, to.rank, to.dims);
}

MIXT_PLAY(mixt_matmul_broadcast, out[0] = mixt_matmul_broadcast(b, in[0], in[1]))
mixt_value mixt_matmul_broadcast(mixt_builder *b, mixt_value x, mixt_value y)
{
    MIXT_RECORD(b, mixt_matmul_broadcast, .in = {x, y}, .in_count = 2);
    mixt_value in[2] = {x, y};
    if (!mixt__builder_ready(b, NULL, in, 2))
        return (mixt_value){0};
    mixt__shape p = b->graph->values[x.id].shape, q = b->graph->values[y.id].shape, lead;
    if (p.rank < 2 || q.rank < 2 || q.rank == 2) // a plain matrix on the right takes all rows as they are
        return mixt_matmul(b, x, y);
    lead = p.rank > q.rank ? p : q;
    for (int i = 3; i <= lead.rank; i++) {
        int64_t n = i <= p.rank ? p.dims[p.rank - i] : 1, m = i <= q.rank ? q.dims[q.rank - i] : 1;
        lead.dims[lead.rank - i] = n == 1 ? m : n; // where they do not fit, expanding one of them says so
    }
    return mixt_matmul(b, lead_by(b, x, &lead), lead_by(b, y, &lead));
}

/* ---- norms ---- */

/** A vector of one number: 1 or 0, whatever x is. Comparisons have no gradient, so nothing flows into x. */
static mixt_value constant(mixt_builder *b, mixt_value x, bool is_one, int64_t count)
{
    int rank = b->graph->values[x.id].shape.rank;
    for (int i = 0; i < rank; i++)
        x = mixt_slice(b, x, i, 0, 1);
    x = mixt_reshape(b, x, 1, (int64_t[]){1});
    x = is_one ? mixt_equal(b, x, x) : mixt_less(b, x, x);
    return mixt_expand(b, x, 1, &count);
}

MIXT_PLAY(mixt_normalize_groups, out[0] = mixt_normalize_groups(b, in[0], c->numbers[0], c->reals[0]))
mixt_value mixt_normalize_groups(mixt_builder *b, mixt_value x, int64_t groups, float eps)
{
    MIXT_RECORD(b, mixt_normalize_groups, .in = {x}, .in_count = 1, .numbers = {groups}, .reals = {eps});
    if (!mixt__builder_ready(b, NULL, &x, 1) || !mixt__builder_number(b, NULL, "eps", eps))
        return (mixt_value){0};
    mixt__shape s = b->graph->values[x.id].shape;
    char text[128];
    int64_t count = mixt__shape_count(&s);
    if (s.rank < 2 || groups < 1 || s.dims[s.rank - 1] % groups || count == 0)
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL, "group norm of %s in %lld groups",
                                   mixt__shape_text(&s, text, sizeof text), (long long)groups);
    int64_t n = s.dims[0], c = s.dims[s.rank - 1], pixels = count / n / c, width = pixels * (c / groups);
    x = mixt_transpose(b, mixt_reshape(b, x, 4, (int64_t[]){n, pixels, groups, c / groups}), (int[]){0, 2, 1, 3});
    x = mixt_reshape(b, x, 2, (int64_t[]){n * groups, width}); // a row is a group: a layer norm
    if (!x.id)
        return x;
    mixt__norm_attrs at = {.eps = eps, .training = b->graph->training};
    mixt_value in[3] = {x, constant(b, x, true, width), constant(b, x, false, width)};
    x = mixt__builder_node(b, &mixt__op_layer_norm, NULL, &at, in, 3);
    x = mixt_reshape(b, x, 4, (int64_t[]){n, groups, pixels, c / groups});
    return mixt_reshape(b, mixt_transpose(b, x, (int[]){0, 2, 1, 3}), s.rank, s.dims);
}

MIXT_PLAY(mixt_group_norm_with, out[0] = mixt_group_norm_with(b, c->name, in[0], c->numbers[0], options))
mixt_value mixt_group_norm_with(mixt_builder *b, const char *name, mixt_value x, int64_t groups,
                                const mixt_norm_options *given)
{
    mixt_norm_options own = MIXT_OPTIONS(mixt_norm_options);
    if (!mixt__builder_options(b, name, mixt_norm_options, &own, given))
        return (mixt_value){0};
    own.mask = (mixt_value){0};
    MIXT_RECORD(b, mixt_group_norm_with, .name = name, .in = {x}, .in_count = 1, .numbers = {groups}, .options = &own,
                .options_size = sizeof own);
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    mixt__param one = {.shape = mixt__vector_shape(mixt__last_dim(&b->graph->values[x.id].shape)), .trainable = true};
    one.init = MIXT_INIT_ONE;
    mixt__param zero = one;
    zero.init = MIXT_INIT_ZERO;
    mixt_value weight = mixt__builder_param(b, name, "weight", own.zero ? &zero : &one),
               bias = mixt__builder_param(b, name, "bias", &zero);
    return mixt_add(b, mixt_mul(b, mixt_normalize_groups(b, x, groups, own.eps), weight), bias);
}

MIXT_PLAY(mixt_layer_norm_over_with, out[0] = mixt_layer_norm_over_with(b, c->name, in[0], (int)c->numbers[0], options))
mixt_value mixt_layer_norm_over_with(mixt_builder *b, const char *name, mixt_value x, int axis,
                                     const mixt_norm_options *given)
{
    mixt_norm_options own = MIXT_OPTIONS(mixt_norm_options);
    if (!mixt__builder_options(b, name, mixt_norm_options, &own, given))
        return (mixt_value){0};
    own.mask = (mixt_value){0};
    MIXT_RECORD(b, mixt_layer_norm_over_with, .name = name, .in = {x}, .in_count = 1, .numbers = {axis},
                .options = &own, .options_size = sizeof own);
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    mixt__shape s = b->graph->values[x.id].shape, flat = {0};
    int at = axis < 0 ? axis + s.rank : axis;
    int64_t last = 1;
    if (at < 0 || at >= s.rank)
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, name, "layer norm from dimension %d of a value with %d", axis,
                                   s.rank);
    for (int i = 0; i < s.rank; i++)
        if (i < at)
            flat.dims[flat.rank++] = s.dims[i];
        else
            last *= s.dims[i];
    flat.dims[flat.rank++] = last;
    x = mixt_layer_norm_with(b, name, mixt_reshape(b, x, flat.rank, flat.dims), &own);
    return mixt_reshape(b, x, s.rank, s.dims);
}
