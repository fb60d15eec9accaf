/* reshape, transpose, slice, split and concat where they must move data, and the gradient of slice. */
#include "backend/cpu/core/rows.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/movement/strided_copy.h"
#include "base/threads.h"

typedef void copy_fn(const mixt__strided_copy *copy);

/** A copy of the whole of `dst` from the start of `src`, whose strides the caller puts right. */
static mixt__strided_copy copy_of(const mixt__tensor *src, const mixt__tensor *dst)
{
    mixt__strided_copy copy = {
        .shape = dst->shape, .src = src->data, .dst = dst->data, .size = mixt_dtype_size(dst->dtype)};
    memcpy(copy.src_strides, src->strides, sizeof copy.src_strides);
    memcpy(copy.dst_strides, dst->strides, sizeof copy.dst_strides);
    return copy;
}

static const void *moved(const mixt__tensor *t, int64_t elements)
{
    return mixt__row_at(t->data, t->dtype, elements);
}

/* ---- the five copies ---- */

/** Elements keep their row-major order, so the output is filled as if it had the input's shape. */
static mixt_status reshape(const mixt__call *call, copy_fn *run)
{
    mixt__strided_copy copy = copy_of(&call->in[0], &call->out[0]);
    copy.shape = call->in[0].shape;
    mixt__shape_strides(&copy.shape, copy.dst_strides);
    run(&copy);
    return MIXT_OK;
}

static mixt_status transpose(const mixt__call *call, copy_fn *run)
{
    const mixt__transpose_attrs *at = call->attrs;
    mixt__strided_copy copy = copy_of(&call->in[0], &call->out[0]);
    for (int d = 0; d < copy.shape.rank; d++)
        copy.src_strides[d] = call->in[0].strides[at->order[d]];
    run(&copy);
    return MIXT_OK;
}

static mixt_status slice(const mixt__call *call, copy_fn *run)
{
    const mixt__slice_attrs *at = call->attrs;
    mixt__strided_copy copy = copy_of(&call->in[0], &call->out[0]);
    copy.src = moved(&call->in[0], at->begin * call->in[0].strides[at->axis]);
    run(&copy);
    return MIXT_OK;
}

static mixt_status split(const mixt__call *call, copy_fn *run)
{
    int last = call->in[0].shape.rank - 1;
    int64_t begin = 0;
    for (int o = 0; o < call->out_count; o++) {
        mixt__strided_copy copy = copy_of(&call->in[0], &call->out[o]);
        copy.src = moved(&call->in[0], begin * call->in[0].strides[last]);
        run(&copy);
        begin += copy.shape.dims[last];
    }
    return MIXT_OK;
}

static mixt_status concat(const mixt__call *call, copy_fn *run)
{
    const mixt__concat_attrs *at = call->attrs;
    int64_t begin = 0;
    for (int i = 0; i < call->in_count; i++) {
        mixt__strided_copy copy = copy_of(&call->in[i], &call->out[0]);
        copy.shape = call->in[i].shape;
        copy.dst = mixt__row_at(call->out[0].data, call->out[0].dtype, begin * call->out[0].strides[at->axis]);
        run(&copy);
        begin += copy.shape.dims[at->axis];
    }
    return MIXT_OK;
}

#define VIEW_KERNELS(op)                                                                                               \
    static mixt_status op##_blocked_run(const mixt__call *call)                                                        \
    {                                                                                                                  \
        return op(call, mixt__strided_copy_blocked);                                                                   \
    }                                                                                                                  \
    static mixt_status op##_plain_run(const mixt__call *call)                                                          \
    {                                                                                                                  \
        return op(call, mixt__strided_copy_plain);                                                                     \
    }                                                                                                                  \
    static const mixt__kernel op##_blocked = {.name = "blocked", .run = op##_blocked_run},                             \
                              op##_plain = {.name = "plain", .run = op##_plain_run};                                   \
    const mixt__kernel *const mixt__cpu_##op##_kernels[] = {&op##_blocked, &op##_plain, NULL}

VIEW_KERNELS(reshape);
VIEW_KERNELS(transpose);
VIEW_KERNELS(slice);
VIEW_KERNELS(split);
VIEW_KERNELS(concat);

/* ---- slice_grad: zeros but for the slice; or, into a parameter gradient, an addition to the slice ---- */

/** Around the sliced dimension: (outer, full, inner), of which [begin, end) of the middle one is written. */
typedef struct slab {
    const mixt__call *call;
    int64_t outer, inner, begin, end, full;
} slab;

static slab slab_of(const mixt__call *call)
{
    const mixt__slice_attrs *at = call->attrs;
    const mixt__shape *shape = &call->out[0].shape;
    slab s = {.call = call, .outer = 1, .inner = 1, .begin = at->begin, .end = at->end, .full = at->full};
    for (int d = 0; d < shape->rank; d++) {
        if (d < at->axis)
            s.outer *= shape->dims[d];
        if (d > at->axis)
            s.inner *= shape->dims[d];
    }
    return s;
}

static void zero(const mixt__tensor *t, int64_t index, int64_t count)
{
    memset(mixt__row_at(t->data, t->dtype, index), 0, (size_t)count * mixt_dtype_size(t->dtype));
}

/** Puts or adds `count` elements of the slice's gradient, converting where the formats differ. */
static void write_run(const mixt__call *call, int64_t to, int64_t from, int64_t count)
{
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    float tile[MIXT__ROW_TILE];
    for (int64_t i = 0; i < count; i += MIXT__ROW_TILE) {
        int64_t width = count - i < MIXT__ROW_TILE ? count - i : MIXT__ROW_TILE;
        const float *values = mixt__row_load(tile, src->data, src->dtype, from + i, width);
        if (call->accumulate & 1)
            mixt__row_loops_best()->add((float *)dst->data + to + i, values, width);
        else
            mixt__narrow(dst->dtype)(mixt__row_at(dst->data, dst->dtype, to + i), values, width);
    }
}

static void write_slabs(void *argument, int64_t begin, int64_t end, int thread)
{
    const slab *s = argument;
    int64_t whole = s->full * s->inner, part = (s->end - s->begin) * s->inner, before = s->begin * s->inner;
    (void)thread;
    for (int64_t o = begin; o < end; o++) {
        if (!(s->call->accumulate & 1)) {
            zero(&s->call->out[0], o * whole, before);
            zero(&s->call->out[0], o * whole + before + part, whole - before - part);
        }
        write_run(s->call, o * whole + before, o * part, part);
    }
}

static mixt_status slice_grad_run(const mixt__call *call)
{
    slab s = slab_of(call);
    mixt__parallel(s.outer, mixt__row_grain(s.full * s.inner), write_slabs, &s);
    return MIXT_OK;
}

static mixt_status slice_grad_plain_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    slab s = slab_of(call);
    for (int64_t i = 0; i < s.outer * s.full * s.inner; i++) {
        int64_t position = i / s.inner % s.full, outer = i / s.inner / s.full;
        bool inside = position >= s.begin && position < s.end;
        int64_t from = (outer * (s.end - s.begin) + position - s.begin) * s.inner + i % s.inner;
        float value = inside ? mixt__load(src->data, src->dtype, from) : 0.0f;
        if (call->accumulate & 1)
            value += mixt__load(dst->data, dst->dtype, i);
        mixt__store(dst->data, dst->dtype, i, value);
    }
    return MIXT_OK;
}

static const mixt__kernel slice_grad_fast = {.name = "rows", .run = slice_grad_run},
                          slice_grad_plain = {.name = "plain", .run = slice_grad_plain_run};

const mixt__kernel *const mixt__cpu_slice_grad_kernels[] = {&slice_grad_fast, &slice_grad_plain, NULL};
