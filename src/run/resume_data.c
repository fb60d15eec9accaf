/* The data of a run that goes on: known again by its checksums wherever it lies now; another set where that is allowed.
 */
#include "run/resume.h"

#include "run/open/inputs.h"
#include "run/open/without_data.h"

#include <stdlib.h>
#include <string.h>

/** Whether a part has the checksum that the run remembers; yes where that is not known. */
static bool is_same(const json_t *inputs, const char *split, uint64_t sum)
{
    const json_t *then = json_object_get(json_object_get(inputs, "trained_on"), split);
    const char *text = json_string_value(json_object_get(then, "checksum"));
    return !text || !sum || strtoull(text, NULL, 16) == sum;
}

/** What of the data is another. */
static const char *what_differs(const mixt_run *run, const json_t *inputs)
{
    const uint64_t *sums = run->experiment.sums;
    bool train = is_same(inputs, "train", sums[0]), val = is_same(inputs, "val", sums[1]);
    return train && val ? "its samples"
           : train      ? "its validation part"
           : val        ? "its training part"
                        : "both of its parts";
}

mixt_status mixt__resume_data_allow(mixt_run *run)
{
    mixt__resume *r = &run->resume;
    if (!r->data_allowed)
        return MIXT_OK;
    MIXT_TRY(mixt__run_inputs_read(r->run, &r->inputs));
    run->experiment.remembered = r->inputs;
    return MIXT_OK;
}

static mixt_status refuse(const mixt_run *run, const json_t *inputs, const char *before, const char *now)
{
    return mixt__fail(
        MIXT_ERROR_DATA,
        "%s cannot resume with other data than it was begun with: %s at %s differ from what they were: %s -> "
        "%s. Name where the run's own data lies now with data.path=…, or take the changed set with --allow "
        "data",
        run->resume.run, what_differs(run, inputs), mixt__config_string(run->config, MIXT_KEY_DATA_PATH), before, now);
}

mixt_status mixt__resume_data_check(mixt_run *run, const char *before, const char *now)
{
    mixt__resume *r = &run->resume;
    mixt__experiment *e = &run->experiment;
    if (!before || !now || !strcmp(before, now))
        return MIXT_OK;
    if (!r->data_allowed) {
        json_t *inputs = NULL;
        if (mixt__run_inputs_read(r->run, &inputs) != MIXT_OK)
            inputs = NULL;
        mixt_status status = refuse(run, inputs, before, now);
        json_decref(inputs);
        return status;
    }
    if (e->remembered_facts)
        MIXT_TRY(mixt__without_data_check(run->config, r->run, e->remembered_facts, e->train));
    mixt__run_note(run, true,
                   "%s continues with other data than it was begun with: %s -> %s (normalised as the run's was)",
                   r->run, before, now);
    return MIXT_OK;
}

mixt_status mixt__resume_data_begun(mixt_run *run)
{
    json_t *inputs;
    const mixt__resume *r = &run->resume;
    if (r->data_allowed)
        return MIXT_OK;
    MIXT_TRY(mixt__run_inputs_read(r->run, &inputs));
    const uint64_t *sums = mixt__experiment_sums(&run->experiment);
    bool same = is_same(inputs, "train", sums[0]) && is_same(inputs, "val", sums[1]);
    mixt_status status = same ? MIXT_OK : refuse(run, inputs, "one checksum", "another");
    json_decref(inputs);
    return status;
}
