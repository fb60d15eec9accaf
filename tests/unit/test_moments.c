/* Moments in BF16: every update against FP64 from the state that it began with, stochastic rounding by itself, and the
 * bits of an update that is cut into parts.
 *
 * The oracle begins each update from what is stored, which FP64 holds exactly. A moment as computed in FP32 is off by a
 * few of its roundings; stored, the first lies within half a unit of BF16 of that and the second within a whole one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu/update/training.h"
#include "base/alloc.h"
#include "base/isa.h"
#include "base/rng.h"
#include "base/threads.h"
#include "num/num.h"
#include "num/stochastic.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { COUNT = 5003, PADDED = 5008, STEPS = 30 };
static const double U = 1.0 / 16777216, B = 1.0 / 256; // unit roundoff of FP32, of BF16

/* ---- rounding ---- */

/** The same bits at every level, and as the rounding that knows all formats. */
static void rounding_has_one_definition(void **state)
{
    (void)state;
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, 1e-40f, -1e-45f, FLT_MIN};
    mixt__stochastic_bf16_fn *const loops[] = {mixt__stochastic_bf16_scalar, mixt__stochastic_bf16_avx2,
                                               mixt__stochastic_bf16_avx512};
    const mixt__isa needs[] = {MIXT_ISA_SCALAR, MIXT_ISA_AVX2, MIXT_ISA_AVX512};
    enum { N = 333 };
    float src[N];
    double wide[N];
    uint16_t expected[N], found[N];
    mixt__rng rng = mixt__rng_start(7);
    for (int i = 0; i < N; i++) {
        src[i] = i < 10 ? special[i] : mixt__rng_normal(&rng) * powf(2, (float)(i % 40 - 20));
        wide[i] = src[i];
    }
    for (int64_t first = 0; first < 70; first += 7)
        for (int level = 0; level < 3; level++) {
            if (mixt__isa_level() < needs[level])
                continue;
            mixt__stochastic_store(expected, MIXT_DTYPE_BF16, wide, N, 99, first);
            loops[level](found, src, N, 99, first);
            for (int i = 0; i < N; i++)
                if (!isnan(src[i]))
                    assert_int_equal(found[i], expected[i]);
            assert_true(isnan(mixt__bf16_widen(found[4])));
        }
}

/** The mean of many roundings is the number: within five deviations of a mean of so many. */
static void rounding_is_unbiased(void **state)
{
    (void)state;
    enum { DRAWS = 40000 };
    static const float numbers[] = {1.0f + 0x1p-20f, 1.003f, 0.7501f, -3.1234f};
    static float src[DRAWS];
    static uint16_t dst[DRAWS];
    for (int k = 0; k < 4; k++) {
        double sum = 0, x = numbers[k], unit = exp2(floor(log2(fabs(x)))) * 2 * B, share = fmod(fabs(x), unit) / unit;
        for (int i = 0; i < DRAWS; i++)
            src[i] = numbers[k];
        mixt__stochastic_bf16(dst, src, DRAWS, 1234 + (uint64_t)k, 0);
        for (int i = 0; i < DRAWS; i++)
            sum += mixt__bf16_widen(dst[i]);
        assert_true(fabs(sum / DRAWS - x) <= 5 * unit * sqrt(share * (1 - share) / DRAWS) + unit * 0x1p-16);
    }
}

/* ---- updates ---- */

typedef struct fixture {
    mixt__segment segments[3];
    mixt__segment_stats stats[3];
    mixt__control control;
    mixt__update update;
} fixture;

static void start(fixture *f, mixt__optimizer_kind kind)
{
    memset(f, 0, sizeof *f);
    mixt__update *u = &f->update;
    f->segments[0] = (mixt__segment){.count = COUNT, .low = MIXT_DTYPE_NONE, .weight_decay = 0.1f, .lr_scale = 1};
    u->segments = f->segments;
    u->segment_count = 1;
    u->total = PADDED;
    u->weight = (mixt__update_role){.data = mixt__alloc(PADDED * 4), .format = MIXT_DTYPE_FP32};
    u->gradient = (mixt__update_role){.data = mixt__alloc(PADDED * 4), .format = MIXT_DTYPE_FP32};
    for (int i = 0; i < 2; i++)
        u->moments[i] = (mixt__update_role){
            .data = mixt__alloc(PADDED * 2), .format = MIXT_DTYPE_BF16, .stochastic = i == 1, .key = 5};
    u->stats = f->stats;
    u->control = &f->control;
    u->workspace = mixt__alloc(1 << 16);
    u->optimizer = (mixt__optimizer){.kind = kind, .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    f->control = (mixt__control){.lr = 0.01f, .grad_factor = 0.5f};
    mixt__rng rng = mixt__rng_start(3);
    for (int i = 0; i < COUNT; i++)
        ((float *)u->weight.data)[i] = mixt__rng_normal(&rng);
}

static void finish(fixture *f)
{
    mixt__update *u = &f->update;
    void *blocks[] = {u->weight.data, u->gradient.data, u->moments[0].data, u->moments[1].data, u->workspace};
    for (int i = 0; i < 5; i++)
        mixt__free(blocks[i]);
}

static void draw(const fixture *f, int64_t step)
{
    mixt__rng rng = mixt__rng_start(100 + (uint64_t)step);
    for (int i = 0; i < COUNT; i++)
        ((float *)f->update.gradient.data)[i] = mixt__rng_normal(&rng) * (i % 3 ? 0.1f : 1e-3f);
}

static void step(fixture *f, int64_t number)
{
    f->control.step = number;
    mixt__control_bias(&f->control, &f->update.optimizer);
    assert_int_equal(mixt__cpu_optimizer_step(&f->update), MIXT_OK);
}

static float narrow_of(const mixt__update_role *role, int i)
{
    return mixt__bf16_widen(((const uint16_t *)role->data)[i]);
}

/** One element's update in FP64, from the numbers before it. @param worst bound of the weight's error in FP32 */
static double oracle(const fixture *f, double w, double g, double *m, double *v, double *worst)
{
    const mixt__optimizer *o = &f->update.optimizer;
    bool adam = o->kind == MIXT_OPTIMIZER_ADAMW;
    double d = g * 0.5 + (adam ? 0 : 0.1f * w), t = (double)f->control.step, moved;
    *m = adam ? o->beta1 * *m + (1 - (double)o->beta1) * d : o->momentum * *m + d;
    *v = o->beta2 * *v + (1 - (double)o->beta2) * d * d;
    if (adam)
        moved = *m / (1 - pow(o->beta1, t)) / (sqrt(*v / (1 - pow(o->beta2, t))) + o->eps);
    else
        moved = *m;
    *worst = U * fabs(w) * 3 + 0.01 * (fabs(moved) * 16 * U + (adam ? 0.1 * fabs(w) * 4 * U : 0));
    return w - (adam ? 0.01f * 0.1f * w : 0) - 0.01f * moved;
}

/** What a moment is made of, whose sum may cancel: FP32's error goes with these. */
static double parts(double decay, double before, double added)
{
    return fabs(decay * before) + fabs(added);
}

static void check_updates(mixt__optimizer_kind kind)
{
    fixture f;
    static float w[COUNT], m[COUNT], v[COUNT];
    start(&f, kind);
    for (int64_t n = 1; n <= STEPS; n++) {
        const mixt__update *u = &f.update;
        draw(&f, n);
        for (int i = 0; i < COUNT; i++) {
            w[i] = ((float *)u->weight.data)[i];
            m[i] = narrow_of(&u->moments[0], i);
            v[i] = narrow_of(&u->moments[1], i);
        }
        step(&f, n);
        for (int i = 0; i < COUNT; i++) {
            double em = m[i], ev = v[i], worst, g = ((float *)u->gradient.data)[i];
            double expected = oracle(&f, w[i], g, &em, &ev, &worst);
            double error = 6 * U * parts(0.9, m[i], 0.5 * g + 0.1 * w[i]);
            double moved = kind == MIXT_OPTIMIZER_ADAMW ? error / (fabs(em) + 1e-30) : error;
            worst += kind == MIXT_OPTIMIZER_ADAMW ? fabs(expected - w[i]) * moved : 0.01 * moved;
            assert_true(fabs(narrow_of(&u->moments[0], i) - em) <= B * fabs(em) + error + 1e-38);
            if (kind == MIXT_OPTIMIZER_ADAMW)
                assert_true(fabs(narrow_of(&u->moments[1], i) - ev) <= 2 * B * ev + 8 * U * ev + 1e-38);
            assert_true(fabs(((float *)u->weight.data)[i] - expected) <= worst);
        }
    }
    finish(&f);
}

static void updates_follow_fp64(void **state)
{
    (void)state;
    check_updates(MIXT_OPTIMIZER_ADAMW);
    check_updates(MIXT_OPTIMIZER_SGD);
}

/** With gradients of 0 the second moment decays, which rounding to the nearest would never let it do. */
static void second_moment_decays(void **state)
{
    (void)state;
    fixture f;
    start(&f, MIXT_OPTIMIZER_ADAMW);
    draw(&f, 1);
    step(&f, 1);
    double before = 0, after = 0;
    for (int i = 0; i < COUNT; i++)
        before += narrow_of(&f.update.moments[1], i);
    memset(f.update.gradient.data, 0, COUNT * sizeof(float));
    for (int64_t n = 2; n <= 101; n++)
        step(&f, n);
    for (int i = 0; i < COUNT; i++)
        after += narrow_of(&f.update.moments[1], i);
    assert_true(fabs(after / before - pow(0.999, 100)) < 0.005); // about five deviations of a mean of so many
    finish(&f);
}

/** Parts of a segment, each in an arena of its own as ranks have them, and another number of threads. */
static void cuts_change_no_bits(void **state)
{
    (void)state;
    enum { FIRST = 2048 };
    for (int lamb = 0; lamb < 2; lamb++) {
        fixture whole, cut;
        start(&whole, lamb ? MIXT_OPTIMIZER_ADAM : MIXT_OPTIMIZER_ADAMW);
        start(&cut, lamb ? MIXT_OPTIMIZER_ADAM : MIXT_OPTIMIZER_ADAMW);
        cut.segments[1] = cut.segments[0];
        cut.segments[0].count = FIRST;
        cut.segments[1].count = COUNT - FIRST;
        cut.segments[1].offset = cut.segments[1].first = FIRST;
        cut.update.segment_count = 2;
        for (int64_t n = 1; n <= 5; n++) {
            draw(&whole, n);
            draw(&cut, n);
            step(&whole, n);
            step(&cut, n);
        }
        assert_memory_equal(whole.update.moments[0].data, cut.update.moments[0].data, COUNT * 2);
        assert_memory_equal(whole.update.moments[1].data, cut.update.moments[1].data, COUNT * 2);
        assert_memory_equal(whole.update.weight.data, cut.update.weight.data, COUNT * 4);
        finish(&whole);
        finish(&cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_has_one_definition), cmocka_unit_test(rounding_is_unbiased),
        cmocka_unit_test(updates_follow_fp64),         cmocka_unit_test(second_moment_decays),
        cmocka_unit_test(cuts_change_no_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
