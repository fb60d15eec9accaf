/* Rules by layer over one low format. */
#include "choose/by_layer.h"

#include "choose/trial.h"
#include "mixt/sensitivity.h"

#include <string.h>

/** Batches that the sensitivity analysis looks at. */
enum { BATCHES = 2 };
/** A layer is left low where that takes less than this share of its time in FP32. */
static const double worth = 0.98;

/** The time of a layer's ops in two plans. */
typedef struct layer_time {
    const char *name; // in the first plan's graph
    bool matrix;      // it has matrix work: rules are about that
    double seconds[2];
} layer_time;

typedef struct layer_times {
    layer_time *list;
    int64_t count, capacity;
} layer_times;

static layer_time *find(layer_times *times, const char *name)
{
    for (int64_t i = 0; i < times->count; i++)
        if (!strcmp(times->list[i].name, name))
            return &times->list[i];
    if (!mixt__grow((void **)&times->list, &times->capacity, times->count, sizeof *times->list))
        return NULL;
    layer_time *added = &times->list[times->count++];
    *added = (layer_time){.name = name};
    return added;
}

static mixt_status add_plan(layer_times *times, int which, const mixt_machine *machine, const mixt__executable *plan)
{
    for (int64_t i = 0; i < plan->graph->node_count; i++) {
        const mixt__node *n = &plan->graph->nodes[i];
        layer_time *layer = find(times, n->layer);
        if (!layer)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the times of layers");
        layer->seconds[which] += mixt__cost_op(machine, plan, i).seconds;
        layer->matrix = layer->matrix || n->op->matrix_work;
    }
    return MIXT_OK;
}

/** A rule for one layer; layers that have no name of their own cannot have one. */
static mixt_status keep_full(mixt_policy *policy, const char *layer)
{
    return mixt_policy_add(policy, &(mixt_policy_rule){.layer = layer, .forward = MIXT_DTYPE_FP32});
}

/** Whether a lower format wins nothing there that is worth a cast. */
static bool idle(const layer_time *layer)
{
    return layer->matrix && *layer->name && layer->seconds[1] > worth * layer->seconds[0];
}

static mixt_status make_rules(const layer_times *times, const mixt__contender *low, mixt_policy **policy,
                              int64_t *layers)
{
    int64_t all = 0;
    for (int64_t i = 0; i < times->count; i++) {
        all += times->list[i].matrix;
        *layers += idle(&times->list[i]);
    }
    if (!*layers || *layers == all)
        return MIXT_OK;
    MIXT_TRY(mixt_policy_copy(low->policy, policy));
    for (int64_t i = 0; i < times->count; i++)
        if (idle(&times->list[i]))
            MIXT_TRY(keep_full(*policy, times->list[i].name));
    return MIXT_OK;
}

/** A policy that could not be made whole is none. */
static mixt_status finish(mixt_status status, mixt_policy **policy)
{
    if (status != MIXT_OK) {
        mixt_policy_free(*policy);
        *policy = NULL;
    }
    return status;
}

mixt_status mixt__by_layer_faster(const mixt_advice *advice, mixt_run *run, const mixt__contender *fp32,
                                  const mixt__contender *low, mixt_policy **policy, int64_t *layers)
{
    mixt_trainer *full, *lower;
    layer_times times = {0};
    *policy = NULL;
    *layers = 0;
    MIXT_TRY(mixt__trial_open(run, fp32, 1, &full));
    mixt_status status = mixt__trial_open(run, low, 1, &lower);
    if (status == MIXT_OK) {
        status = add_plan(&times, 0, advice->machine, mixt__trainer_compiled(full->inner));
        if (status == MIXT_OK)
            status = add_plan(&times, 1, advice->machine, mixt__trainer_compiled(lower->inner));
        if (status == MIXT_OK)
            status = finish(make_rules(&times, low, policy, layers), policy);
        mixt__trainer_close(lower);
    }
    mixt__trainer_close(full);
    mixt__free(times.list);
    return status;
}

static mixt_status bearable_rules(const mixt_sensitivity *found, const mixt__contender *low, mixt_policy **policy,
                                  int64_t *layers)
{
    const mixt_sensitivity_row *row;
    MIXT_TRY(mixt_policy_copy(low->policy, policy));
    for (int64_t i = 0; (row = mixt_sensitivity_row_at(found, i)); i++)
        if (row->mode == MIXT_SENSITIVITY_LOWERED && row->format == low->format && !strcmp(row->recommend, "fp32")) {
            MIXT_TRY(keep_full(*policy, row->layer));
            ++*layers;
        }
    return MIXT_OK;
}

mixt_status mixt__by_layer_bearable(mixt_run *run, const mixt__contender *fp32, const mixt__contender *low,
                                    mixt_policy **policy, int64_t *layers)
{
    mixt_trainer *trainer;
    mixt_sensitivity *found = NULL;
    mixt_sensitivity_options options = MIXT_OPTIONS(mixt_sensitivity_options, .trials = BATCHES, .confirm = 0);
    options.formats = mixt_dtype_name(low->format);
    *policy = NULL;
    *layers = 0;
    MIXT_TRY(mixt__trial_open(run, fp32, 1, &trainer));
    mixt_status status = mixt_sensitivity_of(trainer, run->experiment.train, &options, &found);
    if (status == MIXT_OK)
        status = finish(bearable_rules(found, low, policy, layers), policy);
    mixt_sensitivity_free(found);
    mixt__trainer_close(trainer);
    if (status == MIXT_OK && !*layers) {
        mixt_policy_free(*policy);
        *policy = NULL;
    }
    return status;
}
