/* SVG by hand: axes with round ticks, one polyline a curve, names at the right end of each. */
#include "mixt/plot.h"

#include "base/status.h"
#include "store/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 760, HEIGHT = 360, LEFT = 64, RIGHT = 110, TOP = 40, BOTTOM = 48 };

static const char *const colours[MIXT_CURVES_MAX] = {"#1f6fb2", "#d1495b", "#2e8b57", "#8e6bbf", "#c98a1b", "#555555"};

typedef struct range {
    double low, high;
} range;

static void widen(range *r, double value)
{
    if (value < r->low)
        r->low = value;
    if (value > r->high)
        r->high = value;
}

static double height_of(const mixt_plot *plot, double y)
{
    return plot->log_y ? log10(y) : y;
}

static bool drawable(const mixt_plot *plot, double x, double y)
{
    return isfinite(x) && isfinite(y) && (!plot->log_y || y > 0);
}

/** A tick distance of 1, 2 or 5 times a power of ten that gives about `ticks` of them. */
static double tick_step(range r, int ticks)
{
    double rough = (r.high - r.low) / ticks, base = pow(10, floor(log10(rough))), share = rough / base;
    return base * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

static double place_x(range x, double value)
{
    return LEFT + (value - x.low) / (x.high - x.low) * (WIDTH - LEFT - RIGHT);
}

static double place_y(range y, double value)
{
    return HEIGHT - BOTTOM - (value - y.low) / (y.high - y.low) * (HEIGHT - TOP - BOTTOM);
}

/** Text as XML wants it: a curve may have the name of a file. */
static void put_text(FILE *f, const char *text)
{
    for (; text && *text; text++)
        if (*text == '&' || *text == '<')
            fputs(*text == '&' ? "&amp;" : "&lt;", f);
        else
            fputc(*text, f);
}

/* ---- axes ---- */

/** A tick of the y axis: a line across the chart and the number beside it. */
static void draw_level(FILE *f, const mixt_plot *plot, range y, double value)
{
    double at = place_y(y, height_of(plot, value));
    fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT, WIDTH - RIGHT, at, at);
    fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555\">%g</text>\n", LEFT - 8, at + 4, value);
}

/** Round numbers at even distances. */
static void draw_even_levels(FILE *f, const mixt_plot *plot, range y, range values)
{
    double step = tick_step(values, 5), last = floor(values.high / step + 1e-9);
    for (double i = ceil(values.low / step); i <= last; i++)
        draw_level(f, plot, y, i * step + 0.0); // never -0
}

/** Over some decades: powers of ten, and with few of them 2 and 5 times those. */
static void draw_log_levels(FILE *f, const mixt_plot *plot, range y)
{
    static const double factors[] = {1, 2, 5};
    double decades = y.high - y.low, every = decades > 8 ? ceil(decades / 6) : 1;
    for (double power = floor(y.low / every) * every; power <= y.high; power += every)
        for (int i = 0; i < (decades > 3 ? 1 : 3); i++) {
            double value = factors[i] * pow(10, power);
            if (log10(value) >= y.low && log10(value) <= y.high)
                draw_level(f, plot, y, value);
        }
}

static void draw_levels(FILE *f, const mixt_plot *plot, range y)
{
    if (!plot->log_y)
        draw_even_levels(f, plot, y, y);
    else if (y.high - y.low < 0.8) // too few of 1, 2 and 5 in there
        draw_even_levels(f, plot, y, (range){pow(10, y.low), pow(10, y.high)});
    else
        draw_log_levels(f, plot, y);
}

static void draw_axes(FILE *f, const mixt_plot *plot, range x, range y)
{
    fprintf(f, "<text x=\"%d\" y=\"22\" font-size=\"15\" font-weight=\"bold\">", LEFT);
    put_text(f, plot->title);
    fprintf(f, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10);
    put_text(f, plot->x_label);
    fprintf(f, "</text>\n<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">",
            (TOP + HEIGHT - BOTTOM) / 2);
    put_text(f, plot->y_label);
    fputs("</text>\n", f);
    double step = tick_step(x, 6), last = floor(x.high / step + 1e-9);
    for (double i = ceil(x.low / step); i <= last; i++)
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%g</text>\n", place_x(x, i * step),
                HEIGHT - BOTTOM + 18, i * step + 0.0);
    draw_levels(f, plot, y);
}

/* ---- curves ---- */

/** Earlier curves are wider and let light through: one that lies on another leaves both to be seen. */
static double line_width(const mixt_plot *plot, int index)
{
    int below = plot->curve_count - 1;
    return below ? 1.4 + 2.8 * (below - index) / below : 1.8;
}

/** There along the upper edge and back along the lower. */
static void draw_band(FILE *f, const mixt_plot *plot, int index, range x, range y)
{
    const mixt_curve *c = &plot->curves[index];
    if (!c->low || !c->high)
        return;
    fprintf(f,
            "<polygon fill=\"%s\" fill-opacity=\"0.18\" stroke=\"%s\" stroke-opacity=\"0.5\" stroke-width=\"0.6\" "
            "points=\"",
            colours[index], colours[index]);
    for (int64_t i = 0; i < 2 * c->count; i++) {
        int64_t at = i < c->count ? i : 2 * c->count - 1 - i;
        double value = i < c->count ? c->high[at] : c->low[at];
        if (drawable(plot, c->x[at], value))
            fprintf(f, "%.1f,%.1f ", place_x(x, c->x[at]), place_y(y, height_of(plot, value)));
    }
    fprintf(f, "\"/>\n");
}

static void draw_curve(FILE *f, const mixt_plot *plot, int index, range x, range y)
{
    const mixt_curve *c = &plot->curves[index];
    double width = line_width(plot, index);
    fprintf(f,
            "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" stroke-opacity=\"%.2f\" "
            "stroke-linejoin=\"round\" points=\"",
            colours[index], width, width > 2 ? 0.6 : 1.0);
    for (int64_t i = 0; i < c->count; i++)
        if (drawable(plot, c->x[i], c->y[i]))
            fprintf(f, "%.1f,%.1f ", place_x(x, c->x[i]), place_y(y, height_of(plot, c->y[i])));
    fprintf(f, "\"/>\n<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"%.1f\" fill=\"%s\"/>\n", WIDTH - RIGHT + 12,
            TOP + 12 + 20 * index, width, colours[index]);
    fprintf(f, "<text x=\"%d\" y=\"%d\">", WIDTH - RIGHT + 32, TOP + 17 + 20 * index);
    put_text(f, c->name);
    fputs("</text>\n", f);
}

/** Makes room for a curve and its band. */
static void include(const mixt_plot *plot, const mixt_curve *c, range *x, range *y)
{
    const double *const heights[] = {c->y, c->low, c->high};
    for (int k = 0; k < 3; k++)
        for (int64_t i = 0; heights[k] && i < c->count; i++)
            if (drawable(plot, c->x[i], heights[k][i])) {
                widen(x, c->x[i]);
                widen(y, height_of(plot, heights[k][i]));
            }
}

static void draw(FILE *f, const mixt_plot *plot, range x, range y)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            WIDTH, HEIGHT);
    fprintf(f, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", WIDTH, HEIGHT);
    draw_axes(f, plot, x, y);
    for (int c = 0; c < plot->curve_count; c++)
        draw_band(f, plot, c, x, y);
    for (int c = 0; c < plot->curve_count; c++)
        draw_curve(f, plot, c, x, y);
    fprintf(f, "</svg>\n");
}

mixt_status mixt_plot_check(const char *path, bool overwrite)
{
    mixt__file_writer writer;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__file_writer_open(&writer, path, overwrite));
    mixt__file_writer_abandon(&writer);
    return MIXT_OK;
}

/** Into its place as a whole: a full disk leaves the chart that was there. */
static mixt_status put(const char *path, bool overwrite, const char *text, size_t size)
{
    mixt__file_writer writer;
    MIXT_TRY(mixt__file_writer_open(&writer, path, overwrite));
    mixt_status status = mixt__file_writer_append(&writer, text, size);
    if (status == MIXT_OK)
        return mixt__file_writer_commit(&writer);
    mixt__file_writer_abandon(&writer);
    return status;
}

static mixt_status check(const mixt_plot *plot)
{
    if (plot->curve_count < 1 || plot->curve_count > MIXT_CURVES_MAX || !plot->curves)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a chart of %d curves: from 1 to %d", plot->curve_count,
                          MIXT_CURVES_MAX);
    for (int c = 0; c < plot->curve_count; c++)
        if (plot->curves[c].count > 0 && (!plot->curves[c].x || !plot->curves[c].y))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "curve %d of a chart has no x or no y", c);
    return MIXT_OK;
}

mixt_status mixt_plot_write(const mixt_plot *plot, const char *path, bool overwrite)
{
    range x = {INFINITY, -INFINITY}, y = {INFINITY, -INFINITY};
    MIXT_TRY(mixt__need(plot));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(check(plot));
    for (int c = 0; c < plot->curve_count; c++)
        include(plot, &plot->curves[c], &x, &y);
    if (!(x.low < x.high) || !(y.low <= y.high))
        return mixt__fail(MIXT_ERROR_DATA, "nothing to draw in %s: a curve needs two finite points", path);
    double margin = y.high > y.low ? 0.04 * (y.high - y.low) : 0.5;
    y = (range){y.low - margin, y.high + margin};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (f)
        draw(f, plot, x, y);
    mixt_status status =
        f && !fclose(f) ? put(path, overwrite, text, size) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for %s", path);
    free(text);
    return status;
}
