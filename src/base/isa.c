/* CPUID, the operating system's consent (XCR0, arch_prctl for AMX), and the MIXT_ISA override. */
#include "base/isa.h"

#include "base/env.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

static const char *const level_names[MIXT_ISA_COUNT] = {"scalar", "avx2", "avx512", "avx512bf16", "amx"};

const char *mixt__isa_name(mixt__isa level)
{
    return level_names[level];
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool amx_permitted(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static void detect(mixt__cpu_features *f)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return;
    bool fma = c & bit_FMA, f16c = c & bit_F16C;
    uint64_t xcr0 = read_xcr0();
    bool ymm = (xcr0 & 0x6) == 0x6, zmm = (xcr0 & 0xe6) == 0xe6, tiles = (xcr0 & 0x60000) == 0x60000;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        f->avx2 = ymm && (b & bit_AVX2);
        f->fma = ymm && fma;
        f->f16c = ymm && f16c;
        f->avx512 = zmm && (b & bit_AVX512F) && (b & bit_AVX512BW) && (b & bit_AVX512DQ) && (b & bit_AVX512VL);
        f->avx512_vnni = f->avx512 && (c & (1u << 11));
        f->avx512_fp16 = f->avx512 && (d & (1u << 23));
        bool permitted = tiles && (d & (1u << 24)) && amx_permitted();
        f->amx_tile = permitted;
        f->amx_bf16 = permitted && (d & (1u << 22));
        f->amx_int8 = permitted && (d & (1u << 25));
        if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
            f->avx512_bf16 = f->avx512 && (a & (1u << 5));
    }
    uint32_t name[12] = {0};
    for (uint32_t i = 0; i < 3; i++)
        __get_cpuid(0x80000002u + i, &name[4 * i], &name[4 * i + 1], &name[4 * i + 2], &name[4 * i + 3]);
    memcpy(f->model, name, sizeof name);
}
#else
static void detect(mixt__cpu_features *f)
{
    strcpy(f->model, "not x86-64");
}
#endif

static mixt__cpu_features features;

static void detect_once(void)
{
    detect(&features);
}

const mixt__cpu_features *mixt__cpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, detect_once);
    return &features;
}

mixt__isa mixt__isa_level(void)
{
    static int level = -1;
    int known = __atomic_load_n(&level, __ATOMIC_RELAXED);
    if (known >= 0)
        return (mixt__isa)known;
    const mixt__cpu_features *f = mixt__cpu();
    mixt__isa best = MIXT_ISA_SCALAR;
    if (f->avx2 && f->fma && f->f16c)
        best = MIXT_ISA_AVX2;
    if (best == MIXT_ISA_AVX2 && f->avx512)
        best = MIXT_ISA_AVX512;
    if (best == MIXT_ISA_AVX512 && f->avx512_bf16)
        best = MIXT_ISA_AVX512_BF16;
    if (best == MIXT_ISA_AVX512_BF16 && f->amx_bf16)
        best = MIXT_ISA_AMX;
    const char *limit = mixt__env_get(MIXT_ENV_ISA);
    for (int i = 0; i < MIXT_ISA_COUNT; i++)
        if (!strcmp(limit, level_names[i]) && i < (int)best)
            best = (mixt__isa)i;
    __atomic_store_n(&level, (int)best, __ATOMIC_RELAXED);
    return best;
}
