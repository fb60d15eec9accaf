/* Work that takes one rank much longer than others, who knows how long: meanwhile ranks tell each other that they are
 * alive, so that one that is not is noticed in the usual time.
 */
#ifndef MIXT_DIST_KEEPALIVE_H
#define MIXT_DIST_KEEPALIVE_H

#include "dist/group.h"

#include <pthread.h>

enum { MIXT_BEATS = 4 }; // so many times in the timeout, at least

/** Tells the others once how this rank is, and hears how they are: in group->words. @param busy whether one is still at
 *  work */
mixt_status mixt__group_beat(mixt__group *group, const mixt__word *mine, bool *busy);

typedef struct mixt__keepalive {
    mixt__group *group; // NULL: there is none
    pthread_t thread;
    bool threaded, done;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mixt__word mine;
    mixt_status status; // of the beats
} mixt__keepalive;

/** Around work of any length that all ranks do, or some while the others wait at the end: a thread of its own tells
 *  that this one is alive. The work itself uses nothing of the group.
 *  @param group NULL: nothing happens */
void mixt__keepalive_begin(mixt__keepalive *keepalive, mixt__group *group);
/** Until all are here: as mixt__group_agree. @param mine how the work went; where it failed, with its error text */
mixt_status mixt__keepalive_end(mixt__keepalive *keepalive, mixt_status mine);
/** Until *done or so many seconds have passed. The lock is held. */
void mixt__wait_some(pthread_cond_t *changed, pthread_mutex_t *lock, const bool *done, bool value, double seconds);

#endif
