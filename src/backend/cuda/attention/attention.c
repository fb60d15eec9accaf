/* Attention through cuDNN's graphs, and the list of candidates.
 *
 * cuDNN's fused engines take the whole computation written out as products, pointwise operations and reductions, and
 * recognise it: the forward pass ends in dst and the log-sum-exp of each row, the gradient begins with the row sums of
 * grad_dst · dst and makes the probabilities anew. Nothing of size T·S reaches memory in the forward pass.
 */
#include "backend/cuda/attention/attention.h"

#include "backend/cuda/core/cudnn_graph.h"
#include "backend/cuda/kernels.h"
#include "base/alloc.h"
#include "base/status.h"

#include <math.h>

/* Parts of the batch that keep 384 MiB of scores cost GPT-2 at B 32 × T 1024 6% of the gradient's time against the
 * batch as a whole, parts of 192 MiB 22%. */
static const int64_t score_bytes = (int64_t)1 << 30;

typedef struct state {
    const mixt__cudnn_plan *plan;
    int64_t chunk;   // batch entries that one run of the plan takes
    size_t row_sums; // where in the workspace they are
    bool repeated;   // k and v are repeated for every head of q first, at `keys` in the workspace
    size_t keys;
} state;

/* ---- pieces of both graphs ---- */

/** Heads of a tensor (B, length, C) as (B, H, length, D), or (B, H, D, length) when turned: as many as it has. */
static int heads_in(mixt__cudnn_graph *g, const mixt__tensor *t, const mixt__heads *s, bool turned)
{
    mixt__cudnn_shape shape = {.type = mixt__cudnn_type(t->dtype),
                               .rank = 4,
                               .dims = {s->batch, t->shape.dims[2] / s->dim, t->shape.dims[1], s->dim},
                               .strides = {t->strides[0], s->dim, t->strides[1], 1}};
    if (turned) {
        shape.dims[2] = s->dim;
        shape.dims[3] = t->shape.dims[1];
        shape.strides[2] = 1;
        shape.strides[3] = t->strides[1];
    }
    return mixt__cudnn_memory(g, &shape);
}

/** One FP32 number a row, (B, H, T, 1). */
static int row_numbers(mixt__cudnn_graph *g, const mixt__heads *s)
{
    mixt__cudnn_shape shape = {.type = CUDNN_DATA_FLOAT,
                               .rank = 4,
                               .dims = {s->batch, s->count, s->queries, 1},
                               .strides = {s->count * s->queries, s->queries, 1, 1}};
    return mixt__cudnn_memory(g, &shape);
}

static int row_virtual(mixt__cudnn_graph *g, const mixt__heads *s)
{
    return mixt__cudnn_virtual4(g, CUDNN_DATA_FLOAT, s->batch, s->count, s->queries, 1);
}

static int scores_of(mixt__cudnn_graph *g, const mixt__heads *s, cudnnDataType_t type)
{
    return mixt__cudnn_virtual4(g, type, s->batch, s->count, s->queries, s->keys);
}

static int map(mixt__cudnn_graph *g, cudnnPointwiseMode_t mode, int x, int b, int dst)
{
    mixt__cudnn_map(g, &(mixt__cudnn_pointwise){.mode = mode, .x = x, .b = b, .dst = dst});
    return dst;
}

/** Scores of keys after the query become minus infinity. */
static int mask(mixt__cudnn_graph *g, const mixt__heads *s, int scores)
{
    if (!s->causal)
        return scores;
    int row = scores_of(g, s, CUDNN_DATA_INT32), column = scores_of(g, s, CUDNN_DATA_INT32);
    int seen = scores_of(g, s, CUDNN_DATA_BOOLEAN), masked = scores_of(g, s, CUDNN_DATA_FLOAT);
    mixt__cudnn_map(g, &(mixt__cudnn_pointwise){.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = 2, .x = scores, .dst = row});
    mixt__cudnn_map(g,
                    &(mixt__cudnn_pointwise){.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = 3, .x = scores, .dst = column});
    mixt__cudnn_map(
        g, &(mixt__cudnn_pointwise){
               .mode = CUDNN_POINTWISE_CMP_GE, .compute = CUDNN_DATA_BOOLEAN, .x = row, .b = column, .dst = seen});
    mixt__cudnn_map(g, &(mixt__cudnn_pointwise){.mode = CUDNN_POINTWISE_BINARY_SELECT,
                                                .x = scores,
                                                .b = mixt__cudnn_scalar(g, -INFINITY, 4),
                                                .t = seen,
                                                .dst = masked});
    return masked;
}

static int scaled_scores(mixt__cudnn_graph *g, const mixt__heads *s, int q, int k_turned, int scale)
{
    int scores = scores_of(g, s, CUDNN_DATA_FLOAT);
    mixt__cudnn_matmul(g, q, k_turned, scores);
    return map(g, CUDNN_POINTWISE_MUL, scores, scale, scores_of(g, s, CUDNN_DATA_FLOAT));
}

/* ---- forward ---- */

static mixt_status choose(const mixt__call *call, const mixt__cudnn_plan **plan)
{
    mixt__heads s = mixt__heads_of(call);
    mixt__cudnn_graph graph, *g = &graph;
    mixt__cudnn_begin(g, mixt__cuda_of(call), "attention");
    int q = heads_in(g, &call->in[0], &s, false), k = heads_in(g, &call->in[1], &s, true);
    int v = heads_in(g, &call->in[2], &s, false), dst = heads_in(g, &call->out[0], &s, false), lse = row_numbers(g, &s);
    int scores = mask(g, &s, scaled_scores(g, &s, q, k, mixt__cudnn_scalar(g, s.scale, 4)));
    int most = row_virtual(g, &s), total = row_virtual(g, &s);
    mixt__cudnn_reduce(g, CUDNN_REDUCE_TENSOR_MAX, scores, most);
    int less = map(g, CUDNN_POINTWISE_SUB, scores, most, scores_of(g, &s, CUDNN_DATA_FLOAT));
    int powers = map(g, CUDNN_POINTWISE_EXP, less, 0, scores_of(g, &s, CUDNN_DATA_FLOAT));
    mixt__cudnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, powers, total);
    map(g, CUDNN_POINTWISE_ADD, most, map(g, CUDNN_POINTWISE_LOG, total, 0, row_virtual(g, &s)), lse);
    int p = map(g, CUDNN_POINTWISE_DIV, powers, total, scores_of(g, &s, mixt__cudnn_type(call->in[0].dtype)));
    mixt__cudnn_matmul(g, p, v, dst);
    mixt_status status = mixt__cudnn_choose(g, &(mixt__cudnn_wish){0}, plan);
    mixt__cudnn_end(g);
    return status;
}

/** Everything that cuDNN's engines ask for and that is known before the pointers are. */
static bool shapes_fit(const mixt__call *call, const char **reason)
{
    mixt__heads s = mixt__heads_of(call);
    mixt_dtype dtype = call->in[0].dtype;
    *reason = mixt__attention_special(call)                          ? mixt__attention_special(call)
              : mixt__attention_lengths(call)                        ? MIXT_ATTENTION_ALL_KEYS
              : dtype != MIXT_DTYPE_FP16 && dtype != MIXT_DTYPE_BF16 ? "only FP16 and BF16"
              : mixt__cuda_of(call)->sm < 80                         ? "needs compute capability 8.0"
              : s.dim % 8 || s.dim > 128                             ? "head size not a multiple of 8, or over 128"
              : s.batch < 1 || s.queries < 2 || s.keys < 2           ? "fewer than two queries or keys"
                                                                     : NULL;
    if (!*reason && !mixt__attention_strides_fit(call))
        *reason = "strides not multiples of 16 bytes";
    return !*reason;
}

/** Where heads are grouped and no engine takes that: k and v are repeated. */
static mixt_status choose_either(const mixt__call *call, state *st)
{
    mixt__tensor in[6];
    st->repeated = false;
    mixt_status status = choose(call, &st->plan);
    if (status == MIXT_OK || mixt__heads_of(call).group == 1)
        return status;
    st->repeated = true;
    mixt__call repeated = mixt__attention_repeat(call, in);
    return choose(&repeated, &st->plan);
}

static bool supports(const mixt__call *call, const char **reason)
{
    state st;
    if (!shapes_fit(call, reason))
        return false;
    *reason = "cuDNN has no engine for it";
    return choose_either(call, &st) == MIXT_OK;
}

static size_t round_up(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/** Room for repeated keys and values behind what the workspace holds so far. */
static void keys_room(mixt__call *call, state *st)
{
    st->keys = round_up(call->workspace_bytes);
    if (st->repeated)
        call->workspace_bytes = st->keys + 2 * mixt__attention_full_bytes(call);
}

/** Keys and values for the plan: the call's own, or repeated. */
static mixt_status take_keys(const mixt__call *call, const state *st, void *keys[2])
{
    for (int i = 0; i < 2; i++)
        keys[i] = st->repeated ? (char *)call->workspace + st->keys + (size_t)i * mixt__attention_full_bytes(call)
                               : call->in[i + 1].data;
    return st->repeated ? mixt__attention_copy_keys(call, keys) : MIXT_OK;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    call->tensor_cores = mixt__cuda_tensor_format(call);
    state *st = mixt__arena_alloc(arena, sizeof *st);
    if (!st)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to prepare attention");
    MIXT_TRY(choose_either(call, st));
    call->workspace_bytes = mixt__cudnn_workspace(st->plan);
    keys_room(call, st);
    call->state = st;
    return MIXT_OK;
}

static mixt_status run(const mixt__call *call)
{
    const state *st = call->state;
    if (!mixt__attention_aligned(call))
        return mixt__attention_plain.run(call);
    void *keys[2];
    MIXT_TRY(take_keys(call, st, keys));
    void *pointers[] = {call->in[0].data, keys[0], keys[1], call->out[0].data, call->out[1].data};
    return mixt__cudnn_run(st->plan, pointers, call->workspace);
}

/* ---- gradient ---- */

/** Scores (B, H, T, S) turned into (B, H, S, T), in the operands' format. */
static int turn(mixt__cudnn_graph *g, const mixt__heads *s, int scores, cudnnDataType_t type)
{
    mixt__cudnn_shape shape = {.type = type,
                               .rank = 4,
                               .dims = {s->batch, s->count, s->keys, s->queries},
                               .strides = {s->count * s->queries * s->keys, s->queries * s->keys, 1, s->keys}};
    int turned = mixt__cudnn_virtual(g, &shape);
    mixt__cudnn_reshape(g, scores, turned);
    return turned;
}

/** Row sums of grad_dst · dst, which cuDNN keeps in memory. */
static int row_sums(mixt__cudnn_graph *g, const mixt__heads *s, int dst, int grad_dst, int sums)
{
    int products = mixt__cudnn_virtual4(g, CUDNN_DATA_FLOAT, s->batch, s->count, s->queries, s->dim);
    int reduced = row_virtual(g, s);
    map(g, CUDNN_POINTWISE_MUL, grad_dst, dst, products);
    mixt__cudnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, products, reduced);
    return map(g, CUDNN_POINTWISE_MUL, reduced, mixt__cudnn_scalar(g, 1, 4), sums); // the pattern asks for a factor
}

/** For `chunk` entries of the batch. */
static mixt_status grad_plan(const mixt__call *call, int64_t chunk, const mixt__cudnn_plan **plan)
{
    mixt__heads s = mixt__heads_of(call);
    s.batch = chunk;
    cudnnDataType_t low = mixt__cudnn_type(call->in[0].dtype), full = CUDNN_DATA_FLOAT;
    const mixt__tensor *k_in = &call->in[1];
    mixt__cudnn_graph graph, *g = &graph;
    mixt__cudnn_begin(g, mixt__cuda_of(call), "attention_grad");
    int q = heads_in(g, &call->in[0], &s, false), k = heads_in(g, k_in, &s, true),
        v = heads_in(g, &call->in[2], &s, true);
    int dst = heads_in(g, &call->in[3], &s, false), lse = row_numbers(g, &s);
    int grad_dst = heads_in(g, &call->in[5], &s, false);
    int grad_q = heads_in(g, &call->out[0], &s, false), grad_k = heads_in(g, &call->out[1], &s, false);
    int grad_v = heads_in(g, &call->out[2], &s, false), sums = row_numbers(g, &s);
    int scale = mixt__cudnn_scalar(g, s.scale, 4);
    row_sums(g, &s, dst, grad_dst, sums);
    int less = map(g, CUDNN_POINTWISE_SUB, scaled_scores(g, &s, q, k, scale), lse, scores_of(g, &s, full));
    int p = map(g, CUDNN_POINTWISE_EXP, mask(g, &s, less), 0, scores_of(g, &s, full));
    mixt__cudnn_matmul(g, turn(g, &s, p, low), grad_dst, grad_v);
    int grad_p = scores_of(g, &s, full);
    mixt__cudnn_matmul(g, grad_dst, v, grad_p);
    int centred = map(g, CUDNN_POINTWISE_SUB, grad_p, sums, scores_of(g, &s, full));
    int unscaled = map(g, CUDNN_POINTWISE_MUL, centred, p, scores_of(g, &s, full));
    int grad_s = map(g, CUDNN_POINTWISE_MUL, unscaled, scale, scores_of(g, &s, full));
    mixt__cudnn_matmul(g, turn(g, &s, grad_s, low), q, grad_k);
    mixt__cudnn_shape upright = {.type = full,
                                 .rank = 4,
                                 .dims = {s.batch, s.count / s.group, s.keys, s.dim},
                                 .strides = {k_in->strides[0], s.dim, k_in->strides[1], 1}};
    int k_upright = mixt__cudnn_virtual(g, &upright);
    mixt__cudnn_reshape(g, k, k_upright);
    mixt__cudnn_matmul(g, grad_s, k_upright, grad_q);
    mixt_status status = mixt__cudnn_choose(g, &(mixt__cudnn_wish){.workspace_limit = (size_t)2 << 30}, plan);
    mixt__cudnn_end(g);
    return status;
}

/** cuDNN's engine that never adds in another order keeps the gradient of all scores in memory: the batch goes through
 * it in equal parts that bound this. */
static mixt_status grad_choose(const mixt__call *call, state *st)
{
    mixt__heads s = mixt__heads_of(call);
    int64_t entry = s.count * s.queries * s.keys * 2, most = score_bytes / entry > 1 ? score_bytes / entry : 1;
    mixt__tensor in[6];
    st->chunk = s.batch < most ? s.batch : most;
    while (s.batch % st->chunk)
        st->chunk--;
    st->repeated = false;
    mixt_status status = grad_plan(call, st->chunk, &st->plan);
    if (status == MIXT_OK || s.group == 1)
        return status;
    st->repeated = true;
    mixt__call repeated = mixt__attention_repeat(call, in);
    return grad_plan(&repeated, st->chunk, &st->plan);
}

static bool grad_supports(const mixt__call *call, const char **reason)
{
    state st;
    mixt__tensor out[3];
    mixt__call spread = mixt__attention_spread(call, out);
    if (!shapes_fit(call, reason))
        return false;
    *reason = "cuDNN has no engine for it";
    return grad_choose(&spread, &st) == MIXT_OK;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    call->tensor_cores = mixt__cuda_tensor_format(call);
    mixt__heads s = mixt__heads_of(call);
    state *st = mixt__arena_alloc(arena, sizeof *st);
    if (!st)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to prepare attention");
    mixt__tensor out[3];
    mixt__call spread = mixt__attention_spread(call, out);
    MIXT_TRY(grad_choose(&spread, st));
    st->row_sums = round_up(mixt__cudnn_workspace(st->plan));
    call->workspace_bytes = st->row_sums + (size_t)(s.batch * s.count * s.queries) * sizeof(float);
    keys_room(call, st);
    mixt__attention_grouped_room(call);
    call->state = st;
    return MIXT_OK;
}

static mixt_status grad_heads(const mixt__call *call)
{
    const state *st = call->state;
    if (!mixt__attention_aligned(call))
        return mixt__attention_grad_plain.run(call);
    mixt__tensor in[6];
    void *keys[2];
    mixt__call full = st->repeated ? mixt__attention_repeat(call, in) : *call;
    MIXT_TRY(take_keys(call, st, keys));
    for (int i = 0; st->repeated && i < 2; i++)
        in[i + 1].data = keys[i];
    for (int64_t b = 0; b < call->in[0].shape.dims[0]; b += st->chunk) {
        void *pointers[10];
        for (int i = 0; i < 9; i++) {
            const mixt__tensor *t = i < 6 ? &full.in[i] : &call->out[i - 6];
            pointers[i] = (char *)t->data + (size_t)(b * t->strides[0]) * mixt_dtype_size(t->dtype);
        }
        pointers[9] = (char *)call->workspace + st->row_sums;
        MIXT_TRY(mixt__cudnn_run(st->plan, pointers, call->workspace));
    }
    return MIXT_OK;
}

static mixt_status grad_run(const mixt__call *call)
{
    return mixt__attention_grouped(call, grad_heads);
}

static const mixt__kernel cudnn = {.name = "cudnn", .supports = supports, .prepare = prepare, .run = run};
static const mixt__kernel grad_cudnn = {
    .name = "cudnn", .supports = grad_supports, .prepare = grad_prepare, .run = grad_run};

const mixt__kernel *const mixt__cuda_attention_kernels[] = {
    &cudnn, &mixt__attention_tf32, &mixt__attention_strict, &mixt__attention_tiled, &mixt__attention_plain, NULL};
const mixt__kernel *const mixt__cuda_attention_grad_kernels[] = {
    &grad_cudnn,
    &mixt__attention_grad_hopper,
    &mixt__attention_grad_tf32,
    &mixt__attention_grad_strict,
    &mixt__attention_grad_tiled,
    &mixt__attention_grad_plain,
    NULL,
};
