/* The time of each op of a training step, held against what the device could do: for `--profile`.
 *
 * Ops run one by one, in order, with a time mark between them: what a profile adds up to is a little more than a step
 * that is replayed as a whole. Bytes are the fewest that an op can move: each input read and each output written once.
 */
#ifndef MIXT_CLI_PROFILE_H
#define MIXT_CLI_PROFILE_H

#include "api/api.h"

#include <jansson.h>

typedef enum cli_work {
    CLI_WORK_PRODUCTS,
    CLI_WORK_ATTENTION,
    CLI_WORK_CONVOLUTION,
    CLI_WORK_RECURRENT,
    CLI_WORK_NORMS,
    CLI_WORK_POINTWISE,
    CLI_WORK_LOSS,
    CLI_WORK_OTHER, // embedding, pooling, sums, copies
    CLI_WORK_OPTIMIZER,
    CLI_WORK_COUNT
} cli_work;

typedef struct cli_profile_row {
    const char *layer, *op, *kernel;
    bool backward, matrix, tensor_cores;
    cli_work work;
    mixt_dtype format; // of its operands; TF32 where FP32 operands may be rounded
    double seconds, flops, bytes;
} cli_profile_row;

typedef struct cli_profile {
    cli_profile_row *rows;
    int64_t count;
    double seconds; // of all rows
    bool limits;    // the device said what it can do at most
    mixt_gpu_info device;
} cli_profile;

/** Runs the compiled step `runs` times on a batch and times each op, then the passes that end a step.
 *  @param input,target a batch in memory that the trainer's device reads */
mixt_status cli_profile_run(mixt_trainer *trainer, const void *input, const void *target, int64_t runs,
                            cli_profile *profile);
void cli_profile_free(cli_profile *profile);

/** Tables for people: each op, then each kind of work. */
void cli_profile_print(const cli_profile *profile);
json_t *cli_profile_json(const cli_profile *profile);

/** Share of the limit that binds an op: the larger of its FLOP/s and its bytes/s over what the device can do. NaN when
 *  that is not known. */
double cli_profile_share(const cli_profile *profile, const cli_profile_row *row);

#endif
