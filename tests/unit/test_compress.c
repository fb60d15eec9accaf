/* Compressed exchanges against a plain reference in FP64: what is sent, what is kept, and that nothing gets lost. */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/threads.h"
#include "dist/compress.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PIECES = 4 };

/** Two matrices, a vector, and a matrix that is too small for factors; gaps between them as in an arena. */
static const struct {
    int64_t offset, rows, columns;
} shapes[PIECES] = {{0, 37, 300}, {11104, 1, 50}, {11168, 130, 20}, {13776, 2, 3}};
enum { TOTAL = 13792 };

/** One rank, which is then the mean of all. Several of them: test_group. */
typedef struct fixture {
    mixt__compressor c;
    void *blocks[MIXT_COMPRESS_BLOCKS];
    float *had, *rest;      // what there is to send, and what was not sent
    float *before, *common; // the weights of all before and after
} fixture;

static fixture open_fixture(const char *how)
{
    fixture f = {.c = {.ranks = 1, .total = TOTAL, .bucket = 1000}};
    size_t sizes[MIXT_COMPRESS_BLOCKS];
    assert_int_equal(mixt__compression_parse(how, &f.c.how), MIXT_OK);
    mixt__compress_piece pieces[PIECES];
    for (int i = 0; i < PIECES; i++)
        pieces[i] = mixt__compress_add(&f.c.how, &f.c.counts, shapes[i].offset, shapes[i].rows, shapes[i].columns);
    mixt__compress_sizes(&f.c, sizes);
    for (int i = 0; i < MIXT_COMPRESS_BLOCKS; i++)
        f.blocks[i] = mixt__alloc(sizes[i] + 1);
    f.c.pieces = f.blocks[MIXT_COMPRESS_PIECES];
    f.c.factors = f.blocks[MIXT_COMPRESS_FACTORS];
    f.c.workspace = f.blocks[MIXT_COMPRESS_WORKSPACE];
    memcpy(f.c.pieces, pieces, sizeof pieces);
    float **const arenas[] = {&f.had, &f.rest, &f.before, &f.common};
    for (int i = 0; i < 4; i++)
        *arenas[i] = mixt__alloc(TOTAL * sizeof(float));
    return f;
}

static void close_fixture(fixture *f)
{
    float *const arenas[] = {f->had, f->rest, f->before, f->common};
    for (int i = 0; i < MIXT_COMPRESS_BLOCKS; i++)
        mixt__free(f->blocks[i]);
    for (int i = 0; i < 4; i++)
        mixt__free(arenas[i]);
}

/** An update of the rank's weights: its differences grow. */
static void draw(fixture *f, uint64_t update)
{
    mixt__rng rng = mixt__rng_start(mixt__rng_key(7, update, 0));
    for (int i = 0; i < PIECES; i++)
        for (int64_t k = 0; k < shapes[i].rows * shapes[i].columns; k++)
            f->rest[shapes[i].offset + k] += mixt__rng_normal(&rng);
}

static void run_as(fixture *f, bool whole)
{
    memcpy(f->had, f->rest, TOTAL * sizeof(float));
    memcpy(f->before, f->common, TOTAL * sizeof(float));
    assert_int_equal(mixt__compress_exchange(&f->c, f->rest, f->common, whole), MIXT_OK);
}

static void run(fixture *f)
{
    run_as(f, false);
}

/** By how much the common weights have moved. */
static double sent(const fixture *f, int64_t at)
{
    return (double)f->before[at] - (double)f->common[at];
}

/** What is sent and what is kept make up what there was; what travels whole keeps nothing. */
static void check_nothing_lost(const fixture *f)
{
    for (int i = 0; i < PIECES; i++)
        for (int64_t k = 0; k < shapes[i].rows * shapes[i].columns; k++) {
            int64_t at = shapes[i].offset + k;
            assert_true(fabs((double)f->had[at] - (double)f->rest[at] - sent(f, at)) <= 1e-5);
            assert_true(!f->c.pieces[i].whole || f->rest[at] == 0);
        }
}

/* ---- top-k ---- */

static const float *sorted; // of the comparison

static int larger_first(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    float x = fabsf(sorted[i]), y = fabsf(sorted[k]);
    return x > y ? -1 : x < y ? 1 : i < k ? -1 : 1;
}

static int by_index(const void *a, const void *b)
{
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    return i < k ? -1 : i > k;
}

/** The same choice by sorting. */
static void check_selection(const float *values, int64_t count, int64_t kept)
{
    uint32_t *order = mixt__alloc((size_t)count * sizeof *order);
    mixt__compress_pair *pairs = mixt__alloc((size_t)kept * sizeof *pairs);
    uint32_t *bins = mixt__alloc(sizeof *bins * MIXT_SELECT_CHUNKS * MIXT_SELECT_BINS);
    for (int64_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    sorted = values;
    qsort(order, (size_t)count, sizeof *order, larger_first);
    qsort(order, (size_t)kept, sizeof *order, by_index);
    mixt__compress_select(values, count, kept, pairs, bins);
    for (int64_t i = 0; i < kept; i++) {
        assert_int_equal(pairs[i].index, order[i]);
        assert_memory_equal(&pairs[i].value, &values[order[i]], sizeof(float));
    }
    mixt__free(order);
    mixt__free(pairs);
    mixt__free(bins);
}

static void test_selection(void **state)
{
    enum { COUNT = 70000 };
    float *values = mixt__alloc(COUNT * sizeof *values);
    mixt__rng rng = mixt__rng_start(3);
    (void)state;
    for (int i = 0; i < COUNT; i++)
        values[i] = mixt__rng_normal(&rng);
    check_selection(values, COUNT, 700);
    check_selection(values, COUNT, 1);
    check_selection(values, COUNT, COUNT);
    check_selection(values, 5, 2);
    for (int i = 0; i < COUNT; i++) // many that are equal, of both signs, over the borders of chunks
        values[i] = (float)((i * 7) % 5) * (i % 2 ? 1.0f : -1.0f);
    check_selection(values, COUNT, 20000);
    memset(values, 0, COUNT * sizeof *values);
    check_selection(values, COUNT, 9);
    mixt__free(values);
}

static void test_topk(void **state)
{
    (void)state;
    fixture f = open_fixture("topk:1%");
    assert_int_equal(f.c.counts.pairs, 111 + 26 + 1);
    assert_int_equal(f.c.counts.whole, 50);
    for (uint64_t update = 0; update < 4; update++) {
        draw(&f, update);
        run(&f);
        check_nothing_lost(&f);
        for (int i = 0; i < PIECES; i += 2) { // the largest are sent, and nothing else
            double least = INFINITY, most = 0;
            int64_t count = 0;
            for (int64_t k = 0; k < shapes[i].rows * shapes[i].columns; k++) {
                int64_t at = shapes[i].offset + k;
                bool kept = f.rest[at] != 0;
                double size = fabs((double)f.had[at]);
                count += !kept;
                least = !kept && size < least ? size : least;
                most = kept && size > most ? size : most;
            }
            assert_int_equal(count, f.c.pieces[i].kept);
            assert_true(least >= most);
        }
    }
    close_fixture(&f);
}

/* ---- PowerSGD ---- */

static double at_of(const double *m, int64_t columns, int64_t i, int64_t j)
{
    return m[i * columns + j];
}

/** One step in FP64: what P·Pᵀ·m is for the span of m·q. */
static void project(const double *m, int64_t rows, int64_t columns, const float *q, int64_t rank, double *to)
{
    double *p = calloc((size_t)(rank * rows), sizeof *p);
    for (int64_t k = 0; k < rank; k++) {
        double *row = p + k * rows;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                row[i] += at_of(m, columns, i, j) * (double)q[k * columns + j];
        for (int64_t o = 0; o < 2 * k; o++) {
            const double *other = p + o % k * rows;
            double along = 0;
            for (int64_t i = 0; i < rows; i++)
                along += row[i] * other[i];
            for (int64_t i = 0; i < rows; i++)
                row[i] -= along * other[i];
        }
        double length = 0;
        for (int64_t i = 0; i < rows; i++)
            length += row[i] * row[i];
        for (int64_t i = 0; i < rows; i++)
            row[i] /= sqrt(length);
    }
    memset(to, 0, (size_t)(rows * columns) * sizeof *to);
    for (int64_t k = 0; k < rank; k++)
        for (int64_t j = 0; j < columns; j++) {
            double right = 0;
            for (int64_t i = 0; i < rows; i++)
                right += at_of(m, columns, i, j) * p[k * rows + i];
            for (int64_t i = 0; i < rows; i++)
                to[i * columns + j] += right * p[k * rows + i];
        }
    free(p);
}

static void test_powersgd(void **state)
{
    enum { RANK = 4 };
    (void)state;
    fixture f = open_fixture("powersgd:4");
    assert_int_equal(f.c.counts.left, RANK * (37 + 130));
    assert_int_equal(f.c.counts.right, RANK * (300 + 20));
    double *m = calloc(TOTAL, sizeof *m), *expected = calloc(TOTAL, sizeof *expected);
    float *q = calloc((size_t)f.c.counts.right, sizeof *q);
    for (uint64_t update = 0; update < 4; update++) {
        draw(&f, update);
        memcpy(q, f.c.factors, (size_t)f.c.counts.right * sizeof *q);
        run(&f);
        check_nothing_lost(&f);
        for (int i = 0; i < PIECES && update; i += 2) { // the directions of the first are drawn inside
            int64_t count = shapes[i].rows * shapes[i].columns, offset = shapes[i].offset;
            for (int64_t k = 0; k < count; k++)
                m[k] = (double)f.had[offset + k];
            project(m, shapes[i].rows, shapes[i].columns, q + f.c.pieces[i].right, RANK, expected);
            for (int64_t k = 0; k < count; k++)
                assert_true(fabs(expected[k] - sent(&f, offset + k)) <= 2e-5);
        }
    }
    free(m);
    free(expected);
    free(q);
    close_fixture(&f);
}

/** A matrix of low rank comes through whole once its directions are known. */
static void test_low_rank(void **state)
{
    (void)state;
    fixture f = open_fixture("powersgd:2");
    for (int update = 0; update < 2; update++) {
        for (int64_t i = 0; i < shapes[0].rows; i++)
            for (int64_t j = 0; j < shapes[0].columns; j++)
                f.rest[i * shapes[0].columns + j] += (float)(i + 1) * sinf((float)j) / 37.0f;
        run(&f);
    }
    for (int64_t k = 0; k < shapes[0].rows * shapes[0].columns; k++)
        assert_true(fabs((double)f.rest[k]) < 1e-5);
    close_fixture(&f);
}

/* ---- both ---- */

/** In an exchange of all, what was kept before goes along; factors stay. */
static void test_whole(void **state)
{
    static const char *const hows[] = {"topk:1%", "powersgd:4"};
    (void)state;
    for (int h = 0; h < 2; h++) {
        fixture f = open_fixture(hows[h]);
        draw(&f, 0);
        run(&f);
        size_t factors = (size_t)f.c.counts.right * sizeof(float);
        float *q = mixt__alloc(factors + 1);
        memcpy(q, f.c.factors, factors);
        draw(&f, 1);
        run_as(&f, true);
        check_nothing_lost(&f);
        for (int64_t i = 0; i < TOTAL; i++)
            assert_true(f.rest[i] == 0);
        assert_memory_equal(q, f.c.factors, factors);
        mixt__free(q);
        close_fixture(&f);
    }
}

/** The bits do not depend on the number of threads. */
static void test_threads(void **state)
{
    static const char *const hows[] = {"topk:1%", "powersgd:4"};
    (void)state;
    for (int h = 0; h < 2; h++) {
        fixture a = open_fixture(hows[h]), b = open_fixture(hows[h]);
        for (uint64_t update = 0; update < 2; update++) {
            draw(&a, update);
            draw(&b, update);
            mixt__threads_set(1);
            run(&a);
            mixt__threads_set(3);
            run(&b);
            mixt__threads_set(0);
        }
        assert_memory_equal(a.common, b.common, TOTAL * sizeof(float));
        assert_memory_equal(a.rest, b.rest, TOTAL * sizeof(float));
        close_fixture(&a);
        close_fixture(&b);
    }
}

static void test_parse(void **state)
{
    static const char *const bad[] = {
        "",          "topk",       "topk:",       "topk:1",      "topk:0%",      "topk:101%", "topk:-1%", "topk:nan%",
        "powersgd:", "powersgd:0", "powersgd:4%", "powersgd:65", "powersgd:1.5", "gzip:1%",   "none "};
    mixt__compression how;
    (void)state;
    assert_int_equal(mixt__compression_parse("none", &how), MIXT_OK);
    assert_int_equal(how.kind, MIXT_COMPRESS_NONE);
    assert_int_equal(mixt__compression_parse("topk:0.1%", &how), MIXT_OK);
    assert_true(how.kind == MIXT_COMPRESS_TOPK && how.percent == 0.1);
    assert_int_equal(mixt__compression_parse("powersgd:64", &how), MIXT_OK);
    assert_true(how.kind == MIXT_COMPRESS_POWERSGD && how.rank == 64);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(mixt__compression_parse(bad[i], &how), MIXT_ERROR_CONFIG);
}

static void test_after(void **state)
{
    static const char *const bad[] = {"", "%", "-1", "1.5", "101%", "10 %", "nan", "1e400", "0x", "5u"};
    mixt__compression how = {.kind = MIXT_COMPRESS_TOPK};
    int64_t updates = -1;
    (void)state;
    assert_int_equal(mixt__compress_after_parse("auto", &how, 15, &updates), MIXT_OK);
    assert_int_equal(updates, 2); // 1.5, rounded up
    how.kind = MIXT_COMPRESS_NONE;
    assert_int_equal(mixt__compress_after_parse("auto", &how, 15, &updates), MIXT_OK);
    assert_int_equal(updates, 0);
    assert_int_equal(mixt__compress_after_parse("30%", &how, 7, &updates), MIXT_OK);
    assert_int_equal(updates, 3); // 2.1, rounded up
    assert_int_equal(mixt__compress_after_parse("100%", &how, 7, &updates), MIXT_OK);
    assert_int_equal(updates, 7);
    assert_int_equal(mixt__compress_after_parse("0", &how, 7, &updates), MIXT_OK);
    assert_int_equal(updates, 0);
    assert_int_equal(mixt__compress_after_parse("500", &how, 7, &updates), MIXT_OK);
    assert_int_equal(updates, 500); // the run may become longer
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(mixt__compress_after_parse(bad[i], &how, 7, &updates), MIXT_ERROR_CONFIG);
    assert_int_equal(mixt__compress_after_parse("1%", &how, INT64_MAX, &updates), MIXT_ERROR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),    cmocka_unit_test(test_selection), cmocka_unit_test(test_topk),
        cmocka_unit_test(test_powersgd), cmocka_unit_test(test_low_rank),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_whole),    cmocka_unit_test(test_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
