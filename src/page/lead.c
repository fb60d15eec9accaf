/* Pieces of what stands above the runs of a page. */
#include "page/lead.h"

#include "store/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** A unit in which numbers from `least` on are written, the largest first. */
typedef struct scale {
    const char *of;
    double least;
    const char *unit;
} scale;

static const scale scales[] = {
    {"bytes", 1024.0 * 1024 * 1024, "GiB"},
    {"bytes", 1024.0 * 1024, "MiB"},
    {"bytes", 1024, "KiB"},
    {"bytes", 1, "B"},
    {"s", 1, "s"},
    {"s", 1e-3, "ms"},
    {"s", 1e-6, "µs"},
    {"%", 0.01, "%"},
};

json_t *mixt__lead_number(double value, const char *unit)
{
    char text[80];
    const scale *fits = NULL;
    if (!isfinite(value))
        return json_pack("{s:s, s:s}", "text", "–", "class", "number");
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        if (!strcmp(scales[i].of, unit) && (!fits || fabs(value) < fits->least))
            fits = &scales[i];
    if (fits)
        snprintf(text, sizeof text, "%.4g%s%s", value / fits->least, *unit == '%' ? "" : " ", fits->unit);
    else if (fabs(value) >= 1e5)
        snprintf(text, sizeof text, "%.0f%s%.40s", value, *unit ? " " : "", unit);
    else
        snprintf(text, sizeof text, "%.5g%s%.40s", value, *unit ? " " : "", unit);
    return json_pack("{s:s, s:s}", "text", text, "class", "number");
}

json_t *mixt__lead_word(const char *text, const char *mood)
{
    return json_pack("{s:s, s:s}", "text", text, "class", mood);
}

/** What a file has from the first place of `from` on. */
static json_t *text_of(const char *path, const char *from)
{
    mixt__file_map map;
    if (mixt__file_map_open_own(path, &map) != MIXT_OK)
        return json_string("");
    const char *text = (const char *)map.data;
    size_t begin = 0, length = strlen(from);
    while (begin + length < map.bytes && strncmp(text + begin, from, length))
        begin++;
    json_t *found = json_stringn(text + begin, map.bytes - begin);
    mixt__file_map_close(&map);
    return found ? found : json_string("");
}

json_t *mixt__lead_picture(const char *path)
{
    return text_of(path, "<svg"); // what stands before it is for files of their own
}

json_t *mixt__lead_file(const char *path)
{
    return text_of(path, "");
}
