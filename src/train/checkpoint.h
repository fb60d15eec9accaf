/* The state of training as a checkpoint, and back: what its roles say (runtime/roles.h), the control block (loss scale,
 * step counts, learning rate), how far the data and the random numbers are, and the settings that all of this holds
 * for.
 *
 * Working copies and gradients are left out: copies are the masters rounded, gradients do not live longer than a step.
 * Frozen parameters stand in a file of their own, which is written once: see train/frozen_file.h.
 * A snapshot is what was true between two steps, in host memory; writing it needs the trainer no more.
 */
#ifndef MIXT_TRAIN_CHECKPOINT_H
#define MIXT_TRAIN_CHECKPOINT_H

#include "train/arenas.h"

typedef struct mixt__snapshot {
    const mixt__trainer *trainer; // borrowed
    mixt__file_tensor *tensors;   // names in `names`, data in `blocks`
    int64_t count;
    mixt__snapshot_kind kind;       // of a part, tensors have no data, `pieces` do; of a rank's own there is no list
    mixt__checkpoint_piece *pieces; // what it writes of them
    mixt__checkpoint_sum *sums;     // (piece_count) for who writes them
    int64_t piece_count;
    char *blocks[MIXT_PARAM_ROLES]; // copies of roles that are saved; NULL: their own memory is read
    float *feedback; // what ranks have each of their own: see train/dist/feedback.c; NULL: they do not compress
    json_t *scalars; // of the trainer, as of the last take
    char *names;
} mixt__snapshot;

/** What this process copies for a checkpoint: its part where each rank saves its own; else all. */
mixt__snapshot_kind mixt__snapshot_saved(const mixt__trainer *trainer);
/** What it copies to go back to: its own where ranks share something out; else all. */
mixt__snapshot_kind mixt__snapshot_kept(const mixt__trainer *trainer);
/** Bytes that a snapshot's copies take, all when it is opened; they lie in the host's memory. Needs compile. */
size_t mixt__snapshot_bytes(const mixt__trainer *trainer, mixt__snapshot_kind kind);
/** Lays out a snapshot of an allocated trainer and takes its memory.
 *  @param kind a part cannot be restored, a rank's own not be written by itself
 *  @param in_place on a device whose memory is the host's: make no copy; then the trainer must not step between take
 * and the end of writing. Elsewhere of no effect. */
mixt_status mixt__snapshot_open(mixt__snapshot *snapshot, const mixt__trainer *trainer, mixt__snapshot_kind kind,
                                bool in_place);
/** Of a snapshot of all: copies what no rank shares out from one of this rank's own; the rest is to be collected. */
void mixt__snapshot_fill(mixt__snapshot *snapshot, const mixt__snapshot *own);
/** Of a part: lets its pieces lie in another snapshot, of all that this rank has; in itself, as after opening. */
void mixt__snapshot_point(mixt__snapshot *part, const mixt__snapshot *of);
/** Writes over the copies' memory once, so that the first take does not wait for the system to find it. */
void mixt__snapshot_touch(mixt__snapshot *snapshot);
/** Copies what is true now; waits for the steps issued so far. */
mixt_status mixt__snapshot_take(mixt__snapshot *snapshot, mixt__trainer *trainer);
/** MIXT_ERROR_FORMAT where a checkpoint's scalars lack something of the trainer's. */
mixt_status mixt__trainer_scalars_check(const json_t *scalars);
/** Puts the trainer that it was taken of back into that state. Not for one that is in place or a part. */
mixt_status mixt__snapshot_restore(const mixt__snapshot *snapshot, mixt__trainer *trainer);
void mixt__snapshot_close(mixt__snapshot *snapshot);
/** Its copies of the weights that are trained, in the order of the flat arenas. */
const float *mixt__snapshot_weights(const mixt__snapshot *snapshot);

/** Puts the trainer, compiled for the same model, into the state of a checkpoint. Fails with a list of old and new
 * values when the settings are not the same (the number of steps may differ); nothing is changed then.
 * @param may_differ names of settings (as mixt__trainer_settings_json has them) that need not be the same, ended by
 * NULL; NULL: none. "precision" stands for all that a policy holds: formats, loss scaling, clipping */
mixt_status mixt__trainer_restore(mixt__trainer *trainer, const mixt__checkpoint *checkpoint,
                                  const char *const *may_differ);

/** From now on checkpoints leave frozen parameters away, and a restore leaves them as they are: whoever restores has
 * given them their values before. */
void mixt__trainer_frozen_elsewhere(mixt__trainer *trainer);

/** What a checkpoint's state depends on, as one flat object. */
json_t *mixt__trainer_settings_json(const mixt__trainer *trainer);
/** What differs between those of a checkpoint and the trainer's own, as mixt__json_differences has it.
 *  @param may_differ these are left out: see mixt__trainer_restore */
mixt_status mixt__trainer_settings_differences(const mixt__trainer *trainer, const json_t *then,
                                               const char *const *may_differ, char **differences);
/** "name: old -> new" of all that differs, in a text for mixt__free; NULL: nothing does. */
mixt_status mixt__json_differences(const json_t *before, const json_t *now, const char *separator, char **differences);

/* ---- saving beside training ---- */

/** Where a checkpoint goes, and what is kept beside it. */
typedef struct mixt__save_request {
    char folder[MIXT_CHECKPOINT_PATH]; // of the checkpoints
    int64_t step, keep;
    bool run_lost;     // there was no memory for `run`: nothing may be written
    int64_t wanted[6]; // steps of checkpoints that stay beside it and the newest `keep`: see mixt__checkpoints_prune
    int wanted_count;
    json_t *run;                    // the caller's scalars, taken over; NULL: none
    mixt__checkpoint_file files[5]; // data stays valid until the saver is stopped
    int64_t file_count;
} mixt__save_request;

/** How a save ended. */
typedef struct mixt__save_report {
    int64_t step;
    mixt_status status;
    double seconds;   // of writing
    char error[1024]; // "" when it went well
} mixt__save_report;

typedef struct mixt__saver mixt__saver;

/** Takes the memory of a snapshot and starts a thread; without memory for a copy it saves in the caller's thread
 * instead, where the device's memory is the host's. */
mixt_status mixt__saver_start(mixt__trainer *trainer, mixt__saver **saver);
/** Brings what ranks have each of their own to rank 0: every rank does so before a save, which rank 0 makes.
 *  @param saver of rank 0; else NULL
 *  @param snapshot of its own state, that mixt__saver_write follows for; NULL: as the trainer has it now */
mixt_status mixt__saver_collect(mixt__saver *saver, mixt__trainer *trainer, const mixt__snapshot *snapshot);
/** Waits until the save before this one is done, takes a snapshot and returns; writing goes on beside. A failure of
 * writing comes as a report. */
mixt_status mixt__saver_save(mixt__saver *saver, const mixt__save_request *request);
/** The same by all ranks together, where each saves its part: waits until the save before this one is settled. Fails on
 *  all ranks alike, where rank 0 cannot begin it. @param request of rank 0; of others the step counts */
mixt_status mixt__saver_save_part(mixt__saver *saver, const mixt__save_request *request);
/** Whether this rank's part is still being written. */
bool mixt__saver_writing(mixt__saver *saver);
/** Whether parts of a save are written of which ranks have not said yet how it went: on all ranks alike. */
bool mixt__saver_pending(const mixt__saver *saver);
/** By all ranks: waits until every one has written its part; then rank 0 puts the checkpoint in place, or nobody does
 *  where one has failed, which is everyone's report then. @param all until it is in place */
void mixt__saver_settle(mixt__saver *saver, bool all);
/** Writes a snapshot that was taken before, in the caller's thread, after the save under way has ended. Nothing is
 * pruned. Of a rank's own state, all ranks' has been collected. */
mixt_status mixt__saver_write(mixt__saver *saver, const mixt__snapshot *snapshot, const mixt__save_request *request);
/** The same by all ranks together, each its part, and in place before it returns: on all ranks alike, with no report.
 *  @param snapshot of all that this rank has @param request as of mixt__saver_save_part */
mixt_status mixt__saver_write_parts(mixt__saver *saver, const mixt__snapshot *snapshot,
                                    const mixt__save_request *request);
/** True once for each save that has ended. */
bool mixt__saver_report(mixt__saver *saver, mixt__save_report *report);
/** Until no save is under way. */
void mixt__saver_wait(mixt__saver *saver);
/** Waits, then frees everything; NULL is allowed. */
void mixt__saver_stop(mixt__saver *saver);

#endif
