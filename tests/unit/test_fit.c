/* Runs within an amount of memory: what was planned is within it and is what is then taken, the update stays that of
 * the whole batch, and the largest batch is the largest.
 *
 * The largest batch of 200 random configurations is held against plans of the very runs: the answer fits, one sample
 * more does not. Some of them are trained. MIXT_SEED draws others.
 */
#include "../support/sanitized.h"
#include "../support/temp_folder.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/sizes.h"
#include "data/prefetch.h"
#include "mixt/mixt.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/settings.h"

enum { SETTINGS = 32, TEXT = 4096, SMALL = 64 << 10 };

#define check_ok(call)                                                                                                 \
    do {                                                                                                               \
        if ((call) != MIXT_OK)                                                                                         \
            fail_msg("%s: %s", #call, mixt_error_text());                                                              \
    } while (0)

static int set_up(void **state)
{
    temp_folder_setup(state);
    FILE *words = fopen(temp_path("words.txt"), "w"), *vocab = fopen(temp_path("vocab.txt"), "w");
    for (int i = 0; words && i < 2000; i++)
        fprintf(words, "the quick brown fox jumps %d\n", i);
    fputs("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nquick\nbrown\nfox\njumps\n", vocab);
    return !words || !vocab || fclose(words) || fclose(vocab);
}

static mixt_config *config_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** A configuration from settings, separated by spaces. */
static mixt_config *config_of(const char *format, ...)
{
    char text[TEXT];
    mixt_config *config = settings_new();
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    settings_add(config, "%s", text);
    return config;
}

/* ---- the zoo, small ---- */

static const char *const small[][2] = {
    {"mlp", "net.hidden=96,64 data.limit=160 net.norm=layer"},
    {"convnet", "net.channels=8,16 data.limit=160"},
    {"resnet", "net.depth=20 net.width=4 data.limit=64 data.crop=32 data.pad=2"},
    {"vgg", "net.depth=11 net.hidden=16 data.limit=64 data.crop=32 data.pad=2"},
    {"gpt", "net.layers=2 net.width=32 net.heads=2 data.kind=text data.path=@/words.txt data.seq=32"},
    {"bert", "net.layers=2 net.width=32 net.heads=2 data.kind=text data.path=@/words.txt data.seq=32 "
             "data.tokenizer=wordpiece data.vocab=@ data.mask=0.15"},
    {"bert_mlm", "net.layers=2 net.width=32 net.heads=2 data.kind=text data.path=@/words.txt data.seq=32 "
                 "data.tokenizer=wordpiece data.vocab=@ data.mask=0.15"},
    {"lstm", "net.layers=2 net.width=32 data.kind=text data.path=@/words.txt data.seq=32"},
};
enum { MODELS = sizeof small / sizeof small[0] };

/** The settings of a model, with the folder in the place of '@'. */
static const char *settings_of(int model, char text[TEXT])
{
    int used = snprintf(text, TEXT, "model=%s ", small[model][0]);
    for (const char *at = small[model][1]; *at; at++)
        used += *at == '@' ? snprintf(text + used, TEXT - (size_t)used, "%s", temp_folder)
                           : snprintf(text + used, TEXT - (size_t)used, "%c", *at);
    return text;
}

/* ---- sizes ---- */

static void sizes_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"0", 0},       {"12", 12},        {"900M", 900LL << 20}, {"12G", 12LL << 30}, {"1.5GiB", 3LL << 29},
                {"2kib", 2048}, {"3 MB", 3000000}, {"1T", 1LL << 40},     {"7B", 7},           {"0.5K", 512}};
    static const char *const bad[] = {"",     "G",   "12X", "-1G", "1e9",    "1.2.3G",      "12GiBs",
                                      "0x10", "inf", ".5G", "1G2", "12 G B", "99999999999G"};
    int64_t bytes = -1;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(mixt__size_parse(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (mixt__size_parse(bad[i], &bytes))
            fail_msg("'%s' is taken for %lld bytes", bad[i], (long long)bytes);
}

/* ---- splitting ---- */

/** Parts of a batch hold the samples of the whole, in order, over the end of an epoch too. */
static void parts_have_the_samples_of_the_whole(void **state)
{
    (void)state;
    enum { BATCH = 6, PARTS = 3, BATCHES = 9 }; // 20 samples: an epoch has three batches, and leaves two samples out
    mixt_data *data;
    mixt__prefetch *prefetch;
    mixt__prefetch_form form = {.input = MIXT_DTYPE_FP32, .parts = PARTS};
    check_ok(mixt_data_open("digits:", &data, .samples = 20));
    int64_t elements = mixt_data_describe(data)->input_elements;
    float *input = malloc((size_t)(BATCH * elements) * sizeof *input);
    int32_t target[BATCH];
    check_ok(mixt__prefetch_start(data, BATCH / PARTS, 2, PARTS, &form, &prefetch)); // begins at the second batch
    for (int64_t number = 1; number < BATCHES; number++) {
        check_ok(mixt_data_batch(data, BATCH, number, input, target));
        for (int64_t part = 0; part < PARTS; part++) {
            const mixt__batch *batch;
            int64_t at = part * BATCH / PARTS;
            check_ok(mixt__prefetch_take(prefetch, &batch));
            assert_memory_equal(batch->input, input + at * elements, (size_t)(BATCH / PARTS * elements) * 4);
            assert_memory_equal(batch->target, target + at, BATCH / PARTS * 4);
            mixt__prefetch_release(prefetch);
        }
    }
    mixt__prefetch_stop(prefetch);
    assert_int_equal(mixt__prefetch_start(data, 7, 2, 0, &form, &prefetch), MIXT_ERROR_ARGUMENT); // 3 × 7 of 20
    mixt_data_close(data);
    free(input);
}

enum { ROWS_MAX = 16 };

/** What an observer saw of each update. */
typedef struct history {
    mixt_step steps[ROWS_MAX];
    int count;
} history;

static mixt_status listen(void *user, mixt_run *run, const mixt_event *event)
{
    history *h = user;
    (void)run;
    if (event->kind == MIXT_EVENT_STEP && h->count < ROWS_MAX)
        h->steps[h->count++] = *event->step;
    return MIXT_OK;
}

static history train(mixt_config *config, const char *name, size_t number, mixt_run_result *result)
{
    history h = {0};
    mixt_run *run;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = listen, .user = &h);
    settings_add(config, "out=%s/%s-%zu", temp_folder, name, number);
    check_ok(mixt_run_open_config(config, &options, &run));
    check_ok(mixt_run_train(run, result));
    mixt_run_close(run);
    return h;
}

/** The weights of two runs, "free-N" and "within-N". */
static void same_files(int number)
{
    char name[64];
    size_t bytes[2];
    unsigned char *weights[2];
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s-%d/model.safetensors", i ? "within" : "free", number);
        weights[i] = temp_read(temp_path(name), &bytes[i]);
        assert_non_null(weights[i]);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(weights[0], weights[1], bytes[0]);
    free(weights[0]);
    free(weights[1]);
}

/** Losses of updates in parts: sums in another order, so that each may be off by the length of the sums times 2^-24,
 *  and what an update does with that. A rate so small that weights hardly move keeps the latter below the former. */
static void parts_make_the_update_of_the_whole(void **state)
{
    (void)state;
    enum { CHAIN = 4096 }; // sums on the way through the small models and back
    static const int models[] = {0, 1, 4, 6, 7};
    char text[TEXT];
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        mixt_run_result whole, parts;
        mixt_config *config = config_of("%s precision=fp32 threads=2 train.batch=12 train.steps=9 train.lr=1e-6 "
                                        "data.limit=64 train.epochs=0 train.accumulate=2",
                                        settings_of(models[i], text));
        history a = train(config, "whole", i, &whole);
        settings_add(config, "train.split=4");
        history b = train(config, "parts", i, &parts);
        assert_int_equal(a.count, 9);
        for (int k = 0; k < a.count; k++) {
            const mixt_step *x = &a.steps[k], *y = &b.steps[k];
            assert_int_equal(x->samples, y->samples);
            assert_int_equal(x->epoch, y->epoch);
            assert_true(x->lr == y->lr);
            if (!(fabs(x->loss - y->loss) <= CHAIN * 0x1p-24 * x->loss) ||
                !(fabs(x->grad_norm - y->grad_norm) <= 24 * CHAIN * 0x1p-24 * x->grad_norm))
                fail_msg("%s, update %d: loss %.9g and %.9g, norm %.9g and %.9g", small[models[i]][0], k + 1, x->loss,
                         y->loss, x->grad_norm, y->grad_norm);
        }
        assert_true(parts.memory.activations < whole.memory.activations);
        mixt_config_free(config);
    }
}

/* ---- within a budget ---- */

/** Bytes that a run takes as it is configured. */
static size_t memory_of(const mixt_config *config)
{
    mixt_run *run;
    mixt_run_memory memory;
    check_ok(mixt_run_open_config(config, NULL, &run));
    check_ok(mixt_run_plan_memory(run, &memory));
    mixt_run_close(run);
    return memory.total.host;
}

/** Trains with all that a run does, or makes one update and one validation. */
static void check_taken(mixt_run *run, const mixt_fit *fit, bool whole)
{
    mixt_run_result result;
    mixt_evaluation evaluation;
    mixt_data *train, *val;
    if (whole) {
        check_ok(mixt_run_train(run, &result));
        assert_int_equal(result.run_memory.total.host, fit->memory);
        assert_true(result.run_memory.allocated.host <= fit->memory + SMALL);
    } else {
        check_ok(mixt_run_data(run, "train", &train));
        check_ok(mixt_run_data(run, "val", &val));
        check_ok(mixt_trainer_step(mixt_run_trainer(run), train, NULL));
        check_ok(mixt_trainer_evaluate(mixt_run_trainer(run), val, &evaluation));
        check_ok(mixt_trainer_memory(mixt_run_trainer(run), &result.memory));
    }
    assert_int_equal(result.memory.total, result.memory.allocated);
}

static void check_budget(mixt_config *config, const char *name, size_t budget, bool whole)
{
    mixt_run *run;
    mixt_fit fit;
    settings_add(config, "train.memory=%zu", budget);
    if (mixt_run_open_config(config, NULL, &run) == MIXT_ERROR_MEMORY) {
        assert_non_null(strstr(mixt_error_text(), "(train.memory): the smallest plan takes"));
        return;
    }
    if (!run)
        fail_msg("%s within %zu bytes: %s", name, budget, mixt_error_text());
    check_ok(mixt_plan_fit(run, 0, &fit));
    assert_true(fit.memory <= budget);
    assert_int_equal(fit.budget, budget);
    assert_int_equal(fit.batch * fit.accumulate, mixt_config_int(config, "train.batch"));
    assert_int_equal(mixt_config_int(mixt_run_config(run), "train.split"), fit.split);
    assert_int_equal(mixt_config_int(mixt_run_config(run), "train.recompute"), fit.recompute);
    assert_non_null(fit.lines[0]);
    check_taken(run, &fit, whole);
    mixt_run_close(run);
}

static void plans_are_within_their_budget(void **state)
{
    (void)state;
    static const char *const formats[] = {"fp32", "fp16", "bf16"};
    static const struct {
        int format;
        size_t share;
    } tried[] = {{0, 90}, {1, 70}, {2, 50}};
    char text[TEXT];
    for (int model = 0; model < MODELS; model++)
        for (size_t i = (size_t)model % CASE_STRIDE; i < sizeof tried / sizeof tried[0]; i += CASE_STRIDE) {
            if (model == 2 && tried[i].share == 50)
                continue; // to find that nothing fits takes seconds
            mixt_config *config =
                config_of("%s precision=%s threads=2 train.batch=16 train.steps=1 train.epochs=1 out=%s/%d "
                          "train.memory_may=recompute,split",
                          settings_of(model, text), formats[tried[i].format], temp_folder, model);
            check_budget(config, small[model][0], memory_of(config) / 100 * tried[i].share, i == 1 && model != 3);
            mixt_config_free(config);
        }
}

/** Batch norm is split only where that was asked for by name, and then says so. */
static void batch_norm_is_left_alone(void **state)
{
    (void)state;
    char text[TEXT];
    mixt_run *run;
    mixt_fit fit;
    mixt_config *config = config_of("%s net.norm=batch threads=2 train.batch=64 train.steps=1", settings_of(1, text));
    size_t all = memory_of(config);
    check_ok(mixt_run_open_config(config, NULL, &run));
    check_ok(mixt_plan_fit(run, all / 10 * 6, &fit));
    assert_true(fit.split == 1 && fit.recomputed > 0 && !fit.batch_norm);
    assert_int_equal(mixt_plan_fit(run, all / 5, &fit), MIXT_ERROR_MEMORY);
    assert_non_null(strstr(mixt_error_text(), "train.memory_may=recompute,split"));
    size_t least = fit.memory; // which was told: it must do
    check_ok(mixt_plan_fit(run, least, &fit));
    assert_true(fit.memory <= least);
    mixt_run_close(run);
    settings_add(config, "train.memory=%zu", all / 10 * 6);
    settings_add(config, "train.memory_may=split");
    check_ok(mixt_run_open_config(config, NULL, &run));
    check_ok(mixt_plan_fit(run, 0, &fit));
    assert_true(fit.batch_norm && fit.split > 1 && !fit.recomputed);
    mixt_run_close(run);
    mixt_config_free(config);
}

/** The least that a run can take. */
static size_t least_of(const mixt_config *config)
{
    mixt_run *run;
    mixt_fit fit;
    check_ok(mixt_run_open_config(config, NULL, &run));
    assert_int_equal(mixt_plan_fit(run, 1, &fit), MIXT_ERROR_MEMORY);
    mixt_run_close(run);
    return fit.memory;
}

/** Computed again is computed the same: losses and weights have the same bits, dropout's too. */
static void recomputation_changes_no_bit(void **state)
{
    (void)state;
    char text[TEXT];
    static const int models[] = {1, 4, 5, 7};
    int smaller = 0;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        int model = models[i];
        mixt_run_result whole, within;
        mixt_config *config = config_of("%s precision=bf16 threads=2 train.batch=8 train.steps=2 train.epochs=0 "
                                        "train.memory_may=recompute data.limit=64",
                                        settings_of(model, text));
        if (model >= 4)
            settings_add(config, "net.dropout=0.1");
        history a = train(config, "free", (size_t)model, &whole);
        settings_add(config, "train.memory=%zu", least_of(config));
        history b = train(config, "within", (size_t)model, &within);
        smaller += within.memory.activations < whole.memory.activations;
        assert_int_equal(a.count, b.count);
        for (int k = 0; k < a.count; k++)
            if (memcmp(&a.steps[k].loss, &b.steps[k].loss, sizeof a.steps[k].loss))
                fail_msg("%s, update %d: loss %.17g, within less memory %.17g", small[model][0], k + 1, a.steps[k].loss,
                         b.steps[k].loss);
        same_files(model);
        mixt_config_free(config);
    }
    assert_true(smaller >= 3);
}

/** The same run planned for less and less, and for more again. */
static void a_run_is_planned_anew(void **state)
{
    (void)state;
    char text[TEXT];
    mixt_run *run;
    mixt_fit fit;
    mixt_config *config = config_of("%s threads=2 train.batch=64 train.steps=1", settings_of(4, text));
    size_t all = memory_of(config);
    check_ok(mixt_run_open_config(config, NULL, &run));
    check_ok(mixt_plan_fit(run, 0, &fit));
    assert_true(!fit.budget && fit.batch == 64 && fit.split == 1 && !fit.lines[0]);
    for (size_t share = 80; share >= 60; share -= 10) {
        check_ok(mixt_plan_fit(run, all / 100 * share, &fit));
        assert_true(fit.memory <= all / 100 * share && fit.asked == all && (fit.split > 1 || fit.recomputed));
    }
    assert_int_equal(mixt_plan_fit(run, 1000, &fit), MIXT_ERROR_MEMORY);
    assert_true(fit.memory > 1000);
    check_ok(mixt_plan_fit(run, 2 * all, &fit));
    assert_true(fit.split == 1 && !fit.recomputed && fit.cost == 0 && fit.memory == all);
    assert_int_equal(mixt_plan_fit(NULL, 1, &fit), MIXT_ERROR_ARGUMENT);
    mixt_run_close(run);
    mixt_config_free(config);
}

/** Kept in a lower format where that is listed, and as they are again where there is room. */
static void activations_are_kept_where_listed(void **state)
{
    (void)state;
    char text[TEXT];
    mixt_run *run;
    mixt_fit fit;
    mixt_config *config =
        config_of("%s threads=2 train.batch=64 train.steps=1 precision=fp32 train.memory_may=keep out=%s/kept",
                  settings_of(4, text), temp_folder);
    size_t all = memory_of(config);
    check_ok(mixt_run_open_config(config, NULL, &run));
    check_ok(mixt_plan_fit(run, all / 10 * 8, &fit));
    assert_true(fit.keep == MIXT_DTYPE_BF16 && fit.split == 1 && !fit.recomputed && fit.memory <= all / 10 * 8);
    assert_string_equal(mixt_config_string(mixt_run_config(run), "train.activations"), "bf16");
    assert_int_equal(mixt_policy_keep(mixt_trainer_policy(mixt_run_trainer(run))), MIXT_DTYPE_BF16);
    assert_int_equal(mixt_plan_fit(run, 1000, &fit), MIXT_ERROR_MEMORY);
    check_ok(mixt_plan_fit(run, all, &fit));
    assert_true(fit.keep == MIXT_DTYPE_NONE && fit.memory == all);
    assert_string_equal(mixt_config_string(mixt_run_config(run), "train.activations"), "policy");
    assert_int_equal(mixt_policy_keep(mixt_trainer_policy(mixt_run_trainer(run))), MIXT_DTYPE_NONE);
    check_ok(mixt_plan_fit(run, all / 10 * 6, &fit));
    assert_true(fit.keep != MIXT_DTYPE_NONE);
    check_taken(run, &fit, true);
    mixt_run_close(run);
    mixt_config_free(config);
}

/* ---- the largest batch ---- */

/** A random configuration of a small model. */
static mixt_config *random_config(mixt__rng *rng)
{
    static const char *const formats[] = {"fp32", "fp16", "bf16"};
    static const char *const optimizers[] = {"sgd", "momentum", "adamw"};
    char text[TEXT];
    mixt_config *config = config_of("%s threads=2 train.steps=1", settings_of((int)mixt__rng_below(rng, MODELS), text));
    settings_add(config, "precision=%s", formats[mixt__rng_below(rng, 3)]);
    settings_add(config, "train.optimizer=%s", optimizers[mixt__rng_below(rng, 3)]);
    settings_add(config, "train.accumulate=%d", 1 + (int)mixt__rng_below(rng, 3));
    settings_add(config, "train.split=%d", 1 + (int)mixt__rng_below(rng, 2));
    settings_add(config, "data.val_fraction=%s", mixt__rng_below(rng, 4) ? "0.1" : "0");
    if (mixt__rng_below(rng, 2))
        settings_add(config, "train.eval_batch=%d", 1 + (int)mixt__rng_below(rng, 40));
    return config;
}

/** Whether a run with this batch fits into `memory` as it is, and what it takes. */
static bool fits(mixt_config *config, int64_t batch, size_t memory, size_t *bytes)
{
    mixt_run *run;
    mixt_fit fit;
    settings_add(config, "train.batch=%lld", (long long)batch);
    check_ok(mixt_run_open_config(config, NULL, &run));
    mixt_status status = mixt_plan_fit(run, memory, &fit);
    *bytes = fit.memory;
    mixt_run_close(run);
    return status == MIXT_OK;
}

static void train_largest(mixt_config *config, const mixt_largest_batch *largest, int number)
{
    mixt_run *run;
    mixt_run_result result;
    settings_add(config, "train.batch=%lld", (long long)largest->batch);
    settings_add(config, "train.memory=%zu", largest->limit);
    settings_add(config, "out=%s/largest-%d", temp_folder, number);
    check_ok(mixt_run_open_config(config, NULL, &run));
    check_ok(mixt_run_train(run, &result));
    assert_int_equal(result.memory.total, result.memory.allocated);
    assert_int_equal(result.run_memory.total.host, largest->memory);
    assert_true(result.run_memory.allocated.host <= largest->limit + SMALL);
    mixt_run_close(run);
}

static void the_largest_batch_is_the_largest(void **state)
{
    (void)state;
    enum { CASES = 200 / CASE_STRIDE, TRAINED = 5 };
    const char *given = getenv("MIXT_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    mixt__rng rng = mixt__rng_start(seed);
    int by_memory = 0;
    print_message("MIXT_SEED=%llu\n", (unsigned long long)seed);
    for (int i = 0; i < CASES; i++) {
        mixt_config *config = random_config(&rng);
        mixt_largest_batch largest;
        size_t bytes, unit = (size_t)mixt_config_int(config, "train.split");
        settings_add(config, "train.memory_may=[]");
        settings_add(config, "train.batch=%zu", unit);
        size_t memory = memory_of(config) + (size_t)mixt__rng_below(&rng, 6 << 20);
        check_ok(mixt_plan_largest_batch(config, NULL, memory, &largest));
        assert_true(largest.memory <= memory && largest.limit == memory);
        if (!fits(config, largest.batch, memory, &bytes) || bytes != largest.memory)
            fail_msg("case %d: a batch of %lld takes %zu of %zu bytes, not %zu", i, (long long)largest.batch, bytes,
                     memory, largest.memory);
        if (largest.next) {
            bool more = fits(config, largest.batch + (int64_t)unit, memory, &bytes);
            if (more || bytes != largest.next || bytes <= memory)
                fail_msg("case %d: a batch of %lld takes %zu of %zu bytes, not %zu", i,
                         (long long)(largest.batch + (int64_t)unit), bytes, memory, largest.next);
            by_memory++;
        } else
            assert_non_null(strstr(largest.reason, "samples"));
        if (i % (CASES / TRAINED) == 0)
            train_largest(config, &largest, i);
        mixt_free(largest.reason);
        mixt_config_free(config);
    }
    assert_true(by_memory > CASES / 2);
}

static void largest_batches_are_refused(void **state)
{
    (void)state;
    char text[TEXT];
    mixt_largest_batch largest;
    mixt_config *config = config_of("%s threads=2 train.steps=1", settings_of(0, text));
    assert_int_equal(mixt_plan_largest_batch(NULL, NULL, 1, &largest), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_plan_largest_batch(config, NULL, 1, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_plan_largest_batch(config, NULL, 1000, &largest), MIXT_ERROR_MEMORY);
    assert_non_null(strstr(mixt_error_text(), "not even a batch of 1 fits"));
    assert_null(largest.reason);
    check_ok(mixt_plan_largest_batch(config, NULL, (size_t)1 << 40, &largest)); // the data ends before the memory
    assert_true(!largest.next && largest.batch == 160);
    mixt_free(largest.reason);
    mixt_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(parts_have_the_samples_of_the_whole),
        cmocka_unit_test(parts_make_the_update_of_the_whole),
        cmocka_unit_test(plans_are_within_their_budget),
        cmocka_unit_test(batch_norm_is_left_alone),
        cmocka_unit_test(recomputation_changes_no_bit),
        cmocka_unit_test(a_run_is_planned_anew),
        cmocka_unit_test(activations_are_kept_where_listed),
        cmocka_unit_test(the_largest_batch_is_the_largest),
        cmocka_unit_test(largest_batches_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, temp_folder_teardown);
}
