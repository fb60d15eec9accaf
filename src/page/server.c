/* The page of runs, live: a small server for one person on this machine.
 *
 * It listens on the loopback address alone, answers only those who know its token, and hands out nothing but the page
 * itself and rows of the runs that it found in its folder: a request names a run by its number in that list, never by a
 * path. It only reads.
 */
#include "mixt/page.h"

#include "base/alloc.h"
#include "base/handles.h"
#include "page/parts.h"
#include "page/run_data.h"
#include "page/run_list.h"

#ifdef MIXT_HAVE_MICROHTTPD
#include "page/http.h"
#include "page/connections.h"
#include "store/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECTIONS = 64,     // that are kept …
    ENDING = 448,         // and whose threads have not noticed yet that they were ended: a busy machine takes a while
    SLICE = 4 << 20,      // bytes of rows in one answer
    TOKEN = 32,           // hexadecimal digits
    MESSAGES_EVERY = 500, // milliseconds between two looks at the files
};

static const mixt__http *const http = &mixt__http_functions;

struct mixt_page_server {
    mixt__handle handle;
    struct MHD_Daemon *daemon;
    mixt__run_list list;
    pthread_mutex_t lock; // of the list
    mixt__connections connections;
    volatile int stopping;
    char token[TOKEN + 1], address[128], hosts[2][64];
};

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type, char *text,
                              size_t bytes)
{
    struct MHD_Response *response = http->create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    http->add_response_header(response, "Content-Type", type);
    http->add_response_header(response, "Cache-Control", "no-store");
    http->add_response_header(response, "X-Content-Type-Options", "nosniff");
    http->add_response_header(response, "Referrer-Policy", "no-referrer"); // the address holds the token
    enum MHD_Result result = http->queue_response(connection, status, response);
    http->destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    char *text = strdup(why);
    return text ? answer(connection, status, "text/plain; charset=utf-8", text, strlen(text)) : MHD_NO;
}

static enum MHD_Result answer_json(struct MHD_Connection *connection, json_t *value)
{
    char *text = mixt__json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(value);
    return text ? answer(connection, MHD_HTTP_OK, "application/json", text, strlen(text)) : MHD_NO;
}

/** A whole number from the query; -1 where there is none. */
static int64_t number_of(struct MHD_Connection *connection, const char *name)
{
    const char *text = http->lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    if (!text || !*text || strlen(text) > 15 || text[strspn(text, "0123456789")])
        return -1;
    return strtoll(text, NULL, 10);
}

/** The folder of the run that the query names by its number. */
static bool folder_of(mixt_page_server *s, struct MHD_Connection *connection, char *folder, size_t size)
{
    int64_t run = number_of(connection, "run");
    pthread_mutex_lock(&s->lock);
    bool known = run >= 0 && run < s->list.count;
    if (known)
        snprintf(folder, size, "%s", s->list.folders[run]);
    pthread_mutex_unlock(&s->lock);
    return known;
}

/** What is known of all runs, but for their rows. */
static enum MHD_Result answer_runs(mixt_page_server *s, struct MHD_Connection *connection)
{
    json_t *runs = json_array();
    pthread_mutex_lock(&s->lock);
    mixt__run_list_scan(&s->list);
    for (int64_t r = 0; r < s->list.count; r++)
        mixt__json_add(runs, mixt__run_about(s->list.folders[r]));
    pthread_mutex_unlock(&s->lock);
    return answer_json(connection, runs);
}

/** Whole rows of a file from a byte on. */
static enum MHD_Result answer_rows(mixt_page_server *s, struct MHD_Connection *connection, const char *file)
{
    char folder[4096], path[4400];
    int64_t from = number_of(connection, "from");
    if (from < 0 || !folder_of(s, connection, folder, sizeof folder))
        return refuse(connection, MHD_HTTP_NOT_FOUND, "no such run\n");
    snprintf(path, sizeof path, "%s/%s", folder, file);
    char *text = malloc(SLICE);
    int fd = text ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    ssize_t got = fd >= 0 ? pread(fd, text, SLICE, from) : 0;
    if (fd >= 0)
        close(fd);
    while (got > 0 && text[got - 1] != '\n')
        got--; // the last one is being written
    return text ? answer(connection, MHD_HTTP_OK, "application/x-ndjson", text, got > 0 ? (size_t)got : 0) : MHD_NO;
}

static enum MHD_Result answer_page(struct MHD_Connection *connection)
{
    char *text = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream)
        return MHD_NO;
    bool whole = mixt__page_print_live(stream) == MIXT_OK && !ferror(stream);
    if (!fclose(stream) && whole)
        return answer(connection, MHD_HTTP_OK, "text/html; charset=utf-8", text, bytes);
    free(text);
    return MHD_NO;
}

/* ---- messages: who listens hears how large the files are ---- */

typedef struct listener {
    mixt_page_server *server;
    char *last; // message
    char *text; // of it what was not sent yet, from `sent` on
    size_t sent;
} listener;

static int64_t size_of(const char *folder, const char *file)
{
    char path[4400];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return lstat(path, &info) || !S_ISREG(info.st_mode) ? 0 : (int64_t)info.st_size;
}

static char *message_of(mixt_page_server *s)
{
    json_t *sizes = json_array();
    pthread_mutex_lock(&s->lock);
    mixt__run_list_scan(&s->list);
    for (int64_t r = 0; r < s->list.count; r++)
        mixt__json_add(sizes, json_pack("[I,I,I]", (json_int_t)size_of(s->list.folders[r], "metrics.jsonl"),
                                        (json_int_t)size_of(s->list.folders[r], "events.jsonl"),
                                        (json_int_t)size_of(s->list.folders[r], "layers.jsonl")));
    pthread_mutex_unlock(&s->lock);
    char *text = mixt__json_dumps(sizes, JSON_COMPACT), *message = NULL;
    json_decref(sizes);
    if (!text || asprintf(&message, "data: %s\n\n", text) < 0)
        message = NULL;
    free(text);
    return message;
}

/** Called by the connection's own thread, which may wait. */
static ssize_t next_bytes(void *user, uint64_t position, char *buffer, size_t room)
{
    listener *l = user;
    (void)position;
    for (int waited = 0; !l->text; waited += MESSAGES_EVERY) {
        if (l->server->stopping)
            return MHD_CONTENT_READER_END_OF_STREAM;
        char *message = message_of(l->server);
        bool news = message && (!l->last || strcmp(message, l->last)), quiet = waited >= 10000;
        if (news) {
            free(l->last);
            l->last = strdup(message);
            l->text = message;
        } else {
            free(message);
            if (quiet)
                l->text = strdup(":\n\n"); // so that a listener who is gone is noticed
            else
                nanosleep(&(struct timespec){.tv_nsec = MESSAGES_EVERY * 1000000L}, NULL);
        }
    }
    size_t left = strlen(l->text + l->sent), part = left < room ? left : room;
    memcpy(buffer, l->text + l->sent, part);
    l->sent += part;
    if (part == left) {
        free(l->text);
        l->text = NULL;
        l->sent = 0;
    }
    return (ssize_t)part;
}

static void forget_listener(void *user)
{
    listener *l = user;
    free(l->last);
    free(l->text);
    free(l);
}

static enum MHD_Result answer_messages(mixt_page_server *s, struct MHD_Connection *connection)
{
    listener *l = calloc(1, sizeof *l);
    if (!l)
        return MHD_NO;
    l->server = s;
    struct MHD_Response *response =
        http->create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, next_bytes, l, forget_listener);
    if (!response) {
        forget_listener(l);
        return MHD_NO;
    }
    http->add_response_header(response, "Content-Type", "text/event-stream");
    http->add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result result = http->queue_response(connection, MHD_HTTP_OK, response);
    http->destroy_response(response);
    return result;
}

/* ---- requests ---- */

/** Compares all of both, so that the time taken tells nothing. */
static bool token_right(const mixt_page_server *s, struct MHD_Connection *connection)
{
    const char *given = http->lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
    unsigned differ = 0;
    if (!given || strlen(given) != TOKEN)
        return false;
    for (int i = 0; i < TOKEN; i++)
        differ |= (unsigned char)given[i] ^ (unsigned char)s->token[i];
    return !differ;
}

/** A page of another site whose name was made to lead here does not get in. */
static bool host_right(const mixt_page_server *s, struct MHD_Connection *connection)
{
    const char *host = http->lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    return host && (!strcmp(host, s->hosts[0]) || !strcmp(host, s->hosts[1]));
}

static enum MHD_Result hear(void *user, struct MHD_Connection *connection, const char *path, const char *method,
                            const char *version, const char *data, size_t *bytes, void **request)
{
    static int seen;
    mixt_page_server *s = user;
    (void)version, (void)data;
    if (!*request) { // the head alone: what follows decides
        *request = &seen;
        return MHD_YES;
    }
    if (*bytes || strcmp(method, "GET"))
        return *bytes ? MHD_NO : refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "this page can only be read\n");
    if (!host_right(s, connection) || !token_right(s, connection))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "open the address that mixt watch printed: it has the token\n");
    mixt__connections_reader(&s->connections, connection);
    if (!strcmp(path, "/"))
        return answer_page(connection);
    if (!strcmp(path, "/runs"))
        return answer_runs(s, connection);
    if (!strcmp(path, "/metrics"))
        return answer_rows(s, connection, "metrics.jsonl");
    if (!strcmp(path, "/events"))
        return answer_rows(s, connection, "events.jsonl");
    if (!strcmp(path, "/layers"))
        return answer_rows(s, connection, "layers.jsonl");
    if (!strcmp(path, "/messages"))
        return answer_messages(s, connection);
    return refuse(connection, MHD_HTTP_NOT_FOUND, "not found\n");
}

/* ---- starting and stopping ---- */

static mixt_status make_token(char token[TOKEN + 1])
{
    unsigned char random[TOKEN / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return mixt__fail(MIXT_ERROR_DEVICE, "no random numbers for a token: %s", strerror(errno));
    for (int i = 0; i < TOKEN / 2; i++)
        snprintf(token + 2 * i, 3, "%02x", random[i]);
    return MIXT_OK;
}

static mixt_status listen_on(mixt_page_server *s, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->daemon = http->start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, hear, s, MHD_OPTION_SOCK_ADDR,
        &address, MHD_OPTION_CONNECTION_LIMIT, (unsigned)(CONNECTIONS + ENDING), MHD_OPTION_CONNECTION_TIMEOUT, 30u,
        MHD_OPTION_NOTIFY_CONNECTION, mixt__connections_notify, &s->connections, MHD_OPTION_END);
    if (!s->daemon)
        return mixt__fail(MIXT_ERROR_DEVICE, "cannot listen on port %d of 127.0.0.1: %s", port,
                          errno ? strerror(errno) : "it may be in use");
    const union MHD_DaemonInfo *info = http->get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    unsigned bound = info ? info->port : (unsigned)port;
    snprintf(s->hosts[0], sizeof s->hosts[0], "127.0.0.1:%u", bound);
    snprintf(s->hosts[1], sizeof s->hosts[1], "localhost:%u", bound);
    snprintf(s->address, sizeof s->address, "http://127.0.0.1:%u/?token=%s", bound, s->token);
    return MIXT_OK;
}

mixt_status mixt_page_serve(const char *const *folders, int64_t count, int port, mixt_page_server **server)
{
    MIXT_TRY(mixt__need(server));
    *server = NULL;
    MIXT_TRY(mixt__need(folders));
    if (count < 1 || count > MIXT_PAGE_RUNS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld folders: expected 1 to %d", (long long)count, MIXT_PAGE_RUNS_MAX);
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY(mixt__need(folders[i]));
    if (port < 0 || port > 65535)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "port %d: a port is 1 to 65535, or 0 for any that is free", port);
    MIXT_TRY(mixt__http_load());
    mixt_page_server *s = mixt__alloc(sizeof *s);
    if (!s)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a server");
    pthread_mutex_init(&s->lock, NULL);
    mixt__connections_open(&s->connections, CONNECTIONS);
    mixt_status status = mixt__run_list_open(&s->list, folders, count);
    if (status == MIXT_OK)
        status = make_token(s->token);
    if (status == MIXT_OK)
        status = listen_on(s, port);
    if (status != MIXT_OK) {
        mixt__run_list_close(&s->list);
        mixt__free(s);
        return status;
    }
    mixt__handle_add(&s->handle, s, "page server", NULL);
    *server = s;
    return MIXT_OK;
}

const char *mixt_page_address(const mixt_page_server *server)
{
    return mixt__need_open(server, "page server") == MIXT_OK ? server->address : "";
}

void mixt_page_stop(mixt_page_server *s)
{
    if (!s || mixt__need_open(s, "page server") != MIXT_OK)
        return;
    mixt__handle_remove(s);
    s->stopping = 1;
    http->stop_daemon(s->daemon);
    mixt__run_list_close(&s->list);
    mixt__connections_close(&s->connections);
    pthread_mutex_destroy(&s->lock);
    mixt__free(s);
}
#else
mixt_status mixt_page_serve(const char *const *folders, int64_t count, int port, mixt_page_server **server)
{
    (void)folders, (void)count, (void)port;
    MIXT_TRY(mixt__need(server));
    *server = NULL;
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "this mixt was built without libmicrohttpd: it cannot serve pages");
}

const char *mixt_page_address(const mixt_page_server *server)
{
    (void)server;
    return "";
}

void mixt_page_stop(mixt_page_server *server)
{
    (void)server;
}
#endif
