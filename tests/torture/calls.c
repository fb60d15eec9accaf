/* calls COUNT [SEED]: COUNT random sequences of public calls, valid and not: any order, NULL, numbers that no machine
 * has, objects that are closed or of another context. No crash, no hang, words for each refusal; one longer than the
 * limit is a finding. A sequence is named by its number: `calls 1 NUMBER` makes it again and prints its calls. */
#include "mixt/mixt.h"

#include "base/rng.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 4, WIDTH = 3, ROWS = 24, CALLS = 24, PARAMS = 64, SLOTS = 3 };

static float inputs[ROWS * WIDTH];
static int32_t labels[ROWS];
static char folder[200];
static long long number;
static const char *newest = "";
static bool loud;

/** What a sequence has; NULL where it has none. */
typedef struct world {
    mixt__rng rng;
    mixt_context *context;
    mixt_data *data[SLOTS];
    mixt_model *model;
    mixt_trainer *trainer[SLOTS];
    mixt_snapshots *states;
    mixt_policy *policy;
    mixt_monitor *monitor;
} world;

static int64_t below(world *w, int64_t n)
{
    return (int64_t)mixt__rng_below(&w->rng, (uint64_t)n);
}

static bool rarely(world *w)
{
    return !below(w, 6);
}

/** Numbers that are mostly fine. */
static int64_t any_int(world *w)
{
    static const int64_t odd[] = {0, -1, 1, INT64_MAX, INT64_MIN, INT32_MAX, (int64_t)1 << 40, 7, -1000, 100000};
    return rarely(w) ? odd[below(w, 10)] : 1 + below(w, 6);
}

static float any_float(world *w)
{
    static const float odd[] = {0, -1, NAN, INFINITY, -INFINITY, 1e38f, 1e-45f};
    return rarely(w) ? odd[below(w, 7)] : 0.001f * (float)(1 + below(w, 100));
}

static const char *any_text(world *w)
{
    static const char *const texts[] = {"fp32",    "bf16", "fp16", "",         "none", "random:3",
                                        "digits:", "%s%n", "/",    "\xff\xfe", NULL};
    return texts[below(w, 11)];
}

static const char *any_path(world *w)
{
    static char path[300];
    if (rarely(w))
        return any_text(w);
    snprintf(path, sizeof path, "%s/%d", folder, (int)below(w, 3));
    return path;
}

static mixt_data *any_data(world *w)
{
    return w->data[below(w, SLOTS)];
}

static mixt_trainer *any_trainer(world *w)
{
    return w->trainer[below(w, SLOTS)];
}

static void *any_room(world *w)
{
    static float room[4096];
    return rarely(w) ? NULL : room;
}

static mixt_value net(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc2", mixt_relu(b, mixt_linear(b, "fc1", x, .features = 4)), .features = 2);
}

/* ---- calls: each returns its status, OK where it has none ---- */

static mixt_status open_data(world *w)
{
    mixt_data **at = &w->data[below(w, SLOTS)];
    mixt_data_arrays a = MIXT_OPTIONS(mixt_data_arrays, .samples = rarely(w) ? below(w, 3) : ROWS, .input_rank = 1,
                                      .input_dims = {WIDTH}, .inputs = rarely(w) ? NULL : inputs,
                                      .target = MIXT_TARGET_CLASS, .targets = rarely(w) ? NULL : labels);
    if (*at)
        return MIXT_OK;
    return rarely(w) ? mixt_data_open(any_text(w), at) : mixt_data_from(&a, NULL, at);
}

static mixt_status close_data(world *w)
{
    int64_t i = below(w, SLOTS);
    mixt_data_close(w->data[i]);
    w->data[i] = NULL;
    return MIXT_OK;
}

static mixt_status new_model(world *w)
{
    if (!w->model)
        w->model = mixt_model_new(w->context, rarely(w) ? NULL : net, MIXT_LOSS_CROSS_ENTROPY);
    return MIXT_OK;
}

static mixt_status new_trainer(world *w)
{
    mixt_trainer **at = &w->trainer[below(w, SLOTS)];
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .batch = any_int(w), .lr = any_float(w));
    o.precision = any_text(w);
    o.accumulate = rarely(w) ? any_int(w) : 1;
    o.split = rarely(w) ? any_int(w) : 1;
    o.integrity_every = any_int(w);
    return mixt_trainer_new_with(w->model, &o, at);
}

static mixt_status compile(world *w)
{
    return mixt_trainer_compile(any_trainer(w), any_data(w));
}

static mixt_status step(world *w)
{
    mixt_step result;
    return mixt_trainer_step(any_trainer(w), any_data(w), rarely(w) ? NULL : &result);
}

static mixt_status step_on(world *w)
{
    return mixt_trainer_step_on(any_trainer(w), rarely(w) ? NULL : inputs, rarely(w) ? NULL : labels, NULL);
}

static mixt_status evaluate(world *w)
{
    mixt_evaluation result;
    return mixt_trainer_evaluate(any_trainer(w), any_data(w), rarely(w) ? NULL : &result);
}

static mixt_status predict(world *w)
{
    int64_t count = any_int(w);
    return mixt_trainer_predict(any_trainer(w), rarely(w) ? NULL : inputs, count > ROWS ? ROWS : count, any_room(w));
}

static mixt_status backward(world *w)
{
    double loss;
    return mixt_trainer_backward(any_trainer(w), rarely(w) ? NULL : inputs, rarely(w) ? NULL : labels, any_float(w),
                                 rarely(w) ? NULL : &loss);
}

static mixt_status unscale(world *w)
{
    bool finite;
    return mixt_trainer_unscale(any_trainer(w), any_float(w), rarely(w) ? NULL : &finite);
}

static mixt_status clip(world *w)
{
    return mixt_trainer_clip(any_trainer(w), any_float(w), NULL);
}

static mixt_status apply(world *w)
{
    return mixt_trainer_apply(any_trainer(w), any_float(w));
}

static mixt_status discard(world *w)
{
    return mixt_trainer_discard(any_trainer(w));
}

static mixt_status params(world *w)
{
    mixt_param_info info;
    static float values[PARAMS];
    mixt_trainer *t = any_trainer(w);
    int64_t i = rarely(w) ? any_int(w) : below(w, 4);
    mixt_status status = mixt_trainer_param(t, i, &info);
    if (status != MIXT_OK || info.count > PARAMS)
        return status;
    return rarely(w)   ? mixt_trainer_grad_get(t, i, rarely(w) ? NULL : values)
           : rarely(w) ? mixt_trainer_param_set(t, i, rarely(w) ? NULL : values)
                       : mixt_trainer_param_get(t, i, rarely(w) ? NULL : values);
}

static mixt_status save(world *w)
{
    return rarely(w) ? mixt_trainer_save(any_trainer(w), any_path(w))
                     : mixt_trainer_checkpoint(any_trainer(w), any_path(w));
}

static mixt_status load(world *w)
{
    return rarely(w) ? mixt_trainer_load(any_trainer(w), any_path(w))
                     : mixt_trainer_restore(any_trainer(w), any_path(w));
}

static mixt_status set_policy(world *w)
{
    return rarely(w) ? mixt_trainer_set_precision(any_trainer(w), any_text(w))
                     : mixt_trainer_set_policy(any_trainer(w), w->policy);
}

static mixt_status plan(world *w)
{
    mixt_plan_info info;
    mixt_plan_node node;
    mixt_memory memory;
    mixt_trainer *t = any_trainer(w);
    (void)mixt_trainer_memory(t, rarely(w) ? NULL : &memory);
    (void)mixt_plan_node_at(t, any_int(w), rarely(w) ? NULL : &node);
    (void)mixt_plan_next(t, any_text(w), any_int(w));
    return mixt_plan_describe(t, rarely(w) ? NULL : &info);
}

static mixt_status profile(world *w)
{
    mixt_profile *p = NULL;
    int64_t runs = any_int(w);
    mixt_status status = mixt_profile_new(any_trainer(w), any_data(w), runs > 100 ? 3 : runs, &p);
    (void)mixt_profile_at(p, any_int(w));
    mixt_profile_free(p);
    return status;
}

static mixt_status states(world *w)
{
    mixt_step result = {.step = 1};
    mixt_diagnosis d;
    if (!w->states)
        return mixt_snapshots_new(any_trainer(w), any_data(w), any_int(w), &w->states);
    if (rarely(w)) {
        mixt_snapshots_free(w->states);
        w->states = NULL;
        return MIXT_OK;
    }
    return rarely(w) ? mixt_snapshots_diagnose(w->states, MIXT_CAUSE_LOSS_ANOMALY, rarely(w) ? NULL : &d)
                     : mixt_snapshots_note(w->states, rarely(w) ? NULL : &result, rarely(w));
}

static mixt_status policy(world *w)
{
    char *text = NULL;
    if (!w->policy)
        return mixt_policy_new((mixt_dtype)below(w, 12), (mixt_dtype)below(w, 12), &w->policy);
    if (rarely(w)) {
        mixt_policy_free(w->policy);
        w->policy = NULL;
        return MIXT_OK;
    }
    (void)mixt_policy_set_keep(w->policy, (mixt_dtype)below(w, 12));
    (void)mixt_policy_remove(w->policy, any_int(w));
    mixt_status status = mixt_policy_print(w->policy, rarely(w) ? NULL : &text);
    mixt_free(text);
    return status;
}

static mixt_status monitor(world *w)
{
    mixt_alert alerts[MIXT_ALERTS_MAX];
    mixt_signals signals = {.step = any_int(w), .loss = any_float(w)};
    mixt_monitor_options o = MIXT_OPTIONS(mixt_monitor_options);
    if (!w->monitor)
        return mixt_monitor_new(rarely(w) ? NULL : &o, &w->monitor);
    (void)mixt_monitor_step(w->monitor, rarely(w) ? NULL : &signals, alerts);
    return MIXT_OK;
}

static mixt_status read_data(world *w)
{
    mixt_data *d = any_data(w);
    int64_t batch = any_int(w);
    (void)mixt_data_input_bytes(d, any_int(w));
    (void)mixt_data_target_bytes(d, any_int(w));
    (void)mixt_data_batches(d, any_int(w));
    (void)mixt_data_describe(d);
    mixt_data_seek(d, any_int(w));
    static float input[1 << 16];
    static float target[1 << 16];
    return mixt_data_next(d, batch > 16 && batch < INT64_MAX ? 16 : batch, rarely(w) ? NULL : input,
                          rarely(w) ? NULL : target);
}

static mixt_status reopen(world *w)
{
    if (!rarely(w)) // it costs the most
        return MIXT_OK;
    mixt_close(w->context); // its model and trainers with it; handles of them are refused from here on
    w->context = rarely(w) ? NULL : mixt_open(.device = rarely(w) ? any_text(w) : "cpu", .threads = 1);
    w->model = NULL;
    return MIXT_OK;
}

static const struct {
    const char *name;
    mixt_status (*call)(world *);
} calls[] = {
    {"open_data", open_data},
    {"close_data", close_data},
    {"new_model", new_model},
    {"new_trainer", new_trainer},
    {"compile", compile},
    {"compile", compile},
    {"step", step},
    {"step", step},
    {"step_on", step_on},
    {"evaluate", evaluate},
    {"predict", predict},
    {"backward", backward},
    {"backward", backward},
    {"unscale", unscale},
    {"clip", clip},
    {"apply", apply},
    {"discard", discard},
    {"params", params},
    {"save", save},
    {"load", load},
    {"set_policy", set_policy},
    {"plan", plan},
    {"profile", profile},
    {"states", states},
    {"states", states},
    {"policy", policy},
    {"monitor", monitor},
    {"read_data", read_data},
    {"reopen", reopen},
};

/* ---- sequences ---- */

static void caught(int signal)
{
    char text[200];
    int length = snprintf(text, sizeof text, "sequence %lld: signal %d in %s\n", number, signal, newest);
    (void)!write(2, text, (size_t)length);
    _exit(3);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void begin(world *w)
{
    *w = (world){.rng = mixt__rng_start(mixt__rng_key((uint64_t)number, 5, 0))};
    w->context = mixt_open(.device = "cpu", .threads = 1);
    w->model = mixt_model_new(w->context, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_data_arrays a = MIXT_OPTIONS(mixt_data_arrays, .samples = ROWS, .input_rank = 1, .input_dims = {WIDTH},
                                      .inputs = inputs, .target = MIXT_TARGET_CLASS, .targets = labels);
    (void)mixt_data_from(&a, NULL, &w->data[0]);
    w->trainer[0] = mixt_trainer_new(w->model, .batch = BATCH);
    (void)mixt_trainer_compile(w->trainer[0], w->data[0]);
}

static void end(world *w)
{
    mixt_snapshots_free(w->states);
    mixt_monitor_free(w->monitor);
    mixt_policy_free(w->policy);
    mixt_close(w->context);
    for (int i = 0; i < SLOTS; i++)
        mixt_data_close(w->data[i]);
}

/** @return findings */
static int sequence(int64_t *refused)
{
    world w;
    int wrong = 0, count;
    double start = now();
    alarm(20);
    begin(&w);
    count = 1 + (int)below(&w, CALLS);
    for (int i = 0; i < count; i++) {
        int64_t which = below(&w, (int64_t)(sizeof calls / sizeof calls[0]));
        newest = calls[which].name;
        mixt_status status = calls[which].call(&w);
        if (loud)
            printf("%s: %d%s%s\n", newest, (int)status, status ? " " : "", status ? mixt_error_text() : "");
        *refused += status != MIXT_OK;
        if (status != MIXT_OK && !*mixt_error_text()) {
            printf("sequence %lld: %s is refused without a word\n", number, newest);
            wrong++;
        }
    }
    newest = "closing";
    end(&w);
    double seconds = now() - start;
    if (seconds > 2) {
        printf("sequence %lld takes %.1f s\n", number, seconds);
        wrong++;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    long long count = argc > 1 ? atoll(argv[1]) : 100, first = argc > 2 ? atoll(argv[2]) : 1;
    int64_t refused = 0;
    int wrong = 0;
    loud = count == 1;
    snprintf(folder, sizeof folder, "%s/mixt-calls-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder) || chdir(folder)) // names without a folder are written there
        return 2;
    for (int i = 0; i < ROWS * WIDTH; i++)
        inputs[i] = (float)(i % 7) - 3;
    for (int i = 0; i < ROWS; i++)
        labels[i] = i % 2;
    signal(SIGSEGV, caught);
    signal(SIGBUS, caught);
    signal(SIGABRT, caught);
    signal(SIGFPE, caught);
    signal(SIGALRM, caught);
    for (number = first; number < first + count; number++)
        wrong += sequence(&refused);
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    (void)!system(command);
    printf("%lld sequences, %lld calls refused in words, %d findings\n", count, (long long)refused, wrong);
    return wrong ? 1 : 0;
}
