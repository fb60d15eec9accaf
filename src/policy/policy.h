/* Precision policies by name or from a file: which format each layer and op gets. */
#ifndef MIXT_POLICY_POLICY_H
#define MIXT_POLICY_POLICY_H

#include "base/alloc.h"
#include "mixt/types.h"

/** The last rule whose patterns match decides. NULL patterns match everything. Formats are FP32, TF32, FP16 or BF16. */
typedef struct mixt__policy_rule {
    const char *layer;            // glob over the dotted layer path: "h.*.attn*"
    const char *op;               // glob over the op's name
    mixt_dtype forward, backward; // of the op itself, of its gradient
    const char *origin;           // where it stands, in words: "policy.yaml:7"; NULL: not known
} mixt__policy_rule;

typedef struct mixt__policy {
    mixt_dtype forward, backward; // for what no rule matches
    const mixt__policy_rule *rules;
    int64_t rule_count;
    const char *origin; // of the default formats, in words; NULL: not known
} mixt__policy;

/** A policy and the memory of its patterns. */
typedef struct mixt__policy_file {
    mixt__policy policy;
    mixt__arena arena;
} mixt__policy_file;

/** "fp32", "tf32", "fp16" or "bf16"; anything else is the path of a YAML file:
 *
 *   default: bf16
 *   rules:                      # the last rule that matches decides
 *     - layer: "h.*.attn.*"     # glob over layer names; left out: all
 *       op: "matmul"            # glob over op names; left out: all
 *       precision: fp32
 */
mixt_status mixt__policy_load(const char *name_or_path, mixt__policy_file *file);
void mixt__policy_free(mixt__policy_file *file);

/** One format for everything. */
mixt__policy mixt__policy_of(mixt_dtype dtype);
/** True when the policy may put anything into this format. */
bool mixt__policy_uses(const mixt__policy *policy, mixt_dtype dtype);

#endif
