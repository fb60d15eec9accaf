/* Speed of array conversion against memcpy: bytes read and written a second, same thread count for both.
 *
 * usage: convert [--mib N] [--runs N] [--threads N] [--json]. The FP32 side has N MiB (64); memcpy copies N MiB. Each
 * run times one conversion and one memcpy in turn, so that a noisy neighbour hits both; the table gives the medians.
 */
#include "base/isa.h"
#include "base/threads.h"
#include "mixt/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
    mixt_dtype from, to;
} pair;

static const pair pairs[] = {
    {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16},     {MIXT_DTYPE_BF16, MIXT_DTYPE_FP32},
    {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16},     {MIXT_DTYPE_FP16, MIXT_DTYPE_FP32},
    {MIXT_DTYPE_FP16, MIXT_DTYPE_BF16},     {MIXT_DTYPE_FP32, MIXT_DTYPE_TF32},
    {MIXT_DTYPE_FP32, MIXT_DTYPE_FP8_E4M3}, {MIXT_DTYPE_FP8_E4M3, MIXT_DTYPE_FP32},
    {MIXT_DTYPE_FP32, MIXT_DTYPE_FP8_E5M2}, {MIXT_DTYPE_FP8_E5M2, MIXT_DTYPE_FP32},
    {MIXT_DTYPE_FP32, MIXT_DTYPE_INT8},     {MIXT_DTYPE_INT8, MIXT_DTYPE_FP32},
};

typedef struct settings {
    int64_t mib;
    int runs, threads;
    bool json;
} settings;

typedef struct copy_job {
    char *dst;
    const char *src;
} copy_job;

static void copy_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    copy_job *job = argument;
    memcpy(job->dst + begin, job->src + begin, (size_t)(end - begin));
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

static bool parse(int argc, char **argv, settings *s)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            s->json = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--mib"))
            s->mib = atoll(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--runs"))
            s->runs = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--threads"))
            s->threads = atoi(argv[++i]);
        else
            return false;
    }
    return s->mib > 0 && s->runs > 0 && s->threads >= 0;
}

static void report(const settings *s, pair p, double rate, double copy_rate, bool first)
{
    if (s->json)
        printf("%s\n  {\"from\": \"%s\", \"to\": \"%s\", \"gb_s\": %.3f, \"memcpy_gb_s\": %.3f, \"ratio\": %.3f, "
               "\"threads\": %d, \"runs\": %d, \"mib\": %lld}",
               first ? "[" : ",", mixt_dtype_name(p.from), mixt_dtype_name(p.to), rate / 1e9, copy_rate / 1e9,
               rate / copy_rate, mixt__threads_count(), s->runs, (long long)s->mib);
    else
        printf("%-9s %-9s %8.2f %12.2f %7.2f %8d\n", mixt_dtype_name(p.from), mixt_dtype_name(p.to), rate / 1e9,
               copy_rate / 1e9, rate / copy_rate, mixt__threads_count());
    fflush(stdout);
}

int main(int argc, char **argv)
{
    settings s = {.mib = 64, .runs = 21};
    if (!parse(argc, argv, &s)) {
        fprintf(stderr, "usage: %s [--mib N] [--runs N] [--threads N] [--json]\n", argv[0]);
        return 2;
    }
    mixt__threads_set(s.threads);
    const int64_t bytes = s.mib << 20, count = bytes / 4;
    char *src = aligned_alloc(4096, (size_t)bytes), *dst = aligned_alloc(4096, (size_t)bytes);
    double *times = malloc(2 * (size_t)s.runs * sizeof *times);
    if (!src || !dst || !times) {
        fprintf(stderr, "convert: not enough memory for two arrays of %lld MiB\n", (long long)s.mib);
        return 1;
    }
    memset(dst, 0, (size_t)bytes);
    for (int64_t i = 0; i < count; i++)
        ((float *)(void *)src)[i] = (float)(i % 1000) * 0.01f - 5;
    if (!s.json)
        printf("%lld MiB of FP32, median of %d runs, %s\n%-9s %-9s %8s %12s %7s %8s\n", (long long)s.mib, s.runs,
               mixt__isa_name(mixt__isa_level()), "from", "to", "GB/s", "memcpy GB/s", "ratio", "threads");
    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
        for (int run = -1; run < s.runs; run++) { // the first is not counted
            copy_job job = {dst, src};
            double start = mixt__time_now();
            mixt__parallel(bytes, 4096, copy_range, &job);
            double copied = mixt__time_now();
            if (mixt_convert(dst, pairs[k].to, src, pairs[k].from, count, NULL) != MIXT_OK) {
                fprintf(stderr, "convert: %s\n", mixt_error_text());
                return 1;
            }
            if (run >= 0) {
                times[run] = mixt__time_now() - copied;
                times[s.runs + run] = copied - start;
            }
        }
        double moved = (double)count * (double)(mixt_dtype_size(pairs[k].from) + mixt_dtype_size(pairs[k].to));
        report(&s, pairs[k], moved / median(times, s.runs), 2.0 * (double)bytes / median(times + s.runs, s.runs),
               k == 0);
    }
    if (s.json)
        printf("\n]\n");
    free(times);
    free(dst);
    free(src);
    return 0;
}
