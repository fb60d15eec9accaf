/* A list of connections, the oldest first. A place is taken back by ending the connection's socket, which its thread
 * notices; the socket is closed only after the list has let go of it. */
#include "page/seats.h"

#ifdef MIXT_HAVE_MICROHTTPD
#include <stdlib.h>
#include <sys/socket.h>

struct mixt__seat {
    mixt__seat *older, *newer;
    int fd;
    bool reader, leaving;
};

void mixt__seats_open(mixt__seats *s, int most)
{
    *s = (mixt__seats){.most = most};
    pthread_mutex_init(&s->lock, NULL);
}

void mixt__seats_close(mixt__seats *s)
{
    pthread_mutex_destroy(&s->lock);
}

static void leave(mixt__seats *s, mixt__seat *seat)
{
    seat->leaving = true;
    s->taken--;
    (void)shutdown(seat->fd, SHUT_RDWR);
}

/** The oldest that is no reader's, or else the oldest. */
static void make_room(mixt__seats *s)
{
    mixt__seat *first = NULL;
    for (mixt__seat *seat = s->oldest; seat; seat = seat->newer) {
        first = first || seat->leaving ? first : seat;
        if (!seat->reader && !seat->leaving) {
            leave(s, seat);
            return;
        }
    }
    leave(s, first);
}

static void sit_down(mixt__seats *s, mixt__seat *seat)
{
    pthread_mutex_lock(&s->lock);
    if (s->taken == s->most)
        make_room(s);
    seat->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = seat;
    s->newest = seat;
    s->taken++;
    pthread_mutex_unlock(&s->lock);
}

static void get_up(mixt__seats *s, mixt__seat *seat)
{
    pthread_mutex_lock(&s->lock);
    *(seat->older ? &seat->older->newer : &s->oldest) = seat->newer;
    *(seat->newer ? &seat->newer->older : &s->newest) = seat->older;
    s->taken -= !seat->leaving;
    pthread_mutex_unlock(&s->lock);
    free(seat);
}

void mixt__seats_notify(void *seats, struct MHD_Connection *connection, void **seat,
                        enum MHD_ConnectionNotificationCode what)
{
    const mixt__http *http = &mixt__http_functions;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED && *seat)
        get_up(seats, *seat);
    if (what != MHD_CONNECTION_NOTIFY_STARTED)
        return;
    int fd = http->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    mixt__seat *mine = *seat = calloc(1, sizeof *mine);
    if (!mine) {
        (void)shutdown(fd, SHUT_RDWR); // no memory for it
        return;
    }
    mine->fd = fd;
    sit_down(seats, mine);
}

void mixt__seats_reader(mixt__seats *s, struct MHD_Connection *connection)
{
    mixt__seat *seat =
        mixt__http_functions.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    pthread_mutex_lock(&s->lock);
    if (seat)
        seat->reader = true;
    pthread_mutex_unlock(&s->lock);
}
#endif
