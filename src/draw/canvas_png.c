/* A canvas of pixels that becomes a PNG, twice as fine as its logical pixels.
 *
 * What is drawn is first collected as coverage (0 to 1 a pixel, the largest of what overlaps), then blended once: a
 * line that lets light through is even where its pieces meet. Distances to a segment give soft edges.
 */
#include "draw/canvas.h"

#include "base/alloc.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { FINE = 2, CHANNELS = 3 };

typedef struct png {
    mixt__canvas canvas;
    int width, height;            // in pixels of the file
    unsigned char *pixels;        // (height, width, 3)
    float *coverage;              // (height, width); zero between two calls
    int left, top, right, bottom; // what is covered now; empty: left > right
} png;

/* ---- coverage ---- */

static void cover(png *p, int x, int y, double share)
{
    float *at = &p->coverage[(size_t)y * (size_t)p->width + (size_t)x];
    if (share > (double)*at)
        *at = (float)fmin(share, 1);
}

static int within(double value, int limit)
{
    return value < 0 ? 0 : value > limit - 1 ? limit - 1 : (int)value;
}

static void widen(png *p, int left, int top, int right, int bottom)
{
    p->left = left < p->left ? left : p->left;
    p->top = top < p->top ? top : p->top;
    p->right = right > p->right ? right : p->right;
    p->bottom = bottom > p->bottom ? bottom : p->bottom;
}

/** A segment with round ends; coordinates and width in pixels of the file. */
static void cover_segment(png *p, double x0, double y0, double x1, double y1, double width)
{
    double reach = width / 2 + 1, dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
    int left = within(fmin(x0, x1) - reach, p->width), right = within(fmax(x0, x1) + reach, p->width);
    int top = within(fmin(y0, y1) - reach, p->height), bottom = within(fmax(y0, y1) + reach, p->height);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            double ax = x + 0.5 - x0, ay = y + 0.5 - y0;
            double along = length > 0 ? fmax(0, fmin(1, (ax * dx + ay * dy) / length)) : 0;
            double across = ax - along * dx, down = ay - along * dy, away = sqrt(across * across + down * down);
            cover(p, x, y, width / 2 + 0.5 - away);
        }
    widen(p, left, top, right, bottom);
}

/** Blends what is covered and clears it. */
static void blend(png *p, const char *colour, double opacity)
{
    long value = strtol(colour + 1, NULL, 16);
    const double ink[CHANNELS] = {(double)(value >> 16 & 255), (double)(value >> 8 & 255), (double)(value & 255)};
    for (int y = p->top; y <= p->bottom; y++)
        for (int x = p->left; x <= p->right; x++) {
            size_t at = (size_t)y * (size_t)p->width + (size_t)x;
            double share = opacity * (double)p->coverage[at];
            p->coverage[at] = 0;
            for (int c = 0; share > 0 && c < CHANNELS; c++) {
                double paper = p->pixels[CHANNELS * at + (size_t)c];
                p->pixels[CHANNELS * at + (size_t)c] = (unsigned char)lround(paper + share * (ink[c] - paper));
            }
        }
    p->left = p->width;
    p->top = p->height;
    p->right = p->bottom = -1;
}

/* ---- the canvas ---- */

static void line(mixt__canvas *canvas, const double *x, const double *y, int64_t count, mixt__stroke stroke)
{
    png *p = (png *)canvas;
    for (int64_t i = 0; i + 1 < count; i++)
        cover_segment(p, FINE * x[i], FINE * y[i], FINE * x[i + 1], FINE * y[i + 1], FINE * stroke.width);
    blend(p, stroke.colour, stroke.opacity);
}

/** Whether the middle of a pixel lies inside: how many edges are left of it. */
static bool inside(const double *x, const double *y, int64_t count, double at_x, double at_y)
{
    bool in = false;
    for (int64_t i = 0; i < count; i++) {
        int64_t j = i ? i - 1 : count - 1;
        if ((FINE * y[i] > at_y) == (FINE * y[j] > at_y))
            continue;
        double cross = x[i] + (x[j] - x[i]) * (at_y / FINE - y[i]) / (y[j] - y[i]);
        in ^= FINE * cross < at_x;
    }
    return in;
}

static void area(mixt__canvas *canvas, const double *x, const double *y, int64_t count, mixt__stroke stroke)
{
    png *p = (png *)canvas;
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < count; i++) {
        low[0] = fmin(low[0], FINE * x[i]);
        low[1] = fmin(low[1], FINE * y[i]);
        high[0] = fmax(high[0], FINE * x[i]);
        high[1] = fmax(high[1], FINE * y[i]);
    }
    if (count < 3)
        return;
    widen(p, within(low[0], p->width), within(low[1], p->height), within(high[0], p->width),
          within(high[1], p->height));
    for (int row = p->top; row <= p->bottom; row++)
        for (int column = p->left; column <= p->right; column++)
            if (inside(x, y, count, column + 0.5, row + 0.5))
                cover(p, column, row, 1);
    blend(p, stroke.colour, stroke.opacity);
    stroke.opacity = 0.5;
    line(canvas, x, y, count, stroke);
}

static void dot(mixt__canvas *canvas, double x, double y, double radius, const char *colour)
{
    png *p = (png *)canvas;
    cover_segment(p, FINE * x, FINE * y, FINE * x, FINE * y, 2 * FINE * radius);
    blend(p, colour, 1);
}

/* ---- text ---- */

/** Columns of the font that a character takes, the gap after it included. */
static double glyph_width(unsigned char c)
{
    int right = c == ' ' ? 2 : 0;
    for (const char *s = mixt__font_strokes(c); *s; s += s[2] ? 3 : 2)
        right = s[0] - '0' > right ? s[0] - '0' : right;
    return right + 2;
}

/** Whether a byte begins a character: those that go on in UTF-8 draw nothing. */
static bool begins(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/** Draws one character whose left end is `along` units from where the text begins. */
static void draw_glyph(png *p, const char *s, double along, double unit, mixt__label label)
{
    double width = FINE * label.size * (label.bold ? 0.13 : 0.085), before[2] = {0};
    bool joined = false;
    for (; *s; s += s[2] ? 3 : 2) {
        double right = unit * (along + s[0] - '0'), down = unit * (s[1] - '0' - 6);
        double at[2] = {FINE * label.x + (label.upwards ? down : right),
                        FINE * label.y + (label.upwards ? -right : down)};
        if (joined)
            cover_segment(p, before[0], before[1], at[0], at[1], width);
        memcpy(before, at, sizeof at);
        joined = s[2] == ' ';
    }
}

static void text(mixt__canvas *canvas, const char *words, mixt__label label)
{
    static const double shares[] = {0, 0.5, 1};
    png *p = (png *)canvas;
    double unit = FINE * label.size * 0.118, total = 0;
    for (const char *c = words; *c; c++)
        total += begins(*c) ? glyph_width((unsigned char)*c) : 0;
    double along = -shares[label.anchor] * total;
    for (; *words; words++) {
        if (!begins(*words))
            continue;
        draw_glyph(p, mixt__font_strokes((unsigned char)*words), along, unit, label);
        along += glyph_width((unsigned char)*words);
    }
    blend(p, label.colour, 1);
}

/* ---- the file ---- */

static unsigned char *put32(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
    return at + 4;
}

/** A chunk: length, name, content, checksum. The content already lies at `at` + 8. */
static unsigned char *put_chunk(unsigned char *at, const char *name, uint32_t bytes)
{
    put32(at, bytes);
    memcpy(at + 4, name, 4);
    return put32(at + 8 + bytes, (uint32_t)crc32(0, at + 4, bytes + 4));
}

/** Rows as PNG wants them before compression: each after a byte that says that it is not filtered. */
static unsigned char *plain_rows(const png *p, size_t *bytes)
{
    size_t row = CHANNELS * (size_t)p->width;
    unsigned char *rows = malloc((row + 1) * (size_t)p->height);
    for (int y = 0; rows && y < p->height; y++) {
        rows[(size_t)y * (row + 1)] = 0;
        memcpy(rows + (size_t)y * (row + 1) + 1, p->pixels + (size_t)y * row, row);
    }
    *bytes = (row + 1) * (size_t)p->height;
    return rows;
}

static bool encode(const png *p, unsigned char *file, uLong room, size_t *bytes)
{
    size_t size;
    unsigned char *rows = plain_rows(p, &size), *at = file + 8, *content = NULL;
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    content = put32(put32(at + 8, (uint32_t)p->width), (uint32_t)p->height);
    memcpy(content, "\x08\x02\0\0\0", 5); // 8 bits, RGB
    at = put_chunk(at, "IHDR", 13);
    bool good = rows && compress2(at + 8, &room, rows, (uLong)size, 9) == Z_OK;
    free(rows);
    if (!good)
        return false;
    at = put_chunk(put_chunk(at, "IDAT", (uint32_t)room), "IEND", 0);
    *bytes = (size_t)(at - file);
    return true;
}

static mixt_status finish(mixt__canvas *canvas, void **file, size_t *bytes)
{
    png *p = (png *)canvas;
    uLong room = compressBound((uLong)(CHANNELS * p->width + 1) * (uLong)p->height);
    *file = malloc(room + 64);
    bool good = *file && encode(p, *file, room, bytes);
    mixt__free(p->pixels);
    mixt__free(p->coverage);
    mixt__free(p);
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a chart");
}

mixt__canvas *mixt__canvas_png(int width, int height)
{
    png *p = mixt__alloc(sizeof *p);
    if (!p)
        return NULL;
    p->canvas = (mixt__canvas){.line = line, .area = area, .dot = dot, .text = text, .finish = finish};
    p->width = FINE * width;
    p->height = FINE * height;
    size_t count = (size_t)p->width * (size_t)p->height;
    p->pixels = mixt__alloc(CHANNELS * count);
    p->coverage = mixt__alloc(count * sizeof *p->coverage);
    if (!p->pixels || !p->coverage) {
        mixt__free(p->pixels);
        mixt__free(p->coverage);
        mixt__free(p);
        return NULL;
    }
    memset(p->pixels, 255, CHANNELS * count);
    p->left = p->width;
    p->top = p->height;
    p->right = p->bottom = -1;
    return &p->canvas;
}
