/* Compiling a step for each bucket, and turning from one to another. */
#include "train/lengths.h"

#include "data/buckets.h"
#include "graph/op.h"
#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

static int last_of(const mixt__trainer *t)
{
    return t->lengths.count ? t->lengths.count - 1 : 0;
}

void mixt__lengths_take(mixt__trainer *t, const mixt_data *data)
{
    t->lengths.count = mixt__data_bucket_count(data);
    t->lengths.now = last_of(t);
    for (int k = 0; k < t->lengths.count; k++)
        t->lengths.spec[k] = mixt__trainer_spec_as(&mixt__data_bucket_at(data, k)->info, t->settings.batch);
}

bool mixt__lengths_match(const mixt__trainer *t, const mixt_data *data)
{
    bool match = t->lengths.count == mixt__data_bucket_count(data);
    for (int k = 0; match && k < t->lengths.count; k++) {
        mixt__batch_spec spec = mixt__trainer_spec_as(&mixt__data_bucket_at(data, k)->info, t->settings.batch);
        match = mixt__spec_equal(&spec, &t->lengths.spec[k]);
    }
    return match;
}

void mixt__lengths_resize(mixt__trainer *t, int64_t batch)
{
    for (int k = 0; k < t->lengths.count; k++)
        mixt__spec_resize(&t->lengths.spec[k], batch);
}

/* ---- compiling ---- */

/** Whether `whole` reads a parameter in this format too: then there is a copy of it. */
static bool has_copy(const mixt__graph *whole, const mixt__value *v)
{
    for (int32_t i = 1; i < whole->value_count; i++)
        if (whole->values[i].role == MIXT_ROLE_PARAM && whole->values[i].param == v->param &&
            whole->values[i].dtype == v->dtype)
            return true;
    return false;
}

/** Whether two steps are made of the same nodes in the same order. */
static bool same_nodes(const mixt__graph *a, const mixt__graph *b)
{
    bool same = a->node_count == b->node_count;
    for (int64_t i = 0; same && i < a->node_count; i++)
        same = a->nodes[i].op == b->nodes[i].op;
    return same;
}

/** Whether two steps read the arrays of a batch in the same formats: it is rounded for both alike. */
static bool same_formats(const mixt__graph *a, const mixt__graph *b)
{
    for (int i = 0; i < a->array_count; i++)
        if (a->arrays[i].value && a->values[a->arrays[i].value].dtype != b->values[b->arrays[i].value].dtype)
            return false;
    return true;
}

/** What the trainer has laid out for its own step must do for this one. */
static mixt_status check(const mixt__trainer *t, const mixt__graph *whole, const mixt__graph *g)
{
    for (int32_t i = 1; i < g->value_count; i++)
        if (g->values[i].role == MIXT_ROLE_PARAM && g->values[i].dtype != MIXT_DTYPE_FP32 &&
            !has_copy(whole, &g->values[i]))
            return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                              "a shorter batch reads parameter '%s' in %s, the longest does not: set data.buckets=1",
                              g->params[g->values[i].param].name, mixt_dtype_name(g->values[i].dtype));
    if (!same_formats(whole, g))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "a shorter batch is read in other formats than the longest: set data.buckets=1");
    if ((t->ranks.group || t->ranks.planned) && !same_nodes(whole, g)) // who sums gradients counts nodes
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "a shorter batch is computed in another order than the longest, which ranks cannot sum "
                          "gradients of: set data.buckets=1%s",
                          t->settings.recompute_budget ? ", or train.recompute=0" : "");
    return MIXT_OK;
}

void mixt__lengths_free(mixt__length_steps *s)
{
    for (int k = 0; k < MIXT_LENGTHS_MAX; k++) {
        mixt__executable_free(s->step[k]);
        s->step[k] = NULL;
    }
}

mixt_status mixt__lengths_compile(mixt__trainer *t, const mixt__instrument *instrument, mixt__executable *whole,
                                  mixt__length_steps *steps)
{
    mixt__recompute_choice kept = t->recompute;
    mixt_status status = MIXT_OK;
    *steps = (mixt__length_steps){{0}};
    for (int k = 0; k < last_of(t) && status == MIXT_OK; k++) {
        status = mixt__trainer_compile_shape(t, &t->lengths.spec[k], instrument, &steps->step[k]);
        if (status == MIXT_OK)
            status = check(t, whole->graph, steps->step[k]->graph);
        if (status == MIXT_OK)
            mixt__executable_widen(whole, steps->step[k]);
    }
    if (status != MIXT_OK)
        mixt__lengths_free(steps);
    else
        t->recompute = kept; // that of the longest
    return status;
}

void mixt__lengths_attach(mixt__trainer *t)
{
    for (int k = 0; k < last_of(t); k++) {
        mixt__executable *step = t->lengths.steps.step[k];
        mixt__executable_share(step, t->train);
        mixt__sharded_bind(t, step, MIXT_GATHER_TRAIN, mixt__params_gathered(t->params), &t->control->seed);
    }
}

/* ---- running ---- */

void mixt__lengths_select(mixt__trainer *t, int bucket)
{
    t->lengths.now = bucket;
    if (!t->lengths.count)
        return;
    if (t->instrumented)
        t->instrumented = bucket < last_of(t) ? t->lengths.instrumented.step[bucket] : t->lengths.instrumented_whole;
    mixt__batch_spec fed = mixt__spec_fed(&t->lengths.spec[bucket], mixt__lengths_step(t)->graph);
    mixt__feed_reshape(&t->feed, &t->lengths.spec[bucket], &fed, bucket);
}

void mixt__lengths_select_whole(mixt__trainer *t)
{
    mixt__lengths_select(t, last_of(t));
}

mixt__executable *mixt__lengths_step(const mixt__trainer *t)
{
    if (t->instrumenting)
        return t->instrumented;
    return t->lengths.now < last_of(t) ? t->lengths.steps.step[t->lengths.now] : t->train;
}

void mixt__lengths_note(mixt__trainer *t)
{
    t->lengths.slots[t->feed.turn % MIXT_STAGE_SLOTS] = t->lengths.now;
}

static double bytes_of(const mixt__batch_spec *spec)
{
    return (double)(mixt__spec_input_bytes(spec) + mixt__spec_target_bytes(spec));
}

double mixt__lengths_share(const mixt__trainer *t, int64_t step)
{
    int64_t back = t->attempts - step;
    if (!t->lengths.count || back < 0 || back >= MIXT_STAGE_SLOTS || t->feed.turn <= back)
        return 1;
    int bucket = t->lengths.slots[(t->feed.turn - 1 - back) % MIXT_STAGE_SLOTS];
    return bytes_of(&t->lengths.spec[bucket]) / bytes_of(&t->spec);
}

const mixt__batch_spec *mixt__lengths_spec(const mixt__trainer *t)
{
    return t->lengths.count ? &t->lengths.spec[t->lengths.now] : &t->spec;
}

int mixt__lengths_count(const mixt__trainer *t)
{
    return t->lengths.count;
}

const mixt__batch_spec *mixt__lengths_spec_of(const mixt__trainer *t, int bucket)
{
    return &t->lengths.spec[bucket];
}

const mixt__executable *mixt__lengths_step_of(const mixt__trainer *t, int bucket)
{
    return bucket < t->lengths.count - 1 ? t->lengths.steps.step[bucket] : t->train;
}
