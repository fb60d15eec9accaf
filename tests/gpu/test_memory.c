/* The memory of whole runs on the GPU: the device holds what was planned, to the byte, for every model of the zoo, with
 * validation, checkpoints and prediction; and for prediction alone.
 *
 * Each model has a process of its own, whose largest resident size on the host beyond that of a process with a context
 * is printed beside what is planned there. It is held to no bar: most of it is code that CUDA's libraries load for the
 * kernels that a model happens to use.
 *
 * Needs a GPU: without one every test here fails, since a test that cannot run did not pass.
 */
#include "../support/small_zoo.h"
#include "../support/temp_folder.h"

#include "run/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SMALL = 64 << 10 };

/** What a process tells. */
typedef struct told {
    mixt_run_memory planned;
    mixt_bytes allocated; // while it trained
    size_t predicting;    // on the device, after a prediction
    size_t resident;
} told;

static size_t on_device(const mixt_run *run)
{
    return mixt__device_allocated(run->experiment.context->device);
}

/** One sample of zeros. */
static mixt_status predict(mixt_run *run)
{
    mixt_trainer *trainer = mixt_run_trainer(run);
    const mixt_data_info *info = mixt_data_describe(mixt_run_facts(run));
    int64_t outputs;
    MIXT_TRY(mixt_trainer_outputs(trainer, &outputs));
    void *input = calloc((size_t)info->input_elements, 4);
    float *output = calloc((size_t)outputs, sizeof *output);
    mixt_status status = mixt_trainer_predict(trainer, input, 1, output);
    free(input);
    free(output);
    return status;
}

static mixt_status train_and_predict(int model, const char *folder, told *t)
{
    mixt_run *run;
    mixt_run_result result;
    MIXT_TRY(open_model(model, folder, "-gpu device=cuda", &run));
    MIXT_TRY(mixt_run_plan_memory(run, &t->planned));
    MIXT_TRY(mixt_run_train(run, &result));
    if (result.steps != 4 || result.validations < 1 || result.checkpoints_lost)
        return mixt_fail(MIXT_ERROR_STATE, "not a whole run");
    t->allocated = result.run_memory.allocated;
    MIXT_TRY(predict(run));
    t->predicting = on_device(run);
    mixt_run_close(run);
    return MIXT_OK;
}

static mixt_status predict_alone(int model, const char *folder, told *t)
{
    char path[4096];
    mixt_run *run;
    snprintf(path, sizeof path, "%s/%s-gpu", folder, small[model].model);
    MIXT_TRY(mixt_run_load(path, NULL, &run));
    MIXT_TRY(predict(run));
    t->predicting = on_device(run);
    t->resident = status_field("VmHWM"); // before the data is opened to plan a whole run
    MIXT_TRY(mixt_run_plan_memory(run, &t->planned));
    mixt_run_close(run);
    return MIXT_OK;
}

static mixt_status open_context(void)
{
    mixt_context *context = mixt_open(.device = "cuda");
    mixt_close(context);
    return context ? MIXT_OK : MIXT_ERROR_DEVICE;
}

/** The other processes: "bare", "train" or "predict", the model's number, where the texts are. */
static int child(char **arguments)
{
    told t = {0};
    int model = atoi(arguments[1]);
    mixt_status status = !strcmp(arguments[0], "bare")    ? open_context()
                         : !strcmp(arguments[0], "train") ? train_and_predict(model, arguments[2], &t)
                                                          : predict_alone(model, arguments[2], &t);
    if (status != MIXT_OK) {
        fprintf(stderr, "%s %s: %s\n", arguments[0], arguments[1], mixt_error_text());
        return 1;
    }
    t.resident = t.resident ? t.resident : status_field("VmHWM");
    return write(3, &t, sizeof t) == (ssize_t)sizeof t ? 0 : 1;
}

static told run_child(const char *what, int model)
{
    told t;
    int ends[2], status;
    char number[16];
    snprintf(number, sizeof number, "%d", model);
    assert_int_equal(pipe(ends), 0);
    pid_t process = fork();
    if (!process) {
        dup2(ends[1], 3);
        execl("/proc/self/exe", "gpu_memory", "--child", what, number, temp_folder, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    bool read_all = read(ends[0], &t, sizeof t) == (ssize_t)sizeof t;
    close(ends[0]);
    waitpid(process, &status, 0);
    if (!read_all || status)
        fail_msg("%s: the process '%s' ended with %d", small[model].model, what, status);
    return t;
}

static void the_device_holds_what_is_planned(void **state)
{
    (void)state;
    size_t bare = run_child("bare", 0).resident;
    print_message("%-9s%14s%14s%14s%14s%14s%14s%14s\n", "", "planned", "training", "planned", "predicting", "host plan",
                  "host counted", "resident");
    for (int model = 0; model < MODELS; model++) {
        told t = run_child("train", model);
        size_t planned = t.planned.total.device, predicting = planned + t.planned.prediction.device;
        print_message("%-9s%14zu%14zu%14zu%14zu%14zu%14zu%14zu\n", small[model].model, planned, t.allocated.device,
                      predicting, t.predicting, t.planned.total.host, t.allocated.host, t.resident - bare);
        assert_true(planned > 0);
        assert_int_equal(t.allocated.device, planned);
        assert_int_equal(t.predicting, predicting);
        assert_true(t.allocated.host <= t.planned.total.host + SMALL);
    }
}

/** The test before has made the runs. */
static void prediction_alone_holds_the_weights_and_a_pass(void **state)
{
    (void)state;
    size_t bare = run_child("bare", 0).resident;
    print_message("%-9s%14s%14s%14s\n", "alone", "planned", "predicting", "resident");
    for (int model = 0; model < MODELS; model++) {
        told t = run_child("predict", model);
        size_t planned = t.planned.weights.device + t.planned.prediction.device;
        print_message("%-9s%14zu%14zu%14zu\n", small[model].model, planned, t.predicting, t.resident - bare);
        assert_int_equal(t.predicting, planned);
    }
}

int main(int count, char **arguments)
{
    if (count == 5 && !strcmp(arguments[1], "--child"))
        return child(arguments + 2);
    temp_folder_make();
    write_texts(temp_folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_holds_what_is_planned),
        cmocka_unit_test(prediction_alone_holds_the_weights_and_a_pass),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_remove();
    return failures;
}
