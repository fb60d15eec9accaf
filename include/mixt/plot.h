/* How do I draw curves? As SVG or PNG files that a browser, a README or a paper can show. */
#ifndef MIXT_PLOT_H
#define MIXT_PLOT_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MIXT_CURVES_MAX = 10 };

typedef struct mixt_curve {
    const char *name;         /**< for the legend */
    const double *x, *y;      /**< points; those that are not finite are left out */
    const double *low, *high; /**< a band around the curve; NULL: none */
    int64_t count;            /**< of points */
    bool dots;                /**< points alone, without a line through them */
} mixt_curve;

typedef struct mixt_plot {
    const char *title, *x_label, *y_label; /**< NULL: none */
    const mixt_curve *curves;              /**< each has a colour of its own; where they meet, all can be seen */
    int curve_count;                       /**< 1 to MIXT_CURVES_MAX */
    bool log_y;                            /**< a logarithmic y axis; points at or below 0 are left out */
} mixt_plot;

/** Whether a chart could be put there: to be asked before the work that it will show. @param overwrite as below. */
MIXT_API mixt_status mixt_plot_check(const char *path, bool overwrite);
/**
 * Writes a chart.
 * @param path of the file: PNG where it ends in .png, else SVG; it comes into its place as a whole or not at all.
 * @param overwrite replace a file that exists; else it is an error.
 * @return MIXT_ERROR_DATA when no curve has two finite points.
 */
MIXT_API mixt_status mixt_plot_write(const mixt_plot *plot, const char *path, bool overwrite);

/**
 * The mean of each number and its neighbours on both sides, of which there are fewer at the ends. Numbers that are not
 * finite stay, and are no part of a mean.
 * @param y `count` numbers.
 * @param window numbers in a mean; 1: each stays as it is. Of an even window one more is taken.
 * @param smooth room for `count` numbers; not `y`.
 */
MIXT_API void mixt_curve_smooth(const double *y, int64_t count, int64_t window, double *smooth);

#ifdef __cplusplus
}
#endif
#endif
