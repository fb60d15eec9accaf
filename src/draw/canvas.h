/* What a chart is drawn on: lines, areas, dots and text in logical pixels, y downwards. Two kinds: SVG text, and pixels
 * that become a PNG. A chart knows neither; that both show the same is why there is one interface.
 */
#ifndef MIXT_INSPECT_CANVAS_H
#define MIXT_INSPECT_CANVAS_H

#include "mixt/types.h"

/** How a line or an area is drawn. */
typedef struct mixt__stroke {
    const char *colour; // "#rrggbb"
    double width;       // of a line
    double opacity;     // of 1
} mixt__stroke;

typedef enum mixt__anchor { MIXT__ANCHOR_START, MIXT__ANCHOR_MIDDLE, MIXT__ANCHOR_END } mixt__anchor;

/** Where and how text stands: at its baseline. */
typedef struct mixt__label {
    double x, y, size; // size: of the font
    mixt__anchor anchor;
    const char *colour;
    bool bold, upwards;
} mixt__label;

typedef struct mixt__canvas mixt__canvas;
struct mixt__canvas {
    void (*line)(mixt__canvas *canvas, const double *x, const double *y, int64_t count, mixt__stroke stroke);
    /** Filled, its edge drawn thin. */
    void (*area)(mixt__canvas *canvas, const double *x, const double *y, int64_t count, mixt__stroke stroke);
    void (*dot)(mixt__canvas *canvas, double x, double y, double radius, const char *colour);
    void (*text)(mixt__canvas *canvas, const char *text, mixt__label label);
    /** The whole file, to be freed with free(); the canvas is gone after it, also where it fails. */
    mixt_status (*finish)(mixt__canvas *canvas, void **file, size_t *bytes);
};

/** Each is white; NULL where there is no memory. */
mixt__canvas *mixt__canvas_svg(int width, int height);
mixt__canvas *mixt__canvas_png(int width, int height);

/** The strokes of a character for pixels: "xy xy …", strokes separated by '|', x from 0 to 4, y from 0 (top) over 6
 * (the baseline) to 8. Characters that are not ASCII are a box. */
const char *mixt__font_strokes(unsigned char character);

#endif
