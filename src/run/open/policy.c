/* A policy and the configuration of its run. What the configuration sets wins over the policy, and config.yaml sets
 * every key: so what the policy decided is written there as a setting, and a run that goes on under another policy gets
 * back what it had not set itself. */
#include "run/open/policy.h"

#include "base/c_locale.h"
#include "base/status.h"
#include "config/value.h"
#include "policy/policy.h"
#include "run/report/history.h"
#include "run/open/memory.h"
#include "run/open/phases.h"

#include <stdio.h>
#include <stdlib.h>

/** The key of the configuration that a setting of policies has there. */
static mixt__config_key key_of(int setting)
{
    static const mixt__config_key keys[MIXT_POLICY_SETTINGS] = {
#define MIXT_SETTING(id, field, name, type, fallback, range, choices, help) MIXT_KEY_##id,
#include "policy/settings.def"
#undef MIXT_SETTING
    };
    return keys[setting];
}

bool mixt__policy_decides(mixt__config_key key)
{
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++)
        if (key_of(i) == key)
            return true;
    return false;
}

mixt_policy_settings mixt__policy_settings_set(const mixt_config *config, char loss_scale[MIXT_POLICY_SETTING_TEXT])
{
    mixt_policy_settings s = {0};
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++) {
        mixt__config_key key = key_of(i);
        if (!mixt__config_was_set(config, key))
            continue;
        if (mixt__config_table[key].type == MIXT_CONFIG_FLOAT)
            mixt__policy_setting_set(&s, i, mixt__config_float(config, key));
        else if (mixt__config_table[key].type == MIXT_CONFIG_INT)
            mixt__policy_setting_set(&s, i, (double)mixt__config_int(config, key));
        else if (mixt__config_choice(config, key) >= 0)
            s.loss_scale = mixt__config_string(config, key);
        else {
            mixt__print_number(loss_scale, MIXT_POLICY_SETTING_TEXT, "%.9g",
                               (double)(float)mixt__config_float(config, key));
            s.loss_scale = loss_scale;
        }
    }
    return s;
}

mixt_status mixt__run_last_policy(const mixt_policy *all, mixt_policy **policy)
{
    int64_t count = mixt_policy_phases(all);
    return count ? mixt_policy_of_phase(all, count - 1, policy) : mixt_policy_copy(all, policy);
}

static mixt_status set(mixt_config *config, mixt__config_key key, const char *text)
{
    char assignment[128];
    snprintf(assignment, sizeof assignment, "%s=%s", mixt__config_table[key].name, text);
    return mixt_config_set(config, assignment, mixt__config_string(config, MIXT_KEY_PRECISION));
}

/** Sets what is not set to what the policy says. */
static mixt_status take(mixt_config *config, const mixt_policy *policy)
{
    char text[MIXT_POLICY_SETTING_TEXT];
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++) {
        mixt__config_key key = key_of(i);
        if (!mixt__config_was_set(config, key) && mixt__policy_setting_text(&policy->settings, i, text))
            MIXT_TRY(set(config, key, text));
    }
    return MIXT_OK;
}

mixt_status mixt__run_take_policy(mixt_config *config)
{
    const mixt_policy *policy;
    MIXT_TRY(mixt__config_policy(config, &policy));
    return take(config, policy);
}

static bool same_value(const mixt_config *a, const mixt_config *b, mixt__config_key key)
{
    const mixt__config_value *v = mixt__config_value_of(a, key), *w = mixt__config_value_of(b, key);
    return v->choice == w->choice && v->integer == w->integer && (float)v->number == (float)w->number;
}

/** What `before` had not set itself beyond `old`, its policy, is what `policy` says, else the default. */
static mixt_status change_from(mixt_config *config, const mixt_config *before, const mixt_policy *old,
                               const mixt_policy *policy)
{
    mixt_config *unset;
    char text[MIXT_POLICY_SETTING_TEXT];
    MIXT_TRY(mixt_config_new(&unset));
    mixt_status status = take(unset, old);
    for (int i = 0; status == MIXT_OK && i < MIXT_POLICY_SETTINGS; i++) {
        mixt__config_key key = key_of(i);
        if (!same_value(before, unset, key) || !same_value(before, config, key))
            continue; // the run has set it itself, or is to from now on
        bool says = mixt__policy_setting_text(&policy->settings, i, text);
        status = set(config, key, says ? text : mixt__config_table[key].fallback);
    }
    mixt_config_free(unset);
    return status;
}

/** The same, from the policy that `before` has. */
static mixt_status change(mixt_config *config, const mixt_config *before, const mixt_policy *policy)
{
    const mixt_policy *old;
    MIXT_TRY(mixt__config_policy(before, &old));
    return change_from(config, before, old, policy);
}

mixt_status mixt__policy_config(const mixt_config *config, const mixt_policy *policy, const mixt_policy *now,
                                mixt_config **copy)
{
    mixt_config *before;
    *copy = NULL;
    MIXT_TRY(mixt_config_copy(config, &before));
    mixt_status status = take(before, policy); // in a run it is there already
    if (status == MIXT_OK)
        status = mixt_config_copy(before, copy);
    if (status == MIXT_OK)
        status = change_from(*copy, before, policy, now);
    mixt_config_free(before);
    if (status != MIXT_OK) {
        mixt_config_free(*copy);
        *copy = NULL;
    }
    return status;
}

mixt_status mixt__run_change_policy(mixt_config *config, const mixt_config *before)
{
    const mixt_policy *policy;
    MIXT_TRY(mixt__config_policy(config, &policy));
    return change(config, before, policy);
}

/** False too where one of them cannot be opened. */
static bool policies_equal(const mixt_config *a, const mixt_config *b)
{
    const mixt_policy *x, *y;
    return mixt__config_policy(a, &x) == MIXT_OK && mixt__config_policy(b, &y) == MIXT_OK && mixt_policy_equal(x, y);
}

/** One key's value as `before` has it. */
static mixt_status copy_value(mixt_config *config, const mixt_config *before, mixt__config_key key)
{
    char *text = NULL, *assignment = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a setting");
    mixt__value_print(mixt__config_value_of(before, key), &mixt__config_table[key], stream);
    fclose(stream);
    bool made = asprintf(&assignment, "%s=%s", mixt__config_table[key].name, text) > 0;
    mixt_status status = made ? mixt_config_set(config, assignment, "checkpoint")
                              : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a setting");
    free(made ? assignment : NULL);
    free(text);
    return status;
}

mixt_status mixt__run_return_policy(mixt_config *config, const mixt_config *before)
{
    const mixt_policy *policy;
    if (policies_equal(config, before))
        return MIXT_OK;
    MIXT_TRY(mixt__config_policy(before, &policy));
    MIXT_TRY(mixt__config_set_policy(config, mixt__config_string(before, MIXT_KEY_PRECISION), "checkpoint", policy));
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++)
        MIXT_TRY(copy_value(config, before, key_of(i)));
    return MIXT_OK;
}

/* ---- while the run trains ---- */

/** Compiles for the policy under the configuration `next`; what was compiled stays when that fails. */
static mixt_status retype(mixt_run *run, mixt_config *next, const mixt_policy *policy)
{
    mixt__experiment *e = &run->experiment;
    const mixt_config *before = e->config;
    mixt_trainer_options options = e->trainer->options;
    mixt__phases phases = e->phases;
    mixt_policy *now;
    e->config = next;
    e->phases = (mixt__phases){0};
    mixt_status status = mixt__phases_take(e, policy, run->last.step, &now);
    if (status == MIXT_OK) {
        mixt__experiment_settings(e, &e->trainer->options);
        e->trainer->options.lr = (float)mixt__config_float(next, MIXT_KEY_TRAIN_LR);
        e->trainer->options.min_lr = (float)mixt__config_float(next, MIXT_KEY_TRAIN_MIN_LR);
        status = mixt_trainer_set_policy(e->trainer, now);
        mixt_policy_free(now);
    }
    if (status != MIXT_OK) {
        mixt__phases_close(&e->phases);
        e->config = before;
        e->phases = phases;
        e->trainer->options = options;
        return status;
    }
    mixt__phases_close(&phases);
    mixt__free(run->phase_memory); // of phases that are no longer
    run->phase_memory = NULL;
    return MIXT_OK;
}

static json_t *policy_text(const mixt_policy *policy)
{
    char *yaml = NULL;
    json_t *text = mixt_policy_print(policy, &yaml) == MIXT_OK ? json_string(yaml) : json_null();
    free(yaml);
    return text;
}

/** Writes down what the trainer does already. */
static void record(mixt_run *run, json_t *from)
{
    const mixt_policy *policy = mixt__run_policy(run);
    if (mixt__run_dir_policy(&run->dir, run->config, policy) != MIXT_OK)
        mixt__run_note(run, true, "the new policy cannot be written: %s", mixt_error_text());
    mixt__history_add(run, json_pack("{s:s, s:I, s:o, s:o}", "event", "policy", "step", (json_int_t)run->last.step,
                                     "from", from, "to", policy_text(policy)));
    mixt__run_note(run, false, "from step %lld on with another policy", (long long)run->last.step + 1);
}

/** The run has it from here on. */
static void take_config(mixt_run *run, mixt_config *next)
{
    mixt_config_free(run->config);
    run->config = next;
}

mixt_status mixt__run_adopt_policy(mixt_run *run, mixt_policy *policy)
{
    mixt_config *next = NULL;
    json_t *from = policy_text(mixt__run_policy(run));
    mixt_status status = mixt_config_copy(run->config, &next);
    if (status == MIXT_OK)
        status = change(next, run->config, policy);
    if (status == MIXT_OK)
        status = retype(run, next, policy);
    if (status == MIXT_OK) {
        take_config(run, next);
        mixt__free(run->precision); // this policy has no name but that of its file in the directory
        run->precision = NULL;
        record(run, from);
        mixt__run_change_validation(run, 0);
    } else {
        mixt_config_free(next);
        json_decref(from);
    }
    mixt_policy_free(policy);
    return status;
}

bool mixt__run_set_policy(mixt_run *run)
{
    mixt_policy *policy = run->policy;
    run->policy = NULL;
    run->asked &= ~(unsigned)MIXT_ASKED_POLICY;
    mixt_status status = mixt__run_adopt_policy(run, policy);
    if (status != MIXT_OK)
        mixt__run_note(run, true, "step %lld: continues with the policy that it had: %s", (long long)run->last.step,
                       mixt_error_text());
    return status == MIXT_OK;
}

mixt_status mixt__run_adopt_config(mixt_run *run, mixt_config *next)
{
    mixt_policy *policy;
    MIXT_TRY(mixt_policy_copy(mixt__run_policy(run), &policy));
    mixt_status status = retype(run, next, policy);
    mixt_policy_free(policy);
    MIXT_TRY(status);
    take_config(run, next);
    if (mixt__run_dir_config(&run->dir, next) != MIXT_OK)
        mixt__run_note(run, true, "the new setting cannot be written: %s", mixt_error_text());
    mixt__run_change_validation(run, 0);
    return MIXT_OK;
}

mixt_status mixt__run_return_decided(mixt_config *config, const mixt_config *before)
{
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++)
        MIXT_TRY(copy_value(config, before, key_of(i)));
    MIXT_TRY(copy_value(config, before, MIXT_KEY_TRAIN_LR));
    MIXT_TRY(copy_value(config, before, MIXT_KEY_TRAIN_ACTIVATIONS));
    MIXT_TRY(copy_value(config, before, MIXT_KEY_TRAIN_SPLIT));
    MIXT_TRY(copy_value(config, before, MIXT_KEY_TRAIN_RECOMPUTE));
    return copy_value(config, before, MIXT_KEY_TRAIN_MIN_LR);
}
