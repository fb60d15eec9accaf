/* Connections of a page's server. It keeps only so many; past that, whoever comes next takes the place of the
 * connection that has waited longest without having shown the token, so that idle ones keep no reader out.
 */
#ifndef MIXT_PAGE_CONNECTIONS_H
#define MIXT_PAGE_CONNECTIONS_H

#ifdef MIXT_HAVE_MICROHTTPD
#include "page/http.h"

#include <pthread.h>

typedef struct mixt__connection mixt__connection;

typedef struct mixt__connections {
    pthread_mutex_t lock;
    mixt__connection *oldest, *newest;
    int taken, most;
} mixt__connections;

void mixt__connections_open(mixt__connections *connections, int most);
/** All connections are closed. */
void mixt__connections_close(mixt__connections *connections);
/** For MHD_OPTION_NOTIFY_CONNECTION. @param connections a mixt__connections */
void mixt__connections_notify(void *connections, struct MHD_Connection *connection, void **c,
                              enum MHD_ConnectionNotificationCode what);
/** It has shown the token: others go first. */
void mixt__connections_reader(mixt__connections *connections, struct MHD_Connection *connection);
#endif

#endif
