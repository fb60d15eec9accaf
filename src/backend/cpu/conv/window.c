/* Copies of source rows with their padding, and the choice of tiles. */
#include "backend/cpu/conv/window.h"

#include "base/isa.h"
#include "num/num.h"

enum { BUFFER_BYTES = 128 * 1024 }; // a part of the second-level cache: the rest is for weights and results

static int64_t units_of(const mixt__conv_window *w, int64_t elements)
{
    return w->pairs ? elements / 2 : elements;
}

int64_t mixt__conv_window_step(const mixt__conv_window *w)
{
    return units_of(w, w->stride * w->c);
}

int64_t mixt__conv_window_run(const mixt__conv_window *w)
{
    return units_of(w, w->taps_w * w->c);
}

static int64_t padded_width(const mixt__conv_window *w)
{
    return (w->out_w - 1) * w->stride + w->taps_w;
}

void mixt__conv_window_plan(mixt__conv_window *w)
{
    bool inside = w->top <= 0 && w->left <= 0 && (w->out_h - 1) * w->stride + w->taps_h - w->top <= w->h &&
                  padded_width(w) - w->left <= w->w;
    w->in_place = inside && (w->pairs || w->dtype == MIXT_DTYPE_FP32);
    w->row_units = units_of(w, (w->in_place ? w->w : padded_width(w)) * w->c);
    int64_t rows = BUFFER_BYTES / 4 / (w->row_units > 0 ? w->row_units : 1);
    int64_t most = rows > w->taps_h ? (rows - w->taps_h) / w->stride + 1 : 1;
    w->block_rows = most < w->out_h ? most : w->out_h;
    if (!w->in_place)
        w->buffer_bytes = (size_t)(((w->block_rows - 1) * w->stride + w->taps_h) * w->row_units) * sizeof(float);
}

/** One padded row; y may lie outside the image. */
static void fill_row(const mixt__conv_window *w, const char *image, int64_t y, char *dst)
{
    size_t in = mixt_dtype_size(w->dtype), out = w->pairs ? sizeof(uint16_t) : sizeof(float);
    int64_t width = padded_width(w);
    int64_t first = w->left > 0 ? w->left : 0, end = w->w + w->left < width ? w->w + w->left : width;
    if (y < 0 || y >= w->h || first >= end) {
        memset(dst, 0, (size_t)(width * w->c) * out);
        return;
    }
    const char *src = image + (size_t)((y * w->w + first - w->left) * w->c) * in;
    char *middle = dst + (size_t)(first * w->c) * out;
    int64_t count = (end - first) * w->c;
    memset(dst, 0, (size_t)(first * w->c) * out);
    memset(dst + (size_t)(end * w->c) * out, 0, (size_t)((width - end) * w->c) * out);
    if (in == out)
        memcpy(middle, src, (size_t)count * in);
    else
        mixt__widen(w->dtype)((float *)middle, src, count);
}

const float *mixt__conv_window_rows(const mixt__conv_window *w, const void *src, int64_t image, int64_t row,
                                    int64_t rows, void *buffer)
{
    const char *base = (const char *)src + (size_t)(image * w->h * w->w * w->c) * mixt_dtype_size(w->dtype);
    int64_t y = row * w->stride - w->top;
    if (w->in_place)
        return (const float *)base + y * w->row_units - units_of(w, w->left * w->c);
    int64_t count = (rows - 1) * w->stride + w->taps_h;
    for (int64_t i = 0; i < count; i++)
        fill_row(w, base, y + i, (char *)((float *)buffer + i * w->row_units));
    return buffer;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

void mixt__conv_window_taps(const mixt__conv_window *w, int64_t row, int64_t *first, int64_t *end)
{
    int64_t y = row * w->stride - w->top;
    *first = clamp(-y, 0, w->taps_h);
    *end = clamp(w->h - y, *first, w->taps_h);
}

void mixt__conv_window_reach(const mixt__conv_window *w, int64_t tap, int64_t row, int64_t rows, int64_t *first,
                             int64_t *end)
{
    int64_t y = tap - w->top; // of output row 0
    int64_t low = y < 0 ? (-y + w->stride - 1) / w->stride : 0, high = y < w->h ? (w->h - 1 - y) / w->stride + 1 : 0;
    *first = clamp(low, row, row + rows);
    *end = clamp(high, *first, row + rows);
}

const mixt__conv_tiles *mixt__conv_tiles_here(void)
{
    mixt__isa level = mixt__isa_level();
    return level >= MIXT_ISA_AVX512_BF16 ? &mixt__conv_tiles_avx512bf16
           : level >= MIXT_ISA_AVX512    ? &mixt__conv_tiles_avx512
           : level >= MIXT_ISA_AVX2      ? &mixt__conv_tiles_avx2
                                         : NULL;
}
