#line 236 "docs/c-api.md"
#include <mixt/policy.h>
#include <stdio.h>
#include <stdlib.h>

mixt_status attention_in_fp32(mixt_policy **policy)
{
    char *yaml;
    mixt_policy_rule rule = {.layer = "h.*.attn*", .forward = MIXT_DTYPE_FP32};
    mixt_status status = mixt_policy_new(MIXT_DTYPE_BF16, MIXT_DTYPE_NONE, policy);
    if (status == MIXT_OK)
        status = mixt_policy_add(*policy, &rule);
    if (status == MIXT_OK && (status = mixt_policy_print(*policy, &yaml)) == MIXT_OK) {
        fputs(yaml, stdout); // reads back to the same policy
        free(yaml);
    }
    return status;
}
