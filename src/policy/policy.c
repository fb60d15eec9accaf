/* Policies as values: made, changed, copied, compared. */
#include "policy/policy.h"

#include "base/utf8.h"
#include "num/format.h"
#include "policy/inside.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERED_SIZE = 48 };

static mixt_status out_of_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a policy");
}

/* ---- what the passes read ---- */

mixt__policy mixt__policy_of(mixt_dtype dtype)
{
    return (mixt__policy){
        .forward = dtype, .backward = mixt__format_backward(dtype), .origin = "default of the policy"};
}

/** Whether any format that a policy names has a property. */
static bool any_format(const mixt__policy *policy, bool (*has)(mixt_dtype dtype))
{
    bool any = has(policy->forward) || has(policy->backward);
    for (int64_t i = 0; i < policy->rule_count; i++)
        any = any || has(policy->rules[i].forward) || has(policy->rules[i].backward);
    return any;
}

static bool needs_scaling(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->loss_scaling;
}

static bool is_lower(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->roundoff > mixt__format_of(MIXT_DTYPE_FP32)->roundoff;
}

bool mixt__policy_needs_scaling(const mixt__policy *policy)
{
    return any_format(policy, needs_scaling);
}

bool mixt__policy_names(const mixt__policy *policy, mixt_dtype dtype)
{
    bool named = policy->forward == dtype || policy->backward == dtype;
    for (int64_t i = 0; i < policy->rule_count; i++)
        named = named || policy->rules[i].forward == dtype || policy->rules[i].backward == dtype;
    return named;
}

bool mixt__policy_lowers(const mixt__policy *policy)
{
    return any_format(policy, is_lower);
}

mixt_dtype mixt__policy_kept(const mixt__policy *policy, const mixt__policy_rule *rule)
{
    mixt_dtype keep = rule && rule->keep != MIXT_DTYPE_NONE ? rule->keep : policy->keep;
    return keep == MIXT_DTYPE_NONE ? MIXT_DTYPE_FP32 : keep;
}

static void print_formats(FILE *stream, mixt_dtype forward, mixt_dtype backward, mixt_dtype keep)
{
    fputs(mixt_dtype_name(forward), stream);
    if (backward != forward)
        fprintf(stream, " (backward %s)", mixt_dtype_name(backward));
    if (keep != MIXT_DTYPE_FP32)
        fprintf(stream, " (keep %s)", mixt_dtype_name(keep));
}

char *mixt__policy_line(const mixt__policy *policy)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    print_formats(stream, policy->forward, policy->backward, mixt__policy_kept(policy, NULL));
    for (int64_t i = 0; i < policy->rule_count; i++) {
        const mixt__policy_rule *r = &policy->rules[i];
        fprintf(stream, "; layer %s, op %s: ", r->layer ? r->layer : "*", r->op ? r->op : "*");
        print_formats(stream, r->forward, r->backward, mixt__policy_kept(policy, r));
    }
    return fclose(stream) ? NULL : text;
}

/* ---- checks ---- */

static bool has_format(mixt_dtype dtype)
{
    return mixt__format_may(dtype, MIXT_MAY_MULTIPLY);
}

bool mixt__policy_word(const char *name, mixt_dtype *forward, mixt_dtype *backward)
{
    bool fp8 = name && !strcmp(name, "fp8");
    mixt_dtype dtype = fp8 ? MIXT_DTYPE_FP8_E4M3 : mixt_dtype_parse(name);
    *forward = *backward = has_format(dtype) ? dtype : MIXT_DTYPE_NONE;
    if (fp8)
        *backward = mixt__format_backward(dtype);
    return *forward != MIXT_DTYPE_NONE;
}

static bool can_keep(mixt_dtype dtype)
{
    return mixt__format_may(dtype, MIXT_MAY_KEEP);
}

mixt_dtype mixt__policy_keep_dtype(const char *name)
{
    mixt_dtype dtype = mixt_dtype_parse(name);
    return can_keep(dtype) ? dtype : MIXT_DTYPE_NONE;
}

static mixt_status check_keep(mixt_dtype keep)
{
    char names[MIXT_FORMAT_NAMES];
    if (keep == MIXT_DTYPE_NONE || can_keep(keep))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT, "activations are kept in %s, not %s",
                      mixt__format_names(MIXT_MAY_KEEP, "or", names, sizeof names), mixt_dtype_name(keep));
}

static mixt_status check_formats(mixt_dtype forward, mixt_dtype *backward)
{
    char names[MIXT_FORMAT_NAMES];
    *backward = *backward == MIXT_DTYPE_NONE ? forward : *backward;
    if (has_format(forward) && has_format(*backward))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT, "a policy's format is %s, not %s",
                      mixt__format_names(MIXT_MAY_MULTIPLY, "or", names, sizeof names),
                      mixt_dtype_name(has_format(forward) ? *backward : forward));
}

mixt_status mixt__policy_check_text(const char *what, const char *text)
{
    mixt__utf8 state = {0};
    char whole[MIXT_UTF8_ROOM];
    size_t done = 0;
    bool good = true;
    for (const char *at = text; good && *at; at++) {
        size_t length = mixt__utf8_put(&state, (unsigned char)*at, whole);
        good = !strncmp(text + done, whole, length); // what is replaced is not what was there
        done += length;
    }
    good = good && !mixt__utf8_end(&state, whole);
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_ARGUMENT, "%s is not valid UTF-8", what);
}

mixt_status mixt__policy_text(mixt_policy *policy, const char *text, const char **kept)
{
    *kept = text ? mixt__arena_strdup(&policy->arena, text) : NULL;
    return *kept || !text ? MIXT_OK : out_of_memory();
}

/* ---- rules ---- */

/** Origins that follow the place of their rule. */
static void number_rules(mixt_policy *policy, int64_t from)
{
    for (int64_t i = from; i < policy->formats.rule_count; i++)
        if (policy->rules[i].numbered)
            snprintf(policy->rules[i].numbered, NUMBERED_SIZE, "rule %lld of the policy", (long long)(i + 1));
}

mixt_status mixt__policy_place(mixt_policy *policy, int64_t index, const mixt__policy_rule *rule)
{
    mixt__policy *formats = &policy->formats;
    mixt__policy_rule placed = *rule;
    if (!placed.origin)
        placed.origin = placed.numbered = mixt__arena_alloc(&policy->arena, NUMBERED_SIZE);
    if (!placed.origin ||
        !mixt__grow((void **)&policy->rules, &policy->capacity, formats->rule_count, sizeof *policy->rules))
        return out_of_memory();
    memmove(policy->rules + index + 1, policy->rules + index,
            (size_t)(formats->rule_count - index) * sizeof *policy->rules);
    policy->rules[index] = placed;
    formats->rules = policy->rules;
    formats->rule_count++;
    number_rules(policy, index);
    return MIXT_OK;
}

static mixt_status check_pattern(const char *what, const char *pattern)
{
    if (pattern && !*pattern)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a rule's pattern of the %s is empty: NULL matches all", what);
    return pattern ? mixt__policy_check_text(what, pattern) : MIXT_OK;
}

mixt_status mixt_policy_insert(mixt_policy *policy, int64_t index, const mixt_policy_rule *rule)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(mixt__need(rule));
    mixt__policy_rule placed = {.forward = rule->forward, .backward = rule->backward, .keep = rule->keep};
    int64_t count = policy->formats.rule_count;
    if (index < 0 || index > count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "no place %lld among %lld rules", (long long)index, (long long)count);
    if (count == MIXT_POLICY_RULES_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "more than %d rules", MIXT_POLICY_RULES_MAX);
    MIXT_TRY(check_formats(placed.forward, &placed.backward));
    MIXT_TRY(check_keep(placed.keep));
    MIXT_TRY(check_pattern("layer", rule->layer));
    MIXT_TRY(check_pattern("op", rule->op));
    MIXT_TRY(mixt__policy_text(policy, rule->layer, &placed.layer));
    MIXT_TRY(mixt__policy_text(policy, rule->op, &placed.op));
    return mixt__policy_place(policy, index, &placed);
}

mixt_status mixt_policy_add(mixt_policy *policy, const mixt_policy_rule *rule)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    return mixt_policy_insert(policy, policy->formats.rule_count, rule);
}

static mixt_status check_index(const mixt_policy *policy, int64_t index)
{
    int64_t count = policy->formats.rule_count;
    return index >= 0 && index < count
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "no rule %lld among %lld", (long long)index, (long long)count);
}

mixt_status mixt_policy_remove(mixt_policy *policy, int64_t index)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(check_index(policy, index));
    policy->formats.rule_count--;
    memmove(policy->rules + index, policy->rules + index + 1,
            (size_t)(policy->formats.rule_count - index) * sizeof *policy->rules);
    number_rules(policy, index);
    return MIXT_OK;
}

int64_t mixt_policy_count(const mixt_policy *policy)
{
    return mixt__need_open(policy, "policy") == MIXT_OK ? policy->formats.rule_count : 0;
}

mixt_status mixt_policy_get(const mixt_policy *policy, int64_t index, mixt_policy_rule *rule)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(mixt__need(rule));
    MIXT_TRY(check_index(policy, index));
    const mixt__policy_rule *r = &policy->rules[index];
    *rule = (mixt_policy_rule){.layer = r->layer,
                               .op = r->op,
                               .forward = r->forward,
                               .backward = r->backward,
                               .keep = r->keep,
                               .origin = r->origin};
    return MIXT_OK;
}

/* ---- what goes with them ---- */

void mixt_policy_default(const mixt_policy *policy, mixt_dtype *forward, mixt_dtype *backward)
{
    bool open = mixt__need_open(policy, "policy") == MIXT_OK;
    if (forward)
        *forward = open ? policy->formats.forward : MIXT_DTYPE_NONE;
    if (backward)
        *backward = open ? policy->formats.backward : MIXT_DTYPE_NONE;
}

mixt_status mixt_policy_set_default(mixt_policy *policy, mixt_dtype forward, mixt_dtype backward)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(check_formats(forward, &backward));
    policy->formats.forward = forward;
    policy->formats.backward = backward;
    policy->formats.origin = "default of the policy";
    return MIXT_OK;
}

mixt_dtype mixt_policy_keep(const mixt_policy *policy)
{
    return mixt__need_open(policy, "policy") == MIXT_OK ? policy->formats.keep : MIXT_DTYPE_NONE;
}

mixt_status mixt_policy_set_keep(mixt_policy *policy, mixt_dtype keep)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(check_keep(keep));
    policy->formats.keep = keep;
    policy->formats.keep_origin = keep == MIXT_DTYPE_NONE ? NULL : "keep of the policy";
    return MIXT_OK;
}

void mixt_policy_get_settings(const mixt_policy *policy, mixt_policy_settings *settings)
{
    if (settings)
        *settings = mixt__need_open(policy, "policy") == MIXT_OK ? policy->settings : (mixt_policy_settings){0};
}

mixt_status mixt_policy_set_settings(mixt_policy *policy, const mixt_policy_settings *settings)
{
    mixt__c_locale locale;
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(mixt__need(settings));
    MIXT_TRY(mixt__policy_settings_check(settings));
    MIXT_TRY(mixt__c_locale_enter(&locale));
    mixt_status status = MIXT_OK;
    mixt_policy_settings next = *settings;
    if (settings->loss_scale)
        status = mixt__policy_setting_parse(&next, 0, settings->loss_scale, &policy->arena);
    mixt__c_locale_leave(&locale);
    if (status != MIXT_OK)
        return status == MIXT_ERROR_CONFIG ? MIXT_ERROR_ARGUMENT : status;
    policy->settings = next;
    return MIXT_OK;
}

const char *mixt_policy_made_by(const mixt_policy *policy)
{
    return mixt__need_open(policy, "policy") == MIXT_OK && policy->made_by ? policy->made_by : "";
}

mixt_status mixt_policy_set_made_by(mixt_policy *policy, const char *made_by)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    made_by = made_by && *made_by ? made_by : NULL;
    if (made_by)
        MIXT_TRY(mixt__policy_check_text("made_by", made_by));
    return mixt__policy_text(policy, made_by, &policy->made_by);
}

mixt_status mixt_policy_set_evidence(mixt_policy *policy, const char *text)
{
    mixt__yaml yaml;
    const mixt__evidence *map = NULL;
    MIXT_TRY(mixt__need_open(policy, "policy"));
    if (text && *text) {
        MIXT_TRY(mixt__yaml_open(&yaml, text, strlen(text), "evidence", "expected a map"));
        mixt_status status = mixt__evidence_take(&policy->arena, &yaml, mixt__yaml_node(&yaml, 1), &map);
        mixt__yaml_close(&yaml);
        MIXT_TRY(status);
    }
    policy->evidence = map;
    return MIXT_OK;
}

/* ---- whole policies ---- */

mixt_status mixt__policy_empty(mixt_policy **policy)
{
    *policy = mixt__alloc(sizeof **policy);
    if (!*policy)
        return out_of_memory();
    mixt__handle_add(&(*policy)->handle, *policy, "policy", NULL);
    return MIXT_OK;
}

mixt_status mixt_policy_new(mixt_dtype forward, mixt_dtype backward, mixt_policy **policy)
{
    MIXT_TRY(mixt__need(policy));
    *policy = NULL;
    MIXT_TRY(check_formats(forward, &backward));
    MIXT_TRY(mixt__policy_empty(policy));
    return mixt_policy_set_default(*policy, forward, backward);
}

mixt_status mixt_policy_named(const char *name, mixt_policy **policy)
{
    MIXT_TRY(mixt__need(policy));
    *policy = NULL;
    MIXT_TRY(mixt__need(name));
    mixt_dtype forward, backward;
    char names[MIXT_FORMAT_NAMES];
    if (!mixt__policy_word(name, &forward, &backward))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "unknown policy '%.80s': expected fp8 or one of %s", name,
                          mixt__format_names(MIXT_MAY_MULTIPLY, "and", names, sizeof names));
    return mixt_policy_new(forward, backward, policy);
}

void mixt_policy_free(mixt_policy *policy)
{
    if (!policy || mixt__need_open(policy, "policy") != MIXT_OK)
        return;
    mixt__handle_remove(policy);
    mixt__policy_free_phases(policy);
    mixt__free(policy->rules);
    mixt__arena_free(&policy->arena);
    mixt__free(policy);
}

static mixt_status copy_rules(const mixt_policy *policy, mixt_policy *copy)
{
    for (int64_t i = 0; i < policy->formats.rule_count; i++) {
        mixt__policy_rule rule = policy->rules[i];
        MIXT_TRY(mixt__policy_text(copy, rule.layer, &rule.layer));
        MIXT_TRY(mixt__policy_text(copy, rule.op, &rule.op));
        MIXT_TRY(mixt__policy_text(copy, rule.numbered ? NULL : rule.origin, &rule.origin));
        rule.numbered = NULL;
        MIXT_TRY(mixt__policy_place(copy, copy->formats.rule_count, &rule));
    }
    return MIXT_OK;
}

mixt_status mixt__policy_copy_into(const mixt_policy *policy, mixt_policy *copy)
{
    MIXT_TRY(copy_rules(policy, copy));
    MIXT_TRY(mixt__policy_text(copy, policy->formats.origin, &copy->formats.origin));
    copy->formats.keep = policy->formats.keep;
    MIXT_TRY(mixt__policy_text(copy, policy->formats.keep_origin, &copy->formats.keep_origin));
    MIXT_TRY(mixt__policy_text(copy, policy->made_by, &copy->made_by));
    copy->settings = policy->settings;
    MIXT_TRY(mixt__policy_text(copy, policy->settings.loss_scale, &copy->settings.loss_scale));
    copy->evidence = policy->evidence ? mixt__evidence_copy(&copy->arena, policy->evidence) : NULL;
    return copy->evidence || !policy->evidence ? MIXT_OK : out_of_memory();
}

mixt_status mixt_policy_copy(const mixt_policy *policy, mixt_policy **copy)
{
    MIXT_TRY(mixt__need(copy));
    *copy = NULL;
    MIXT_TRY(mixt__need_open(policy, "policy"));
    mixt_policy *made;
    MIXT_TRY(mixt__policy_empty(&made));
    made->formats.forward = policy->formats.forward; // of changes in a phase perhaps none
    made->formats.backward = policy->formats.backward;
    mixt_status status = mixt__policy_copy_into(policy, made);
    if (status == MIXT_OK)
        status = mixt__policy_copy_phases(policy, made);
    if (status == MIXT_OK)
        *copy = made;
    else
        mixt_policy_free(made);
    return status;
}

mixt_status mixt__policy_choose(const char *precision, const mixt_policy *given, mixt_policy **policy)
{
    *policy = NULL;
    if (precision && given)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "both precision ('%s') and policy are set: give one of them", precision);
    MIXT_TRY(given ? mixt_policy_copy(given, policy) : mixt_policy_open(precision ? precision : "fp32", policy));
    mixt_status status = mixt__policy_need_one(*policy);
    if (status != MIXT_OK) {
        mixt_policy_free(*policy);
        *policy = NULL;
    }
    return status;
}

/** Patterns that match the same: NULL and "*" do. */
static bool same_pattern(const char *a, const char *b)
{
    return !strcmp(a ? a : "*", b ? b : "*");
}

/** A loss scale that is not said is auto. */
static bool same_settings(const mixt_policy_settings *a, const mixt_policy_settings *b)
{
    bool same = !strcmp(a->loss_scale ? a->loss_scale : "auto", b->loss_scale ? b->loss_scale : "auto");
    bool whole;
    for (int i = 1; same && i < MIXT_POLICY_SETTINGS; i++)
        same = mixt__policy_setting_get(a, i, &whole) == mixt__policy_setting_get(b, i, &whole);
    return same;
}

bool mixt_policy_equal(const mixt_policy *a, const mixt_policy *b)
{
    if (!a || !b)
        return a == b;
    if (mixt__need_open(a, "policy") != MIXT_OK || mixt__need_open(b, "policy") != MIXT_OK)
        return false;
    if (a->phase_count || b->phase_count) // each says all that counts in it
        return mixt__policy_phases_equal(a, b);
    const mixt__policy *f = &a->formats, *g = &b->formats;
    bool same = f->forward == g->forward && f->backward == g->backward && f->rule_count == g->rule_count &&
                mixt__policy_kept(f, NULL) == mixt__policy_kept(g, NULL);
    same = same && same_settings(&a->settings, &b->settings);
    for (int64_t i = 0; same && i < f->rule_count; i++) {
        const mixt__policy_rule *r = &f->rules[i], *s = &g->rules[i];
        same = r->forward == s->forward && r->backward == s->backward && same_pattern(r->layer, s->layer) &&
               same_pattern(r->op, s->op) && mixt__policy_kept(f, r) == mixt__policy_kept(g, s);
    }
    return same;
}
