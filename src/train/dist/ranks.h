/* An update that several ranks make together, each with its share of the passes.
 *
 * The passes of an update, in their order, are cut into as many parts as there are ranks, one after the other. Each
 * part has its gradients added up as any accumulation does; then the parts are added in the order of ranks
 * (dist/group.h). From there on every rank has the same bits: found-Inf, clipping, loss scale, learning rate and
 * weights are those of all without a further word.
 *
 * One process can do the same by itself, part after part: bit for bit what as many ranks do. That takes a second arena
 * of gradients.
 *
 * On a device with memory of its own the parts' gradients are copied to the host, added there by the same code in the
 * same order, and copied back: device->backend->copy both ways, which on a host is nothing special.
 *
 * Running statistics of batch norm: what each pass adds, m·b, is rounded to FP32, and all are put to the statistics in
 * the order of passes: s = (1 - m)·s + m·b.
 */
#ifndef MIXT_TRAIN_RANKS_H
#define MIXT_TRAIN_RANKS_H

#include "backend/backend.h"
#include "graph/graph.h"
#include "runtime/executable.h"
#include "train/pass_weights.h"
#include "train/dist/join.h"
#include "train/dist/part_discrete.h"
#include "train/dist/part_local.h"
#include "train/dist/part_overlap.h"
#include "train/dist/part_shards.h"
#include "train/dist/part_sums.h"

/** By part: functions of a part's header, where it has one, work on that and on whom the updates are made with. */
typedef struct mixt__ranks {
    mixt__group *group;  // borrowed; NULL: this process makes all parts
    mixt__group *joined; // the same where it is the trainer's own
    bool planned;        // only to be looked at: as with a group, of which there is none
    bool save_parts;     // every rank writes its part of a checkpoint; else rank 0 collects and writes
    mixt_dtype format;   // in which gradients travel
    mixt__part_sums sums;
    mixt__part_overlap overlap;
    mixt__part_shards shards;
    mixt__part_local local;
    mixt__part_discrete discrete;
} mixt__ranks;

/** Takes it, and gives it back. */
mixt_status mixt__ranks_take(mixt__trainer *t);
void mixt__ranks_release(mixt__trainer *t);
/** Gives back what depends on the compiled step: what ranks have not sent yet stays, and is not taken again. */
void mixt__ranks_release_plan(mixt__trainer *t);
/** Forgets how state is sharded. */
void mixt__ranks_forget(mixt__ranks *r);

/** Around pass number `index` of the update. Gradients that the last pass completes are summed while it goes on: `run`
 *  tells of its nodes. */
mixt_status mixt__ranks_before_pass(mixt__trainer *t, int64_t index, mixt__run *run);
mixt_status mixt__ranks_after_pass(mixt__trainer *t, int64_t index);
/** Around a pass that makes no gradients: weights that are sharded are gathered as its nodes read them.
 *  @param which MIXT_GATHER_EVAL, … @param status of the pass */
mixt_status mixt__ranks_begin_reading(mixt__trainer *t, int which, mixt__run *run);
mixt_status mixt__ranks_end_reading(mixt__trainer *t, mixt_status status);
/** After the passes of a part have run: one process adds it to those before. */
mixt_status mixt__ranks_end_part(mixt__trainer *t, int64_t part);
/** After all passes: gradients, figures and statistics become those of the whole update. Also where a pass has failed:
 *  the others are told, and fail too. @param weights of the targets of all passes */
mixt_status mixt__ranks_join(mixt__trainer *t, mixt_status status, mixt__pass_weights *weights);
/** Statistics of the gradients of the whole update. */
mixt_status mixt__ranks_measure(mixt__trainer *t, const mixt__update *update);
/** step_control: one decision of all ranks. */
mixt_status mixt__ranks_control(mixt__trainer *t, mixt__update *update);
/** The optimizer: of all parameters, or of this rank's, which then go to the others. */
mixt_status mixt__ranks_apply(mixt__trainer *t, const mixt__update *update);

/** Copies of what a rank has of its own, in host memory. */
typedef struct mixt__ranks_own {
    char *const *roles; // (MIXT_PARAM_ROLES) by place in the table
    const float *feedback;
} mixt__ranks_own;
/** All of that to rank 0; every rank calls it.
 *  @param own where this rank's lies; NULL: where the trainer has it
 *  @param roles (MIXT_PARAM_ROLES) of all elements of what is sharded; rank 0 alone has them
 *  @param feedback where ranks compress: (1 + moments, ranks, total), the same */
mixt_status mixt__ranks_collect(mixt__trainer *t, const mixt__ranks_own *own, char *const *roles, float *feedback);

#endif
