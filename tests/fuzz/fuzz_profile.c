/* Profiles of machines: one that is taken has every figure, in range, and a source for it. */
#include "fuzz.h"

#include "machine/machine.h"

#include <string.h>

static void check(const mixt_machine *machine)
{
    const mixt_machine_info *info = mixt_machine_describe(machine);
    fuzz_require(*info->name && *info->title && (!strcmp(info->kind, "gpu") || !strcmp(info->kind, "cpu")));
    fuzz_require(info->cores > 0 && info->memory >= info->reserved && info->bytes_s > 0 && info->launch >= 0);
    fuzz_require((info->capability > 0) == !strcmp(info->kind, "gpu") && info->flops[MIXT_DTYPE_FP32] > 0);
    for (int f = 0; f < MIXT_DTYPE_COUNT; f++) // products are what every other kind falls back to
        fuzz_require(!(info->flops[f] > 0) || info->reach[f][MIXT_WORK_PRODUCTS] > 0);
    for (int w = 0; w < MIXT_WORK_COUNT; w++)
        fuzz_require(info->reach_bytes[w] > 0 && info->reach_bytes[w] <= 1);
    fuzz_require(mixt_machine_source(machine, "memory") && mixt_machine_source(machine, "flops"));
}

void fuzz_input(const uint8_t *data, size_t size)
{
    mixt_machine *machine;
    if (fuzz_taken(mixt__machine_parse((const char *)data, size, "profile.yaml", &machine)))
        check(machine);
    else
        fuzz_require(!machine);
    mixt_machine_free(machine);
}
