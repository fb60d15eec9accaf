/* mixt_adopt from C: stages one by one and to the end, stopped and gone on with, taken back and done again, what the
 * history keeps, and misuse. The goal is memory, so that nothing depends on time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "../support/settings.h"
#include "../support/temp_folder.h"

#include <math.h>

/** Activations that are large next to the weights: a lower format saves memory on any CPU. */
static mixt_config *make_config(const char *more)
{
    mixt_config *config = settings_new();
    settings_add(config,
                 "model=convnet threads=1 net.channels=4 data.kind=digits data.limit=256 train.epochs=0 train.steps=20 "
                 "train.batch=32 train.lr=0.01 %s",
                 more);
    return config;
}

#define ROAD .goal = MIXT_SEARCH_MEMORY, .margin = 0.2, .search_steps = 8, .pairs = 6

typedef struct heard {
    int64_t steps, stages, stop_after; // 0: never
} heard;

static bool hear(void *user, const mixt_progress *p)
{
    heard *h = user;
    h->steps += p->kind == MIXT_PROGRESS_STEP;
    h->stages += p->kind == MIXT_PROGRESS_PART && *p->text;
    assert_true(p->parts == MIXT_ADOPT_STAGES &&
                !strcmp(p->task, mixt_adopt_stage_name((mixt_adopt_stage)(p->part - 1))));
    return !h->stop_after || h->steps < h->stop_after;
}

/** The file exists and is not empty. */
static bool is_there(const char *path)
{
    size_t bytes;
    free(temp_read(path, &bytes));
    return bytes > 0;
}

static void test_stages(void **state)
{
    (void)state;
    mixt_config *config = make_config("");
    mixt_adoption *a;
    heard stopping = {.stop_after = 5}, h = {0};
    mixt_adopt_figure f;
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "road", .progress = hear, .user = &stopping), MIXT_OK);
    mixt_adoption_info info = mixt_adoption_describe(a);
    assert_true(info.stopped && info.done == 0 && info.outcome == MIXT_ADOPT_UNDER_WAY && !*info.config);
    assert_false(mixt_adoption_figure(a, 0, &f));
    mixt_adoption_free(a);
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "road", .to = "formats", .progress = hear, .user = &h),
                     MIXT_OK);
    info = mixt_adoption_describe(a);
    assert_true(!info.stopped && info.done == 2 && info.entries == 2 && h.stages == 2 && h.steps > 7);
    assert_true(mixt_adoption_figure(a, 0, &f) && f.stage == MIXT_ADOPT_BASELINE && f.good && isfinite(f.loss));
    assert_string_equal(f.name, "fp32");
    mixt_adoption_free(a);
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "road"), MIXT_OK);
    info = mixt_adoption_describe(a);
    assert_true(info.done == MIXT_ADOPT_STAGES && info.outcome == MIXT_ADOPT_ADOPTED && info.entries == 5);
    assert_true(is_there(info.config) && is_there(info.policy) && is_there("runs/adopt-road/adopted.yaml"));
    assert_true(is_there("runs/adopt-road/report.html") && is_there("runs/adopt-road/report.md"));
    int64_t count = 0;
    while (mixt_adoption_figure(a, count, &f))
        count++;
    assert_true(count == info.figures && count >= 6 && !mixt_adoption_figure(a, -1, &f));
    mixt_adoption_free(a);
    mixt_config_free(config);
}

/** Of the adoption that test_stages made: each stage is taken back, and stays in the history. */
static void test_back(void **state)
{
    (void)state;
    mixt_config *config = make_config("");
    mixt_adoption *a;
    mixt_adopt_entry e;
    assert_int_equal(mixt_adopt_undo("road", &a), MIXT_OK);
    mixt_adoption_info info = mixt_adoption_describe(a);
    assert_true(info.done == 4 && info.outcome == MIXT_ADOPT_UNDER_WAY && info.entries == 6);
    assert_true(mixt_adoption_entry(a, 5, &e) && e.undo && e.stage == MIXT_ADOPT_VALIDATED);
    assert_true(mixt_adoption_entry(a, 4, &e) && !e.undo && e.version == 5 && is_there(e.config) && *e.reason);
    assert_false(mixt_adoption_entry(a, 6, &e));
    mixt_adoption_free(a);
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "road", .from = "mixed", .to = "mixed"), MIXT_OK);
    info = mixt_adoption_describe(a);
    assert_true(info.done == 3 && info.entries == 9 && mixt_adoption_entry(a, 8, &e) && e.version == 6);
    assert_string_equal(e.config, info.config);
    mixt_adoption_free(a);
    for (int done = 2; done >= 0; done--) {
        assert_int_equal(mixt_adopt_undo("road", &a), MIXT_OK);
        assert_int_equal(mixt_adoption_describe(a).done, done);
        mixt_adoption_free(a);
    }
    assert_false(is_there("runs/adopt-road/adopted.yaml"));
    assert_int_equal(mixt_adopt_undo("road", &a), MIXT_ERROR_STATE);
    assert_null(a);
    assert_int_equal(mixt_adopt_open("road", &a), MIXT_OK);
    info = mixt_adoption_describe(a);
    assert_true(info.done == 0 && info.entries == 12 && info.figures == 0 && !*info.precision);
    mixt_adoption_free(a);
    mixt_config_free(config);
}

/** The search's pairs are runs of the whole length: they are the proof, and nothing is compared again. */
static void test_taken_over(void **state)
{
    (void)state;
    mixt_config *config = make_config(""), *greedy = make_config("verify.memory=99");
    mixt_adoption *a;
    mixt_judgement safe, smaller;
    assert_int_equal(
        mixt_adopt(config, &a, .goal = MIXT_SEARCH_MEMORY, .margin = 0.2, .search_steps = 20, .name = "whole"),
        MIXT_OK);
    assert_int_equal(mixt_adoption_describe(a).outcome, MIXT_ADOPT_ADOPTED);
    assert_true(mixt_adoption_judgement(a, MIXT_CLAIM_SAFE, &safe) && safe.verdict == MIXT_VERDICT_YES);
    assert_true(safe.updates == 20 && safe.pairs >= MIXT_STATS_PAIRS_MIN && safe.high < 0.2);
    assert_true(safe.evidence == MIXT_EVIDENCE_PAIRED && !strcmp(safe.statistic, "loss"));
    assert_true(mixt_adoption_judgement(a, MIXT_CLAIM_SMALLER, &smaller) && smaller.verdict == MIXT_VERDICT_YES);
    assert_false(mixt_adoption_judgement(a, MIXT_CLAIM_CHEAPER, &smaller));
    assert_int_not_equal(access("runs/compare-adopt-whole-4", F_OK), 0);
    mixt_adoption_free(a);
    assert_int_equal(
        mixt_adopt(greedy, &a, .goal = MIXT_SEARCH_MEMORY, .margin = 0.2, .search_steps = 20, .name = "greedy"),
        MIXT_OK);
    assert_int_equal(mixt_adoption_describe(a).outcome, MIXT_ADOPT_KEPT); // safe, and less is saved than was asked for
    assert_true(mixt_adoption_judgement(a, MIXT_CLAIM_SAFE, &safe) && safe.verdict == MIXT_VERDICT_YES);
    assert_true(mixt_adoption_judgement(a, MIXT_CLAIM_SMALLER, &smaller) && smaller.verdict == MIXT_VERDICT_NO);
    assert_true(smaller.margin == 0.99 && smaller.value > 0.1);
    mixt_adoption_free(a);
    mixt_config_free(config);
    mixt_config_free(greedy);
}

/** A margin that no few pairs can tell: neither adopted nor refused, and the best policy is there to be used. */
static void test_undecided(void **state)
{
    (void)state;
    mixt_config *config = make_config("");
    mixt_adoption *a;
    mixt_judgement safe;
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "open", .to = "tuned"), MIXT_OK);
    mixt_adoption_free(a);
    assert_int_equal(mixt_adopt(config, &a, .goal = MIXT_SEARCH_MEMORY, .margin = 1e-7, .pairs = 6, .name = "open"),
                     MIXT_OK);
    mixt_adoption_info info = mixt_adoption_describe(a);
    assert_true(mixt_adoption_judgement(a, MIXT_CLAIM_SAFE, &safe));
    assert_int_equal(safe.verdict, MIXT_VERDICT_UNDECIDED);
    assert_int_equal(info.outcome, MIXT_ADOPT_UNDECIDED);
    assert_true(safe.needs != 0 && safe.margin == 1e-7 && is_there(info.best) && *info.best_precision);
    assert_string_equal(info.precision, "fp32");
    mixt_adoption_free(a);
    mixt_config_free(config);
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < MIXT_ADOPT_STAGES; i++)
        assert_int_equal(mixt_adopt_stage_find(mixt_adopt_stage_name((mixt_adopt_stage)i)), i);
    assert_string_equal(mixt_adopt_stage_name(MIXT_ADOPT_STAGES), "");
    assert_int_equal(mixt_adopt_stage_find("later"), MIXT_ADOPT_STAGES);
    assert_int_equal(mixt_adopt_stage_find(NULL), MIXT_ADOPT_STAGES);
    assert_string_equal(mixt_adopt_outcome_name(MIXT_ADOPT_KEPT), "kept");
    assert_string_equal(mixt_adopt_outcome_name((mixt_adopt_outcome)9), "");
}

static void test_misuse(void **state)
{
    (void)state;
    mixt_config *config = make_config(""), *other = make_config("train.lr=0.04"), *still = make_config("train.lr=0");
    mixt_adoption *a;
    assert_int_equal(mixt_adopt_with(config, NULL, &a), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(NULL, &a, ROAD, .name = "x"), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "no/path"), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "x", .to = "later"), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "x", .from = "tuned", .to = "mixed"), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(config, &a, .name = "x", .pairs = 1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(config, &a, .name = "x", .margin = 1.5), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(config, &a, .name = "x", .margin = NAN), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(config, &a, .name = "x", .budget = -1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_adopt(config, &a, ROAD, .name = "x", .from = "mixed"), MIXT_ERROR_STATE);
    assert_null(a);
    assert_true(access("runs/adopt-x", F_OK) != 0);
    assert_int_equal(mixt_adopt(other, &a, ROAD, .name = "road"), MIXT_ERROR_STATE);
    assert_non_null(strstr(mixt_error_text(), "train.lr"));
    assert_int_equal(mixt_adopt(still, &a, ROAD, .name = "still", .to = "baseline"), MIXT_ERROR_STATE);
    assert_non_null(strstr(mixt_error_text(), "FP32 itself does not train"));
    assert_int_equal(mixt_adopt_open("nothing", &a), MIXT_ERROR_FILE);
    assert_int_equal(mixt_adopt_undo("nothing", &a), MIXT_ERROR_FILE);
    assert_int_equal(mixt_adoption_describe(NULL).done, 0);
    assert_string_equal(mixt_adoption_describe(NULL).folder, "");
    mixt_adoption_free(NULL);
    mixt_config_free(config);
    mixt_config_free(other);
    mixt_config_free(still);
}

/** Adoptions lie below the folder that a program runs in. */
static int enter(void **state)
{
    return temp_folder_setup(state) || chdir(temp_folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages),    cmocka_unit_test(test_back),  cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_undecided), cmocka_unit_test(test_names), cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, enter, temp_folder_teardown);
}
