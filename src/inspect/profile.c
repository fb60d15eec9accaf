/* Times the ops of a step and the passes that end it, and counts what each of them moves and computes. */
#include "inspect/profile.h"

#include "graph/op.h"
#include "train/integrity.h"
#include "train/lengths.h"

#include <math.h>

struct mixt_profile {
    mixt__handle handle;
    mixt_profile_row *rows;
    mixt_profile_info info;
    mixt_gpu_info device; // with info.limits
    mixt__arena arena;    // names of layers, which outlive the trainer
};

/* ---- nodes ---- */

static mixt_status node_row(const mixt__executable *x, int64_t i, mixt__arena *arena, mixt_profile_row *row)
{
    const mixt__node *n = &x->graph->nodes[i];
    *row = (mixt_profile_row){.op = n->op->name, .kernel = x->choices[i].kernel->name, .backward = n->backward};
    row->recomputed = n->recomputed;
    row->layer = mixt__arena_strdup(arena, n->layer);
    if (!row->layer)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the profile");
    row->work = n->op->work;
    row->matrix = n->op->matrix_work;
    row->format = n->in_count ? x->graph->values[n->in[0]].dtype : MIXT_DTYPE_FP32;
    if (row->format == mixt__dtype_carrier(n->arithmetic))
        row->format = n->arithmetic;
    row->tensor_cores = row->matrix && x->calls[i].tensor_cores;
    row->seconds = x->seconds[i] / (double)x->profiled_runs;
    row->flops = mixt__node_flops(x->graph, n);
    row->bytes = mixt__node_bytes(x->graph, n);
    return MIXT_OK;
}

static mixt_status time_nodes(mixt__trainer *t, const void *input, const void *target, int64_t runs)
{
    mixt__run run = {.input = input, .target = target, .rng_key = mixt__trainer_any_key(t)};
    MIXT_TRY(mixt__executable_run(mixt__trainer_compiled(t),
                                  &run)); // what is done the first time only stays out of the figures
    MIXT_TRY(mixt__device_synchronize(mixt__trainer_device(t)));
    MIXT_TRY(mixt__executable_profile(mixt__trainer_compiled(t), true));
    for (int64_t r = 0; r < runs; r++)
        MIXT_TRY(mixt__executable_run(mixt__trainer_compiled(t), &run));
    return mixt__device_synchronize(mixt__trainer_device(t));
}

/* ---- the update ---- */

/** Bytes of the working copies, which the optimizer writes. */
static double copy_bytes(const mixt__update *u)
{
    double bytes = 0;
    for (int64_t i = 0; i < u->segment_count; i++)
        if (u->segments[i].low != MIXT_DTYPE_NONE)
            bytes += (double)u->segments[i].count * (double)mixt_dtype_size(u->segments[i].low);
    return bytes;
}

typedef struct pass {
    const char *name;
    mixt_status (*run)(mixt__device *device, const mixt__update *update);
    double bytes;
} pass;

enum { PASSES = 3 };

/** The passes that end a step, as rows of their own. */
static mixt_status time_update(mixt__trainer *t, int64_t runs, mixt_profile_row rows[PASSES])
{
    const mixt__update *u = mixt__trainer_update(t);
    mixt__device *b = mixt__trainer_device(t);
    double elements = (double)u->total, moved = 4 * 3;
    for (int i = 0; i < mixt__optimizer_moments(&u->optimizer); i++)
        moved += 2 * (double)mixt_dtype_size(u->moments[i].format);
    const pass passes[PASSES] = {
        {"gradient_stats", b->backend->gradient_stats, 4 * elements},
        {"step_control", b->backend->step_control, 0},
        // reads the gradients, reads and writes weights and moments, writes the working copies
        {"optimizer_step", b->backend->optimizer_step, moved * elements + copy_bytes(u)},
    };
    for (int64_t r = 0; r < runs; r++) {
        MIXT_TRY(mixt__device_mark(b, 0));
        for (int i = 0; i < PASSES; i++) {
            const pass *p = &passes[i];
            MIXT_TRY(p->run(b, u));
            MIXT_TRY(mixt__device_mark(b, i + 1));
        }
        for (int i = 0; i < PASSES; i++) {
            double seconds;
            MIXT_TRY(mixt__device_between(b, i, i + 1, &seconds));
            rows[i].seconds += seconds / (double)runs;
        }
    }
    for (int i = 0; i < PASSES; i++) {
        rows[i].layer = "update";
        rows[i].op = passes[i].name;
        rows[i].kernel = b->backend->name;
        rows[i].work = MIXT_WORK_OPTIMIZER;
        rows[i].format = MIXT_DTYPE_FP32;
        rows[i].bytes = passes[i].bytes;
    }
    mixt__integrity_renew_later(t); // no step has made them
    return MIXT_OK;
}

/* ---- shares of the device's limits ---- */

static double limit_share(const mixt_profile *p, const mixt_profile_row *row)
{
    if (!p->info.limits || !(row->seconds > 0))
        return NAN;
    double rate = p->device.flops[row->tensor_cores ? row->format : MIXT_DTYPE_FP32];
    double compute = rate > 0 ? row->flops / row->seconds / rate : 0;
    double traffic = row->bytes / row->seconds / p->device.bytes_s;
    return compute > traffic ? compute : traffic;
}

/** Sums and shares of rows that are all there. */
static void sum_up(mixt_profile *p)
{
    double all = 0, tensor = 0;
    for (int64_t i = 0; i < p->info.rows; i++) {
        mixt_profile_row *r = &p->rows[i];
        p->info.seconds += r->seconds;
        all += r->matrix ? r->flops : 0;
        tensor += r->tensor_cores ? r->flops : 0;
        r->limit_share = limit_share(p, r);
    }
    p->info.tensor_cores = all > 0 ? tensor / all : (double)NAN;
}

/* ---- making ---- */

static mixt_status fill(mixt_profile *p, const mixt__resident *batches, int64_t runs)
{
    mixt__trainer *t = batches->trainer;
    mixt__executable *x = mixt__trainer_compiled(t);
    p->info.limits = mixt__trainer_device(t)->backend->describe &&
                     mixt__device_describe(mixt__trainer_device(t), &p->device) == MIXT_OK;
    mixt_status status = time_nodes(t, batches->at[0][0], batches->at[0][1], runs);
    for (int64_t i = 0; status == MIXT_OK && i < x->graph->node_count; i++)
        if (!x->graph->nodes[i].alias)
            status = node_row(x, i, &p->arena, &p->rows[p->info.rows++]);
    (void)mixt__executable_profile(x, false);
    MIXT_TRY(status);
    MIXT_TRY(time_update(t, runs, &p->rows[p->info.rows]));
    p->info.rows += PASSES;
    sum_up(p);
    return MIXT_OK;
}

mixt_status mixt__profile_run(const mixt__resident *batches, int64_t runs, mixt_profile **profile)
{
    const mixt__trainer *t = batches->trainer;
    *profile = NULL;
    mixt_profile *p = mixt__alloc(sizeof *p);
    if (p)
        mixt__handle_add(&p->handle, p, "profile", NULL);
    if (p)
        p->rows = mixt__alloc((size_t)(mixt__trainer_compiled(t)->graph->node_count + PASSES) * sizeof *p->rows);
    mixt_status status =
        p && p->rows ? fill(p, batches, runs) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the profile");
    if (status == MIXT_OK)
        *profile = p;
    else
        mixt_profile_free(p);
    return status;
}

static mixt_status profile_new(mixt__trainer *t, const mixt_data *data, int64_t runs, mixt_profile **profile)
{
    MIXT_TRY(mixt__need_made(data, "data"));
    if (runs < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld runs of a profile: at least 1", (long long)runs);
    if (!mixt__trainer_compiled(t))
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: mixt_trainer_compile(trainer, data)");
    mixt__batch_spec spec = mixt__trainer_spec_of(data, mixt__trainer_settings_of(t)->batch);
    if (!mixt__spec_equal(&spec, mixt__trainer_spec(t)))
        return mixt__fail(MIXT_ERROR_SHAPE, "profile: the data has other shapes than the compiled trainer");
    mixt__resident batches;
    MIXT_TRY(mixt__resident_open_pass(&batches, t, data));
    mixt_status status = mixt__profile_run(&batches, runs, profile);
    mixt__resident_close(&batches);
    return status;
}

mixt_status mixt_profile_new(mixt_trainer *t, const mixt_data *data, int64_t runs, mixt_profile **profile)
{
    MIXT_TRY(mixt__need(profile));
    *profile = NULL;
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, profile_new(t->inner, data, runs, profile));
}

void mixt_profile_free(mixt_profile *p)
{
    if (!p || mixt__need_open(p, "profile") != MIXT_OK)
        return;
    mixt__handle_remove(p);
    mixt__arena_free(&p->arena);
    mixt__free(p->rows);
    mixt__free(p);
}

/* ---- reading ---- */

mixt_profile_info mixt_profile_describe(const mixt_profile *p)
{
    return mixt__need_open(p, "profile") == MIXT_OK ? p->info : (mixt_profile_info){.tensor_cores = NAN};
}

const mixt_profile_row *mixt_profile_at(const mixt_profile *p, int64_t index)
{
    return mixt__need_open(p, "profile") == MIXT_OK && index >= 0 && index < p->info.rows ? &p->rows[index] : NULL;
}

mixt_profile_sum mixt_profile_work(const mixt_profile *p, mixt_work work)
{
    mixt_profile_sum sum = {0};
    double bound = 0; // seconds that the device's limits alone would take
    bool open = mixt__need_open(p, "profile") == MIXT_OK;
    for (int64_t i = 0; open && i < p->info.rows; i++) {
        const mixt_profile_row *r = &p->rows[i];
        if (r->work != work)
            continue;
        sum.seconds += r->seconds;
        sum.flops += r->flops;
        sum.bytes += r->bytes;
        bound += p->info.limits && r->seconds > 0 ? r->limit_share * r->seconds : 0;
        sum.ops++;
    }
    sum.limit_share = open && p->info.limits && sum.ops ? bound / sum.seconds : (double)NAN;
    return sum;
}
