/* What the figures of a run say about its learning: mixt_metrics_judge. */
#ifndef MIXT_RUN_REPORT_OUTCOME_H
#define MIXT_RUN_REPORT_OUTCOME_H

#include "mixt/metrics.h"

#include <stddef.h>

/** Without its text. */
mixt_metrics_outcome mixt__outcome_of(const mixt_metrics *metrics);
void mixt__outcome_text(const mixt_metrics_outcome *outcome, char *text, size_t size);

#endif
