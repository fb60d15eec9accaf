/* What each number format will do on a device: one table a device. */
#include "mixt/machine.h"

#include "base/isa.h"

#include <string.h>

#define EVERY_RUN "master weights, sums and losses of every run; all of an fp32 run"
#define NOT_TRAINED "not for training; 'mixt convert' reads and writes it"
#define KEPT "activations kept for the backward pass (keep: fp8_e4m3 in a policy); products in it on CPUs only"
#define EMULATED                                                                                                       \
    "linear layers (precision: fp8), emulated to the bit, slower than bf16; kept activations (keep: fp8_e4m3)"

const char *mixt_support_name(mixt_support support)
{
    static const char *const names[] = {"native", "widened", "emulated"};
    return (unsigned)support < sizeof names / sizeof names[0] ? names[support] : "none";
}

int mixt_cpu_formats(mixt_format_info formats[MIXT_FORMATS_MAX])
{
    mixt__isa isa = mixt__isa_level();
    static const char *const fp32_units[] = {"one value at a time", "AVX2 and FMA, 8 at a time",
                                             "AVX-512, 16 at a time", "AVX-512, 16 at a time", "AVX-512, 16 at a time"};
    bool convert16 = isa >= MIXT_ISA_AVX2, multiply16 = isa >= MIXT_ISA_AVX512_BF16;
    const mixt_format_info table[] = {
        {"fp32", MIXT_DTYPE_FP32, MIXT_SUPPORT_NATIVE, fp32_units[isa], EVERY_RUN, 0},
        {"tf32", MIXT_DTYPE_TF32, MIXT_SUPPORT_EMULATED, "CPUs have no TF32 units",
         "computed in fp32: as fast and as exact as fp32", 0},
        {"fp16", MIXT_DTYPE_FP16, convert16 ? MIXT_SUPPORT_WIDENED : MIXT_SUPPORT_EMULATED,
         convert16 ? "F16C converts to fp32 on load and back on store" : "converted to fp32 and back in software",
         "stored in 16 bits, products and sums in fp32; dynamic loss scaling", 0},
        {"bf16", MIXT_DTYPE_BF16, multiply16 ? MIXT_SUPPORT_NATIVE : MIXT_SUPPORT_WIDENED,
         isa == MIXT_ISA_AMX ? "AMX tiles multiply bf16 and sum in fp32"
         : multiply16        ? "AVX512-BF16 multiplies bf16 and sums in fp32"
                             : "a shift converts to fp32 on load, rounding on store",
         multiply16 ? "stored and multiplied in 16 bits, summed in fp32; no loss scaling"
                    : "stored in 16 bits, products and sums in fp32; no loss scaling",
         0},
        {"fp8", MIXT_DTYPE_FP8_E4M3, MIXT_SUPPORT_EMULATED, "converted in software", EMULATED, 0},
        {"int8", MIXT_DTYPE_INT8, MIXT_SUPPORT_EMULATED, "converted in software", NOT_TRAINED, 0},
    };
    _Static_assert(sizeof table <= MIXT_FORMATS_MAX * sizeof *formats, "more formats than there is room for");
    memcpy(formats, table, sizeof table);
    return sizeof table / sizeof table[0];
}

int mixt_gpu_formats(const mixt_gpu_info *gpu, mixt_format_info formats[MIXT_FORMATS_MAX])
{
    static const struct {
        const char *name;
        mixt_dtype dtype;
        const char *training;
    } table[] = {
        {"fp32", MIXT_DTYPE_FP32, EVERY_RUN},
        {"tf32", MIXT_DTYPE_TF32, "fp32 tensors whose products are rounded; only where the policy says so"},
        {"fp16", MIXT_DTYPE_FP16, "stored and multiplied in 16 bits, summed in fp32; dynamic loss scaling"},
        {"bf16", MIXT_DTYPE_BF16, "stored and multiplied in 16 bits, summed in fp32; no loss scaling"},
        {"fp8", MIXT_DTYPE_FP8_E4M3, KEPT},
    };
    enum { COUNT = sizeof table / sizeof table[0] };
    for (int i = 0; i < COUNT; i++) {
        double flops = gpu->flops[table[i].dtype];
        bool vector = table[i].dtype == MIXT_DTYPE_FP32;
        formats[i] = (mixt_format_info){.name = table[i].name, .dtype = table[i].dtype, .flops = flops};
        formats[i].support = vector || flops > 0 ? MIXT_SUPPORT_NATIVE : MIXT_SUPPORT_EMULATED;
        formats[i].how = vector ? "vector units" : flops > 0 ? "Tensor Cores" : "no units";
        formats[i].training = table[i].training;
    }
    return COUNT;
}
