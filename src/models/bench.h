/* The models of `mixt bench`: sizes, batch, optimizer and FLOP counts are fixed, so that figures compare between
 * machines and with other systems.
 */
#ifndef MIXT_MODELS_BENCH_H
#define MIXT_MODELS_BENCH_H

#include "mixt/train.h"
#include "models/models.h"

/** What a model is trained with; all else is the defaults'. */
typedef struct mixt__bench_recipe {
    const char *optimizer;
    float lr, beta2, weight_decay, clip;
} mixt__bench_recipe;

typedef struct mixt__bench_model mixt__bench_model;
struct mixt__bench_model {
    const char *name, *summary;
    const char *model; // of the zoo
    mixt__model_sizes sizes;
    const char *data;   // spec of the random data set
    int64_t classes;    // labels or vocabulary of that set
    int64_t batch, seq; // defaults; seq 0: no sequences
    mixt__bench_recipe recipe;
    /** Floating-point operations of one step, forward and backward. */
    double (*flops)(const mixt__bench_model *bench, int64_t batch, int64_t seq);
};

/** Ends with a record whose name is NULL. */
extern const mixt__bench_model mixt__bench_models[];

/** NULL when there is none. */
const mixt__bench_model *mixt__bench_find(const char *name);

/** Its recipe as options; precision and batch are the caller's. */
mixt_trainer_options mixt__bench_options(const mixt__bench_model *bench);

/** Tokens or samples in a step. */
int64_t mixt__bench_items(const mixt__bench_model *bench, int64_t batch, int64_t seq);

#endif
