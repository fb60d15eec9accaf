/* FP32 to each narrower format over all 2^32 inputs: the scalar kernel against the double oracle, every other
 * instruction-set level (and its streaming form) against the scalar kernel bit by bit.
 *
 * usage: test_num_all [format…], e.g. fp16 bf16; all formats without arguments. Minutes a format; prints progress.
 */
#include "../support/num_oracle.h"
#include "base/isa.h"
#include "base/threads.h"
#include "num/kernels.h"

#include <stdio.h>

enum { BLOCK = 8192, CHUNKS = 64 };

typedef struct scan {
    const oracle_format *format;
    uint64_t first; // of this chunk
    int64_t wrong;
} scan;

static uint32_t read_code(const void *array, size_t size, int64_t i)
{
    uint32_t code = 0;
    memcpy(&code, (const char *)array + (size_t)i * size, size);
    return code;
}

static void report(scan *s, uint32_t input, uint32_t code, const char *what)
{
    if (__atomic_add_fetch(&s->wrong, 1, __ATOMIC_RELAXED) <= 10)
        printf("\n%s: input 0x%08x became 0x%x, which differs from %s\n", mixt_dtype_name(s->format->dtype), input,
               code, what);
}

static void scan_block(scan *s, uint64_t first)
{
    _Alignas(64) float inputs[BLOCK];
    _Alignas(64) char want[BLOCK * 4], got[BLOCK * 4];
    const oracle_format *f = s->format;
    const size_t size = mixt_dtype_size(f->dtype);
    for (int64_t i = 0; i < BLOCK; i++)
        inputs[i] = mixt__fp32_of_bits((uint32_t)(first + (uint64_t)i));
    mixt__narrow_at(MIXT_ISA_SCALAR, f->dtype, false)(want, inputs, BLOCK);
    for (int64_t i = 0; i < BLOCK; i++)
        if (!oracle_accepts(f, (double)inputs[i], read_code(want, size, i)))
            report(s, (uint32_t)(first + (uint64_t)i), read_code(want, size, i), "the oracle");
    for (int level = 1; level <= (int)mixt__isa_level(); level++)
        for (int stream = 0; stream < 2; stream++) {
            mixt__narrow_at((mixt__isa)level, f->dtype, stream)(got, inputs, BLOCK);
            for (int64_t i = 0; memcmp(want, got, BLOCK * size) && i < BLOCK; i++)
                if (read_code(want, size, i) != read_code(got, size, i))
                    report(s, (uint32_t)(first + (uint64_t)i), read_code(got, size, i),
                           "the scalar kernel (another level)");
        }
}

static void scan_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    scan *s = argument;
    for (int64_t block = begin; block < end; block++)
        scan_block(s, s->first + (uint64_t)block * BLOCK);
}

static bool wanted(const oracle_format *f, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (mixt_dtype_parse(argv[i]) == f->dtype)
            return true;
    return argc == 1;
}

int main(int argc, char **argv)
{
    int64_t wrong = 0, scanned = 0;
    for (int k = 0; k < ORACLE_FORMATS; k++) {
        scan s = {.format = &oracle_formats[k]};
        if (!wanted(s.format, argc, argv))
            continue;
        double start = mixt__time_now();
        const uint64_t chunk = ((uint64_t)1 << 32) / CHUNKS;
        for (int c = 0; c < CHUNKS; c++) {
            s.first = chunk * (uint64_t)c;
            mixt__parallel((int64_t)(chunk / BLOCK), 1, scan_range, &s);
            printf("\r%-9s %3d%%  %.0f s", mixt_dtype_name(s.format->dtype), 100 * (c + 1) / CHUNKS,
                   mixt__time_now() - start);
            fflush(stdout);
        }
        printf("  %lld wrong, levels up to %s\n", (long long)s.wrong, mixt__isa_name(mixt__isa_level()));
        wrong += s.wrong;
        scanned++;
    }
    if (!scanned)
        fprintf(stderr, "usage: %s [fp16|bf16|tf32|fp8_e4m3|fp8_e5m2 ...]\n", argv[0]);
    return wrong || !scanned;
}
