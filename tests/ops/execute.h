/* Running one candidate on one case in one variant, with everything around it watched. */
#ifndef MIXT_TESTS_EXECUTE_H
#define MIXT_TESTS_EXECUTE_H

#include "backend/backend.h"
#include "oracle/oracle.h"

/** PACKED: rows three times as far apart as they are long, aligned: as q, k and v lie in one product's result. */
typedef enum layout { LAYOUT_PLAIN, LAYOUT_PADDED, LAYOUT_PERMUTED, LAYOUT_PACKED } layout;

/** What is varied besides problem, candidate and format. */
typedef struct variant {
    const char *name;
    int threads;
    layout inputs, outputs; // where the op's record allows strides
    bool param_grad;        // outputs that may be parameter gradients are: FP32, overwritten and then added to
    bool integers;
    int in_place; // input whose memory output 0 takes; -1: none
} variant;

typedef enum outcome { OUTCOME_PASS, OUTCOME_FAIL, OUTCOME_REFUSED, OUTCOME_NOT_APPLICABLE } outcome;

typedef struct result {
    outcome outcome;
    char text[512];     // why it failed or was refused
    double worst;       // largest error over tolerance
    uint64_t zero_hash; // dropout: which elements were dropped
} result;

/** Where kernels run from now on; the CPU unless told. */
void execute_on(mixt__device *where);
/** Whether the variant says anything about this case. */
bool variant_applies(const variant *v, const test_case *c, const oracle *o);
void execute(const test_case *c, const mixt__kernel *kernel, const variant *v, result *r);

#endif
