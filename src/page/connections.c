/* A list of connections, the oldest first. A place is taken back by ending the connection's socket, which its thread
 * notices; the socket is closed only after the list has let go of it. */
#include "page/connections.h"

#ifdef MIXT_HAVE_MICROHTTPD
#include <stdlib.h>
#include <sys/socket.h>

struct mixt__connection {
    mixt__connection *older, *newer;
    int fd;
    bool reader, ending;
};

void mixt__connections_open(mixt__connections *s, int most)
{
    *s = (mixt__connections){.most = most};
    pthread_mutex_init(&s->lock, NULL);
}

void mixt__connections_close(mixt__connections *s)
{
    pthread_mutex_destroy(&s->lock);
}

static void end(mixt__connections *s, mixt__connection *c)
{
    c->ending = true;
    s->taken--;
    (void)shutdown(c->fd, SHUT_RDWR);
}

/** The oldest that is no reader's, or else the oldest. */
static void make_room(mixt__connections *s)
{
    mixt__connection *first = NULL;
    for (mixt__connection *c = s->oldest; c; c = c->newer) {
        first = first || c->ending ? first : c;
        if (!c->reader && !c->ending) {
            end(s, c);
            return;
        }
    }
    end(s, first);
}

static void add(mixt__connections *s, mixt__connection *c)
{
    pthread_mutex_lock(&s->lock);
    if (s->taken == s->most)
        make_room(s);
    c->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = c;
    s->newest = c;
    s->taken++;
    pthread_mutex_unlock(&s->lock);
}

static void drop(mixt__connections *s, mixt__connection *c)
{
    pthread_mutex_lock(&s->lock);
    *(c->older ? &c->older->newer : &s->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &s->newest) = c->older;
    s->taken -= !c->ending;
    pthread_mutex_unlock(&s->lock);
    free(c);
}

void mixt__connections_notify(void *connections, struct MHD_Connection *connection, void **c,
                              enum MHD_ConnectionNotificationCode what)
{
    const mixt__http *http = &mixt__http_functions;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED && *c)
        drop(connections, *c);
    if (what != MHD_CONNECTION_NOTIFY_STARTED)
        return;
    int fd = http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    mixt__connection *mine = *c = calloc(1, sizeof *mine);
    if (!mine) {
        (void)shutdown(fd, SHUT_RDWR); // no memory for it
        return;
    }
    mine->fd = fd;
    add(connections, mine);
}

void mixt__connections_reader(mixt__connections *s, struct MHD_Connection *connection)
{
    mixt__connection *c =
        mixt__http_functions.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    pthread_mutex_lock(&s->lock);
    if (c)
        c->reader = true;
    pthread_mutex_unlock(&s->lock);
}
#endif
