/* Runs within an amount of memory: how a run is planned to fit, and how large a batch can be.
 *
 * Everything here is calculated: plans are compiled, which takes milliseconds, and their memory is known to the byte;
 * nothing is run. Memory is that of the GPU where the run trains on one (what mixt takes there: CUDA's context and
 * libraries come beside it), else all that the run holds on the host.
 */
#ifndef MIXT_FIT_H
#define MIXT_FIT_H

#include "mixt/run.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MIXT_FIT_LINES = 6, MIXT_FIT_WIDTH = 256 };

/** How a run is planned within its memory. */
typedef struct mixt_fit {
    size_t budget; /**< bytes that it may take: train.memory; 0: there is no limit, and nothing was changed */
    bool device;   /**< of the GPU; else of the host */
    size_t memory; /**< bytes that it will take */
    size_t asked;  /**< bytes that it would take as the configuration has it */
    int64_t batch; /**< samples in one pass */
    int64_t
        accumulate; /**< passes of an update: batch × accumulate is what the configuration says, whatever the split */
    int64_t split;  /**< parts that a batch of the configuration is passed in */
    size_t recompute;   /**< bytes that activations may take; 0: nothing is computed again */
    int64_t recomputed; /**< ops that run again in the backward pass for that */
    mixt_dtype keep;    /**< format in which activations wait for the backward pass; MIXT_DTYPE_NONE: as they are */
    int64_t eval_batch; /**< samples in one pass of validation */
    double cost; /**< time that this adds to training, validation included, as a share of it, predicted: 0.05 is 5% */
    bool batch_norm; /**< the split changes what batch norm takes its statistics from */
    bool compares;   /**< the split changes which samples the loss compares with each other */
    /** The same for people, ended by "". */
    char lines[MIXT_FIT_LINES][MIXT_FIT_WIDTH];
} mixt_fit;

/**
 * Plans a run within an amount of memory, by what train.memory_may lists: the cheapest plan that fits. Opening a run
 * with train.memory does this. Before training; the run then trains so, and its configuration (train.split,
 * train.recompute) says so.
 * @param memory bytes; 0: nothing is planned anew, `fit` tells how the run is planned.
 * @param fit may be NULL. Where nothing fits it has the smallest plan.
 * @return MIXT_ERROR_MEMORY where nothing fits: the text has the least that would do, and what else to list.
 */
MIXT_API mixt_status mixt_plan_fit(mixt_run *run, size_t memory, mixt_fit *fit);

/** The largest batch of a configuration. */
typedef struct mixt_largest_batch {
    int64_t batch;    /**< for train.batch: training and validation both fit */
    size_t memory;    /**< bytes that the run then takes */
    size_t next;      /**< bytes that it would take with one sample more; 0: there cannot be one more, see `reason` */
    size_t limit;     /**< bytes that there are */
    bool device;      /**< of the GPU; else of the host */
    char reason[256]; /**< what stops it: memory, the number of samples, … */
} mixt_largest_batch;

/**
 * The largest train.batch that fits, all else as the configuration has it: such a run is within the limit, one with a
 * sample more in its batch is not. Validation takes batches as large, or of train.eval_batch, or smaller ones where
 * those do not fit and the loss does not compare samples of a batch.
 * @param options as for mixt_run_open_config; NULL: none. The observer hears NOTEs of a search that takes long.
 * @param memory bytes that the run may take; 0: train.memory, else what is free now.
 * @return MIXT_ERROR_MEMORY where not even a batch of 1 fits.
 */
MIXT_API mixt_status mixt_plan_largest_batch(const mixt_config *config, const mixt_run_options *options, size_t memory,
                                             mixt_largest_batch *largest);

#ifdef __cplusplus
}
#endif
#endif
