/* What precision=auto stands for: the fastest format whose units the machine has and whose range is FP32's, else FP16.
 *
 * From what the machine says of itself and its profile alone: nothing is timed, so that the answer is the same on every
 * call. `mixt advise` measures, and weighs the model too.
 */
#include "machine/machine.h"

#include <stdio.h>

/** Products a second next to FP32's that are worth the rounding. */
static const double worth = 1.5;

static double rate(const mixt_machine *machine, mixt_dtype format)
{
    return mixt__machine_has(machine, format)
               ? machine->info.flops[format] * machine->info.reach[format][MIXT_WORK_PRODUCTS]
               : 0;
}

/** "has units for it and none for bf16 and fp16": why format number `index` of those to train in is the one. */
static void explain(int index, const char *title, char why[MIXT_PICK_TEXT])
{
    mixt_dtype format = mixt__format_lower(index);
    int used = snprintf(why, MIXT_PICK_TEXT, "%.80s has units for it", title);
    for (int i = 0; i < index && used < MIXT_PICK_TEXT; i++)
        used += snprintf(why + used, (size_t)(MIXT_PICK_TEXT - used), " and %s%s", i ? "" : "none for ",
                         mixt_dtype_name(mixt__format_lower(i)));
    if (used < MIXT_PICK_TEXT)
        snprintf(why + used, (size_t)(MIXT_PICK_TEXT - used), "%s",
                 mixt__format_of(format)->loss_scaling ? "; the loss is scaled"
                 : mixt__format_low(format)            ? ", and it has the range of fp32"
                                                       : "");
}

static mixt_status pick(const mixt_machine *machine, mixt_dtype *format, char why[MIXT_PICK_TEXT])
{
    *format = MIXT_DTYPE_FP32;
    snprintf(why, MIXT_PICK_TEXT, "%.80s has no units that make a lower format faster", machine->info.title);
    mixt_dtype lower;
    for (int i = 0; (lower = mixt__format_lower(i)) != MIXT_DTYPE_NONE; i++)
        if (rate(machine, lower) >= worth * rate(machine, MIXT_DTYPE_FP32)) {
            *format = lower;
            explain(i, machine->info.title, why);
            return MIXT_OK;
        }
    return MIXT_OK;
}

mixt_status mixt__precision_pick(mixt__device *device, mixt_dtype *format, char why[MIXT_PICK_TEXT])
{
    mixt_machine *machine;
    MIXT_TRY(mixt__machine_here(device, &machine));
    mixt_status status = pick(machine, format, why);
    mixt_machine_free(machine);
    return status;
}
