/* The passes that end a step, on the GPU against the CPU: from the same control block, weights, moments and working
 * copies must have the same bits (LAMB: within the error of its ratio); statistics count exactly and sum within FP64's
 * rounding. Skipped where there is no GPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "backend/cpu/update/training.h"
#include "base/alloc.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { SEGMENTS = 7, STEPS = 6, MOVING = 1001 };
static const int64_t counts[SEGMENTS] = {1, 7, 20000, 33, 16385, 100, 700001};
static const mixt_dtype lows[SEGMENTS] = {MIXT_DTYPE_NONE, MIXT_DTYPE_BF16, MIXT_DTYPE_BF16, MIXT_DTYPE_FP16,
                                          MIXT_DTYPE_FP16, MIXT_DTYPE_BF16, MIXT_DTYPE_BF16};

static mixt__device *gpu;
static mixt_dtype moments; // format that the tests run with now

/* ---- the same small training state in host memory and on the GPU ---- */

enum { MASTER, GRAD, MOMENT1, MOMENT2, STATISTICS, KEPT, BF16_COPY, FP16_COPY, ARENAS };

typedef struct fixture {
    mixt__segment segments[SEGMENTS];
    int32_t order[SEGMENTS];
    mixt__segment_stats stats[SEGMENTS];
    mixt__control control;
    mixt__update host, device;
    void *arenas[ARENAS], *mirrors[ARENAS];
    size_t bytes[ARENAS];
    uint64_t random;
} fixture;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void fill(fixture *f, float *array, float size)
{
    for (int i = 0; i < SEGMENTS; i++)
        for (int64_t j = 0; j < counts[i]; j++)
            array[f->segments[i].offset + j] = size * ((float)(next_random(&f->random) % 200001) * 1e-5f - 1.0f);
}

static void place(mixt__update *u, void *const *arenas)
{
    mixt__update_role *const roles[] = {&u->weight, &u->gradient, &u->moments[0], &u->moments[1]};
    for (int i = 0; i < 4; i++)
        *roles[i] = (mixt__update_role){.data = arenas[MASTER + i], .format = i < MOMENT1 ? MIXT_DTYPE_FP32 : moments};
    u->moments[1].stochastic = moments != MIXT_DTYPE_FP32;
    u->moments[1].key = 77;
    u->statistics = arenas[STATISTICS];
    u->kept = arenas[KEPT];
    u->statistics_count = MOVING;
    u->low[MIXT_DTYPE_BF16] = arenas[BF16_COPY];
    u->low[MIXT_DTYPE_FP16] = arenas[FP16_COPY];
}

static void start(fixture *f, mixt__optimizer optimizer)
{
    memset(f, 0, sizeof *f);
    f->random = 20240607;
    mixt__update *u = &f->host;
    for (int i = 0; i < SEGMENTS; i++) {
        f->segments[i] =
            (mixt__segment){.offset = u->total, .count = counts[i], .low = lows[i], .low_offset = u->total, .param = i};
        f->segments[i].first = u->total;
        f->segments[i].weight_decay = i % 2 ? 0.1f : 0.0f;
        f->segments[i].lr_scale = i == 4 ? 0.5f : 1.0f;
        f->order[i] = SEGMENTS - 1 - i;
        u->total += (counts[i] + 15) / 16 * 16;
    }
    u->segments = f->segments;
    u->segment_count = SEGMENTS;
    u->backward_order = f->order;
    u->optimizer = optimizer;
    u->schedule = (mixt__schedule){.kind = MIXT_SCHEDULE_COSINE, .lr = 0.01f, .warmup = 2, .total_steps = 20};
    u->scaling = (mixt__scaling){.enabled = true, .dynamic = true, .initial = 1024, .growth = 2, .backoff = 0.5f};
    u->scaling.interval = 4;
    u->accumulate = 2;
    u->gradient_factor = 1;
    f->device = *u;
    for (int i = 0; i < ARENAS; i++) {
        bool moment = i == MOMENT1 || i == MOMENT2;
        f->bytes[i] = (size_t)u->total * (moment ? mixt_dtype_size(moments) : i < BF16_COPY ? 4 : 2);
        f->arenas[i] = mixt__alloc(f->bytes[i]);
        f->mirrors[i] = mixt__device_alloc(gpu, f->bytes[i]);
    }
    place(&f->host, f->arenas);
    place(&f->device, f->mirrors);
    f->host.workspace = mixt__alloc(mixt__update_workspace(f->segments, SEGMENTS));
    f->device.workspace = mixt__device_alloc(gpu, mixt__device_update_workspace(gpu, f->segments, SEGMENTS));
    f->host.stats = f->stats;
    f->device.stats = mixt__device_alloc(gpu, sizeof f->stats);
    assert_int_equal(mixt__device_upload(gpu, f->device.stats, f->stats, sizeof f->stats),
                     MIXT_OK); // its padding is copied too
    f->host.control = &f->control;
    f->device.control = mixt__device_alloc(gpu, sizeof f->control);
    fill(f, f->arenas[MASTER], 1);
    for (int i = 0; i < ARENAS; i++)
        assert_int_equal(mixt__device_upload(gpu, f->mirrors[i], f->arenas[i], f->bytes[i]), MIXT_OK);
}

/** Once the settings are final. */
static void open_control(fixture *f)
{
    f->control = mixt__control_start(&f->host);
    assert_int_equal(mixt__device_upload(gpu, f->device.control, &f->control, sizeof f->control), MIXT_OK);
}

static void finish(fixture *f)
{
    for (int i = 0; i < ARENAS; i++) {
        mixt__free(f->arenas[i]);
        mixt__device_free(gpu, f->mirrors[i]);
    }
    mixt__free(f->host.workspace);
    mixt__device_free(gpu, f->device.workspace);
    mixt__device_free(gpu, f->device.stats);
    mixt__device_free(gpu, f->device.control);
}

/** Gradients, and running statistics as forward passes have moved them. */
static void send_gradients(fixture *f)
{
    float *statistics = f->arenas[STATISTICS];
    for (int i = 0; i < MOVING; i++)
        statistics[i] += (float)i;
    assert_int_equal(mixt__device_upload(gpu, f->mirrors[STATISTICS], statistics, f->bytes[STATISTICS]), MIXT_OK);
    assert_int_equal(mixt__device_upload(gpu, f->mirrors[GRAD], f->arenas[GRAD], f->bytes[GRAD]), MIXT_OK);
}

/* ---- comparing ---- */

static bool close_to(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fmax(fabs(a), fabs(b)) || (isnan(a) && isnan(b)) || a == b;
}

static void compare_stats(fixture *f)
{
    mixt__segment_stats got[SEGMENTS];
    assert_int_equal(mixt__device_download(gpu, got, f->device.stats, sizeof got), MIXT_OK);
    for (int i = 0; i < SEGMENTS; i++) {
        const mixt__segment_stats *e = &f->stats[i];
        assert_true(got[i].amax == e->amax && got[i].nonfinite == e->nonfinite && got[i].zeros == e->zeros);
        // Both add the same exact squares, in another order: at most one FP64 rounding each addition.
        assert_true(close_to(got[i].sum_squares, e->sum_squares, (double)counts[i] * DBL_EPSILON) ||
                    (!isfinite(got[i].sum_squares) && !isfinite(e->sum_squares)));
    }
}

/** Compares, and gives the CPU the GPU's block, so that a last bit there does not show in the weights. */
static void compare_control(fixture *f)
{
    mixt__control got, *e = &f->control;
    assert_int_equal(mixt__device_download(gpu, &got, f->device.control, sizeof got), MIXT_OK);
    const float pairs[][2] = {{got.scale, e->scale},         {got.used_scale, e->used_scale},
                              {got.seed, e->seed},           {got.lr, e->lr},
                              {got.inv_bias1, e->inv_bias1}, {got.inv_sqrt_bias2, e->inv_sqrt_bias2}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_true(close_to((double)pairs[i][0], (double)pairs[i][1], (double)FLT_EPSILON));
    assert_true(got.found_inf == e->found_inf && got.bad_segment == e->bad_segment && got.step == e->step);
    assert_true(got.skipped == e->skipped && got.clean_steps == e->clean_steps);
    assert_true(got.overflows_left == e->overflows_left);
    if (!e->found_inf) {
        assert_true(close_to((double)got.grad_norm, (double)e->grad_norm, (double)FLT_EPSILON));
        assert_true(close_to((double)got.grad_factor, (double)e->grad_factor, (double)FLT_EPSILON));
    }
    *e = got;
}

static void compare_arenas(fixture *f, double relative)
{
    for (int i = 0; i < ARENAS; i++) {
        void *got = mixt__alloc(f->bytes[i]);
        assert_int_equal(mixt__device_download(gpu, got, f->mirrors[i], f->bytes[i]), MIXT_OK);
        if (i == MASTER && relative > 0) {
            const float *a = got, *b = f->arenas[i];
            for (int64_t k = 0; k < f->host.total; k++)
                assert_true(fabsf(a[k] - b[k]) <= (float)relative * fmaxf(fabsf(b[k]), 1));
            memcpy(f->arenas[i], got, f->bytes[i]);
        } else if (i < BF16_COPY || relative == 0) {
            assert_memory_equal(got, f->arenas[i], f->bytes[i]);
        }
        mixt__free(got);
    }
}

static mixt_status issue(void *argument)
{
    const mixt__update *u = argument;
    mixt_status status = mixt__device_gradient_stats(gpu, u);
    if (status == MIXT_OK)
        status = mixt__device_step_control(gpu, u);
    return status == MIXT_OK ? mixt__device_optimizer_step(gpu, u) : status;
}

static void step_both(fixture *f)
{
    send_gradients(f);
    assert_int_equal(issue(&f->device), MIXT_OK);
    assert_int_equal(mixt__device_synchronize(gpu), MIXT_OK);
    assert_int_equal(mixt__cpu_gradient_stats(&f->host), MIXT_OK);
    assert_int_equal(mixt__cpu_step_control(&f->host), MIXT_OK);
    compare_stats(f);
    compare_control(f);
    assert_int_equal(mixt__cpu_optimizer_step(&f->host), MIXT_OK);
}

/* ---- tests ---- */

static const mixt__optimizer optimizers[] = {
    {.kind = MIXT_OPTIMIZER_SGD},
    {.kind = MIXT_OPTIMIZER_SGD, .momentum = 0.9f},
    {.kind = MIXT_OPTIMIZER_SGD, .momentum = 0.9f, .nesterov = true},
    {.kind = MIXT_OPTIMIZER_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f},
    {.kind = MIXT_OPTIMIZER_ADAMW, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f},
    {.kind = MIXT_OPTIMIZER_LAMB, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-6f},
    {.kind = MIXT_OPTIMIZER_ADAMW, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .others = 3}, // one of four ranks
};

static void check_optimizers(mixt_dtype format)
{
    moments = format;
    for (size_t k = 0; k < sizeof optimizers / sizeof optimizers[0]; k++) {
        // LAMB's ratio is a quotient of FP64 sums rounded once: one FP32 unit either way, in an update below
        // lr·ratio·8.
        double relative = optimizers[k].kind == MIXT_OPTIMIZER_LAMB ? 8 * 0.01 * (double)FLT_EPSILON : 0;
        fixture f;
        start(&f, optimizers[k]);
        f.host.clip_norm = f.device.clip_norm = k % 2 ? 1.0f : 0;
        f.host.clip_value = f.device.clip_value = k == 2 || k == 4 ? 0.3f : 0;
        open_control(&f);
        for (int t = 0; t < STEPS; t++) {
            fill(&f, f.arenas[GRAD], 1024);
            f.device.control_follows = t % 2 == 1;
            step_both(&f);
            compare_arenas(&f, relative);
        }
        finish(&f);
    }
}

static void test_optimizers(void **state)
{
    (void)state;
    check_optimizers(MIXT_DTYPE_FP32);
}

/** The second moment is rounded by the same random numbers. */
static void test_narrow_moments(void **state)
{
    (void)state;
    check_optimizers(MIXT_DTYPE_BF16);
    moments = MIXT_DTYPE_FP32;
}

static void test_skip_changes_nothing(void **state)
{
    (void)state;
    const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t k = 0; k < sizeof optimizers / sizeof optimizers[0]; k++) {
        fixture f;
        start(&f, optimizers[k]);
        open_control(&f);
        for (int t = 0; t < 3; t++) {
            float *g = f.arenas[GRAD];
            fill(&f, g, 64);
            g[f.segments[2].offset + 19999] = g[f.segments[4].offset + 16384] = bad[t];
            step_both(&f);
            assert_true(f.control.found_inf == 1 && f.control.bad_segment == 4 && f.control.skipped == t + 1);
            compare_arenas(&f, 0); // the CPU changed nothing
        }
        finish(&f);
    }
}

static void test_statistics(void **state)
{
    (void)state;
    fixture f;
    start(&f, optimizers[0]);
    open_control(&f);
    float *g = f.arenas[GRAD];
    fill(&f, g, 3);
    g[f.segments[2].offset] = -0.0f;
    g[f.segments[2].offset + 19999] = -77.0f;
    g[f.segments[4].offset + 16384] = NAN;
    g[f.segments[4].offset + 3] = -INFINITY;
    g[f.segments[5].offset + 3] = FLT_MAX;
    g[f.segments[5].offset + 4] = 1e-45f;
    memset(g + f.segments[6].offset, 0, 20000 * sizeof(float));
    send_gradients(&f);
    assert_int_equal(mixt__device_gradient_stats(gpu, &f.device), MIXT_OK);
    assert_int_equal(mixt__cpu_gradient_stats(&f.host), MIXT_OK);
    compare_stats(&f);
    finish(&f);
}

/** Chunks of all segments, as segments. */
static int64_t cut_chunks(const fixture *f, mixt__segment *chunks)
{
    int64_t count = 0;
    for (int i = 0; i < SEGMENTS; i++)
        for (int64_t done = 0; done < counts[i]; done += gpu->backend->update_chunk) {
            int64_t left = counts[i] - done;
            chunks[count++] =
                (mixt__segment){.offset = f->segments[i].offset + done,
                                .count = left < gpu->backend->update_chunk ? left : gpu->backend->update_chunk,
                                .low = MIXT_DTYPE_NONE};
        }
    return count;
}

/** A segment's statistics have the same bits when its chunks are measured apart and put together on the host: what
 *  ranks do that share gradients out. */
static void test_joined_statistics(void **state)
{
    (void)state;
    enum { CHUNKS = 128 };
    mixt__segment chunks[CHUNKS];
    mixt__segment_stats whole[SEGMENTS], parts[CHUNKS], joined;
    fixture f;
    start(&f, optimizers[0]);
    open_control(&f);
    fill(&f, f.arenas[GRAD], 3);
    send_gradients(&f);
    assert_int_equal(mixt__device_gradient_stats(gpu, &f.device), MIXT_OK);
    assert_int_equal(mixt__device_download(gpu, whole, f.device.stats, sizeof whole), MIXT_OK);
    mixt__update u = f.device;
    u.segments = chunks;
    u.segment_count = cut_chunks(&f, chunks);
    u.backward_order = NULL;
    assert_true(u.segment_count <= CHUNKS);
    u.stats = mixt__device_alloc(gpu, (size_t)u.segment_count * sizeof *u.stats);
    u.workspace = mixt__device_alloc(gpu, mixt__device_update_workspace(gpu, chunks, u.segment_count));
    assert_int_equal(mixt__device_gradient_stats(gpu, &u), MIXT_OK);
    assert_int_equal(mixt__device_download(gpu, parts, u.stats, (size_t)u.segment_count * sizeof *parts), MIXT_OK);
    const mixt__segment_stats *at = parts;
    for (int i = 0; i < SEGMENTS; i++) {
        int64_t count = mixt__update_chunks(&f.segments[i], 1, gpu->backend->update_chunk);
        gpu->backend->join_stats(at, count, &joined);
        at += count;
        assert_memory_equal(&joined.sum_squares, &whole[i].sum_squares, sizeof joined.sum_squares);
        assert_true(joined.amax == whole[i].amax && joined.nonfinite == whole[i].nonfinite);
        assert_true(joined.zeros == whole[i].zeros);
    }
    mixt__device_free(gpu, u.stats);
    mixt__device_free(gpu, u.workspace);
    finish(&f);
}

/** Recorded and replayed, the passes give the bits that they give as they come. */
static void test_replay(void **state)
{
    (void)state;
    fixture f;
    start(&f, optimizers[4]);
    f.host.clip_norm = f.device.clip_norm = 1.0f;
    f.device.control_follows = true;
    open_control(&f);
    fill(&f, f.arenas[GRAD], 1024);
    step_both(&f);
    mixt__recording *recording = NULL;
    assert_int_equal(mixt__device_record(gpu, issue, &f.device, &recording), MIXT_OK);
    compare_arenas(&f, 0);
    for (int t = 0; t < 3; t++) {
        fill(&f, f.arenas[GRAD], 512);
        send_gradients(&f);
        assert_int_equal(mixt__device_replay(gpu, recording), MIXT_OK);
        assert_int_equal(mixt__device_synchronize(gpu), MIXT_OK);
        assert_int_equal(mixt__cpu_gradient_stats(&f.host), MIXT_OK);
        assert_int_equal(mixt__cpu_step_control(&f.host), MIXT_OK);
        compare_control(&f);
        assert_int_equal(mixt__cpu_optimizer_step(&f.host), MIXT_OK);
        compare_arenas(&f, 0);
    }
    mixt__device_forget(gpu, recording);
    finish(&f);
}

/* ---- the workspace ---- */

enum { MANY = 200000, BEHIND = 4096 }; // parameters of one element; bytes behind the workspace that nobody may touch

typedef struct many {
    mixt__segment *segments;
    mixt__segment_stats *stats;
    mixt__update update; // device memory, without working copies and moments
    size_t bytes;        // of the workspace
} many;

static void place_workspace(many *m, const unsigned char *behind)
{
    m->update.workspace = mixt__device_alloc(gpu, m->bytes + BEHIND);
    assert_non_null(m->update.workspace);
    assert_int_equal(mixt__device_zero(gpu, m->update.workspace, m->bytes), MIXT_OK);
    assert_int_equal(mixt__device_upload(gpu, (char *)m->update.workspace + m->bytes, behind, BEHIND), MIXT_OK);
}

static many start_many(void)
{
    many m = {.segments = mixt__alloc(MANY * sizeof *m.segments), .stats = mixt__alloc(MANY * sizeof *m.stats)};
    mixt__update *u = &m.update;
    for (int32_t i = 0; i < MANY; i++)
        m.segments[i] =
            (mixt__segment){.offset = 16 * i, .count = 1, .low = MIXT_DTYPE_NONE, .lr_scale = 1, .param = i};
    *u = (mixt__update){.segments = m.segments, .segment_count = MANY, .total = 16 * (int64_t)MANY, .accumulate = 1};
    u->optimizer.kind = MIXT_OPTIMIZER_SGD;
    u->schedule.lr = 1;
    mixt__update_role *const roles[] = {&u->weight, &u->gradient};
    for (int i = 0; i < 2; i++) {
        *roles[i] = (mixt__update_role){.data = mixt__device_alloc(gpu, (size_t)u->total * sizeof(float)),
                                        .format = MIXT_DTYPE_FP32};
        assert_int_equal(mixt__device_zero(gpu, roles[i]->data, (size_t)u->total * sizeof(float)), MIXT_OK);
    }
    u->stats = mixt__device_alloc(gpu, MANY * sizeof *u->stats);
    u->control = mixt__device_alloc(gpu, sizeof *u->control);
    mixt__control control = mixt__control_start(u);
    assert_int_equal(mixt__device_upload(gpu, u->control, &control, sizeof control), MIXT_OK);
    m.bytes = mixt__device_update_workspace(gpu, m.segments, MANY);
    return m;
}

/** An update of gradients that are all 0: every segment is seen, and what lies behind the workspace stays. */
static void update_many(many *m, const unsigned char *behind)
{
    unsigned char found[BEHIND];
    assert_int_equal(issue(&m->update), MIXT_OK);
    assert_int_equal(mixt__device_synchronize(gpu), MIXT_OK);
    assert_int_equal(mixt__device_download(gpu, m->stats, m->update.stats, MANY * sizeof *m->stats), MIXT_OK);
    for (int i = 0; i < MANY; i++)
        assert_true(m->stats[i].zeros == 1 && m->stats[i].nonfinite == 0);
    assert_int_equal(mixt__device_download(gpu, found, (char *)m->update.workspace + m->bytes, BEHIND), MIXT_OK);
    assert_memory_equal(found, behind, BEHIND);
}

/** The passes use the workspace that they asked for, which is part of a trainer's plan, and no device memory beside
 *  it. A workspace that is given back takes what was kept in it along, also when its address is handed out again. */
static void test_all_memory_is_the_workspace(void **state)
{
    (void)state;
    enum { PAGES = 4 << 20 }; // what the driver may take at once; the table of MANY segments has more than twice that
    unsigned char behind[BEHIND];
    memset(behind, 0xa5, sizeof behind);
    many m = start_many();
    assert_true(m.bytes > mixt__update_workspace(m.segments, MANY) + 2 * PAGES);
    place_workspace(&m, behind);
    assert_int_equal(mixt__device_synchronize(gpu), MIXT_OK);
    size_t before = mixt__device_available(gpu);
    update_many(&m, behind);
    assert_true(mixt__device_available(gpu) + PAGES > before);
    m.segments[7].weight_decay = 0.5f; // another table, in the same place
    update_many(&m, behind);
    mixt__device_free(gpu, m.update.workspace);
    place_workspace(&m, behind);
    update_many(&m, behind);
    void *const all[] = {m.update.workspace, m.update.weight.data, m.update.gradient.data, m.update.stats,
                         m.update.control};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        mixt__device_free(gpu, all[i]);
    mixt__free(m.segments);
    mixt__free(m.stats);
}

int main(void)
{
    const mixt__backend *cuda;
    if (mixt__backend_cuda(&cuda) != MIXT_OK || cuda->open(0, 0, &gpu) != MIXT_OK) {
        print_message("skipped: %s\n", mixt_error_text());
        return 0;
    }
    moments = MIXT_DTYPE_FP32;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_narrow_moments),
        cmocka_unit_test(test_skip_changes_nothing),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_joined_statistics),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_all_memory_is_the_workspace), // its kernels are loaded by now
    };
    return cmocka_run_group_tests_name("update on the GPU", tests, NULL, NULL);
}
