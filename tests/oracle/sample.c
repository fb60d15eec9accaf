/* A dimension sampled, by a matrix of weights (result position, source position) that is written down from the
 * definitions; and the gradient, that matrix turned. */
#include "oracle/oracle.h"

#include "mixt/ops.h"

#include <math.h>
#include <string.h>

static int64_t key(test_case *c, const char *name, const char *const *words)
{
    const char *text = problem_text(c, name, words[0]);
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;
    c->error = "unknown word";
    return 0;
}

static void make(test_case *c)
{
    static const char *const kinds[] = {"step", "edge", "reflect", "wrap", "resize", NULL},
                             *const modes[] = {"nearest", "nearest_up", "floor", "ceil", "linear", NULL},
                             *const places[] = {"half_pixel", "asymmetric", "align_corners", "half_pixel_one", NULL};
    mixt__sample_attrs *at = &c->attrs.sample;
    mixt__shape x = problem_shape(c, "src");
    at->axis = (int)problem_int(c, "axis", 0);
    at->kind = (mixt__sample_kind)key(c, "kind", kinds);
    at->full = x.dims[at->axis];
    at->size = problem_int(c, "size", at->full);
    if (at->kind == MIXT_SAMPLE_RESIZE) {
        at->mode = (int)key(c, "mode", modes);
        at->place = (int)key(c, "place", places);
        at->scale = problem_real(c, "scale", (double)at->size / (double)at->full);
        c->inexact = at->mode == MIXT_RESIZE_LINEAR;
    } else {
        at->begin = problem_int(c, "begin", 0);
        at->step = problem_int(c, "step", 1);
    }
    case_input(c, c->dtype, x);
}

/** Where result position i lies on a line through the source. */
static double position(const mixt__sample_attrs *at, int64_t i)
{
    double place = (double)i, half = (place + 0.5) / at->scale - 0.5;
    if (at->place == MIXT_RESIZE_ASYMMETRIC)
        return place / at->scale;
    if (at->place == MIXT_RESIZE_ALIGN_CORNERS)
        return at->size == 1 ? 0 : place * (double)(at->full - 1) / (double)(at->size - 1);
    return at->place == MIXT_RESIZE_HALF_PIXEL_ONE && at->size == 1 ? 0 : half;
}

/** How much of source position s is in result position i. */
static double weight(const mixt__sample_attrs *at, int64_t i, int64_t s)
{
    double x, last = (double)(at->full - 1);
    int64_t period = 2 * (at->full - 1);
    switch (at->kind) {
    case MIXT_SAMPLE_STEP:
        return s == at->begin + i * at->step;
    case MIXT_SAMPLE_EDGE:
        return s == (int64_t)fmin(last, fmax(0, (double)(i - at->begin)));
    case MIXT_SAMPLE_REFLECT: // by the period of a mirrored line
        i = period ? ((i - at->begin) % period + period) % period : 0;
        return s == (i < at->full ? i : period - i);
    case MIXT_SAMPLE_WRAP:
        return s == ((i - at->begin) % at->full + at->full) % at->full;
    default:
        break;
    }
    x = fmin(last, fmax(0, position(at, i)));
    if (at->mode == MIXT_RESIZE_LINEAR)
        return fmax(0, 1 - fabs(x - (double)s));
    x = at->mode == MIXT_RESIZE_FLOOR     ? floor(x)
        : at->mode == MIXT_RESIZE_CEIL    ? ceil(x)
        : at->mode == MIXT_RESIZE_NEAREST ? ceil(x - 0.5)
                                          : floor(x + 0.5);
    return (double)s == fmin(last, fmax(0, x));
}

/** to += weights · from, or with the weights turned; each product rounds, and so do the weights of a blend. */
static void apply(const mixt__sample_attrs *at, const test_tensor *from, test_tensor *to, bool turned)
{
    int64_t inner = 1, size = at->size, full = at->full, outer;
    for (int d = at->axis + 1; d < from->shape.rank; d++)
        inner *= from->shape.dims[d];
    outer = from->count / inner / (turned ? size : full);
    double round = at->kind == MIXT_SAMPLE_RESIZE && at->mode == MIXT_RESIZE_LINEAR ? 6 : 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < size; i++)
            for (int64_t s = 0; s < full; s++) {
                double w = weight(at, i, s);
                for (int64_t k = 0; k < inner && w != 0; k++) {
                    int64_t a = (o * size + i) * inner + k, b = (o * full + s) * inner + k;
                    double x = from->value[turned ? a : b];
                    to->value[turned ? b : a] += w * x;
                    to->slack[turned ? b : a] += (round + (turned ? (double)size : 0)) * U32 * fabs(x);
                }
            }
}

static void expect(test_case *c)
{
    if (c->in[0].count)
        apply(&c->attrs.sample, &c->in[0], &c->out[0], false);
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "sample");
    make(f);
    case_run(f);
    c->error = f->error;
    c->attrs = f->attrs;
    c->inexact = f->inexact;
    c->grad_dst = 0;
    if (!c->error)
        case_input(c, c->dtype, f->out[0].shape);
}

static void expect_grad(test_case *c)
{
    if (c->in[0].count)
        apply(&c->attrs.sample, &c->in[0], &c->out[0], true);
}

const oracle oracle_sample = {.op = "sample", .make = make, .expect = expect, .exact_integers = true};
const oracle oracle_sample_grad = {
    .op = "sample_grad", .make = make_grad, .expect = expect_grad, .exact_integers = true};
