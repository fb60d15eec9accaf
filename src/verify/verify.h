/* What was measured, for the files of this folder: verify.c trains, judge.c judges, lines.c fills in the checklist. */
#ifndef MIXT_VERIFY_VERIFY_H
#define MIXT_VERIFY_VERIFY_H

#include "api/api.h"
#include "base/handles.h"
#include "config/config.h"
#include "mixt/verify.h"

/** What a file of a verification says that it is. */
#define MIXT_VERIFY_KIND "mixt verify"

enum { MIXT_VERIFY_NOTE = 600 };

struct mixt_verification {
    mixt__handle handle;
    mixt_config *config; // a copy; precision and seed are those of the newest run
    int64_t seeds, first_seed;
    char *precision, *model;
    mixt_policy *policy;                        // that `precision` named when it began
    mixt_verify_run (*runs)[MIXT_VERIFY_SIDES]; // by seed
    bool classes;                               // accuracy counts; else the loss
    bool validated;                             // there is a validation part
    bool host, fp16;                            // on the CPU; the policy may use FP16
    double target_loss, target_accuracy, price; // 0: not given
    mixt_judgement judgements[MIXT_CLAIM_COUNT], parts[MIXT_VERIFY_PARTS];
    mixt_verify_line lines[MIXT_VERIFY_LINES];
    char notes[MIXT_VERIFY_LINES][MIXT_VERIFY_NOTE]; // of the lines
    mixt_verify_figure figures[MIXT_VERIFY_FIGURES];
};

/** Fills in the judgements from the runs: safe, and worth it. */
mixt_status mixt__verify_judge(mixt_verification *v);
/** Fills in the lines of the checklist. */
void mixt__verify_lines(mixt_verification *v);
/** Fills in target_steps of the runs and the figures. */
void mixt__verify_find_targets(mixt_verification *v);

/** Fills in what is known of the products of a step: products_share, products_flops, products_active. The weights are
 *  not used after it: the steps that it runs are real. */
void mixt__verify_products(mixt_trainer *trainer, const mixt_data *data, mixt_verify_run *run);

/** Weights as they were before they were rounded. */
typedef struct mixt__verify_weights {
    float **values; // by parameter; NULL: it was not rounded
    int64_t count;
    mixt_dtype format; // the coarsest that one was rounded to; MIXT_DTYPE_NONE: none was
} mixt__verify_weights;
/** Rounds every weight that a working copy is made of to that copy's format, and where products read that in FP8, to
 *  FP8 with the scale that they give it. Where it fails, what was rounded is put
 *  back too by mixt__verify_restore. */
mixt_status mixt__verify_round(mixt_trainer *trainer, mixt__verify_weights *kept);
/** Puts them back, to the bit, and frees what was kept. */
mixt_status mixt__verify_restore(mixt_trainer *trainer, mixt__verify_weights *kept);

#endif
