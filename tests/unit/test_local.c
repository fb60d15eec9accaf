/* Ranks that update by themselves and exchange a part of their weights' differences, against the same by hand: two
 * trainers that know of no others, between whose updates the test does what ranks do. And what is said where a rank's
 * thread cannot be started. */
#include "api/api.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "mixt/mixt.h"
#include "train/checkpoint.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../support/rank_threads.h"
#include "../support/temp_folder.h"

enum { RANKS = 2, EACH = 8, INPUTS = 20, LABELS = 6, UPDATES = 6, PARAMS = 4, ROOM = 400, PERCENT = 5 };

static float inputs[UPDATES][RANKS][EACH][INPUTS];
static int32_t targets[UPDATES][RANKS][EACH];

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "fc1", x, .features = 16));
    return mixt_linear(b, "fc2", x, .features = LABELS);
}

/** @param ranks 1: it knows of no others */
static mixt_trainer *open_trainer(mixt_context **ctx, int64_t ranks)
{
    *ctx = mixt_open(.device = "cpu", .threads = 1);
    mixt_model *model = mixt_model_new(*ctx, net, MIXT_LOSS_CROSS_ENTROPY);
    return mixt_trainer_new(model, .precision = "fp32", .batch = EACH * ranks, .ranks = ranks, .optimizer = "momentum",
                            .lr = 0.05f);
}

static mixt_status compile(mixt_trainer *t)
{
    const mixt_sample_shape shape = {
        .input_dtype = MIXT_DTYPE_FP32, .input_rank = 1, .input_dims = {INPUTS}, .targets = 1};
    mixt_status status = mixt_trainer_compile_for(t, &shape);
    return status == MIXT_OK ? mixt__trainer_allocate(t->inner) : status;
}

static void draw_batches(void)
{
    mixt__rng rng = mixt__rng_start(5);
    for (int i = 0; i < UPDATES * RANKS * EACH; i++) {
        float *sample = &inputs[0][0][0][0] + (size_t)i * INPUTS;
        for (int k = 0; k < INPUTS; k++)
            sample[k] = mixt__rng_normal(&rng);
        (&targets[0][0][0])[i] = (int32_t)(mixt__rng_uniform(&rng) * (float)LABELS) % LABELS;
    }
}

static void read_params(const mixt_trainer *t, float values[PARAMS][ROOM])
{
    for (int i = 0; i < PARAMS; i++)
        assert_int_equal(mixt_trainer_param_get(t, i, values[i]), MIXT_OK);
}

/* ---- by ranks ---- */

static float by_ranks[RANKS][PARAMS][ROOM], not_sent[RANKS];

/** All ranks' state by rank 0, as UPDATES of the test's folder. */
static void save(rank *r, mixt__trainer *t)
{
    mixt__saver *saver = NULL;
    mixt__save_request request = {.step = UPDATES, .keep = 1};
    mixt__save_report report;
    snprintf(request.folder, sizeof request.folder, "%s", temp_folder);
    if (r->index == 0)
        CHECK(r, mixt__saver_start(t, &saver) == MIXT_OK);
    CHECK(r, mixt__saver_collect(saver, t, NULL) == MIXT_OK);
    if (!saver)
        return;
    CHECK(r, mixt__saver_save(saver, &request) == MIXT_OK);
    mixt__saver_wait(saver);
    CHECK(r, mixt__saver_report(saver, &report) && report.status == MIXT_OK);
    mixt__saver_stop(saver);
}

static void train(rank *r)
{
    mixt_context *ctx;
    mixt_trainer *t = open_trainer(&ctx, RANKS);
    mixt__ranks *ranks = &t->inner->ranks;
    mixt__joining how = {.group = r->group, .format = MIXT_DTYPE_FP32, .bucket = 100};
    how.compression = (mixt__compression){.kind = MIXT_COMPRESS_TOPK, .percent = PERCENT};
    mixt__ranks_join_with(t->inner, &how);
    mixt__ranks_set_save_parts(t->inner, false); // each thread is asked for what all ranks have
    CHECK(r, compile(t) == MIXT_OK);
    for (int u = 0; u < UPDATES; u++)
        CHECK(r, mixt_trainer_step_on(t, inputs[u], targets[u], NULL) == MIXT_OK);
    for (int i = 0; i < PARAMS; i++)
        CHECK(r, mixt_trainer_param_get(t, i, by_ranks[r->index][i]) == MIXT_OK);
    for (int64_t i = 0; i < t->inner->params->total; i++)
        not_sent[r->index] += fabsf(ranks->local.feedback[i]);
    save(r, t->inner);
    ranks->group = NULL; // the thread's own
    mixt_close(ctx);
}

/* ---- by hand ---- */

static int larger(const void *a, const void *b)
{
    float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return x > y ? -1 : x < y;
}

/** What of `had` is sent: of a matrix the largest, of a vector all. @param sent has zeros elsewhere */
static void choose(const float *had, int64_t count, bool matrix, float *sent)
{
    float sorted[ROOM];
    memcpy(sorted, had, (size_t)count * sizeof *had);
    qsort(sorted, (size_t)count, sizeof *sorted, larger);
    float least = fabsf(sorted[(count * PERCENT + 99) / 100 - 1]);
    for (int64_t k = 0; k < count; k++)
        sent[k] = !matrix || fabsf(had[k]) >= least ? had[k] : 0;
}

/** After both have updated their own weights: the common ones move, and both get back what they have not sent. */
static void exchange_by_hand(mixt_trainer *const trainers[RANKS], float common[PARAMS][ROOM])
{
    static float own[RANKS][PARAMS][ROOM], sent[RANKS][ROOM];
    mixt_param_info info;
    for (int rank = 0; rank < RANKS; rank++)
        read_params(trainers[rank], own[rank]);
    for (int i = 0; i < PARAMS; i++) {
        assert_int_equal(mixt_trainer_param(trainers[0], i, &info), MIXT_OK);
        assert_true(info.count <= ROOM);
        for (int rank = 0; rank < RANKS; rank++) {
            float had[ROOM];
            for (int64_t k = 0; k < info.count; k++)
                had[k] = common[i][k] - own[rank][i][k];
            choose(had, info.count, info.rank > 1, sent[rank]);
        }
        for (int rank = 0; rank < RANKS; rank++) {
            for (int64_t k = 0; k < info.count; k++)
                own[rank][i][k] += sent[rank][k] - (sent[0][k] + sent[1][k]) / RANKS;
            assert_int_equal(mixt_trainer_param_set(trainers[rank], i, own[rank][i]), MIXT_OK);
        }
        for (int64_t k = 0; k < info.count; k++)
            common[i][k] -= (sent[0][k] + sent[1][k]) / RANKS;
    }
}

/** One process goes on from the mean of both ranks' weights and moments. */
static void check_restored(mixt_trainer *const trainers[RANKS])
{
    static const char *const may_differ[] = {"ranks", "batch", "input", "target", NULL};
    static float restored[PARAMS][ROOM], own[RANKS][PARAMS][ROOM];
    char path[MIXT_CHECKPOINT_PATH];
    mixt__checkpoint *checkpoint;
    mixt_context *ctx;
    mixt_param_info info;
    mixt_trainer *t = open_trainer(&ctx, 1);
    assert_int_equal(compile(t), MIXT_OK);
    assert_int_equal(mixt__checkpoint_open(mixt__checkpoint_path(temp_folder, UPDATES, path), &checkpoint), MIXT_OK);
    mixt_status status = mixt__trainer_restore(t->inner, checkpoint, may_differ);
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    mixt__checkpoint_close(checkpoint);
    read_params(t, restored);
    for (int rank = 0; rank < RANKS; rank++)
        read_params(trainers[rank], own[rank]);
    for (int i = 0; i < PARAMS; i++) {
        assert_int_equal(mixt_trainer_param(t, i, &info), MIXT_OK);
        for (int64_t k = 0; k < info.count; k++)
            assert_true(fabsf(restored[i][k] - (own[0][i][k] + own[1][i][k]) / RANKS) < 1e-5f);
    }
    const float *a = mixt__role_fp32(&trainers[0]->inner->params->roles[MIXT_PARAM_MOMENT1]),
                *b = mixt__role_fp32(&trainers[1]->inner->params->roles[MIXT_PARAM_MOMENT1]);
    for (int64_t i = 0; i < t->inner->params->total; i++)
        assert_true(fabsf(mixt__role_fp32(&t->inner->params->roles[MIXT_PARAM_MOMENT1])[i] - (a[i] + b[i]) / RANKS) <
                    1e-5f);
    mixt_close(ctx);
}

static void test_by_hand(void **state)
{
    static float common[PARAMS][ROOM], start[PARAMS][ROOM];
    mixt_context *contexts[RANKS];
    mixt_trainer *trainers[RANKS];
    mixt_param_info info;
    (void)state;
    draw_batches();
    run(RANKS, train, NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        trainers[rank] = open_trainer(&contexts[rank], 1);
        assert_int_equal(compile(trainers[rank]), MIXT_OK);
    }
    assert_int_equal(mixt_trainer_param_count(trainers[0]), PARAMS);
    read_params(trainers[0], start);
    memcpy(common, start, sizeof common);
    for (int u = 0; u < UPDATES; u++) {
        for (int rank = 0; rank < RANKS; rank++)
            assert_int_equal(mixt_trainer_step_on(trainers[rank], inputs[u][rank], targets[u][rank], NULL), MIXT_OK);
        exchange_by_hand(trainers, common);
    }
    double moved = 0;
    for (int i = 0; i < PARAMS; i++) {
        assert_int_equal(mixt_trainer_param(trainers[0], i, &info), MIXT_OK);
        for (int64_t k = 0; k < info.count; k++) {
            assert_true(fabs((double)common[i][k] - (double)by_ranks[0][i][k]) < 1e-5);
            assert_true(by_ranks[0][i][k] == by_ranks[1][i][k]);
            moved += fabs((double)common[i][k] - (double)start[i][k]);
        }
    }
    assert_true(moved > 0.1 && not_sent[0] > 0.1f && not_sent[1] > 0.1f && not_sent[0] != not_sent[1]);
    check_restored(trainers);
    for (int rank = 0; rank < RANKS; rank++)
        mixt_close(contexts[rank]);
}

/* ---- no thread ---- */

static mixt_status never(void *user, const mixt_message *out, int outs, const mixt_message *in, int ins, double seconds)
{
    (void)user, (void)out, (void)outs, (void)in, (void)ins, (void)seconds;
    return MIXT_ERROR_STATE;
}

/** Memory is not what is missing where the thread for sums cannot be started: nothing is said of it. */
static void test_no_thread(void **state)
{
    (void)state;
    const mixt_communicator others = {.size = RANKS, .exchange = never};
    mixt_context *ctx;
    mixt_trainer *t = open_trainer(&ctx, RANKS);
    pthread_attr_t usual, huge;
    assert_int_equal(mixt_trainer_join(t, &others, 1), MIXT_OK);
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, (size_t)1 << 50); // no address space has room for it
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    assert_int_equal(compile(t), MIXT_ERROR_STATE);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    assert_non_null(strstr(mixt_error_text(), "the thread for sums over ranks cannot be started"));
    assert_null(strstr(mixt_error_text(), "training needs"));
    pthread_attr_destroy(&huge);
    pthread_attr_destroy(&usual);
    mixt_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand), cmocka_unit_test(test_no_thread)};
    temp_folder_make();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_remove();
    return failed;
}
