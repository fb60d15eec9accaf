/* Rows of features as samples have them, and numbers of names and the count among them. */
#include "data/table/features.h"

#include "data/table/csv_text.h"

#include <math.h>
#include <string.h>

enum { FURTHEST = 3 }; // deviations: a number far off must not outweigh all others

double mixt__features_scaled(double x, double mean, double scale)
{
    return fmax(fmin((x - mean) * scale, FURTHEST), -FURTHEST);
}

double mixt__features_scale(double variance)
{
    return variance > 1e-12 && isfinite(variance) ? 1 / sqrt(variance) : 0;
}

/** The logarithm of a name's number: ids are often given over orders of magnitude. NaN: it is none. */
static double number_of(const char *name)
{
    double x;
    const mixt__csv_field field = {.text = name, .length = (int64_t)strlen(name)};
    return mixt__csv_number(&field, &x) && isfinite(x) && x >= 0 ? log1p(x) : NAN;
}

/** Of the numbers that there are, over the training part's ratings. */
static void scale_numbers(mixt__features *f)
{
    double weight = 0, sum = 0, squares = 0;
    for (int64_t i = 0; i < f->ids; i++)
        if (!isnan(f->number[i])) {
            weight += f->count[i];
            sum += f->count[i] * (double)f->number[i];
        }
    double mean = weight > 0 ? sum / weight : 0;
    for (int64_t i = 0; i < f->ids; i++)
        if (!isnan(f->number[i]))
            squares += f->count[i] * pow((double)f->number[i] - mean, 2);
    double scale = weight > 0 ? mixt__features_scale(squares / weight) : 0;
    for (int64_t i = 0; i < f->ids; i++)
        f->number[i] = isnan(f->number[i]) ? 0 : (float)mixt__features_scaled((double)f->number[i], mean, scale);
}

mixt_status mixt__features_use_names(mixt_data *data, const char *const *names, mixt__features *f)
{
    int64_t words = 0, word = 0;
    f->number = mixt__arena_alloc(&data->arena, (size_t)f->ids * sizeof *f->number);
    if (!f->number)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for numbers of %lld %ss", data->path, (long long)f->ids,
                          f->side);
    for (int64_t i = 0; i < f->ids; i++) {
        f->number[i] = (float)number_of(names[i]);
        if (isnan(f->number[i]))
            word = words++ ? word : i;
    }
    if (words == f->ids)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: no %s has a number as its name (the first is '%.40s'): leave out data.numbers of %ss",
                          data->path, f->side, names[0], f->side);
    scale_numbers(f);
    return words ? mixt__data_warn(data, "%s: the names of %lld of %lld %ss are not numbers from 0 on, such as '%.40s'",
                                   data->path, (long long)words, (long long)f->ids, f->side, names[word])
                 : MIXT_OK;
}

/** What a rating that is trained on sees of a count. */
static double seen_of(int32_t count)
{
    return log1p((double)count - 1);
}

void mixt__features_use_count(mixt__features *f)
{
    double weight = 0, sum = 0, squares = 0;
    f->counted = true;
    for (int64_t i = 0; i < f->ids; i++)
        if (f->count[i]) {
            weight += f->count[i];
            sum += f->count[i] * seen_of(f->count[i]);
        }
    f->mean = weight > 0 ? sum / weight : 0;
    for (int64_t i = 0; i < f->ids; i++)
        if (f->count[i])
            squares += f->count[i] * pow(seen_of(f->count[i]) - f->mean, 2);
    f->scale = weight > 0 ? mixt__features_scale(squares / weight) : 0;
}

int64_t mixt__features_width(const mixt__features *f)
{
    return f->width + !!f->number + f->counted + f->timed;
}

void mixt__features_write(const mixt__features *f, int64_t id, bool own, float when, float *to)
{
    if (f->width)
        memcpy(to, f->values + id * f->width, (size_t)f->width * sizeof *to);
    to += f->width;
    if (f->number)
        *to++ = f->number[id];
    if (f->counted)
        *to++ = (float)mixt__features_scaled(log1p((double)f->count[id] - own), f->mean, f->scale);
    if (f->timed)
        *to = when;
}
