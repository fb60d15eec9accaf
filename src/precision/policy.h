/* Precision policies by name or from a file: which format each layer and op gets. */
#ifndef MIXT_PRECISION_POLICY_H
#define MIXT_PRECISION_POLICY_H

#include "base/alloc.h"
#include "passes/passes.h"

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

#endif
