/* Convolution and its gradients as matrix products whose patches the engine gathers block by block: no patch matrix
 * is ever in memory. A 1×1 convolution with stride 1 is a product of the tensors as they lie. Groups are products one
 * after the other.
 */
#include "backend/cpu/conv/conv.h"
#include "backend/cpu/gemm/gemm.h"
#include "base/alloc.h"
#include "base/status.h"
#include "num/num.h"

/** What the gather functions read: a tensor, the sizes of the convolution, and a group of it. */
typedef struct gathered {
    mixt__conv conv;
    const mixt__tensor *tensor;
    mixt__widen_fn *widen;            // from its format
    int64_t channels, outputs, group; // channels, outputs: of a group
} gathered;

static const void *element(const mixt__tensor *tensor, int64_t index)
{
    return (const char *)tensor->data + index * (int64_t)mixt_dtype_size(tensor->dtype);
}

/** Elements [begin, end) of one kernel row of the patch whose first column is x; columns outside the image are 0. */
static void gather_run(const gathered *g, int64_t image_row, int64_t x, int64_t begin, int64_t end, float *dst)
{
    const mixt__conv *v = &g->conv;
    int64_t first = -x * v->c > begin ? -x * v->c : begin, last = (v->w - x) * v->c < end ? (v->w - x) * v->c : end;
    if (first >= last) {
        memset(dst, 0, (size_t)(end - begin) * sizeof *dst);
        return;
    }
    // Few channels make short runs, of which most lie inside: what is not called for costs nothing.
    if (first > begin)
        memset(dst, 0, (size_t)(first - begin) * sizeof *dst);
    g->widen(dst + first - begin, element(g->tensor, (image_row * v->w + x) * v->c + first), last - first);
    if (end > last)
        memset(dst + last - begin, 0, (size_t)(end - last) * sizeof *dst);
}

/** The same of a kernel row with holes, or of one group: tap by tap. */
static void gather_taps(const gathered *g, int64_t image_row, int64_t x, int64_t begin, int64_t end, float *dst)
{
    const mixt__conv *v = &g->conv;
    int64_t next;
    for (int64_t k = begin; k < end; dst += next - k, k = next) {
        int64_t tap = k / g->channels, from = k - tap * g->channels, column = x + tap * v->dilation_w;
        next = (tap + 1) * g->channels < end ? (tap + 1) * g->channels : end;
        if (column < 0 || column >= v->w)
            memset(dst, 0, (size_t)(next - k) * sizeof *dst);
        else
            g->widen(dst, element(g->tensor, (image_row * v->w + column) * v->c + g->group * g->channels + from),
                     next - k);
    }
}

/** Patches of the source: a row is an output pixel, a column (l, i, k, c) of the kernel. */
static void gather_patches(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols, float *dst,
                           int64_t ld)
{
    const gathered *g = argument;
    const mixt__conv *v = &g->conv;
    int64_t run = v->kernel_w * g->channels;
    bool by_tap = v->groups > 1 || v->dilation_w > 1;
    for (int64_t r = row; r < row + rows; r++, dst += ld) {
        int64_t x = r % v->out_w * v->stride_w - v->pad_w, top = r / v->out_w % v->out_h * v->stride - v->pad;
        int64_t plane = r / v->out_w / v->out_h, front = plane % v->out_d * v->stride_d - v->pad_d, end;
        int64_t first = plane / v->out_d * v->d; // of the image
        for (int64_t k = col; k < col + cols; k = end) {
            int64_t part = k / run; // a row of the kernel
            int64_t y = top + part % v->kernel_h * v->dilation_h, z = front + part / v->kernel_h * v->dilation_d;
            end = (part + 1) * run < col + cols ? (part + 1) * run : col + cols;
            if (y < 0 || y >= v->h || z < 0 || z >= v->d)
                memset(dst + k - col, 0, (size_t)(end - k) * sizeof *dst);
            else
                (by_tap ? gather_taps : gather_run)(g, (first + z) * v->h + y, x, k - part * run, end - part * run,
                                                    dst + k - col);
        }
    }
}

/** Where along an axis the result stands that a tap at distance `tap` carries to source position `at`; −1 when there is
 *  none. */
static int64_t carried_from(int64_t at, int64_t pad, int64_t tap, int64_t stride, int64_t size)
{
    int64_t from = at + pad - tap;
    return from < 0 || from % stride || from / stride >= size ? -1 : from / stride;
}

/** The pixel of grad_dst that tap (l, i, k) carries to source pixel (z, y, x) of an image; −1 when there is none. */
static int64_t carried_pixel(const mixt__conv *v, const int64_t at[4], int64_t tap)
{
    int64_t l = tap / v->kernel_w / v->kernel_h, i = tap / v->kernel_w % v->kernel_h, k = tap % v->kernel_w;
    int64_t z = carried_from(at[1], v->pad_d, l * v->dilation_d, v->stride_d, v->out_d);
    int64_t y = carried_from(at[2], v->pad, i * v->dilation_h, v->stride, v->out_h);
    int64_t x = carried_from(at[3], v->pad_w, k * v->dilation_w, v->stride_w, v->out_w);
    return z < 0 || y < 0 || x < 0 ? -1 : ((at[0] * v->out_d + z) * v->out_h + y) * v->out_w + x;
}

/** Patches of grad_dst: a row is a source pixel, a column (l, i, k, o) of the kernel. */
static void gather_grads(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols, float *dst,
                         int64_t ld)
{
    const gathered *g = argument;
    const mixt__conv *v = &g->conv;
    for (int64_t r = row; r < row + rows; r++, dst += ld) {
        int64_t plane = r / v->w / v->h, end;
        int64_t at[4] = {plane / v->d, plane % v->d, r / v->w % v->h, r % v->w};
        for (int64_t c = col; c < col + cols; c = end) {
            int64_t tap = c / g->outputs;
            end = (tap + 1) * g->outputs < col + cols ? (tap + 1) * g->outputs : col + cols;
            int64_t pixel = carried_pixel(v, at, tap), o = g->group * g->outputs + c - tap * g->outputs;
            if (pixel < 0)
                memset(dst + c - col, 0, (size_t)(end - c) * sizeof *dst);
            else
                g->widen(dst + c - col, element(g->tensor, pixel * v->o + o), end - c);
        }
    }
}

/** The weight with row (l, i, k, o) and column c. */
static void gather_weight(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols, float *dst,
                          int64_t ld)
{
    const gathered *g = argument;
    const mixt__conv *v = &g->conv;
    for (int64_t r = row; r < row + rows; r++, dst += ld) {
        int64_t tap = r / g->outputs, o = g->group * g->outputs + r % g->outputs;
        g->widen(dst, element(g->tensor, (o * mixt__conv_taps(v) + tap) * g->channels + col), cols);
    }
}

static bool is_product(const mixt__conv *v)
{
    return mixt__conv_taps(v) == 1 && v->out_w == v->w && v->out_h == v->h && v->out_d == v->d && v->stride == 1 &&
           v->stride_w == 1 && v->stride_d == 1 && v->pad == 0 && v->pad_w == 0 && v->pad_d == 0;
}

/** A tensor as it lies, from element `first` on. */
static mixt__gemm_operand operand(const mixt__tensor *tensor, int64_t first, int64_t row_stride, int64_t col_stride)
{
    return (mixt__gemm_operand){.data = tensor->data ? element(tensor, first) : NULL,
                                .dtype = tensor->dtype,
                                .row_stride = row_stride,
                                .col_stride = col_stride};
}

static mixt__gemm_operand gather_operand(const gathered *g, mixt__gemm_gather_fn *fn)
{
    return (mixt__gemm_operand){.dtype = g->tensor->dtype, .gather = fn, .gather_argument = g};
}

/** The product of one group of a call; gathers refer to `in`, which must outlive it. */
static mixt__gemm_problem problem_of(const mixt__call *call, int64_t group, gathered in[2])
{
    const mixt__tensor *first = &call->in[0], *second = &call->in[1], *out = &call->out[0];
    mixt__conv v = mixt__conv_of(call);
    int64_t pixels = v.n * v.out_d * v.out_h * v.out_w, taps = mixt__conv_taps(&v), c = v.c / v.groups,
            o = v.o / v.groups, result = 0;
    mixt__gemm_problem p = {.alpha = 1.0f, .c_dtype = out->dtype};
    bool lies = is_product(&v);
    in[0] = (gathered){v, first, mixt__widen(first->dtype), c, o, group};
    in[1] = (gathered){v, second, mixt__widen(second->dtype), c, o, group};
    p.low = first->dtype == MIXT_DTYPE_BF16 && second->dtype == MIXT_DTYPE_BF16;
    if (v.kind == MIXT_CONV_FORWARD) {
        p.m = pixels, p.n = o, p.k = taps * c, p.ldc = v.o, result = group * o;
        p.a = lies ? operand(first, group * c, v.c, 1) : gather_operand(&in[0], gather_patches);
        p.b = operand(second, group * o * p.k, 1, p.k);
        p.bias = v.bias && call->in[2].data ? (const float *)call->in[2].data + group * o : NULL;
    } else if (v.kind == MIXT_CONV_GRAD_SRC) {
        p.m = v.n * v.d * v.h * v.w, p.n = c, p.k = taps * o, p.ldc = v.c, result = group * c;
        p.a = lies ? operand(first, group * o, v.o, 1) : gather_operand(&in[0], gather_grads);
        p.b = lies ? operand(second, group * o * c, c, 1) : gather_operand(&in[1], gather_weight);
    } else {
        p.m = o, p.n = p.ldc = taps * c, p.k = pixels, result = group * o * p.n;
        p.a = operand(second, group * o, 1, v.o);
        p.b = lies ? operand(first, group * c, v.c, 1) : gather_operand(&in[0], gather_patches);
        p.accumulate = call->accumulate & 1u;
    }
    p.c = out->data ? (char *)out->data + result * (int64_t)mixt_dtype_size(out->dtype) : NULL;
    return p;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    gathered in[2];
    mixt__gemm_problem p = problem_of(call, 0, in);
    (void)arena;
    call->workspace_bytes = mixt__gemm_workspace(&p);
    return MIXT_OK;
}

static mixt_status run(const mixt__call *call)
{
    gathered in[2];
    int64_t groups = mixt__conv_of(call).groups;
    for (int64_t group = 0; group < groups; group++) {
        mixt__gemm_problem p = problem_of(call, group, in);
        mixt__gemm_run(&p, call->workspace);
    }
    return MIXT_OK;
}

const mixt__kernel mixt__conv_gemm = {
    .name = "gemm", .supports = mixt__conv_is_ordinary, .prepare = prepare, .run = run};
