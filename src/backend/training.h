/* What the last passes of a training step share: flat arenas cut into segments, gradient statistics, the control
 * block that lives on the device, the optimizer's settings.
 *
 *   gradient_stats: one pass over the gradients, statistics per segment
 *   step_control:   found-Inf, clip factor, loss scale, learning rate; the only writer of mixt__control
 *   optimizer_step: one pass that reads gradients and writes weights, moments and working copies; a skipped step
 *                   changes nothing (a select, never a multiply by zero), and gets back the running statistics that
 *                   its forward passes have moved
 */
#ifndef MIXT_BACKEND_TRAINING_H
#define MIXT_BACKEND_TRAINING_H

#include "mixt/types.h"

/** One parameter's place in the flat arenas. Offsets are in elements and multiples of 16. */
typedef struct mixt__segment {
    int64_t offset, count; // in the arenas of weights, gradients and moments
    int64_t first;         // number of its first element in the arenas of all ranks
    mixt_dtype low;        // format of its working copy; NONE: it has none
    int64_t low_offset;    // in the arena of that format
    float weight_decay, lr_scale;
    int32_t param; // index in the graph's parameter table
    /* where moments are kept in codes of blocks (mixt__update_role.scales): */
    bool coded;            // of this segment; else its moments are FP32
    int64_t moment_offset; // in the arena of codes, or in that of FP32
    int64_t scale_offset;  // of its first block's scale
} mixt__segment;

typedef struct mixt__segment_stats {
    double sum_squares; // of the scaled gradients; NaN or Inf when any element is not finite
    float amax;         // largest finite magnitude
    int64_t nonfinite, zeros;
} mixt__segment_stats;

typedef enum mixt__schedule_kind {
    MIXT_SCHEDULE_CONSTANT,
    MIXT_SCHEDULE_STEP,    // times gamma every decay_steps
    MIXT_SCHEDULE_COSINE,  // to min_lr at total_steps
    MIXT_SCHEDULE_LINEAR,  // to min_lr at total_steps
    MIXT_SCHEDULE_ONECYCLE // cosine up from lr/25 over the first 30%, cosine down to min_lr
} mixt__schedule_kind;

/** Learning rate as a function of the number of updates applied. Warm-up is linear from 0 over `warmup` updates. */
typedef struct mixt__schedule {
    mixt__schedule_kind kind;
    float lr, min_lr, gamma;
    int64_t warmup, decay_steps, total_steps;
} mixt__schedule;

typedef struct mixt__scaling {
    bool enabled, dynamic;
    float initial, growth, backoff, floor, ceiling;
    int64_t interval;   // clean steps before growth
    int32_t hysteresis; // overflows in a row tolerated before backoff; 1: back off at once
} mixt__scaling;

/** Written by step_control only. Lives on the device; the host reads it late. */
typedef struct mixt__control {
    float scale;                     // loss scale of the coming step
    float used_scale;                // loss scale of the step just finished
    float seed;                      // scale / accumulation count: the loss's gradient
    float lr;                        // of the update being applied
    float grad_norm;                 // of the unscaled gradients, before clipping
    float grad_factor;               // unscale and clip in one: what the optimizer multiplies gradients with
    float inv_bias1, inv_sqrt_bias2; // 1/(1 - beta1^step), 1/sqrt(1 - beta2^step): see mixt__control_bias
    int32_t found_inf;               // this step is skipped
    int32_t
        bad_segment; // first segment with a non-finite gradient, in the order the backward pass makes them; -1: none
    int32_t clean_steps, overflows_left;
    int64_t step;    // updates applied so far (after this one)
    int64_t skipped; // updates skipped so far
    uint64_t sum;    // of all before it, as words: see mixt__control_seal
} mixt__control;

/** What an update writes of a segment and reads again at the next. */
typedef enum mixt__summed {
    MIXT_SUMMED_WEIGHT,
    MIXT_SUMMED_MOMENT1,
    MIXT_SUMMED_MOMENT2,
    MIXT_SUMMED_COPY, // the working copy, which passes read
    MIXT_SUMMED
} mixt__summed;

/** Sums of a segment's memory, each of 64-bit words from its begin on, modulo 2^64: whoever adds, in whatever order,
 * gets the same, and any single bit that flips changes it. */
typedef struct mixt__segment_sums {
    uint64_t words[MIXT_SUMMED];
} mixt__segment_sums;

/** Of what else it is known what it should be; behind those of mixt__summed. */
typedef enum mixt__damaged {
    MIXT_DAMAGED_CONTROL = MIXT_SUMMED,
    MIXT_DAMAGED_STATE,   // running statistics
    MIXT_DAMAGED_FROZEN,  // frozen parameters, …
    MIXT_DAMAGED_TEACHER, // … a teacher's
} mixt__damaged;

/** The first thing that was found not to be as it was written. */
typedef struct mixt__damage {
    int64_t found; // things that were; 0: all is well
    int32_t what;  // of mixt__summed or mixt__damaged
    int32_t which; // segment; block; element of the running statistics
} mixt__damage;

/** Memory that no update writes. */
typedef struct mixt__still_block {
    const void *data;
    int64_t bytes;
    uint64_t then, now; // its sums
    int32_t what;       // of mixt__damaged
    int32_t param;      // index in the graph's parameter table
} mixt__still_block;

typedef enum mixt__optimizer_kind {
    MIXT_OPTIMIZER_SGD, // with momentum 0: no moment is kept
    MIXT_OPTIMIZER_ADAM,
    MIXT_OPTIMIZER_ADAMW,
    MIXT_OPTIMIZER_LAMB,
} mixt__optimizer_kind;

typedef struct mixt__optimizer {
    mixt__optimizer_kind kind;
    bool nesterov;
    float momentum, beta1, beta2, eps;
    float others; // ranks beside this one whose gradients are not here: the second moment becomes that of the mean of
                  // all, (g² + others·m̂²)/(1 + others) in place of g²; 0: g is the gradient of all
} mixt__optimizer;

/** One role of the parameters, cut as the segments say. Arithmetic is FP32 whatever the format. */
typedef struct mixt__update_role {
    void *data; // NULL: there is none
    mixt_dtype format;
    bool stochastic; // rounded so when it is written; else to the nearest, ties to even
    uint64_t key;    // of the random numbers of that: of the run and the role
    float *scales;   // of moments in codes (num/blocks.h): one a block of each segment; NULL: there are none
    float *wide;     // of segments whose moments are FP32 beside those
} mixt__update_role;

/** Everything the three passes need; pointers are device memory. */
typedef struct mixt__update {
    const mixt__segment *segments; // host copy; a device keeps its own
    int64_t segment_count, total;  // total: elements of the arenas, padding included (padding holds zeros)
    mixt__update_role weight, gradient, moments[2];
    void *low[MIXT_DTYPE_COUNT]; // working copies by format
    float *statistics, *kept;    // running statistics: moved by forward passes; as the last applied update left them
    int64_t statistics_count;
    mixt__segment_stats *stats; // segment_count entries
    mixt__control *control;
    mixt__optimizer optimizer;
    mixt__schedule schedule;
    mixt__scaling scaling;
    float clip_norm, clip_value; // 0: off
    int64_t accumulate;          // micro-steps per update
    double gradient_factor; // what the summed gradients are to be multiplied with beside 1/scale; 1 but where passes
                            // were weighed before all targets of the update were counted
    const int32_t *backward_order; // segment indices in the order in which the backward pass finishes them
    void *workspace;               // the backend's update_workspace() bytes: partial sums and what else it keeps
    /* integrity: see mixt__device_judge_sums */
    mixt__segment_sums *sums[2]; // (segment_count) what was written last, by the parity of control->step; NULL: nobody
                                 // sums
    mixt__damage *damage;        // NULL: nobody checks the control block
    bool skip;                   // whatever the statistics say: another rank's gradients are not finite
    bool control_follows;        // after gradient_stats comes step_control, at once: a device may do both in the first
} mixt__update;

/** Segments are worked on in chunks, each with its own partial sums, added up in order: results do not depend on how
 *  many threads share the chunks. How many elements a chunk has is the device's choice, but none takes fewer. */
enum { MIXT_UPDATE_CHUNK_MIN = 2048 };

/** Chunks of all segments together; a segment's last chunk may be short. */
int64_t mixt__update_chunks(const mixt__segment *segments, int64_t segment_count, int64_t chunk);

/** Moments per parameter that an optimizer keeps: 0, 1 or 2. */
int mixt__optimizer_moments(const mixt__optimizer *optimizer);

/** Bytes of the partial sums of these segments; the same on every device. They come first in update->workspace. */
size_t mixt__update_workspace(const mixt__segment *segments, int64_t segment_count);

/** Learning rate of the update that comes after `applied` updates. */
float mixt__schedule_lr(const mixt__schedule *schedule, int64_t applied);

/** The control block before the first step: initial scale (1 when scaling is off), seed, hysteresis, no step taken. */
mixt__control mixt__control_start(const mixt__update *update);

/** Sets Adam's corrections of its moments for update number control->step: part of mixt__control_advance, for those who
 *  set a control block by hand. */
void mixt__control_bias(mixt__control *control, const mixt__optimizer *optimizer);

/** Takes the sum of a control block that was set by hand. */
void mixt__control_seal(mixt__control *control);

/** Sum of so many bytes as 64-bit words, in the host's memory; the last one may be cut. */
uint64_t mixt__words_sum(const void *bytes, size_t count);

/** The pure function behind step_control: from the statistics to the next control block. */
void mixt__control_advance(mixt__control *control, const mixt__update *update, double sum_squares, bool found_inf);

#endif
