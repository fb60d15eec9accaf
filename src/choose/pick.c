/* What precision=auto stands for: the fastest format whose units the machine has and whose range is FP32's, else FP16.
 *
 * From what the machine says of itself and its profile alone: nothing is timed, so that the answer is the same on every
 * call. `mixt advise` measures, and weighs the model too.
 */
#include "mixt/advise.h"

#include "api/api.h"
#include "choose/machine.h"

#include <stdio.h>

/** Products a second next to FP32's that are worth the rounding. */
static const double worth = 1.5;

static double rate(const mixt_machine *machine, mixt_dtype format)
{
    return mixt__machine_has(machine, format)
               ? machine->info.flops[format] * machine->info.reach[format][MIXT_WORK_PRODUCTS]
               : 0;
}

/** BF16 before FP16, which needs loss scaling and care; TF32 last, as it saves no memory. */
static const struct {
    mixt_dtype format;
    const char *why;
} order[] = {
    {MIXT_DTYPE_BF16, "has units for it, and it has the range of FP32"},
    {MIXT_DTYPE_FP16, "has units for it and none for BF16; the loss is scaled"},
    {MIXT_DTYPE_TF32, "has units for it and none for BF16 and FP16"},
};

static mixt_status pick(const mixt_machine *machine, mixt_dtype *format, char why[MIXT_PICK_TEXT])
{
    *format = MIXT_DTYPE_FP32;
    snprintf(why, MIXT_PICK_TEXT, "%.80s has no units that make a lower format worth it", machine->info.title);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (rate(machine, order[i].format) >= worth * rate(machine, MIXT_DTYPE_FP32)) {
            *format = order[i].format;
            snprintf(why, MIXT_PICK_TEXT, "%.80s %s", machine->info.title, order[i].why);
            return MIXT_OK;
        }
    return MIXT_OK;
}

mixt_status mixt_precision_pick(const char *device, mixt_dtype *format, char why[MIXT_PICK_TEXT])
{
    const mixt__backend *backend;
    mixt_machine *machine;
    MIXT_TRY(mixt__need(format));
    MIXT_TRY(mixt__need(why));
    MIXT_TRY(mixt__device_open(device ? device : "auto", &backend));
    MIXT_TRY(mixt__machine_here(backend, &machine));
    mixt_status status = pick(machine, format, why);
    mixt_machine_free(machine);
    return status;
}
