/* Beats, by who waits or by a thread beside who works. */
#include "dist/keepalive.h"

#include "base/status.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

mixt_status mixt__group_beat(mixt__group *g, const mixt__word *mine, bool *busy)
{
    mixt__word own = *mine;
    MIXT_TRY(mixt__group_gather(g, &own, sizeof own, g->words, 1));
    *busy = false;
    for (int rank = 0; rank < g->size; rank++)
        *busy = *busy || g->words[rank].busy;
    return MIXT_OK;
}

void mixt__wait_some(pthread_cond_t *changed, pthread_mutex_t *lock, const bool *done, bool value, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t end = (int64_t)until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += (time_t)(end / 1000000000);
    until.tv_nsec = (long)(end % 1000000000);
    while (*done != value && pthread_cond_timedwait(changed, lock, &until) != ETIMEDOUT)
        ;
}

/** Until no rank is busy, or one is lost. */
static void *beat(void *argument)
{
    mixt__keepalive *m = argument;
    bool busy = true;
    while (busy && m->status == MIXT_OK) {
        pthread_mutex_lock(&m->lock);
        mixt__wait_some(&m->changed, &m->lock, &m->done, true, m->group->timeout / MIXT_BEATS);
        mixt__word mine = m->mine;
        mine.busy = !m->done;
        pthread_mutex_unlock(&m->lock);
        m->status = mixt__group_beat(m->group, &mine, &busy);
    }
    return NULL;
}

void mixt__keepalive_begin(mixt__keepalive *m, mixt__group *group)
{
    sigset_t all, before;
    *m = (mixt__keepalive){.group = group};
    if (!group)
        return;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    sigfillset(&all); // signals are the main thread's business
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m->threaded = !group->broken && pthread_create(&m->thread, NULL, beat, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

mixt_status mixt__keepalive_end(mixt__keepalive *m, mixt_status mine)
{
    mixt__group *g = m->group;
    if (!g)
        return mine;
    pthread_mutex_lock(&m->lock);
    m->mine.status = (int32_t)mine;
    if (mine != MIXT_OK)
        snprintf(m->mine.text, sizeof m->mine.text, "%s", mixt_error_text());
    m->done = true;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (m->threaded)
        pthread_join(m->thread, NULL);
    else
        (void)beat(m);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    return m->status == MIXT_OK ? mixt__group_judge(g) : mixt__fail(m->status, "%s", g->why); // the thread's own text
}
