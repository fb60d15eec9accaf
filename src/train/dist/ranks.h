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
#include "dist/compress.h"
#include "dist/overlap.h"
#include "graph/graph.h"
#include "runtime/executable.h"
#include "train/pass_weights.h"
#include "train/dist/gather.h"
#include "train/dist/stage.h"

typedef struct mixt__trainer mixt__trainer;

/** A running statistic, in the arena of state. */
typedef struct mixt__moved {
    int64_t offset, count;
    double share; // see mixt__op
} mixt__moved;

/** Passes that read weights. */
enum { MIXT_GATHER_TRAIN, MIXT_GATHER_INSTRUMENTED, MIXT_GATHER_EVAL, MIXT_GATHERS };

typedef struct mixt__ranks {
    mixt__group *group;               // borrowed; NULL: this process makes all parts
    mixt__group *joined;              // the same where it is the trainer's own
    bool planned;                     // only to be looked at: as with a group, of which there is none
    int zero;                         // what ranks share out: 1: moments; 2: gradients too; 3: masters too
    bool save_parts;                  // every rank writes its part of a checkpoint; else rank 0 collects and writes
    mixt_dtype format;                // in which gradients travel
    int64_t bucket;                   // elements that are under way at once
    mixt__compression compression;    // what travels of weights that ranks update by themselves: train/dist/local.h …
    int64_t compress_after;           // … after so many updates that they make together
    int64_t check;                    // updates after which weights are compared; 0: never
    int64_t hashed;                   // the newest of those
    int64_t hash;                     // of the weights after it
    int signal, agreed_signal;        // that this rank caught, and any rank before the newest update
    uint32_t asked, agreed_asked;     // the same of what observers ask for
    mixt__moved *moved;               // statistics that passes move
    int64_t moved_count, moved_total; // of those; of their elements
    float *sum;                       // one process: of the parts so far
    float *start;                     // (moved_total) statistics before the update
    void *workspace;                  // of the sum over ranks
    mixt__bucket *buckets;            // of the gradients, in the order in which the backward pass completes them
    int64_t bucket_count;
    mixt__overlap *overlap;             // sums them while it goes on; NULL: not with a group
    bool begun;                         // the sum of this update
    bool local;                         // this update: every rank makes it by itself
    bool own_weights;                   // the masters are this rank's own; else those that all have in common
    bool overflowed;                    // on some rank: all skip the update
    float *feedback;                    // (total) where ranks compress: common weights less this rank's own
    mixt__compressor compressor;        // and what exchanges them
    int64_t step;                       // elements of a bucket at most
    mixt__owners owners;                // where state is sharded: who owns what
    mixt__stage window;                 // where gradients are made that are sharded
    mixt__gather gathers[MIXT_GATHERS]; // where masters are sharded: when they are there
    mixt__gather *reading;              // of the pass that runs; NULL: its weights are there
    int64_t taken;                      // groups whose memory this pass has taken
    int64_t *cuts;                      // (ranks + 1) of the group that is worked on
    mixt__segment *own;                 // this rank's segments, or parts of those, in its own arenas
    int64_t *own_first;                 // (groups + 1) among those
    mixt__segment *chunks;              // of its gradients, where those are sharded
    int64_t *chunk_first;               // (groups + 1) among those
    int64_t *rank_chunks;               // (ranks + 1) where each rank's begin in …
    mixt__segment_stats *chunk_stats;   // … what ranks tell each other of them, then in the order of the flat arenas
    double *lamb_sums;                  // (owners.chunks, 2) of LAMB, where its state is sharded; then in that order
    float *lamb_ratios;                 // (segments), then those of `own`
    char *mine, *all;                   // what ranks tell each other after their passes
    float *added;                       // (passes, moved_total) what each pass adds to the statistics
    float *staged;                      // of a device with memory of its own: where gradients wait on the host
    size_t update_bytes, measure_bytes; // of a device with memory of its own: what an update of slices takes
    mixt__segment_stats *segment_stats; // the same: those of all gradients, on the host
    float *masters;                     // the same: this rank's, on the host, where they are sharded
    char *gathered;                     // the same: where the host gathers groups of weights
    int64_t let, handed;                // jobs of this pass that may go; sums among them
    void *own_workspace;                // device: of the update of `own`, a part for each group
    void *measure_workspace;            // device: of the statistics of `chunks`
    mixt__segment_stats *own_stats;     // device: those statistics
    mixt__control *still;               // device: of an update that changes nothing
    bool on_device;                     // gradients are summed in the device's memory: see train/dist/device_sums.h
    uint32_t *arrived;                  // (buckets) of those: not 0: it is on the host
    const mixt__device_sums *sums;      // by this; NULL: they are not, or the ranks are only planned. Borrowed
    int64_t summed;                     // buckets of this update so far
    mixt_status sum_status;
} mixt__ranks;

/** Passes of an update that one part has, and the first that this process makes. */
int64_t mixt__ranks_passes(const mixt__trainer *t);
int64_t mixt__ranks_first(const mixt__trainer *t);
/** Parts that this process makes: all, or one. */
int64_t mixt__ranks_parts(const mixt__trainer *t);

/** Passes that this process makes. */
int64_t mixt__ranks_made(const mixt__trainer *t);

/** Bytes of what an update of several parts takes beside a step: where the trainer's own memory lies, and of the host
 *  where that is another. Needs compile. */
size_t mixt__ranks_bytes(const mixt__trainer *t);
size_t mixt__ranks_host_bytes(const mixt__trainer *t);
/** Bytes that this rank, of planned ones the first, sends in an update; with sharded moments a few more than are
 *  sent. Needs compile. Where ranks compress: in one that they make by themselves, but not the last. */
int64_t mixt__ranks_sent(const mixt__trainer *t);
/** The same in the run's last update. */
int64_t mixt__ranks_sent_last(const mixt__trainer *t);
/** Of those, all but gradients and their sums. */
int64_t mixt__ranks_sent_beside(const mixt__trainer *t);
/** The same in one that they make together. */
int64_t mixt__ranks_sent_plain(const mixt__trainer *t);
/** Takes it, and gives it back. */
mixt_status mixt__ranks_take(mixt__trainer *t);
void mixt__ranks_release(mixt__trainer *t);
/** Gives back what depends on the compiled step: what ranks have not sent yet stays, and is not taken again. */
void mixt__ranks_release_plan(mixt__trainer *t);
/** Forgets how state is sharded. */
void mixt__ranks_forget(mixt__trainer *t);

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

/** Whether moments are sharded. */
bool mixt__ranks_sharded(const mixt__trainer *t);
/** Whether every rank saves its part. */
bool mixt__ranks_save_parts(const mixt__trainer *t);
/** Whether ranks have state of their own, which must be collected before rank 0 can save it alone. */
bool mixt__ranks_discrete(const mixt__trainer *t);
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
