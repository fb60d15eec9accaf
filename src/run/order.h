/* The order of training samples when a run goes on. Its seed (data.order_seed) may change at a resume; the epoch under
 * way keeps the order that it began with, so that each of its samples still comes once. Which epochs have which seed is
 * part of every checkpoint.
 */
#ifndef MIXT_RUN_ORDER_H
#define MIXT_RUN_ORDER_H

#include "run/run.h"

/** What a checkpoint keeps of it. */
json_t *mixt__run_order_pack(const mixt__experiment *e);
/** Goes on in the order of a checkpoint, whose state the trainer has; from the next epoch on in that of the
 *  configuration, which is told where it is another.
 *  @param packed NULL: of a version of mixt that knew one seed only */
mixt_status mixt__run_order_restore(mixt_run *run, const json_t *packed);

#endif
