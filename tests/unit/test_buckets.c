/* Lengths in buckets: what is padded, who is in which update, and steps of several lengths in one memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "mixt/plan.h"
#include "api/api.h"
#include "base/rng.h"
#include "choose/trial.h"
#include "data/buckets.h"
#include "data/prefetch.h"
#include "train/lengths.h"
#include "train/trainer_inside.h"
#include "train/instrument.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 203, LONGEST = 40, BATCH = 4, IDS = 16, WIDTH = 8, MANY = 64 };

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

/* ---- a set of texts and their translations ---- */

typedef struct texts {
    int32_t source[SAMPLES], target[SAMPLES]; // lengths
    int32_t read[SAMPLES * LONGEST], before[SAMPLES * LONGEST], said[SAMPLES * LONGEST];
} texts;

/** Most are short; lengths of both sides go together, but not always. */
static void write_texts(texts *t)
{
    int64_t at[2] = {0, 0};
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t key = mixt__rng_key(7, 8, (uint64_t)i);
        int source = 1 + (int)(key & 7) + (i % 5 ? 0 : (int)(key >> 8 & 31)),
            target = source + (int)(key >> 16 & 7) - 3;
        t->source[i] = source;
        t->target[i] = target < 1 ? 1 : target > LONGEST ? LONGEST : target;
        for (int k = 0; k < t->source[i]; k++)
            t->read[at[0]++] = (int32_t)(key >> k % 24 & 15);
        for (int k = 0; k < t->target[i]; k++) {
            t->before[at[1]] = (int32_t)(key >> k % 22 & 15);
            t->said[at[1]++] = (int32_t)(key >> k % 20 & 15);
        }
    }
}

/** @param sides 2, or 1: all translations are as long as their text */
static mixt_data *open_texts(int64_t buckets, int sides)
{
    static texts t;
    mixt_data *data;
    mixt_data_column columns[] = {
        {.name = "source", .dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {LONGEST}, .values = t.read, .ids = IDS},
        {.name = "previous", .dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {LONGEST}, .values = t.before, .ids = IDS},
        {.name = "said", .dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {LONGEST}, .values = t.said, .ids = IDS},
    };
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .val = 0, .buckets = buckets, .seed = 5);
    write_texts(&t);
    columns[0].lengths = t.source;
    columns[1].lengths = columns[2].lengths = sides == 2 ? t.target : t.source;
    columns[2].target = true;
    ok(mixt_data_from_columns("texts", columns, 3, SAMPLES, &o, &data));
    return data;
}

static float dropped = 0.1f;

/** Reads a text by its length, writes its translation. */
static mixt_value net(mixt_builder *b, mixt_value x)
{
    mixt_value lengths = mixt_input_lengths(b, "source"), q, k_v[2];
    mixt_value places = mixt_param(b, "places", .rank = 2, .dims = {LONGEST, WIDTH}, .normal = 0.1f);
    x = mixt_embedding(b, "read", x, .count = IDS, .features = WIDTH);
    x = mixt_add(b, x, mixt_embedding_positions(b, places, mixt_input(b, "source")));
    x = mixt_layer_norm(b, "ln", x);
    mixt_split(b, mixt_linear(b, "kv", x, .features = 2 * WIDTH), 2, k_v);
    q = mixt_embedding(b, "write", mixt_input(b, "previous"), .count = IDS, .features = WIDTH);
    q = mixt_add(b, q, mixt_attention(b, q, q, q, .heads = 2, .causal = true));
    q = mixt_add(b, q, mixt_attention(b, q, k_v[0], k_v[1], .heads = 2, .lengths = lengths));
    return mixt_linear(b, "head", mixt_dropout(b, q, dropped), .features = IDS);
}

typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
} fixture;

static fixture start(int64_t buckets, const char *precision, int64_t accumulate)
{
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 2), .data = open_texts(buckets, 2)};
    mixt_model *model = mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY);
    f.trainer = mixt_trainer_new(model, .batch = BATCH, .precision = precision, .seed = 3, .lr = 0.01f,
                                 .accumulate = accumulate);
    ok(mixt_trainer_compile(f.trainer, f.data));
    return f;
}

static void end(fixture *f)
{
    mixt_close(f->context);
    mixt_data_close(f->data);
}

/* ---- lengths ---- */

static int64_t rounded(int64_t length)
{
    return (length + 7) / 8 * 8;
}

/** What samples of one length cost in buckets that end where the bits of `ends` say, the last one at the end. */
static int64_t cost_of(const mixt_data *data, unsigned ends)
{
    int64_t cost = 0;
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t places = rounded(data->kind->length(data, i, 0));
        while (!(ends >> (places / 8 - 1) & 1))
            places += 8;
        cost += places;
    }
    return cost;
}

static void lengths_are_the_cheapest(void **state)
{
    (void)state;
    for (int buckets = 2; buckets <= 5; buckets++) {
        mixt_data *data = open_texts(buckets, 1);
        int64_t without, with, filled, best = INT64_MAX, sum = 0;
        mixt__data_bucket_elements(data, &without, &with, &filled);
        for (unsigned ends = 1 << 4; ends < 1 << 5; ends++)
            if (__builtin_popcount(ends) <= buckets && cost_of(data, ends) < best)
                best = cost_of(data, ends);
        for (int64_t i = 0; i < SAMPLES; i++)
            sum += data->kind->length(data, i, 0);
        // Four arrays have the length: both inputs, the target, and the mask of each input.
        assert_int_equal(with % best, 0);
        assert_int_equal(with / best, without / (SAMPLES * LONGEST));
        assert_int_equal(filled / sum, with / best);
        assert_true(mixt__data_bucket_count(data) <= buckets);
        mixt_data_close(data);
    }
}

static void nothing_is_cut_in_vain(void **state)
{
    (void)state;
    mixt_data *data = open_texts(1, 2);
    assert_int_equal(mixt__data_bucket_count(data), 0);
    mixt_data_close(data);
    data = open_texts(-1, 2); // a program's own samples may have a say in each other's loss
    assert_int_equal(mixt__data_bucket_count(data), 0);
    mixt_data_close(data);
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .buckets = 9, .samples = 10);
    assert_int_equal(mixt_data_open_with("digits:", &o, &data), MIXT_ERROR_CONFIG);
    o.buckets = 4; // has no lengths
    assert_int_equal(mixt_data_open_with("digits:", &o, &data), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "'buckets' is not for digits"));
}

/* ---- order ---- */

/** One epoch: who was seen, and that every update has samples of its bucket's length. */
static void look_at_epoch(const mixt_data *data, int64_t batch, int64_t group, int64_t epoch, int *seen)
{
    int64_t batches = mixt__data_epoch_batches(data, batch, group), updates[MIXT_BUCKETS_MAX + 1] = {0};
    assert_int_equal(batches, SAMPLES / (batch * group) * group);
    for (int64_t n = 0; n < batches; n++) {
        mixt__data_which which = {batch, group, epoch * batches + n};
        int bucket = mixt__data_bucket_of(data, &which);
        which.number -= n % group;
        assert_int_equal(bucket, mixt__data_bucket_of(data, &which));
        which.number += n % group;
        updates[bucket] += n % group == 0;
        for (int64_t place = 0; place < batch; place++) {
            int64_t sample = mixt__data_sample_at(data, &which, place);
            seen[sample]++;
            for (int a = 0; a < data->info.array_count; a++)
                assert_true(data->kind->length(data, sample, a) <=
                            mixt__data_bucket_at(data, bucket)->info.arrays[a].dims[0]);
        }
    }
    for (int k = 0; k < mixt__data_bucket_count(data); k++)
        assert_int_equal(updates[k], mixt__data_bucket_updates(data, k, batch * group));
}

static void an_epoch_has_each_sample_once(void **state)
{
    static const int64_t sizes[][2] = {{1, 1}, {4, 1}, {4, 3}, {50, 1}, {SAMPLES, 1}, {100, 2}};
    (void)state;
    mixt_data *data = open_texts(4, 2);
    assert_true(mixt__data_bucket_count(data) > 2);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int first[SAMPLES] = {0};
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            int seen[SAMPLES] = {0}, missing = 0;
            look_at_epoch(data, sizes[s][0], sizes[s][1], epoch, seen);
            for (int i = 0; i < SAMPLES; i++) {
                assert_true(seen[i] <= 1);
                missing += !seen[i];
                first[i] += seen[i];
            }
            assert_int_equal(missing, SAMPLES % (sizes[s][0] * sizes[s][1]));
        }
        for (int i = 0; i < SAMPLES && s < 2; i++) // with few left out, not always the same ones
            assert_true(first[i] > 0);
    }
    mixt_data_close(data);
}

/** A batch does not depend on what was asked for before, also where tables of epochs take turns. */
static void a_batch_is_a_function_of_its_number(void **state)
{
    (void)state;
    mixt_data *data = open_texts(4, 2), *other = open_texts(4, 2);
    int64_t batches = mixt__data_epoch_batches(data, BATCH, 1);
    for (int64_t i = 0; i < 300; i++) {
        int64_t number = (int64_t)(mixt__rng_key(1, 2, (uint64_t)i) % (uint64_t)(5 * batches));
        mixt__data_which which = {BATCH, 1, number}, again = {BATCH, 1, number};
        int64_t sample = mixt__data_sample_at(data, &which, i % BATCH);
        assert_int_equal(sample, mixt__data_sample_at(other, &again, i % BATCH));
        (void)mixt__data_sample_at(other, &(mixt__data_which){BATCH, 2, (number * 7) % batches}, 0);
    }
    mixt_data_close(data);
    mixt_data_close(other);
}

/** Threads make batches as they are made by hand, in their bucket's length; of parts of a batch too. */
static void the_ring_has_the_same_batches(void **state)
{
    (void)state;
    mixt_data *data = open_texts(4, 2);
    for (int64_t parts = 1; parts <= 2; parts++) {
        mixt__prefetch *ring;
        const mixt__batch *batch;
        mixt__prefetch_form form = {.parts = parts, .run = 2 * parts};
        form.of = 2 * parts; // an update has two batches
        ok(mixt__prefetch_start(data, BATCH / parts, 3, 0, &form, &ring));
        for (int64_t n = 0; n < MANY; n++) {
            static int32_t input[BATCH * 5 * LONGEST], target[BATCH * 3 * LONGEST];
            mixt__data_which which = {BATCH, 2, n / parts};
            ok(mixt__prefetch_take(ring, &batch));
            assert_int_equal(batch->bucket, mixt__data_bucket_of(data, &which));
            const mixt_data_info *info = &mixt__data_bucket_at(data, batch->bucket)->info;
            mixt__data_places made = mixt__data_places_as(info, BATCH / parts, 0, input, target);
            mixt__data_places found = mixt__data_places_as(info, BATCH / parts, 0, batch->input, batch->target);
            ok(mixt__data_batch_piece(data, &which, info, n % parts * (BATCH / parts), BATCH / parts, &made));
            for (int a = 0; a < info->array_count; a++)
                assert_memory_equal(made.at[a], found.at[a], (size_t)(BATCH / parts * info->arrays[a].elements) * 4);
            mixt__prefetch_release(ring);
        }
        mixt__prefetch_stop(ring);
    }
    mixt_data_close(data);
}

/* ---- steps ---- */

/** A batch as long as `info` says, of a bucket; what is behind a text is `junk`, where that is not negative. */
static void make_batch(const mixt_data *data, const mixt_data_info *info, int64_t number, int32_t junk, void *input,
                       void *target)
{
    mixt__data_which which = {BATCH, 1, number};
    mixt__data_places at = mixt__data_places_as(info, BATCH, 0, input, target);
    ok(mixt__data_batch_piece(data, &which, info, 0, BATCH, &at));
    for (int a = 0; junk >= 0 && a < info->array_count; a++) {
        const mixt_data_array *array = &info->arrays[a];
        bool tokens = array->rank && array->dtype == MIXT_DTYPE_INT32 && !array->target;
        for (int64_t i = 0; tokens && i < BATCH * array->elements; i++) {
            int64_t sample = mixt__data_sample_at(data, &which, i / array->elements);
            if (i % array->elements >= data->kind->length(data, sample, a))
                ((int32_t *)(void *)at.at[a])[i] = (int32_t)((i + junk) % IDS);
        }
    }
}

/** Loss and gradients of one pass. */
static float run_pass(const fixture *f, mixt__executable *step, const void *input, const void *target, float *grad)
{
    mixt__trainer *t = f->trainer->inner;
    const float one = 1;
    const uint64_t key = 9;
    mixt__run run = {.input = input, .target = target, .seed = &one, .rng_key = &key};
    ok(mixt__executable_run(step, &run));
    memcpy(grad, mixt__params_gradients(t->params), (size_t)t->params->total * sizeof *grad);
    return *(float *)mixt__executable_address(step, step->graph->loss);
}

static mixt__executable *step_of(const mixt__trainer *t, int bucket)
{
    return bucket < t->lengths.count - 1 ? t->lengths.steps.step[bucket] : t->train;
}

/** Room for a batch as long as the longest. */
static int32_t inputs[BATCH * 5 * LONGEST + MANY], targets[BATCH * 2 * LONGEST + MANY];

/** What stands behind a text changes no bit of loss and gradients. */
static void padding_changes_no_bit(void **state)
{
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    (void)state;
    for (int p = 0; p < 3; p++) {
        fixture f = start(4, precisions[p], 1);
        mixt__trainer *t = f.trainer->inner;
        ok(mixt__trainer_allocate(t));
        size_t total = (size_t)t->params->total;
        float *grad = malloc(total * 2 * sizeof *grad);
        for (int64_t n = 0; n < MANY; n++) {
            int bucket = mixt__data_bucket_of(f.data, &(mixt__data_which){BATCH, 1, n});
            const mixt_data_info *info = &mixt__data_bucket_at(f.data, bucket)->info;
            make_batch(f.data, info, n, -1, inputs, targets);
            float loss = run_pass(&f, step_of(t, bucket), inputs, targets, grad);
            make_batch(f.data, info, n, (int32_t)n, inputs, targets);
            float same = run_pass(&f, step_of(t, bucket), inputs, targets, grad + total);
            assert_true(isfinite(loss) && loss > 0);
            assert_memory_equal(&loss, &same, sizeof loss);
            assert_memory_equal(grad, grad + total, total * sizeof *grad);
        }
        free(grad);
        end(&f);
    }
}

/** How much padding there is changes nothing but the order of sums. */
static void a_bucket_has_the_loss_of_the_longest(void **state)
{
    (void)state;
    dropped = 0; // whose random numbers go by the shape
    fixture f = start(4, "fp32", 1);
    mixt__trainer *t = f.trainer->inner;
    ok(mixt__trainer_allocate(t));
    size_t total = (size_t)t->params->total;
    float *grad = malloc(total * 2 * sizeof *grad);
    for (int64_t n = 0; n < MANY; n++) {
        int bucket = mixt__data_bucket_of(f.data, &(mixt__data_which){BATCH, 1, n});
        make_batch(f.data, &mixt__data_bucket_at(f.data, bucket)->info, n, -1, inputs, targets);
        float loss = run_pass(&f, step_of(t, bucket), inputs, targets, grad);
        make_batch(f.data, &f.data->info, n, -1, inputs, targets);
        float whole = run_pass(&f, t->train, inputs, targets, grad + total);
        double difference = 0, size = 0;
        for (size_t i = 0; i < total; i++) {
            difference += pow((double)grad[i] - (double)grad[total + i], 2);
            size += pow((double)grad[i], 2);
        }
        assert_true(fabsf(loss - whole) <= 8 * 0x1p-24f * loss);
        assert_true(difference <= pow(LONGEST * 0x1p-24, 2) * size); // as many terms are added in another order
    }
    free(grad);
    end(&f);
    dropped = 0.1f;
}

/** Memory is taken as planned, for the largest of all steps; and every update leaves it so. */
static void memory_is_as_planned(void **state)
{
    (void)state;
    fixture f = start(4, "bf16", 2);
    mixt__trainer *t = f.trainer->inner;
    size_t most = 0, first = 0;
    mixt_memory planned = mixt__trainer_memory(t);
    for (int k = 0; k < t->lengths.count; k++)
        most = step_of(t, k)->plan.arena_bytes > most ? step_of(t, k)->plan.arena_bytes : most;
    assert_int_equal(planned.activations, most);
    for (int i = 0; i < MANY; i++) {
        mixt_step step;
        ok(mixt_trainer_step(f.trainer, f.data, &step));
        first = i ? first : mixt__device_allocated(t->device);
        assert_int_equal(mixt__device_allocated(t->device), first);
    }
    assert_int_equal(mixt__trainer_memory(t).allocated, planned.total);
    assert_int_equal(mixt__trainer_memory(t).total, planned.total);
    for (int k = 0; k < t->lengths.count - 1; k++)
        assert_ptr_equal(step_of(t, k)->arena, t->train->arena);
    end(&f);
}

/** All losses and norms of some updates. */
static void train(fixture *f, bool instrumented, double *figures)
{
    const mixt__instrument all = {.targets = {MIXT_DTYPE_FP16}};
    for (int i = 0; i < MANY; i++) {
        mixt_step step;
        if (instrumented && i == 3)
            ok(mixt__trainer_instrument(f->trainer->inner, &all));
        if (instrumented && i >= 3)
            ok(mixt__trainer_instrument_next(f->trainer->inner));
        ok(mixt_trainer_step(f->trainer, f->data, &step));
        figures[2 * i] = step.loss;
        figures[2 * i + 1] = step.grad_norm;
        if (instrumented && i >= 3) {
            mixt__instrumented_value value;
            ok(mixt__trainer_instrumented_read(f->trainer->inner, 0, &value));
            assert_true(isfinite(value.numbers[MIXT_STATS_SQUARES]));
        }
    }
}

static void an_instrumented_step_has_the_same_bits(void **state)
{
    static double plain[2 * MANY], instrumented[2 * MANY];
    (void)state;
    fixture f = start(4, "fp16", 1), g = start(4, "fp16", 1);
    train(&f, false, plain);
    train(&g, true, instrumented);
    assert_memory_equal(plain, instrumented, sizeof plain);
    end(&f);
    end(&g);
}

/** A change of precision compiles all lengths anew; one that goes back has the bits of before. */
static void a_policy_changes_all_lengths(void **state)
{
    (void)state;
    fixture f = start(4, "fp32", 1);
    mixt__trainer *t = f.trainer->inner;
    mixt_step step;
    for (int i = 0; i < MANY; i++) {
        if (i % 16 == 8)
            ok(mixt_trainer_set_precision(f.trainer, i % 32 == 8 ? "bf16" : "fp32"));
        ok(mixt_trainer_step(f.trainer, f.data, &step));
        assert_true(isfinite(step.loss) && !step.skipped);
        for (int k = 0; k < t->lengths.count; k++) {
            const mixt__graph *g = step_of(t, k)->graph;
            assert_int_equal(g->values[g->logits].dtype, t->train->graph->values[t->train->graph->logits].dtype);
        }
        assert_int_equal(mixt__trainer_memory(t).allocated, mixt__trainer_memory(t).total);
    }
    end(&f);
}

/** What looks at a batch by itself takes the longest, whatever length the step before had. */
static void others_take_the_longest(void **state)
{
    (void)state;
    fixture f = start(4, "bf16", 2);
    mixt__trainer *t = f.trainer->inner;
    int lengths[MIXT_BUCKETS_MAX] = {0};
    for (int i = 0; i < MANY; i++) {
        mixt_step step;
        mixt_profile *profile;
        double seconds;
        ok(mixt_trainer_step(f.trainer, f.data, &step));
        if (lengths[t->lengths.now]++)
            continue;
        ok(mixt_profile_new(f.trainer, f.data, 1, &profile));
        assert_true(mixt_profile_describe(profile).rows > 0);
        mixt_profile_free(profile);
        ok(mixt_trainer_step(f.trainer, f.data, &step));
        ok(mixt__trial_resident(t, f.data, 1, &seconds));
    }
    assert_true(lengths[0] && lengths[1]);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_the_cheapest),
        cmocka_unit_test(nothing_is_cut_in_vain),
        cmocka_unit_test(an_epoch_has_each_sample_once),
        cmocka_unit_test(a_batch_is_a_function_of_its_number),
        cmocka_unit_test(the_ring_has_the_same_batches),
        cmocka_unit_test(padding_changes_no_bit),
        cmocka_unit_test(a_bucket_has_the_loss_of_the_longest),
        cmocka_unit_test(memory_is_as_planned),
        cmocka_unit_test(an_instrumented_step_has_the_same_bits),
        cmocka_unit_test(a_policy_changes_all_lengths),
        cmocka_unit_test(others_take_the_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
