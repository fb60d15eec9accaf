#line 497 "docs/c-api.md"
#include <mixt/plot.h>

mixt_status draw(const double *step, const double *loss, int64_t count)
{
    mixt_curve curve = {.name = "loss", .x = step, .y = loss, .count = count};
    mixt_plot plot = {.title = "my run", .curves = &curve, .curve_count = 1, .log_y = true};
    return mixt_plot_write(&plot, "curves.svg", false); // false: an existing file is not replaced
}
