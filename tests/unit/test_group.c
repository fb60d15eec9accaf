/* Groups of ranks as threads of one process: what they tell each other, sums and their bits, compressed exchanges, sums
 * beside the backward pass, ranks that fail. */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/threads.h"
#include "dist/compress.h"
#include "dist/keepalive.h"
#include "dist/overlap.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "../support/rank_threads.h"

enum { COUNT = 5000, BUCKET = 900 };

/* ---- telling ---- */

static void tell(rank *r)
{
    int all[MOST], mine = 10 * r->index, word = r->index;
    char text[32];
    CHECK(r, mixt__group_gather(r->group, &mine, sizeof mine, all, 1) == MIXT_OK);
    for (int i = 0; i < r->size; i++)
        CHECK(r, all[i] == 10 * i);
    CHECK(r, mixt__group_broadcast(r->group, &word, sizeof word, 1) == MIXT_OK && word == 0);
    CHECK(r, mixt__group_agree(r->group, MIXT_OK) == MIXT_OK);
    CHECK(r, mixt__group_same(r->group, "build", "one") == MIXT_OK);
    snprintf(text, sizeof text, "build %d", r->index == 1);
    CHECK(r, mixt__group_same(r->group, "build", text) == MIXT_ERROR_CONFIG);
    CHECK(r, strstr(mixt_error_text(), "rank 0 has build 0, rank 1 has build 1"));
    mixt_status mine_is = r->index == r->size - 1 ? mixt__fail(MIXT_ERROR_DATA, "no file") : MIXT_OK;
    snprintf(text, sizeof text, "rank %d: no file", r->size - 1);
    CHECK(r, mixt__group_agree(r->group, mine_is) == MIXT_ERROR_DATA && !strcmp(mixt_error_text(), text));
    CHECK(r, mixt__group_agree(r->group, MIXT_OK) == MIXT_OK); // what all know of breaks nothing
}

static void test_telling(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST; size++)
        run(size, tell, NULL);
}

/* ---- sums ---- */

static void draw(float *data, int part)
{
    mixt__rng rng = mixt__rng_start(mixt__rng_key(5, 0, (uint64_t)part));
    for (int i = 0; i < COUNT; i++)
        data[i] = mixt__rng_normal(&rng);
}

/** The bits of one process, bytes as they are counted, whatever the bucket. */
static void sum(rank *r)
{
    static const int64_t buckets[] = {COUNT, BUCKET, 64};
    mixt_dtype format = *(const mixt_dtype *)r->argument;
    float *data = mixt__alloc(COUNT * sizeof *data), *part = mixt__alloc(COUNT * sizeof *part);
    float *expected = mixt__alloc(COUNT * sizeof *expected);
    for (int i = 0; i < r->size; i++) {
        draw(part, i);
        mixt__sum_part(expected, part, COUNT, format, i, i + 1 == r->size);
    }
    for (size_t b = 0; b < sizeof buckets / sizeof buckets[0]; b++) {
        void *workspace = mixt__alloc(mixt__group_sum_bytes(r->size, buckets[b], format));
        int64_t before = r->group->bytes;
        draw(data, r->index);
        CHECK(r, mixt__group_sum(r->group, data, COUNT, buckets[b], format, workspace) == MIXT_OK);
        CHECK(r, !memcmp(data, expected, COUNT * sizeof *data));
        CHECK(r, r->group->bytes - before == mixt__group_sum_sent(r->index, r->size, COUNT, buckets[b], format));
        mixt__free(workspace);
    }
    mixt__free(data);
    mixt__free(part);
    mixt__free(expected);
}

static void test_sums(void **state)
{
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16, MIXT_DTYPE_FP16};
    (void)state;
    for (int size = 2; size <= MOST; size++)
        for (int f = 0; f < 3; f++)
            run(size, sum, &formats[f]);
}

/** A slice of the sum to each, and slices back to all. */
static void reduce(rank *r)
{
    int64_t cuts[MOST + 1] = {0};
    for (int i = 0; i <= r->size; i++)
        cuts[i] = i == r->size ? COUNT : i * 1111; // uneven
    float *data = mixt__alloc(COUNT * sizeof *data), *part = mixt__alloc(COUNT * sizeof *part);
    float *expected = mixt__alloc(COUNT * sizeof *expected), *all = mixt__alloc(COUNT * sizeof *all);
    void *workspace = mixt__alloc(mixt__group_reduce_bytes(r->size, BUCKET, MIXT_DTYPE_FP32));
    int64_t begin = cuts[r->index], count = cuts[r->index + 1] - begin;
    for (int i = 0; i < r->size; i++) {
        draw(part, i);
        mixt__sum_part(expected, part, COUNT, MIXT_DTYPE_FP32, i, i + 1 == r->size);
    }
    draw(data, r->index);
    CHECK(r, mixt__group_reduce(r->group, data, cuts, BUCKET, MIXT_DTYPE_FP32, workspace, data + begin) == MIXT_OK);
    CHECK(r, !memcmp(data + begin, expected + begin, (size_t)count * sizeof *data));
    CHECK(r, mixt__group_collect_parts(r->group, data + begin, r->index ? NULL : all, cuts, sizeof *data) == MIXT_OK);
    CHECK(r, r->index || !memcmp(all, expected, COUNT * sizeof *all));
    CHECK(r, mixt__group_gather_parts(r->group, data, cuts, sizeof *data) == MIXT_OK);
    CHECK(r, !memcmp(data, expected, COUNT * sizeof *data));
    mixt__free(data);
    mixt__free(part);
    mixt__free(expected);
    mixt__free(all);
    mixt__free(workspace);
}

static void test_reduce(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST; size++)
        run(size, reduce, NULL);
}

/* ---- parts ---- */

static int sum_of(rank *r, mixt__group *g, int mine)
{
    int all[MOST] = {0}, total = 0;
    CHECK(r, mixt__group_gather(g, &mine, sizeof mine, all, 1) == MIXT_OK);
    for (int i = 0; i < g->size; i++)
        total += all[i];
    return total;
}

/** A grid of 2 by 2: rows and columns sum apart, rows are closed first. */
static void part(rank *r)
{
    mixt__group *row, *column, *none;
    int x = r->index % 2, y = r->index / 2;
    float data[2] = {(float)r->index, 10};
    char workspace[4096];
    CHECK(r, mixt__group_split(r->group, y, -r->index, &row) == MIXT_OK); // the later rank first
    CHECK(r, mixt__group_split(r->group, x, 0, &column) == MIXT_OK);
    CHECK(r, row && row->size == 2 && row->rank == 1 - x && column && column->size == 2 && column->rank == y);
    if (r->problem[0])
        return;
    CHECK(r, mixt__group_sum(row, data, 2, 64, MIXT_DTYPE_FP32, workspace) == MIXT_OK);
    CHECK(r, data[0] == (float)(4 * y + 1) && data[1] == 20);
    CHECK(r, mixt__group_sum(column, data, 2, 64, MIXT_DTYPE_FP32, workspace) == MIXT_OK);
    CHECK(r, data[0] == 6 && data[1] == 40);
    CHECK(r, mixt__group_same(column, "row", y ? "1" : "0") == MIXT_ERROR_CONFIG);
    CHECK(r, strstr(mixt_error_text(), x ? "rank 1 has 0, rank 3 has 1" : "rank 0 has 0, rank 2 has 1"));
    mixt__group_close(row);
    CHECK(r, sum_of(r, column, r->index) == 2 * x + 2 && sum_of(r, r->group, r->index) == 6);
    mixt__group_close(column);
    CHECK(r, mixt__group_split(r->group, r->index - 1, 0, &none) == MIXT_ERROR_ARGUMENT && !none);
    CHECK(r, sum_of(r, r->group, 1) == 4);
}

static void test_parts(void **state)
{
    (void)state;
    run(4, part, NULL);
}

/* ---- beside the backward pass ---- */

typedef struct beside {
    rank *rank;
    float *data;
    void *workspace;
} beside;

static mixt_status sum_bucket(void *user, const mixt__bucket *b)
{
    beside *s = user;
    return mixt__group_sum(s->rank->group, s->data + b->begin, b->count, BUCKET, MIXT_DTYPE_FP32, s->workspace);
}

static void overlap(rank *r)
{
    mixt__bucket buckets[COUNT / BUCKET + 1];
    beside s = {.rank = r, .data = mixt__alloc(COUNT * sizeof(float))};
    float *expected = mixt__alloc(COUNT * sizeof *expected), *part = mixt__alloc(COUNT * sizeof *part);
    int64_t count = 0;
    mixt__overlap *o;
    s.workspace = mixt__alloc(mixt__group_sum_bytes(r->size, BUCKET, MIXT_DTYPE_FP32));
    for (int64_t begin = 0; begin < COUNT; begin += BUCKET, count++)
        buckets[count] = (mixt__bucket){
            .begin = begin, .count = COUNT - begin < BUCKET ? COUNT - begin : BUCKET, .ready = 10 * count};
    for (int i = 0; i < r->size; i++) {
        draw(part, i);
        mixt__sum_part(expected, part, COUNT, MIXT_DTYPE_FP32, i, i + 1 == r->size);
    }
    CHECK(r, mixt__overlap_start(r->group, sum_bucket, &s, &o) == MIXT_OK);
    for (int update = 0; update < 3; update++) {
        draw(s.data, r->index);
        mixt__overlap_begin(o, buckets, count);
        for (int64_t mark = 0; mark < 35; mark += 7)
            mixt__overlap_passed(o, mark);
        CHECK(r, mixt__overlap_finish(o) == MIXT_OK);
        CHECK(r, !memcmp(s.data, expected, COUNT * sizeof *expected));
        for (int64_t i = 0; i < count; i++)
            CHECK(r, buckets[i].allowed <= buckets[i].begun && buckets[i].begun <= buckets[i].ended);
    }
    mixt__overlap_stop(o);
    mixt__free(s.data);
    mixt__free(s.workspace);
    mixt__free(expected);
    mixt__free(part);
}

static void test_overlap(void **state)
{
    (void)state;
    run(3, overlap, NULL);
}

/* ---- compressed ---- */

typedef struct compressed {
    mixt__compressor c;
    void *blocks[MIXT_COMPRESS_BLOCKS];
} compressed;

/** A matrix of 60 by 80 and a vector of 200. */
static compressed open_compressed(const char *how, int ranks, mixt__group *group)
{
    compressed s = {.c = {.ranks = ranks, .total = COUNT, .bucket = 100, .group = group}};
    size_t sizes[MIXT_COMPRESS_BLOCKS];
    mixt__compress_piece pieces[2];
    (void)mixt__compression_parse(how, &s.c.how);
    pieces[0] = mixt__compress_add(&s.c.how, &s.c.counts, 0, 60, 80);
    pieces[1] = mixt__compress_add(&s.c.how, &s.c.counts, 4800, 1, 200);
    mixt__compress_sizes(&s.c, sizes);
    for (int i = 0; i < MIXT_COMPRESS_BLOCKS; i++)
        s.blocks[i] = sizes[i] ? mixt__alloc(sizes[i]) : NULL;
    s.c.pieces = s.blocks[MIXT_COMPRESS_PIECES];
    s.c.factors = s.blocks[MIXT_COMPRESS_FACTORS];
    s.c.workspace = s.blocks[MIXT_COMPRESS_WORKSPACE];
    memcpy(s.c.pieces, pieces, sizeof pieces);
    return s;
}

static void close_compressed(compressed *s)
{
    for (int i = 0; i < MIXT_COMPRESS_BLOCKS; i++)
        mixt__free(s->blocks[i]);
}

/** Over several updates, of which one sends all: everyone has the same common weights, which have moved by the mean of
 *  what each has sent. */
static void compress(rank *r)
{
    const size_t bytes = COUNT * sizeof(float);
    compressed mine = open_compressed(r->argument, r->size, r->group);
    float *step = mixt__alloc(bytes), *rest = mixt__alloc(bytes), *common = mixt__alloc(bytes);
    float *sent = mixt__alloc(bytes), *all = mixt__alloc((size_t)r->size * bytes);
    double *expected = mixt__alloc(COUNT * sizeof *expected);
    for (int update = 0; update < 4; update++) {
        bool whole = update == 2;
        draw(step, 100 * update + r->index);
        for (int i = 0; i < COUNT; i++)
            sent[i] = rest[i] += step[i];
        int64_t before = r->group->bytes;
        CHECK(r, mixt__compress_exchange(&mine.c, rest, common, whole) == MIXT_OK);
        CHECK(r, r->group->bytes - before == mixt__compress_sent(&mine.c, r->index, whole));
        for (int i = 0; i < COUNT; i++)
            sent[i] -= rest[i];
        CHECK(r, mixt__group_gather(r->group, sent, bytes, all, 1) == MIXT_OK);
        for (int i = 0; i < COUNT * r->size; i++)
            expected[i % COUNT] -= (double)all[i] / r->size;
        for (int i = 0; i < COUNT; i++)
            CHECK(r, fabs((double)common[i] - expected[i]) < 1e-4 && (!whole || rest[i] == 0));
        CHECK(r, mixt__group_gather(r->group, common, bytes, all, 1) == MIXT_OK);
        for (int other = 0; other < r->size; other++)
            CHECK(r, !memcmp(all + other * COUNT, common, bytes));
    }
    close_compressed(&mine);
    float *const arenas[] = {step, rest, common, sent, all};
    for (int i = 0; i < 5; i++)
        mixt__free(arenas[i]);
    mixt__free(expected);
}

static void test_compressed(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST; size++) {
        run(size, compress, "topk:3%");
        run(size, compress, "powersgd:3");
    }
}

/* ---- work of unknown length ---- */

enum { PAUSE = 2200000 }; // microseconds: more than twice the timeout

/** One works for longer than the others wait for a word; then it fails, and all know why. */
static void work_long(rank *r)
{
    mixt__keepalive m;
    r->group->timeout = 1;
    mixt__keepalive_begin(&m, r->group);
    if (r->index == 0)
        usleep(PAUSE);
    CHECK(r, mixt__keepalive_end(&m, MIXT_OK) == MIXT_OK);
    mixt__keepalive_begin(&m, r->group);
    mixt_status mine = r->index == 1 ? mixt__fail(MIXT_ERROR_FILE, "a full disk") : MIXT_OK;
    CHECK(r, mixt__keepalive_end(&m, mine) == MIXT_ERROR_FILE && !strcmp(mixt_error_text(), "rank 1: a full disk"));
    CHECK(r, mixt__group_agree(r->group, MIXT_OK) == MIXT_OK); // what all know of breaks nothing
}

/** One says nothing while it works: it is lost after the timeout. */
static void work_silently(rank *r)
{
    mixt__keepalive m;
    r->group->timeout = 1;
    double start = mixt__time_now();
    if (r->index == 0) {
        usleep(PAUSE);
        return;
    }
    mixt__keepalive_begin(&m, r->group);
    CHECK(r, mixt__keepalive_end(&m, MIXT_OK) == MIXT_ERROR_STATE && r->group->broken);
    CHECK(r, mixt__time_now() - start < 1.9);
}

static void test_keepalive(void **state)
{
    (void)state;
    mixt__keepalive m;
    run(3, work_long, NULL);
    run(2, work_silently, NULL);
    mixt__keepalive_begin(&m, NULL);
    assert_int_equal(mixt__keepalive_end(&m, MIXT_ERROR_DATA), MIXT_ERROR_DATA);
}

/* ---- ranks that fail ---- */

static void fail_later(rank *r)
{
    float data[64] = {1};
    char workspace[4096];
    mixt_status status = MIXT_OK;
    int made = 0;
    for (; made < 10 && status == MIXT_OK; made++)
        status = mixt__group_sum(r->group, data, 64, 16, MIXT_DTYPE_FP32, workspace);
    CHECK(r, status == MIXT_ERROR_STATE && made < 10 && r->group->broken);
    CHECK(r, strstr(mixt_error_text(), "the communicator has failed"));
    CHECK(r, mixt__group_agree(r->group, MIXT_OK) == MIXT_ERROR_STATE); // and for ever
}

static void test_failing(void **state)
{
    (void)state;
    run_failing(2, fail_later, NULL, 5);
    run_failing(4, fail_later, NULL, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_telling), cmocka_unit_test(test_sums),      cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_overlap),   cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_failing), cmocka_unit_test(test_keepalive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
