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

/** `lanes` channels from c on of one output pixel; window w of image n, result at `to`. */
VEC_INLINE void forward_vector(mixt_dtype dtype, bool max, int64_t lanes, const mixt__call *call,
                               const mixt__pool_dims *src, int64_t n, const mixt__window *w, int64_t c, int64_t to)
{
    int64_t count = w->divisor;
    vec result = max ? vec_set(-INFINITY) : vec_zero();
    for (int64_t z = w->z0; z < w->z1; z += w->dz)
        for (int64_t y = w->y0; y < w->y1; y += w->dy)
            for (int64_t x = w->x0; x < w->x1; x += w->dx) {
                vec v = vec_get_part(call->in[0].data, dtype, mixt__pool_pixel(src, n, z, y, x) + c, lanes);
                result = max ? vec_nan_or(result, vec_max(result, v)) : vec_add(result, v);
            }
    if (!max)
        result = vec_div(result, vec_set(count > 0 ? (float)count : 1));
    if (max && lanes == VEC_LANES) // one of the source's own values
        vec_put_exact(call->out[0].data, dtype, to + c, result);
    else
        vec_put_part(call->out[0].data, dtype, to + c, lanes, result);
}

VEC_INLINE void forward_pixel(mixt_dtype dtype, bool max, const mixt__call *call, const mixt__pool_dims *src, int64_t n,
                              const mixt__window *w, int64_t to)
{
    int64_t c = 0;
    for (; c + VEC_LANES <= src->c; c += VEC_LANES)
        forward_vector(dtype, max, VEC_LANES, call, src, n, w, c, to);
    if (c < src->c)
        forward_vector(dtype, max, src->c - c, call, src, n, w, c, to);
}

VEC_INLINE void forward_typed(mixt_dtype dtype, const mixt__call *call, int64_t begin, int64_t end)
{
    const mixt__pool_attrs *at = call->attrs;
    mixt__pool_dims src = mixt__pool_dims_of(&call->in[0].shape), out = mixt__pool_dims_of(&call->out[0].shape);
    for (int64_t row = begin; row < end; row++)
        for (int64_t ox = 0; ox < out.w; ox++) {
            int64_t plane = row / out.h, to = (row * out.w + ox) * out.c;
            mixt__window w = mixt__pool_window(at, &src, plane % out.d, row % out.h, ox);
            if (at->kind == MIXT_POOL_MAX)
                forward_pixel(dtype, true, call, &src, plane / out.d, &w, to);
            else
                forward_pixel(dtype, false, call, &src, plane / out.d, &w, to);
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
    mixt__pool_dims out = mixt__pool_dims_of(&call->out[0].shape);
    mixt__parallel(out.n * out.d * out.h, 8192 / (out.w * out.c + 1) + 1, forward_range, (void *)call);
    return MIXT_OK;
}

/** Where the gradient of one image's strip of channels adds up: pixel p of the image at data + p · stride. */
typedef struct strip {
    float *data;
    mixt__pool_dims src;
    int64_t stride, image, first, channels;
} strip;

VEC_INLINE void strip_add(const strip *s, int64_t place, int64_t c, int64_t lanes, vec value)
{
    float *to = s->data + place * s->stride + c;
    vec_put_part(to, MIXT_DTYPE_FP32, 0, lanes, vec_add(vec_get_part(to, MIXT_DTYPE_FP32, 0, lanes), value));
}

/** Whether windows along an axis cover each position exactly once. */
static bool axis_tiles(const mixt__pool_axis *a, int64_t src, int64_t dst)
{
    return a->pad == 0 && a->pad_end == 0 && a->dilation <= 1 && a->stride == a->size && dst * a->size == src;
}

/** Whether every source pixel lies in exactly one window. */
static bool windows_tile(const mixt__call *call)
{
    const mixt__pool_attrs *at = call->attrs;
    mixt__pool_dims src = mixt__pool_dims_of(&call->in[0].shape), dst = mixt__pool_dims_of(&call->in[1].shape);
    return (!at->d.size || axis_tiles(&at->d, src.d, dst.d)) && axis_tiles(&at->h, src.h, dst.h) &&
           axis_tiles(&at->w, src.w, dst.w);
}

/** Scatters what `lanes` channels of an output pixel (at `from`) give to the elements of its window. */
VEC_INLINE void grad_vector(mixt_dtype dtype, bool max, bool once, int64_t lanes, const mixt__call *call,
                            const strip *s, const mixt__window *w, int64_t c, int64_t from)
{
    vec g = vec_get_part(call->in[2].data, dtype, from + c, lanes), best = vec_zero();
    vec_mask found = vec_mask_none();
    if (max)
        best = vec_get_part(call->in[1].data, dtype, from + c, lanes);
    else
        g = vec_div(g, vec_set((float)w->divisor));
    for (int64_t z = w->z0; z < w->z1; z += w->dz)
        for (int64_t y = w->y0; y < w->y1; y += w->dy)
            for (int64_t x = w->x0; x < w->x1; x += w->dx) {
                vec given = g;
                int64_t at = mixt__pool_pixel(&s->src, s->image, z, y, x) + s->first + c;
                if (max) {
                    vec v = vec_get_part(call->in[0].data, dtype, at, lanes);
                    vec_mask hit = vec_mask_without(vec_equal_or_nan(v, best), found);
                    found = vec_mask_or(found, hit);
                    given = vec_where(hit, g);
                }
                if (once && max && lanes == VEC_LANES) // a gradient in the same format, or 0
                    vec_put_exact(call->out[0].data, dtype, at, given);
                else if (once)
                    vec_put_part(call->out[0].data, dtype, at, lanes, given);
                else
                    strip_add(s, (z * s->src.h + y) * s->src.w + x, c, lanes, given);
            }
}

VEC_INLINE void grad_pixel(mixt_dtype dtype, bool max, bool once, const mixt__call *call, const strip *s,
                           const mixt__window *w, int64_t from)
{
    int64_t c = 0;
    for (; c + VEC_LANES <= s->channels; c += VEC_LANES)
        grad_vector(dtype, max, once, VEC_LANES, call, s, w, c, from);
    if (c < s->channels)
        grad_vector(dtype, max, once, s->channels - c, call, s, w, c, from);
}

/** All windows over a strip. */
VEC_INLINE void grad_windows(mixt_dtype dtype, bool once, const mixt__call *call, const strip *s)
{
    const mixt__pool_attrs *at = call->attrs;
    mixt__pool_dims out = mixt__pool_dims_of(&call->in[1].shape);
    for (int64_t row = 0; row < out.d * out.h; row++)
        for (int64_t ox = 0; ox < out.w; ox++) {
            int64_t from = ((s->image * out.d * out.h + row) * out.w + ox) * out.c + s->first;
            mixt__window w = mixt__pool_window(at, &s->src, row / out.h, row % out.h, ox);
            if (at->kind == MIXT_POOL_MAX)
                grad_pixel(dtype, true, once, call, s, &w, from);
            else
                grad_pixel(dtype, false, once, call, s, &w, from);
        }
}

VEC_INLINE void grad_strip(mixt_dtype dtype, const mixt__call *call, const strip *s)
{
    const mixt__tensor *grad_src = &call->out[0];
    int64_t pixels = s->src.d * s->src.h * s->src.w;
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
            vec_put_part(grad_src->data, dtype, (s->image * pixels + i) * s->src.c + s->first + c, lanes,
                         vec_get_part(s->data + i * s->stride, MIXT_DTYPE_FP32, c, lanes));
        }
}

/** Floats of a thread's image of one strip. */
static int64_t strip_floats(const mixt__call *call)
{
    mixt__pool_dims src = mixt__pool_dims_of(&call->in[0].shape);
    return call->in[0].dtype == MIXT_DTYPE_FP32 || windows_tile(call) ? 0 : src.d * src.h * src.w * least(src.c, STRIP);
}

static void grad_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__tensor *grad_src = &call->out[0];
    mixt__pool_dims src = mixt__pool_dims_of(&grad_src->shape);
    int64_t channels = src.c, strips = (channels + STRIP - 1) / STRIP;
    for (int64_t item = begin; item < end; item++) {
        strip s = {.src = src, .image = item / strips, .first = item % strips * STRIP};
        s.channels = least(channels - s.first, STRIP);
        s.stride = least(channels, STRIP);
        s.data = (float *)call->workspace + thread * strip_floats(call);
        switch (grad_src->dtype) {
        case MIXT_DTYPE_FP32:
            s.data = (float *)grad_src->data + mixt__pool_pixel(&src, s.image, 0, 0, 0) + s.first;
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
    mixt__pool_dims src = mixt__pool_dims_of(&call->out[0].shape);
    int64_t strips = (src.c + STRIP - 1) / STRIP, work = src.d * src.h * src.w * least(src.c, STRIP);
    mixt__parallel(src.n * strips, 8192 / (work + 1) + 1, grad_range, (void *)call);
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__pool) = {MIXT_AT_NAME, vec_supports, NULL, forward_run, NULL};
const mixt__kernel MIXT_AT(mixt__pool_grad) = {MIXT_AT_NAME, vec_supports, grad_prepare, grad_run, NULL};
