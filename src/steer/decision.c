/* One shape for a decision: the row of events.jsonl, a replay and the evidence of a policy all have it. */
#include "steer/decision.h"

#include "base/alloc.h"
#include "base/status.h"
#include "policy/policy.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *mixt_action_name(mixt_action action)
{
    static const char *const names[] = {
#define MIXT_ACTION_NAME(name, text) text,
        MIXT_ACTION_LIST(MIXT_ACTION_NAME)
#undef MIXT_ACTION_NAME
    };
    return (unsigned)action < MIXT_ACTION_COUNT ? names[action] : "none";
}

/** Bytes of a text at most, its end included: those of a layer, a configuration's key, a value. */
enum { LAYER = 128, KEY = 48, VALUE = 64 };

static mixt_status check_length(const char *what, const char *text, size_t most)
{
    if (!text || strlen(text) < most)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT, "%s of a decision, '%.40s…', has %zu bytes: there is room for %zu", what,
                      text, strlen(text), most - 1);
}

/** Its texts, in one piece of memory that begins with its layer. */
#define TEXTS(X) X(layer) X(key) X(from) X(to) X(text) X(policy)

mixt_status mixt__decision_copy(const mixt_decision *decision, mixt_decision *copy)
{
    size_t bytes = 0;
    MIXT_TRY(check_length("layer", decision->layer, LAYER));
    MIXT_TRY(check_length("key", decision->key, KEY));
    MIXT_TRY(check_length("from", decision->from, VALUE));
    MIXT_TRY(check_length("to", decision->to, VALUE));
#define COUNT(name) bytes += 1 + (decision->name ? strlen(decision->name) : 0);
    TEXTS(COUNT)
#undef COUNT
    char *at = mixt__alloc(bytes);
    if (!at)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a decision");
    *copy = *decision;
#define COPY(name)                                                                                                     \
    copy->name = strcpy(at, decision->name ? decision->name : "");                                                     \
    at += strlen(at) + 1;
    TEXTS(COPY)
#undef COPY
    copy->policy = decision->policy ? copy->policy : NULL;
    return MIXT_OK;
}

void mixt__decision_free(mixt_decision *decision)
{
    mixt__free((char *)(uintptr_t)decision->layer); // the first of its own texts
    decision->layer = NULL;
}

const char *mixt__decision_text(const mixt_decision *d, char text[MIXT_DECISION_TEXT])
{
    char back[48] = "", change[320] = "";
    const char *what = *d->key ? d->key : *d->layer ? d->layer : "the model";
    if (d->back >= 0)
        snprintf(back, sizeof back, "back to step %lld%s", (long long)d->back,
                 d->action == MIXT_ACTION_ROLLBACK || d->action == MIXT_ACTION_STOP ? "" : ", ");
    if (d->action == MIXT_ACTION_SKIP)
        snprintf(change, sizeof change, "%s %s left out", *d->key ? d->key : "batch", d->to);
    else if (d->action == MIXT_ACTION_NONE)
        snprintf(change, sizeof change, "goes on");
    else if (d->action == MIXT_ACTION_STOP)
        snprintf(change, sizeof change, "%sstop", d->back >= 0 ? ", " : "");
    else if (d->action != MIXT_ACTION_ROLLBACK)
        snprintf(change, sizeof change, "%s from %s to %s", what, d->from, d->to);
    snprintf(text, MIXT_DECISION_TEXT, "%s%s: %s", back, change, d->text);
    return text;
}

/* ---- rows ---- */

static json_t *text_or_null(const char *text)
{
    return text && *text ? mixt__json_string(text) : json_null();
}

json_t *mixt__decision_row(const mixt_decision *d, double time)
{
    json_t *evidence =
        json_pack("{s:s, s:o, s:o, s:o}", "text", d->text, "back", d->back >= 0 ? json_integer(d->back) : json_null(),
                  "key", text_or_null(d->key), "policy", text_or_null(d->policy));
    if (evidence && d->bytes_after) {
        mixt__json_set(evidence, "bytes_before", json_integer((json_int_t)d->bytes_before));
        mixt__json_set(evidence, "bytes_after", json_integer((json_int_t)d->bytes_after));
    }
    return json_pack("{s:I, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:o}", "step", (json_int_t)d->step, "time",
                     isfinite(time) ? json_real(time) : json_null(), "kind", "decision", "severity",
                     mixt_severity_name(d->severity), "cause",
                     text_or_null(d->cause < MIXT_CAUSE_COUNT ? mixt_cause_name(d->cause) : ""), "layer",
                     text_or_null(d->layer), "from", text_or_null(d->from), "to", text_or_null(d->to), "action",
                     mixt_action_name(d->action), "evidence", evidence);
}

/** The position of a word among names; `count` where it is none of them. */
static int find_word(const json_t *value, const char *(*name)(int), int count)
{
    const char *word = json_string_value(value);
    int i = 0;
    while (i < count && (!word || strcmp(word, name(i))))
        i++;
    return i;
}

static const char *action_at(int i)
{
    return mixt_action_name((mixt_action)i);
}

static const char *cause_at(int i)
{
    return mixt_cause_name((mixt_cause)i);
}

static const char *severity_at(int i)
{
    return mixt_severity_name((mixt_severity)i);
}

/** A text; null is "". @return false where it is something else */
static bool take_text(const json_t *object, const char *name, const char **text)
{
    const json_t *value = json_object_get(object, name);
    *text = json_is_string(value) ? json_string_value(value) : "";
    return json_is_string(value) || !value || json_is_null(value);
}

mixt_status mixt__decision_read(const json_t *row, mixt_decision *d, bool *found)
{
    const json_t *evidence = json_object_get(row, "evidence"), *step = json_object_get(row, "step");
    const json_t *back = json_object_get(evidence, "back");
    const char *kind = json_string_value(json_object_get(row, "kind"));
    mixt_decision said = {.step = json_integer_value(step), .back = -1};
    *d = (mixt_decision){0};
    const char *action = json_string_value(json_object_get(row, "action"));
    *found = kind && !strcmp(kind, "decision") && !(action && !strcmp(action, "phase")); // those follow from the policy
    if (!*found)
        return MIXT_OK;
    said.action = (mixt_action)find_word(json_object_get(row, "action"), action_at, MIXT_ACTION_COUNT);
    said.cause = (mixt_cause)find_word(json_object_get(row, "cause"), cause_at, MIXT_CAUSE_COUNT);
    said.severity = (mixt_severity)find_word(json_object_get(row, "severity"), severity_at, MIXT_SEVERITY_CRITICAL);
    if (json_is_integer(back))
        said.back = json_integer_value(back);
    bool good = json_is_integer(step) && said.step >= 0 && said.back <= said.step && said.action < MIXT_ACTION_COUNT;
    good = take_text(row, "layer", &said.layer) && good;
    good = take_text(row, "from", &said.from) && good;
    good = take_text(row, "to", &said.to) && good;
    good = take_text(evidence, "key", &said.key) && good;
    (void)take_text(evidence, "text", &said.text); // for people
    if (!good)
        return mixt__fail(MIXT_ERROR_FORMAT, "expected a decision with step, action, layer, from and to");
    said.policy = json_string_value(json_object_get(evidence, "policy"));
    return mixt__decision_copy(&said, d);
}

/* ---- policies ---- */

/** One more line of the policy's evidence, which is a map in block style. */
static mixt_status add_evidence(mixt_policy *policy, const mixt_decision *d)
{
    char *before = NULL, *after = NULL;
    json_t *line =
        json_pack("{s:I, s:s, s:s, s:s, s:s, s:s}", "step", (json_int_t)d->step, "layer", *d->layer ? d->layer : "*",
                  "from", d->from, "to", d->to, "cause", mixt_cause_name(d->cause), "why", d->text);
    char *json = line ? mixt__json_dumps(line, JSON_PRESERVE_ORDER) : NULL;
    json_decref(line);
    mixt_status status = json ? mixt_policy_evidence(policy, &before)
                              : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the evidence of a decision");
    if (status == MIXT_OK && asprintf(&after, "%s\"step %lld, %s\": %s\n", before, (long long)d->step,
                                      *d->layer ? d->layer : "all", json) < 0)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for the evidence of a decision");
    else if (status == MIXT_OK && mixt_policy_set_evidence(policy, after) != MIXT_OK) {
        status = MIXT_OK; // a policy that has grown as large as one may be: the row has it too
    }
    free(json);
    free(before);
    free(after);
    return status;
}

/** The format for one layer, in every phase; a rule of exactly that layer goes. */
static mixt_status set_layer(mixt_policy *policy, const char *layer, mixt_dtype format)
{
    for (int64_t i = 0; i < policy->phase_count; i++)
        if (policy->phases[i].changes)
            MIXT_TRY(set_layer(policy->phases[i].changes, layer, format));
    mixt_policy_rule rule;
    for (int64_t i = mixt_policy_count(policy) - 1; i >= 0; i--)
        if (mixt_policy_get(policy, i, &rule) == MIXT_OK && rule.layer && !rule.op && !strcmp(rule.layer, layer))
            MIXT_TRY(mixt_policy_remove(policy, i));
    return mixt_policy_add(policy, &(mixt_policy_rule){.layer = layer, .forward = format});
}

static mixt_status set_all(mixt_policy *policy, mixt_dtype format)
{
    for (int64_t i = 0; i < policy->phase_count; i++)
        if (policy->phases[i].changes)
            MIXT_TRY(set_all(policy->phases[i].changes, format));
    while (mixt_policy_count(policy))
        MIXT_TRY(mixt_policy_remove(policy, 0));
    return mixt_policy_set_default(policy, format, MIXT_DTYPE_NONE);
}

static mixt_status change(mixt_policy *policy, const mixt_decision *d)
{
    mixt_dtype format = mixt_dtype_parse(d->to);
    if (format == MIXT_DTYPE_NONE)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a decision about precision: '%s' is not a format", d->to);
    MIXT_TRY(*d->layer ? set_layer(policy, d->layer, format) : set_all(policy, format));
    return add_evidence(policy, d);
}

mixt_status mixt__decision_policy(const mixt_decision *d, const mixt_policy *now, mixt_policy **policy)
{
    if (d->policy)
        return mixt_policy_parse(d->policy, "the policy of a decision", policy);
    MIXT_TRY(mixt_policy_copy(now, policy));
    mixt_status status = change(*policy, d);
    if (status != MIXT_OK) {
        mixt_policy_free(*policy);
        *policy = NULL;
    }
    return status;
}
