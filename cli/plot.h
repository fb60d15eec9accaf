/* A line chart as an SVG file: learning curves that a browser or a README can show. */
#ifndef MIXT_CLI_PLOT_H
#define MIXT_CLI_PLOT_H

#include "mixt/types.h"

typedef struct cli_curve {
    const char *name;
    const double *x, *y;
    const double *low, *high; // a band around the curve; NULL: none
    int64_t count;
} cli_curve;

typedef struct cli_plot {
    const char *title, *x_label, *y_label;
    const cli_curve *curves;
    int curve_count; // 6 at most
    bool log_y;      // all y above 0
} cli_plot;

/** Whether a chart could be put there: to be asked before the work that it will show. */
mixt_status cli_plot_check(const char *path, bool overwrite);
/** Writes the chart; with `overwrite` an existing file is replaced, as a whole or not at all. */
mixt_status cli_plot_write(const cli_plot *plot, const char *path, bool overwrite);

#endif
