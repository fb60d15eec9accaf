/* Drawing the progress of tokenising. */
#include "cli/tokenize_progress.h"

#include "cli/support.h"
#include "cli/term.h"

#include <string.h>

#define PERIOD 0.1
#define LONG 2.0 // seconds that are worth a line in a log

enum { BAR = 30 };

/** The name of the file that a text comes from; "": it comes from several. */
static const char *name_of(const mixt_progress *p)
{
    const char *slash = strrchr(p->what, '/');
    return slash ? slash + 1 : p->what;
}

static void draw(const mixt_progress *p, double elapsed)
{
    char bar[BAR + 1], rate[32], left[32];
    const char *name = name_of(p);
    int filled = (int)((double)p->done / (double)p->total * BAR);
    memset(bar, '.', BAR);
    memset(bar, '=', (size_t)filled);
    bar[BAR] = 0;
    cli_format_duration(left, elapsed / (double)p->done * (double)(p->total - p->done));
    if (strcmp(p->unit, "bytes") != 0)
        fprintf(stderr, "\r%s%s%.40s  [%s]  %lld of %lld  ETA %s\033[K", p->task, *name ? " " : "", name, bar,
                (long long)p->done, (long long)p->total, left);
    else
        fprintf(stderr, "\r%s %.40s  [%s]  %s/s  ETA %s\033[K", p->task, name, bar,
                cli_format_bytes(rate, (double)p->done / elapsed), left);
    fflush(stderr);
}

/** What is left of it in a log. */
static void sum_up(const mixt_progress *p, double elapsed)
{
    char size[32], time[32];
    const char *name = name_of(p);
    bool bytes = !strcmp(p->unit, "bytes");
    fprintf(stderr, "%s%s%s: %s in %s\n", p->task, *name ? " " : "", name,
            bytes ? cli_format_bytes(size, (double)p->total) : "done", cli_format_duration(time, elapsed));
}

bool cli_tokenize_progress(void *user, const mixt_progress *p)
{
    static double started, shown; // one text at a time
    static int64_t before = -1;
    double now = cli_time_now();
    (void)user;
    if (p->kind != MIXT_PROGRESS_DATA)
        return true;
    if (p->done < before || before < 0)
        started = shown = now; // the first call: the time of one round is not counted
    before = p->done < p->total ? p->done : -1;
    bool live = cli_is_terminal(stderr);
    if (p->done >= p->total) {
        if (live)
            fputs("\r\033[K", stderr);
        else if (now - started > LONG)
            sum_up(p, now - started);
        fflush(stderr);
    } else if (live && now - shown >= PERIOD) {
        shown = now;
        draw(p, now - started);
    }
    return true;
}
