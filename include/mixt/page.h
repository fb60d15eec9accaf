/* How do I show runs to somebody? As a page: curves of all that was measured, alerts and decisions marked on them,
 * tables, and what to do. One file that opens anywhere, without a network; or served while they train
 * (mixt_page_serve).
 *
 *   const char *const runs[] = {"runs/a", "runs/b"};
 *   mixt_page_write(runs, 2, "report.html", NULL);
 *
 * Nothing is sampled away: the page holds every row, and where several fall into one column of pixels it draws them
 * from the least to the greatest.
 */
#ifndef MIXT_PAGE_H
#define MIXT_PAGE_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_page_options {
    size_t struct_size;
    bool overwrite; /**< replace a file that is there */
} mixt_page_options;
MIXT_API void mixt_page_options_default(mixt_page_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_page_options .struct_size = sizeof(mixt_page_options)

enum { MIXT_PAGE_RUNS_MAX = 1000 };

/**
 * Writes the page of some runs, whole or not at all. A run may still be training; what it lacks, and rows that cannot
 * be read, the page says.
 * @param runs directories of runs, `count` of them, 1 to MIXT_PAGE_RUNS_MAX.
 * @param path of the file to write.
 * @param options NULL: the defaults.
 * @return MIXT_ERROR_FILE where a directory is missing or is no run's, and where the file cannot be written or is
 * there.
 */
MIXT_API mixt_status mixt_page_write(const char *const *runs, int64_t count, const char *path,
                                     const mixt_page_options *options);

/** A page that is served while runs train. */
typedef struct mixt_page_server mixt_page_server;

/**
 * Serves the page of some runs, or of all runs in some folders, to browsers on this machine; it follows what they
 * write. Only the loopback address is listened on, only those who know the address with its token are answered, and
 * nothing but those runs is read. Threads of its own do the work.
 * @param folders run directories, or folders with runs in them or in folders of them, `count`, 1 to MIXT_PAGE_RUNS_MAX.
 * @param port to listen on; 0: any that is free.
 * @param server set to NULL on failure; end it with mixt_page_stop.
 * @return MIXT_ERROR_UNSUPPORTED where mixt was built without libmicrohttpd (mixt_built_with("microhttpd")).
 */
MIXT_API mixt_status mixt_page_serve(const char *const *folders, int64_t count, int port, mixt_page_server **server);
/** What to open in a browser, token and all: "http://127.0.0.1:40123/?token=…". It belongs to the server. */
MIXT_API const char *mixt_page_address(const mixt_page_server *server);
/** Ends it; NULL is allowed. */
MIXT_API void mixt_page_stop(mixt_page_server *server);

#ifdef __cplusplus
}
#endif
#endif
