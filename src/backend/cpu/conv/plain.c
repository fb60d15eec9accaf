/* Convolution and its gradients as the sums they are, in double precision: any shape, any format. */
#include "backend/cpu/conv/conv2d.h"

#include "base/threads.h"
#include "num/num.h"

typedef struct job {
    const mixt__call *call;
    mixt__conv conv;
} job;

static double load(const mixt__tensor *tensor, int64_t index)
{
    return (double)mixt__load(tensor->data, tensor->dtype, index);
}

static int64_t weight_at(const mixt__conv *v, int64_t o, int64_t i, int64_t j, int64_t c)
{
    return ((o * v->kernel_h + i) * v->kernel_w + j) * v->c + c;
}

static int64_t src_at(const mixt__conv *v, int64_t n, int64_t y, int64_t x, int64_t c)
{
    return ((n * v->h + y) * v->w + x) * v->c + c;
}

static int64_t dst_at(const mixt__conv *v, int64_t n, int64_t y, int64_t x, int64_t o)
{
    return ((n * v->out_h + y) * v->out_w + x) * v->o + o;
}

/** One value of dst. */
static double forward_sum(const job *j, int64_t n, int64_t y, int64_t x, int64_t o)
{
    const mixt__conv *v = &j->conv;
    const mixt__conv2d_attrs *attrs = j->call->attrs;
    double sum = attrs->bias ? load(&j->call->in[2], o) : 0.0;
    for (int64_t i = 0; i < v->kernel_h; i++)
        for (int64_t k = 0; k < v->kernel_w; k++) {
            int64_t sy = y * v->stride + i - v->pad, sx = x * v->stride + k - v->pad;
            if (sy < 0 || sy >= v->h || sx < 0 || sx >= v->w)
                continue;
            for (int64_t c = 0; c < v->c; c++)
                sum += load(&j->call->in[0], src_at(v, n, sy, sx, c)) * load(&j->call->in[1], weight_at(v, o, i, k, c));
        }
    return sum;
}

static void forward_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__conv *v = &j->conv;
    const mixt__tensor *dst = &j->call->out[0];
    (void)thread;
    for (int64_t row = begin; row < end; row++)
        for (int64_t x = 0; x < v->out_w; x++)
            for (int64_t o = 0; o < v->o; o++) {
                int64_t n = row / v->out_h, y = row % v->out_h;
                mixt__store(dst->data, dst->dtype, dst_at(v, n, y, x, o), (float)forward_sum(j, n, y, x, o));
            }
}

/** One value of grad_src: every output pixel whose patch holds (y, x). */
static double grad_src_sum(const job *j, int64_t n, int64_t y, int64_t x, int64_t c)
{
    const mixt__conv *v = &j->conv;
    double sum = 0.0;
    for (int64_t i = 0; i < v->kernel_h; i++)
        for (int64_t k = 0; k < v->kernel_w; k++) {
            int64_t dy = y + v->pad - i, dx = x + v->pad - k;
            if (dy < 0 || dx < 0 || dy % v->stride || dx % v->stride || dy / v->stride >= v->out_h ||
                dx / v->stride >= v->out_w)
                continue;
            for (int64_t o = 0; o < v->o; o++)
                sum += load(&j->call->in[0], dst_at(v, n, dy / v->stride, dx / v->stride, o)) *
                       load(&j->call->in[1], weight_at(v, o, i, k, c));
        }
    return sum;
}

static void grad_src_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__conv *v = &j->conv;
    const mixt__tensor *dst = &j->call->out[0];
    (void)thread;
    for (int64_t row = begin; row < end; row++)
        for (int64_t x = 0; x < v->w; x++)
            for (int64_t c = 0; c < v->c; c++) {
                int64_t n = row / v->h, y = row % v->h;
                mixt__store(dst->data, dst->dtype, src_at(v, n, y, x, c), (float)grad_src_sum(j, n, y, x, c));
            }
}

/** One value of grad_weight: over all output pixels. */
static double grad_weight_sum(const job *j, int64_t o, int64_t i, int64_t k, int64_t c)
{
    const mixt__conv *v = &j->conv;
    double sum = 0.0;
    for (int64_t n = 0; n < v->n; n++)
        for (int64_t y = 0; y < v->out_h; y++)
            for (int64_t x = 0; x < v->out_w; x++) {
                int64_t sy = y * v->stride + i - v->pad, sx = x * v->stride + k - v->pad;
                if (sy >= 0 && sy < v->h && sx >= 0 && sx < v->w)
                    sum +=
                        load(&j->call->in[0], src_at(v, n, sy, sx, c)) * load(&j->call->in[1], dst_at(v, n, y, x, o));
            }
    return sum;
}

static void grad_weight_taps(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__conv *v = &j->conv;
    const mixt__tensor *dst = &j->call->out[0];
    (void)thread;
    for (int64_t tap = begin; tap < end; tap++)
        for (int64_t c = 0; c < v->c; c++) {
            int64_t k = tap % v->kernel_w, i = tap / v->kernel_w % v->kernel_h, o = tap / v->kernel_w / v->kernel_h;
            int64_t at = weight_at(v, o, i, k, c);
            double before = j->call->accumulate & 1u ? load(dst, at) : 0.0;
            mixt__store(dst->data, dst->dtype, at, (float)(before + grad_weight_sum(j, o, i, k, c)));
        }
}

static mixt_status forward(const mixt__call *call)
{
    job j = {call, mixt__conv_of(call)};
    mixt__parallel(j.conv.n * j.conv.out_h, 1, forward_rows, &j);
    return MIXT_OK;
}

static mixt_status grad_src(const mixt__call *call)
{
    job j = {call, mixt__conv_of(call)};
    mixt__parallel(j.conv.n * j.conv.h, 1, grad_src_rows, &j);
    return MIXT_OK;
}

static mixt_status grad_weight(const mixt__call *call)
{
    job j = {call, mixt__conv_of(call)};
    mixt__parallel(j.conv.o * j.conv.kernel_h * j.conv.kernel_w, 1, grad_weight_taps, &j);
    return MIXT_OK;
}

const mixt__kernel mixt__conv2d_plain = {.name = "plain", .run = forward};
const mixt__kernel mixt__conv2d_grad_src_plain = {.name = "plain", .run = grad_src};
const mixt__kernel mixt__conv2d_grad_weight_plain = {.name = "plain", .run = grad_weight};
