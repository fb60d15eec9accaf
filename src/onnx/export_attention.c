/* Attention and rotary positions as ONNX nodes: products, a softmax, and constants for what the places say. */
#include "onnx/export.h"

#include "ops/rotary_attrs.h"

#include <float.h>
#include <math.h>

/** Sizes of an attention: `shared` heads of the queries take the same keys. */
typedef struct sizes {
    int64_t queries, keys, heads, shared, dim;
} sizes;

static const char *reshape(mixt__export *m, const char *x, const int64_t *dims, int rank)
{
    return mixt__export_node(m, "Reshape", MIXT_TAKES(x, mixt__export_ints(m, dims, rank)), NULL);
}

static const char *transpose(mixt__export *m, const char *x, const int64_t *perm, int rank)
{
    return mixt__export_node(m, "Transpose", MIXT_TAKES(x), MIXT_GIVES(MIXT_GIVE_INTS("perm", perm, rank)));
}

static const char *binary(mixt__export *m, const char *op, const char *a, const char *b)
{
    return mixt__export_node(m, op, MIXT_TAKES(a, b), NULL);
}

/** (B, T, C) → (B, heads of the keys, shared · T, dim) */
static const char *split_queries(mixt__export *m, const sizes *s, const char *q)
{
    q = reshape(m, q, (int64_t[]){-1, s->queries, s->heads, s->shared, s->dim}, 5);
    q = transpose(m, q, (int64_t[]){0, 2, 3, 1, 4}, 5);
    return reshape(m, q, (int64_t[]){-1, s->heads, s->shared * s->queries, s->dim}, 4);
}

static const char *join_queries(mixt__export *m, const sizes *s, const char *x)
{
    x = reshape(m, x, (int64_t[]){-1, s->heads, s->shared, s->queries, s->dim}, 5);
    x = transpose(m, x, (int64_t[]){0, 3, 1, 2, 4}, 5);
    return reshape(m, x, (int64_t[]){-1, s->queries, s->heads * s->shared * s->dim}, 3);
}

/** What is added to scores: 0 where a query sees a key, minus infinity elsewhere. (shared · T, S); made once for layers
 *  that have the same. */
static const char *causal_mask(mixt__export *m, const sizes *s, int64_t window)
{
    const int64_t key[MIXT_EXPORT_MASK] = {s->shared, s->queries, s->keys, window}, rows = s->shared * s->queries;
    bool same = m->mask != NULL;
    for (int i = 0; i < MIXT_EXPORT_MASK; i++) {
        same = same && m->mask_of[i] == key[i];
        m->mask_of[i] = key[i];
    }
    if (same)
        return m->mask;
    float *numbers = mixt__alloc_uninit((size_t)(rows * s->keys) * sizeof *numbers + 1);
    for (int64_t r = 0; numbers && r < rows; r++)
        for (int64_t k = 0; k < s->keys; k++) {
            int64_t behind = r % s->queries - k;
            numbers[r * s->keys + k] = behind >= 0 && (!window || behind < window) ? 0 : -INFINITY;
        }
    m->mask = numbers ? mixt__export_floats(m, 2, (int64_t[]){rows, s->keys}, numbers) : "";
    if (!numbers)
        mixt__export_refuse(m, "no memory for its mask");
    mixt__free(numbers);
    return m->mask;
}

/** Scores of keys that are there, the others far below all. @param lengths (B) */
static const char *hide_padding(mixt__export *m, const sizes *s, const char *scores, const char *lengths)
{
    int64_t *places = mixt__arena_alloc(&m->arena, (size_t)s->keys * sizeof *places);
    if (!places) {
        mixt__export_refuse(m, "no memory for the places of its keys");
        return "";
    }
    for (int64_t i = 0; i < s->keys; i++)
        places[i] = i;
    const char *there =
        binary(m, "Less", mixt__export_ints(m, places, (int)s->keys), reshape(m, lengths, (int64_t[]){-1, 1, 1, 1}, 4));
    return mixt__export_node(m, "Where", MIXT_TAKES(there, scores, mixt__export_float(m, -FLT_MAX)), NULL);
}

void mixt__onnx_put_attention(mixt__export *m, const mixt__node *n)
{
    const mixt__attention_attrs *at = n->attrs;
    const mixt__shape *q = &m->g->values[n->in[0]].shape, *k = &m->g->values[n->in[1]].shape;
    sizes s = {.queries = q->dims[1], .keys = k->dims[1], .dim = q->dims[2] / at->heads};
    const char *in[4] = {NULL};
    s.heads = k->dims[2] / s.dim;
    s.shared = at->heads / s.heads;
    if (at->packed) {
        mixt__export_refuse(m, "attention over several texts in a row is not written yet");
        return;
    }
    for (int i = 0; i < n->in_count && i < 4; i++)
        in[i] = mixt__export_in(m, i, MIXT_ONNX_NATURAL);
    const int64_t split[4] = {-1, s.keys, s.heads, s.dim};
    const char *keys = transpose(m, reshape(m, in[1], split, 4), (int64_t[]){0, 2, 3, 1}, 4);
    const char *values = transpose(m, reshape(m, in[2], split, 4), (int64_t[]){0, 2, 1, 3}, 4);
    const char *scores = binary(m, "MatMul", split_queries(m, &s, in[0]), keys);
    scores = binary(m, "Mul", scores, mixt__export_float(m, at->softcap > 0 ? at->scale / at->softcap : at->scale));
    if (at->softcap > 0)
        scores = binary(m, "Mul", mixt__export_node(m, "Tanh", MIXT_TAKES(scores), NULL),
                        mixt__export_float(m, at->softcap));
    if (at->causal)
        scores = binary(m, "Add", scores, causal_mask(m, &s, at->window));
    if (in[3])
        scores = hide_padding(m, &s, scores, in[3]);
    scores = mixt__export_node(m, "Softmax", MIXT_TAKES(scores), MIXT_GIVES(MIXT_GIVE_INT("axis", -1)));
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL, join_queries(m, &s, binary(m, "MatMul", scores, values)));
}

/* ---- rotary positions ---- */

/** Cosines and sines of a text's places are constants, (T, 1, dim): a dimension more than in mixt, for the heads. */
void mixt__onnx_put_rotary_table(mixt__export *m, const mixt__node *n)
{
    const mixt__rotary_table_attrs *at = n->attrs;
    const mixt__shape *s = &m->g->values[n->out[0]].shape;
    int64_t half = at->dim / 2, places = s->dims[0];
    if (at->places) {
        mixt__export_refuse(m, "rotary positions that the batch says are not written yet");
        return;
    }
    float *table = mixt__arena_alloc(&m->arena, (size_t)(places * at->dim) * sizeof *table + 1);
    if (!table) {
        mixt__export_refuse(m, "no memory for its table");
        return;
    }
    for (int64_t t = 0; t < places; t++)
        for (int64_t i = 0; i < half; i++) {
            float angle = (float)t * mixt__rotary_frequency(at, i);
            table[t * at->dim + i] = (float)cos((double)angle) * at->magnitude;
            table[t * at->dim + half + i] = (float)sin((double)angle) * at->magnitude;
        }
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL, mixt__export_floats(m, 3, (int64_t[]){places, 1, at->dim}, table));
}

/** Parts of the last dimension. */
static void split(mixt__export *m, const char *x, const int64_t *sizes, int count, const char **parts)
{
    mixt__export_nodes(m, "Split", MIXT_TAKES(x, mixt__export_ints(m, sizes, count)),
                       MIXT_GIVES(MIXT_GIVE_INT("axis", -1)), parts, count);
}

static const char *concat(mixt__export *m, const char *const *parts)
{
    return mixt__export_node(m, "Concat", parts, MIXT_GIVES(MIXT_GIVE_INT("axis", -1)));
}

/** @param x (B, T, heads, width) */
static const char *turn(mixt__export *m, const char *x, const char *table, int64_t dim, int64_t width)
{
    const int64_t half = dim / 2, sizes[3] = {half, half, width - dim};
    const char *parts[4] = {NULL}, *angles[2];
    split(m, table, sizes, 2, angles);
    split(m, x, sizes, width > dim ? 3 : 2, parts);
    const char *low = parts[0], *high = parts[1];
    parts[0] = binary(m, "Sub", binary(m, "Mul", low, angles[0]), binary(m, "Mul", high, angles[1]));
    parts[1] = binary(m, "Add", binary(m, "Mul", high, angles[0]), binary(m, "Mul", low, angles[1]));
    return concat(m, parts);
}

void mixt__onnx_put_rotary(mixt__export *m, const mixt__node *n)
{
    const mixt__rotary_attrs *at = n->attrs;
    const mixt__shape *s = &m->g->values[n->in[0]].shape;
    int64_t width = mixt__rotary_width(at), turned = at->heads * width, rest = s->dims[2] - turned;
    const char *parts[3] = {mixt__export_in(m, 0, MIXT_ONNX_NATURAL)};
    const char *table = mixt__export_in(m, 1, MIXT_ONNX_NATURAL);
    if (rest)
        split(m, parts[0], (int64_t[]){turned, rest}, 2, parts);
    const char *x = reshape(m, parts[0], (int64_t[]){-1, s->dims[1], at->heads, width}, 4);
    parts[0] = reshape(m, turn(m, x, table, at->dim, width), (int64_t[]){-1, s->dims[1], turned}, 3);
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL, rest ? concat(m, parts) : parts[0]);
}
