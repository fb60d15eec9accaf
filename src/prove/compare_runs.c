/* Two finished runs side by side: their figures, and why there is no verdict. */
#include "prove/compare.h"

#include "base/status.h"
#include "mixt/run.h"
#include "prove/prove.h"

#include <math.h>
#include <stdio.h>

static mixt_status open_run(mixt_comparison *c, const char *folder, mixt_compare_side side)
{
    MIXT_TRY(mixt_run_folder_config(folder, &c->configs[side]));
    const mixt_config *config = c->configs[side];
    mixt_compare_run *run = &c->pairs[0].runs[side];
    MIXT_TRY(mixt__compare_measure(
        folder, mixt__config_int(config, MIXT_KEY_TRAIN_BATCH) * mixt__config_int(config, MIXT_KEY_TRAIN_ACCUMULATE),
        run));
    run->diverged = !isfinite(run->train_loss);
    c->pairs[0].done[side] = true;
    return MIXT_OK;
}

static mixt_status read_runs(mixt_comparison *c, const char *a, const char *b, const mixt_compare_options *o)
{
    MIXT_TRY(mixt__compare_take_options(c, o));
    MIXT_TRY(mixt__compare_state_grow(c, 1));
    MIXT_TRY(open_run(c, a, MIXT_COMPARE_A));
    MIXT_TRY(open_run(c, b, MIXT_COMPARE_B));
    MIXT_TRY(mixt__compare_find_changes(c));
    MIXT_TRY(mixt__prove_same_data(a, b));
    if (!c->pairs[0].runs[0].diverged && !c->pairs[0].runs[1].diverged)
        MIXT_TRY(mixt__compare_equal(a, b, c->pairs[0].runs));
    c->info.needed = MIXT_STATS_PAIRS_MIN;
    MIXT_TRY(mixt__compare_conclude(c));
    bool paired = mixt__config_int(c->configs[0], MIXT_KEY_SEED) == mixt__config_int(c->configs[1], MIXT_KEY_SEED);
    c->info.verdict = MIXT_STATS_UNDECIDED;
    snprintf(c->reason, sizeof c->reason,
             "one run of each%s does not show how much runs differ by chance: at least %d pairs are needed; 'mixt "
             "compare %.200s/config.yaml %.200s/config.yaml' makes them",
             paired ? "" : ", with different seeds,", MIXT_STATS_PAIRS_MIN, a, b);
    snprintf(c->advice, sizeof c->advice, "keep A until there are more pairs");
    return MIXT_OK;
}

mixt_status mixt_compare_runs(const char *a, const char *b, const mixt_compare_options *options,
                              mixt_comparison **comparison)
{
    mixt_comparison *c;
    MIXT_TRY(mixt__need(comparison));
    *comparison = NULL;
    MIXT_TRY(mixt__need(a));
    MIXT_TRY(mixt__need(b));
    MIXT_TRY(mixt__compare_new(&c));
    mixt_status status = read_runs(c, a, b, options);
    if (status == MIXT_OK)
        *comparison = c;
    else
        mixt_comparison_free(c);
    return status;
}
