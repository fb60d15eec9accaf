/* The memory of whole runs: each part is what is then taken, a process holds what was planned, limits are kept.
 *
 * For every model of the zoo, small, a process of its own trains with validation and checkpoints, then predicts. Its
 * largest resident size (VmHWM) beyond that of a bare start must be at most the plan, 3% and ALLOWANCE. A bare start is
 * this program with a context opened and closed. The allowance is for what no plan of buffers knows: pages of the
 * program that only training touches, stacks of the threads that make batches and write checkpoints, the C library's
 * own heap (JSON, streams, headers and rounding of blocks). It is twice the most that was seen. Where the system gives
 * huge pages unasked, the rest of a block's last one would come on top. Mapped files are page cache, not planned memory
 * either; none of these runs has any of size.
 */
#include "../support/small_zoo.h"
#include "../support/temp_folder.h"

#include "base/account.h"
#include "data/data.h"
#include "mixt/mixt.h"
#include "run/run.h"
#include "train/checkpoint.h"
#include "train/trainer_inside.h"
#include "train/instrument.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
enum { RESIDENT = false, MEASURED = 1 }; // the sanitizer's own memory is many times the program's
#else
enum { RESIDENT = true, MEASURED = MODELS }; // models with processes of their own
#endif

enum { ALLOWANCE = 4 << 20, ROOM = 64 << 20, SMALL = 64 << 10, GRAPHS = 4 << 20, MOST = 1 << 16 };

#define check_ok(call)                                                                                                 \
    do {                                                                                                               \
        if ((call) != MIXT_OK)                                                                                         \
            fail_msg("%s: %s", #call, mixt_error_text());                                                              \
    } while (0)

/* ---- each part is what is taken ---- */

/** Bytes that `call` leaves on an account of its own. */
#define counted(bytes, call)                                                                                           \
    do {                                                                                                               \
        mixt__account *own = mixt__account_open(NULL), *before = mixt__account_use(own);                               \
        mixt_status status = (call);                                                                                   \
        mixt__account_use(before);                                                                                     \
        if (status != MIXT_OK)                                                                                         \
            fail_msg("%s: %s", #call, mixt_error_text());                                                              \
        (bytes) = mixt__account_bytes(own);                                                                            \
        mixt__account_close(own);                                                                                      \
    } while (0)

static void parts_are_what_is_taken(void **state)
{
    (void)state;
    for (int model = 0; model < MODELS; model++) {
        mixt_run *run;
        mixt_run_memory planned;
        mixt__snapshot snapshot;
        int64_t outputs;
        size_t bytes;
        bool looked = model % 2 == 0; // into layers, with a step of its own in the same memory
        check_ok(open_model(model, temp_folder, looked ? "-parts" : "-parts watch.every=0", &run));
        check_ok(mixt_run_plan_memory(run, &planned));
        mixt__trainer *t = run->experiment.trainer->inner;
        size_t feed = mixt__feed_host_bytes(t->settings.accumulate) + mixt__trainer_layer_slots_bytes(t);
        assert_true(looked == (mixt__trainer_layer_slots_bytes(t) > 0));
        counted(bytes, mixt__trainer_allocate(t));
        assert_int_equal(bytes, planned.step.host + feed);
        counted(bytes, mixt__trainer_prepare_evaluation(t, run->experiment.val));
        assert_int_equal(bytes, planned.validation.host);
        check_ok(mixt__trainer_plan_prediction(t));
        counted(bytes, mixt__trainer_outputs(t, &outputs));
        assert_int_equal(bytes, planned.prediction.host);
        counted(bytes, mixt__trainer_step(t, run->experiment.train, NULL));
        assert_int_equal(bytes, planned.batches.host - feed);
        counted(bytes, mixt__snapshot_open(&snapshot, t, MIXT_SNAPSHOT_WHOLE, false));
        assert_int_equal(bytes + mixt__weights_bytes(t->params), planned.checkpoints.host);
        mixt__snapshot_close(&snapshot);
        assert_int_equal(planned.total.host, planned.step.host + planned.validation.host + planned.batches.host +
                                                 planned.checkpoints.host + planned.data.host + planned.tokens.host +
                                                 planned.graphs.host);
        assert_int_equal(planned.total.device, 0);
        mixt_run_close(run);
    }
}

/** What one of so many ranks copies for a checkpoint: its part, exactly as planned, whatever ranks share out. And what
 *  it keeps to go back to: its own, or all where nothing is sharded. */
static void a_rank_copies_its_part(void **state)
{
    (void)state;
    enum { RANKS = 4 };
    static const char *const settings[] = {"-part0 dist.zero=0", "-part1 dist.zero=1", "-part2 dist.zero=2",
                                           "-part3 dist.zero=3", "-part4 dist.compress=powersgd:2"};
    size_t whole = 0;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        mixt_run *run;
        mixt_run_memory planned;
        mixt__snapshot snapshot;
        size_t bytes;
        check_ok(open_ranks(0, temp_folder, settings[i], RANKS, &run));
        check_ok(mixt_run_plan_memory(run, &planned));
        mixt__trainer *t = run->experiment.trainer->inner;
        check_ok(mixt__trainer_allocate(t));
        counted(bytes, mixt__snapshot_open(&snapshot, t, MIXT_SNAPSHOT_PART, false));
        assert_int_equal(bytes + mixt__weights_bytes(t->params), planned.checkpoints.host);
        size_t lists = (size_t)(t->params->count * 4 + RANKS + 2) * (sizeof(mixt__file_tensor) + 256);
        int64_t written = 0;
        for (int64_t k = 0; k < snapshot.piece_count; k++)
            written += snapshot.pieces[k].bytes;
        whole = (size_t)(t->params->total * 3 + t->params->state_total) * sizeof(float);
        if (t->ranks.local.compression.kind == MIXT_COMPRESS_NONE) {
            assert_in_range(bytes, whole / RANKS, whole / RANKS + whole / 16 + lists);
            assert_in_range(written, 1, whole / RANKS + whole / 16);
        }
        mixt__snapshot_close(&snapshot);
        mixt__snapshot_kind kept = mixt__snapshot_kept(t);
        assert_int_equal(kept, i ? MIXT_SNAPSHOT_OWN : MIXT_SNAPSHOT_WHOLE);
        counted(bytes, mixt__snapshot_open(&snapshot, t, kept, false));
        assert_int_equal(bytes, mixt__snapshot_bytes(t, kept));
        mixt__snapshot_close(&snapshot);
        mixt_run_close(run);
    }
    assert_true(whole > 0);
}

/** Outputs for one sample of zeros. */
static void predict_zeros(mixt_run *run, float outputs[MOST])
{
    mixt_trainer *trainer = mixt_run_trainer(run);
    const mixt_data_info *info = mixt_data_describe(run->experiment.train);
    int64_t count;
    void *input = calloc((size_t)info->input_elements, 4);
    check_ok(mixt_trainer_outputs(trainer, &count));
    assert_true(count <= MOST);
    check_ok(mixt_trainer_predict(trainer, input, 1, outputs));
    free(input);
}

/** Without training: the weights and a forward pass. The rest comes with the first step, and the weights stay. */
static void evaluation_and_prediction_take_no_step(void **state)
{
    (void)state;
    static float before[MOST], after[MOST];
    for (int model = 0; model < MODELS; model++) {
        mixt_run *run;
        mixt_run_memory planned;
        int64_t outputs;
        size_t bytes;
        check_ok(open_model(model, temp_folder, "-alone", &run));
        check_ok(mixt_run_plan_memory(run, &planned));
        mixt__trainer *t = run->experiment.trainer->inner;
        counted(bytes, mixt__trainer_take_weights(t));
        assert_int_equal(bytes, planned.weights.host);
        counted(bytes, mixt__trainer_prepare_evaluation(t, run->experiment.val));
        assert_int_equal(bytes, planned.validation.host);
        check_ok(mixt__trainer_plan_prediction(t));
        counted(bytes, mixt__trainer_outputs(t, &outputs));
        assert_int_equal(bytes, planned.prediction.host);
        assert_null(t->control);
        assert_int_equal(mixt__trainer_memory(t).allocated, planned.weights.host);
        predict_zeros(run, before);
        counted(bytes, mixt__trainer_allocate(t));
        assert_int_equal(bytes, planned.step.host - planned.weights.host +
                                    mixt__feed_host_bytes(t->settings.accumulate) + mixt__trainer_layer_slots_bytes(t));
        assert_int_equal(mixt__trainer_memory(t).allocated, planned.step.host);
        predict_zeros(run, after);
        assert_memory_equal(before, after, (size_t)outputs * sizeof *before);
        mixt_run_close(run);
    }
}

/** Another precision before the first step: the weights keep their values. */
static void weights_outlive_a_policy(void **state)
{
    (void)state;
    mixt_run *run;
    mixt_evaluation found;
    mixt_param_info info;
    check_ok(open_model(0, temp_folder, "-retyped", &run));
    mixt_trainer *trainer = mixt_run_trainer(run);
    check_ok(mixt_trainer_param(trainer, 0, &info));
    float *values = calloc((size_t)info.count, sizeof *values), *kept = calloc((size_t)info.count, sizeof *kept);
    assert_int_equal(mixt_trainer_param_get(trainer, 0, values), MIXT_ERROR_STATE);
    for (int64_t i = 0; i < info.count; i++)
        values[i] = (float)(i % 7) * 0.001f;
    check_ok(mixt_trainer_param_set(trainer, 0, values));
    check_ok(mixt_trainer_set_precision(trainer, "fp32"));
    check_ok(mixt_trainer_param_get(trainer, 0, kept));
    assert_memory_equal(values, kept, (size_t)info.count * sizeof *values);
    check_ok(mixt_run_evaluate(run, "val", &found));
    assert_int_equal(mixt__trainer_memory(trainer->inner).allocated, mixt__trainer_weight_bytes(trainer->inner));
    check_ok(mixt_trainer_step(trainer, run->experiment.train, NULL));
    assert_int_equal(mixt__trainer_memory(trainer->inner).allocated, mixt__trainer_memory(trainer->inner).total);
    free(values);
    free(kept);
    mixt_run_close(run);
}

static void data_sets_are_counted(void **state)
{
    (void)state;
    static const char *const specs[] = {"digits:", "random:", "text:%s/words.txt"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        char spec[2048];
        mixt_data *data;
        snprintf(spec, sizeof spec, specs[i], temp_folder); // NOLINT: one of the formats above
        mixt__account *own = mixt__account_open(NULL), *before = mixt__account_use(own);
        check_ok(mixt_data_open(spec, &data, .seq = 32));
        assert_int_equal(mixt__account_bytes(own), mixt__data_bytes(data));
        assert_true(mixt__data_bytes(data) > 10000);
        mixt_data_close(data);
        assert_int_equal(mixt__account_bytes(own), 0);
        assert_int_equal(mixt__account_mapped(own), 0);
        mixt__account_use(before);
        mixt__account_close(own);
    }
}

/** Asked twice it says the same; of no run, of nothing or of a closed run it is refused. */
static void plans_are_refused_where_there_is_no_run(void **state)
{
    (void)state;
    mixt_run *run;
    mixt_run_memory planned;
    check_ok(open_model(0, temp_folder, "-refused", &run));
    assert_int_equal(mixt_run_plan_memory(NULL, &planned), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_run_plan_memory(run, NULL), MIXT_ERROR_ARGUMENT);
    check_ok(mixt_run_plan_memory(run, &planned));
    mixt_run_memory again;
    check_ok(mixt_run_plan_memory(run, &again)); // planning takes nothing that it would then count
    assert_memory_equal(&again, &planned, sizeof planned);
    mixt_run_close(run);
    assert_int_equal(mixt_run_plan_memory(run, &planned), MIXT_ERROR_STATE);
}

/* ---- whole processes ---- */

/** What a process tells. */
typedef struct told {
    size_t planned, prediction, counted, resident;
    size_t saving; // of planned, what only the end of a run takes; of a prediction, the masters
} told;

static mixt_status predict(mixt_run *run)
{
    mixt_trainer *trainer = mixt_run_trainer(run);
    mixt_data *data;
    int64_t outputs, valid;
    enum { COUNT = 8 };
    MIXT_TRY(mixt_run_data(run, "val", &data));
    const mixt_data_info *info = mixt_data_describe(data);
    MIXT_TRY(mixt_trainer_outputs(trainer, &outputs));
    char *input = malloc((size_t)(COUNT * info->input_elements) * 4),
         *target = malloc((size_t)(COUNT * info->target_elements) * 4);
    float *output = malloc((size_t)(COUNT * outputs) * sizeof *output);
    mixt_status status = mixt_data_read(data, 0, COUNT, input, target, &valid);
    if (status == MIXT_OK)
        status = mixt_trainer_predict(trainer, input, valid, output);
    free(input);
    free(target);
    free(output);
    return status;
}

/** Trains and predicts; with `limited`, under a limit of what is planned and 64 MiB. */
static mixt_status run_whole(int model, const char *folder, bool limited, told *t)
{
    mixt_run *run;
    mixt_run_memory planned;
    mixt_run_result result;
    size_t open = mixt__alloc_bytes();
    MIXT_TRY(open_model(model, folder, limited ? "-limited watch.every=2" : "-free watch.every=2", &run));
    MIXT_TRY(mixt_run_plan_memory(run, &planned));
    size_t held = mixt__alloc_bytes() - open, to_come = planned.total.host + planned.prediction.host - held;
    struct rlimit limit = {status_field("VmData") + to_come + ROOM, RLIM_INFINITY};
    if (limited && setrlimit(RLIMIT_DATA, &limit))
        return mixt_fail(MIXT_ERROR_STATE, "no limit can be set");
    MIXT_TRY(mixt_run_train(run, &result));
    MIXT_TRY(predict(run));
    if (result.steps != 4 || result.validations < 1 || result.checkpoints_lost)
        return mixt_fail(MIXT_ERROR_STATE, "not a whole run");
    *t = (told){planned.total.host, planned.prediction.host, result.run_memory.allocated.host, 0, 0};
    t->saving = mixt__weights_bytes(run->experiment.trainer->inner->params);
    if (planned.eval_batch != result.run_memory.eval_batch)
        return mixt_fail(MIXT_ERROR_STATE, "validation was cut");
    mixt_run_close(run);
    return MIXT_OK;
}

/** Predicts with the weights of the run that `free` made. */
static mixt_status run_prediction(int model, const char *folder, told *t)
{
    char path[4096];
    static float outputs[MOST];
    mixt_run *run;
    mixt_run_memory planned;
    int64_t count;
    size_t open = mixt__alloc_bytes();
    snprintf(path, sizeof path, "%s/%s-free", folder, small[model].model);
    MIXT_TRY(mixt_run_load(path, NULL, &run));
    MIXT_TRY(mixt_trainer_outputs(mixt_run_trainer(run), &count));
    void *input = calloc((size_t)mixt_data_describe(mixt_run_facts(run))->input_elements, 4);
    MIXT_TRY(mixt_trainer_predict(mixt_run_trainer(run), input, 1, outputs));
    free(input);
    t->resident = status_field("VmHWM"); // before the data is opened to plan a whole run
    t->counted = mixt__alloc_bytes() - open;
    t->saving = mixt__params_bytes_of(run->experiment.trainer->inner->params).masters;
    MIXT_TRY(mixt_run_plan_memory(run, &planned));
    t->planned = planned.weights.host + planned.prediction.host;
    mixt_run_close(run);
    return MIXT_OK;
}

/* ---- a policy that leaves less room ---- */

typedef struct listener {
    int less, more;
} listener;

/** Under a limit that was just reached, then without one. */
static mixt_status change_policies(void *user, mixt_run *run, const mixt_event *event)
{
    listener *l = user;
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (event->kind == MIXT_EVENT_NOTE) {
        l->less += strstr(event->text, "the new policy leaves less memory") != NULL;
        l->more += strstr(event->text, "the new policy leaves more memory") != NULL;
    }
    if (event->kind != MIXT_EVENT_STEP || (event->step->step != 2 && event->step->step != 3))
        return MIXT_OK;
    bool second = event->step->step == 3;
    limit.rlim_cur = second ? RLIM_INFINITY : status_field("VmData") + (2 << 20);
    if (setrlimit(RLIMIT_DATA, &limit))
        return mixt_fail(MIXT_ERROR_STATE, "no limit can be set");
    mixt_policy *policy;
    MIXT_TRY(mixt_policy_open(second ? "bf16" : "fp32", &policy));
    mixt_status status = mixt_run_ask_policy(run, policy);
    mixt_policy_free(policy);
    return status;
}

static mixt_status run_policies(const char *folder)
{
    listener heard = {0};
    mixt_run *run;
    MIXT_TRY(open_model(0, folder, "-policies train.eval_batch=8192", &run));
    MIXT_TRY(mixt_run_observe(run, change_policies, &heard));
    MIXT_TRY(mixt_run_train(run, NULL));
    mixt_run_close(run);
    return heard.less == 1 && heard.more == 1
               ? MIXT_OK
               : mixt_fail(MIXT_ERROR_STATE, "validation's batch: told %d and %d times", heard.less, heard.more);
}

/** The other processes: "bare", "free", "limited", "predict" or "policies", the model's number, where the texts are. */
static int child(char **arguments)
{
    told t = {0};
    mixt_status status = MIXT_OK;
    if (!strcmp(arguments[0], "bare")) {
        mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
        status = context ? MIXT_OK : MIXT_ERROR_DEVICE;
        mixt_close(context);
    } else if (!strcmp(arguments[0], "predict")) {
        status = run_prediction(atoi(arguments[1]), arguments[2], &t);
    } else if (!strcmp(arguments[0], "policies")) {
        status = run_policies(arguments[2]);
    } else {
        status = run_whole(atoi(arguments[1]), arguments[2], !strcmp(arguments[0], "limited"), &t);
    }
    if (status != MIXT_OK) {
        fprintf(stderr, "%s %s: %s\n", arguments[0], arguments[1], mixt_error_text());
        return 1;
    }
    t.resident = t.resident ? t.resident : status_field("VmHWM");
    return write(3, &t, sizeof t) == (ssize_t)sizeof t ? 0 : 1;
}

static const char *program;

/** Runs this program as another process and returns what it told. */
static told run_child(const char *what, int model)
{
    told t;
    int ends[2];
    char number[16];
    snprintf(number, sizeof number, "%d", model);
    assert_int_equal(pipe(ends), 0);
    pid_t process = fork();
    if (!process) {
        struct rlimit stack = {1 << 20, RLIM_INFINITY}; // each thread's counts in full against a limit of data
        setrlimit(RLIMIT_STACK, &stack);
        dup2(ends[1], 3);
        execl(program, program, "--child", what, number, temp_folder, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    bool read_all = read(ends[0], &t, sizeof t) == (ssize_t)sizeof t;
    close(ends[0]);
    int status;
    waitpid(process, &status, 0);
    if (!read_all || status)
        fail_msg("%s: the process '%s' ended with %d", small[model].model, what, status);
    return t;
}

static void processes_hold_what_is_planned(void **state)
{
    (void)state;
    size_t bare = run_child("bare", 0).resident;
    for (int model = 0; model < MEASURED; model++) {
        told t = run_child("free", model);
        size_t planned = t.planned + t.prediction, most = planned + planned * 3 / 100 + ALLOWANCE;
        print_message("%-8s planned %zu, counted %zu; with prediction planned %zu, resident %zu\n", small[model].model,
                      t.planned, t.counted, planned, t.resident - bare);
        assert_true(t.counted <= t.planned + SMALL); // rows of metrics, paths
        assert_true(t.counted + t.saving + SMALL >= t.planned);
        if (RESIDENT)
            assert_true(t.resident - bare <= most);
    }
}

/** `free` has made the runs. Graphs and names are counted, and not large. Beside them the file of the weights, FP32 as
 *  the masters are, was mapped for a moment. */
static void prediction_holds_what_is_planned(void **state)
{
    (void)state;
    size_t bare = run_child("bare", 0).resident;
    for (int model = 0; model < MEASURED; model++) {
        told t = run_child("predict", model);
        print_message("%-8s prediction alone: planned %zu, counted %zu, resident %zu\n", small[model].model, t.planned,
                      t.counted, t.resident - bare);
        assert_true(t.counted >= t.planned && t.counted <= t.planned + GRAPHS);
        if (RESIDENT)
            assert_true(t.resident - bare <= t.counted + t.counted * 3 / 100 + t.saving + ALLOWANCE);
    }
}

static void a_policy_that_leaves_less_memory_is_told(void **state)
{
    (void)state;
    if (RESIDENT)
        (void)run_child("policies", 0);
}

static void runs_end_well_under_a_limit(void **state)
{
    (void)state;
    for (int model = 0; RESIDENT && model < MODELS; model++)
        (void)run_child("limited", model);
}

int main(int count, char **arguments)
{
    if (count == 5 && !strcmp(arguments[1], "--child"))
        return child(arguments + 2);
    program = "/proc/self/exe";
    temp_folder_make();
    write_texts(temp_folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_what_is_taken),
        cmocka_unit_test(a_rank_copies_its_part),
        cmocka_unit_test(evaluation_and_prediction_take_no_step),
        cmocka_unit_test(weights_outlive_a_policy),
        cmocka_unit_test(data_sets_are_counted),
        cmocka_unit_test(plans_are_refused_where_there_is_no_run),
        cmocka_unit_test(processes_hold_what_is_planned),
        cmocka_unit_test(prediction_holds_what_is_planned),
        cmocka_unit_test(runs_end_well_under_a_limit),
        cmocka_unit_test(a_policy_that_leaves_less_memory_is_told),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_remove();
    return failures;
}
