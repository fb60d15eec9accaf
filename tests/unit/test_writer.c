/* A translator that writes a token at a time, beams changing places as a seed has it: logits are those of the whole
 * model on what each beam has written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/block.h"
#include "base/rng.h"
#include "infer/writer.h"
#include "mixt/mixt.h"
#include "models/models.h"
#include "policy/policy.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { TEXTS = 3, BEAMS = 6, ROWS = TEXTS * BEAMS, STEPS = 9, CONTEXT = 12, VOCAB = 40, LAYERS = 2, WIDTH = 32 };

static const mixt__model_sizes sizes = {
    .layers = LAYERS, .width = WIDTH, .heads = 4, .vocab = VOCAB, .rows = VOCAB, .seq = CONTEXT};

static void check(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

static int drawn(int seed, int64_t a, int64_t b, int below)
{
    return (int)(mixt__rng_key((uint64_t)seed, (uint64_t)a, (uint64_t)b) % (uint64_t)below);
}

typedef struct fixture {
    mixt__writer_options o;
    mixt__params *params;
    mixt__forward *whole; // all tokens of all beams at once
    int32_t source[TEXTS * CONTEXT], lengths[TEXTS];
    int32_t written[ROWS][CONTEXT]; // `end` first
} fixture;

/** The model on texts of STEPS tokens, with parameters that the seed makes. */
static void open_whole(fixture *f, int64_t source)
{
    mixt__batch_spec spec = {.input_dtype = MIXT_DTYPE_INT32, .input = {2, {TEXTS, source}}, .input_name = "source"};
    spec.more[0] = (mixt__array){.name = "source.length", .dtype = MIXT_DTYPE_INT32, .shape = {1, {TEXTS}}};
    spec.more[1] = (mixt__array){.name = "previous", .dtype = MIXT_DTYPE_INT32, .shape = {2, {ROWS, STEPS}}};
    spec.more_count = 2;
    mixt__forward_shape shape = {.spec = &spec};
    check(mixt__forward_new(&f->o.write, &f->o.policy, f->o.device, &shape, &f->whole));
    check(mixt__params_new(f->whole->executable->graph, f->o.device, false, 0, MIXT_DTYPE_FP32, &f->params));
    check(mixt__params_allocate(f->params));
    check(mixt__params_initialise(f->params, 7));
    check(mixt__forward_bind(f->whole, f->params));
    f->o.params = f->params;
}

static void start(fixture *f, mixt_dtype format, int64_t source, int seed)
{
    *f = (fixture){.o = {.device = &mixt__device_cpu, .texts = TEXTS, .beams = BEAMS}};
    f->o.write = (mixt__model){.fn = mixt__model_seq2seq,
                               .loss = MIXT_LOSS_CROSS_ENTROPY,
                               .user = (void *)(uintptr_t)&sizes,
                               .classes = VOCAB};
    f->o.read = f->o.write;
    f->o.read.fn = mixt__model_seq2seq_read;
    f->o.policy = mixt__policy_of(format);
    open_whole(f, source);
    for (int t = 0; t < TEXTS; t++) {
        f->lengths[t] = 1 + drawn(seed, t, 1, (int)source);
        for (int64_t i = 0; i < f->lengths[t]; i++)
            f->source[t * source + i] = drawn(seed, t, 100 + i, VOCAB);
    }
}

/** Every beam writes a token and goes on from a beam of its text, which is also how it was before. */
static void go_on(fixture *f, int seed, int64_t place, int32_t *from)
{
    int32_t before[ROWS][CONTEXT];
    memcpy(before, f->written, sizeof before);
    for (int r = 0; r < ROWS; r++) {
        int kind = drawn(seed, place, r / BEAMS, 3); // a circle, all from anywhere, all as they are
        from[r] = kind == 0 ? (r + 1) % BEAMS : kind == 1 ? drawn(seed, place, 50 + r, BEAMS) : r % BEAMS;
        memcpy(f->written[r], before[r / BEAMS * BEAMS + from[r]], sizeof before[r]);
        f->written[r][place + 1] = drawn(seed, place, 200 + r, VOCAB);
    }
}

/** What the whole model makes of it. */
static void run_whole(fixture *f, int64_t source, float *logits)
{
    static char input[1 << 14];
    mixt__block block = {0};
    memcpy(input + mixt__block_add(&block, (size_t)(TEXTS * source) * 4), f->source, (size_t)(TEXTS * source) * 4);
    memcpy(input + mixt__block_add(&block, TEXTS * 4), f->lengths, TEXTS * 4);
    int32_t *previous = (int32_t *)(void *)(input + mixt__block_add(&block, (size_t)(ROWS * STEPS) * 4));
    for (int r = 0; r < ROWS; r++)
        memcpy(previous + r * STEPS, f->written[r], STEPS * sizeof *previous);
    check(mixt__forward_run(f->whole, input, 0, NULL));
    check(mixt__forward_output(f->whole, 0, ROWS * STEPS * VOCAB, logits));
}

static void write_and_compare(mixt_dtype format, int64_t source, int seed, double bound)
{
    static float logits[ROWS * VOCAB], whole[ROWS * STEPS * VOCAB];
    int32_t newest[ROWS], from[ROWS];
    fixture f;
    mixt__writer w;
    double largest = 0;
    start(&f, format, source, seed);
    mixt__writer_open(&w, &f.o);
    check(mixt__writer_read(&w, source, f.source, f.lengths, CONTEXT));
    for (int64_t place = 0; place < STEPS; place++) {
        for (int r = 0; r < ROWS; r++)
            newest[r] = f.written[r][place];
        check(mixt__writer_next(&w, newest, place, logits));
        assert_int_equal(w.row, VOCAB);
        run_whole(&f, source, whole);
        for (int r = 0; r < ROWS; r++)
            for (int v = 0; v < VOCAB; v++)
                largest =
                    fmax(largest, fabs((double)logits[r * VOCAB + v] - (double)whole[(r * STEPS + place) * VOCAB + v]));
        go_on(&f, seed, place, from);
        check(mixt__writer_move(&w, from, place + 1));
    }
    if (!(largest <= bound))
        fail_msg("%s, seed %d: logits differ by %g, %g at most", mixt_dtype_name(format), seed, largest, bound);
    mixt__writer_close(&w);
    mixt__forward_free(f.whole);
    mixt__params_free(f.params);
}

/** Logits are of unit size; each of about 8 operations a layer rounds what goes into them. */
static void logits_are_those_of_the_whole_model(void **state)
{
    (void)state;
    for (int seed = 1; seed <= 4; seed++) {
        write_and_compare(MIXT_DTYPE_FP32, seed % 2 ? 5 : CONTEXT, seed, 8.0 * (2 * LAYERS) * 8 * (double)FLT_EPSILON);
        write_and_compare(MIXT_DTYPE_BF16, 7, seed, 8.0 * (2 * LAYERS) * 0x1p-8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_those_of_the_whole_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
