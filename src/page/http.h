/* libmicrohttpd, loaded when it is needed: who embeds mixt does not carry a web server and its cryptography around. */
#ifndef MIXT_PAGE_HTTP_H
#define MIXT_PAGE_HTTP_H

#include "mixt/types.h"

#include <microhttpd.h>

#define MIXT_HTTP_LIST(X)                                                                                              \
    X(start_daemon)                                                                                                    \
    X(stop_daemon)                                                                                                     \
    X(get_daemon_info)                                                                                                 \
    X(get_connection_info)                                                                                             \
    X(create_response_from_buffer)                                                                                     \
    X(create_response_from_callback)                                                                                   \
    X(add_response_header)                                                                                             \
    X(queue_response)                                                                                                  \
    X(destroy_response)                                                                                                \
    X(lookup_connection_value)

/** Its functions, under the same names without the prefix. */
typedef struct mixt__http {
#define MIXT_HTTP_FIELD(name) __typeof__(&MHD_##name) name;
    MIXT_HTTP_LIST(MIXT_HTTP_FIELD)
#undef MIXT_HTTP_FIELD
} mixt__http;

extern mixt__http mixt__http_functions;

/** Loads it once. */
mixt_status mixt__http_load(void);

#endif
