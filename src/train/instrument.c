/* Compiling and running the instrumented step, reading what it saw. */
#include "train/instrument.h"

#include "graph/op.h"
#include "ops/ops.h"
#include "train/lengths.h"
#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

static void attach(mixt__trainer *t, mixt__executable *instrumented)
{
    mixt__executable_share(instrumented, t->train);
    instrumented->side = t->layers.device;
    mixt__sharded_bind(t, instrumented, MIXT_GATHER_INSTRUMENTED, mixt__params_gathered(t->params), &t->control->seed);
}

void mixt__trainer_attach_instrumented(mixt__trainer *t)
{
    if (!t->instrumented)
        return;
    attach(t, t->lengths.instrumented_whole);
    for (int k = 0; k < MIXT_LENGTHS_MAX; k++)
        if (t->lengths.instrumented.step[k])
            attach(t, t->lengths.instrumented.step[k]);
}

/** Gives the plain step memory that holds the instrumented one too. */
static mixt_status grow(mixt__trainer *t)
{
    MIXT_TRY(mixt__trainer_read_control(t)); // nothing that was issued uses the memory any more
    mixt__feed_forget(&t->feed);
    size_t before = mixt__device_allocated(t->device);
    mixt__executable_release(t->train);
    mixt__executable_widen(t->train, t->lengths.instrumented_whole);
    mixt_status status = mixt__executable_allocate(t->train);
    t->allocated += mixt__device_allocated(t->device) - before; // it may wrap around and back
    t->broken = status != MIXT_OK;
    MIXT_TRY(status);
    mixt__sharded_bind(t, t->train, MIXT_GATHER_TRAIN, mixt__params_gathered(t->params), &t->control->seed);
    mixt__lengths_attach(t);
    mixt__trainer_attach_instrumented(t);
    return MIXT_OK;
}

static int64_t count_of(const mixt__executable *instrumented)
{
    int64_t count = 0;
    for (int64_t i = 0; i < instrumented->graph->node_count; i++)
        count += instrumented->graph->nodes[i].op == &mixt__op_tensor_stats;
    return count;
}

static bool has_room(const mixt__trainer *t)
{
    return t->instrumented->plan.arena_bytes <= t->train->plan.arena_bytes &&
           t->instrumented->workspace_bytes <= t->train->workspace_bytes;
}

/** Of layers all memory was planned with the plain step's: that it suffices is what planning says. */
static mixt_status check_planned(const mixt__trainer *t)
{
    if (has_room(t) && t->instrumented->plan.side_bytes <= mixt__trainer_layer_bytes(t))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_STATE, "a step with statistics of layers needs more memory than was planned");
}

/** Whether the instrumented steps of all lengths look at the same values in the same order. */
static bool are_alike(const mixt__trainer *t)
{
    for (int k = 0; k < MIXT_LENGTHS_MAX; k++) {
        const mixt__executable *step = t->lengths.instrumented.step[k], *whole = t->lengths.instrumented_whole;
        if (step && (step->plan.side_bytes != whole->plan.side_bytes || count_of(step) != count_of(whole)))
            return false;
    }
    return true;
}

/** The step in all its lengths, instrumented. */
static mixt_status compile(mixt__trainer *t, const mixt__instrument *instrument)
{
    mixt__executable *whole;
    MIXT_TRY(mixt__trainer_compile_step(t, instrument, &whole));
    t->instrumented = t->lengths.instrumented_whole = whole;
    mixt_status status = mixt__lengths_compile(t, instrument, whole, &t->lengths.instrumented);
    if (status == MIXT_OK && !are_alike(t))
        status = mixt__fail(MIXT_ERROR_UNSUPPORTED,
                            "batches of several lengths cannot be inspected together: set data.buckets=1");
    if (status != MIXT_OK)
        mixt__trainer_drop_instrumented(t);
    return status;
}

mixt_status mixt__trainer_instrument(mixt__trainer *t, const mixt__instrument *instrument)
{
    if (!t->train)
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: it does not know its values");
    mixt__trainer_drop_instrumented(t);
    MIXT_TRY(compile(t, instrument));
    t->layers.running = instrument->layers;
    mixt_status status = instrument->layers ? check_planned(t) : MIXT_OK;
    if (status == MIXT_OK)
        status = mixt__sharded_plan_reading(t, t->instrumented, MIXT_GATHER_INSTRUMENTED);
    if (status == MIXT_OK && t->control && has_room(t))
        mixt__trainer_attach_instrumented(t);
    else if (status == MIXT_OK && t->control)
        status = grow(t);
    else
        mixt__executable_widen(t->train, t->instrumented);
    if (status != MIXT_OK)
        mixt__trainer_drop_instrumented(t);
    return status;
}

void mixt__trainer_drop_instrumented(mixt__trainer *t)
{
    mixt__feed_forget_step(&t->feed, MIXT_FEED_WATCHED);
    mixt__executable_free(t->lengths.instrumented_whole);
    mixt__lengths_free(&t->lengths.instrumented);
    t->instrumented = t->lengths.instrumented_whole = NULL;
    t->instrumenting = t->layers.running = false;
}

mixt_status mixt__trainer_instrument_next(mixt__trainer *t)
{
    if (!t->instrumented)
        return mixt__fail(MIXT_ERROR_STATE, "no step is compiled that could be instrumented");
    t->instrumenting = true;
    return MIXT_OK;
}

/** The node that looks at value number `index`; NULL: there are fewer. */
static const mixt__node *find(const mixt__trainer *t, int64_t index)
{
    const mixt__graph *g = t->instrumented ? t->instrumented->graph : NULL;
    for (int64_t i = 0; g && i < g->node_count; i++)
        if (g->nodes[i].op == &mixt__op_tensor_stats && index-- == 0)
            return &g->nodes[i];
    return NULL;
}

int64_t mixt__trainer_instrumented_count(const mixt__trainer *t)
{
    return t->instrumented ? count_of(t->instrumented) : 0;
}

mixt_status mixt__trainer_instrumented_describe(const mixt__trainer *t, int64_t index, const mixt__node **node,
                                                mixt__instrumented_value *value)
{
    const mixt__node *n = *node = index >= 0 ? find(t, index) : NULL;
    if (!n)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "no value number %lld is instrumented", (long long)index);
    const mixt__value *v = &t->instrumented->graph->values[n->in[0]];
    const mixt__node *maker = n - 1; // statistics stand behind the node that makes their value
    while (maker->op == &mixt__op_tensor_stats)
        maker--;
    *value = (mixt__instrumented_value){.layer = n->layer, .op = maker->op->name, .name = v->name, .dtype = v->dtype};
    value->value = n->in[0];
    value->maker = maker;
    value->backward = n->backward;
    value->gradient = v->role == MIXT_ROLE_GRAD;
    return MIXT_OK;
}

mixt_status mixt__trainer_instrumented_read(const mixt__trainer *t, int64_t index, mixt__instrumented_value *value)
{
    const mixt__node *n;
    MIXT_TRY(mixt__trainer_instrumented_describe(t, index, &n, value));
    MIXT_TRY(mixt__device_download(t->device, value->numbers, mixt__executable_address(t->instrumented, n->out[0]),
                                   sizeof value->numbers));
    return mixt__device_download(t->device, value->counts, mixt__executable_address(t->instrumented, n->out[1]),
                                 sizeof value->counts);
}

const mixt__graph *mixt__trainer_instrumented_graph(const mixt__trainer *t)
{
    return t->instrumented ? t->instrumented->graph : NULL;
}
