/* The arenas that a checkpoint holds, and what of them a process copies. */
#ifndef MIXT_TRAIN_ARENAS_H
#define MIXT_TRAIN_ARENAS_H

#include "store/checkpoint.h"
#include "train/trainer.h"

/** What a snapshot has of the state. In one process the first two are the same. */
typedef enum mixt__snapshot_kind {
    MIXT_SNAPSHOT_WHOLE, // all; of what ranks shard, rank 0 collects it
    MIXT_SNAPSHOT_OWN,   // all that this rank has: of what ranks shard its slices
    MIXT_SNAPSHOT_PART,  // what this rank writes, where all do: its slices, and an equal share of what all have
} mixt__snapshot_kind;

/** Roles that checkpoints have, by their places in the table (runtime/roles.h), in the order of a file: those of wide
 *  elements first, so that each tensor begins at a multiple of its elements' size. @return how many */
int mixt__arenas_saved(const mixt__params *p, int order[MIXT_PARAM_ROLES]);

/** Elements of a snapshot's copy of an arena; the first that is copied is number *from of this process's arena. */
int64_t mixt__arena_copied(const mixt__trainer *t, int which, mixt__snapshot_kind kind, int64_t *from);
/** The same of whichever rank copies most: what each of them is planned with. */
int64_t mixt__arena_copied_most(const mixt__trainer *t, int which, mixt__snapshot_kind kind);
/** Pieces that any rank writes, at most. */
int64_t mixt__arenas_pieces_most(const mixt__trainer *t);
/** What this rank writes of all tensors, in their order: role by role, parameter by parameter.
 *  @param blocks (MIXT_PARAM_ROLES) the copies; NULL: the arena itself @param kind of the copies: of this rank's part,
 * or of all that it has
 *  @param pieces NULL: they are only counted
 *  @param tensors receives how many tensors there are */
int64_t mixt__arenas_pieces(const mixt__trainer *t, char *const *blocks, mixt__snapshot_kind kind,
                            mixt__checkpoint_piece *pieces, int64_t *tensors);

#endif
