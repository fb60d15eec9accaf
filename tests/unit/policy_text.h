/* Policies from and to text, for the tests of policies. */
#ifndef MIXT_TESTS_POLICY_TEXT_H
#define MIXT_TESTS_POLICY_TEXT_H

#include "policy/policy.h"

static inline void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%d: %s", (int)status, mixt_error_text());
}

static inline mixt_policy *parse(const char *yaml)
{
    mixt_policy *policy;
    ok(mixt_policy_parse(yaml, "text", &policy));
    return policy;
}

static inline char *print(const mixt_policy *policy)
{
    char *yaml;
    ok(mixt_policy_print(policy, &yaml));
    return yaml;
}

#endif
