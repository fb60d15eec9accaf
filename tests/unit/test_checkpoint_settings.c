/* Restoring compares every setting that changes bits. One row an option and one a variable of the environment: a new
 * one without a row fails here, so that nobody forgets to say whether a checkpoint depends on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "api/api.h"
#include "base/env.h"
#include "mixt/mixt.h"
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mixt_value net(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
{
    return mixt_linear(b, "fc", mixt_flatten(b, x), .features = 10);
}

typedef struct session {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
} session;

static session begin(const mixt_model_options *model, const mixt_trainer_options *options)
{
    session s = {.context = mixt_open(.device = "cpu", .threads = 1)};
    s.data = mixt_data_new(s.context, "digits:", .limit = 64);
    s.trainer =
        MIXT_MADE(mixt_trainer, mixt_trainer_new_with,
                  MIXT_MADE(mixt_model, mixt_model_new_with, s.context, net, MIXT_LOSS_CROSS_ENTROPY, model), options);
    if (!s.trainer || mixt_trainer_compile(s.trainer, s.data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return s;
}

#define OPTIONS(...) MIXT_OPTIONS(mixt_trainer_options, .optimizer = "momentum", .batch = 16, __VA_ARGS__)

/** The folder of a checkpoint made with these options. */
static const char *save(const mixt_model_options *model, const mixt_trainer_options *options)
{
    session s = begin(model, options);
    const char *folder = temp_path("checkpoint");
    assert_int_equal(mixt_trainer_step(s.trainer, s.data, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_checkpoint(s.trainer, folder), MIXT_OK);
    mixt_close(s.context);
    return folder;
}

/** Restores under other options: refused with these words, or, with NULL, taken. */
static void expect(const char *folder, const mixt_model_options *model, const mixt_trainer_options *options,
                   const char *name, const char *words)
{
    session s = begin(model, options);
    mixt_status status = mixt_trainer_restore(s.trainer, folder);
    if (status != (words ? MIXT_ERROR_CONFIG : MIXT_OK) || (words && !strstr(mixt_error_text(), words)))
        fail_msg("%s: expected '%s', got %d: '%s'", name, words ? words : "", (int)status, mixt_error_text());
    mixt_close(s.context);
}

typedef struct row {
    const char *name;
    size_t offset, size, alignment;
    mixt_trainer_options other;
    const char *words; // of the refusal, old and new value; NULL: the checkpoint does not depend on it
} row;

#define FIELD(f)                                                                                                       \
#f, offsetof(mixt_trainer_options, f), sizeof(((mixt_trainer_options *)0)->f),                                     \
        _Alignof(__typeof__(((mixt_trainer_options *)0)->f))
#define ROW(f, value, words)                                                                                           \
    {                                                                                                                  \
        FIELD(f), OPTIONS(.f = value), words                                                                           \
    }

/** The rows, in the order of the fields, leave no gap in the struct but for alignment: none is missing. */
static void check_complete(const row *rows, size_t count)
{
    size_t end = sizeof(size_t); // struct_size
    for (size_t i = 0; i < count; i++) {
        size_t next = (end + rows[i].alignment - 1) / rows[i].alignment * rows[i].alignment;
        if (rows[i].offset != next)
            fail_msg("an option before %s has no row here: say whether a checkpoint depends on it", rows[i].name);
        end = rows[i].offset + rows[i].size;
    }
    if (sizeof(mixt_trainer_options) - end >= _Alignof(mixt_trainer_options))
        fail_msg("the last option has no row here: say whether a checkpoint depends on it");
}

static void options_are_compared(void **state)
{
    (void)state;
    mixt_policy *fp16;
    assert_int_equal(mixt_policy_named("fp16", &fp16), MIXT_OK);
    const row rows[] = {
        ROW(precision, "bf16", "precision: fp32 -> bf16"),
        ROW(policy, fp16, "precision: fp32 -> fp16"),
        ROW(optimizer, "adam", "optimizer: sgd -> adam"),
        ROW(batch, 8, "batch: 16 -> 8"),
        ROW(accumulate, 2, "accumulate: 1 -> 2"),
        ROW(split, 2, "split: 1 -> 2"),
        ROW(ranks, 2, "ranks: 1 -> 2"),
        ROW(lr, 0.5f, "lr: 0.00100000005 -> 0.5"),
        ROW(momentum, 0, "momentum: 0.899999976 -> 0.0"),
        ROW(beta1, 0, "beta1: 0.899999976 -> 0.0"),
        ROW(beta2, 0.5f, "beta2: 0.999000013 -> 0.5"),
        ROW(eps, 0.5f, "eps: 9.99999994e-9 -> 0.5"),
        ROW(weight_decay, 0.5f, "weight_decay: 0.0 -> 0.5"),
        ROW(settings.loss_scale, "8", "loss_scale: none -> fixed"),
        ROW(settings.scale_init, 8, "scale_init: 65536.0 -> 8.0"),
        ROW(settings.scale_growth, 4, "scale_growth: 2.0 -> 4.0"),
        ROW(settings.scale_backoff, 0.25f, "scale_backoff: 0.5 -> 0.25"),
        ROW(settings.scale_floor, 2, "scale_floor: 1.0 -> 2.0"),
        ROW(settings.scale_ceiling, 131072, "scale_ceiling: 16777216.0 -> 131072.0"),
        ROW(settings.scale_interval, 5, "scale_interval: 2000 -> 5"),
        ROW(settings.scale_hysteresis, 2, "scale_hysteresis: 1 -> 2"),
        ROW(settings.clip, 1, "clip: 0.0 -> 1.0"),
        ROW(settings.clip_value, 1, "clip_value: 0.0 -> 1.0"),
        ROW(moments, "bf16", "moments: fp32 -> bf16"),
        ROW(schedule, "step", "schedule: constant -> step"),
        ROW(min_lr, 0.25f, "min_lr: 0.0 -> 0.25"),
        ROW(gamma, 0.5f, "gamma: 0.100000001 -> 0.5"),
        ROW(warmup, 3, "warmup: 0 -> 3"),
        ROW(decay_steps, 7, "decay_steps: 1000 -> 7"),
        ROW(total_steps, 9, NULL), // a run may be made longer
        ROW(seed, 5, "seed: 0 -> 5"),
        ROW(freeze, "fc.bias", "freeze: (none) -> fc.bias"),
        ROW(lr_groups, "fc=2", "lr_groups: (none) -> fc=2"),
        ROW(decay_groups, "fc=0.5", "decay_groups: (none) -> fc=0.5"),
        ROW(eval_batch, 32, NULL), // validation changes nothing
        ROW(no_fusion, true, "no_fusion: false -> true"),
        ROW(recompute_budget, (size_t)1 << 40, NULL), // the same bits
        ROW(inject_overflow, 4, "inject_overflow: 0 -> 4"),
        ROW(faults, "nan_data@90", NULL),
        {FIELD(frozen), OPTIONS(.frozen = "int8", .freeze = "fc.weight"), "frozen: auto -> int8"},
        ROW(no_integrity, true, NULL), // the same bits
        ROW(integrity_every, 7, NULL),
    };
    size_t count = sizeof rows / sizeof rows[0];
    check_complete(rows, count);
    mixt_trainer_options base = OPTIONS();
    const char *folder = save(NULL, &base);
    expect(folder, NULL, &base, "nothing", NULL);
    for (size_t i = 0; i < count; i++)
        expect(folder, NULL, &rows[i].other, rows[i].name, rows[i].words);
    expect(folder, MIXT_OPTIONS_AT(mixt_model_options, .label_smoothing = 0.5f), &base, "label_smoothing",
           "label_smoothing: 0.0 -> 0.5");
    mixt_policy_free(fp16);
}

static void environment_is_compared(void **state)
{
    (void)state;
    const struct {
        const char *value, *words; // NULL: the state does not depend on it, or it is of the machine, which may change
    } rows[] = {
        [MIXT_ENV_LOG] = {NULL, NULL},
        [MIXT_ENV_ISA] = {NULL, NULL},
        [MIXT_ENV_THREADS] = {NULL, NULL},
        [MIXT_ENV_CANDIDATE] = {"matmul=plain", "MIXT_CANDIDATE: (none) -> matmul=plain"},
        [MIXT_ENV_FUSION] = {"0", "MIXT_FUSION: 1 -> 0"},
        [MIXT_ENV_FAIL_ALLOC] = {NULL, NULL},
        [MIXT_ENV_FAIL_WRITE] = {NULL, NULL},
        [MIXT_ENV_CACHE] = {NULL, NULL},
        [MIXT_ENV_CUDA_LIBRARY] = {NULL, NULL},
        [MIXT_ENV_MPI_LIBRARY] = {NULL, NULL},
        [MIXT_ENV_REPLAY] = {"0", NULL},
        [MIXT_ENV_DEVICE] = {NULL, NULL},
        [MIXT_ENV_PROFILES] = {NULL, NULL},
        [MIXT_ENV_NOW] = {NULL, NULL},
    };
    _Static_assert(sizeof rows / sizeof rows[0] == MIXT_ENV_COUNT, "say whether a checkpoint depends on the new one");
    mixt_trainer_options base = OPTIONS();
    const char *folder = save(NULL, &base);
    for (size_t i = 0; i < MIXT_ENV_COUNT; i++) {
        const char *before = getenv(mixt__env_table[i].name);
        if (!rows[i].value || before)
            continue;
        setenv(mixt__env_table[i].name, rows[i].value, 1);
        expect(folder, NULL, &base, mixt__env_table[i].name, rows[i].words);
        unsetenv(mixt__env_table[i].name);
    }
}

/** Checkpoints of versions that did not record some settings: the defaults count, for the rest nobody knows. */
static void what_is_not_recorded(void **state)
{
    (void)state;
    const char *const missing[] = {"freeze",          "lr_groups",   "decay_groups",
                                   "inject_overflow", "MIXT_FUSION", "MIXT_CANDIDATE"};
    mixt_trainer_options base = OPTIONS(), other = OPTIONS(.lr_groups = "fc=2");
    session s = begin(NULL, &base), t = begin(NULL, &other);
    json_t *then = mixt__trainer_settings_json(s.trainer->inner);
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
        assert_int_equal(json_object_del(then, missing[i]), 0);
    char *differences;
    assert_int_equal(mixt__trainer_settings_differences(s.trainer->inner, then, NULL, &differences), MIXT_OK);
    assert_null(differences);
    assert_int_equal(mixt__trainer_settings_differences(t.trainer->inner, then, NULL, &differences), MIXT_OK);
    assert_string_equal(differences, "lr_groups: (not recorded by the version that made it) -> fc=2");
    mixt__free(differences);
    assert_int_equal(json_object_del(then, "lr"), 0); // recorded always: missing, something is wrong
    assert_int_equal(mixt__trainer_settings_differences(s.trainer->inner, then, NULL, &differences), MIXT_OK);
    assert_string_equal(differences, "lr: (not there) -> 0.00100000005");
    mixt__free(differences);
    json_decref(then);
    mixt_close(s.context);
    mixt_close(t.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_compared),
        cmocka_unit_test(environment_is_compared),
        cmocka_unit_test(what_is_not_recorded),
    };
    temp_folder_make();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_remove();
    return failed;
}
