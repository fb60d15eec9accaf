/* The recurrence step by step, for kernels that give one pass over the units of a step.
 *
 * A step is one product of all batch entries with weight_hh (packed once for all steps) and one pass over the units,
 * whose batch entries threads split. The gradient of weight_hh is one product at the end: the states before each step
 * are gathered as its operand, zeros before a sequence's first; that of bias_hn comes with it.
 */
#ifndef MIXT_BACKEND_CPU_RECURRENT_STEPS_H
#define MIXT_BACKEND_CPU_RECURRENT_STEPS_H

#include "backend/cpu/recurrent/recurrent.h"
#include "base/threads.h"

/** What a pass over a step's units gets. */
typedef struct mixt__recurrent_step {
    const mixt__call *call;
    mixt__recurrent_sizes s;
    int64_t t;       // the step
    float *product;  // forward: (B, rows) from the state before; gradient: (B, H) from the step after
    float *flow;     // gradient: (B, H), of the carry: from the step after, then for the step before
    void *grad_sums; // gradient: (B, T, rows), what flows back through weight_hh; may be grad_gates_x itself
} mixt__recurrent_step;

/** Element (b, t, 0) of a contiguous (B, T, width) tensor. */
static inline int64_t mixt__recurrent_place(const mixt__recurrent_step *k, int64_t b, int64_t width)
{
    return (b * k->s.steps + k->t) * width;
}

/** `pass` is one over batch entries [begin, end) of a step; its argument is a mixt__recurrent_step. */
mixt_status mixt__recurrent_forward(const mixt__call *call, mixt__range_fn *pass);
mixt_status mixt__recurrent_backward(const mixt__call *call, mixt__range_fn *pass);

/** The workspaces that they need. */
mixt_status mixt__recurrent_forward_prepare(mixt__call *call, mixt__arena *arena);
mixt_status mixt__recurrent_backward_prepare(mixt__call *call, mixt__arena *arena);

#endif
