/* How batches reach a device with memory of its own, and how a step's results come back.
 *
 * Two slots of device memory take turns: a batch is copied into one beside the step that reads the other. A step is
 * issued once as it is, then recorded for each slot and replayed; its results land in pinned memory and are read when
 * somebody asks. With host_memory there is nothing to feed: batches are read where they are.
 *
 * Inputs that the step reads only in a low format are rounded to it on the way: by the threads that make batches, or
 * here when a caller brings its own. Half the bytes travel, and no step converts them.
 */
#ifndef MIXT_TRAIN_FEED_H
#define MIXT_TRAIN_FEED_H

#include "backend/backend.h"
#include "model/model.h"

/** Of a pass: sum of losses, correct, targets that count, and sum of rewards' margins where preferences are learned. */
enum { MIXT_PASS_FIGURES = 4 };

/** What a step leaves for the host. */
typedef struct mixt__step_result {
    mixt__control control;
    mixt__damage damage;
    float metrics[][MIXT_PASS_FIGURES]; // of each micro-step
} mixt__step_result;

/** Steps that are recorded apart: the plain one, and the one that is instrumented (train/instrument.h). */
typedef enum mixt__feed_kind { MIXT_FEED_PLAIN, MIXT_FEED_WATCHED, MIXT_FEED_STEPS } mixt__feed_kind;
enum { MIXT_FEED_SHAPES = 9 }; // of batches, which have steps of their own each: train/lengths.h

typedef struct mixt__feed {
    mixt__device *device;
    int64_t batches;                              // in a step, those of other ranks too
    int64_t held;                                 // of those, in a slot
    mixt__batch_spec given, fed;                  // a batch as the caller has it, and as the step reads it
    size_t given_bytes;                           // of one batch's inputs, as given
    size_t input_bytes, target_bytes;             // of one batch, as fed
    size_t input_room, target_room;               // aligned, inputs as given: where the next batch begins
    void *rounded;                                // pinned: inputs as fed, where that is another format; NULL: none yet
    char *slots[MIXT_STAGE_SLOTS];                // device: inputs, then targets, keys, weights of passes, seeds
    uint64_t *host_keys;                          // pinned
    float *host_weights;                          // pinned
    int64_t *counts;                              // targets that count, of each batch of the coming step; -1: unknown
    mixt__step_result *results[MIXT_STAGE_SLOTS]; // pinned
    mixt__recording *recordings[MIXT_FEED_STEPS][MIXT_FEED_SHAPES][MIXT_STAGE_SLOTS];
    int shape;                                      // of the coming step's batches
    bool random;                                    // some node draws random numbers: keys are sent along
    bool replays;                                   // MIXT_REPLAY
    bool issued[MIXT_FEED_STEPS][MIXT_FEED_SHAPES]; // once without recording: libraries are loaded, tables uploaded
    int64_t turn;                                   // steps so far: even ones use slot 0
} mixt__feed;

/** Device memory of all slots. @param batches of a step. @param held of those, in a slot */
size_t mixt__feed_bytes(mixt__device *device, const mixt__batch_spec *spec, int64_t batches, int64_t held);
/** Bytes that it takes of the host's memory, whatever the device. */
size_t mixt__feed_host_bytes(int64_t batches);

/** @param spec batches as they are given
 *  @param fed as the step reads them
 *  @param batches of a step. @param held of those, in a slot: fewer where other ranks make the others */
mixt_status mixt__feed_open(mixt__feed *feed, mixt__device *device, const mixt__batch_spec *spec,
                            const mixt__batch_spec *fed, int64_t batches, int64_t held, bool random);
void mixt__feed_close(mixt__feed *feed);
/** From now on the step reads inputs in these formats. */
void mixt__feed_retype(mixt__feed *feed, const mixt__batch_spec *fed);
/** From now on batches look like this, and are no larger than those that the feed was opened for.
 *  @param shape by which steps of such batches are recorded, below MIXT_FEED_SHAPES */
void mixt__feed_reshape(mixt__feed *feed, const mixt__batch_spec *spec, const mixt__batch_spec *fed, int shape);
/** A batch's inputs as they are fed: the caller's memory, or the feed's own, which the next call overwrites. */
mixt_status mixt__feed_round(mixt__feed *feed, const void *input, const void **rounded);
/** After the plan changed: what was recorded is no longer true. */
void mixt__feed_forget(mixt__feed *feed);
/** The same of one kind of step. */
void mixt__feed_forget_step(mixt__feed *feed, mixt__feed_kind kind);

/** Copies batch number `index` of the coming step, inputs as they are fed, to the device.
 *  @param count its targets that count; -1: unknown, the passes of this step weigh the same
 *  @param wait return only when the sources may be changed again */
mixt_status mixt__feed_put(mixt__feed *feed, int64_t index, const void *input, const void *target, uint64_t key,
                           int64_t count, bool wait);
/** After all batches of a step were put: their passes' weights too. A single pass needs none. */
mixt_status mixt__feed_weigh(mixt__feed *feed);
/** The same with weights that the caller has put into host_weights, one for each batch of the slot. */
mixt_status mixt__feed_send_weights(mixt__feed *feed);

/** Addresses of that batch in the slot of the coming step. */
const void *mixt__feed_input(const mixt__feed *feed, int64_t index);
const void *mixt__feed_target(const mixt__feed *feed, int64_t index);
const uint64_t *mixt__feed_key(const mixt__feed *feed, int64_t index);
/** The weights of all passes, and room for as many gradients of the loss. */
const float *mixt__feed_weights(const mixt__feed *feed);
float *mixt__feed_seeds(const mixt__feed *feed);

/** Where the coming step leaves its results. */
mixt__step_result *mixt__feed_result(const mixt__feed *feed);
/** The results of the step `back` steps ago (0: the newest, at most MIXT_STAGE_SLOTS - 1); waits until it has run,
 * while younger ones go on. */
mixt_status mixt__feed_result_of(const mixt__feed *feed, int64_t back, const mixt__step_result **result);

/** Runs what is issued on the slot that was filled. `issue` may need the memory of `argument` only while it is called.
 *  @param record whether it may be recorded and replayed; not so while its parts are timed */
mixt_status mixt__feed_issue(mixt__feed *feed, mixt__feed_kind kind, bool record, mixt_status (*issue)(void *argument),
                             void *argument);
/** After all of a step was issued: turns to the other slot. */
mixt_status mixt__feed_turn(mixt__feed *feed);

#endif
