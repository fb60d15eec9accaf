/* slow_integrity_cost CONFIG [key=value …]: what summing the state costs (src/train/integrity.h). Times the update pass
 * with and without sums, in turns, and whole updates the same way; prints the medians of CPU time, which other programs
 * on the machine disturb less than time itself. */
#include "mixt/mixt.h"
#include "run/run.h"
#include "train/trainer_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 101, STEPS = 21 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

static mixt_status pass(mixt__trainer *t, const mixt__update *u)
{
    t->control->step++; // sums are by its parity
    if (u->sums[0])
        MIXT_TRY(mixt__device_check_segments(t->device, u));
    MIXT_TRY(mixt__device_optimizer_step(t->device, u));
    return u->sums[0] ? mixt__device_judge_sums(t->device, u) : MIXT_OK;
}

/** Medians of each, and of how they compare in each turn, with the quarters around that. */
static void tell(const char *what, const double *without, const double *with, int count)
{
    double sorted[2][ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < count; i++)
        ratio[i] = 100 * (with[i] / without[i] - 1);
    memcpy(sorted[0], without, (size_t)count * sizeof *without);
    memcpy(sorted[1], with, (size_t)count * sizeof *with);
    double a = median(sorted[0], count), b = median(sorted[1], count), middle = median(ratio, count);
    printf("%s: %.3f ms without, %.3f with; in turns %+.2f%% (%+.2f to %+.2f)\n", what, a, b, middle, ratio[count / 4],
           ratio[3 * count / 4]);
}

static mixt_status time_passes(mixt__trainer *t)
{
    double with[ROUNDS], without[ROUNDS];
    mixt__update summed = t->update, plain = t->update;
    plain.sums[0] = plain.sums[1] = NULL;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        bool sums = (i % 2) ^ (i / 2 % 2); // which of them is first changes
        double start = now();
        MIXT_TRY(pass(t, sums ? &summed : &plain));
        (sums ? with : without)[i / 2] = now() - start;
    }
    tell("update pass", without, with, ROUNDS);
    return MIXT_OK;
}

static mixt_status time_steps(mixt__trainer *t, const mixt_data *data)
{
    double with[STEPS], without[STEPS];
    mixt_step step;
    for (int i = 0; i < 2 * STEPS; i++) {
        bool sums = (i % 2) ^ (i / 2 % 2);
        char *memory = t->integrity.memory;
        mixt__update update = t->update;
        if (!sums) {
            t->integrity.memory = NULL;
            t->update.sums[0] = t->update.sums[1] = NULL;
        }
        double start = now();
        MIXT_TRY(mixt__trainer_step(t, data, &step));
        (sums ? with : without)[i / 2] = now() - start;
        t->integrity.memory = memory;
        memcpy(t->update.sums, update.sums, sizeof update.sums);
        mixt__integrity_renew_later(t);
        MIXT_TRY(mixt__integrity_renew(t));
    }
    tell("whole update", without, with, STEPS);
    return MIXT_OK;
}

static mixt_status run(const char *path, const char *const *settings)
{
    mixt_run *run = NULL;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings);
    MIXT_TRY(mixt_run_open_with(path, &options, &run));
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt_step step;
    mixt_status status = MIXT_OK;
    for (int i = 0; i < 3 && status == MIXT_OK; i++)
        status = mixt__trainer_step(t, run->experiment.train, &step);
    if (status == MIXT_OK)
        status = time_passes(t);
    if (status == MIXT_OK)
        status = time_steps(t, run->experiment.train);
    mixt_run_close(run);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        printf("usage: %s CONFIG [key=value …]\n", argv[0]);
        return 2;
    }
    mixt_status status = run(argv[1], (const char *const *)argv + 2);
    if (status != MIXT_OK)
        printf("%s\n", mixt_error_text());
    return status == MIXT_OK ? 0 : 1;
}
