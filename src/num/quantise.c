/* Rounding to numbers with a scale, and back, by the array conversions. */
#include "num/quantise.h"

#include "base/threads.h"
#include "num/num.h"

#include <math.h>

enum { TILE = 1024, GRAIN = 16384 };

float mixt__quantise_scale(mixt_dtype dtype, const float *values, int64_t count)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fabsf(values[i]) > largest ? fabsf(values[i]) : largest;
    return (float)((double)largest / mixt__dtype_max(dtype));
}

void mixt__quantise(void *dst, mixt_dtype dtype, const float *values, int64_t count, float scale)
{
    const float most = (float)mixt__dtype_max(dtype); // a scale that was rounded down leaves some beyond it
    float tile[TILE];
    for (int64_t first = 0; first < count; first += TILE) {
        int64_t n = count - first < TILE ? count - first : TILE;
        for (int64_t i = 0; i < n; i++) {
            float x = scale > 0 ? values[first + i] / scale : 0.0f;
            tile[i] = x > most ? most : x < -most ? -most : x;
        }
        mixt__narrow(dtype)((char *)dst + (size_t)first * mixt_dtype_size(dtype), tile, n);
    }
}

void mixt__dequantise(float *dst, const void *src, mixt_dtype dtype, int64_t count, float scale)
{
    mixt__widen(dtype)(dst, src, count);
    for (int64_t i = 0; i < count; i++)
        dst[i] *= scale;
}

typedef struct rows_job {
    char *dst;
    mixt_dtype dtype;
    float *scales;
    const float *values;
    int64_t width;
} rows_job;

static void quantise_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const rows_job *j = argument;
    size_t bytes = (size_t)j->width * mixt_dtype_size(j->dtype);
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        const float *row = j->values + r * j->width;
        j->scales[r] = mixt__quantise_scale(j->dtype, row, j->width);
        mixt__quantise(j->dst + (size_t)r * bytes, j->dtype, row, j->width, j->scales[r]);
    }
}

void mixt__quantise_rows(void *dst, mixt_dtype dtype, float *scales, const float *values, int64_t rows, int64_t width)
{
    rows_job j = {.dst = dst, .dtype = dtype, .scales = scales, .values = values, .width = width};
    mixt__parallel(rows, 1 + GRAIN / (width + 1), quantise_range, &j);
}

void mixt__dequantise_rows(float *dst, const void *src, mixt_dtype dtype, const float *scales, int64_t rows,
                           int64_t width)
{
    size_t bytes = (size_t)width * mixt_dtype_size(dtype);
    for (int64_t r = 0; r < rows; r++)
        mixt__dequantise(dst + r * width, (const char *)src + (size_t)r * bytes, dtype, width, scales[r]);
}
