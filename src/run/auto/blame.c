/* The same batches from the good state on: the same bits, so the same number breaks. */
#include "run/auto/blame.h"

#include "mixt/debug.h"
#include "policy/policy.h"
#include "run/advance.h"

#include <stdio.h>

static mixt_status look(mixt_run *run, int64_t step, mixt_debug **debug)
{
    mixt__experiment *e = &run->experiment;
    if (e->phases.policy && mixt__policy_phase_at(e->phases.policy, run->steer.good.step + 1) != e->phases.current)
        return mixt__fail(MIXT_ERROR_STATE, "another phase lies between"); // whose updates cannot be made here
    MIXT_TRY(mixt__snapshot_restore(mixt__good_states_snapshot(run), e->trainer->inner));
    MIXT_TRY(mixt__advance_to(run, step - 1));
    return mixt_debug_step(e->trainer, e->train, debug);
}

void mixt__blame(mixt_run *run, int64_t step, mixt_finding *finding)
{
    mixt_debug *debug = NULL;
    if (run->group || !mixt__good_states_snapshot(run) || look(run, step, &debug) != MIXT_OK)
        return;
    mixt_debug_info info = mixt_debug_describe(debug);
    const mixt_debug_value *value = info.first_nonfinite >= 0 ? mixt_debug_value_at(debug, info.first_nonfinite) : NULL;
    if (value && !*info.source && *value->layer && mixt_dtype_size(value->dtype) < 4) {
        mixt__finding_words *words = &run->steer.found;
        snprintf(words->layer, sizeof words->layer, "%s", value->layer);
        snprintf(words->text, sizeof words->text, "%.40s of %.80s made it", value->op, value->layer);
        finding->layers[0] = words->layer;
        finding->format = mixt_dtype_name(value->dtype);
        finding->layer_count = 1;
    }
    mixt_debug_free(debug);
}
