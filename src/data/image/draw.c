/* Drawing a digit: bend the pen's points, follow them with a spline, lay down ink, spoil the picture a little.
 *
 * Everything random about a sample comes from its own key, so samples can be drawn in any order by any thread. Ink
 * is a distance field: each short piece of the stroke lowers the squared distance of the pixels near it.
 */
#include "data/image/digits.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>

enum { MAX_KNOTS = 2 * MIXT_GLYPH_POINTS, STEPS = 4, SIDE = MIXT_DIGIT_SIDE, PIXELS = MIXT_DIGIT_PIXELS };

typedef struct point {
    float x, y;
} point;

/** How one writer writes: the map from glyph to picture, and the pen. */
typedef struct hand {
    float xx, xy, yx, yy, x, y;             // affine map of the centred glyph to pixels
    float wave_x, wave_y, phase_x, phase_y; // slow bend, in pixels
    float jitter;                           // of each point, in pixels
    float radius, softness;                 // of the pen, in pixels
    float ink, noise;                       // levels of 0 to 255
} hand;

static float between(mixt__rng *rng, float low, float high)
{
    return low + (high - low) * mixt__rng_uniform(rng);
}

/** Bell-shaped without tails: the sum of three uniform numbers, standard deviation `deviation`, at most 3 of them. */
static float around(mixt__rng *rng, float deviation)
{
    return 2 * deviation * (mixt__rng_uniform(rng) + mixt__rng_uniform(rng) + mixt__rng_uniform(rng) - 1.5f);
}

static hand choose_hand(mixt__rng *rng)
{
    hand h;
    float height = between(rng, 14.5f, 21.5f), width = height * between(rng, 0.55f, 0.98f);
    float angle = around(rng, 0.13f), slant = 0.12f + around(rng, 0.2f);
    float c = cosf(angle), s = sinf(angle);
    // scale, then slant (x follows height), then turn
    h.xx = c * width;
    h.xy = (-c * slant - s) * height;
    h.yx = s * width;
    h.yy = (-s * slant + c) * height;
    h.x = (float)SIDE / 2 + around(rng, 1.1f);
    h.y = (float)SIDE / 2 + around(rng, 1.1f);
    h.wave_x = around(rng, 0.55f);
    h.wave_y = around(rng, 0.55f);
    h.phase_x = between(rng, 0, 6.2831853f);
    h.phase_y = between(rng, 0, 6.2831853f);
    h.jitter = between(rng, 0.25f, 0.8f);
    h.radius = between(rng, 0.55f, 1.65f);
    h.softness = between(rng, 0.7f, 1.6f);
    h.ink = between(rng, 150, 255);
    h.noise = between(rng, 2, 22);
    return h;
}

static point place(const hand *h, const mixt__pen_point *pen, mixt__rng *rng)
{
    float u = (float)pen->x / 100 - 0.5f, v = (float)pen->y / 100 - 0.5f;
    point p = {h->x + h->xx * u + h->xy * v, h->y + h->yx * u + h->yy * v};
    p.x += h->wave_x * sinf(5 * v + h->phase_x) + around(rng, h->jitter);
    p.y += h->wave_y * sinf(5 * u + h->phase_y) + around(rng, h->jitter);
    return p;
}

/** Lowers the squared distances of the pixels that the piece from a to b can ink. */
static void ink_segment(float *distance, point a, point b, float reach)
{
    float dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy, inverse = length > 0 ? 1 / length : 0;
    int left = (int)fmaxf(fminf(a.x, b.x) - reach, 0), right = (int)fminf(fmaxf(a.x, b.x) + reach, SIDE - 1);
    int top = (int)fmaxf(fminf(a.y, b.y) - reach, 0), bottom = (int)fminf(fmaxf(a.y, b.y) + reach, SIDE - 1);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            float px = (float)x + 0.5f - a.x, py = (float)y + 0.5f - a.y;
            float t = (px * dx + py * dy) * inverse;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            px -= t * dx;
            py -= t * dy;
            float d = px * px + py * py, *old = &distance[y * SIDE + x];
            *old = d < *old ? d : *old;
        }
}

/** One stroke: a Catmull-Rom spline through the knots. A corner is a knot given twice: the spline stops there. */
static void ink_stroke(float *distance, const point *knots, int count, float reach)
{
    point previous = knots[0];
    for (int i = 0; i + 1 < count; i++) {
        point a = knots[i > 0 ? i - 1 : 0], b = knots[i], c = knots[i + 1], d = knots[i + 2 < count ? i + 2 : i + 1];
        if (b.x == c.x && b.y == c.y)
            continue;
        for (int step = 1; step <= STEPS; step++) {
            float t = (float)step / STEPS, t2 = t * t, t3 = t2 * t;
            float wa = -t3 + 2 * t2 - t, wb = 3 * t3 - 5 * t2 + 2, wc = -3 * t3 + 4 * t2 + t, wd = t3 - t2;
            point next = {0.5f * (wa * a.x + wb * b.x + wc * c.x + wd * d.x),
                          0.5f * (wa * a.y + wb * b.y + wc * c.y + wd * d.y)};
            ink_segment(distance, previous, next, reach);
            previous = next;
        }
    }
}

static void ink_glyph(float *distance, const mixt__glyph *glyph, const hand *h, mixt__rng *rng)
{
    point knots[MAX_KNOTS];
    int count = 0;
    float reach = h->radius + h->softness + 1;
    for (const mixt__pen_point *pen = glyph->points;; pen++) {
        if (count > 0 && (pen->how == MIXT_PEN_START || pen->how == MIXT_PEN_END)) {
            ink_stroke(distance, knots, count, reach);
            count = 0;
        }
        if (pen->how == MIXT_PEN_END)
            break;
        knots[count] = place(h, pen, rng);
        count++;
        if (pen->how == MIXT_PEN_CORNER) {
            knots[count] = knots[count - 1];
            count++;
        }
    }
}

/** Distances to grey levels: full ink inside the pen, a smooth edge, and noise (four random bytes make one normal). */
static void develop(const float *distance, const hand *h, uint64_t noise_key, unsigned char *pixels)
{
    float inner = h->radius - h->softness / 2, slope = 1 / h->softness;
    for (int i = 0; i < PIXELS; i += 4) {
        mixt__rng_block random = mixt__rng_block_at(noise_key, (uint64_t)i);
        for (int k = 0; k < 4; k++) {
            float edge = (sqrtf(distance[i + k]) - inner) * slope;
            edge = edge < 0 ? 0 : edge > 1 ? 1 : edge;
            uint32_t bits = random.word[k];
            float normal =
                ((float)((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24)) - 510) / 147.8f;
            float level = h->ink * (1 - edge * edge * (3 - 2 * edge)) + h->noise * normal;
            level = level < 0 ? 0 : level > 255 ? 255 : level;
            pixels[i + k] = (unsigned char)(level + 0.5f);
        }
    }
}

static int draw(uint64_t key, bool noisy, unsigned char *pixels)
{
    mixt__rng rng = mixt__rng_start(key);
    int digit = (int)mixt__rng_below(&rng, 10), first = 0, ways = 0;
    while (mixt__glyphs[first].digit != digit)
        first++;
    while (first + ways < mixt__glyph_count && mixt__glyphs[first + ways].digit == digit)
        ways++;
    const mixt__glyph *glyph = &mixt__glyphs[first + (int)mixt__rng_below(&rng, (uint64_t)ways)];
    hand h = choose_hand(&rng);
    h.noise = noisy ? h.noise : 0;
    float distance[PIXELS];
    for (int i = 0; i < PIXELS; i++)
        distance[i] = 1e6f;
    ink_glyph(distance, glyph, &h, &rng);
    develop(distance, &h, mixt__rng_key(key, MIXT_DIGIT_PIXELS, 1), pixels);
    return digit;
}

int mixt__digit_draw(uint64_t key, unsigned char pixels[MIXT_DIGIT_PIXELS])
{
    return draw(key, true, pixels);
}

int mixt__digit_draw_clean(uint64_t key, unsigned char pixels[MIXT_DIGIT_PIXELS])
{
    return draw(key, false, pixels);
}

float mixt__digit_level(const unsigned char *pixels, float y, float x)
{
    if (!(y > -1 && x > -1 && y < MIXT_DIGIT_SIDE && x < MIXT_DIGIT_SIDE))
        return 0;
    int top = (int)(y + 1) - 1, left = (int)(x + 1) - 1; // rounded down, for numbers above -1
    float fy = y - (float)top, fx = x - (float)left, sum = 0;
    for (int k = 0; k < 4; k++) {
        int row = top + k / 2, col = left + k % 2;
        float weight = (k / 2 ? fy : 1 - fy) * (k % 2 ? fx : 1 - fx);
        if (row >= 0 && row < MIXT_DIGIT_SIDE && col >= 0 && col < MIXT_DIGIT_SIDE)
            sum += weight * (float)pixels[row * MIXT_DIGIT_SIDE + col];
    }
    return sum;
}
