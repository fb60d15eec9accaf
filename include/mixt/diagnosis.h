/* What a diagnosis by replay says about training that went wrong.
 *
 * Training is bit-exact: the same state and the same batches give the same numbers. So a run that goes back to a good
 * state and computes the same updates again knows more than a loss curve tells:
 *
 *   other bits than before                -> hardware computed something wrong
 *   the same bits, and FP32 is calm       -> the number format could not hold a value: the layers are named
 *   the same bits, and FP32 has it too    -> a batch, the learning rate, or a layer that is dead
 *
 *   mixt_snapshots *states;
 *   mixt_snapshots_new(trainer, data, 100, &states);
 *   for (…) { // every update
 *       mixt_trainer_step(trainer, data, &step);
 *       …; // a monitor says whether it is calm
 *       mixt_snapshots_note(states, &step, calm);
 *       if (trouble)
 *           mixt_snapshots_diagnose(states, alert.cause, &diagnosis); // and training goes on from a good state
 *   }
 *   mixt_snapshots_free(states);
 *
 * Trainers that have joined others (mixt/ranks.h) do all of this together, each at the same update.
 *
 * A run with precision=auto asks for one by itself and writes it as a row of events.jsonl, with kind "diagnosis".
 */
#ifndef MIXT_DIAGNOSIS_H
#define MIXT_DIAGNOSIS_H

#include "mixt/monitor.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MIXT_DIAGNOSIS_LIST(X)                                                                                         \
    X(NOTHING, "nothing")       /* the same bits, and nothing in them that explains it */                              \
    X(HARDWARE, "hardware")     /* the same computation gave other bits */                                             \
    X(PRECISION, "precision")   /* FP32 does not have the problem */                                                   \
    X(BATCH, "batch")           /* samples of one batch are not like the others */                                     \
    X(OPTIMIZER, "optimizer")   /* any batch shows it: the updates before were too large */                            \
    X(DEAD_LAYER, "dead_layer") /* a layer learns nothing, in FP32 neither */                                          \
    X(MEMORY, "memory")         /* memory is short: nothing was computed wrong */

typedef enum mixt_diagnosis_kind {
#define MIXT_DIAGNOSIS_ENUM(name, text) MIXT_DIAGNOSIS_##name,
    MIXT_DIAGNOSIS_LIST(MIXT_DIAGNOSIS_ENUM)
#undef MIXT_DIAGNOSIS_ENUM
        MIXT_DIAGNOSIS_COUNT
} mixt_diagnosis_kind;

/** "nothing", "hardware", …; "none" for anything else. */
MIXT_API const char *mixt_diagnosis_name(mixt_diagnosis_kind kind);

enum { MIXT_DIAGNOSIS_LAYERS = 4 };

/** What was found, with the figures that say so. */
typedef struct mixt_diagnosis {
    mixt_diagnosis_kind kind;
    mixt_cause cause;   /**< of the row: hardware, precision, data, gradient_anomaly or memory_warning */
    mixt_cause symptom; /**< that was seen: overflow, underflow, scale_collapse, loss_anomaly, … */
    int64_t step;       /**< the update at which it began */
    int64_t good;       /**< the update of the last good state, where the trainer was left unless asked otherwise */
    int64_t replayed;   /**< updates that were computed again, all replays together */
    /** PRECISION: the layers at fault, the worst first; DEAD_LAYER: the one that is dead; HARDWARE: where the wrong
     *  number was, as far as it can be told. "" after the last one. */
    char layers[MIXT_DIAGNOSIS_LAYERS][128];
    char op[48];               /**< PRECISION: the op of the first layer that made such numbers; "": not known */
    char parameter[128];       /**< HARDWARE: the parameter that is furthest off, or whose gradient is; "": not known */
    int rank;                  /**< of several: the one to blame, or whose samples or values are; -1: not known */
    bool persists;             /**< HARDWARE: a second replay gave other bits once more */
    int64_t epoch, batch;      /**< BATCH: where it comes in the data: epochs from 1, batches from 0 */
    int64_t place, sample;     /**< BATCH: the sample's place in the batch and in the data set; -1: no single one */
    double value, usual, fp32; /**< loss of that update, of those before, of the same update in FP32; NaN: not known */
    char text[512];            /**< all of it, for people */
} mixt_diagnosis;

/* ---- in a loop of one's own ---- */

/** The last two good states of a trainer in host memory, with a record of what each update since has left. */
typedef struct mixt_snapshots mixt_snapshots;

/**
 * Takes the memory, and the state as it is as the first good one.
 * @param trainer compiled; nobody else may change its weights or its policy while the snapshots live.
 * @param data that it trains on: every update must come from mixt_trainer_step with it.
 * @param every updates between two states, 1 to 100000.
 * @param snapshots set to NULL on failure; free them before the trainer's context is closed.
 */
MIXT_API mixt_status mixt_snapshots_new(mixt_trainer *trainer, mixt_data *data, int64_t every,
                                        mixt_snapshots **snapshots);
/** NULL is allowed. */
MIXT_API void mixt_snapshots_free(mixt_snapshots *snapshots);
/**
 * Takes in an update, each one in its turn and before the next.
 * @param step its result. @param calm whether nothing stood out lately: else its state is not taken as a good one.
 */
MIXT_API mixt_status mixt_snapshots_note(mixt_snapshots *snapshots, const mixt_step *step, bool calm);
/**
 * Finds out what went wrong at the newest update, or shortly before, and leaves the trainer in the last good state.
 * @param symptom what was seen, as an alert has it.
 * @param diagnosis what was found.
 */
MIXT_API mixt_status mixt_snapshots_diagnose(mixt_snapshots *snapshots, mixt_cause symptom, mixt_diagnosis *diagnosis);

#ifdef __cplusplus
}
#endif
#endif
