/* The checklist from C: a tiny model verified, watched, stopped, and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 12 };

static mixt_config *tiny(const char *precision)
{
    char setting[64];
    mixt_config *config;
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    assert_int_equal(mixt_config_parse(config,
                                       "model: mlp\nthreads: 1\ndevice: cpu\nnet: {hidden: [16]}\n"
                                       "data: {kind: digits, limit: 256}\ntrain: {batch: 16, epochs: 1}\n"
                                       "verify: {speedup: 0, memory: -900, lost: 90, output: 1}\nseed: 5\n",
                                       "tiny"),
                     MIXT_OK);
    snprintf(setting, sizeof setting, "precision=%s", precision);
    assert_int_equal(mixt_config_set(config, setting, "test"), MIXT_OK);
    return config;
}

/** What was heard. */
typedef struct heard {
    int64_t steps, runs, last, stop_at;
} heard;

static bool hear(void *user, const mixt_progress *p)
{
    heard *h = user;
    const char *precision = p->part % 2 ? "fp32" : "bf16";
    char begins[40];
    assert_in_range(p->part, 1, p->parts);
    assert_string_equal(p->what, precision);
    assert_true(p->seconds >= 0 && isnan(p->budget));
    if (p->kind == MIXT_PROGRESS_STEP) {
        assert_true(p->done == h->last + 1 && p->done <= p->total && isfinite(p->loss));
        h->last = p->done;
        h->steps++;
    }
    if (p->kind == MIXT_PROGRESS_PART) {
        snprintf(begins, sizeof begins, "seed %lld, %s: loss ", 5 + (long long)(p->part - 1) / 2, precision);
        assert_int_equal(strncmp(p->text, begins, strlen(begins)), 0);
        assert_true(strstr(p->text, " ms per update") && isfinite(p->loss) && p->accuracy >= 0);
        h->runs++;
    }
    return !h->stop_at || h->steps < h->stop_at;
}

static void test_checklist(void **state)
{
    (void)state;
    heard h = {0};
    mixt_config *config = tiny("bf16");
    mixt_verification *v;
    if (mixt_verify(config, &v, .seeds = 2, .steps = STEPS, .progress = hear, .user = &h) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    assert_true(h.runs == 4 && h.steps == 4 * STEPS);
    assert_string_equal(mixt_config_string(config, "precision"), "bf16"); // only read
    assert_int_equal(mixt_config_int(config, "seed"), 5);
    mixt_config_free(config);
    mixt_verification_info info = mixt_verification_describe(v);
    assert_true(info.checklist && info.seeds == 2 && info.first_seed == 5);
    assert_int_equal(info.safe, MIXT_VERDICT_UNDECIDED); // by two seeds
    const mixt_judgement *safe = mixt_verification_judgement(v, MIXT_CLAIM_SAFE);
    assert_true(safe->pairs == 2 && safe->needs > 0 && safe->updates == STEPS && safe->margin == 0.9);
    assert_true(!strcmp(safe->statistic, "loss") || !strcmp(safe->statistic, "accuracy lost")); // what scatters less
    const mixt_judgement *smaller = mixt_verification_judgement(v, MIXT_CLAIM_SMALLER);
    assert_true(smaller->value == mixt_verification_line(v, 1)->value / 100 &&
                smaller->evidence == MIXT_EVIDENCE_MEASURED);
    assert_int_equal(mixt_verification_judgement(v, MIXT_CLAIM_FASTER)->pairs, 2);
    assert_null(mixt_verification_judgement(v, MIXT_CLAIM_CHEAPER)); // no price
    assert_string_equal(info.precision, "bf16");
    assert_string_equal(info.model, "mlp");
    for (int i = 0; i < MIXT_VERIFY_LINES; i++) {
        const mixt_verify_line *l = mixt_verification_line(v, i);
        bool tensor_cores = !strcmp(l->name, "tensor_cores");
        assert_true(l->measured == !tensor_cores && l->pass == !tensor_cores && *l->note);
    }
    assert_null(mixt_verification_line(v, MIXT_VERIFY_LINES));
    assert_non_null(strstr(mixt_verification_line(v, 1)->note, "allocated as planned"));
    for (int64_t seed = 0; seed < 2; seed++) {
        const mixt_verify_run *fp32 = mixt_verification_run(v, seed, MIXT_VERIFY_FP32);
        const mixt_verify_run *mixed = mixt_verification_run(v, seed, MIXT_VERIFY_MIXED);
        assert_true(fp32->steps == STEPS && mixed->steps == STEPS && isfinite(fp32->losses[STEPS - 1]));
        assert_true(fabs(fp32->losses[0] - mixed->losses[0]) < 0.01); // the same weights, the same batch
        assert_true(isnan(fp32->difference) && mixed->difference > 0 && mixed->memory.total < fp32->memory.total * 10);
    }
    assert_null(mixt_verification_run(v, 2, MIXT_VERIFY_FP32));
    const mixt_verify_run *first = mixt_verification_run(v, 0, MIXT_VERIFY_MIXED);
    assert_true(first->format == MIXT_DTYPE_BF16 && first->rounding > 0 && isnan(first->tensor_active));
    assert_true(first->rounding < first->output_size / 16); // eight bits: a small part of the outputs
    assert_true(first->target_steps >= 1 && first->target_steps <= STEPS);
    const mixt_verify_figure *steps = mixt_verification_figure(v, 1);
    assert_string_equal(steps->name, "steps_to_target");
    assert_true(steps->fp32 >= 1 && steps->mixed <= STEPS && steps->low <= steps->ratio && steps->ratio <= steps->high);
    assert_true(isnan(mixt_verification_figure(v, MIXT_VERIFY_FIGURES - 1)->fp32)); // no price was given
    assert_null(mixt_verification_figure(v, MIXT_VERIFY_FIGURES));
    mixt_verification_free(v);
}

/* ---- safe is more than a loss ---- */

static mixt_config *described(const char *text)
{
    mixt_config *config;
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    assert_int_equal(mixt_config_parse(config, text, "test"), MIXT_OK);
    assert_int_equal(mixt_config_set(config, "threads=1", "test"), MIXT_OK);
    assert_int_equal(mixt_config_set(config, "device=cpu", "test"), MIXT_OK);
    return config;
}

/** Outputs of models that train well are as close to FP32's as rounding the weights explains, in either format and
 *  whatever is inside: half of the margin is left. */
static void test_outputs(void **state)
{
    static const char *const models[] = {
        "model: mlp\nnet: {hidden: [32, 32, 32, 32]}\ndata: {kind: digits, limit: 256}\n",
        "model: convnet\ndata: {kind: digits, limit: 128}\n",
        "model: gpt\nnet: {layers: 4, width: 32, heads: 2}\ndata: {kind: text, seq: 24}\n",
        "model: lstm\nnet: {layers: 2, width: 24}\ndata: {kind: text, seq: 24}\n",
    };
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int fp16 = 0; fp16 < 2; fp16++) {
            mixt_config *config = described(models[m]);
            mixt_verification *v;
            assert_int_equal(mixt_config_set(config, fp16 ? "precision=fp16" : "precision=bf16", "test"), MIXT_OK);
            assert_int_equal(mixt_config_set(config, "train.batch=8", "test"), MIXT_OK);
            if (mixt_verify(config, &v, .seeds = 1, .steps = 8) != MIXT_OK)
                fail_msg("%s: %s", models[m], mixt_error_text());
            for (int i = 2; i < MIXT_VERIFY_PARTS; i++) {
                const mixt_judgement *j = mixt_verification_part(v, i);
                assert_int_equal(j->verdict, MIXT_VERDICT_YES);
                if (!(j->value > 0 && j->value < j->margin / 2))
                    fail_msg("%s: outputs are %g times off what rounding explains", models[m], j->value);
            }
            assert_null(mixt_verification_part(v, MIXT_VERIFY_PARTS));
            mixt_verification_free(v);
            mixt_config_free(config);
        }
}

/** Weights of which every product cancels: h and h (1 + 2^-7 u), then 64 times their difference. BF16 holds them all
 *  exactly, so rounding them changes nothing, but the sums before the difference are rounded. */
static void make_cancelling(const char *path)
{
    enum { INPUTS = 784, HIDDEN = 16, CLASSES = 10 };
    static float first[HIDDEN * INPUTS], second[CLASSES * HIDDEN];
    mixt_config *config = described("model: mlp\nnet: {hidden: [16]}\ndata: {kind: digits, limit: 64}\n");
    mixt_run *run;
    mixt_param_info info;
    for (int i = 0; i < HIDDEN * INPUTS; i++)
        first[i] = (float)(1 + (i / INPUTS % 2) * ((i * 7 % 5) - 2) / 128.0);
    for (int i = 0; i < CLASSES * HIDDEN; i++)
        second[i] = i % 2 ? -64 : 64;
    assert_int_equal(mixt_run_open_config(config, NULL, &run), MIXT_OK);
    mixt_trainer *t = mixt_run_trainer(run);
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        assert_int_equal(mixt_trainer_param(t, i, &info), MIXT_OK);
        if (info.count == HIDDEN * INPUTS)
            assert_int_equal(mixt_trainer_param_set(t, i, first), MIXT_OK);
        if (info.count == CLASSES * HIDDEN)
            assert_int_equal(mixt_trainer_param_set(t, i, second), MIXT_OK);
    }
    assert_int_equal(mixt_trainer_save(t, path), MIXT_OK);
    mixt_run_close(run);
    mixt_config_free(config);
}

static void test_cancelling(void **state)
{
    (void)state;
    char setting[160], path[64];
    snprintf(path, sizeof path, "/tmp/test_verify_%ld.safetensors", (long)getpid());
    make_cancelling(path);
    mixt_config *config = described("model: mlp\nprecision: bf16\nnet: {hidden: [16]}\n"
                                    "data: {kind: digits, limit: 64}\ntrain: {lr: 0, batch: 16}\n");
    mixt_verification *v;
    snprintf(setting, sizeof setting, "init=%s", path);
    assert_int_equal(mixt_config_set(config, setting, "test"), MIXT_OK);
    if (mixt_verify(config, &v, .seeds = 1, .steps = 1) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    unlink(path);
    const mixt_judgement *outputs = mixt_verification_part(v, 3);
    assert_int_equal(outputs->verdict, MIXT_VERDICT_NO);
    assert_true(outputs->value > outputs->margin * 2);
    assert_int_equal(mixt_verification_describe(v).safe, MIXT_VERDICT_NO);
    assert_ptr_equal(mixt_verification_judgement(v, MIXT_CLAIM_SAFE)->statistic,
                     mixt_verification_part(v, 2)->statistic); // what it is no for
    mixt_verification_free(v);
    mixt_config_free(config);
}

static void test_stopped(void **state)
{
    (void)state;
    heard h = {.stop_at = STEPS + 3};
    mixt_config *config = tiny("bf16");
    mixt_verification *v;
    assert_int_equal(mixt_verify(config, &v, .seeds = 1, .steps = STEPS, .progress = hear, .user = &h),
                     MIXT_ERROR_STATE);
    assert_null(v);
    assert_true(h.runs == 1 && h.steps == STEPS + 3);
    assert_non_null(strstr(mixt_error_text(), "no verdict"));
    mixt_config_free(config);
}

static void test_refused(void **state)
{
    (void)state;
    mixt_config *config = tiny("fp32"), *mixed = tiny("bf16");
    mixt_verification *v;
    assert_int_equal(mixt_verify(config, &v, .seeds = 1), MIXT_ERROR_CONFIG);
    assert_int_equal(mixt_verify(mixed, &v, .seeds = MIXT_VERIFY_SEEDS_MAX + 1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_verify(mixed, &v, .steps = -1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_verify(mixed, &v, .price = -1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_verify(mixed, &v, .target_accuracy = 1.5), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_verify(mixed, &v, .target_loss = 1, .target_accuracy = 0.5), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_verify_with(NULL, NULL, &v), MIXT_ERROR_ARGUMENT);
    assert_null(v);
    assert_int_equal(mixt_config_set(mixed, "seed=9223372036854775807", "test"), MIXT_OK);
    assert_int_equal(mixt_verify(mixed, &v, .seeds = 2), MIXT_ERROR_CONFIG);
    assert_int_equal(mixt_config_set(mixed, "precision=nowhere.yaml", "test"), MIXT_OK);
    assert_int_not_equal(mixt_verify(mixed, &v, .seeds = 1), MIXT_OK);
    mixt_verification_free(NULL);
    mixt_config_free(config);
    mixt_config_free(mixed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checklist), cmocka_unit_test(test_outputs), cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_stopped),   cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
