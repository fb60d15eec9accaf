/* Generating: logits from the caches against the whole text at once, sampling at its edges, the same text by seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "infer/generator.h"
#include "models/models.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 61, LENGTH = 40, SEED = 7 };

static mixt__model_sizes sizes;

static mixt__model model_of(const char *name, int64_t seq)
{
    mixt_data_info info = {.input_dtype = MIXT_DTYPE_INT32, .input_rank = 1, .input_dims = {seq}, .classes = VOCAB};
    mixt__model model;
    info.target = MIXT_TARGET_TOKENS;
    info.target_dtype = MIXT_DTYPE_INT32;
    info.target_elements = seq;
    sizes = (mixt__model_sizes){.layers = 2, .width = 24};
    if (!strcmp(name, "gpt") || !strcmp(name, "bert"))
        sizes.heads = 3;
    if (mixt__zoo_model(name, &info, &sizes, &model) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error_text());
    return model;
}

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

/** Weights large enough that attention and gates are far from their linear parts. */
static void draw_weights(mixt__params *p)
{
    float values[VOCAB * 128 + 128 * 1024];
    for (int32_t i = 0; i < p->count; i++) {
        const mixt__param *param = &p->table[i];
        int64_t last = param->shape.dims[param->shape.rank - 1];
        assert_true((size_t)param->count <= sizeof values / sizeof values[0]);
        mixt__rng rng = mixt__rng_start(mixt__rng_key(SEED, 99, (uint64_t)i));
        for (int64_t k = 0; k < param->count; k++)
            values[k] = (param->shape.rank == 1 ? 1.0f : 1.5f / sqrtf((float)last)) * mixt__rng_normal(&rng);
        ok(mixt__params_set(p, i, values));
    }
    ok(mixt__params_refresh_copies(p));
}

static void make_text(int32_t *text)
{
    mixt__rng rng = mixt__rng_start(mixt__rng_key(SEED, 98, 0));
    for (int i = 0; i < LENGTH; i++)
        text[i] = (int32_t)mixt__rng_below(&rng, VOCAB);
}

static void open_with(mixt__generator *g, const char *name, mixt_dtype dtype, int64_t context)
{
    mixt__model model = model_of(name, LENGTH);
    mixt__policy policy = mixt__policy_of(dtype);
    ok(mixt__generator_open(g, &model, &policy, &mixt__device_cpu, context));
    draw_weights(g->params);
}

/** Logits (LENGTH, VOCAB) of the text as one whole, by the plan that evaluation runs too. */
static void whole(const mixt__generator *g, const int32_t *text, float *logits)
{
    mixt__forward_shape shape = {.dtype = MIXT_DTYPE_INT32, .input = {2, {1, LENGTH}}};
    mixt__forward *f;
    ok(mixt__forward_new(&g->model, &g->policy, g->device, &shape, &f));
    ok(mixt__forward_bind(f, g->params));
    ok(mixt__forward_run(f, text, 0, NULL));
    ok(mixt__forward_output(f, 0, LENGTH * VOCAB, logits));
    mixt__forward_free(f);
}

/** Roundings on the way of a number through the model, each of a unit of its sum's format: both computations make them,
 *  in another order. Sums of K terms in FP32 round K times; what is stored rounds to the policy's format once. */
static double bound(const mixt__generator *g, double largest)
{
    double terms = 0, stored = 0;
    const mixt__graph *graph = g->one->executable->graph;
    for (int64_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].alias)
            continue;
        const mixt__shape *in = &graph->values[graph->nodes[i].in[0]].shape;
        terms += (double)(in->rank ? in->dims[in->rank - 1] : 1) + 8;
        stored++;
    }
    terms += LENGTH * 2;
    double low = g->policy.forward == MIXT_DTYPE_FP32 ? 0 : mixt__dtype_roundoff(g->policy.forward);
    return 2 * (terms * 0x1p-24 + stored * low) * largest;
}

static void compare(const float *got, const float *expected, double tolerance, const char *what, int position)
{
    for (int i = 0; i < VOCAB; i++)
        if (!(fabs((double)got[i] - (double)expected[i]) <= tolerance))
            fail_msg("%s, position %d, logit %d: %.9g, the whole text gives %.9g (tolerance %.3g)", what, position, i,
                     (double)got[i], (double)expected[i], tolerance);
}

static void check_model(const char *name, mixt_dtype dtype, int64_t context)
{
    static float logits[LENGTH * VOCAB];
    int32_t text[LENGTH];
    mixt__generator g;
    open_with(&g, name, dtype, context);
    make_text(text);
    whole(&g, text, logits);
    double largest = 0;
    for (int i = 0; i < LENGTH * VOCAB; i++)
        largest = fmax(largest, fabs((double)logits[i]));
    double tolerance = bound(&g, largest);
    assert_true(tolerance < largest * (dtype == MIXT_DTYPE_FP32 ? 2e-4 : 0.25)); // else the test could not fail
    for (int first = 1; first <= 13; first += 4) {                               // tokens in the first piece
        ok(mixt__generator_start(&g, text, first));
        compare(g.logits, logits + (first - 1) * VOCAB, tolerance, name, first - 1);
        for (int t = first; t < LENGTH; t++) {
            g.text[g.known == context ? 0 : g.known] = text[t];
            if (g.known == context)
                g.known = g.read = 0; // endless models only: what was read is in the state
            g.known++;
            ok(mixt__generator_catch_up(&g));
            compare(g.logits, logits + t * VOCAB, tolerance, name, t);
        }
    }
    mixt__generator_close(&g);
}

static void test_cached_equals_whole(void **state)
{
    (void)state;
    const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16, MIXT_DTYPE_FP16};
    for (int i = 0; i < 3; i++) {
        check_model("gpt", formats[i], LENGTH);
        check_model("lstm", formats[i], 16);
        check_model("gru", formats[i], 16);
        check_model("rnn", formats[i], 16);
    }
}

/** A prompt longer than one piece gives what its pieces give one by one. */
static void test_long_prompt(void **state)
{
    (void)state;
    enum { LONG = MIXT_PIECE_MAX + 30 };
    mixt__generator g, h;
    static int32_t text[LONG];
    for (int i = 0; i < LONG; i++)
        text[i] = (i * 7 + i / 5) % VOCAB;
    mixt__model model = model_of("gpt", LONG);
    mixt__policy policy = mixt__policy_of(MIXT_DTYPE_FP32);
    ok(mixt__generator_open(&g, &model, &policy, &mixt__device_cpu, LONG));
    ok(mixt__generator_open(&h, &model, &policy, &mixt__device_cpu, LONG));
    ok(mixt__params_initialise(g.params, SEED));
    ok(mixt__params_initialise(h.params, SEED));
    ok(mixt__generator_start(&g, text, LONG));
    ok(mixt__generator_start(&h, text, 3));
    for (int i = 3; i < LONG; i++) {
        h.text[h.known++] = text[i];
        ok(mixt__generator_catch_up(&h));
    }
    compare(g.logits, h.logits, 1e-4, "a long prompt", LONG - 1);
    mixt__generator_close(&g);
    mixt__generator_close(&h);
}

/** A full context keeps its newer half, read anew from place 0. */
static void test_full_context(void **state)
{
    (void)state;
    enum { CONTEXT = 10, DRAWN = 27 };
    mixt__generator g, h;
    mixt_sampling sampling = {.temperature = 1, .seed = 3};
    int32_t all[2 + DRAWN] = {5, 9};
    open_with(&g, "gpt", MIXT_DTYPE_FP32, CONTEXT);
    open_with(&h, "gpt", MIXT_DTYPE_FP32, CONTEXT);
    ok(mixt__generator_start(&g, all, 2));
    for (int i = 0; i < DRAWN; i++) {
        ok(mixt__generator_next(&g, &sampling, &all[2 + i]));
        ok(mixt__generator_catch_up(&g));
        assert_true(g.known <= CONTEXT && g.known >= 2);
        ok(mixt__generator_start(&h, all + 3 + i - g.known, g.known));
        compare(g.logits, h.logits, 1e-3, "after forgetting", i);
    }
    mixt__generator_close(&g);
    mixt__generator_close(&h);
}

static void draw(mixt__generator *g, uint64_t seed, int32_t *tokens, int count)
{
    mixt_sampling sampling = {.temperature = 1, .seed = seed};
    ok(mixt__generator_start(g, (int32_t[]){1, 2, 3}, 3));
    for (int i = 0; i < count; i++)
        ok(mixt__generator_next(g, &sampling, &tokens[i]));
}

/** A text that begins as the one before is read from where they part; what was behind that is forgotten. */
static void test_start_again(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt", "lstm"};
    int32_t text[LENGTH], other[LENGTH];
    make_text(text);
    memcpy(other, text, sizeof other);
    other[25] = (text[25] + 1) % VOCAB;
    for (int m = 0; m < 2; m++) {
        mixt__generator g, h;
        int64_t read;
        open_with(&g, names[m], MIXT_DTYPE_FP32, LENGTH);
        open_with(&h, names[m], MIXT_DTYPE_FP32, LENGTH);
        ok(mixt__generator_start_again(&g, text, 35, &read));
        assert_int_equal(read, 35);
        ok(mixt__generator_start_again(&g, other, LENGTH, &read));
        assert_int_equal(read, m ? LENGTH : LENGTH - 25);
        ok(mixt__generator_start(&h, other, LENGTH));
        compare(g.logits, h.logits, bound(&h, 10), names[m], LENGTH);
        ok(mixt__generator_start_again(&g, other, 10, &read)); // shorter: only its last token is read
        assert_int_equal(read, m ? 10 : 1);
        ok(mixt__generator_start(&h, other, 10));
        compare(g.logits, h.logits, bound(&h, 10), names[m], 10);
        other[30] = VOCAB;
        assert_int_equal(mixt__generator_start_again(&g, other, LENGTH, NULL), MIXT_ERROR_DATA);
        other[30] = 0;
        mixt__generator_close(&g);
        mixt__generator_close(&h);
    }
}

static void test_same_seed_same_text(void **state)
{
    (void)state;
    const char *const names[] = {"gpt", "lstm", "gru", "rnn"};
    for (int m = 0; m < 4; m++) {
        mixt__generator g;
        int32_t a[30], b[30], c[30];
        open_with(&g, names[m], MIXT_DTYPE_BF16, 16);
        draw(&g, 11, a, 30);
        draw(&g, 12, b, 30);
        draw(&g, 11, c, 30);
        assert_memory_equal(a, c, sizeof a);
        assert_memory_not_equal(a, b, sizeof a);
        mixt__generator_close(&g);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    mixt__generator g;
    mixt__policy policy = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__model bert = model_of("bert", LENGTH);
    assert_int_equal(mixt__generator_open(&g, &bert, &policy, &mixt__device_cpu, LENGTH), MIXT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(mixt_error_text(), "causal"));
    open_with(&g, "gpt", MIXT_DTYPE_FP32, LENGTH);
    int32_t token, bad[2] = {1, VOCAB};
    assert_int_equal(mixt__generator_next(&g, &(mixt_sampling){0}, &token), MIXT_ERROR_STATE);
    assert_int_equal(mixt__generator_start(&g, bad, 0), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt__generator_start(&g, bad, 2), MIXT_ERROR_DATA);
    bad[1] = -1;
    assert_int_equal(mixt__generator_start(&g, bad, 2), MIXT_ERROR_DATA);
    mixt__generator_close(&g);
}

/* ---- sampling ---- */

static mixt__candidate scratch[4096];

static int32_t sample(const float *logits, int64_t count, double temperature, int64_t k, double p, double u)
{
    mixt_sampling s = {.temperature = temperature, .top_k = k, .top_p = p};
    int32_t token = -1;
    ok(mixt__sample(logits, count, &s, u, scratch, &token));
    return token;
}

static void test_sampling_edges(void **state)
{
    (void)state;
    const float logits[5] = {0.5f, 2, -INFINITY, 2, 1};
    for (double u = 0; u < 1; u += 0.09) {
        assert_int_equal(sample(logits, 5, 0, 0, 1, u), 1);     // greedy: the first of the largest
        assert_int_equal(sample(logits, 5, 3, 1, 1, u), 1);     // k = 1 is greedy
        assert_int_equal(sample(logits, 5, 3, 0, 1e-12, u), 1); // p → 0 too
        assert_int_equal(sample(logits, 5, 1e-300, 0, 1, u), u < 0.5 ? 1 : 3);
        int32_t two = sample(logits, 5, 100, 2, 1, u), three = sample(logits, 5, 100, 3, 0, u);
        assert_true(two == 1 || two == 3);
        assert_true(three == 1 || three == 3 || three == 4);
        assert_int_not_equal(sample(logits, 5, 100, 0, 1, u), 2);  // no probability
        assert_int_not_equal(sample(logits, 5, 100, 99, 1, u), 2); // k past the vocabulary: all
    }
    assert_int_equal(sample(logits, 1, 1, 0, 1, 0.99), 0);
}

/** Probabilities 0.5, 0.3, 0.2: which of them a p keeps, and which part of [0, 1) is each one's. */
static void test_nucleus(void **state)
{
    (void)state;
    const float logits[3] = {logf(0.2f), logf(0.5f), logf(0.3f)};
    assert_int_equal(sample(logits, 3, 1, 0, 0.49, 0.999), 1);
    assert_int_equal(sample(logits, 3, 1, 0, 0.51, 0.999), 2); // two kept: 0.625 and 0.375 of what is drawn
    assert_int_equal(sample(logits, 3, 1, 0, 0.51, 0.62), 1);
    assert_int_equal(sample(logits, 3, 1, 0, 0.51, 0.63), 2);
    assert_int_equal(sample(logits, 3, 1, 0, 0.81, 0.999), 0);
    assert_int_equal(sample(logits, 3, 1, 0, 1, 0.19), 0); // without a limit in the order of tokens
    assert_int_equal(sample(logits, 3, 1, 0, 1, 0.21), 1);
    assert_int_equal(sample(logits, 3, 1, 0, 1, 0.71), 2);
    assert_int_equal(sample(logits, 3, 1, 2, 0.6, 0.999), 1);    // p of what k left: 0.5 / 0.8 is enough
    assert_int_equal(sample(logits, 3, 0.5, 0, 0.65, 0.999), 1); // squared: 0.25 / 0.38
}

/** Whatever k, the k largest are what can be drawn, and all of them. */
static void test_top_k_is_exact(void **state)
{
    (void)state;
    float logits[300];
    mixt__rng rng = mixt__rng_start(mixt__rng_key(SEED, 97, 0));
    for (int i = 0; i < 300; i++)
        logits[i] = (float)mixt__rng_below(&rng, 100); // with ties
    for (int64_t k = 1; k <= 300; k += 13) {
        bool seen[300] = {0};
        for (int i = 0; i < 3000; i++)
            seen[sample(logits, 300, 1e6, k, 1, i / 3000.0)] = true;
        for (int i = 0; i < 300; i++) {
            int64_t before = 0;
            for (int j = 0; j < 300; j++)
                before += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
            assert_int_equal(seen[i], before < k);
        }
    }
}

static void test_sampling_refusals(void **state)
{
    (void)state;
    const float bad[2] = {1, NAN}, none[2] = {-INFINITY, -INFINITY}, infinite[2] = {1, INFINITY}, good[2] = {1, 2};
    mixt_sampling s = {.temperature = 1};
    int32_t token;
    assert_int_equal(mixt__sample(bad, 2, &s, 0, scratch, &token), MIXT_ERROR_DATA);
    assert_int_equal(mixt__sample(none, 2, &s, 0, scratch, &token), MIXT_ERROR_DATA);
    assert_int_equal(mixt__sample(infinite, 2, &s, 0, scratch, &token), MIXT_ERROR_DATA);
    s.temperature = -1;
    assert_int_equal(mixt__sample(good, 2, &s, 0, scratch, &token), MIXT_ERROR_ARGUMENT);
    s = (mixt_sampling){.temperature = 1, .top_p = 1.5};
    assert_int_equal(mixt__sample(good, 2, &s, 0, scratch, &token), MIXT_ERROR_ARGUMENT);
    s = (mixt_sampling){.temperature = 1, .top_k = -1};
    assert_int_equal(mixt__sample(good, 2, &s, 0, scratch, &token), MIXT_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cached_equals_whole), cmocka_unit_test(test_long_prompt),
        cmocka_unit_test(test_full_context),        cmocka_unit_test(test_start_again),
        cmocka_unit_test(test_same_seed_same_text), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sampling_edges),      cmocka_unit_test(test_nucleus),
        cmocka_unit_test(test_top_k_is_exact),      cmocka_unit_test(test_sampling_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
