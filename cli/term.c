/* Terminal detection and formatting. */
#include "cli/term.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool cli_is_terminal(FILE *stream)
{
    const char *kind = getenv("TERM");
    return isatty(fileno(stream)) && !(kind && !strcmp(kind, "dumb"));
}

static bool has_colour(FILE *stream)
{
    const char *off = getenv("NO_COLOR");
    return cli_is_terminal(stream) && !(off && *off);
}

const char *cli_style_on(FILE *stream, cli_style style)
{
    static const char *const codes[] = {"", "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m", "\033[36m"};
    return has_colour(stream) ? codes[style] : "";
}

const char *cli_style_off(FILE *stream)
{
    return has_colour(stream) ? "\033[0m" : "";
}

int cli_columns(FILE *stream)
{
    struct winsize size;
    if (isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return 80;
}

int cli_text_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void wrap(FILE *stream, const char *text, const char *end, int column, int indent, int width)
{
    bool first = true;
    while ((text += strspn(text, " ")) < end) {
        int word = (int)strcspn(text, " "), length = word < end - text ? word : (int)(end - text), cells = 0;
        for (int i = 0; i < length; i++)
            cells += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (!first && column + 1 + cells > width) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        fprintf(stream, "%s%.*s", first ? "" : " ", length, text);
        column += cells + !first;
        first = false;
        text += length;
    }
    fputc('\n', stream);
}

void cli_wrap(FILE *stream, const char *text, int column, int indent, int width)
{
    wrap(stream, text, text + strlen(text), column, indent, width);
}

void cli_wrap_part(FILE *stream, const char *text, size_t bytes, int width)
{
    wrap(stream, text, text + bytes, 0, 0, width);
}

void cli_line(FILE *stream, const char *label, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int indent = cli_text_width(label);
    fputs(label, stream);
    if (cli_is_terminal(stream))
        cli_wrap(stream, text, indent, indent, cli_columns(stream));
    else
        fprintf(stream, "%s\n", text);
}

const char *cli_format_bytes(char text[32], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 5) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, "%.*f %s", unit == 0 ? 0 : bytes < 10 ? 2 : bytes < 100 ? 1 : 0, bytes, units[unit]);
    return text;
}

const char *cli_format_duration(char text[32], double seconds)
{
    if (!(seconds >= 0 && seconds < 3.2e9)) // also NaN
        snprintf(text, 32, "?");
    else if (seconds < 1)
        snprintf(text, 32, "%.3g ms", seconds * 1e3);
    else if (seconds < 60)
        snprintf(text, 32, "%.1f s", seconds);
    else if (seconds < 3600)
        snprintf(text, 32, "%dm%02ds", (int)seconds / 60, (int)seconds % 60);
    else if (seconds < 48 * 3600)
        snprintf(text, 32, "%dh%02dm", (int)(seconds / 3600), (int)(fmod(seconds, 3600) / 60));
    else
        snprintf(text, 32, "%dd%02dh", (int)(seconds / 86400), (int)(fmod(seconds, 86400) / 3600));
    return text;
}

const char *cli_format_count(char text[32], double count)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    int unit = 0;
    while (fabs(count) >= 1000 && unit < 4) {
        count /= 1000;
        unit++;
    }
    snprintf(text, 32, "%.*f%s", unit ? (fabs(count) < 10 ? 2 : 1) : (fabs(count) < 10 ? 2 : 0), count, units[unit]);
    return text;
}

const char *cli_format_loss(char text[32], double loss)
{
    double size = fabs(loss);
    bool plain = loss == 0 || (size >= 0.01 && size < 1000); // beyond, four decimals show too little or too much
    snprintf(text, 32, plain ? "%.4f" : "%.4g", loss);
    return text;
}
