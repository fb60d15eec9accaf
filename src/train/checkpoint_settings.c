/* What a checkpoint's state holds for, as a flat object, and the differences of two of them. */
#include "store/json.h"
#include "train/checkpoint.h"

#include "train/trainer_inside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(json_t *object, const char *name, json_t *value)
{
    mixt__json_set(object, name,
                   value); // a value that could not be made is missing later, and shows as a difference
}

static void add_int(json_t *object, const char *name, int64_t value)
{
    add(object, name, json_integer(value));
}

/** NULL and "" are the same: nothing. */
static void add_string(json_t *object, const char *name, const char *value)
{
    add(object, name, mixt__json_string(value ? value : ""));
}

static void add_float(json_t *object, const char *name, float value)
{
    add(object, name, mixt__json_double((double)value));
}

static const char *const schedule_names[] = {"constant", "step", "cosine", "linear", "onecycle"};
static const char *const optimizer_names[] = {"sgd", "adam", "adamw", "lamb"};

static void add_schedule(json_t *o, const mixt__schedule *s)
{
    add(o, "schedule", mixt__json_string(schedule_names[s->kind]));
    add_float(o, "lr", s->lr);
    add_float(o, "min_lr", s->min_lr);
    add_float(o, "gamma", s->gamma);
    add_int(o, "warmup", s->warmup);
    add_int(o, "decay_steps", s->decay_steps);
}

static void add_optimizer(json_t *o, const mixt__optimizer *p)
{
    add(o, "optimizer", mixt__json_string(optimizer_names[p->kind]));
    add(o, "nesterov", json_boolean(p->nesterov));
    add_float(o, "momentum", p->momentum);
    add_float(o, "beta1", p->beta1);
    add_float(o, "beta2", p->beta2);
    add_float(o, "eps", p->eps);
}

/** Loss scaling and clipping, by the names that policies give them. */
static void add_decided(json_t *o, const mixt_policy_settings *decided)
{
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++) {
        bool whole;
        double number = mixt__policy_setting_get(decided, i, &whole);
        add(o, mixt_policy_setting(i),
            isnan(number) ? mixt__json_string(decided->loss_scale)
            : whole       ? json_integer((json_int_t)number)
                          : mixt__json_double(number));
    }
}

/** Only where there is a teacher: a run without one says nothing of it. */
static void add_teacher(json_t *o, const mixt__trainer *t)
{
    if (!t->model.teacher)
        return;
    char *policy = mixt__policy_line(t->teacher.policy);
    add_string(o, "teacher", t->teacher.sum);
    add(o, "teacher_precision", mixt__json_string(policy));
    add_float(o, "teacher_weight", t->model.teacher->weight);
    add_float(o, "teacher_temperature", t->model.teacher->temperature);
    free(policy);
}

/** Adapters in one line. */
static void add_lora(json_t *o, const mixt__lora *lora)
{
    char text[1024] = "";
    if (lora->rank)
        snprintf(text, sizeof text, "rank %lld, scale %.9g, dropout %.9g, layers '%s', also '%s'",
                 (long long)lora->rank, (double)mixt__lora_scale(lora), (double)lora->dropout,
                 lora->layers ? lora->layers : "", lora->also ? lora->also : "");
    add_string(o, "lora", text);
}

/** How long the batches of each bucket are, inputs and targets. */
static void add_buckets(json_t *o, const mixt__trainer *t)
{
    char text[32 * MIXT_LENGTHS_MAX] = "";
    size_t used = 0;
    for (int k = 0; k < t->lengths.count; k++) {
        const mixt__batch_spec *s = &t->lengths.spec[k];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld/%lld", k ? " " : "",
                                 (long long)(mixt__shape_count(&s->input) / s->input.dims[0]),
                                 (long long)(mixt__shape_count(&s->target) / s->target.dims[0]));
    }
    add_string(o, "buckets", text);
}

/** The number of steps is left out: it may grow. */
json_t *mixt__trainer_settings_json(const mixt__trainer *t)
{
    const mixt__trainer_settings *s = &t->settings;
    char text[128], *policy = mixt__policy_line(&s->policy);
    json_t *o = json_object();
    add(o, "precision", mixt__json_string(policy));
    free(policy);
    mixt__shape input = t->spec.input, target = t->spec.target;
    input.dims[0] *= s->ranks; // of all ranks, however many there are
    target.dims[0] *= s->ranks;
    add(o, "input", mixt__json_string(mixt__shape_text(&input, text, sizeof text)));
    add(o, "target", mixt__json_string(mixt__shape_text(&target, text, sizeof text)));
    add_buckets(o, t);
    add_int(o, "loss", t->model.loss);
    add_float(o, "label_smoothing", t->model.label_smoothing);
    add_int(o, "batch", s->batch * s->split * s->ranks);
    add_int(o, "accumulate", s->accumulate / s->split / s->ranks);
    add_int(o, "split", s->split);
    add_int(o, "ranks", s->ranks);
    add(o, "seed", json_integer((json_int_t)s->seed));
    add_optimizer(o, &s->optimizer);
    add_schedule(o, &s->schedule);
    add_decided(o, &s->decided);
    add(o, "moments", mixt__json_string(mixt_dtype_name(s->moments)));
    add_float(o, "weight_decay", s->weight_decay);
    add(o, "no_fusion", json_boolean(s->no_fusion));
    add_string(o, "freeze", s->freeze);
    add(o, "frozen", mixt__json_string(s->frozen == MIXT_DTYPE_NONE ? "auto" : mixt_dtype_name(s->frozen)));
    add_lora(o, &t->model.lora);
    add_string(o, "lr_groups", s->lr_groups);
    add_string(o, "decay_groups", s->decay_groups);
    add_int(o, "inject_overflow", s->inject_overflow);
    add_string(o, "MIXT_FUSION", t->environment.fusion);
    add_string(o, "MIXT_CANDIDATE", t->environment.candidate);
    add_teacher(o, t);
    return o;
}

/** Earlier versions of mixt did not record these: where the default is set now it was most likely set then; of any
 * other value nobody knows. */
static void add_missing(json_t *before, const json_t *now)
{
    const struct {
        const char *name;
        json_t *value;
    } defaults[] = {
        {"freeze", mixt__json_string("")},
        {"frozen", mixt__json_string("auto")},
        {"lora", mixt__json_string("")},
        {"lr_groups", mixt__json_string("")},
        {"decay_groups", mixt__json_string("")},
        {"inject_overflow", json_integer(0)},
        {"split", json_integer(1)},
        {"ranks", json_integer(1)},
        {"moments", mixt__json_string("fp32")},
        {"MIXT_FUSION", mixt__json_string("1")},
        {"MIXT_CANDIDATE", mixt__json_string("")},
        {"buckets", mixt__json_string("")},
    };
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        bool same = json_equal(json_object_get(now, defaults[i].name), defaults[i].value);
        if (!json_object_get(before, defaults[i].name))
            add(before, defaults[i].name,
                same ? json_incref(defaults[i].value)
                     : mixt__json_string("(not recorded by the version that made it)"));
        json_decref(defaults[i].value);
    }
}

static void leave_out(json_t *settings, const char *name)
{
    json_object_del(settings, name);
    for (int i = 0; i < MIXT_POLICY_SETTINGS && !strcmp(name, "precision"); i++)
        json_object_del(settings, mixt_policy_setting(i));
}

mixt_status mixt__trainer_settings_differences(const mixt__trainer *t, const json_t *then,
                                               const char *const *may_differ, char **differences)
{
    json_t *now = mixt__trainer_settings_json(t),
           *before = json_is_object(then) ? mixt__json_copy(then) : json_object();
    mixt_status status = MIXT_OK;
    if (before && json_is_object(then))
        add_missing(before, now);
    for (; may_differ && *may_differ; may_differ++) {
        leave_out(before, *may_differ);
        leave_out(now, *may_differ);
    }
    if (mixt__json_whole(before) && mixt__json_whole(now))
        status = mixt__json_differences(before, now, ", ", differences);
    else
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare the settings with a checkpoint's");
    json_decref(before);
    json_decref(now);
    return status;
}

static void print_value(FILE *stream, const json_t *value)
{
    char *text = value ? mixt__json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (json_is_string(value))
        fputs(*json_string_value(value) ? json_string_value(value) : "(none)", stream);
    else
        fputs(text ? text : "(not there)", stream);
    free(text);
}

static void print_difference(FILE *stream, const char *separator, const char *name, const json_t *before,
                             const json_t *now)
{
    fprintf(stream, "%s%s: ", ftell(stream) ? separator : "", name);
    print_value(stream, before);
    fputs(" -> ", stream);
    print_value(stream, now);
}

mixt_status mixt__json_differences(const json_t *before, const json_t *now, const char *separator, char **differences)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    const char *name;
    json_t *value;
    *differences = NULL;
    if (!stream)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare settings");
    json_object_foreach((json_t *)(uintptr_t)now, name, value) if (!json_equal(json_object_get(before, name), value))
        print_difference(stream, separator, name, json_object_get(before, name), value);
    json_object_foreach((json_t *)(uintptr_t)before, name, value) if (!json_object_get(now, name))
        print_difference(stream, separator, name, value, NULL);
    bool failed = fclose(stream) != 0;
    if (!failed && size)
        failed = !(*differences = mixt__strdup(text));
    free(text);
    return failed ? mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare settings") : MIXT_OK;
}
