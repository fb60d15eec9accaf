/* Outputs of a classifier as probabilities: softmax in FP64, the best few in order. Takes no memory. */
#include "mixt/predict.h"

#include "base/status.h"

#include <math.h>

mixt_status mixt_outputs_check(const float *outputs, int64_t count)
{
    MIXT_TRY(count > 0 ? mixt__need(outputs) : MIXT_OK);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(outputs[i]))
            return mixt__fail(MIXT_ERROR_DATA, "the model's output is NaN or Inf: its weights are damaged or diverged, "
                                               "or the input is very different from the training data");
    return MIXT_OK;
}

/** Puts a class into its place among the `count` best so far, of `top` at most. */
static void offer(mixt_guess *guesses, int64_t *count, int64_t top, mixt_guess guess)
{
    int64_t place = *count;
    while (place > 0 && guesses[place - 1].probability < guess.probability)
        place--;
    if (place == top)
        return;
    *count += *count < top;
    for (int64_t i = *count - 1; i > place; i--)
        guesses[i] = guesses[i - 1];
    guesses[place] = guess;
}

mixt_status mixt_classes_rank(const float *logits, int64_t classes, int64_t top, mixt_guess *guesses)
{
    double most = -INFINITY, sum = 0;
    int64_t count = 0;
    MIXT_TRY(mixt__need(logits));
    MIXT_TRY(mixt__need(guesses));
    if (top < 0 || top > classes)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "the best %lld of %lld classes", (long long)top, (long long)classes);
    MIXT_TRY(mixt_outputs_check(logits, classes));
    for (int64_t i = 0; i < classes; i++)
        most = fmax(most, (double)logits[i]);
    for (int64_t i = 0; i < classes; i++)
        sum += exp((double)logits[i] - most);
    for (int64_t i = 0; i < classes; i++)
        offer(guesses, &count, top, (mixt_guess){i, exp((double)logits[i] - most) / sum});
    return MIXT_OK;
}
