/* Policy files: a policy that is taken has a format everywhere and patterns that end. */
#include "fuzz.h"

#include "policy/policy.h"

#include <string.h>

static void check_policy(const mixt__policy *policy)
{
    fuzz_require(policy->forward != MIXT_DTYPE_NONE && policy->rule_count >= 0);
    for (int64_t i = 0; i < policy->rule_count; i++) {
        const mixt__policy_rule *rule = &policy->rules[i];
        fuzz_require(rule->forward != MIXT_DTYPE_NONE);
        fuzz_require(!rule->layer || strlen(rule->layer) <= FUZZ_INPUT_MAX);
        fuzz_require(!rule->op || strlen(rule->op) <= FUZZ_INPUT_MAX);
    }
}

void fuzz_input(const uint8_t *data, size_t size)
{
    mixt__policy_file file;
    if (!fuzz_taken(mixt__policy_load(fuzz_file("policy.yaml", data, size), &file)))
        return;
    check_policy(&file.policy);
    mixt__policy_free(&file);
}
