/* The passes that end a step, against a reference in double precision that carries its own rounding-error bound.
 *
 * The bound is first-order: each FP32 operation adds half a unit in the last place of its result, and earlier errors
 * are carried through the formulas. What the library computes must lie within it for every weight after every step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu/update/segment_chunks.h"
#include "backend/cpu/update/training.h"
#include "backend/cpu/update/loops.h"
#include "base/alloc.h"
#include "base/isa.h"
#include "base/threads.h"
#include "num/num.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SEGMENTS = 6, STEPS = 50 };
static const double U = 1.0 / 16777216; // unit roundoff of FP32
static const int64_t counts[SEGMENTS] = {1, 7, 20000, 33, 16385, 100};
static const mixt_dtype lows[SEGMENTS] = {MIXT_DTYPE_NONE, MIXT_DTYPE_BF16, MIXT_DTYPE_BF16,
                                          MIXT_DTYPE_FP16, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};

/* ---- a small training state ---- */

typedef struct fixture {
    mixt__segment segments[SEGMENTS];
    mixt__segment_stats stats[SEGMENTS];
    int32_t order[SEGMENTS];
    mixt__control control;
    mixt__update update;
    int64_t low_total;
    uint64_t random;
} fixture;

static float *fp32(const mixt__update_role *role)
{
    return role->data;
}

static uint32_t next_random(uint64_t *state) // the test's own generator, so that inputs never change with the library
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/** In (-1, 1), never tiny. */
static float next_value(uint64_t *state)
{
    float magnitude = 0.01f + (float)(next_random(state) % 100000) * 1e-5f * 0.99f;
    return next_random(state) & 1 ? magnitude : -magnitude;
}

static void fill(float *array, int64_t count, float size, uint64_t *state)
{
    for (int64_t i = 0; i < count; i++)
        array[i] = size * next_value(state);
}

static void start(fixture *f)
{
    memset(f, 0, sizeof *f);
    f->random = 20240607;
    mixt__update *u = &f->update;
    for (int i = 0; i < SEGMENTS; i++) {
        f->segments[i] =
            (mixt__segment){.offset = u->total, .count = counts[i], .low = lows[i], .low_offset = f->low_total};
        f->segments[i].weight_decay = i % 2 ? 0.1f : 0.0f;
        f->segments[i].lr_scale = i == 4 ? 0.5f : 1.0f;
        f->segments[i].param = i;
        f->order[i] = SEGMENTS - 1 - i;
        u->total += (counts[i] + 15) / 16 * 16;
        f->low_total = u->total;
    }
    mixt__update_role *arenas[] = {&u->weight, &u->gradient, &u->moments[0], &u->moments[1]};
    for (size_t i = 0; i < 4; i++)
        *arenas[i] =
            (mixt__update_role){.data = mixt__alloc((size_t)u->total * sizeof(float)), .format = MIXT_DTYPE_FP32};
    u->low[MIXT_DTYPE_BF16] = mixt__alloc((size_t)f->low_total * 2);
    u->low[MIXT_DTYPE_FP16] = mixt__alloc((size_t)f->low_total * 2);
    u->segments = f->segments;
    u->segment_count = SEGMENTS;
    u->stats = f->stats;
    u->backward_order = f->order;
    u->workspace = mixt__alloc_uninit(mixt__update_workspace(f->segments, SEGMENTS));
    u->control = &f->control;
    u->optimizer = (mixt__optimizer){.momentum = 0.9f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f};
    u->schedule = (mixt__schedule){.kind = MIXT_SCHEDULE_CONSTANT, .lr = 0.01f};
    u->scaling = (mixt__scaling){.enabled = true, .initial = 1024};
    u->accumulate = 1;
    u->gradient_factor = 1;
    for (int i = 0; i < SEGMENTS; i++)
        fill(fp32(&u->weight) + f->segments[i].offset, counts[i], 1, &f->random);
}

static void finish(fixture *f)
{
    void *blocks[] = {f->update.weight.data,         f->update.gradient.data, f->update.moments[0].data,
                      f->update.moments[1].data,     f->update.workspace,     f->update.low[MIXT_DTYPE_BF16],
                      f->update.low[MIXT_DTYPE_FP16]};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        mixt__free(blocks[i]);
}

static void draw_gradients(fixture *f, float size)
{
    for (int i = 0; i < SEGMENTS; i++)
        fill(fp32(&f->update.gradient) + f->segments[i].offset, counts[i], size, &f->random);
}

static void step(fixture *f)
{
    assert_int_equal(mixt__cpu_gradient_stats(&f->update), MIXT_OK);
    assert_int_equal(mixt__cpu_step_control(&f->update), MIXT_OK);
    assert_int_equal(mixt__cpu_optimizer_step(&f->update), MIXT_OK);
}

/* ---- the reference ---- */

typedef struct reference {
    double w, m, v;    // exact arithmetic
    double ew, em, ev; // bounds of the library's error in them
} reference;

typedef struct settings {
    mixt__optimizer o;
    double factor, clip, lr, decay;
    double bias1, bias2;  // 1 - beta^t
    double ratio, eratio; // LAMB's, with its error bound
} settings;

static double clamp(double x, double limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}

static void reference_sgd(reference *r, const settings *s, double g, double eg)
{
    double decayed = s->decay * r->w;
    eg += s->decay * r->ew + 2 * U * (fabs(g) + fabs(decayed));
    g += decayed;
    double d = g, ed = eg, mu = s->o.momentum;
    if (mu != 0) {
        r->em = mu * r->em + eg + 2 * U * (mu * fabs(r->m) + fabs(g));
        r->m = mu * r->m + g;
        d = s->o.nesterov ? g + mu * r->m : r->m;
        ed = s->o.nesterov ? eg + mu * r->em + 2 * U * (fabs(g) + mu * fabs(r->m)) : r->em;
    }
    r->w -= s->lr * d;
    r->ew += s->lr * ed + 3 * U * s->lr * fabs(d) + U * fabs(r->w);
}

/** New moments; returns Adam's quotient and its error bound. */
static double reference_quotient(reference *r, const settings *s, double g, double eg, double *error)
{
    double b1 = s->o.beta1, b2 = s->o.beta2;
    r->em = b1 * r->em + (1 - b1) * eg + 3 * U * (b1 * fabs(r->m) + (1 - b1) * fabs(g));
    r->m = b1 * r->m + (1 - b1) * g;
    double others = s->o.others, mean = r->m / s->bias1, emean = r->em / s->bias1 + 2 * U * fabs(mean);
    double square = (g * g + others * mean * mean) / (1 + others);
    double esquare = 2 * (fabs(g) * eg + others * fabs(mean) * emean) / (1 + others);
    r->ev = b2 * r->ev + (1 - b2) * esquare + (others > 0 ? 8 : 4) * U * (b2 * r->v + (1 - b2) * square);
    r->v = b2 * r->v + (1 - b2) * square;
    double root = sqrt(r->v / s->bias2);
    double below = root + s->o.eps, q = mean / below;
    double ebelow = root * (r->ev / r->v + 4 * U) + U * below;
    *error = r->em / s->bias1 / below + fabs(q) * (ebelow / below + 4 * U);
    return q;
}

static void reference_step(reference *r, const settings *s, double raw)
{
    double g = clamp(raw * s->factor, s->clip), eg = 4 * U * fabs(g), eq, decayed = s->decay * r->w;
    if (s->o.kind == MIXT_OPTIMIZER_SGD) {
        reference_sgd(r, s, g, eg);
        return;
    }
    if (s->o.kind == MIXT_OPTIMIZER_ADAM) {
        eg += s->decay * r->ew + 2 * U * (fabs(g) + fabs(decayed));
        g += decayed;
    }
    double q = reference_quotient(r, s, g, eg, &eq), scale = s->ratio * s->lr;
    if (s->o.kind != MIXT_OPTIMIZER_ADAM) {
        eq += s->decay * r->ew + 3 * U * (fabs(decayed) + fabs(q));
        q += decayed;
    }
    r->w -= scale * q;
    r->ew += scale * eq + s->eratio * s->lr * fabs(q) + 4 * U * scale * fabs(q) + 2 * U * fabs(r->w);
}

/** LAMB's trust ratio from the reference's own state; needs the moments of this step, so it steps a copy. */
static void reference_ratio(const reference *r, int64_t count, const float *grad, settings *s)
{
    double weights = 0, updates = 0, eweights = 0, eupdates = 0;
    for (int64_t i = 0; i < count; i++) {
        reference copy = r[i];
        double g = clamp(grad[i] * s->factor, s->clip), eq;
        double q = reference_quotient(&copy, s, g, 4 * U * fabs(g), &eq) + s->decay * copy.w;
        eq += s->decay * copy.ew + 3 * U * (fabs(s->decay * copy.w) + fabs(q));
        weights += copy.w * copy.w;
        updates += q * q;
        eweights += 2 * fabs(copy.w) * copy.ew;
        eupdates += 2 * fabs(q) * eq;
    }
    s->ratio = sqrt(weights / updates);
    s->eratio = s->ratio * (eweights / weights + eupdates / updates + 4 * U);
}

static void compare(const fixture *f, const reference *r, int at)
{
    for (int i = 0; i < SEGMENTS; i++)
        for (int64_t j = 0; j < counts[i]; j++) {
            int64_t k = f->segments[i].offset + j;
            double error = fabs(fp32(&f->update.weight)[k] - r[k].w), bound = 1.01 * r[k].ew;
            if (!(error <= bound) || !(bound < 1e-3)) {
                print_message("step %d segment %d element %lld: got %.9g, expected %.9g, error %.3g, bound %.3g\n", at,
                              i, (long long)j, (double)fp32(&f->update.weight)[k], r[k].w, error, bound);
                fail();
            }
        }
}

static void check_copies(const fixture *f)
{
    for (int i = 0; i < SEGMENTS; i++)
        for (int64_t j = 0; lows[i] != MIXT_DTYPE_NONE && j < counts[i]; j++) {
            const uint16_t *low = f->update.low[lows[i]];
            float w = fp32(&f->update.weight)[f->segments[i].offset + j];
            uint16_t expected = lows[i] == MIXT_DTYPE_BF16 ? mixt_bf16_from_fp32(w) : mixt_fp16_from_fp32(w);
            assert_int_equal(low[f->segments[i].low_offset + j], expected);
        }
}

static double reference_factor(const fixture *f)
{
    double sum = 0;
    for (int i = 0; i < SEGMENTS; i++)
        for (int64_t j = 0; j < counts[i]; j++)
            sum += (double)fp32(&f->update.gradient)[f->segments[i].offset + j] *
                   fp32(&f->update.gradient)[f->segments[i].offset + j];
    double norm = sqrt(sum) / 1024;
    return (f->update.clip_norm > 0 ? fmin(1, f->update.clip_norm / (norm + 1e-6)) : 1) / 1024;
}

static void check_one_of(mixt__optimizer_kind kind, float momentum, bool nesterov, float clip_norm, float clip_value,
                         float others)
{
    fixture f;
    start(&f);
    f.update.optimizer.others = others;
    f.update.optimizer.kind = kind;
    f.update.optimizer.momentum = momentum;
    f.update.optimizer.nesterov = nesterov;
    f.update.clip_norm = clip_norm;
    f.update.clip_value = clip_value;
    f.control = mixt__control_start(&f.update);
    reference *r = mixt__alloc((size_t)f.update.total * sizeof *r);
    for (int64_t k = 0; k < f.update.total; k++)
        r[k].w = fp32(&f.update.weight)[k];
    for (int t = 1; t <= STEPS; t++) {
        draw_gradients(&f, 1024);
        step(&f);
        double factor = reference_factor(&f);
        for (int i = 0; i < SEGMENTS; i++) {
            settings s = {.o = f.update.optimizer, .factor = factor, .ratio = 1};
            s.bias1 = 1 - pow(s.o.beta1, t);
            s.bias2 = 1 - pow(s.o.beta2, t);
            s.clip = clip_value > 0 ? clip_value : INFINITY;
            s.lr = (double)0.01f * f.segments[i].lr_scale;
            s.decay = f.segments[i].weight_decay;
            int64_t at = f.segments[i].offset;
            if (kind == MIXT_OPTIMIZER_LAMB)
                reference_ratio(r + at, counts[i], fp32(&f.update.gradient) + at, &s);
            for (int64_t j = 0; j < counts[i]; j++)
                reference_step(&r[at + j], &s, fp32(&f.update.gradient)[at + j]);
        }
        if (t == 1 || t == 7 || t == STEPS)
            compare(&f, r, t);
    }
    assert_int_equal(f.control.step, STEPS);
    check_copies(&f);
    mixt__free(r);
    finish(&f);
}

static void check_optimizer(mixt__optimizer_kind kind, float momentum, bool nesterov, float clip_norm, float clip_value)
{
    check_one_of(kind, momentum, nesterov, clip_norm, clip_value, 0);
}

/** Of ranks that know their own gradients alone. */
static void test_others(void **state)
{
    (void)state;
    check_one_of(MIXT_OPTIMIZER_ADAM, 0, false, 30, 0, 1);
    check_one_of(MIXT_OPTIMIZER_ADAMW, 0, false, 0, 0.3f, 3);
    check_one_of(MIXT_OPTIMIZER_LAMB, 0, false, 1, 0, 1);
}

static void test_sgd(void **state)
{
    (void)state;
    check_optimizer(MIXT_OPTIMIZER_SGD, 0, false, 0, 0);
    check_optimizer(MIXT_OPTIMIZER_SGD, 0, false, 20, 0.5f);
}

static void test_momentum(void **state)
{
    (void)state;
    check_optimizer(MIXT_OPTIMIZER_SGD, 0.9f, false, 0, 0.25f);
    check_optimizer(MIXT_OPTIMIZER_SGD, 0.9f, true, 30, 0);
}

static void test_adam(void **state)
{
    (void)state;
    check_optimizer(MIXT_OPTIMIZER_ADAM, 0, false, 0, 0);
    check_optimizer(MIXT_OPTIMIZER_ADAM, 0, false, 30, 0);
}

static void test_adamw(void **state)
{
    (void)state;
    check_optimizer(MIXT_OPTIMIZER_ADAMW, 0, false, 0, 0.3f);
    check_optimizer(MIXT_OPTIMIZER_ADAMW, 0, false, 1, 0);
}

static void test_lamb(void **state)
{
    (void)state;
    check_optimizer(MIXT_OPTIMIZER_LAMB, 0, false, 1, 0);
}

/* ---- skipping, threads, instruction sets ---- */

/** A checksum of everything an update may write. */
static uint64_t digest(const fixture *f)
{
    uint64_t hash = 1469598103934665603u;
    const struct {
        const void *data;
        size_t bytes;
    } parts[] = {{f->update.weight.data, (size_t)f->update.total * 4},
                 {f->update.moments[0].data, (size_t)f->update.total * 4},
                 {f->update.moments[1].data, (size_t)f->update.total * 4},
                 {f->update.low[MIXT_DTYPE_BF16], (size_t)f->low_total * 2},
                 {f->update.low[MIXT_DTYPE_FP16], (size_t)f->low_total * 2}};
    for (size_t p = 0; p < 5; p++)
        for (size_t i = 0; i < parts[p].bytes; i++)
            hash = (hash ^ ((const uint8_t *)parts[p].data)[i]) * 1099511628211u;
    return hash;
}

static void test_skip_changes_nothing(void **state)
{
    (void)state;
    const float bad[] = {INFINITY, -INFINITY, NAN};
    for (int kind = MIXT_OPTIMIZER_SGD; kind <= MIXT_OPTIMIZER_LAMB; kind++) {
        fixture f;
        start(&f);
        f.update.optimizer.kind = (mixt__optimizer_kind)kind;
        f.update.schedule = (mixt__schedule){.kind = MIXT_SCHEDULE_LINEAR, .lr = 0.1f, .total_steps = 10};
        f.control = mixt__control_start(&f.update);
        draw_gradients(&f, 1024);
        step(&f);
        uint64_t before = digest(&f);
        mixt__control control = f.control;
        for (int i = 0; i < 3; i++) {
            draw_gradients(&f, 1024);
            fp32(&f.update.gradient)[f.segments[2].offset + 19999] = bad[i];
            fp32(&f.update.gradient)[f.segments[4].offset + 16384] = bad[i];
            step(&f);
            assert_int_equal(f.control.found_inf, 1);
            assert_int_equal(f.control.bad_segment, 4); // the backward pass runs from the last segment to the first
            assert_true(f.stats[4].nonfinite == 1 && f.stats[2].nonfinite == 1 && f.stats[3].nonfinite == 0);
            assert_true(digest(&f) == before);
            assert_true(f.control.step == control.step && f.control.lr == control.lr &&
                        f.control.scale == control.scale);
            assert_int_equal(f.control.skipped, i + 1);
        }
        draw_gradients(&f, 1024);
        step(&f);
        assert_true(digest(&f) != before && f.control.found_inf == 0 && f.control.bad_segment == -1);
        assert_true(f.control.step == 2 && fabsf(f.control.lr - 0.09f) < 1e-8f);
        finish(&f);
    }
}

static void test_threads_give_same_bits(void **state)
{
    (void)state;
    for (int kind = MIXT_OPTIMIZER_SGD; kind <= MIXT_OPTIMIZER_LAMB; kind++) {
        uint64_t first = 0;
        for (int threads = 1; threads <= 3; threads++) {
            fixture f;
            mixt__threads_set(threads);
            start(&f);
            f.update.optimizer.kind = (mixt__optimizer_kind)kind;
            f.update.clip_norm = 1;
            f.control = mixt__control_start(&f.update);
            for (int t = 0; t < 3; t++) {
                draw_gradients(&f, 1024);
                step(&f);
            }
            uint64_t bits = digest(&f);
            first = threads == 1 ? bits : first;
            assert_true(bits == first);
            finish(&f);
        }
    }
    mixt__threads_set(0);
}

static void sum_block(const mixt__update_loops *loops, const mixt__update_block *b, bool moments, uint64_t *words)
{
    const void *arrays[MIXT_SUMMED] = {b->w, moments ? b->m : NULL, moments ? b->v : NULL, b->low};
    for (int i = 0; i < MIXT_SUMMED; i++) {
        static uint64_t room[1024];
        size_t bytes = (size_t)b->count * (i == MIXT_SUMMED_COPY ? 2 : 4);
        memset(room, 0, sizeof room);
        if (arrays[i])
            memcpy(room, arrays[i], bytes);
        words[i] = loops->words(room, (int64_t)(bytes + 7) / 8);
    }
}

/** A rule without sums and with: the same bits, and the sums of what memory has before and after.
 *  @param moments whether it writes those that it has */
static void run_summed(const mixt__update_loops *loops, mixt__update_fn *rule, const mixt__rule *r,
                       const mixt__update_block *block, bool moments)
{
    enum { N = 1003 };
    static float plain[3][N];
    mixt__update_block b = *block;
    mixt__chunk_sums all = {0};
    struct {
        mixt__segment_sums read, written;
    } got, expected;
    float *const from[3] = {b.w, b.m, b.v};
    for (int i = 0; i < 3; i++)
        memcpy(plain[i], from[i], sizeof plain[i]);
    sum_block(loops, &b, moments, expected.read.words);
    mixt__update_block other = b;
    other.w = plain[0];
    other.m = plain[1];
    other.v = plain[2];
    other.low = NULL;
    rule(r, &other);
    b.sums = &all;
    rule(r, &b);
    for (int i = 0; i < 3; i++)
        assert_memory_equal(from[i], plain[i], sizeof plain[i]);
    sum_block(loops, &b, moments, expected.written.words);
    for (int i = 0; i < MIXT_SUMMED; i++) {
        got.read.words[i] = got.written.words[i] = 0;
        for (int k = 0; k < MIXT_SUM_PARTS; k++) {
            got.read.words[i] += all.read[i][k];
            got.written.words[i] += all.written[i][k];
        }
    }
    for (int i = 0; i < MIXT_SUMMED; i++) // what a rule does not touch it does not sum
        if (got.read.words[i] || got.written.words[i]) {
            assert_true(got.read.words[i] == expected.read.words[i]);
            assert_true(got.written.words[i] == expected.written.words[i]);
        } else {
            assert_true(!expected.read.words[i] || expected.read.words[i] == expected.written.words[i]);
        }
    if (!b.low)
        return;
    uint16_t low[N];
    mixt__narrow(b.low_format)(low, b.w, b.count);
    assert_memory_equal(low, b.low, (size_t)b.count * sizeof *low);
}

static void run_level(const mixt__update_loops *loops, const mixt__optimizer_loops *rules, float *state, double *sums,
                      mixt__chunk_stats *stats)
{
    enum { N = 1003 };
    uint64_t random = 5;
    float *w = state, *g = state + N, *m = state + 2 * N, *v = state + 3 * N;
    uint16_t low[N] = {1, 2, 3};
    fill(state, 3 * N, 1, &random);
    for (int i = 0; i < N; i++)
        v[i] = fabsf(g[i]);
    mixt__rule rule = {.grad_factor = 0.3f,
                       .clip = 0.2f,
                       .lr = 0.1f,
                       .weight_decay = 0.01f,
                       .momentum = 0.9f,
                       .beta1 = 0.9f,
                       .beta2 = 0.99f,
                       .one_minus_beta1 = 0.1f,
                       .one_minus_beta2 = 0.01f,
                       .inv_bias1 = 3,
                       .inv_sqrt_bias2 = 2,
                       .eps = 1e-6f};
    loops->stats(g, N, stats);
    mixt__update_fn *all[] = {rules->sgd, rules->momentum, rules->nesterov, rules->adam, rules->adamw};
    mixt__update_block b = {.w = w, .g = g, .m = m, .v = v, .low = low, .low_format = MIXT_DTYPE_BF16, .count = N};
    for (size_t i = 0; i < 5; i++, b.count--) {
        b.low_format = i % 2 ? MIXT_DTYPE_FP16 : MIXT_DTYPE_BF16;
        run_summed(loops, all[i], &rule, &b, true);
    }
    b.low = NULL;
    b.count = N;
    rules->lamb_moments(&rule, &b, sums);
    run_summed(loops, rules->lamb_apply, &rule, &b, false);
}

static void test_levels_give_same_bits(void **state)
{
    (void)state;
    static float expected[4 * 1003], got[4 * 1003];
    double sums[2][2];
    mixt__chunk_stats stats[2];
    run_level(&mixt__update_loops_scalar, &mixt__optimizer_loops_scalar, expected, sums[0], &stats[0]);
    const mixt__update_loops *levels[] = {mixt__cpu()->avx2 && mixt__cpu()->fma ? &mixt__update_loops_avx2 : NULL,
                                          mixt__cpu()->avx512 ? &mixt__update_loops_avx512 : NULL};
    const mixt__optimizer_loops *rules[] = {&mixt__optimizer_loops_avx2, &mixt__optimizer_loops_avx512};
    for (int i = 0; i < 2; i++) {
        if (!levels[i]) {
            print_message("level %d: not on this processor, skipped\n", i + 1);
            continue;
        }
        run_level(levels[i], rules[i], got, sums[1], &stats[1]);
        assert_memory_equal(got, expected, sizeof expected);
        assert_memory_equal(sums[1], sums[0], sizeof sums[0]);
        assert_true(stats[1].sum_squares == stats[0].sum_squares && stats[1].amax == stats[0].amax);
        assert_true(stats[1].zeros == stats[0].zeros && stats[1].nonfinite == stats[0].nonfinite);
    }
}

static void test_statistics(void **state)
{
    (void)state;
    fixture f;
    start(&f);
    draw_gradients(&f, 3);
    float *g = fp32(&f.update.gradient) + f.segments[2].offset;
    g[0] = 0.0f;
    g[1] = -0.0f;
    g[19999] = -77.0f;
    fp32(&f.update.gradient)[f.segments[4].offset + 16384] = NAN;
    fp32(&f.update.gradient)[f.segments[4].offset + 3] = -INFINITY;
    fp32(&f.update.gradient)[f.segments[5].offset + 3] = FLT_MAX;
    fp32(&f.update.gradient)[f.segments[5].offset + 4] = 1e-45f;
    assert_int_equal(mixt__cpu_gradient_stats(&f.update), MIXT_OK);
    double sum = 0;
    for (int64_t i = 0; i < counts[2]; i++)
        sum += (double)g[i] * g[i];
    assert_true(fabs(f.stats[2].sum_squares - sum) < 1e-11 * sum);
    assert_true(f.stats[2].amax == 77.0f && f.stats[2].zeros == 2 && f.stats[2].nonfinite == 0);
    assert_true(f.stats[4].nonfinite == 2 && !isfinite(f.stats[4].sum_squares) && f.stats[4].amax < 4);
    assert_true(f.stats[5].amax == FLT_MAX && f.stats[5].zeros == 0 && isfinite(f.stats[5].sum_squares));
    assert_true(f.stats[0].zeros == 0 && f.stats[0].amax == fabsf(fp32(&f.update.gradient)[0]));
    finish(&f);
}

/* ---- sharing out ---- */

static int visits[2000];
static int64_t visited[SEGMENTS];

static void count_visit(const mixt__update *update, const mixt__segment_chunk *chunk)
{
    int64_t rest = update->segments[chunk->segment].count - chunk->begin;
    if (chunk->begin % MIXT_CPU_CHUNK == 0 && chunk->count == (rest < MIXT_CPU_CHUNK ? rest : MIXT_CPU_CHUNK)) {
        __atomic_fetch_add(&visits[chunk->index], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&visited[chunk->segment], chunk->count, __ATOMIC_RELAXED);
    }
}

static void test_every_chunk_runs_once(void **state)
{
    static const int64_t sizes[SEGMENTS] = {1, 17 * MIXT_CPU_CHUNK + 1, 3, 5 * MIXT_CPU_CHUNK,
                                            0, 1000 * MIXT_CPU_CHUNK};
    static const int teams[] = {1, 2, 3, 16, 17, 300};
    mixt__segment segments[SEGMENTS];
    for (int i = 0; i < SEGMENTS; i++)
        segments[i] = (mixt__segment){.count = sizes[i]};
    mixt__update update = {.segments = segments, .segment_count = SEGMENTS};
    int64_t chunks = mixt__update_chunks(segments, SEGMENTS, MIXT_CPU_CHUNK);
    assert_in_range(chunks, 1, sizeof visits / sizeof *visits);
    (void)state;
    for (size_t t = 0; t < sizeof teams / sizeof *teams; t++) {
        mixt__threads_set(teams[t]);
        memset(visits, 0, sizeof visits);
        memset(visited, 0, sizeof visited);
        mixt__segment_chunks_run(&update, count_visit);
        for (int64_t i = 0; i < chunks; i++)
            assert_int_equal(visits[i], 1);
        assert_memory_equal(visited, sizes, sizeof sizes);
    }
    update.segment_count = 0;
    mixt__segment_chunks_run(&update, count_visit);
    mixt__threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_momentum),
        cmocka_unit_test(test_adam),
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_lamb),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_skip_changes_nothing),
        cmocka_unit_test(test_every_chunk_runs_once),
        cmocka_unit_test(test_threads_give_same_bits),
        cmocka_unit_test(test_levels_give_same_bits),
        cmocka_unit_test(test_statistics),
    };
    return cmocka_run_group_tests_name("optimizer", tests, NULL, NULL);
}
