/* Ranks as threads of one process; exchange is a table of mailboxes. Included after cmocka.h. */
#ifndef MIXT_TESTS_RANK_THREADS_H
#define MIXT_TESTS_RANK_THREADS_H

#include "base/threads.h"
#include "dist/group.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST = 4 };

/** One message on its way: the sender waits until it was taken. */
typedef struct box {
    const void *data; // NULL: empty
    size_t bytes;
} box;

typedef struct office {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    box boxes[MOST][MOST]; // from, to
    bool closed;           // a rank has failed
} office;

typedef struct rank {
    office *office;
    mixt__group *group;
    int index, size;
    int failing; // the exchange that fails, from 1; 0: none
    int calls;
    void (*work)(struct rank *rank);
    const void *argument;
    char problem[256]; // cmocka's assertions are for one thread
} rank;

#define CHECK(rank, condition)                                                                                         \
    do {                                                                                                               \
        if (!(condition) && !(rank)->problem[0])                                                                       \
            snprintf((rank)->problem, sizeof(rank)->problem, "rank %d, line %d: %s", (rank)->index, __LINE__,          \
                     #condition);                                                                                      \
    } while (0)

static void take(office *o, int from, int to, const mixt_message *m, bool *done)
{
    box *b = &o->boxes[from][to];
    if (*done || !b->data)
        return;
    memcpy(m->data, b->data, m->bytes < b->bytes ? m->bytes : b->bytes);
    *b = (box){0};
    *done = true;
    pthread_cond_broadcast(&o->changed);
}

static mixt_status exchange(void *user, const mixt_message *out, int outs, const mixt_message *in, int ins,
                            double seconds)
{
    rank *r = user;
    office *o = r->office;
    bool taken[MOST] = {false}, waiting = true;
    struct timespec until;
    timespec_get(&until, TIME_UTC);
    until.tv_sec += (time_t)seconds;
    pthread_mutex_lock(&o->lock);
    o->closed = o->closed || ++r->calls == r->failing;
    for (int i = 0; i < outs; i++)
        o->boxes[r->index][out[i].peer] = (box){out[i].bytes ? out[i].data : o, out[i].bytes};
    pthread_cond_broadcast(&o->changed);
    while (waiting && !o->closed) {
        waiting = false;
        for (int i = 0; i < ins; i++) {
            take(o, in[i].peer, r->index, &in[i], &taken[i]);
            waiting = waiting || !taken[i];
        }
        for (int i = 0; i < outs; i++)
            waiting = waiting || o->boxes[r->index][out[i].peer].data;
        if (waiting && pthread_cond_timedwait(&o->changed, &o->lock, &until))
            o->closed = true;
    }
    bool closed = o->closed;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return closed ? MIXT_ERROR_STATE : MIXT_OK;
}

static void *begin(void *argument)
{
    rank *r = argument;
    mixt_communicator own = {.rank = r->index, .size = r->size, .user = r, .exchange = exchange};
    mixt__threads_use(1); // the team is the process's
    CHECK(r, mixt__group_open_own(&own, 30, &r->group) == MIXT_OK);
    r->work(r);
    mixt__group_close(r->group);
    return NULL;
}

/** Runs `work` on so many ranks; fails with what the first of them found. */
static void run_failing(int size, void (*work)(rank *rank), const void *argument, int failing)
{
    office o = {.closed = false};
    rank ranks[MOST];
    pthread_t threads[MOST];
    pthread_mutex_init(&o.lock, NULL);
    pthread_cond_init(&o.changed, NULL);
    for (int i = 0; i < size; i++) {
        ranks[i] = (rank){.office = &o, .index = i, .size = size, .work = work, .argument = argument};
        ranks[i].failing = i == size - 1 ? failing : 0;
        assert_int_equal(pthread_create(&threads[i], NULL, begin, &ranks[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < size; i++)
        if (ranks[i].problem[0])
            fail_msg("%s", ranks[i].problem);
    pthread_mutex_destroy(&o.lock);
    pthread_cond_destroy(&o.changed);
}

static void run(int size, void (*work)(rank *rank), const void *argument)
{
    run_failing(size, work, argument, 0);
}

#endif
