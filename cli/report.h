/* How good predictions are, printed: a table by class, which class is taken for which, how far off values are. */
#ifndef MIXT_CLI_REPORT_H
#define MIXT_CLI_REPORT_H

#include <mixt/report.h>

#include <jansson.h>

/** Classes up to which the tables are printed unasked. */
enum { CLI_REPORT_CLASSES = 20 };

/** Prints tables of a report on classes; nothing for values. Where the matrix is too large, or wider than the terminal,
 *  the most frequent mistakes are listed instead.
 *  @param data whose class names are shown, where it has some */
void cli_report_print(const mixt_report_info *report, const mixt_data_info *data);
/** ", MAE 0.12, RMSE 0.15, R2 0.98" of a report on values, ", F1 81.25% (of class 1), 80.72% (mean)" of one on two
 * classes,
 *  "" of one on others. Returns `text`. */
const char *cli_report_values(const mixt_report_info *report, char text[128]);
/** Adds all figures to a JSON object. */
void cli_report_json(const mixt_report_info *report, const mixt_data_info *data, json_t *object);

#endif
