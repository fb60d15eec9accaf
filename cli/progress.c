/* Drawing the progress line. */
#include "cli/progress.h"

#include "cli/support.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define LIVE_PERIOD 0.1
#define PLAIN_PERIOD 10.0
enum { BAR_MIN = 10, BAR_MAX = 40, LINE_SIZE = 512 };

void cli_progress_start(cli_progress *progress, FILE *stream, bool quiet, int64_t first_step)
{
    *progress = (cli_progress){
        .stream = stream,
        .live = !quiet && cli_is_terminal(stream),
        .quiet = quiet,
        .started = cli_time_now(),
        .shown = -INFINITY,
        .first_step = first_step,
    };
    progress->part_started = progress->started;
}

void cli_progress_begin_part(cli_progress *progress, int64_t first_step)
{
    progress->part_started = cli_time_now();
    progress->first_step = first_step;
}

/** Appends to a line of LINE_SIZE bytes, two blanks before each field. */
static void add(char *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char *line, const char *format, ...)
{
    size_t used = strlen(line);
    if (used && used + 2 < LINE_SIZE) {
        memcpy(line + used, "  ", 3);
        used += 2;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, LINE_SIZE - used, format, args);
    va_end(args);
}

static void add_place(char *line, const cli_progress_info *info)
{
    const char *part = info->part ? info->part : "epoch";
    if (info->epochs) // batches that were left out make room for some of the next epoch
        add(line, "%s %lld/%lld", part, (long long)(info->epoch < info->epochs ? info->epoch : info->epochs),
            (long long)info->epochs);
    else
        add(line, "%s %lld", part, (long long)info->epoch);
    if (info->steps)
        add(line, "step %lld/%lld", (long long)info->step, (long long)info->steps);
    else
        add(line, "step %lld", (long long)info->step);
}

static void add_figures(char *line, const cli_progress *progress, const cli_progress_info *info, bool final)
{
    char text[32];
    if (!isnan(info->loss))
        add(line, "loss %s", cli_format_loss(text, info->loss));
    if (!isnan(info->accuracy))
        add(line, "acc %.2f%%", 100 * info->accuracy);
    if (!isnan(info->items_s))
        add(line, "%s %s/s", cli_format_count(text, info->items_s), info->item ? info->item : "samples");
    if (!isnan(info->scale))
        add(line, "scale %.6g", info->scale);
    int64_t done = info->step - progress->first_step, left = info->steps - info->step;
    double elapsed = cli_time_now() - (final ? progress->started : progress->part_started);
    if (final)
        add(line, "took %s", cli_format_duration(text, elapsed));
    else if (left > 0 && done > 0)
        add(line, "ETA %s", cli_format_duration(text, elapsed / (double)done * (double)left));
}

/** One line over the old one, cut to the terminal: a wrapped line could not be overwritten. */
static void draw_live(cli_progress *progress, const cli_progress_info *info, bool final)
{
    char place[LINE_SIZE] = "", figures[LINE_SIZE] = "", bar[BAR_MAX + 4] = "";
    add_place(place, info);
    add_figures(figures, progress, info, final);
    int columns = cli_columns(progress->stream) - 1;
    int room = columns - cli_text_width(place) - cli_text_width(figures) - 6;
    if (info->steps && room >= BAR_MIN) {
        int width = room > BAR_MAX ? BAR_MAX : room;
        double share = fmin(1, (double)info->step / (double)info->steps);
        int filled = (int)(share * width);
        memset(bar, '.', (size_t)width + 2);
        memset(bar + 1, '=', (size_t)filled);
        if (filled < width)
            bar[1 + filled] = '>';
        bar[0] = '[';
        bar[width + 1] = ']';
        bar[width + 2] = 0;
    }
    char line[2 * LINE_SIZE];
    snprintf(line, sizeof line, "%s%s%s  %s", place, *bar ? "  " : "", bar, figures);
    fprintf(progress->stream, "\r%.*s\033[K", columns, line);
    fflush(progress->stream);
    progress->line_open = true;
}

static void draw_plain(cli_progress *progress, const cli_progress_info *info, bool final)
{
    char line[LINE_SIZE] = "";
    add_place(line, info);
    if (info->steps)
        add(line, "%3.0f%%", 100.0 * (double)info->step / (double)info->steps);
    add_figures(line, progress, info, final);
    fprintf(progress->stream, "%s\n", line);
    fflush(progress->stream);
}

void cli_progress_update(cli_progress *progress, const cli_progress_info *info)
{
    if (progress->quiet)
        return;
    double now = cli_time_now();
    bool new_epoch = info->epoch != progress->epoch;
    if (now - progress->shown < (progress->live ? LIVE_PERIOD : PLAIN_PERIOD) && !(new_epoch && !progress->live))
        return;
    progress->shown = now;
    progress->epoch = info->epoch;
    if (progress->live)
        draw_live(progress, info, false);
    else
        draw_plain(progress, info, false);
}

void cli_progress_show(cli_progress *progress, cli_progress_info *info, const mixt_progress *told)
{
    info->epoch = told->part;
    info->epochs = told->parts;
    info->step = told->done;
    info->steps = told->total;
    info->loss = told->loss;
    info->accuracy = told->accuracy;
    cli_progress_update(progress, info);
}

void cli_progress_note(cli_progress *progress, const char *format, ...)
{
    if (progress->quiet)
        return;
    if (progress->line_open)
        fputs("\r\033[K", progress->stream);
    progress->line_open = false;
    if (progress->live)
        progress->shown = -INFINITY; // the line comes back with the next step
    va_list args;
    va_start(args, format);
    vfprintf(progress->stream, format, args);
    va_end(args);
    fputc('\n', progress->stream);
    fflush(progress->stream);
}

void cli_progress_warn(cli_progress *progress, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (progress->quiet)
        fprintf(stderr, "mixt: %s\n", text);
    else
        cli_progress_note(progress, "%s", text);
}

void cli_progress_finish(cli_progress *progress, const cli_progress_info *info)
{
    if (progress->quiet)
        return;
    if (progress->live) {
        draw_live(progress, info, true);
        fputc('\n', progress->stream);
    } else {
        draw_plain(progress, info, true);
    }
    progress->line_open = false;
}
