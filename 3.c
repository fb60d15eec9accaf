#line 119 "docs/c-api.md"
#include <mixt/train.h>
#include <stdio.h>

mixt_status go_on(mixt_trainer *trainer, mixt_data *data, const char *folder)
{
    mixt_step step = {0};
    mixt_memory memory;
    mixt_status status = mixt_trainer_compile(trainer, data); // nothing is allocated yet
    if (status == MIXT_OK && mixt_trainer_memory(trainer, &memory) == MIXT_OK)
        printf("will take %zu bytes\n", memory.total);
    if (status == MIXT_OK)
        status = mixt_trainer_restore(trainer, folder); // as mixt_trainer_checkpoint left it
    if (status == MIXT_OK)
        status = mixt_trainer_step(trainer, data, &step); // the bits of a run that never stopped
    if (status == MIXT_OK)
        status = mixt_trainer_set_precision(trainer, "fp16"); // weights, moments and counters stay
    return status;
}
