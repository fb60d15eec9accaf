/* What a parallel region costs: starting and ending the team, and a barrier inside it, in microseconds. */
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>

enum { REGIONS = 2000, BARRIERS = 100, ROUNDS = 15 };

static void nothing(void *argument, int first, int end, int threads)
{
    (void)argument;
    (void)first;
    (void)end;
    (void)threads;
}

static void barriers(void *argument, int first, int end, int threads)
{
    (void)argument;
    (void)first;
    (void)end;
    (void)threads;
    for (int i = 0; i < BARRIERS; i++)
        mixt__team_barrier();
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/** Median over ROUNDS of the time of one of `count` calls. */
static double median_us(mixt__team_fn *fn, int threads, int count)
{
    double times[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double start = mixt__time_now();
        for (int i = 0; i < count; i++)
            mixt__team_run(threads, fn, NULL);
        times[r] = (mixt__time_now() - start) / count * 1e6;
    }
    qsort(times, ROUNDS, sizeof times[0], compare);
    return times[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    int most = argc > 1 ? atoi(argv[1]) : mixt__threads_count();
    printf("%8s %12s %12s\n", "threads", "region us", "barrier us");
    for (int threads = 2; threads <= most; threads *= 2) {
        double region = median_us(nothing, threads, REGIONS);
        printf("%8d %12.2f %12.2f\n", threads, region,
               (median_us(barriers, threads, REGIONS / BARRIERS) - region) / BARRIERS);
    }
    return 0;
}
