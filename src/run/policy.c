/* What the configuration sets wins over the policy, and config.yaml sets every key: so what the policy decided is
 * written there as a setting, and a run that goes on under another policy gets back what it had not set itself. */
#include "run/policy.h"

#include "base/status.h"
#include "config/value.h"
#include "policy/policy.h"

#include <stdio.h>

/** The key of the configuration that a setting of policies has there. */
static mixt__config_key key_of(const char *setting)
{
    char name[64];
    snprintf(name, sizeof name, "train.%s", setting);
    return mixt__config_find(name);
}

static mixt_status set(mixt_config *config, mixt__config_key key, const char *text)
{
    char assignment[128];
    snprintf(assignment, sizeof assignment, "%s=%s", mixt__config_table[key].name, text);
    return mixt_config_set(config, assignment, mixt__config_string(config, MIXT_KEY_PRECISION));
}

mixt_status mixt__run_take_policy(mixt_config *config)
{
    mixt_policy *policy;
    char text[MIXT_POLICY_SETTING_TEXT];
    mixt_status status = mixt_policy_open(mixt__config_string(config, MIXT_KEY_PRECISION), &policy);
    for (int i = 0; status == MIXT_OK && i < MIXT_POLICY_SETTINGS_ALL; i++) {
        mixt__config_key key = key_of(mixt__policy_setting_name(i));
        if (!mixt__config_was_set(config, key) && mixt__policy_setting_text(policy, i, text))
            status = set(config, key, text);
    }
    mixt_policy_free(policy);
    return status;
}

static bool same_value(const mixt_config *a, const mixt_config *b, mixt__config_key key)
{
    const mixt__config_value *v = mixt__config_value_of(a, key), *w = mixt__config_value_of(b, key);
    return v->choice == w->choice && v->integer == w->integer && (float)v->number == (float)w->number;
}

/** What a configuration that sets nothing has under the policy of `before`. */
static mixt_status open_unset(const mixt_config *before, mixt_config **unset)
{
    char precision[MIXT_CONFIG_TEXT_MAX + 16];
    MIXT_TRY(mixt_config_new(unset));
    snprintf(precision, sizeof precision, "precision=%s", mixt__config_string(before, MIXT_KEY_PRECISION));
    mixt_status status = mixt_config_set(*unset, precision, "run");
    if (status == MIXT_OK)
        status = mixt__run_take_policy(*unset);
    if (status != MIXT_OK)
        mixt_config_free(*unset);
    return status;
}

mixt_status mixt__run_change_policy(mixt_config *config, const mixt_config *before)
{
    mixt_policy *policy;
    mixt_config *unset;
    char text[MIXT_POLICY_SETTING_TEXT];
    MIXT_TRY(open_unset(before, &unset));
    mixt_status status = mixt_policy_open(mixt__config_string(config, MIXT_KEY_PRECISION), &policy);
    for (int i = 0; status == MIXT_OK && i < MIXT_POLICY_SETTINGS_ALL; i++) {
        mixt__config_key key = key_of(mixt__policy_setting_name(i));
        if (!same_value(before, unset, key))
            continue; // the run has set it itself
        bool says = mixt__policy_setting_text(policy, i, text);
        status = set(config, key, says ? text : mixt__config_table[key].fallback);
    }
    mixt_policy_free(policy);
    mixt_config_free(unset);
    return status;
}
