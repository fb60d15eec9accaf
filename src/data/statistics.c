/* Mean and standard deviation of a table's channels: bytes exactly in integers, floats in FP64. Or as given. */
#include "data/data.h"

#include "base/c_locale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t mixt__table_elements(const mixt__table *table)
{
    int64_t elements = 1;
    for (int i = 0; i < table->rank; i++)
        elements *= table->dims[i];
    return elements;
}

typedef struct sums {
    uint64_t *sum, *square;               // bytes
    double *first, *delta, *delta_square; // floats, relative to the first row: large means do not cancel
} sums;

static void add_bytes(sums *s, const unsigned char *row, int64_t elements, int64_t channels)
{
    if (channels == 1) {
        uint64_t sum = 0, square = 0;
        for (int64_t i = 0; i < elements; i++) {
            sum += row[i];
            square += (uint32_t)row[i] * row[i];
        }
        s->sum[0] += sum;
        s->square[0] += square;
        return;
    }
    for (int64_t i = 0; i < elements; i += channels)
        for (int64_t c = 0; c < channels; c++) {
            s->sum[c] += row[i + c];
            s->square[c] += (uint32_t)row[i + c] * row[i + c];
        }
}

static void add_floats(sums *s, const float *row, int64_t elements, int64_t channels)
{
    for (int64_t i = 0; i < elements; i += channels)
        for (int64_t c = 0; c < channels; c++) {
            double delta = row[i + c] - s->first[c];
            s->delta[c] += delta;
            s->delta_square[c] += delta * delta;
        }
}

static void finish(const sums *s, bool bytes, double n, int64_t channels, float *mean, float *std)
{
    for (int64_t c = 0; c < channels; c++) {
        double average = bytes ? (double)s->sum[c] / n : s->delta[c] / n;
        double square = bytes ? (double)s->square[c] / n : s->delta_square[c] / n;
        double variance = square - average * average, center = bytes ? average / 255 : average + s->first[c];
        double deviation = variance > 0 ? sqrt(variance) / (bytes ? 255 : 1) : 0;
        mean[c] = (float)center;
        // FP32 cannot tell such a channel from a constant one; dividing by its deviation would only blow up rounding
        bool constant = !(deviation > 1e-7 * fabs(center)) || deviation < 1e-30;
        std[c] = constant ? 1 : (float)deviation;
    }
}

mixt_status mixt__table_statistics(const mixt__table *table, const int64_t *rows, int64_t count, float *mean,
                                   float *std)
{
    int64_t elements = mixt__table_elements(table), channels = table->dims[table->rank - 1];
    bool bytes = table->dtype == MIXT_DTYPE_UINT8;
    uint64_t *block = mixt__alloc((size_t)channels * 5 * sizeof(uint64_t));
    if (!block)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the statistics of %lld channels", table->path,
                          (long long)channels);
    double *doubles = (double *)(block + 2 * channels);
    sums s = {block, block + channels, doubles, doubles + channels, doubles + 2 * channels};
    const unsigned char *byte_input = table->input;
    const float *float_input = table->input;
    if (!bytes)
        for (int64_t c = 0; c < channels; c++)
            s.first[c] = float_input[(rows ? rows[0] : 0) * elements + c];
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows ? rows[i] : i;
        if (bytes)
            add_bytes(&s, byte_input + row * elements, elements, channels);
        else
            add_floats(&s, float_input + row * elements, elements, channels);
    }
    int64_t pixels = elements / channels;
    finish(&s, bytes, (double)count * (double)pixels, channels, mean, std);
    mixt__free(block);
    return MIXT_OK;
}

void mixt__table_value_scale(const mixt__table *table, const int64_t *rows, int64_t count, double *mean, double *std)
{
    double sum = 0, squares = 0;
    *mean = *std = 0;
    if (!table->values || table->value_count != 1 || !count)
        return;
    for (int64_t i = 0; i < count; i++)
        sum += (double)table->values[rows ? rows[i] : i];
    *mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double off = (double)table->values[rows ? rows[i] : i] - *mean;
        squares += off * off;
    }
    double deviation = sqrt(squares / (double)count);
    bool constant = !(deviation > 1e-7 * fabs(*mean)) || !isfinite(deviation) || (float)deviation < 1e-30f;
    *std = constant ? 0 : deviation;
}

mixt_status mixt__channel_numbers(const char *text, const char *name, int64_t channels, float *numbers)
{
    const char *at = text;
    int64_t count = 0;
    for (;; at++) {
        char *end;
        float number = mixt__read_float(at, &end);
        bool positive = strcmp(name, "stds") || number > 0;
        if (end == at || !isfinite(number) || !positive || (*end && *end != ',') || count == channels)
            return mixt__fail(MIXT_ERROR_CONFIG,
                              "%s '%s': expected one%s number for all channels or %lld, separated by commas", name,
                              text, positive ? "" : " positive", (long long)channels);
        numbers[count++] = number;
        at = end;
        if (!*end)
            break;
    }
    if (count != 1 && count != channels)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s '%s': %lld numbers for %lld channels", name, text, (long long)count,
                          (long long)channels);
    for (int64_t c = count; c < channels; c++)
        numbers[c] = numbers[0];
    return MIXT_OK;
}
