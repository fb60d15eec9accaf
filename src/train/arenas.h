/* The arenas that a checkpoint holds, and what of them a process copies. */
#ifndef MIXT_TRAIN_ARENAS_H
#define MIXT_TRAIN_ARENAS_H

#include "store/checkpoint.h"
#include "train/trainer.h"

/** What a snapshot has of the state. In one process the first two are the same. */
typedef enum mixt__snapshot_kind {
    MIXT_SNAPSHOT_WHOLE, // all; of what ranks share out, rank 0 collects it
    MIXT_SNAPSHOT_OWN,   // all that this rank has: of what ranks share out its slices
    MIXT_SNAPSHOT_PART,  // what this rank writes, where all do: its slices, and an equal share of what all have
} mixt__snapshot_kind;

enum { MIXT_ARENA_MASTER, MIXT_ARENA_MOMENT1, MIXT_ARENA_MOMENT2, MIXT_ARENA_STATE, MIXT_ARENAS };
/** What names of their tensors begin with. */
extern const char *const mixt__arena_prefixes[MIXT_ARENAS];

float *mixt__arena_of(const mixt__params *p, int which);
/** Whether training has such an arena: known before any has memory. */
bool mixt__arena_exists(const mixt__params *p, int which);
/** Of all ranks. */
int64_t mixt__arena_elements(const mixt__params *p, int which);
/** Whether an arena is one of which every rank has its slices. */
bool mixt__arena_shared_out(const mixt__params *p, int which);
/** Where a parameter lies in one of the arenas; -1: not there. */
int64_t mixt__arena_offset(const mixt__params *p, int64_t param, int which);

/** Elements of a snapshot's copy of an arena; the first that is copied is number *from of this process's arena. */
int64_t mixt__arena_copied(const mixt__trainer *t, int which, mixt__snapshot_kind kind, int64_t *from);
/** The same of whichever rank copies most: what each of them is planned with. */
int64_t mixt__arena_copied_most(const mixt__trainer *t, int which, mixt__snapshot_kind kind);
/** Pieces that any rank writes, at most. */
int64_t mixt__arenas_pieces_most(const mixt__trainer *t);
/** What this rank writes of all tensors, in their order: arena by arena, parameter by parameter.
 *  @param blocks (MIXT_ARENAS) the copies; NULL: the arena itself @param kind of the copies: of this rank's part, or of
 *  all that it has
 *  @param pieces NULL: they are only counted
 *  @param tensors receives how many tensors there are */
int64_t mixt__arenas_pieces(const mixt__trainer *t, float *const *blocks, mixt__snapshot_kind kind,
                            mixt__checkpoint_piece *pieces, int64_t *tensors);

#endif
