/* What this CPU can do, found once. MIXT_ISA lowers it, so that every path can be tested on one machine. */
#ifndef MIXT_BASE_ISA_H
#define MIXT_BASE_ISA_H

#include <stdbool.h>

/** Levels that code is written for; each includes those before it. */
typedef enum mixt__isa {
    MIXT_ISA_SCALAR,
    MIXT_ISA_AVX2,        // AVX2, FMA, F16C
    MIXT_ISA_AVX512,      // F, BW, DQ, VL
    MIXT_ISA_AVX512_BF16, // and AVX512-BF16: vdpbf16ps
    MIXT_ISA_AMX,         // and AMX-TILE, AMX-BF16, allowed by the kernel for this process
    MIXT_ISA_COUNT
} mixt__isa;

mixt__isa mixt__isa_level(void);
const char *mixt__isa_name(mixt__isa level);

typedef struct mixt__cpu_features {
    bool avx2, fma, f16c, avx512, avx512_bf16, avx512_fp16, avx512_vnni, amx_tile, amx_bf16, amx_int8;
    char model[64];
} mixt__cpu_features;

const mixt__cpu_features *mixt__cpu(void);

#endif
