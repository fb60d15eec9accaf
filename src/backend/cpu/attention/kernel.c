/* The blocked attention kernels: a thread's buffers and how threads share the work. Compiled for
 * AVX2, AVX-512, AVX512-BF16 and AMX; the last two take BF16 tensors only.
 *
 * Forward: threads split (batch entry, head, block of queries); whole heads a thread where there are enough of them, as
 * each thread packs the keys and values of every head it touches. Gradient: a thread owns a head of keys and values
 * with all heads of queries that share it, and so every sum in them: no order depends on the thread count.
 */
#include "backend/cpu/attention/block.h"
#include "base/threads.h"

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/** Lays a thread's buffers out from `base` (NULL: only counts); the floats they take. */
static int64_t scratch_of(const mixt__heads *s, bool grad, float *base, scratch *x)
{
    int64_t dim = round_up(s->dim, ROW_UNIT), keys = round_up(s->keys, TILE_COLS), used = 0;
    int64_t all = keys * dim, block = QUERIES * dim, scores = QUERIES * SCORES_LD;
    // What pack_depth makes; with one number a word it makes nothing.
    int64_t depth = TILE_PACK > 1, packed_all = all / TILE_PACK, packed = block / TILE_PACK;
    struct {
        float **buffer;
        int64_t count;
    } parts[] = {
        {&x->k_panels, packed_all},
        {&x->v_panels, grad ? packed_all : 0},
        {&x->k_rows, grad ? packed_all : 0},
        {&x->v_rows, grad ? 0 : packed_all},
        {&x->k_depth, grad ? depth * packed_all : 0},
        {&x->v_depth, grad ? 0 : depth * packed_all},
        {&x->rows, TILE_COLS * dim / TILE_PACK},
        {&x->q_rows, packed},
        {&x->grad_rows, grad ? packed : 0},
        {&x->q_depth, grad ? depth * packed : 0},
        {&x->grad_depth, grad ? depth * packed : 0},
        {&x->out, block},
        {&x->wide, grad ? block : 0},
        {&x->scores, scores},
        {&x->grad_scores, grad ? scores : 0},
        {&x->scores_depth, grad ? depth * scores / TILE_PACK : 0},
        {&x->largest, QUERIES},
        {&x->total, QUERIES},
        {&x->grad_k, grad ? all : 0},
        {&x->grad_v, grad ? all : 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i].buffer = base ? base + used : NULL;
        used += round_up(parts[i].count, 16);
    }
    return used;
}

static mixt_status prepare_either(mixt__call *call, bool grad)
{
    scratch buffers;
    mixt__heads s = mixt__heads_of(call);
    call->workspace_bytes = (size_t)(scratch_of(&s, grad, NULL, &buffers) * mixt__threads_count()) * sizeof(float);
    return MIXT_OK;
}

static head_tensor head_of(const mixt__tensor *x, int64_t dim, int64_t b, int64_t number)
{
    size_t offset = (size_t)(b * x->strides[0] + number * dim) * mixt_dtype_size(x->dtype);
    return (head_tensor){(char *)x->data + offset, x->strides[1]};
}

/** The part that both directions share. */
static head head_open(const mixt__call *call, const mixt__heads *s, int64_t b, int64_t number)
{
    mixt_dtype dtype = call->in[0].dtype;
    head h = {.dim = s->dim, .dim_padded = round_up(s->dim, ROW_UNIT), .queries = s->queries};
    h.keys = mixt__heads_keys(s, b);
    h.words = h.dim_padded / TILE_PACK;
    h.scale = s->scale;
    h.softcap = s->softcap;
    h.causal = s->causal;
    h.window = s->window;
    h.places = s->places ? s->places + b * s->queries : NULL;
    h.element = mixt_dtype_size(dtype);
    h.widen = mixt__widen(dtype);
    h.narrow = mixt__narrow(dtype);
    h.q = head_of(&call->in[0], s->dim, b, number);
    h.k = head_of(&call->in[1], s->dim, b, number / s->group);
    h.v = head_of(&call->in[2], s->dim, b, number / s->group);
    return h;
}

static mixt_status forward_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    return prepare_either(call, false);
}

/** Items count blocks of queries, all of head 0 first. */
static void forward_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    mixt__heads s = mixt__heads_of(call);
    scratch buffers;
    head h;
    const float *values = NULL;
    int64_t per_head = (s.queries + QUERIES - 1) / QUERIES;
    int64_t floats = scratch_of(&s, false, NULL, &buffers);
    scratch_of(&s, false, (float *)call->workspace + thread * floats, &buffers);
    tile_begin();
    for (int64_t item = begin; item < end; item++) {
        int64_t number = item / per_head, turn = item % per_head;
        if (item == begin || turn == 0) {
            h = head_open(call, &s, number / s.count, number % s.count);
            h.dst = head_of(&call->out[0], s.dim, number / s.count, number % s.count);
            h.lse = (float *)call->out[1].data + number * s.queries;
            values = forward_load(&h, &buffers);
        }
        // Early and late blocks by turns: under a causal mask late ones cost more, and threads cut the row of items.
        int64_t place = turn % 2 ? per_head - 1 - turn / 2 : turn / 2;
        forward_queries(&h, place * QUERIES, values, &buffers);
    }
    tile_end();
}

static mixt_status forward_run(const mixt__call *call)
{
    mixt__heads s = mixt__heads_of(call);
    int64_t per_head = (s.queries + QUERIES - 1) / QUERIES, heads = s.batch * s.count;
    bool whole = heads % mixt__threads_count() == 0 || heads >= 8 * mixt__threads_count();
    mixt__parallel(heads * per_head, whole ? per_head : 1, forward_range, (void *)call);
    return MIXT_OK;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    return prepare_either(call, true);
}

static void grad_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    mixt__heads s = mixt__heads_of(call);
    scratch buffers;
    int64_t floats = scratch_of(&s, true, NULL, &buffers);
    scratch_of(&s, true, (float *)call->workspace + thread * floats, &buffers);
    tile_begin();
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item * s.group, b = first / s.count; // of the heads of queries that share this one
        const float *keys_depth = NULL;
        head h = {0};
        for (int64_t i = first; i < first + s.group; i++) {
            int64_t number = i % s.count;
            h = head_open(call, &s, b, number);
            h.dst = head_of(&call->in[3], s.dim, b, number);
            h.lse = (float *)call->in[4].data + i * s.queries;
            h.grad_dst = head_of(&call->in[5], s.dim, b, number);
            h.grad_q = head_of(&call->out[0], s.dim, b, number);
            if (i == first)
                keys_depth = backward_load(&h, &buffers);
            backward_add(&h, keys_depth, &buffers);
        }
        h.grad_k = head_of(&call->out[1], s.dim, b, first % s.count / s.group);
        h.grad_v = head_of(&call->out[2], s.dim, b, first % s.count / s.group);
        backward_store(&h, s.keys, &buffers);
    }
    tile_end();
}

static mixt_status grad_run(const mixt__call *call)
{
    mixt__heads s = mixt__heads_of(call);
    mixt__parallel(s.batch * s.count / s.group, 1, grad_range, (void *)call);
    return MIXT_OK;
}

static bool supports(const mixt__call *call, const char **reason)
{
    if (!vec_supports(call, reason))
        return false;
    if (TILE_PACK > 1 && call->in[0].dtype != MIXT_DTYPE_BF16) {
        *reason = "only BF16";
        return false;
    }
#if !MIXT_AT_AMX
    if (TILE_PACK > 1 && mixt__isa_level() >= MIXT_ISA_AMX) { // forward of 8 x 6 x 256 x 64 there: 0.94 ms, FP32 0.68
        *reason = "CPUs with AMX do FP32 products faster than vdpbf16ps";
        return false;
    }
#endif
    return true;
}

const mixt__kernel MIXT_AT(mixt__attention) = {MIXT_AT_NAME, supports, forward_prepare, forward_run, NULL};
const mixt__kernel MIXT_AT(mixt__attention_grad) = {MIXT_AT_NAME, supports, grad_prepare, grad_run, NULL};
