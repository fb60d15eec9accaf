/* What the files of the sensitivity analysis share.
 *
 *   sensitivity_layers.c  the layers of a model, who shares a cast with whom
 *   sensitivity_probe.c   all cells estimated from one FP32 pass with twins and one pass a format
 *   sensitivity_replay.c  cells measured directly: FP32 and a cell's policy on the same batches
 *   sensitivity_score.c   from measurements to scores, recommendations, ranks
 *   sensitivity.c         points of training, the order of the work, the public functions
 *   sensitivity_draw.c    the heat map as a picture
 */
#ifndef MIXT_CHOOSE_SENSITIVITY_H
#define MIXT_CHOOSE_SENSITIVITY_H

#include "mixt/sensitivity.h"
#include "api/api.h"
#include "passes/twins.h"
#include "train/shadow.h"

enum { MIXT_SENSE_FORMATS = 3 };

/** Signal to noise that is printed where there is no noise: about what FP32 itself has. */
#define MIXT_SENSE_EXACT_DB 150.0

typedef struct mixt__sense_layer {
    const char *name; // in the arena
    double flops;     // of its matrix work in a step
    int64_t group;    // the first layer of its group: itself when it is alone
    bool matrix;      // it has matrix work
    bool own_params;  // it has parameters that are trained
    bool *own;        // by segment: its parameters; all where it has none
    mixt_sensitivity_layer shown;
} mixt__sense_layer;

typedef struct mixt__sense_layers {
    mixt__arena arena;
    mixt__sense_layer *layers;
    int64_t count, capacity;
    double flops; // of the matrix work of all of them
} mixt__sense_layers;

/** What one run of a cell on one batch showed, beside FP32 on that batch. */
typedef struct mixt__seen {
    double loss;        // of FP32
    double loss_change; // not finite: the cell's loss was not
    double snr_db;
    double grad_cosine, grad_norm_error, grad_error; // grad_error: length of the difference over FP32's
    double update_error;
    double overflow, underflow;
    double margin; // powers of two between the largest value and the format's largest number
} mixt__seen;

/** Many of them added up. */
typedef struct mixt__seen_sum {
    mixt__seen sum;
    double accuracy, stability, score, score_squares;
    int64_t count;
} mixt__seen_sum;

typedef struct mixt__sense_cell {
    mixt__seen_sum estimated, measured;
    bool exists;  // lowering this layer to this format changes something
    bool confirm; // it is to be measured directly
} mixt__sense_cell;

struct mixt_sensitivity {
    mixt__handle handle;
    mixt__sense_layers layers;
    mixt_sensitivity_info info;
    mixt__sense_cell *cells;                    // see mixt__sense_cell_of
    mixt__seen_sum all_low[MIXT_SENSE_FORMATS]; // every layer lowered
    mixt_sensitivity_row *rows;
    int64_t row_count;
};

static inline mixt__sense_cell *mixt__sense_cell_of(const mixt_sensitivity *s, int64_t layer, int format, int mode)
{
    return &s->cells[(layer * s->info.format_count + format) * MIXT_SENSITIVITY_MODES + mode];
}

/* ---- layers ---- */

/** The layers whose format a policy can change, in the order of the model. */
mixt_status mixt__sense_layers_find(const mixt__trainer *trainer, mixt__sense_layers *layers);
void mixt__sense_layers_free(mixt__sense_layers *layers);

/** Index of a layer by its path; -1: not listed. */
int64_t mixt__sense_layer_find(const mixt__sense_layers *layers, const char *name);

/** The policy of a cell. @param rule memory for its one rule, which must outlive it */
mixt__policy mixt__sense_policy(const mixt_sensitivity *sensitivity, int64_t layer, int format, int mode,
                                mixt__policy_rule *rule);

/* ---- direct replay ---- */

/** FP32's results on the batches of one point of training, and the batches. */
typedef struct mixt__replay {
    mixt__trainer *trainer;
    int64_t batch, trials, logits;
    size_t input_bytes, target_bytes;
    char *inputs, *targets;   // of all trials, host memory
    float *gradients;         // trials × the arena, unscaled
    float *outputs;           // trials × logits
    double *losses, *norms;   // by trial; norms: of the gradients
    float *low, *low_outputs; // of the policy's run under way: the arena's gradients, as they were scaled; outputs
    float *moments[2];        // of the trainer; NULL: the optimizer has none
    double *sums;             // one for each part of the arena
    float scale;              // of the loss, where FP16 is used
    double flops;             // of the matrix work of all runs so far
} mixt__replay;

/** Takes memory and reads the batches. */
mixt_status mixt__replay_open(mixt__replay *replay, mixt__trainer *trainer, const mixt_data *data, int64_t batch,
                              int64_t trials);
void mixt__replay_close(mixt__replay *replay);
/** Batch number `trial`, with the key that all its runs have. */
mixt__shadow_batch mixt__replay_batch(const mixt__replay *replay, int64_t trial);
/** Takes over FP32's outputs and gradients from a shadow that has just run batch `trial`. */
mixt_status mixt__replay_take(mixt__replay *replay, const mixt__shadow *shadow, int64_t trial);
/** Runs FP32 on all batches. */
mixt_status mixt__replay_reference(mixt__replay *replay);
/** Lowers `scale` as a trainer of FP16 would, until no gradient that flows in FP32 on the first batch is beyond it. */
mixt_status mixt__replay_settle_scale(mixt__replay *replay, const mixt__scaling *scaling);
/** Runs a policy on all batches.
 *  @param own by segment: the gradients to compare
 *  @param seen one a trial */
mixt_status mixt__replay_policy(mixt__replay *replay, const mixt__policy *policy, const bool *own, mixt__seen *seen);

/** The same, the gradients of each layer apart.
 *  @param whole one a trial, with the gradients of all parameters
 *  @param own (trials, layers) */
mixt_status mixt__replay_layers(mixt__replay *replay, const mixt__policy *policy, const mixt__sense_layers *layers,
                                mixt__seen *whole, mixt__seen *own);

/* ---- estimates ---- */

typedef struct mixt__probe mixt__probe;

/** @param probe NULL on failure */
mixt_status mixt__probe_open(mixt_sensitivity *sensitivity, mixt__replay *replay, mixt__probe **probe);
/** NULL is allowed. */
void mixt__probe_close(mixt__probe *probe);
/** Runs FP32 and its twins on all batches; the replay has its reference by that. */
mixt_status mixt__probe_reference(mixt__probe *probe);
/** Runs every format for the whole model, then adds the estimates of all cells to them. */
mixt_status mixt__probe_formats(mixt__probe *probe);

/* ---- scores ---- */

/** Signal to noise from sums of squares. */
double mixt__sense_decibels(double signal, double noise);

void mixt__seen_add(mixt__seen_sum *sum, const mixt__seen *seen);
/** Mean of the scores so far; 1 of none. */
double mixt__seen_score(const mixt__seen_sum *sum);
/** Makes the rows, their recommendations and their order from the cells. */
mixt_status mixt__sense_rank(mixt_sensitivity *sensitivity);

#endif
