/* Updates, made one after the other: the only place that does so.
 *
 * Goes in: a trainer, where its batches come from, how many updates, and who is asked and told. Comes out: one record
 * an update, in their order. On a device with memory of its own the result of an update is taken in while the next one
 * runs, unless somebody must see this one's weights; who wants no records waits for nothing. An update that the loss
 * scaler skips is marked in its record, or made again where that was asked for.
 *
 * What has to happen between two updates (another phase of the policy, batches that are left out, the batch that a
 * trace names) is done by `before`: it may change the trainer in any way, back to an earlier state too.
 */
#ifndef MIXT_TRAIN_ENGINE_H
#define MIXT_TRAIN_ENGINE_H

#include "train/resident.h"

/** What came of one update. */
typedef struct mixt__made {
    mixt_step step;
    double seconds;   // between its result and the one before it
    int64_t position; // of its first batch in the data, in passes
} mixt__made;

/** Updates under way. All zero but for trainer and data or resident: a valid one, that nobody listens to. Hooks may be
 *  NULL; a failure of theirs ends the updates with it. */
typedef struct mixt__engine {
    mixt__trainer *trainer;
    const mixt_data *data;          // batches in the order of the data, from where the trainer is; or
    const mixt__resident *resident; // these in turn
    int64_t again_most;             // so many skipped updates are made again, on the same batches
    bool at_once;                   // each result is waited for before the next update

    /** Before update number `update` is issued. */
    mixt_status (*before)(void *user, int64_t update);
    /** After that, before any result is waited for. */
    void (*issued)(void *user, int64_t update);
    /** Whether all results must be taken in before the next update; asked again after each one. */
    bool (*settles)(void *user);
    /** The record of one update; of the newest one or the one before. */
    mixt_status (*made)(void *user, const mixt__made *made);
    /** After a round in which the newest result was taken in. */
    mixt_status (*settled)(void *user);
    void *user;

    bool stop;       // set by a hook: no further update is begun; results that are still out are taken in
    int64_t taken;   // the newest update whose record was given
    double taken_at; // the clock's time then
    int64_t again;   // updates that were made again so far
} mixt__engine;

/** Makes `count` updates, or less where a hook stops it. Where nobody hears of them they may still run when it returns.
 */
mixt_status mixt__engine_make(mixt__engine *engine, int64_t count);
/** Makes one and waits for its result. */
mixt_status mixt__engine_make_one(mixt__engine *engine, mixt_step *result);
/** What was done since `start` is no part of an update. */
void mixt__engine_set_aside(mixt__engine *engine, double start);

#endif
