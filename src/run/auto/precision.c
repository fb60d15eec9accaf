/* Choosing, and keeping what was chosen. */
#include "run/auto/precision.h"

#include "steer/decision.h"
#include "store/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mixt_status mixt__auto_precision(const mixt_config *config, const char **precision, char **why)
{
    mixt_dtype format;
    *precision = mixt__config_string(config, MIXT_KEY_PRECISION);
    if (why)
        *why = NULL;
    if (strcmp(*precision, "auto"))
        return MIXT_OK;
    MIXT_TRY(mixt_precision_pick(mixt__config_string(config, MIXT_KEY_DEVICE), &format, why));
    *precision = mixt_dtype_name(format);
    return MIXT_OK;
}

mixt_status mixt__auto_precision_take(mixt_run *run)
{
    const char *precision;
    char setting[96];
    mixt_decision *chosen = &run->steer.chosen;
    if (strcmp(mixt__config_string(run->config, MIXT_KEY_PRECISION), "auto"))
        return MIXT_OK;
    if (!chosen->to) { // else the record says it
        mixt_decision made = {.back = -1, .action = MIXT_ACTION_PRECISION, .cause = MIXT_CAUSE_COUNT, .from = "auto"};
        char *why;
        MIXT_TRY(mixt__auto_precision(run->config, &precision, &why));
        made.text = why;
        made.to = precision;
        mixt_status status = mixt__decision_copy(&made, chosen);
        mixt_free(why);
        MIXT_TRY(status);
    }
    snprintf(setting, sizeof setting, "precision=%s", chosen->to);
    MIXT_TRY(mixt_config_set(run->config, setting, "precision=auto"));
    return mixt__config_was_set(run->config, MIXT_KEY_AUTO_STEER) && !run->resume.run[0] // which has every key set
               ? MIXT_OK
               : mixt_config_set(run->config, "auto.steer=true", "precision=auto");
}

void mixt__auto_precision_tell(mixt_run *run)
{
    const mixt_decision *chosen = &run->steer.chosen;
    if (chosen->to && !run->resume.run[0])
        mixt__run_note(run, false, "%-8s %s: %s", "auto", chosen->to, chosen->text);
}

/** The policy with what it rests on. */
static mixt_status keep_policy(mixt_run *run, const mixt_decision *chosen)
{
    mixt_policy *policy;
    MIXT_TRY(mixt_policy_copy(mixt_trainer_policy(run->experiment.trainer), &policy));
    json_t *map = json_pack("{s:s, s:s}", "chosen", chosen->to, "why", chosen->text);
    char *evidence = map ? mixt__json_dumps(map, JSON_PRESERVE_ORDER) : NULL; // which is YAML too
    json_decref(map);
    mixt_status status = mixt_policy_set_made_by(policy, "precision=auto");
    if (status == MIXT_OK)
        status = mixt_policy_set_evidence(policy, evidence);
    free(evidence);
    if (status == MIXT_OK)
        status = mixt__run_dir_policy(&run->dir, run->config, policy);
    mixt_policy_free(policy);
    return status;
}

mixt_status mixt__auto_precision_keep(mixt_run *run)
{
    const mixt_decision *chosen = &run->steer.chosen;
    if (!chosen->to)
        return MIXT_OK;
    MIXT_TRY(keep_policy(run, chosen));
    return mixt__rows_add(&run->dir.events, mixt__decision_row(chosen, 0));
}
