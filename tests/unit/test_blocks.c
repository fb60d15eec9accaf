/* Codes of blocks: each number comes back within half a step of the map, with stochastic rounding within one and
 * without bias; nothing that a second moment is made of becomes 0; every instruction set gives the same bits. And
 * updates with moments in codes against FP64, from the state that each began with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu/update/training.h"
#include "base/alloc.h"
#include "base/isa.h"
#include "base/rng.h"
#include "num/blocks.h"
#include "num/stochastic.h"
#include "runtime/codes.h"

#include <math.h>
#include <string.h>

static const mixt_dtype formats[] = {MIXT_DTYPE_INT8, MIXT_DTYPE_UINT8, MIXT_DTYPE_FP8_E4M3, MIXT_DTYPE_FP8_E5M2};
enum { FORMATS = 4 };

static bool has_sign(mixt_dtype format)
{
    return format != MIXT_DTYPE_UINT8;
}

/** All that codes can mean, in a block whose largest number is 1. */
static int meanings(mixt_dtype format, double *values)
{
    int count = 0;
    for (int c = 0; c < 256; c++) {
        uint8_t code = (uint8_t)c;
        float value;
        mixt__block_open(&value, &code, 1, format, 1);
        if (isfinite(value) && fabsf(value) <= 1)
            values[count++] = value;
    }
    return count;
}

/** The nearest values on both sides of x. */
static void sides(const double *values, int count, double x, double *below, double *above)
{
    *below = -INFINITY;
    *above = INFINITY;
    for (int i = 0; i < count; i++) {
        if (values[i] <= x && values[i] > *below)
            *below = values[i];
        if (values[i] >= x && values[i] < *above)
            *above = values[i];
    }
}

static void fill(float *x, int count, mixt_dtype format, uint64_t seed)
{
    mixt__rng rng = mixt__rng_start(seed);
    for (int i = 0; i < count; i++) {
        x[i] = mixt__rng_normal(&rng) * powf(10, (float)(i % 8) - 8);
        x[i] = has_sign(format) ? x[i] : fabsf(x[i]);
    }
    x[count / 2] = has_sign(format) ? -1.0f : 1.0f;
}

static void a_number_comes_back(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++)
        for (int stochastic = 0; stochastic < 2; stochastic++) {
            double values[256], below, above;
            float x[MIXT_BLOCK], y[MIXT_BLOCK];
            uint8_t codes[MIXT_BLOCK];
            int count = meanings(formats[f], values);
            mixt__block_random random = {77, 16 * (f + 5)};
            for (int n = 1; n <= MIXT_BLOCK; n += 51) {
                fill(x, n, formats[f], (uint64_t)(n + f));
                float scale = mixt__block_close(codes, x, formats[f], n, stochastic ? &random : NULL), most = 0;
                mixt__block_open(y, codes, scale, formats[f], n);
                for (int i = 0; i < n; i++)
                    most = fmaxf(most, fabsf(x[i]));
                assert_true(scale == most);
                for (int i = 0; i < n; i++) {
                    sides(values, count, (double)(x[i] / scale), &below, &above);
                    double step = above - below, half = stochastic && formats[f] != MIXT_DTYPE_FP8_E4M3 ? 1 : 0.5;
                    double error = fabs((double)(y[i] / scale) - (double)(x[i] / scale));
                    bool kept = !has_sign(formats[f]) || formats[f] == MIXT_DTYPE_FP8_E5M2; // what is not 0 stays so
                    assert_true(error <= half * step * 1.001 + 2e-6 * fabs((double)x[i]) || (kept && below == 0));
                    assert_true(!kept || x[i] <= 0 || y[i] > 0);
                }
            }
        }
}

/** 256 numbers a block, all alike but one that sets the scale: their mean is the number. */
static void rounding_is_unbiased(void **state)
{
    (void)state;
    enum { BLOCKS = 400 };
    static const float numbers[] = {0.9912f, 0.0123f, 0.00098f, 1.37e-5f};
    for (int f = 1; f < FORMATS; f += 2)
        for (int k = 0; k < 4; k++) {
            double values[256], below, above, sum = 0;
            float x[MIXT_BLOCK], y[MIXT_BLOCK];
            uint8_t codes[MIXT_BLOCK];
            int count = meanings(formats[f], values);
            for (int i = 0; i < MIXT_BLOCK; i++)
                x[i] = i ? numbers[k] : 1;
            for (int b = 0; b < BLOCKS; b++) {
                mixt__block_random random = {99, (int64_t)b * MIXT_BLOCK};
                float scale = mixt__block_close(codes, x, formats[f], MIXT_BLOCK, &random);
                mixt__block_open(y, codes, scale, formats[f], MIXT_BLOCK);
                for (int i = 1; i < MIXT_BLOCK; i++)
                    sum += (double)y[i];
            }
            double draws = BLOCKS * (MIXT_BLOCK - 1.0), number = (double)numbers[k];
            sides(values, count, number, &below, &above);
            double share = (number - below) / (above - below);
            double deviation = (above - below) * sqrt(share * (1 - share) / draws);
            assert_true(fabs(sum / draws - number) <= 5 * deviation + (above - below) * 1e-4);
        }
}

static void ends_of_the_range(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        float x[3] = {0, 0, 0}, y[3];
        uint8_t codes[3];
        assert_true(mixt__block_close(codes, x, formats[f], 3, NULL) == 0);
        mixt__block_open(y, codes, 0, formats[f], 3);
        assert_true(y[0] == 0 && y[2] == 0);
        static const float tiny[] = {1e-45f, 1e-40f, 1e-30f, 1e30f, 3e38f};
        for (int i = 0; i < 5; i++) {
            x[1] = tiny[i];
            float scale = mixt__block_close(codes, x, formats[f], 3, NULL);
            mixt__block_open(y, codes, scale, formats[f], 3);
            assert_true(scale == tiny[i] && y[0] == 0);
            assert_true(fabsf(y[1] - x[1]) <= 1e-5f * x[1] + 2.8e-45f);
        }
        x[1] = NAN;
        assert_true(isnan(mixt__block_close(codes, x, formats[f], 3, NULL)));
    }
}

static void levels_give_same_bits(void **state)
{
    (void)state;
    const mixt__block_loops *levels[] = {&mixt__block_loops_scalar, &mixt__block_loops_avx2, &mixt__block_loops_avx512};
    const mixt__isa needs[] = {MIXT_ISA_SCALAR, MIXT_ISA_AVX2, MIXT_ISA_AVX512};
    float x[MIXT_BLOCK], shift[2][MIXT_BLOCK], y[2][4][MIXT_BLOCK];
    uint8_t codes[2][2][MIXT_BLOCK];
    uint32_t words[MIXT_BLOCK / 2];
    mixt__random_words(words, MIXT_BLOCK / 2, 5, 64);
    for (int level = 0; level < 3; level++) {
        int k = level > 0;
        if (mixt__isa_level() < needs[level])
            continue;
        fill(x, MIXT_BLOCK, MIXT_DTYPE_INT8, 3);
        levels[level]->shifts(shift[k], words);
        levels[level]->close_signed((int8_t *)codes[k][0], x, 1, 9.5f, shift[k]);
        levels[level]->open_signed(y[k][0], (int8_t *)codes[k][0], 0.1f);
        fill(x, MIXT_BLOCK, MIXT_DTYPE_UINT8, 4);
        levels[level]->close_unsigned(codes[k][1], x, 1, 9.9f, shift[k]);
        levels[level]->open_unsigned(y[k][1], codes[k][1], 0.1f);
        levels[level]->dither_e5m2(y[k][2], x, 1, 57344, words);
        y[k][3][0] = levels[level]->amax(x);
        assert_memory_equal(shift[k], shift[0], sizeof shift[0]);
        assert_memory_equal(codes[k], codes[0], sizeof codes[0]);
        for (int i = 0; i < 3; i++)
            assert_memory_equal(y[k][i], y[0][i], sizeof y[0][i]);
        assert_true(y[k][3][0] == y[0][3][0]);
    }
}

/* ---- updates ---- */

enum { COUNT = 5003, PADDED = 5056, STEPS = 20 };

typedef struct fixture {
    mixt__segment segments[3];
    mixt__segment_stats stats[3];
    mixt__control control;
    mixt__segment_sums sums[2][3];
    mixt__damage damage;
    mixt__update update;
} fixture;

static void start(fixture *f, mixt_dtype format, mixt__optimizer_kind kind)
{
    memset(f, 0, sizeof *f);
    mixt__update *u = &f->update;
    f->segments[0] = (mixt__segment){.count = COUNT, .low = MIXT_DTYPE_NONE, .lr_scale = 1, .coded = true};
    f->segments[1] = (mixt__segment){.count = 40, .low = MIXT_DTYPE_NONE, .lr_scale = 1, .offset = PADDED, .param = 1};
    f->segments[1].first = PADDED;
    u->segments = f->segments;
    u->segment_count = 2;
    u->total = PADDED + 48;
    u->weight = (mixt__update_role){.data = mixt__alloc((PADDED + 48) * 4), .format = MIXT_DTYPE_FP32};
    u->gradient = (mixt__update_role){.data = mixt__alloc((PADDED + 48) * 4), .format = MIXT_DTYPE_FP32};
    for (int i = 0; i < 2; i++) {
        u->moments[i] =
            (mixt__update_role){.data = mixt__alloc(PADDED), .format = format, .stochastic = i == 1, .key = 5};
        u->moments[i].scales = mixt__alloc(PADDED / MIXT_BLOCK * 4 + 64);
        u->moments[i].wide = mixt__alloc(64 * 4);
        u->sums[i] = f->sums[i];
    }
    u->moments[1].format = format == MIXT_DTYPE_INT8 ? MIXT_DTYPE_UINT8 : MIXT_DTYPE_FP8_E5M2;
    u->stats = f->stats;
    u->control = &f->control;
    u->damage = &f->damage;
    u->workspace = mixt__alloc(1 << 16);
    u->optimizer = (mixt__optimizer){.kind = kind, .momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    f->control = (mixt__control){.lr = 0.01f, .grad_factor = 1};
    mixt__rng rng = mixt__rng_start(3);
    for (int i = 0; i < PADDED + 40; i++)
        ((float *)u->weight.data)[i] = mixt__rng_normal(&rng);
}

static void finish(fixture *f)
{
    mixt__update *u = &f->update;
    mixt__free(u->weight.data);
    mixt__free(u->gradient.data);
    mixt__free(u->workspace);
    for (int i = 0; i < 2; i++) {
        mixt__free(u->moments[i].data);
        mixt__free(u->moments[i].scales);
        mixt__free(u->moments[i].wide);
    }
}

static void step(fixture *f, int64_t number, float size)
{
    mixt__rng rng = mixt__rng_start(100 + (uint64_t)number);
    for (int i = 0; i < PADDED + 40; i++)
        ((float *)f->update.gradient.data)[i] = mixt__rng_normal(&rng) * (i % 3 ? size : size * 1e-2f);
    f->control.step = number;
    mixt__control_bias(&f->control, &f->update.optimizer);
    assert_int_equal(mixt__cpu_optimizer_step(&f->update), MIXT_OK);
    assert_int_equal(mixt__cpu_judge_sums(&f->update), MIXT_OK);
}

static void open_all(const fixture *f, int which, float *values)
{
    const mixt__update_role *r = &f->update.moments[which];
    mixt__codes_open(values, r->data, r->scales, r->format, COUNT);
}

/** The weights move by what FP64 makes of the moments before; moments are that within a step of the map. */
static void check_updates(mixt_dtype format)
{
    static float w[COUNT], m[COUNT], v[COUNT], m2[COUNT], v2[COUNT];
    double values[2][256];
    fixture f;
    start(&f, format, MIXT_OPTIMIZER_ADAMW);
    int counts[2] = {meanings(format, values[0]), meanings(f.update.moments[1].format, values[1])};
    assert_int_equal(mixt__cpu_sum_segments(&f.update), MIXT_OK);
    for (int64_t n = 1; n <= STEPS; n++) {
        memcpy(w, f.update.weight.data, sizeof w);
        open_all(&f, 0, m);
        open_all(&f, 1, v);
        step(&f, n, 0.1f);
        assert_int_equal(f.damage.found, 0);
        open_all(&f, 0, m2);
        open_all(&f, 1, v2);
        for (int i = 0; i < COUNT; i++) {
            double g = (double)((float *)f.update.gradient.data)[i], beta2 = (double)0.999f;
            double em = (double)0.9f * (double)m[i] + (1 - (double)0.9f) * g;
            double ev = beta2 * (double)v[i] + (1 - beta2) * g * g;
            double moved = em / (1 - pow((double)0.9f, (double)n)) / (sqrt(ev / (1 - pow(beta2, (double)n))) + 1e-8);
            double now = (double)((float *)f.update.weight.data)[i];
            assert_true(fabs(now - ((double)w[i] - 0.01 * moved)) <= 1e-6 * (1 + fabs((double)w[i]) + fabs(moved)));
            const mixt__update_role *r = f.update.moments;
            double scales[2] = {(double)r[0].scales[i / MIXT_BLOCK], (double)r[1].scales[i / MIXT_BLOCK]};
            double below, above;
            sides(values[0], counts[0], em / scales[0], &below, &above);
            assert_true(fabs((double)m2[i] - em) <= (above - below) * scales[0] * 0.5001 + 1e-5 * fabs(em));
            sides(values[1], counts[1], ev / scales[1], &below, &above);
            assert_true(fabs((double)v2[i] - ev) <= (above - below) * scales[1] + 1e-5 * ev);
        }
    }
    for (int bit = 0; bit < 2; bit++) { // of a code, of a scale
        char *at = bit ? (char *)(f.update.moments[1].scales + 3) : (char *)f.update.moments[0].data + 700;
        *at = (char)(*at ^ 1);
        memset(&f.damage, 0, sizeof f.damage);
        step(&f, STEPS + 1 + bit, 0.1f);
        assert_true(f.damage.found == 1 && f.damage.what == (bit ? MIXT_SUMMED_MOMENT2 : MIXT_SUMMED_MOMENT1));
    }
    finish(&f);
}

static void updates_follow_fp64(void **state)
{
    (void)state;
    check_updates(MIXT_DTYPE_INT8);
    check_updates(MIXT_DTYPE_FP8_E4M3);
}

/** With gradients of 0 the second moment decays as it should. */
static void second_moment_decays(void **state)
{
    (void)state;
    static float v[2][COUNT];
    for (int format = 0; format < 2; format++) {
        fixture f;
        double sums[2] = {0, 0};
        start(&f, format ? MIXT_DTYPE_FP8_E4M3 : MIXT_DTYPE_INT8, MIXT_OPTIMIZER_ADAMW);
        step(&f, 1, 0.1f);
        open_all(&f, 1, v[0]);
        for (int64_t n = 2; n <= 101; n++)
            step(&f, n, 0);
        open_all(&f, 1, v[1]);
        for (int i = 0; i < COUNT; i++)
            for (int k = 0; k < 2; k++)
                sums[k] += (double)v[k][i];
        assert_true(fabs(sums[1] / sums[0] - pow(0.999, 100)) < 0.01);
        finish(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_comes_back), cmocka_unit_test(rounding_is_unbiased),
        cmocka_unit_test(ends_of_the_range),   cmocka_unit_test(levels_give_same_bits),
        cmocka_unit_test(updates_follow_fp64), cmocka_unit_test(second_moment_decays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
