/* Temperature, then the k most probable, then the fewest that make up p, then one of those by its probability. */
#include "infer/sample.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>

mixt_status mixt__sampling_check(const mixt_sampling *s)
{
    if (!(s->temperature >= 0) || isinf(s->temperature))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "temperature %g: must be 0 (the most probable token) or above",
                          s->temperature);
    if (s->top_k < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "top_k %lld: must be 0 (all tokens) or above", (long long)s->top_k);
    if (!(s->top_p >= 0 && s->top_p <= 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "top_p %g: must be in [0, 1]", s->top_p);
    return MIXT_OK;
}

/** Falling by logit, rising by token: a total order, so that equal logits cannot swap. */
static int compare(const void *a, const void *b)
{
    const mixt__candidate *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return x->token < y->token ? -1 : x->token > y->token;
}

static void swap(mixt__candidate *a, mixt__candidate *b)
{
    mixt__candidate kept = *a;
    *a = *b;
    *b = kept;
}

/** Moves the k first in order to the front, themselves in any order: quickselect on the middle of three. */
static void select_first(mixt__candidate *c, int64_t count, int64_t k)
{
    int64_t low = 0, high = count - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (compare(&c[middle], &c[low]) < 0)
            swap(&c[middle], &c[low]);
        if (compare(&c[high], &c[low]) < 0)
            swap(&c[high], &c[low]);
        if (compare(&c[high], &c[middle]) < 0)
            swap(&c[high], &c[middle]);
        mixt__candidate pivot = c[middle];
        int64_t i = low, j = high;
        while (i <= j) {
            while (compare(&c[i], &pivot) < 0)
                i++;
            while (compare(&pivot, &c[j]) < 0)
                j--;
            if (i <= j)
                swap(&c[i++], &c[j--]);
        }
        if (k <= j + 1)
            high = j;
        else if (k > i)
            low = i;
        else
            return;
    }
}

/** The fewest of the candidates that make up `p` of their sum; at least one. Leaves them in order. */
static int64_t nucleus(mixt__candidate *c, int64_t count, double total, double p)
{
    // Those below the cut cannot be needed: all of them together are less than 1 - p. The sort then has few to sort.
    double cut = count > 1 ? total * (1 - p) / (double)(count - 1) : 0, sum = 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (c[i].weight >= cut)
            swap(&c[kept++], &c[i]);
    qsort(c, (size_t)kept, sizeof *c, compare);
    for (int64_t i = 0; i < kept; i++) {
        sum += c[i].weight;
        if (sum >= p * total)
            return i + 1;
    }
    return kept;
}

static double sum_of(const mixt__candidate *c, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += c[i].weight;
    return sum;
}

/** The first largest; -1 when there is none that is finite. NaN anywhere is none. */
static int64_t largest(const float *logits, int64_t count)
{
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return -1;
        if (logits[i] > -INFINITY && (best < 0 || logits[i] > logits[best]))
            best = i;
    }
    return best;
}

mixt_status mixt__sample(const float *logits, int64_t count, const mixt_sampling *s, double uniform, mixt__candidate *c,
                         int32_t *token)
{
    MIXT_TRY(mixt__sampling_check(s));
    int64_t best = largest(logits, count);
    if (best < 0)
        return mixt__fail(MIXT_ERROR_DATA, "the model's logits are not finite: its weights are damaged or diverged");
    *token = (int32_t)best;
    if (s->temperature == 0 || s->top_k == 1)
        return MIXT_OK;
    for (int64_t i = 0; i < count; i++) {
        double above = ((double)logits[i] - (double)logits[best]) / s->temperature;
        c[i] = (mixt__candidate){.logit = logits[i], .token = (int32_t)i, .weight = exp(above)};
    }
    if (s->top_k && s->top_k < count) {
        select_first(c, count, s->top_k);
        count = s->top_k;
        qsort(c, (size_t)count, sizeof *c, compare);
    }
    double total = sum_of(c, count);
    if (s->top_p > 0 && s->top_p < 1) {
        count = nucleus(c, count, total, s->top_p);
        total = sum_of(c, count);
    }
    double place = uniform * total, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += c[i].weight;
        if (c[i].weight > 0)
            *token = c[i].token; // also the last one, should rounding leave `place` past the sum
        if (sum > place)
            break;
    }
    return MIXT_OK;
}
