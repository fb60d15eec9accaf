/* The machine at hand in the words of a profile, so that modelled times here and there come from one formula. */
#include "machine/machine.h"

#include "base/isa.h"

#include <math.h>
#include <string.h>

/** The built-in profile that is nearest to a GPU or an instruction set: what kernels reach there is taken over. */
static const char *nearest_gpu(int capability)
{
    return capability >= 90   ? "h200"
           : capability >= 86 ? "rtx4090"
           : capability >= 80 ? "a100"
           : capability >= 75 ? "t4"
                              : "v100";
}

static const char *nearest_cpu(mixt__isa isa)
{
    return isa >= MIXT_ISA_AMX           ? "cpu-amx"
           : isa >= MIXT_ISA_AVX512_BF16 ? "cpu-avx512bf16"
           : isa >= MIXT_ISA_AVX512      ? "cpu-avx512"
                                         : "cpu-avx2";
}

static void take_gpu(mixt_machine_info *info, const mixt_gpu_info *gpu)
{
    info->capability = gpu->capability;
    info->cores = gpu->multiprocessors;
    info->memory = gpu->memory_bytes;
    info->bytes_s = gpu->bytes_s > 0 ? gpu->bytes_s : info->bytes_s;
    for (int f = 0; f < MIXT_DTYPE_COUNT; f++)
        info->flops[f] = gpu->flops[f];
}

/** Rates by core; a few cores of many have more than their share of the memory's bandwidth. */
static void take_cpu(mixt_machine_info *info, const mixt_cpu_info *cpu)
{
    double share = fmin(1, (double)cpu->threads / info->cores);
    for (int f = 0; f < MIXT_DTYPE_COUNT; f++)
        info->flops[f] *= (double)cpu->threads / info->cores;
    info->bytes_s *= fmin(1, 2 * share);
    info->cores = cpu->threads;
    info->memory = (size_t)cpu->memory_total;
    if (cpu->threads == 1)
        info->launch = 2e-7; // nobody to wait for
}

static mixt_status fill(mixt_machine *machine, const mixt_gpu_info *gpu)
{
    mixt_cpu_info cpu;
    if (gpu)
        take_gpu(&machine->info, gpu);
    else {
        mixt_cpu_describe(&cpu);
        take_cpu(&machine->info, &cpu);
    }
    machine->info.name = "this machine";
    machine->info.title = mixt__arena_strdup(&machine->arena, gpu ? gpu->name : cpu.name);
    machine->info.price = NAN;
    return machine->info.title ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the machine");
}

mixt_status mixt__machine_here(mixt__device *device, mixt_machine **machine)
{
    mixt_gpu_info gpu;
    *machine = NULL;
    if (device->backend->describe)
        MIXT_TRY(mixt__device_describe(device, &gpu));
    MIXT_TRY(mixt_machine_open(device->backend->describe ? nearest_gpu(gpu.capability) : nearest_cpu(mixt__isa_level()),
                               machine));
    mixt_status status = fill(*machine, device->backend->describe ? &gpu : NULL);
    if (status != MIXT_OK) {
        mixt_machine_free(*machine);
        *machine = NULL;
    }
    return status;
}
