/* The shapes of handwritten digits, and drawing one of them. */
#ifndef MIXT_DATA_DIGITS_H
#define MIXT_DATA_DIGITS_H

#include <stdint.h>

enum { MIXT_DIGIT_SIDE = 28, MIXT_DIGIT_PIXELS = MIXT_DIGIT_SIDE * MIXT_DIGIT_SIDE, MIXT_GLYPH_POINTS = 18 };

/** A point that the pen passes, in hundredths of the glyph's box, y downwards. */
typedef struct mixt__pen_point {
    int8_t x, y;
    enum { MIXT_PEN_END = 0, MIXT_PEN_START, MIXT_PEN_CURVE, MIXT_PEN_CORNER } how;
} mixt__pen_point;

/** One way to write a digit; the list ends at the first MIXT_PEN_END. */
typedef struct mixt__glyph {
    int digit;
    mixt__pen_point points[MIXT_GLYPH_POINTS + 1];
} mixt__glyph;

extern const mixt__glyph mixt__glyphs[];
extern const int mixt__glyph_count;

/** Draws one digit from the random numbers of `key`; returns which. pixels: (28, 28), 0 background to 255 ink. */
int mixt__digit_draw(uint64_t key, unsigned char pixels[MIXT_DIGIT_PIXELS]);
/** The same digit without noise, for who puts it on a background of its own. */
int mixt__digit_draw_clean(uint64_t key, unsigned char pixels[MIXT_DIGIT_PIXELS]);

/** A level of the digit at (y, x) of its picture, between four pixels; 0 outside. */
float mixt__digit_level(const unsigned char *pixels, float y, float x);

#endif
