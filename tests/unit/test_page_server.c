/* The served page: who has the token gets rows, everybody else gets nothing, and junk breaks nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"
#include "base/rng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static mixt_page_server *server;
static int port;
static char token[64];

static void append(const char *file, const char *text)
{
    FILE *f = fopen(temp_path(file), "a");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int begin(void **state)
{
    temp_folder_setup(state);
    mkdir(temp_path("one"), 0777);
    mkdir(temp_path("two"), 0777);
    append("one/metrics.jsonl", "{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":1}\n{\"step\":3,\"lo");
    append("two/metrics.jsonl", "{\"step\":7,\"loss\":5}\n");
    append("two/events.jsonl", "{\"step\":7}\n");
    append("two/layers.jsonl", "{\"step\":9}\n");
    append("secret.txt", "secret");
    if (!mixt_built_with("microhttpd"))
        return 0;
    assert_int_equal(mixt_page_serve(&(const char *){temp_folder}, 1, 0, &server), MIXT_OK);
    assert_int_equal(sscanf(mixt_page_address(server), "http://127.0.0.1:%d/?token=%63s", &port, token), 2);
    return 0;
}

static int finish(void **state)
{
    mixt_page_stop(server);
    mixt_page_stop(server); // said, not crashed
    return temp_folder_teardown(state);
}

static int connect_to(uint32_t address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_addr.s_addr = htonl(address);
    struct timeval limit = {.tv_sec = 60}; // a busy machine is slow
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

/** Sends bytes and reads what comes until the end, or until `until` is in it. */
static void talk(const char *bytes, size_t count, const char *until, char *reply, size_t size)
{
    size_t used = 0;
    int fd = connect_to(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    (void)!send(fd, bytes, count, MSG_NOSIGNAL);
    for (ssize_t got; used + 1 < size && (got = recv(fd, reply + used, size - used - 1, 0)) > 0;) {
        used += (size_t)got;
        reply[used] = '\0';
        if (until && strstr(reply, until))
            break;
    }
    reply[used] = '\0';
    close(fd);
}

static const char *get(const char *path, const char *given)
{
    static char reply[65536];
    char request[1024];
    int n = snprintf(request, sizeof request,
                     "GET %s%stoken=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", path,
                     strchr(path, '?') ? "&" : "?", given, port);
    talk(request, (size_t)n, NULL, reply, sizeof reply);
    return reply;
}

static int status_of(const char *reply)
{
    int status = 0;
    sscanf(reply, "HTTP/1.1 %d", &status);
    return status;
}

static const char *body_of(const char *reply)
{
    const char *body = strstr(reply, "\r\n\r\n");
    return body ? body + 4 : "";
}

#define SKIP_WITHOUT_SERVER                                                                                            \
    (void)state;                                                                                                       \
    if (!server)                                                                                                       \
    skip()

static void test_rows(void **state)
{
    SKIP_WITHOUT_SERVER;
    const char *reply = get("/runs", token);
    assert_int_equal(status_of(reply), 200);
    assert_non_null(strstr(reply, "/one\""));
    assert_non_null(strstr(reply, "/two\""));
    assert_string_equal(body_of(get("/metrics?run=0&from=0", token)),
                        "{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":1}\n");
    assert_string_equal(body_of(get("/metrics?run=0&from=20", token)), "{\"step\":2,\"loss\":1}\n");
    assert_string_equal(body_of(get("/metrics?run=0&from=100000", token)), "");
    assert_string_equal(body_of(get("/events?run=1&from=0", token)), "{\"step\":7}\n");
    assert_string_equal(body_of(get("/events?run=0&from=0", token)), ""); // it has none
    assert_string_equal(body_of(get("/layers?run=1&from=0", token)), "{\"step\":9}\n");
    assert_string_equal(body_of(get("/layers?run=0&from=0", token)), "");
    reply = get("/", token);
    assert_int_equal(status_of(reply), 200);
    assert_non_null(strstr(reply, "data-live"));
    assert_null(strstr(reply, token)); // the page does not carry it on
}

/** Rows and runs that come while somebody listens are told. */
static void test_messages(void **state)
{
    SKIP_WITHOUT_SERVER;
    char reply[4096], request[512], news[64];
    int n =
        snprintf(request, sizeof request, "GET /messages?token=%s HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", token, port);
    talk(request, (size_t)n, "data: [[", reply, sizeof reply);
    assert_non_null(strstr(reply, "text/event-stream"));
    mkdir(temp_path("three"), 0777);
    append("three/metrics.jsonl", "{\"step\":1}\n");
    append("two/metrics.jsonl", "{\"step\":8,\"loss\":5}\n");
    snprintf(news, sizeof news, "[40,11,11],[11,0,0]]"); // two has two rows now, three is new
    talk(request, (size_t)n, news, reply, sizeof reply);
    assert_non_null(strstr(reply, news));
}

static void test_refused(void **state)
{
    SKIP_WITHOUT_SERVER;
    char wrong[64], reply[4096], request[512];
    const char *const paths[] = {"/",         "/runs",   "/metrics?run=0&from=0", "/events?run=0&from=0",
                                 "/messages", "/nowhere"};
    snprintf(wrong, sizeof wrong, "%s", token);
    wrong[31] = wrong[31] == '0' ? '1' : '0';
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_int_equal(status_of(get(paths[i], wrong)), 403);
        assert_int_equal(status_of(get(paths[i], "")), 403);
        assert_null(strstr(get(paths[i], wrong), "step"));
    }
    const char *const nothing[] = {"/../secret.txt",
                                   "/secret.txt",
                                   "/%2e%2e/secret.txt",
                                   "/metrics?run=-1&from=0",
                                   "/metrics?run=9&from=0",
                                   "/metrics?run=../one&from=0",
                                   "/metrics?run=0&from=-5",
                                   "/metrics?run=99999999999999999999&from=0",
                                   "/metrics?from=0",
                                   "/metrics?run=0",
                                   "//",
                                   "/metrics/../secret.txt?run=0&from=0"};
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
        const char *answer = get(nothing[i], token);
        assert_int_equal(status_of(answer), 404);
        assert_null(strstr(answer, "secret"));
    }
    int n = snprintf(request, sizeof request,
                     "GET /runs?token=%s HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", token);
    talk(request, (size_t)n, NULL, reply, sizeof reply);
    assert_int_equal(status_of(reply), 403);
    n = snprintf(request, sizeof request,
                 "DELETE /runs?token=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n", token, port);
    talk(request, (size_t)n, NULL, reply, sizeof reply);
    assert_int_equal(status_of(reply), 405);
}

/** A link out of the folder is not followed. */
static void test_links(void **state)
{
    SKIP_WITHOUT_SERVER;
    mkdir(temp_path("linked"), 0777);
    assert_int_equal(symlink(temp_path("secret.txt"), temp_path("linked/metrics.jsonl")), 0);
    (void)get("/runs", token);
    for (int run = 0; run < 6; run++) {
        char path[64];
        snprintf(path, sizeof path, "/metrics?run=%d&from=0", run);
        assert_null(strstr(get(path, token), "secret"));
    }
}

static void test_junk(void **state)
{
    SKIP_WITHOUT_SERVER;
    char junk[300], reply[4096];
    for (uint64_t i = 0; i < 10000; i++) {
        size_t count = 1 + mixt__rng_key(3, 1, i) % (sizeof junk - 1);
        for (size_t k = 0; k < count; k++)
            junk[k] = (char)mixt__rng_key(4, i, k);
        if (i % 3)
            memcpy(junk, "GET /?token=", count < 12 ? count : 12);
        int fd = connect_to(INADDR_LOOPBACK);
        assert_true(fd >= 0);
        (void)!send(fd, junk, count, MSG_NOSIGNAL);
        (void)!send(fd, "\r\n\r\n", 4, MSG_NOSIGNAL);
        if (i % 50 == 0) {
            (void)!recv(fd, reply, sizeof reply, MSG_DONTWAIT);
        }
        close(fd);
    }
    int status = 0;
    for (int tries = 0; !status && tries < 500; tries++) { // the last of it may hold all connections for a moment
        status = status_of(get("/runs", token));
        if (!status)
            usleep(10000);
    }
    assert_int_equal(status, 200);
}

/** Connections that say nothing take no reader's place, nor that of one who listens. */
static void test_idle_connections(void **state)
{
    SKIP_WITHOUT_SERVER;
    enum { IDLE = 200 };
    int idle[IDLE];
    char request[256], reply[256];
    int listener = connect_to(INADDR_LOOPBACK);
    int n =
        snprintf(request, sizeof request, "GET /messages?token=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", token, port);
    assert_int_equal(send(listener, request, (size_t)n, MSG_NOSIGNAL), n);
    assert_true(recv(listener, reply, sizeof reply, 0) > 0);
    time_t start = time(NULL);
    for (int i = 0; i < IDLE; i++) {
        idle[i] = connect_to(INADDR_LOOPBACK);
        assert_true(idle[i] >= 0);
        (void)!send(idle[i], "GET /?tok", 9, MSG_NOSIGNAL); // and no more
    }
    for (int i = 0; i < 5; i++)
        assert_int_equal(status_of(get("/runs", token)), 200);
    assert_true(time(NULL) - start < 20); // else it was for their time limit of 30 s
    while (recv(listener, reply, sizeof reply, MSG_DONTWAIT) > 0)
        ;
    assert_true(errno == EAGAIN || errno == EWOULDBLOCK); // open
    for (int i = 0; i < IDLE; i++)
        close(idle[i]);
    close(listener);
}

static void test_misuse(void **state)
{
    (void)state;
    mixt_page_server *none = (mixt_page_server *)1;
    assert_int_not_equal(mixt_page_serve((const char *[]){temp_folder, temp_path("nowhere")}, 2, 0, &none), MIXT_OK);
    assert_null(none);
    assert_int_equal(mixt_page_serve(&(const char *){temp_folder}, 1, 0, NULL), MIXT_ERROR_ARGUMENT);
    mixt_page_stop(NULL);
    if (!server)
        skip();
    assert_int_equal(mixt_page_serve(NULL, 1, 0, &none), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_page_serve(&(const char *){temp_folder}, 1, 65536, &none), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_page_serve(&(const char *){temp_folder}, 1, port, &none), MIXT_ERROR_DEVICE); // taken
    assert_non_null(strstr(mixt_error_text(), "port"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),   cmocka_unit_test(test_refused), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_links),  cmocka_unit_test(test_junk),    cmocka_unit_test(test_idle_connections),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}
