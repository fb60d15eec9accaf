/* Phases of a policy: parts of a run, one after the other, each with what it changes of the policy.
 *
 * A phase keeps its changes as they were given, so that it is printed as it was read; what counts in it is made by
 * mixt_policy_of_phase. Ends grow from phase to phase; only the last one has none.
 */
#include "policy/policy.h"

#include "base/words.h"
#include "policy/inside.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static mixt_status out_of_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the phases of a policy");
}

/* ---- ends ---- */

const char *mixt__phase_until_text(double until, mixt_phase_unit unit, char text[MIXT_UNTIL_TEXT])
{
    char number[32];
    for (int digits = unit == MIXT_PHASE_UPDATES ? DBL_DIG + 1 : DBL_DIG; digits <= DBL_DIG + 2; digits++) {
        mixt__print_number(number, sizeof number, "%.*g", digits, until);
        if (mixt__read_double(number, NULL) == until)
            break;
    }
    snprintf(text, MIXT_UNTIL_TEXT, "%s%s", number,
             unit == MIXT_PHASE_PERCENT  ? "%"
             : unit == MIXT_PHASE_EPOCHS ? until == 1 ? " epoch" : " epochs"
                                         : "");
    return text;
}

static bool good_until(double until, mixt_phase_unit unit)
{
    switch (unit) {
    case MIXT_PHASE_UPDATES:
        return until >= 1 && until < 0x1p53 && floor(until) == until;
    case MIXT_PHASE_EPOCHS:
        return until >= 1e-9 && until < 0x1p53;
    case MIXT_PHASE_PERCENT:
        return until >= 1e-9 && until < 100;
    }
    return false;
}

mixt_status mixt__phase_until_parse(const char *text, double *until, mixt_phase_unit *unit)
{
    char *end;
    bool good = *text && strspn(text, ".0123456789") > 0;
    *until = good ? mixt__read_double(text, &end) : 0;
    if (good) {
        end += strspn(end, " ");
        *unit = !strcmp(end, "%") ? MIXT_PHASE_PERCENT : *end ? MIXT_PHASE_EPOCHS : MIXT_PHASE_UPDATES;
        good = !*end || !strcmp(end, "%") || !strcmp(end, "epoch") || !strcmp(end, "epochs");
    }
    if (good && good_until(*until, *unit))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG,
                      "until: '%.80s' is not a number of updates of at least 1, '2 epochs' or a share of the run such "
                      "as 10%%",
                      text);
}

/* ---- adding ---- */

static mixt_status check_name(const mixt_policy *policy, const char *name)
{
    if (!name || !*name || strlen(name) > MIXT_PHASE_NAME_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "a phase's name has 1 to %d bytes", MIXT_PHASE_NAME_MAX);
    MIXT_TRY(mixt__policy_check_text("a phase's name", name));
    for (int64_t i = 0; i < policy->phase_count; i++)
        if (!strcmp(policy->phases[i].name, name))
            return mixt__fail(MIXT_ERROR_CONFIG, "two phases are called '%s'", name);
    return MIXT_OK;
}

/** The end against that of the phase before. */
static mixt_status check_until(const mixt_policy *policy, const mixt__policy_phase *phase)
{
    char end[MIXT_UNTIL_TEXT], before[MIXT_UNTIL_TEXT];
    const mixt__policy_phase *last = policy->phase_count ? &policy->phases[policy->phase_count - 1] : NULL;
    if (last && last->until == 0)
        return mixt__fail(MIXT_ERROR_CONFIG, "phase '%s' never starts: '%s' before it has no until", phase->name,
                          last->name);
    if (phase->until != 0 && !good_until(phase->until, phase->unit))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "phase '%s': until is a whole number of updates, a number of epochs, or a share of the run "
                          "below 100%%",
                          phase->name);
    if (last && phase->until != 0 && last->unit == phase->unit && phase->until <= last->until)
        return mixt__fail(MIXT_ERROR_CONFIG, "phase '%s' ends at %s, not after '%s', which ends at %s", phase->name,
                          mixt__phase_until_text(phase->until, phase->unit, end), last->name,
                          mixt__phase_until_text(last->until, last->unit, before));
    return MIXT_OK;
}

mixt_status mixt__policy_take_phase(mixt_policy *policy, const mixt__policy_phase *phase)
{
    mixt_status status = MIXT_OK;
    mixt__policy_phase taken = *phase;
    if (policy->phase_count == MIXT_POLICY_PHASES_MAX)
        status = mixt__fail(MIXT_ERROR_CONFIG, "more than %d phases", MIXT_POLICY_PHASES_MAX);
    if (status == MIXT_OK)
        status = check_name(policy, phase->name);
    if (status == MIXT_OK)
        status = check_until(policy, phase);
    if (status == MIXT_OK)
        status = mixt__policy_text(policy, phase->name, &taken.name);
    if (status == MIXT_OK)
        status = mixt__policy_text(policy, phase->origin, &taken.origin);
    if (status == MIXT_OK &&
        !mixt__grow((void **)&policy->phases, &policy->phase_capacity, policy->phase_count, sizeof *policy->phases))
        status = out_of_memory();
    if (status == MIXT_OK)
        policy->phases[policy->phase_count++] = taken;
    else
        mixt_policy_free(phase->changes);
    return status;
}

mixt_status mixt_policy_add_phase(mixt_policy *policy, const mixt_policy_phase *phase, const mixt_policy *changes)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(mixt__need(phase));
    mixt__policy_phase added = {.name = phase->name, .until = phase->until, .unit = phase->unit};
    if (changes) {
        MIXT_TRY(mixt__need_open(changes, "policy"));
        MIXT_TRY(mixt__policy_need_one(changes));
        MIXT_TRY(mixt_policy_copy(changes, &added.changes));
    } else
        MIXT_TRY(mixt__policy_empty(&added.changes));
    mixt_status status = mixt__policy_take_phase(policy, &added);
    return status == MIXT_ERROR_CONFIG ? MIXT_ERROR_ARGUMENT : status;
}

mixt_status mixt__policy_check_last(const mixt_policy *policy)
{
    const mixt__policy_phase *last = policy->phase_count ? &policy->phases[policy->phase_count - 1] : NULL;
    if (!last || last->until == 0)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG,
                      "the last phase, '%s', has an until: add a last phase without one, for the rest of the run",
                      last->name);
}

/* ---- reading ---- */

int64_t mixt_policy_phases(const mixt_policy *policy)
{
    return mixt__need_open(policy, "policy") == MIXT_OK ? policy->phase_count : 0;
}

static mixt_status check_index(const mixt_policy *policy, int64_t index)
{
    return index >= 0 && index < policy->phase_count ? MIXT_OK
                                                     : mixt__fail(MIXT_ERROR_ARGUMENT, "no phase %lld among %lld",
                                                                  (long long)index, (long long)policy->phase_count);
}

mixt_status mixt_policy_get_phase(const mixt_policy *policy, int64_t index, mixt_policy_phase *phase)
{
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(mixt__need(phase));
    MIXT_TRY(check_index(policy, index));
    const mixt__policy_phase *p = &policy->phases[index];
    *phase = (mixt_policy_phase){.name = p->name, .until = p->until, .unit = p->unit};
    phase->origin = p->origin ? p->origin : "phase of the policy";
    return MIXT_OK;
}

/** Puts changes over a policy that has none yet. */
static mixt_status apply(const mixt_policy *changes, mixt_policy *policy)
{
    mixt__policy before = policy->formats;
    mixt_policy_settings settings = policy->settings;
    const char *made_by = policy->made_by;
    const struct mixt__evidence *evidence = policy->evidence;
    MIXT_TRY(mixt__policy_copy_into(changes, policy)); // behind the rules; the rest is put right here
    if (changes->formats.forward == MIXT_DTYPE_NONE)
        policy->formats.origin = before.origin;
    else {
        policy->formats.forward = changes->formats.forward;
        policy->formats.backward = changes->formats.backward;
    }
    if (changes->formats.keep == MIXT_DTYPE_NONE) {
        policy->formats.keep = before.keep;
        policy->formats.keep_origin = before.keep_origin;
    }
    mixt_policy_settings own = policy->settings;
    policy->settings = settings;
    mixt__policy_settings_take(&policy->settings, &own);
    policy->made_by = made_by;
    policy->evidence = evidence;
    return MIXT_OK;
}

mixt_status mixt_policy_of_phase(const mixt_policy *policy, int64_t index, mixt_policy **of_phase)
{
    mixt_policy *made;
    MIXT_TRY(mixt__need(of_phase));
    *of_phase = NULL;
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(check_index(policy, index));
    MIXT_TRY(mixt_policy_new(policy->formats.forward, policy->formats.backward, &made));
    mixt_status status = mixt__policy_copy_into(policy, made);
    if (status == MIXT_OK)
        status = apply(policy->phases[index].changes, made);
    if (status == MIXT_OK)
        *of_phase = made;
    else
        mixt_policy_free(made);
    return status;
}

mixt_status mixt__policy_need_one(const mixt_policy *policy)
{
    if (!policy->phase_count)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT,
                      "the policy has phases ('%s' and %lld more), which are for runs: take the policy of one phase "
                      "(mixt_policy_of_phase)",
                      policy->phases[0].name, (long long)policy->phase_count - 1);
}

int64_t mixt__policy_phase_at(const mixt_policy *policy, int64_t update)
{
    int64_t i = 0;
    while (i + 1 < policy->phase_count && (double)update > policy->phases[i].until)
        i++;
    return i;
}

/* ---- ends in updates ---- */

/** A part of a run ends with a whole update; rounding of the product must not make one more of it. */
static double whole(double updates)
{
    return fmax(1, ceil(updates * (1 - 4 * DBL_EPSILON)));
}

static mixt_status resolve(mixt_policy *policy, int64_t index, int64_t total, int64_t epoch)
{
    char end[MIXT_UNTIL_TEXT];
    mixt__policy_phase *p = &policy->phases[index];
    const char *where = p->origin ? p->origin : "phases";
    mixt__phase_until_text(p->until, p->unit, end);
    if (p->until == 0)
        return MIXT_OK;
    if (p->unit == MIXT_PHASE_PERCENT && !total)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: phase '%s' ends at %s of a run that has no end: set train.steps or "
                          "train.epochs",
                          where, p->name, end);
    if (p->unit == MIXT_PHASE_EPOCHS && !epoch)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: phase '%s' ends at %s, but how many updates an epoch has is not known", where, p->name,
                          end);
    if (p->unit == MIXT_PHASE_PERCENT)
        p->until = whole((double)total * (p->until / 100));
    else if (p->unit == MIXT_PHASE_EPOCHS)
        p->until = whole((double)epoch * p->until);
    p->unit = MIXT_PHASE_UPDATES;
    if (index && p->until <= p[-1].until)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: phase '%s' (until %s) ends at update %.0f of %lld, not after '%s', "
                          "which ends at update %.0f",
                          where, p->name, end, p->until, (long long)total, p[-1].name, p[-1].until);
    return MIXT_OK;
}

mixt_status mixt_policy_resolve_phases(const mixt_policy *policy, int64_t total, int64_t epoch, mixt_policy **resolved)
{
    mixt_policy *made;
    mixt__c_locale locale;
    MIXT_TRY(mixt__need(resolved));
    *resolved = NULL;
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(mixt__policy_check_last(policy));
    MIXT_TRY(mixt_policy_copy(policy, &made));
    mixt_status status = mixt__c_locale_enter(&locale);
    if (status == MIXT_OK) {
        for (int64_t i = 0; status == MIXT_OK && i < made->phase_count; i++)
            status = resolve(made, i, total, epoch);
        mixt__c_locale_leave(&locale);
    }
    if (status == MIXT_OK)
        *resolved = made;
    else
        mixt_policy_free(made);
    return status;
}

/* ---- whole policies ---- */

mixt_status mixt__policy_copy_phases(const mixt_policy *policy, mixt_policy *copy)
{
    for (int64_t i = 0; i < policy->phase_count; i++) {
        mixt__policy_phase phase = policy->phases[i];
        MIXT_TRY(mixt_policy_copy(policy->phases[i].changes, &phase.changes));
        MIXT_TRY(mixt__policy_take_phase(copy, &phase));
    }
    return MIXT_OK;
}

static bool same_phase(const mixt_policy *a, const mixt_policy *b, int64_t index)
{
    mixt_policy *x = NULL, *y = NULL;
    const mixt__policy_phase *p = &a->phases[index], *q = &b->phases[index];
    bool same = p->until == q->until && (p->until == 0 || p->unit == q->unit);
    same = same && mixt_policy_of_phase(a, index, &x) == MIXT_OK && mixt_policy_of_phase(b, index, &y) == MIXT_OK &&
           mixt_policy_equal(x, y);
    mixt_policy_free(x);
    mixt_policy_free(y);
    return same;
}

bool mixt__policy_phases_equal(const mixt_policy *a, const mixt_policy *b)
{
    bool same = a->phase_count == b->phase_count;
    for (int64_t i = 0; same && i < a->phase_count; i++)
        same = same_phase(a, b, i);
    return same;
}

void mixt__policy_free_phases(mixt_policy *policy)
{
    for (int64_t i = 0; i < policy->phase_count; i++)
        mixt_policy_free(policy->phases[i].changes);
    mixt__free(policy->phases);
}
