/* How good are predictions, in more than one number? Which class is taken for which, precision, recall and F1 of each;
 * of values, how far off they are.
 *
 *   mixt_report *report;
 *   if (mixt_report_of(trainer, data, &report) == MIXT_OK)
 *       use(mixt_report_describe(report)->f1);
 *   mixt_report_free(report);
 */
#ifndef MIXT_REPORT_H
#define MIXT_REPORT_H

#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_report mixt_report;

/** Classes up to which a report holds the matrix of all pairs. */
enum { MIXT_CONFUSION_MAX = 1024 };

/** One class. Shares are NaN where there is nothing to divide by. */
typedef struct mixt_class_figures {
    int64_t count;    /**< samples of this class */
    int64_t guessed;  /**< samples taken for it */
    int64_t right;    /**< both */
    double precision; /**< right / guessed */
    double recall;    /**< right / count */
    double f1;        /**< 2 right / (count + guessed) */
} mixt_class_figures;

/** All figures. Arrays belong to the report and are valid until it changes. */
typedef struct mixt_report_info {
    int64_t samples;                   /**< seen */
    int64_t classes;                   /**< outputs that are classes; 0: outputs are values */
    const mixt_class_figures *figures; /**< (classes); NULL for values */
    const int64_t *confusion;          /**< (classes, classes): samples of the row's class taken for the column's;
                                            NULL for values and beyond MIXT_CONFUSION_MAX */
    double accuracy;                   /**< share of samples whose first guess is right; NaN for values */
    double precision, recall, f1;      /**< means over the classes that have samples (f1, recall) or were guessed
                                            (precision), each class counting the same; NaN for values */
    double mae, rmse;                  /**< mean distance, root of the mean square; NaN for classes */
    double r2; /**< share of the targets' variance that is explained, the mean over outputs; NaN for classes and where
                    no target varies */
} mixt_report_info;

/**
 * A report on every sample of a data set, predicted by a trainer, which must be compiled.
 * @param data classes or values; MIXT_ERROR_UNSUPPORTED for tokens and for a model trained with MIXT_LOSS_BCE.
 * @param report set to NULL on failure; free it with mixt_report_free.
 * @return MIXT_ERROR_DATA where an output is not finite.
 */
MIXT_API mixt_status mixt_report_of(mixt_trainer *trainer, const mixt_data *data, mixt_report **report);

/**
 * An empty report, to be filled by hand.
 * @param target MIXT_TARGET_CLASS or MIXT_TARGET_VALUES.
 * @param outputs numbers that the model gives a sample, at least 1.
 */
MIXT_API mixt_status mixt_report_new(mixt_target_kind target, int64_t outputs, mixt_report **report);
/**
 * Adds samples. A failure adds those before the one that failed.
 * @param outputs count × outputs numbers, as mixt_trainer_predict gives them; of equal classes the lower counts.
 * @param targets count INT32 classes, or count × outputs FP32 values.
 */
MIXT_API mixt_status mixt_report_add(mixt_report *report, const float *outputs, const void *targets, int64_t count);
/** Never NULL; NULL for the report has no samples. */
MIXT_API const mixt_report_info *mixt_report_describe(mixt_report *report);
/** NULL is allowed. */
MIXT_API void mixt_report_free(mixt_report *report);

#ifdef __cplusplus
}
#endif
#endif
