/* mixt_compare from C: verdicts, what is known of runs and figures, going on, runs side by side, and misuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "../support/temp_folder.h"

#include <math.h>

static char root[4096]; // of the project

static mixt_config *make_config(const char *precision, const char *more)
{
    char text[600];
    mixt_config *config;
    snprintf(text, sizeof text,
             "model: mlp\nprecision: %s\nthreads: 1\nnet: {hidden: [8]}\ndata: {kind: digits, limit: 128}\n"
             "train: {epochs: 0, steps: 12, batch: 16, lr: 0.02%s}\n",
             precision, more);
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    assert_int_equal(mixt_config_parse(config, text, "test"), MIXT_OK);
    return config;
}

typedef struct heard {
    int64_t steps, runs, notes, stop_after; // 0: never
} heard;

static bool hear(void *user, const mixt_progress *p)
{
    heard *h = user;
    bool step = p->kind == MIXT_PROGRESS_STEP;
    h->steps += step;
    h->runs += p->kind == MIXT_PROGRESS_PART && strstr(p->text, *p->what == 'A' ? ", A: loss " : ", B: loss ");
    h->notes += p->kind == MIXT_PROGRESS_NOTE && *p->text;
    assert_true(!step || (p->done >= h->steps && p->done <= p->total && p->part >= 1 && p->part <= p->parts));
    return !h->stop_after || h->steps < h->stop_after;
}

/** Stopped in the middle of a run and gone on with: the same result as at once. */
static void test_goes_on(void **state)
{
    (void)state;
    mixt_config *a = make_config("fp32", ""), *b = make_config("bf16", "");
    mixt_comparison *whole, *part;
    heard h = {0}, stopping = {.stop_after = 30};
    assert_int_equal(mixt_compare(a, b, &whole, .name = "whole", .margin = 0.3, .progress = hear, .user = &h), MIXT_OK);
    assert_true(h.steps == 12 * 12 && h.runs == 12 && h.notes > 0);
    assert_int_equal(mixt_compare(a, b, &part, .name = "part", .margin = 0.3, .progress = hear, .user = &stopping),
                     MIXT_OK);
    mixt_comparison_info info = mixt_comparison_describe(part);
    assert_true(info.stopped && info.pairs == 1 && info.verdict == MIXT_STATS_UNDECIDED && stopping.steps == 30);
    mixt_comparison_free(part);
    assert_int_equal(mixt_compare(a, b, &part, .name = "part", .margin = 0.3), MIXT_OK);
    info = mixt_comparison_describe(whole);
    mixt_comparison_info again = mixt_comparison_describe(part);
    assert_true(again.pairs == 6 && again.needed >= 6 && again.looks == 1 && !again.stopped);
    assert_true(again.judgement.summary.mean == info.judgement.summary.mean && again.verdict == info.verdict);
    for (int64_t i = 0; i < 6; i++)
        for (int side = 0; side < 2; side++)
            assert_true(mixt_comparison_run(whole, i, (mixt_compare_side)side)->loss ==
                        mixt_comparison_run(part, i, (mixt_compare_side)side)->loss);
    double sum = 0;
    for (int64_t i = 0; i < 6; i++)
        sum += mixt_comparison_worse(part, i);
    assert_true(fabs(sum / 6 - again.judgement.summary.mean) < 1e-12 && isnan(mixt_comparison_worse(part, 6)));
    const mixt_compare_figure *f = mixt_comparison_find(whole, "equal_seconds");
    assert_true(f == mixt_comparison_figure(whole, 0) && f->ratio > 0 && f->low <= f->ratio && f->ratio <= f->high);
    assert_string_equal(mixt_comparison_change(whole, 0)->key, "precision");
    assert_true(mixt_comparison_change(whole, 0)->policy && !mixt_comparison_change(whole, 1));
    mixt_comparison_free(whole);
    mixt_comparison_free(part);
    mixt_config_free(a);
    mixt_config_free(b);
}

static bool refuse_data(void *user, const mixt_progress *p)
{
    *(int *)user += p->kind == MIXT_PROGRESS_DATA;
    return p->kind != MIXT_PROGRESS_DATA;
}

/** Ended while a text is tokenised for its first run: nothing is measured, and the next call goes on. */
static void test_ended_early(void **state)
{
    (void)state;
    mixt_config *configs[2];
    mixt_comparison *c;
    char text[6000];
    int calls = 0;
    FILE *file = fopen("words.txt", "w");
    assert_non_null(file);
    for (int i = 0; i < 200; i++)
        fprintf(file, "The %d mills stood where two rivers met. ", i);
    fclose(file);
    for (int i = 0; i < 2; i++) {
        snprintf(
            text, sizeof text,
            "model: gpt\nprecision: %s\nthreads: 1\nnet: {layers: 1, width: 8, heads: 1}\ndata: {kind: text, path: "
            "words.txt, seq: 8, tokenizer: gpt2, vocab: %s/tests/data/tokens}\ntrain: {epochs: 0, steps: 2, batch: "
            "4}\n",
            i ? "bf16" : "fp32", root);
        assert_int_equal(mixt_config_new(&configs[i]), MIXT_OK);
        assert_int_equal(mixt_config_parse(configs[i], text, "test"), MIXT_OK);
    }
    assert_int_equal(mixt_compare(configs[0], configs[1], &c, .name = "early", .progress = refuse_data, .user = &calls),
                     MIXT_OK);
    assert_true(calls == 1 && mixt_comparison_describe(c).stopped && mixt_comparison_describe(c).used == 0);
    mixt_comparison_free(c);
    assert_int_equal(mixt_compare(configs[0], configs[1], &c, .name = "early"), MIXT_OK);
    assert_true(mixt_comparison_describe(c).pairs >= MIXT_STATS_PAIRS_MIN);
    mixt_comparison_free(c);
    mixt_config_free(configs[0]);
    mixt_config_free(configs[1]);
}

/** Runs that someone has thinned out: their figures are kept, and what cannot be read is said. */
static void test_runs(void **state)
{
    (void)state;
    const char *const a = "runs/compare-whole/pair-0001-a", *const b = "runs/compare-whole/pair-0001-b";
    mixt_comparison *c;
    assert_int_equal(mixt_compare_runs(a, b, NULL, &c), MIXT_OK);
    mixt_comparison_info info = mixt_comparison_describe(c);
    assert_true(info.pairs == 1 && info.used == 1 && info.verdict == MIXT_STATS_UNDECIDED && !*info.folder);
    assert_non_null(strstr(info.reason, "at least 6 pairs"));
    assert_true(isnan(info.judgement.interval.low) && isfinite(mixt_comparison_find(c, "loss")->ratio));
    assert_null(mixt_comparison_find(c, "nothing"));
    assert_null(mixt_comparison_run(c, 1, MIXT_COMPARE_A));
    mixt_comparison_free(c);
    assert_int_equal(mixt_compare_runs(a, "runs/nowhere", NULL, &c), MIXT_ERROR_FILE);
    assert_null(c);
    assert_int_equal(unlink("runs/compare-whole/pair-0001-b/metrics.jsonl"), 0);
    assert_int_equal(mixt_compare_runs(a, b, NULL, &c), MIXT_ERROR_FILE);
    assert_non_null(strstr(mixt_error_text(), "metrics.jsonl"));
    mixt_config *x = make_config("fp32", ""), *y = make_config("bf16", "");
    assert_int_equal(mixt_compare(x, y, &c, .name = "whole", .margin = 0.3), MIXT_OK);
    assert_int_equal(mixt_comparison_describe(c).pairs, 6);
    mixt_comparison_free(c);
    mixt_config_free(x);
    mixt_config_free(y);
}

static void test_misuse(void **state)
{
    (void)state;
    mixt_config *a = make_config("fp32", ""), *b = make_config("bf16", ""), *longer = make_config("bf16", "");
    mixt_comparison *c;
    assert_int_equal(mixt_compare_with(a, b, NULL, &c), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_compare_with(a, NULL, MIXT_OPTIONS_AT(mixt_compare_options, .name = "x"), &c),
                     MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_compare(a, b, &c, .name = "no/path"), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_compare(a, b, &c, .name = ""), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_compare(a, b, &c, .name = "x", .pairs = 1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_compare(a, b, &c, .name = "x", .margin = -1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_compare(a, b, &c, .name = "x", .margin = NAN), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_compare(a, b, &c, .name = "x", .metric = "beauty"), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_config_set(longer, "data.limit=64", "test"), MIXT_OK);
    assert_int_equal(mixt_compare(a, longer, &c, .name = "x"), MIXT_ERROR_CONFIG);
    assert_true(access("runs/compare-x", F_OK) != 0);
    assert_int_equal(mixt_compare(a, b, &c, .name = "part", .margin = 0.2), MIXT_ERROR_STATE);
    assert_null(c);
    assert_string_equal(mixt_comparison_describe(NULL).reason, "");
    assert_null(mixt_comparison_figure(NULL, 0));
    assert_string_equal(mixt_compare_verdict_name(MIXT_STATS_INFERIOR), "inferior");
    mixt_comparison_free(NULL);
    mixt_config_free(a);
    mixt_config_free(b);
    mixt_config_free(longer);
}

/** Experiments lie below the folder that a program runs in. */
static int enter(void **state)
{
    return !getcwd(root, sizeof root) || temp_folder_setup(state) || chdir(temp_folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_ended_early),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, enter, temp_folder_teardown);
}
