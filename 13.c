#line 362 "docs/c-api.md"
#include <mixt/predict.h>
#include <mixt/train.h>

/** The class of a digit, 28 × 28 pixels; -1 where something fails. */
int64_t classify(mixt_trainer *trainer, const mixt_data *data, const char *picture)
{
    float sample[28 * 28], logits[10];
    mixt_guess best = {.label = -1};
    mixt_inputs *inputs;
    mixt_status status = mixt_inputs_open(picture, data, &inputs);
    if (status == MIXT_OK)
        status = mixt_inputs_read(inputs, 0, 1, sample);
    if (status == MIXT_OK)
        status = mixt_trainer_predict(trainer, sample, 1, logits);
    if (status == MIXT_OK)
        status = mixt_classes_rank(logits, 10, 1, &best);
    mixt_inputs_close(inputs);
    return status == MIXT_OK ? best.label : -1;
}
