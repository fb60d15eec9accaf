/* Trainers in contexts of their own, alone and at once, each in a thread of its own: what came of them is compared bit
 * by bit. */
#ifndef MIXT_TESTS_TRAINERS_AT_ONCE_H
#define MIXT_TESTS_TRAINERS_AT_ONCE_H

#include "mixt/mixt.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { JOB_STEPS = 64, JOB_PARAMS = 128, JOBS_MAX = 4 };

typedef struct job job;

/** What is trained. `make` opens data and trainer on the job's context; a failure is in mixt_error_text. */
typedef struct job_kind {
    mixt_trainer *(*make)(const job *j, mixt_data **data);
    int steps;
    bool evaluates;
} job_kind;

/** One trainer, and what came of it. */
struct job {
    const job_kind *kind;
    const char *device, *precision;
    int threads;
    uint64_t seed;
    mixt_context *context;
    pthread_barrier_t *line; // where all begin; NULL: alone
    mixt_status status;
    char why[512]; // of a failure; cmocka's assertions are for one thread
    double losses[JOB_STEPS];
    float *weights[JOB_PARAMS];
    size_t bytes[JOB_PARAMS];
};

static bool job_good(job *j, mixt_status status)
{
    if (status != MIXT_OK && j->status == MIXT_OK) {
        j->status = status;
        snprintf(j->why, sizeof j->why, "%s", mixt_error_text());
    }
    return j->status == MIXT_OK;
}

static void job_keep_weights(job *j, mixt_trainer *t)
{
    mixt_param_info info;
    for (int64_t p = 0; p < JOB_PARAMS && mixt_trainer_param(t, p, &info) == MIXT_OK; p++) {
        j->bytes[p] = (size_t)info.count * sizeof(float);
        j->weights[p] = malloc(j->bytes[p]);
        job_good(j, mixt_trainer_param_get(t, p, j->weights[p]));
    }
}

static void *job_train(void *argument)
{
    job *j = argument;
    mixt_step step;
    mixt_evaluation evaluation;
    mixt_data *data = NULL;
    mixt_trainer *t = j->kind->make(j, &data);
    if (!t)
        job_good(j, MIXT_ERROR_STATE);
    if (j->line)
        pthread_barrier_wait(j->line);
    for (int i = 0; i < j->kind->steps && job_good(j, mixt_trainer_step(t, data, &step)); i++)
        j->losses[i] = step.loss;
    if (j->status == MIXT_OK && (!j->kind->evaluates || job_good(j, mixt_trainer_evaluate(t, data, &evaluation))))
        job_keep_weights(j, t);
    return NULL;
}

/** Opens its context. */
static void job_open(job *j)
{
    j->context = mixt_open(.device = j->device, .threads = j->threads);
    if (!j->context)
        fail_msg("%s", mixt_error_text());
}

/** The job by itself: opened, trained and closed. */
static job job_alone(job asked)
{
    job_open(&asked);
    job_train(&asked);
    mixt_close(asked.context);
    return asked;
}

/** All at once; they are closed when the last has ended. */
static void jobs_at_once(job *jobs, int count)
{
    pthread_t threads[JOBS_MAX];
    pthread_barrier_t line;
    assert_true(count <= JOBS_MAX);
    pthread_barrier_init(&line, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        jobs[i].line = &line;
        job_open(&jobs[i]);
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, job_train, &jobs[i]), 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        mixt_close(jobs[i].context);
    pthread_barrier_destroy(&line);
}

static void job_forget(job *j)
{
    for (int p = 0; p < JOB_PARAMS; p++)
        free(j->weights[p]);
}

/** Whether losses and weights have the same bits. Fails where a job has failed. */
static bool jobs_same(const job *a, const job *b)
{
    bool equal = !memcmp(a->losses, b->losses, sizeof a->losses);
    assert_string_equal(a->why, "");
    assert_string_equal(b->why, "");
    assert_true(a->bytes[0] > 0);
    for (int p = 0; p < JOB_PARAMS; p++) {
        assert_int_equal(a->bytes[p], b->bytes[p]);
        equal = equal && (!a->bytes[p] || !memcmp(a->weights[p], b->weights[p], a->bytes[p]));
    }
    return equal;
}

#endif
