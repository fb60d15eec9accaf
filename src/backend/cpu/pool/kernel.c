/* Pooling with channels in vectors, forward and gradient, compiled for AVX2 and AVX-512.
 *
 * Forward: threads split the rows of output pixels. Gradient: threads split (image, strip of 64 channels) and own every
 * sum in it; windows scatter into an FP32 image of that strip, which is rounded at the end (FP32 gradients are written
 * in place). Where windows cover every pixel exactly once there is nothing to add up: each is written once, in its
 * format.
 */
#include "backend/cpu/pool/pool.h"
#include "backend/cpu/core/vec.h"
#include "base/threads.h"

#include <math.h>

enum { STRIP = 64 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/** Where pixel (n, y, x) starts. */
static int64_t pixel(const mixt__shape *s, int64_t n, int64_t y, int64_t x)
{
    return ((n * s->dims[1] + y) * s->dims[2] + x) * s->dims[3];
}

/** `lanes` channels from c on of one output pixel; window w of image n, result at `to`. */
VEC_INLINE void forward_vector(mixt_dtype dtype, bool max, int64_t lanes, const mixt__call *call, int64_t n,
                               mixt__window w, int64_t c, int64_t to)
{
    const mixt__tensor *src = &call->in[0];
    int64_t count = (w.y1 - w.y0) * (w.x1 - w.x0);
    vec result = max ? vec_set(-INFINITY) : vec_zero();
    for (int64_t y = w.y0; y < w.y1; y++)
        for (int64_t x = w.x0; x < w.x1; x++) {
            vec v = vec_get_part(src->data, dtype, pixel(&src->shape, n, y, x) + c, lanes);
            result = max ? vec_nan_or(result, vec_max(result, v)) : vec_add(result, v);
        }
    if (!max)
        result = vec_div(result, vec_set(count > 0 ? (float)count : 1));
    if (max && lanes == VEC_LANES) // one of the source's own values
        vec_put_exact(call->out[0].data, dtype, to + c, result);
    else
        vec_put_part(call->out[0].data, dtype, to + c, lanes, result);
}

VEC_INLINE void forward_pixel(mixt_dtype dtype, bool max, const mixt__call *call, int64_t n, int64_t oy, int64_t ox)
{
    int64_t channels = call->in[0].shape.dims[3], c = 0, to = pixel(&call->out[0].shape, n, oy, ox);
    mixt__window w = mixt__pool_window(call->attrs, &call->in[0].shape, oy, ox);
    for (; c + VEC_LANES <= channels; c += VEC_LANES)
        forward_vector(dtype, max, VEC_LANES, call, n, w, c, to);
    if (c < channels)
        forward_vector(dtype, max, channels - c, call, n, w, c, to);
}

VEC_INLINE void forward_typed(mixt_dtype dtype, const mixt__call *call, int64_t begin, int64_t end)
{
    const mixt__pool_attrs *at = call->attrs;
    const int64_t *out = call->out[0].shape.dims;
    for (int64_t row = begin; row < end; row++)
        for (int64_t ox = 0; ox < out[2]; ox++) {
            if (at->kind == MIXT_POOL_MAX)
                forward_pixel(dtype, true, call, row / out[1], row % out[1], ox);
            else
                forward_pixel(dtype, false, call, row / out[1], row % out[1], ox);
        }
}

static void forward_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    (void)thread;
    switch (call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        forward_typed(MIXT_DTYPE_FP32, call, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        forward_typed(MIXT_DTYPE_BF16, call, begin, end);
        break;
    default:
        forward_typed(MIXT_DTYPE_FP16, call, begin, end);
    }
}

static mixt_status forward_run(const mixt__call *call)
{
    const int64_t *out = call->out[0].shape.dims;
    mixt__parallel(out[0] * out[1], 8192 / (out[2] * out[3] + 1) + 1, forward_range, (void *)call);
    return MIXT_OK;
}

/** Where the gradient of one image's strip of channels adds up: pixel (y, x) at data + (y · W + x) · stride. */
typedef struct strip {
    float *data;
    int64_t stride, image, first, channels;
} strip;

VEC_INLINE void strip_add(const strip *s, int64_t place, int64_t c, int64_t lanes, vec value)
{
    float *to = s->data + place * s->stride + c;
    vec_put_part(to, MIXT_DTYPE_FP32, 0, lanes, vec_add(vec_get_part(to, MIXT_DTYPE_FP32, 0, lanes), value));
}

/** Whether every source pixel lies in exactly one window. */
static bool windows_tile(const mixt__call *call)
{
    const mixt__pool_attrs *at = call->attrs;
    const int64_t *src = call->in[0].shape.dims, *dst = call->in[1].shape.dims;
    return at->pad == 0 && at->stride == at->size && dst[1] * at->size == src[1] && dst[2] * at->size == src[2];
}

/** Scatters what `lanes` channels of an output pixel (at `from`) give to the elements of its window. */
VEC_INLINE void grad_vector(mixt_dtype dtype, bool max, bool once, int64_t lanes, const mixt__call *call,
                            const strip *s, mixt__window w, int64_t c, int64_t from)
{
    const mixt__tensor *src = &call->in[0];
    vec g = vec_get_part(call->in[2].data, dtype, from + c, lanes), best = vec_zero();
    vec_mask found = vec_mask_none();
    if (max)
        best = vec_get_part(call->in[1].data, dtype, from + c, lanes);
    else
        g = vec_div(g, vec_set((float)((w.y1 - w.y0) * (w.x1 - w.x0))));
    for (int64_t y = w.y0; y < w.y1; y++)
        for (int64_t x = w.x0; x < w.x1; x++) {
            vec given = g;
            int64_t at = pixel(&src->shape, s->image, y, x) + s->first + c;
            if (max) {
                vec v = vec_get_part(src->data, dtype, at, lanes);
                vec_mask hit = vec_mask_without(vec_equal_or_nan(v, best), found);
                found = vec_mask_or(found, hit);
                given = vec_where(hit, g);
            }
            if (once && max && lanes == VEC_LANES) // a gradient in the same format, or 0
                vec_put_exact(call->out[0].data, dtype, at, given);
            else if (once)
                vec_put_part(call->out[0].data, dtype, at, lanes, given);
            else
                strip_add(s, y * src->shape.dims[2] + x, c, lanes, given);
        }
}

VEC_INLINE void grad_pixel(mixt_dtype dtype, bool max, bool once, const mixt__call *call, const strip *s, int64_t oy,
                           int64_t ox)
{
    int64_t c = 0, from = pixel(&call->in[1].shape, s->image, oy, ox) + s->first;
    mixt__window w = mixt__pool_window(call->attrs, &call->in[0].shape, oy, ox);
    for (; c + VEC_LANES <= s->channels; c += VEC_LANES)
        grad_vector(dtype, max, once, VEC_LANES, call, s, w, c, from);
    if (c < s->channels)
        grad_vector(dtype, max, once, s->channels - c, call, s, w, c, from);
}

/** All windows over a strip. */
VEC_INLINE void grad_windows(mixt_dtype dtype, bool once, const mixt__call *call, const strip *s)
{
    const mixt__pool_attrs *at = call->attrs;
    const int64_t *out = call->in[1].shape.dims;
    for (int64_t oy = 0; oy < out[1]; oy++)
        for (int64_t ox = 0; ox < out[2]; ox++) {
            if (at->kind == MIXT_POOL_MAX)
                grad_pixel(dtype, true, once, call, s, oy, ox);
            else
                grad_pixel(dtype, false, once, call, s, oy, ox);
        }
}

VEC_INLINE void grad_strip(mixt_dtype dtype, const mixt__call *call, const strip *s)
{
    const mixt__tensor *grad_src = &call->out[0];
    int64_t pixels = grad_src->shape.dims[1] * grad_src->shape.dims[2];
    if (windows_tile(call)) {
        grad_windows(dtype, true, call, s);
        return;
    }
    for (int64_t i = 0; i < pixels; i++)
        memset(s->data + i * s->stride, 0, (size_t)s->channels * sizeof(float));
    grad_windows(dtype, false, call, s);
    if (dtype == MIXT_DTYPE_FP32)
        return;
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < s->channels; c += VEC_LANES) {
            int64_t lanes = least(s->channels - c, VEC_LANES);
            vec_put_part(grad_src->data, dtype, (s->image * pixels + i) * grad_src->shape.dims[3] + s->first + c, lanes,
                         vec_get_part(s->data + i * s->stride, MIXT_DTYPE_FP32, c, lanes));
        }
}

/** Floats of a thread's image of one strip. */
static int64_t strip_floats(const mixt__call *call)
{
    const int64_t *dims = call->in[0].shape.dims;
    return call->in[0].dtype == MIXT_DTYPE_FP32 || windows_tile(call) ? 0 : dims[1] * dims[2] * least(dims[3], STRIP);
}

static void grad_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__tensor *grad_src = &call->out[0];
    int64_t channels = grad_src->shape.dims[3], strips = (channels + STRIP - 1) / STRIP;
    for (int64_t item = begin; item < end; item++) {
        strip s = {.image = item / strips, .first = item % strips * STRIP};
        s.channels = least(channels - s.first, STRIP);
        s.stride = least(channels, STRIP);
        s.data = (float *)call->workspace + thread * strip_floats(call);
        switch (grad_src->dtype) {
        case MIXT_DTYPE_FP32:
            s.data = (float *)grad_src->data + pixel(&grad_src->shape, s.image, 0, 0) + s.first;
            s.stride = channels;
            grad_strip(MIXT_DTYPE_FP32, call, &s);
            break;
        case MIXT_DTYPE_BF16:
            grad_strip(MIXT_DTYPE_BF16, call, &s);
            break;
        default:
            grad_strip(MIXT_DTYPE_FP16, call, &s);
        }
    }
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)(strip_floats(call) * mixt__threads_count()) * sizeof(float);
    return MIXT_OK;
}

static mixt_status grad_run(const mixt__call *call)
{
    const int64_t *dims = call->out[0].shape.dims;
    int64_t strips = (dims[3] + STRIP - 1) / STRIP, work = dims[1] * dims[2] * least(dims[3], STRIP);
    mixt__parallel(dims[0] * strips, 8192 / (work + 1) + 1, grad_range, (void *)call);
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__pool) = {MIXT_AT_NAME, vec_supports, NULL, forward_run, NULL};
const mixt__kernel MIXT_AT(mixt__pool_grad) = {MIXT_AT_NAME, vec_supports, grad_prepare, grad_run, NULL};
