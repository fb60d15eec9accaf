/* Places of a page's server. There are only so many; where all are taken, whoever comes next gets that of the
 * connection that has waited longest without having shown the token, so that idle ones keep no reader out.
 */
#ifndef MIXT_PAGE_SEATS_H
#define MIXT_PAGE_SEATS_H

#ifdef MIXT_HAVE_MICROHTTPD
#include "page/http.h"

#include <pthread.h>

typedef struct mixt__seat mixt__seat;

typedef struct mixt__seats {
    pthread_mutex_t lock;
    mixt__seat *oldest, *newest;
    int taken, most;
} mixt__seats;

void mixt__seats_open(mixt__seats *seats, int most);
/** All connections are closed. */
void mixt__seats_close(mixt__seats *seats);
/** For MHD_OPTION_NOTIFY_CONNECTION. @param seats a mixt__seats */
void mixt__seats_notify(void *seats, struct MHD_Connection *connection, void **seat,
                        enum MHD_ConnectionNotificationCode what);
/** It has shown the token: others go first. */
void mixt__seats_reader(mixt__seats *seats, struct MHD_Connection *connection);
#endif

#endif
