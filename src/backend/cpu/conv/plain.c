/* Convolution and its gradients as the sums they are, in double precision: any shape, any format. */
#include "backend/cpu/conv/conv.h"

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

/** A place in space: frame, row, column. */
typedef struct spot {
    int64_t z, y, x;
} spot;

static spot spot_of(int64_t at, int64_t height, int64_t width)
{
    return (spot){at / width / height, at / width % height, at % width};
}

/** The source pixel that tap `tap` of the kernel reads for an output pixel of image n; −1: it lies outside. */
static int64_t src_of(const mixt__conv *v, int64_t n, spot out, spot tap)
{
    int64_t z = out.z * v->stride_d + tap.z * v->dilation_d - v->pad_d,
            y = out.y * v->stride + tap.y * v->dilation_h - v->pad,
            x = out.x * v->stride_w + tap.x * v->dilation_w - v->pad_w;
    if (z < 0 || z >= v->d || y < 0 || y >= v->h || x < 0 || x >= v->w)
        return -1;
    return ((n * v->d + z) * v->h + y) * v->w + x;
}

/** The output pixel that reads a source pixel of image n by tap `tap`; −1: there is none. */
static int64_t dst_of(const mixt__conv *v, int64_t n, spot src, spot tap)
{
    int64_t z = src.z + v->pad_d - tap.z * v->dilation_d, y = src.y + v->pad - tap.y * v->dilation_h,
            x = src.x + v->pad_w - tap.x * v->dilation_w;
    if (z < 0 || y < 0 || x < 0 || z % v->stride_d || y % v->stride || x % v->stride_w)
        return -1;
    z /= v->stride_d;
    y /= v->stride;
    x /= v->stride_w;
    return z < v->out_d && y < v->out_h && x < v->out_w ? ((n * v->out_d + z) * v->out_h + y) * v->out_w + x : -1;
}

/** One value of dst. */
static double forward_sum(const job *j, int64_t n, spot out, int64_t o)
{
    const mixt__conv *v = &j->conv;
    double sum = v->bias ? load(&j->call->in[2], o) : 0.0;
    int64_t taps = mixt__conv_taps(v), width = v->c / v->groups, first = o / (v->o / v->groups) * width;
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t src = src_of(v, n, out, spot_of(tap, v->kernel_h, v->kernel_w));
        for (int64_t c = 0; src >= 0 && c < width; c++)
            sum += load(&j->call->in[0], src * v->c + first + c) * load(&j->call->in[1], (o * taps + tap) * width + c);
    }
    return sum;
}

static void forward_pixels(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__conv *v = &j->conv;
    const mixt__tensor *dst = &j->call->out[0];
    int64_t image = v->out_d * v->out_h * v->out_w;
    (void)thread;
    for (int64_t pixel = begin; pixel < end; pixel++)
        for (int64_t o = 0; o < v->o; o++) {
            spot out = spot_of(pixel % image, v->out_h, v->out_w);
            mixt__store(dst->data, dst->dtype, pixel * v->o + o, (float)forward_sum(j, pixel / image, out, o));
        }
}

/** One value of grad_src: every output pixel whose patch holds the source pixel. */
static double grad_src_sum(const job *j, int64_t n, spot src, int64_t c)
{
    const mixt__conv *v = &j->conv;
    double sum = 0.0;
    int64_t taps = mixt__conv_taps(v), width = v->c / v->groups, outputs = v->o / v->groups,
            first = c / width * outputs;
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t dst = dst_of(v, n, src, spot_of(tap, v->kernel_h, v->kernel_w));
        for (int64_t o = first; dst >= 0 && o < first + outputs; o++)
            sum += load(&j->call->in[0], dst * v->o + o) * load(&j->call->in[1], (o * taps + tap) * width + c % width);
    }
    return sum;
}

static void grad_src_pixels(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__conv *v = &j->conv;
    const mixt__tensor *dst = &j->call->out[0];
    int64_t image = v->d * v->h * v->w;
    (void)thread;
    for (int64_t pixel = begin; pixel < end; pixel++)
        for (int64_t c = 0; c < v->c; c++) {
            spot src = spot_of(pixel % image, v->h, v->w);
            mixt__store(dst->data, dst->dtype, pixel * v->c + c, (float)grad_src_sum(j, pixel / image, src, c));
        }
}

/** One value of grad_weight: over all output pixels; c is the channel in the source. */
static double grad_weight_sum(const job *j, int64_t o, spot tap, int64_t c)
{
    const mixt__conv *v = &j->conv;
    double sum = 0.0;
    int64_t image = v->out_d * v->out_h * v->out_w;
    for (int64_t pixel = 0; pixel < v->n * image; pixel++) {
        int64_t src = src_of(v, pixel / image, spot_of(pixel % image, v->out_h, v->out_w), tap);
        if (src >= 0)
            sum += load(&j->call->in[0], src * v->c + c) * load(&j->call->in[1], pixel * v->o + o);
    }
    return sum;
}

static void grad_weight_taps(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__conv *v = &j->conv;
    const mixt__tensor *dst = &j->call->out[0];
    int64_t taps = mixt__conv_taps(v), width = v->c / v->groups, outputs = v->o / v->groups;
    (void)thread;
    for (int64_t row = begin; row < end; row++)
        for (int64_t c = 0; c < width; c++) {
            int64_t at = row * width + c, channel = row / taps / outputs * width + c;
            double before = j->call->accumulate & 1u ? load(dst, at) : 0.0;
            spot tap = spot_of(row % taps, v->kernel_h, v->kernel_w);
            mixt__store(dst->data, dst->dtype, at, (float)(before + grad_weight_sum(j, row / taps, tap, channel)));
        }
}

static mixt_status forward(const mixt__call *call)
{
    job j = {call, mixt__conv_of(call)};
    mixt__parallel(j.conv.n * j.conv.out_d * j.conv.out_h * j.conv.out_w, 1, forward_pixels, &j);
    return MIXT_OK;
}

static mixt_status grad_src(const mixt__call *call)
{
    job j = {call, mixt__conv_of(call)};
    mixt__parallel(j.conv.n * j.conv.d * j.conv.h * j.conv.w, 1, grad_src_pixels, &j);
    return MIXT_OK;
}

static mixt_status grad_weight(const mixt__call *call)
{
    job j = {call, mixt__conv_of(call)};
    mixt__parallel(j.conv.o * mixt__conv_taps(&j.conv), 1, grad_weight_taps, &j);
    return MIXT_OK;
}

const mixt__kernel mixt__conv_plain = {.name = "plain", .run = forward};
const mixt__kernel mixt__conv_grad_src_plain = {.name = "plain", .run = grad_src};
const mixt__kernel mixt__conv_grad_weight_plain = {.name = "plain", .run = grad_weight};
