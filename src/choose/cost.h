/* The time of a compiled step on a machine, modelled: for each op the slower of its FLOPs and its bytes, and a launch.
 */
#ifndef MIXT_CHOOSE_COST_H
#define MIXT_CHOOSE_COST_H

#include "machine/machine.h"
#include "train/trainer.h"

/** What binds an op. */
typedef enum mixt__bound { MIXT_BOUND_LAUNCH, MIXT_BOUND_FLOPS, MIXT_BOUND_BYTES, MIXT_BOUND_COUNT } mixt__bound;

/** The modelled time of one op. */
typedef struct mixt__op_cost {
    double seconds; // all in all
    double launch;  // of those, before any work
    mixt__bound bound;
} mixt__op_cost;

/** The modelled time of one update: all its passes and the optimizer. */
typedef struct mixt__step_cost {
    double seconds;
    double work[MIXT_WORK_COUNT];   // by kind
    double bound[MIXT_BOUND_COUNT]; // by what binds; launches of bound ops count as launches
    double casts;                   // of ops that only change a format
    double odd;                     // of products in 16 bits that the units cannot take: see odd_dimension
    int64_t odd_dimension;          // the first such, no multiple of 8; 0: none
} mixt__step_cost;

mixt__op_cost mixt__cost_op(const mixt_machine *machine, const mixt__executable *step, int64_t node);
mixt__step_cost mixt__cost_step(const mixt_machine *machine, const mixt__trainer *trainer);
/** The dimension by which a product's rows do not begin at multiples of 16 bytes in 16-bit formats; 0: none. */
int64_t mixt__cost_odd_dimension(const mixt__call *call);
/** Whether an op only changes a format. */
bool mixt__cost_is_cast(const mixt__node *node);

#endif
