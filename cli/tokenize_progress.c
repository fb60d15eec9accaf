/* Drawing the progress of tokenising. */
#include "cli/tokenize_progress.h"

#include "cli/support.h"
#include "cli/term.h"

#include <string.h>

#define PERIOD 0.1
#define LONG 2.0 // seconds that are worth a line in a log

enum { BAR = 30 };

/** Whether it is told of merges, not of bytes. */
static bool is_learning(const char *name)
{
    return !strncmp(name, "learning ", 9);
}

static void draw(const char *name, int64_t done, int64_t total, double elapsed)
{
    char bar[BAR + 1], rate[32], left[32];
    int filled = (int)((double)done / (double)total * BAR);
    memset(bar, '.', BAR);
    memset(bar, '=', (size_t)filled);
    bar[BAR] = 0;
    cli_format_duration(left, elapsed / (double)done * (double)(total - done));
    if (is_learning(name))
        fprintf(stderr, "\r%.40s  [%s]  %lld of %lld  ETA %s\033[K", name, bar, (long long)done, (long long)total,
                left);
    else
        fprintf(stderr, "\rtokenising %.40s  [%s]  %s/s  ETA %s\033[K", name, bar,
                cli_format_bytes(rate, (double)done / elapsed), left);
    fflush(stderr);
}

void cli_tokenize_progress(void *user, const char *what, int64_t done, int64_t total)
{
    static double started, shown; // one text at a time
    static int64_t before = -1;
    const char *slash = strrchr(what, '/'), *name = slash ? slash + 1 : what;
    double now = cli_time_now();
    (void)user;
    if (done < before || before < 0)
        started = shown = now; // the first call: the time of one round is not counted
    before = done < total ? done : -1;
    bool live = cli_is_terminal(stderr);
    if (done >= total) {
        char size[32], time[32];
        if (live)
            fputs("\r\033[K", stderr);
        else if (now - started > LONG)
            fprintf(stderr, "%s%s: %s in %s\n", is_learning(name) ? "" : "tokenised ", name,
                    is_learning(name) ? "done" : cli_format_bytes(size, (double)total),
                    cli_format_duration(time, now - started));
        fflush(stderr);
    } else if (live && now - shown >= PERIOD) {
        shown = now;
        draw(name, done, total, now - started);
    }
}
