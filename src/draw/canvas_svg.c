/* A canvas that is SVG text. */
#include "draw/canvas.h"

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct svg {
    mixt__canvas canvas;
    FILE *f;
    char *text;
    size_t bytes;
} svg;

/** As fprintf; numbers in a chart have points, whatever the program's locale. */
static void __attribute__((format(printf, 2, 3))) put(FILE *f, const char *format, ...)
{
    mixt__c_locale locale;
    va_list arguments;
    bool entered = mixt__c_locale_enter(&locale) == MIXT_OK;
    va_start(arguments, format);
    vfprintf(f, format, arguments);
    va_end(arguments);
    if (entered)
        mixt__c_locale_leave(&locale);
}

static FILE *file_of(mixt__canvas *canvas)
{
    return ((svg *)canvas)->f;
}

static void put_points(FILE *f, const double *x, const double *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        put(f, "%.1f,%.1f ", x[i], y[i]);
    fputs("\"/>\n", f);
}

static void line(mixt__canvas *canvas, const double *x, const double *y, int64_t count, mixt__stroke stroke)
{
    FILE *f = file_of(canvas);
    if (count == 2) {
        put(f,
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%.1f\" "
            "stroke-opacity=\"%.2f\"/>\n",
            x[0], x[1], y[0], y[1], stroke.colour, stroke.width, stroke.opacity);
        return;
    }
    put(f,
        "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" stroke-opacity=\"%.2f\" "
        "stroke-linejoin=\"round\" points=\"",
        stroke.colour, stroke.width, stroke.opacity);
    put_points(f, x, y, count);
}

static void area(mixt__canvas *canvas, const double *x, const double *y, int64_t count, mixt__stroke stroke)
{
    put(file_of(canvas),
        "<polygon fill=\"%s\" fill-opacity=\"%.2f\" stroke=\"%s\" stroke-opacity=\"0.5\" stroke-width=\"%.1f\" "
        "points=\"",
        stroke.colour, stroke.opacity, stroke.colour, stroke.width);
    put_points(file_of(canvas), x, y, count);
}

static void dot(mixt__canvas *canvas, double x, double y, double radius, const char *colour)
{
    put(file_of(canvas), "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"/>\n", x, y, radius, colour);
}

/** As XML wants it: a curve may have the name of a file. */
static void put_text(FILE *f, const char *text)
{
    for (; *text; text++)
        if (*text == '&' || *text == '<')
            fputs(*text == '&' ? "&amp;" : "&lt;", f);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, f);
}

static void text(mixt__canvas *canvas, const char *words, mixt__label label)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    FILE *f = file_of(canvas);
    if (label.upwards)
        put(f, "<text transform=\"translate(%.1f %.1f) rotate(-90)\"", label.x, label.y);
    else
        put(f, "<text x=\"%.1f\" y=\"%.1f\"", label.x, label.y);
    put(f, "%s font-size=\"%g\"%s fill=\"%s\">", anchors[label.anchor], label.size,
        label.bold ? " font-weight=\"bold\"" : "", label.colour);
    put_text(f, words);
    fputs("</text>\n", f);
}

static mixt_status finish(mixt__canvas *canvas, void **file, size_t *bytes)
{
    svg *s = (svg *)canvas;
    fputs("</svg>\n", s->f);
    bool good = !ferror(s->f);
    good = !fclose(s->f) && good;
    *file = s->text;
    *bytes = s->bytes;
    mixt__free(s);
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a chart");
}

mixt__canvas *mixt__canvas_svg(int width, int height)
{
    svg *s = mixt__alloc(sizeof *s);
    if (!s)
        return NULL;
    s->canvas = (mixt__canvas){.line = line, .area = area, .dot = dot, .text = text, .finish = finish};
    s->f = open_memstream(&s->text, &s->bytes);
    if (!s->f) {
        mixt__free(s);
        return NULL;
    }
    put(s->f, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n", width,
        height);
    put(s->f, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height);
    return &s->canvas;
}
