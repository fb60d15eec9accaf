/* Wrong sequences of calls: objects closed twice, in the wrong order or by the wrong hand, used after they were closed
 * or before they are ready, NULL and impossible numbers. Each is refused with a status and a text that says why; under
 * the sanitizers none reads freed memory and none leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 4, WIDTH = 3, ROWS = 8 };

/** What every sequence begins with; whatever it has not closed is closed after it. */
typedef struct world {
    mixt_context *context; // NULL: closed by the sequence
    mixt_data *data;       // the user's own; NULL: closed
    mixt_data *owned;      // by the context
    mixt_model *model;
    mixt_trainer *trainer; // compiled
    mixt_trainer *raw;     // not compiled
} world;

static float inputs[ROWS][WIDTH];
static int32_t labels[ROWS] = {0, 1, 0, 1, 0, 1, 0, 1};
static char weights[256], table[256], rows[256];

static mixt_value net(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", x, .features = 2);
}

static mixt_data_arrays arrays(void)
{
    return MIXT_OPTIONS(mixt_data_arrays, .samples = ROWS, .input_rank = 1, .input_dims = {WIDTH}, .inputs = inputs,
                        .target = MIXT_TARGET_CLASS, .targets = labels);
}

static world begin(void)
{
    mixt_data_arrays a = arrays();
    world w = {.context = mixt_open(.device = "cpu", .threads = 1)};
    w.owned = mixt_data_new(w.context, "random:3", .samples = 16, .classes = 2);
    w.model = mixt_model_new(w.context, net, MIXT_LOSS_CROSS_ENTROPY);
    w.trainer = mixt_trainer_new(w.model, .batch = BATCH);
    w.raw = mixt_trainer_new(w.model, .batch = BATCH);
    assert_int_equal(mixt_data_from(&a, NULL, &w.data), MIXT_OK);
    assert_int_equal(mixt_trainer_compile(w.trainer, w.data), MIXT_OK);
    return w;
}

static void close_all(world *w)
{
    mixt_close(w->context);
    w->context = NULL;
}

static void close_data(world *w)
{
    mixt_data_close(w->data);
    w->data = NULL;
}

/** For functions without a status: they say it in words. The text of what was well is ours. */
static mixt_status told(void)
{
    return strcmp(mixt_error_text(), "well so far") ? MIXT_ERROR_STATE : MIXT_OK;
}

static mixt_run *open_run(void)
{
    char name[300];
    mixt_run *run;
    mixt_config *config;
    snprintf(name, sizeof name, "data.path=%s", table);
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    const char *const settings[] = {name, "model=mlp", "train.batch=4", "train.steps=2", "device=cpu", NULL};
    for (int i = 0; settings[i]; i++)
        assert_int_equal(mixt_config_set(config, settings[i], "test"), MIXT_OK);
    if (mixt_run_open_config(config, NULL, &run) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    mixt_config_free(config);
    return run;
}

static mixt_policy *policy(void)
{
    mixt_policy *p;
    assert_int_equal(mixt_policy_named("bf16", &p), MIXT_OK);
    return p;
}

static mixt_config *config(void)
{
    mixt_config *c;
    assert_int_equal(mixt_config_new(&c), MIXT_OK);
    return c;
}

static mixt_tokenizer *tokenizer(void)
{
    mixt_tokenizer *t;
    assert_int_equal(mixt_tokenizer_open("bytes", NULL, &t), MIXT_OK);
    return t;
}

static mixt_metrics *metrics(void)
{
    mixt_metrics *m;
    assert_int_equal(mixt_metrics_read(rows, &m), MIXT_OK);
    return m;
}

static mixt_report *report(void)
{
    mixt_report *r;
    assert_int_equal(mixt_report_new(MIXT_TARGET_CLASS, 2, &r), MIXT_OK);
    return r;
}

static mixt_verification *verification(void)
{
    char name[300];
    mixt_verification *v;
    mixt_config *c = config();
    snprintf(name, sizeof name, "data.path=%s", table);
    const char *const settings[] = {name,         "model=mlp",      "net.hidden=4", "train.batch=4",
                                    "device=cpu", "precision=bf16", "threads=1",    NULL};
    for (int i = 0; settings[i]; i++)
        assert_int_equal(mixt_config_set(c, settings[i], "test"), MIXT_OK);
    if (mixt_verify(c, &v, .seeds = 1, .steps = 2) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    mixt_config_free(c);
    return v;
}

/** Two copies of one result with a profile. */
static void bench(mixt_bench_result results[2])
{
    if (mixt_bench_run("convnet", &results[0], .batch = 1, .steps = 1, .profile = true, .device = "cpu",
                       .threads = 1) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    results[1] = results[0];
}

typedef mixt_status sequence(world *w);

#define NOT_OPEN "is not open"
#define NO_STEP "compile the trainer"

/** SEQUENCE(name, status, words of the text, calls that end in the status) */
#define SEQUENCES(X)                                                                                                   \
    /* closing twice, and by the wrong hand */                                                                         \
    X(data_closed_twice, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w); mixt_data_close(d); return told();)   \
    X(data_of_a_context_closed, STATE, "belongs to its context", mixt_data_close(w->owned); return told();)            \
    X(data_of_a_closed_context_closed, STATE, NOT_OPEN, close_all(w); mixt_data_close(w->owned); return told();)       \
    X(context_closed_twice, STATE, NOT_OPEN, mixt_context *c = w->context; close_all(w); mixt_close(c);                \
      return told();)                                                                                                  \
    X(run_closed_twice, STATE, NOT_OPEN, mixt_run *r = open_run(); mixt_run_close(r); mixt_run_close(r);               \
      return told();)                                                                                                  \
    X(data_of_a_run_closed, STATE, "belongs to its context or run", mixt_run *r = open_run(); mixt_data * d;           \
      mixt_status s = mixt_run_data(r, "train", &d); mixt_data_close(d); s = s == MIXT_OK ? told() : s;                \
      mixt_run_close(r); return s;)                                                                                    \
    X(policy_freed_twice, STATE, NOT_OPEN, mixt_policy *p = policy(); mixt_policy_free(p); mixt_policy_free(p);        \
      return told();)                                                                                                  \
    X(config_freed_twice, STATE, NOT_OPEN, mixt_config *c = config(); mixt_config_free(c); mixt_config_free(c);        \
      return told();)                                                                                                  \
    X(tokenizer_closed_twice, STATE, NOT_OPEN, mixt_tokenizer *t = tokenizer(); mixt_tokenizer_close(t);               \
      mixt_tokenizer_close(t); return told();)                                                                         \
    X(profile_freed_twice, STATE, NOT_OPEN, mixt_profile *p;                                                           \
      mixt_status s = mixt_profile_new(w->trainer, w->data, 1, &p); mixt_profile_free(p); mixt_profile_free(p);        \
      return s == MIXT_OK ? told() : s;)                                                                               \
    X(decoder_freed_twice, STATE, NOT_OPEN, mixt_tokenizer *t = tokenizer(); mixt_decoder * d;                         \
      mixt_status s = mixt_decoder_new(t, false, &d); mixt_decoder_free(d); mixt_tokenizer_close(t);                   \
      mixt_decoder_free(d); return s == MIXT_OK ? told() : s;)                                                         \
    X(verification_freed_twice, STATE, NOT_OPEN, mixt_verification *v = verification(); mixt_verification_free(v);     \
      mixt_verification_free(v); return told();)                                                                       \
    X(metrics_freed_twice, STATE, NOT_OPEN, mixt_metrics *m = metrics(); mixt_metrics_free(m); mixt_metrics_free(m);   \
      return told();)                                                                                                  \
    X(report_freed_twice, STATE, NOT_OPEN, mixt_report *r = report(); mixt_report_free(r); mixt_report_free(r);        \
      return told();)                                                                                                  \
    X(bench_freed_through_a_copy, STATE, NOT_OPEN, mixt_bench_result b[2]; bench(b); mixt_bench_free(&b[0]);           \
      mixt_bench_free(&b[0]); if (told() != MIXT_OK) return MIXT_OK; mixt_bench_free(&b[1]); return told();)           \
    /* use after close */                                                                                              \
    X(closed_data_stepped_on, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w);                                  \
      return mixt_trainer_step(w->trainer, d, NULL);)                                                                  \
    X(closed_data_evaluated, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w); mixt_evaluation e;                \
      return mixt_trainer_evaluate(w->trainer, d, &e);)                                                                \
    X(closed_data_compiled_for, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w);                                \
      return mixt_trainer_compile(w->raw, d);)                                                                         \
    X(closed_data_read, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w); int64_t n;                             \
      return mixt_data_read(d, 0, 1, (float[WIDTH]){0}, (int32_t[1]){0}, &n);)                                         \
    X(closed_data_batched, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w);                                     \
      return mixt_data_batch(d, 1, 0, (float[WIDTH]){0}, (int32_t[1]){0});)                                            \
    X(closed_data_next, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w);                                        \
      return mixt_data_next(d, 1, (float[WIDTH]){0}, (int32_t[1]){0});)                                                \
    X(closed_data_sought, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w); mixt_data_seek(d, 3);                \
      return told();)                                                                                                  \
    X(closed_data_described, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w);                                   \
      return mixt_data_describe(d)->samples ? MIXT_OK : told();)                                                       \
    X(closed_data_counted, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w);                                     \
      return mixt_data_batches(d, 1) ? MIXT_OK : told();)                                                              \
    X(closed_data_as_like, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w); mixt_data * o;                      \
      return mixt_data_open("digits:", &o, .like = d);)                                                                \
    X(closed_data_for_the_zoo, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w);                                 \
      return mixt_zoo_model(w->context, "mlp", d) ? MIXT_OK : told();)                                                 \
    X(closed_data_profiled, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w); mixt_profile * p;                  \
      return mixt_profile_new(w->trainer, d, 1, &p);)                                                                  \
    X(closed_data_for_inputs, STATE, NOT_OPEN, mixt_data *d = w->data; close_data(w); mixt_inputs * in;                \
      return mixt_inputs_open("x.npy", d, &in);)                                                                       \
    X(trainer_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                      \
      return mixt_trainer_step(w->trainer, w->data, NULL);)                                                            \
    X(step_on_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                      \
      return mixt_trainer_step_on(w->trainer, inputs, labels, NULL);)                                                  \
    X(prediction_of_a_closed_context, STATE, NOT_OPEN, close_all(w); float out[2];                                     \
      return mixt_trainer_predict(w->trainer, inputs, 1, out);)                                                        \
    X(save_of_a_closed_context, STATE, NOT_OPEN, close_all(w); return mixt_trainer_save(w->trainer, weights);)         \
    X(checkpoint_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                   \
      return mixt_trainer_checkpoint(w->trainer, "/tmp/never");)                                                       \
    X(restore_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                      \
      return mixt_trainer_restore(w->trainer, "/tmp/never");)                                                          \
    X(parameter_of_a_closed_context, STATE, NOT_OPEN, close_all(w); float v[6];                                        \
      return mixt_trainer_param_get(w->trainer, 0, v);)                                                                \
    X(parameters_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                   \
      return mixt_trainer_param_count(w->trainer) ? MIXT_OK : told();)                                                 \
    X(epoch_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                        \
      return mixt_trainer_epoch(w->trainer) ? MIXT_OK : told();)                                                       \
    X(policy_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                       \
      return mixt_trainer_policy(w->trainer) ? MIXT_OK : told();)                                                      \
    X(precision_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                    \
      return mixt_trainer_set_precision(w->trainer, "bf16");)                                                          \
    X(plan_of_a_closed_context, STATE, NOT_OPEN, close_all(w); mixt_plan_info i;                                       \
      return mixt_plan_describe(w->trainer, &i);)                                                                      \
    X(memory_of_a_closed_context, STATE, NOT_OPEN, close_all(w); mixt_memory m;                                        \
      return mixt_trainer_memory(w->trainer, &m);)                                                                     \
    X(model_of_a_closed_context, STATE, NOT_OPEN, close_all(w); return mixt_trainer_new(w->model) ? MIXT_OK : told();) \
    X(generator_of_a_closed_context, STATE, NOT_OPEN, close_all(w);                                                    \
      return mixt_generator_new(w->model, .weights = weights) ? MIXT_OK : told();)                                     \
    X(data_in_a_closed_context, STATE, NOT_OPEN, mixt_context *c = w->context; close_all(w);                           \
      return mixt_data_new(c, "digits:") ? MIXT_OK : told();)                                                          \
    X(model_in_a_closed_context, STATE, NOT_OPEN, mixt_context *c = w->context; close_all(w);                          \
      return mixt_model_new(c, net, MIXT_LOSS_MSE) ? MIXT_OK : told();)                                                \
    X(zoo_in_a_closed_context, STATE, NOT_OPEN, mixt_context *c = w->context; close_all(w);                            \
      return mixt_zoo_model(c, "mlp", w->data) ? MIXT_OK : told();)                                                    \
    X(error_of_a_closed_context, STATE, NOT_OPEN, mixt_context *c = w->context; close_all(w);                          \
      return *mixt_error(c) ? told() : MIXT_OK;)                                                                       \
    X(compute_in_a_closed_context, STATE, NOT_OPEN, mixt_context *c = w->context; close_all(w);                        \
      return mixt_compute(c, NULL, NULL, 0, NULL);)                                                                    \
    X(closed_run_trained, STATE, NOT_OPEN, mixt_run *r = open_run(); mixt_run_close(r);                                \
      return mixt_run_train(r, NULL);)                                                                                 \
    X(closed_run_evaluated, STATE, NOT_OPEN, mixt_run *r = open_run(); mixt_run_close(r); mixt_evaluation e;           \
      return mixt_run_evaluate(r, "val", &e);)                                                                         \
    X(closed_run_asked, STATE, NOT_OPEN, mixt_run *r = open_run(); mixt_run_close(r); mixt_run_ask_stop(r);            \
      return told();)                                                                                                  \
    X(closed_run_observed, STATE, NOT_OPEN, mixt_run *r = open_run(); mixt_run_close(r);                               \
      return mixt_run_observe(r, NULL, NULL);)                                                                         \
    X(closed_run_described, STATE, NOT_OPEN, mixt_run *r = open_run(); mixt_run_close(r);                              \
      return mixt_run_describe(r).total_steps ? MIXT_OK : told();)                                                     \
    X(trainer_of_a_closed_run, STATE, NOT_OPEN, mixt_run *r = open_run(); mixt_trainer *t = mixt_run_trainer(r);       \
      mixt_run_close(r); return mixt_trainer_save(t, weights);)                                                        \
    X(data_of_a_closed_run, STATE, NOT_OPEN, mixt_run *r = open_run(); mixt_data * d; int64_t n;                       \
      mixt_status s = mixt_run_data(r, "train", &d); mixt_run_close(r);                                                \
      return s != MIXT_OK ? s : mixt_data_read(d, 0, 1, (float[8]){0}, (float[1]){0}, &n);)                            \
    X(freed_policy_taken, STATE, NOT_OPEN, mixt_policy *p = policy(); mixt_policy_free(p);                             \
      return mixt_trainer_set_policy(w->trainer, p);)                                                                  \
    X(freed_policy_of_a_new_trainer, STATE, NOT_OPEN, mixt_policy *p = policy(); mixt_policy_free(p);                  \
      return mixt_trainer_new(w->model, .policy = p) ? MIXT_OK : told();)                                              \
    X(freed_policy_changed, STATE, NOT_OPEN, mixt_policy *p = policy(); mixt_policy_free(p);                           \
      return mixt_policy_remove(p, 0);)                                                                                \
    X(freed_config_set, STATE, NOT_OPEN, mixt_config *c = config(); mixt_config_free(c);                               \
      return mixt_config_set(c, "seed=1", "test");)                                                                    \
    X(freed_config_opened, STATE, NOT_OPEN, mixt_config *c = config(); mixt_config_free(c); mixt_run * r;              \
      return mixt_run_open_config(c, NULL, &r);)                                                                       \
    X(freed_config_read, STATE, NOT_OPEN, mixt_config *c = config(); mixt_config_free(c);                              \
      return mixt_config_int(c, "seed") ? MIXT_OK : told();)                                                           \
    X(closed_tokenizer_used, STATE, NOT_OPEN, mixt_tokenizer *t = tokenizer(); mixt_tokenizer_close(t); int32_t * ids; \
      int64_t n; return mixt_tokenizer_encode(t, "ab", 2, &ids, &n);)                                                  \
    X(decoder_of_a_closed_tokenizer, STATE, NOT_OPEN, mixt_tokenizer *t = tokenizer(); mixt_decoder * d;               \
      const char *text; int64_t n; mixt_status s = mixt_decoder_new(t, false, &d); mixt_tokenizer_close(t);            \
      s = s == MIXT_OK ? mixt_decoder_put(d, (int32_t[]){65}, 1, &text, &n) : s; mixt_decoder_free(d); return s;)      \
    X(freed_verification_described, STATE, NOT_OPEN, mixt_verification *v = verification(); mixt_verification_free(v); \
      return mixt_verification_describe(v).checklist ? MIXT_OK : told();)                                              \
    X(line_of_a_freed_verification, STATE, NOT_OPEN, mixt_verification *v = verification(); mixt_verification_free(v); \
      return mixt_verification_line(v, 0) ? MIXT_OK : told();)                                                         \
    X(run_of_a_freed_verification, STATE, NOT_OPEN, mixt_verification *v = verification(); mixt_verification_free(v);  \
      return mixt_verification_run(v, 0, MIXT_VERIFY_FP32) ? MIXT_OK : told();)                                        \
    X(freed_config_verified, STATE, NOT_OPEN, mixt_config *c = config(); mixt_config_free(c); mixt_verification * v;   \
      return mixt_verify(c, &v, .seeds = 1);)                                                                          \
    X(freed_metrics_described, STATE, NOT_OPEN, mixt_metrics *m = metrics(); mixt_metrics_free(m);                     \
      return mixt_metrics_describe(m).rows ? MIXT_OK : told();)                                                        \
    X(column_of_freed_metrics, STATE, NOT_OPEN, mixt_metrics *m = metrics(); mixt_metrics_free(m);                     \
      return mixt_metrics_column(m, "loss") ? MIXT_OK : told();)                                                       \
    X(name_of_freed_metrics, STATE, NOT_OPEN, mixt_metrics *m = metrics(); mixt_metrics_free(m);                       \
      return mixt_metrics_name(m, 0) ? MIXT_OK : told();)                                                              \
    X(freed_report_added_to, STATE, NOT_OPEN, mixt_report *r = report(); mixt_report_free(r);                          \
      return mixt_report_add(r, (float[2]){0}, labels, 1);)                                                            \
    X(freed_report_described, STATE, NOT_OPEN, mixt_report *r = report(); mixt_report_free(r);                         \
      return mixt_report_describe(r)->classes ? MIXT_OK : told();)                                                     \
    X(profile_of_a_freed_bench, STATE, NOT_OPEN, mixt_bench_result b[2]; bench(b); mixt_bench_free(&b[0]);             \
      return mixt_profile_describe(b[1].profile).rows ? MIXT_OK : told();)                                             \
    /* before it is time */                                                                                            \
    X(saved_before_compiling, STATE, NO_STEP, return mixt_trainer_save(w->raw, weights);)                              \
    X(checkpoint_before_compiling, STATE, NO_STEP, return mixt_trainer_checkpoint(w->raw, "/tmp/never");)              \
    X(loaded_before_compiling, STATE, "", return mixt_trainer_load(w->raw, weights);)                                  \
    X(predicted_before_compiling, STATE, NO_STEP, float out[2]; return mixt_trainer_predict(w->raw, inputs, 1, out);)  \
    X(stepped_on_before_compiling, STATE, "", return mixt_trainer_step_on(w->raw, inputs, labels, NULL);)              \
    X(backward_before_compiling, STATE, "", return mixt_trainer_backward(w->raw, inputs, labels, 1, NULL);)            \
    X(unscaled_without_gradients, STATE, "", return mixt_trainer_unscale(w->trainer, 1, NULL);)                        \
    X(clipped_without_gradients, STATE, "", return mixt_trainer_clip(w->trainer, 1, NULL);)                            \
    X(applied_without_gradients, STATE, "", return mixt_trainer_apply(w->trainer, 0.1f);)                              \
    X(plan_before_compiling, STATE, NO_STEP, mixt_plan_info i; return mixt_plan_describe(w->raw, &i);)                 \
    X(memory_before_compiling, STATE, NO_STEP, mixt_memory m; return mixt_trainer_memory(w->raw, &m);)                 \
    X(profile_before_compiling, STATE, NO_STEP, mixt_profile *p; return mixt_profile_new(w->raw, w->data, 1, &p);)     \
    /* nothing there */                                                                                                \
    X(no_trainer, ARGUMENT, "no trainer", return mixt_trainer_step(NULL, w->data, NULL);)                              \
    X(no_data, ARGUMENT, "no data", return mixt_trainer_step(w->trainer, NULL, NULL);)                                 \
    X(no_run, ARGUMENT, "run must not be NULL", return mixt_run_train(NULL, NULL);)                                    \
    X(no_run_to_ask, STATE, "run must not be NULL", mixt_run_ask_stop(NULL); return told();)                           \
    X(no_generator, ARGUMENT, "no generator", return mixt_generator_start(NULL, (int32_t[]){1}, 1);)                   \
    X(no_context, STATE, "no context", return mixt_model_new(NULL, net, MIXT_LOSS_MSE) ? MIXT_OK : told();)            \
    X(no_verification, STATE, "v must not be NULL",                                                                    \
      return mixt_verification_describe(NULL).checklist ? MIXT_OK : told();)                                           \
    X(no_report, ARGUMENT, "must not be NULL", return mixt_report_add(NULL, (float[2]){0}, labels, 1);)                \
    X(no_result_of_a_bench, ARGUMENT, "result must not be NULL", return mixt_bench_run_with("mlp", NULL, NULL);)       \
    X(no_place_for_a_config, ARGUMENT, "config must not be NULL", return mixt_config_new(NULL);)                       \
    X(no_assignment, ARGUMENT, "assignment must not be NULL", mixt_config *c = config();                               \
      mixt_status s = mixt_config_set(c, NULL, "test"); mixt_config_free(c); return s;)                                \
    X(no_text, ARGUMENT, "text must not be NULL", mixt_config *c = config();                                           \
      mixt_status s = mixt_config_print(c, false, NULL); mixt_config_free(c); return s;)                               \
    X(no_arrays, ARGUMENT, "arrays must not be NULL", mixt_data *d; return mixt_data_from(NULL, NULL, &d);)            \
    /* impossible numbers and shapes */                                                                                \
    X(negative_count, ARGUMENT, "count from 0", float out[2];                                                          \
      return mixt_trainer_predict(w->trainer, inputs, -1, out);)                                                       \
    X(negative_batch, ARGUMENT, "batch of -1", return mixt_data_batch(w->data, -1, 0, inputs, labels);)                \
    X(negative_read, ARGUMENT, "read of -2", int64_t n;                                                                \
      return mixt_data_read(w->data, 0, -2, (float[WIDTH]){0}, (int32_t[1]){0}, &n);)                                  \
    X(negative_parameter, ARGUMENT, "", float v[6] = {0}; return mixt_trainer_param_set(w->trainer, -1, v);)           \
    X(negative_threads, STATE, "threads -1", return mixt_open(.threads = -1) ? MIXT_OK : told();)                      \
    X(negative_tokens, ARGUMENT, "", mixt_tokenizer *t = tokenizer(); int32_t * ids; int64_t n;                        \
      mixt_status s = mixt_tokenizer_encode(t, "a", -1, &ids, &n); mixt_tokenizer_close(t); return s;)                 \
    X(negative_decoding, ARGUMENT, "expected 0 or more", mixt_tokenizer *t = tokenizer(); mixt_decoder * d;            \
      const char *text; int64_t n; mixt_status s = mixt_decoder_new(t, false, &d);                                     \
      s = s == MIXT_OK ? mixt_decoder_put(d, (int32_t[]){65}, -1, &text, &n) : s; mixt_decoder_free(d);                \
      mixt_tokenizer_close(t); return s;)                                                                              \
    X(zero_batch, STATE, "batch", return mixt_trainer_new(w->model, .batch = 0) ? MIXT_OK : told();)                   \
    X(wrong_rank, ARGUMENT, "dimensions", mixt_sample_shape s = {.input_dtype = MIXT_DTYPE_FP32, .input_rank = -1};    \
      return mixt_trainer_compile_for(w->raw, &s);)                                                                    \
    X(wrong_shape, SHAPE, "",                                                                                          \
      return mixt_trainer_step(w->trainer, w->owned, NULL) == MIXT_OK                                                  \
                 ? mixt_profile_new(w->trainer, mixt_data_new(w->context, "random:5", .samples = 8, .classes = 2), 1,  \
                                    &(mixt_profile *){NULL})                                                           \
                 : MIXT_OK;)                                                                                           \
    X(zero_profile_runs, ARGUMENT, "at least 1", mixt_profile *p; return mixt_profile_new(w->trainer, w->data, 0, &p);)

#define DEFINE(name, status, words, ...)                                                                               \
    static mixt_status name(world *w)                                                                                  \
    {                                                                                                                  \
        (void)w;                                                                                                       \
        __VA_ARGS__                                                                                                    \
    }
// clang-format off
SEQUENCES(DEFINE)
// clang-format on

static const struct {
    const char *name;
    sequence *run;
    mixt_status status;
    const char *words;
} wrong[] = {
#define ENTRY(name, status, words, ...) {#name, name, MIXT_ERROR_##status, words},
    SEQUENCES(ENTRY)};

static void each_is_refused(void **state)
{
    (void)state;
    int64_t count = sizeof wrong / sizeof wrong[0], failed = 0;
    assert_true(count >= 60);
    for (int64_t i = 0; i < count; i++) {
        world w = begin();
        (void)mixt_fail(MIXT_ERROR_STATE, "well so far");
        mixt_status got = wrong[i].run(&w);
        char text[1024];
        snprintf(text, sizeof text, "%s", mixt_error_text());
        if (got != wrong[i].status || !*text || !strstr(text, wrong[i].words)) {
            print_error("%s: %d (%s): '%s'\n", wrong[i].name, (int)got, mixt_status_text(got), text);
            failed++;
        }
        mixt_close(w.context);
        mixt_data_close(w.data);
    }
    assert_int_equal(failed, 0);
}

/** After all that, everything still works. */
static void the_right_order_works(void **state)
{
    (void)state;
    world w = begin();
    mixt_step step;
    mixt_data_close(w.owned); // refused
    for (int i = 0; i < 3; i++)
        assert_int_equal(mixt_trainer_step(w.trainer, w.data, &step), MIXT_OK);
    assert_int_equal(mixt_trainer_step(w.raw, w.owned, &step), MIXT_OK);
    close_data(&w); // its trainer reads ahead and keeps it
    close_all(&w);
}

static int make_files(void **state)
{
    (void)state;
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    snprintf(weights, sizeof weights, "%s/mixt_misuse_%d.safetensors", folder, (int)getpid());
    snprintf(table, sizeof table, "%s/mixt_misuse_%d.csv", folder, (int)getpid());
    FILE *f = fopen(table, "w");
    for (int i = 0; f && i < 40; i++)
        fprintf(f, "%d,%d,%d\n", i % 7, i % 5, i % 2);
    snprintf(rows, sizeof rows, "%s/mixt_misuse_%d.jsonl", folder, (int)getpid());
    FILE *m = fopen(rows, "w");
    if (m)
        fputs("{\"step\": 1, \"loss\": 2.5}\n", m);
    for (int i = 0; i < ROWS * WIDTH; i++)
        inputs[i / WIDTH][i % WIDTH] = (float)(i % 5);
    return (f ? fclose(f) : 1) + (m ? fclose(m) : 1);
}

static int remove_files(void **state)
{
    (void)state;
    unlink(weights);
    unlink(rows);
    return unlink(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_refused), cmocka_unit_test(the_right_order_works)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
