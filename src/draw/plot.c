/* Charts: axes with round ticks, one line a curve, names at the right end; drawn on a canvas, SVG or PNG. */
#include "mixt/plot.h"

#include "base/alloc.h"
#include "base/status.h"
#include "draw/canvas.h"
#include "store/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INNER = 586, HEIGHT = 360, LEFT = 64, RIGHT = LEFT + INNER, TOP = 40, BOTTOM = 48 };
enum { NAME_MAX_LENGTH = 40, NAME_LETTER = 7, NAME_OTHER = 46, NAMES_MIN = 110, DOTS_MAX = 40 };

static const double DOT = 4; // radius, of a curve that is points alone

static const char *const colours[MIXT_CURVES_MAX] = {"#1f6fb2", "#d1495b", "#2e8b57", "#8e6bbf", "#c98a1b",
                                                     "#555555", "#17a2b8", "#b5651d", "#e377c2", "#7a9a01"};

typedef struct range {
    double low, high;
} range;

/** What is drawn, where, and which numbers lie at its edges. */
typedef struct chart {
    const mixt_plot *plot;
    mixt__canvas *canvas;
    range x, y;      // y: the logarithm where the axis is one
    double *px, *py; // room for the points of one line
} chart;

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

static double place_x(const chart *c, double value)
{
    return LEFT + (value - c->x.low) / (c->x.high - c->x.low) * INNER;
}

static double place_y(const chart *c, double value)
{
    double share = (height_of(c->plot, value) - c->y.low) / (c->y.high - c->y.low);
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
}

/* ---- axes ---- */

static void put_text(const chart *c, const char *text, mixt__label label)
{
    if (!label.colour)
        label.colour = "#222222";
    if (label.size == 0)
        label.size = 12;
    c->canvas->text(c->canvas, text ? text : "", label);
}

/** A tick's number with as many digits as tell it from its neighbours. */
static const char *tick_text(double value, double step, char text[32])
{
    double digits = value != 0 ? ceil(log10(fabs(value) / step)) + 1 : 6;
    snprintf(text, 32, "%.*g", digits < 6 ? 6 : digits > 15 ? 15 : (int)digits, value + 0.0); // never -0
    return text;
}

/** A tick of the y axis: a line across the chart and the number beside it. */
static void draw_level(const chart *c, double value, double step)
{
    char text[32];
    double at = place_y(c, value);
    const double x[2] = {LEFT, RIGHT}, y[2] = {at, at};
    c->canvas->line(c->canvas, x, y, 2, (mixt__stroke){"#dddddd", 1, 1});
    put_text(c, tick_text(value, step, text),
             (mixt__label){.x = LEFT - 8, .y = at + 4, .anchor = MIXT__ANCHOR_END, .colour = "#555555"});
}

/** Round numbers at even distances. */
static void draw_even_levels(const chart *c, range values)
{
    double step = tick_step(values, 5), last = floor(values.high / step + 1e-9);
    for (double i = ceil(values.low / step); i <= last; i++)
        draw_level(c, i * step, step);
}

/** Over some decades: powers of ten, and with few of them 2 and 5 times those. */
static void draw_log_levels(const chart *c)
{
    static const double factors[] = {1, 2, 5};
    double decades = c->y.high - c->y.low, every = decades > 8 ? ceil(decades / 6) : 1;
    for (double power = floor(c->y.low / every) * every; power <= c->y.high; power += every)
        for (int i = 0; i < (decades > 3 ? 1 : 3); i++) {
            double value = factors[i] * pow(10, power);
            if (log10(value) >= c->y.low && log10(value) <= c->y.high)
                draw_level(c, value, value);
        }
}

static void draw_levels(const chart *c)
{
    if (!c->plot->log_y)
        draw_even_levels(c, c->y);
    else if (c->y.high - c->y.low < 0.8) // too few of 1, 2 and 5 in there
        draw_even_levels(c, (range){pow(10, c->y.low), pow(10, c->y.high)});
    else
        draw_log_levels(c);
}

static void draw_axes(const chart *c)
{
    const mixt_plot *plot = c->plot;
    const double bottom = HEIGHT - BOTTOM, middle = (TOP + bottom) / 2;
    put_text(c, plot->title, (mixt__label){.x = LEFT, .y = 22, .size = 15, .bold = true});
    put_text(c, plot->x_label, (mixt__label){.x = LEFT + INNER / 2, .y = HEIGHT - 10, .anchor = MIXT__ANCHOR_MIDDLE});
    put_text(c, plot->y_label, (mixt__label){.x = 16, .y = middle, .anchor = MIXT__ANCHOR_MIDDLE, .upwards = true});
    draw_levels(c);
    const double x[2] = {LEFT, RIGHT}, y[2] = {bottom, bottom};
    c->canvas->line(c->canvas, x, y, 2, (mixt__stroke){"#888888", 1, 1});
    double step = tick_step(c->x, 6), last = floor(c->x.high / step + 1e-9);
    for (double i = ceil(c->x.low / step); i <= last; i++) {
        char text[32];
        const double at[2] = {place_x(c, i * step), place_x(c, i * step)}, mark[2] = {bottom, bottom + 4};
        c->canvas->line(c->canvas, at, mark, 2, (mixt__stroke){"#888888", 1, 1});
        put_text(c, tick_text(i * step, step, text),
                 (mixt__label){.x = at[0], .y = bottom + 18, .anchor = MIXT__ANCHOR_MIDDLE, .colour = "#555555"});
    }
}

/* ---- curves ---- */

/** Earlier curves are wider and let light through: one that lies on another leaves both to be seen. */
static double line_width(const mixt_plot *plot, int index)
{
    int below = plot->curve_count - 1;
    return below ? 1.4 + 2.8 * (below - index) / below : 1.8;
}

/** There along the upper edge and back along the lower. */
static void draw_band(const chart *c, int index)
{
    const mixt_curve *curve = &c->plot->curves[index];
    int64_t points = 0;
    if (!curve->low || !curve->high)
        return;
    for (int64_t i = 0; i < 2 * curve->count; i++) {
        int64_t at = i < curve->count ? i : 2 * curve->count - 1 - i;
        double value = i < curve->count ? curve->high[at] : curve->low[at];
        if (drawable(c->plot, curve->x[at], value)) {
            c->px[points] = place_x(c, curve->x[at]);
            c->py[points++] = place_y(c, value);
        }
    }
    c->canvas->area(c->canvas, c->px, c->py, points, (mixt__stroke){colours[index], 0.6, 0.18});
}

/** Of points in one column of pixels the first, the lowest, the highest and the last: nothing else can be seen.
 *  @return how many are left, in place. */
static int64_t thin(double *x, double *y, int64_t count)
{
    int64_t kept = 0;
    for (int64_t from = 0, to; from < count; from = to) {
        int64_t low = from, high = from;
        for (to = from; to < count && floor(x[to]) == floor(x[from]); to++) {
            low = y[to] < y[low] ? to : low;
            high = y[to] > y[high] ? to : high;
        }
        const int64_t picked[] = {from, low < high ? low : high, low < high ? high : low, to - 1};
        const double column[4][2] = {{x[picked[0]], y[picked[0]]},
                                     {x[picked[1]], y[picked[1]]},
                                     {x[picked[2]], y[picked[2]]},
                                     {x[picked[3]], y[picked[3]]}};
        for (int i = 0; i < 4; i++)
            if (!i || picked[i] != picked[i - 1]) {
                x[kept] = column[i][0];
                y[kept++] = column[i][1];
            }
    }
    return kept;
}

static mixt__stroke stroke_of(const chart *c, int index)
{
    double width = line_width(c->plot, index);
    return (mixt__stroke){colours[index], width, width > 2 ? 0.6 : 1.0};
}

static void draw_curve(const chart *c, int index)
{
    const mixt_curve *curve = &c->plot->curves[index];
    mixt__stroke stroke = stroke_of(c, index);
    int64_t points = 0;
    for (int64_t i = 0; i < curve->count; i++)
        if (drawable(c->plot, curve->x[i], curve->y[i])) {
            c->px[points] = place_x(c, curve->x[i]);
            c->py[points++] = place_y(c, curve->y[i]);
        }
    if (!curve->dots) {
        points = thin(c->px, c->py, points);
        c->canvas->line(c->canvas, c->px, c->py, points, stroke);
    }
    for (int64_t i = 0; i < points && (curve->dots || points <= DOTS_MAX); i++) // where few were measured, show which
        c->canvas->dot(c->canvas, c->px[i], c->py[i], curve->dots ? DOT : 1.2 + stroke.width / 2, stroke.colour);
}

/** The end of a name that is too long for the legend: names of runs differ there. */
static const char *short_name(const char *name, char text[NAME_MAX_LENGTH + 1])
{
    size_t length = name ? strlen(name) : 0;
    if (length <= NAME_MAX_LENGTH)
        return name ? name : "";
    name += length - (NAME_MAX_LENGTH - 3);
    while (((unsigned char)*name & 0xc0) == 0x80) // not within a character
        name++;
    snprintf(text, NAME_MAX_LENGTH + 1, "...%s", name);
    return text;
}

static void draw_name(const chart *c, int index)
{
    char text[NAME_MAX_LENGTH + 1];
    double at = TOP + 13 + 20 * index;
    const double x[2] = {RIGHT + 12, RIGHT + 26}, y[2] = {at, at};
    if (c->plot->curves[index].dots)
        c->canvas->dot(c->canvas, (x[0] + x[1]) / 2, at, DOT, colours[index]);
    else
        c->canvas->line(c->canvas, x, y, 2, stroke_of(c, index));
    put_text(c, short_name(c->plot->curves[index].name, text), (mixt__label){.x = RIGHT + 32, .y = at + 4});
}

/** Columns of pixels for the names. */
static int names_width(const mixt_plot *plot)
{
    char text[NAME_MAX_LENGTH + 1];
    int width = NAMES_MIN;
    for (int i = 0; i < plot->curve_count; i++) {
        int own = NAME_OTHER + NAME_LETTER * (int)strlen(short_name(plot->curves[i].name, text));
        width = own > width ? own : width;
    }
    return width;
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

static void draw(const chart *c)
{
    draw_axes(c);
    for (int i = 0; i < c->plot->curve_count; i++)
        draw_band(c, i);
    for (int i = 0; i < c->plot->curve_count; i++)
        draw_curve(c, i);
    for (int i = 0; i < c->plot->curve_count; i++)
        draw_name(c, i);
}

mixt_status mixt_plot_check(const char *path, bool overwrite)
{
    mixt__file_writer writer;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__file_writer_open(&writer, path, overwrite));
    mixt__file_writer_abandon(&writer);
    return MIXT_OK;
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

/** The ranges that all curves take, with some room above and below. */
static mixt_status measure(chart *c, const char *path)
{
    c->x = c->y = (range){INFINITY, -INFINITY};
    for (int i = 0; i < c->plot->curve_count; i++)
        include(c->plot, &c->plot->curves[i], &c->x, &c->y);
    if (!(c->x.low < c->x.high) || !(c->y.low <= c->y.high))
        return mixt__fail(MIXT_ERROR_DATA, "nothing to draw in %s: a curve needs two finite points", path);
    double size = fmax(fabs(c->y.low), fabs(c->y.high)), margin = 0.04 * (c->y.high - c->y.low);
    if (!(margin > 1e-9 * size)) // a level line, or as good as one
        margin = c->plot->log_y || size == 0 ? 0.5 : 0.5 * size;
    c->y = (range){c->y.low - margin, c->y.high + margin};
    return MIXT_OK;
}

static mixt_status make_file(chart *c, const char *path, void **file, size_t *size)
{
    int64_t longest = 0;
    for (int i = 0; i < c->plot->curve_count; i++)
        longest = c->plot->curves[i].count > longest ? c->plot->curves[i].count : longest;
    int width = RIGHT + names_width(c->plot);
    c->px = mixt__alloc_uninit(2 * (size_t)longest * sizeof *c->px);
    c->py = mixt__alloc_uninit(2 * (size_t)longest * sizeof *c->py);
    if (c->px && c->py)
        c->canvas =
            mixt__path_has_extension(path, ".png") ? mixt__canvas_png(width, HEIGHT) : mixt__canvas_svg(width, HEIGHT);
    if (c->canvas)
        draw(c);
    mixt__free(c->px);
    mixt__free(c->py);
    return c->canvas ? c->canvas->finish(c->canvas, file, size)
                     : mixt__fail(MIXT_ERROR_MEMORY, "no memory for %s", path);
}

mixt_status mixt_plot_write(const mixt_plot *plot, const char *path, bool overwrite)
{
    chart c = {.plot = plot};
    void *file = NULL;
    size_t size = 0;
    MIXT_TRY(mixt__need(plot));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(check(plot));
    MIXT_TRY(measure(&c, path));
    mixt_status status = make_file(&c, path, &file, &size);
    if (status == MIXT_OK)
        status = mixt__file_put(path, file, size, overwrite);
    free(file);
    return status;
}

void mixt_curve_smooth(const double *y, int64_t count, int64_t window, double *smooth)
{
    int64_t reach = window / 2;
    for (int64_t i = 0; y && smooth && i < count; i++) {
        int64_t finite = 0, end = i + reach < count ? i + reach + 1 : count;
        double sum = 0; // each anew: what one spike rounds away is not missing further on
        for (int64_t j = i > reach ? i - reach : 0; j < end; j++)
            if (isfinite(y[j])) {
                sum += y[j];
                finite++;
            }
        smooth[i] = isfinite(y[i]) ? sum / (double)finite : y[i];
    }
}
