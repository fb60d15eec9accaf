/* Policies: one that is taken has a format everywhere and patterns that end; printed and read again it is the same. */
#include "fuzz.h"

#include "base/handles.h"
#include "policy/inside.h"

#include <string.h>

static void check_policy(const mixt__policy *policy)
{
    fuzz_require(policy->forward != MIXT_DTYPE_NONE && policy->backward != MIXT_DTYPE_NONE && policy->rule_count >= 0);
    for (int64_t i = 0; i < policy->rule_count; i++) {
        const mixt__policy_rule *rule = &policy->rules[i];
        fuzz_require(rule->forward != MIXT_DTYPE_NONE && rule->backward != MIXT_DTYPE_NONE && rule->origin);
        fuzz_require(mixt_dtype_is_float(mixt__policy_kept(policy, rule)));
        fuzz_require(!rule->layer || strlen(rule->layer) <= FUZZ_INPUT_MAX);
        fuzz_require(!rule->op || strlen(rule->op) <= FUZZ_INPUT_MAX);
    }
}

static void check_print(const mixt_policy *policy)
{
    char *first, *second;
    mixt_policy *again;
    fuzz_require(mixt_policy_print(policy, &first) == MIXT_OK);
    fuzz_require(mixt_policy_parse(first, "printed", &again) == MIXT_OK);
    fuzz_require(mixt_policy_equal(policy, again));
    fuzz_require(mixt_policy_print(again, &second) == MIXT_OK);
    fuzz_require(!strcmp(first, second));
    free(first);
    free(second);
    mixt_policy_free(again);
}

/** What counts in each phase is a policy too, whatever its end is. */
static void check_phases(const mixt_policy *policy)
{
    mixt_policy *phase, *resolved = NULL;
    for (int64_t i = 0; i < mixt_policy_phases(policy); i++) {
        fuzz_require(mixt_policy_of_phase(policy, i, &phase) == MIXT_OK);
        check_policy(&phase->formats);
        mixt_policy_free(phase);
    }
    if (mixt_policy_resolve_phases(policy, 1000, 50, &resolved) == MIXT_OK)
        check_print(resolved);
    mixt_policy_free(resolved);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    mixt_policy *policy = mixt__alloc(sizeof *policy); // with its length: the bytes may hold zeros, as UTF-16 does
    fuzz_require(policy != NULL);
    mixt__handle_add(&policy->handle, policy, "policy", NULL); // as opening one does
    if (fuzz_taken(mixt__policy_read(policy, (const char *)data, size, "policy.yaml"))) {
        check_policy(&policy->formats);
        check_print(policy);
        check_phases(policy);
    }
    mixt_policy_free(policy);
}
