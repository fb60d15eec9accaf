/* Advice for assumed machines: the right answer, with its reason, for a table of models and machines. Nothing is timed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../support/sanitized.h"

#include "mixt/advise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANDOM "data.kind=random"

static const char *const gpt2[] = {
    "model=gpt",          "net.layers=12", "net.width=768",   "net.heads=12",   RANDOM, "data.path=tokens",
    "data.classes=50257", "data.seq=1024", "data.samples=64", "train.batch=32", NULL};
static const char *const bert[] = {
    "model=bert_mlm",     "net.layers=12", "net.width=768",    "net.heads=12",    RANDOM,           "data.path=tokens",
    "data.classes=30522", "data.seq=128",  "data.samples=512", "train.batch=256", "data.mask=0.15", NULL};
static const char *const resnet50[] = {
    "model=resnet",     "net.depth=50",    RANDOM, "data.path=224x224x3", "data.classes=1000",
    "data.samples=512", "train.batch=256", NULL};
static const char *const normed[] = { // batch norm: not to be passed in parts
    "model=convnet",    "net.channels=[32,64,64]", "net.norm=batch",   RANDOM, "data.path=64x64x3",
    "data.classes=100", "data.samples=2048",       "train.batch=1024", NULL};
static const char *const mlp[] = {"model=mlp",      "net.hidden=[512,512]", "data.kind=digits",
                                  "data.limit=512", "train.batch=128",      NULL};
static const char *const tiny[] = {"model=mlp",      "net.hidden=[30]", "data.kind=digits",
                                   "data.limit=512", "train.batch=32",  NULL};
static const char *const lstm[] = {
    "model=lstm",       "net.layers=2", "net.width=512",    RANDOM,           "data.path=tokens",
    "data.classes=256", "data.seq=256", "data.samples=128", "train.batch=64", NULL};
static const char *const gpt[] = {
    "model=gpt",        "net.layers=6", "net.width=384",   "net.heads=6",   RANDOM, "data.path=tokens",
    "data.classes=256", "data.seq=256", "data.samples=64", "train.batch=8", NULL};

static mixt_config *config_of(const char *const *settings)
{
    mixt_config *config;
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    for (; *settings; settings++)
        assert_int_equal(mixt_config_set(config, *settings, "test"), MIXT_OK);
    return config;
}

static mixt_advice *ask(const char *const *model, const mixt_advise_options *options)
{
    mixt_advice *advice;
    mixt_config *config = config_of(model);
    mixt_status status = mixt_advise_with(config, options, &advice);
    if (status != MIXT_OK)
        fail_msg("%s: %s", options->machine, mixt_error_text());
    mixt_config_free(config);
    return advice;
}

static const mixt_advice_candidate *find(const mixt_advice *advice, const char *name)
{
    const mixt_advice_candidate *c;
    for (int i = 0; (c = mixt_advice_candidate_at(advice, i)); i++)
        if (!strcmp(c->name, name))
            return c;
    fail_msg("no candidate %s", name);
    return NULL;
}

/* ---- the table ---- */

typedef struct row {
    const char *const *model;
    const char *machine;
    double gib; // of memory that may be taken; 0: all
    double lose;
    const char *precision, *loss_scale, *decided;
    const char *other, *verdict; // one that lost, and how
} row;

#define USUAL (-1) // what may be lost is the default
static const row rows[] = {
    // Volta and Turing have FP16 alone
    {gpt2, "v100", 0, USUAL, "fp16", "dynamic", "hardware", "bf16", "no units"},
    {resnet50, "v100", 0, USUAL, "fp16", "dynamic", "hardware", "tf32", "no units"},
    {lstm, "v100", 0, USUAL, "fp16", "dynamic", "hardware", "fp32", "slower"},
    {bert, "t4", 0, USUAL, "fp16", "dynamic", "hardware", "bf16", "no units"},
    {mlp, "t4", 0, USUAL, "fp16", "dynamic", "hardware", "fp32", "slower"},
    // from Ampere on BF16 is as fast and needs no loss scaling
    {gpt2, "a100", 0, USUAL, "bf16", "none", "time", "fp16", "no gain"},
    {bert, "a100", 0, USUAL, "bf16", "none", "time", "tf32", "slower"},
    {resnet50, "a100-80", 0, USUAL, "bf16", "none", "time", "fp32", "slower"},
    {lstm, "a100-80", 0, USUAL, "bf16", "none", "time", "fp8", "not trained"},
    {gpt2, "h100", 0, USUAL, "bf16", "none", "time", "fp8", "not trained"},
    {gpt2, "h200", 0, USUAL, "bf16", "none", "time", "tf32", "slower"},
    {mlp, "h200", 0, USUAL, "fp32", "none", "time", "bf16", "no gain"}, // mostly launches: not worth a second format
    {resnet50, "rtx4090", 0, USUAL, "bf16", "none", "time", "fp32", "slower"},
    {gpt, "rtx4090", 0, USUAL, "bf16", "none", "time", "fp16", "no gain"},
    // thirty units are all launches
    {tiny, "v100", 0, USUAL, "fp32", "none", "time", "fp16", "no gain"},
    {tiny, "a100", 0, USUAL, "fp32", "none", "time", "bf16", "no gain"},
    {tiny, "h200", 0, USUAL, "fp32", "none", "time", "bf16", "no gain"},
    {tiny, "cpu-avx512", 0, USUAL, "fp32", "none", "time", "bf16", "no gain"},
    // a CPU without units for 16 bits computes in FP32 whatever it stores: only memory asks for less
    {gpt, "cpu-avx2", 0, USUAL, "fp32", "none", "hardware", "bf16", "no gain"},
    {resnet50, "cpu-avx2", 0, USUAL, "fp32", "none", "hardware", "fp16", "no gain"},
    {gpt2, "cpu-avx512", 0, USUAL, "fp32", "none", "hardware", "tf32", "no units"},
    {gpt2, "cpu-avx512", 18, USUAL, "fp32", "none", "memory", "bf16", "no gain"}, // in parts: FP32 can stay

    {normed, "cpu-avx2", 1.2, USUAL, "bf16", "none", "memory", "fp32", "too large"}, // whatever is computed again
    {resnet50, "cpu-avx2", 16, USUAL, "bf16", "none", "memory", "fp32", "slower"},   // it would compute again to fit

    {gpt, "cpu-avx512bf16", 0, USUAL, "bf16", "none", "time", "fp32", "slower"},
    {gpt2, "cpu-amx", 0, USUAL, "bf16", "none", "time", "fp16", "no gain"},
    {lstm, "cpu-amx", 0, USUAL, "bf16", "none", "time", "fp32", "slower"},
    // what may be lost
    {gpt2, "a100", 0, 0.001, "fp16", "dynamic", "accuracy", "bf16", "loses"},
    {gpt2, "h200", 0, 0, "fp32", "none", "accuracy", "tf32", "loses"},
    {lstm, "v100", 0, 0, "fp32", "none", "accuracy", "fp16", "loses"},
    {gpt, "cpu-amx", 0, 0.001, "fp32", "none", "accuracy", "bf16", "loses"},
};

static void test_table(void **state)
{
    (void)state;
    assert_true(sizeof rows / sizeof rows[0] >= 24);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i += CASE_STRIDE) {
        const row *r = &rows[i];
        mixt_advise_options options =
            MIXT_OPTIONS(mixt_advise_options, .machine = r->machine, .lose = r->lose < 0 ? 0.005 : r->lose);
        options.memory = (size_t)(r->gib * 1073741824);
        mixt_advice *advice = ask(r->model, &options);
        const mixt_advice_choice *c = mixt_advice_choose(advice);
        const mixt_advice_candidate *lost = find(advice, r->other);
        if (strcmp(c->precision, r->precision) || strcmp(c->loss_scale, r->loss_scale) ||
            strcmp(c->decided, r->decided) || strcmp(lost->verdict, r->verdict) || !c->found || !c->assumed)
            fail_msg("row %zu, %s on %s: %s, %s, decided by %s (%s); %s: %s (%s)", i, r->model[0], r->machine,
                     c->precision, c->loss_scale, c->decided, c->why, lost->name, lost->verdict, lost->why);
        mixt_advice_free(advice);
    }
}

/* ---- what every answer has ---- */

static void test_whole_answer(void **state)
{
    (void)state;
    mixt_advise_options options = MIXT_OPTIONS(mixt_advise_options, .machine = "a100", .price = 2);
    mixt_advice *advice = ask(gpt2, &options);
    const mixt_advice_choice *choice = mixt_advice_choose(advice);
    const mixt_advice_candidate *c, *chosen = find(advice, "bf16");
    int count = 0;
    for (; (c = mixt_advice_candidate_at(advice, count)); count++) {
        assert_true(strlen(c->why) > 10);
        if (strcmp(c->name, "fp8")) {
            assert_string_equal(c->source, "modelled");
            assert_true(c->memory > 0 && c->seconds > 0);
            assert_true(fabs(c->cost - 2 * c->run_seconds / 3600) < 1e-9);
        }
    }
    assert_int_equal(count, 5);
    assert_string_equal(chosen->verdict, "chosen");
    assert_true(choice->clip == 1); // attention, and the configuration says nothing
    assert_int_equal(choice->batch, 32);
    assert_int_equal(choice->accumulate, 1);
    assert_true(chosen->memory < 0.7 * (double)find(advice, "fp32")->memory);
    mixt_policy *policy;
    assert_int_equal(mixt_policy_parse(choice->policy, "advice", &policy), MIXT_OK);
    assert_string_equal(mixt_policy_made_by(policy), "mixt advise");
    assert_non_null(strstr(choice->policy, "fp32_ms"));
    mixt_policy_free(policy);
    mixt_advice_free(advice);
}

/* ---- remedies ---- */

static const mixt_remedy *remedy(const mixt_advice *advice, const char *what)
{
    const mixt_remedy *r;
    for (int i = 0; (r = mixt_advice_remedy(advice, i)); i++)
        if (!strcmp(r->what, what))
            return r;
    return NULL;
}

/** A configuration with one more setting. */
static mixt_advice *ask_with(const char *const *model, const char *setting, const mixt_advise_options *options)
{
    const char *all[24];
    int n = 0;
    for (; model[n]; n++)
        all[n] = model[n];
    all[n++] = setting;
    all[n] = NULL;
    return ask(all, options);
}

static void test_remedies(void **state)
{
    (void)state;
    mixt_advice *advice = ask_with(mlp, "net.hidden=[511,2044]", MIXT_OPTIONS_AT(mixt_advise_options, .machine = "t4"));
    const mixt_remedy *r = remedy(advice, "unaligned products");
    assert_non_null(r);
    assert_non_null(strstr(r->text, "511 is not a multiple of 8, so that"));
    assert_non_null(strstr(r->text, "make it 512"));
    assert_non_null(strstr(r->where, "fc.0"));
    mixt_advice_free(advice);

    advice = ask(tiny, MIXT_OPTIONS_AT(mixt_advise_options, .machine = "h100"));
    r = remedy(advice, "launches of small ops");
    assert_true(r && r->share > 0.5);
    r = remedy(advice, "a small batch");
    assert_true(r && r->gain > 0.3 && strstr(r->text, "train.batch=64 instead of 32"));
    mixt_advice_free(advice);

    advice = ask(gpt2, MIXT_OPTIONS_AT(mixt_advise_options, .machine = "h200"));
    assert_null(remedy(advice, "unaligned products"));
    assert_null(remedy(advice, "launches of small ops"));
    assert_null(remedy(advice, "casts"));
    for (int i = 1; mixt_advice_remedy(advice, i); i++)
        assert_true(mixt_advice_remedy(advice, i)->gain <= mixt_advice_remedy(advice, i - 1)->gain);
    mixt_advice_free(advice);
}

/** A policy of these rules over BF16, as a setting. */
static void write_policy(char path[64], char setting[80], const char *rules)
{
    strcpy(path, "/tmp/mixt_advise_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fprintf(file, "default: bf16\nrules:\n  - %s\n", rules);
    fclose(file);
    snprintf(setting, 80, "precision=%s", path);
}

/** A run whose policy keeps half of the layers in FP32 pays for products and casts. */
static void test_remedies_of_run(void **state)
{
    (void)state;
    char path[64], setting[80];
    write_policy(path, setting, "{layer: \"h.*.mlp*\", precision: fp32}");
    mixt_advice *advice =
        ask_with(gpt2, setting, MIXT_OPTIONS_AT(mixt_advise_options, .machine = "a100", .run = "none"));
    assert_string_equal(mixt_advice_choose(advice)->looked_at, strrchr(path, '/') + 1);
    const mixt_remedy *r = remedy(advice, "layers kept in fp32");
    assert_true(r && r->share > 0.3 && strstr(r->where, "mlp"));
    mixt_advice_free(advice);
    unlink(path);
    write_policy(path, setting, "{layer: \"*conv2\", precision: tf32}");
    advice = ask_with(resnet50, setting, MIXT_OPTIONS_AT(mixt_advise_options, .machine = "h200", .run = "none"));
    r = remedy(advice, "casts");
    assert_true(r && r->share > 0.02 && r->gain == r->share && strstr(r->where, "conv2"));
    mixt_advice_free(advice);
    unlink(path);
}

/** A gigabyte for what needs more: a lower format, and the batch in parts, with the same samples in an update. */
static void test_made_to_fit(void **state)
{
    (void)state;
    mixt_advise_options options = MIXT_OPTIONS(mixt_advise_options, .machine = "a100", .memory = (size_t)1 << 30);
    mixt_advice *advice = ask_with(gpt, "train.batch=64", &options);
    const mixt_advice_choice *c = mixt_advice_choose(advice);
    const mixt_advice_candidate *chosen = find(advice, "bf16");
    assert_true(c->found && c->split > 1);
    assert_string_equal(c->precision, "bf16");
    assert_string_equal(c->decided, "memory");
    assert_int_equal(c->batch * c->accumulate, 64);
    assert_true(chosen->memory <= options.memory);
    assert_true(c->largest_batch >= c->batch && c->largest_batch < 64);
    mixt_advice_free(advice);
    options.machine = "cpu-avx2"; // computes in FP32 whatever it stores
    advice = ask_with(gpt, "train.batch=64", &options);
    c = mixt_advice_choose(advice);
    assert_true(c->found && find(advice, c->precision)->memory <= options.memory);
    assert_int_equal(c->batch * c->accumulate, 64);
    mixt_advice_free(advice);
}

static void test_nothing_fits(void **state)
{
    (void)state;
    mixt_advise_options options = MIXT_OPTIONS(mixt_advise_options, .machine = "h200", .memory = 64 << 20);
    mixt_advice *advice = ask(gpt2, &options);
    const mixt_advice_choice *choice = mixt_advice_choose(advice);
    assert_false(choice->found);
    assert_string_equal(choice->decided, "memory");
    assert_string_equal(find(advice, "fp32")->verdict, "too large");
    assert_non_null(strstr(choice->why, "nothing fits"));
    mixt_advice_free(advice);
}

static void test_own_policy(void **state)
{
    (void)state;
    char path[64], setting[80];
    write_policy(path, setting, "{layer: \"h.0.*\", precision: fp32}");
    mixt_advice *advice = ask_with(gpt, setting, MIXT_OPTIONS_AT(mixt_advise_options, .machine = "h100"));
    assert_string_equal(find(advice, strrchr(path, '/') + 1)->verdict, "slower");
    mixt_advice_free(advice);
    unlink(path);
}

static bool hear_trial(void *user, const mixt_progress *p)
{
    int *heard = user;
    assert_int_equal(p->kind, MIXT_PROGRESS_STEP);
    assert_string_equal(p->task, "trying");
    assert_true(*p->what && p->seconds >= 0 && p->budget > 0 && p->budget <= 5);
    return ++*heard < 3;
}

/** The third visit of a candidate is not made. */
static void test_ended(void **state)
{
    (void)state;
    int heard = 0;
    mixt_config *config = config_of(tiny);
    mixt_advice *advice;
    assert_int_equal(mixt_advise(config, &advice, .trial = 5, .progress = hear_trial, .user = &heard),
                     MIXT_ERROR_STATE);
    assert_int_equal(heard, 3);
    assert_null(advice);
    assert_non_null(strstr(mixt_error_text(), "was stopped by the program's progress function"));
    mixt_config_free(config);
}

static void test_misuse(void **state)
{
    (void)state;
    mixt_config *config = config_of(tiny);
    mixt_advice *advice;
    assert_int_equal(mixt_advise(config, &advice, .machine = "pentium"), MIXT_ERROR_ARGUMENT);
    assert_null(advice);
    assert_int_equal(mixt_advise(config, &advice, .machine = "v100", .lose = 2), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_advise(config, &advice, .machine = "v100", .price = -1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_advise(config, NULL, .machine = "v100"), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_advise(NULL, &advice, .machine = "v100"), MIXT_ERROR_ARGUMENT);
    assert_null(mixt_advice_choose(NULL));
    assert_int_equal(mixt_advise(config, &advice, .machine = "v100"), MIXT_OK);
    assert_null(mixt_advice_candidate_at(advice, -1));
    assert_null(mixt_advice_candidate_at(advice, 100));
    assert_int_equal(mixt_advice_write(advice, "/tmp", false), MIXT_ERROR_FILE);
    mixt_advice_free(advice);
    mixt_advice_free(NULL);
    mixt_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),           cmocka_unit_test(test_whole_answer),
        cmocka_unit_test(test_nothing_fits),    cmocka_unit_test(test_own_policy),
        cmocka_unit_test(test_misuse),          cmocka_unit_test(test_remedies),
        cmocka_unit_test(test_remedies_of_run), cmocka_unit_test(test_made_to_fit),
        cmocka_unit_test(test_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
