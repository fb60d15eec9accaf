/* Timing the ops of a step, and counting what each of them moves and computes. */
#include "cli/profile.h"

#include "ops/ops.h"

#include <math.h>
#include <string.h>

/** The kind of work of an op by the start of its name; the first that fits. */
static const struct {
    const char *start;
    cli_work work;
} kinds[] = {
    {"matmul", CLI_WORK_PRODUCTS},
    {"attention", CLI_WORK_ATTENTION},
    {"conv2d", CLI_WORK_CONVOLUTION},
    {"lstm", CLI_WORK_RECURRENT},
    {"batch_norm", CLI_WORK_NORMS},
    {"layer_norm", CLI_WORK_NORMS},
    {"pointwise", CLI_WORK_POINTWISE},
    {"accumulate", CLI_WORK_POINTWISE},
    {"cross_entropy", CLI_WORK_LOSS},
    {"head_step", CLI_WORK_LOSS},
    {"mse", CLI_WORK_LOSS},
    {"bce", CLI_WORK_LOSS},
    {"", CLI_WORK_OTHER},
};

static cli_work work_of(const char *op)
{
    size_t i = 0;
    while (strncmp(op, kinds[i].start, strlen(kinds[i].start)))
        i++;
    return kinds[i].work;
}

static double value_bytes(const mixt__value *v)
{
    return (double)mixt__shape_count(&v->shape) * (double)mixt_dtype_size(v->dtype);
}

/** What a node touches of a value: of an embedding's table only as many rows as there are indices. */
static double touched_bytes(const mixt__graph *g, const mixt__node *n, int32_t id)
{
    const mixt__value *v = &g->values[id];
    bool read = n->op == &mixt__op_embedding && id == n->in[0];
    bool added = n->op == &mixt__op_embedding_grad && id == n->out[0] && n->accumulates & 1;
    double whole = value_bytes(v);
    if (!read && !added)
        return whole;
    const mixt__value *rows = &g->values[read ? n->out[0] : n->in[1]];
    double part = (double)mixt__shape_count(&rows->shape) * (double)mixt_dtype_size(v->dtype);
    return part < whole ? part : whole;
}

/** Each input read and each output written once; an output that is added to is read too. */
static double node_bytes(const mixt__graph *g, const mixt__node *n)
{
    double bytes = 0;
    for (int k = 0; k < n->in_count; k++) {
        bool again = false;
        for (int earlier = 0; earlier < k; earlier++)
            again = again || n->in[earlier] == n->in[k];
        bytes += again ? 0 : touched_bytes(g, n, n->in[k]);
    }
    for (int o = 0; o < n->out_count; o++)
        bytes += touched_bytes(g, n, n->out[o]) * (n->accumulates >> o & 1 ? 2 : 1);
    return bytes;
}

static cli_profile_row node_row(const mixt__executable *x, int64_t i)
{
    const mixt__node *n = &x->graph->nodes[i];
    cli_profile_row row = {.layer = n->layer, .op = n->op->name, .kernel = x->choices[i].kernel->name};
    row.backward = n->backward;
    row.work = work_of(n->op->name);
    row.matrix = n->op->matrix_work;
    row.format = n->in_count ? x->graph->values[n->in[0]].dtype : MIXT_DTYPE_FP32;
    if (row.format == MIXT_DTYPE_FP32 && n->arithmetic == MIXT_DTYPE_TF32)
        row.format = MIXT_DTYPE_TF32;
    row.tensor_cores = row.matrix && x->calls[i].tensor_cores;
    row.seconds = x->seconds[i] / (double)x->profiled_runs;
    row.flops = mixt__node_flops(x->graph, n);
    row.bytes = node_bytes(x->graph, n);
    return row;
}

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
    mixt_status (*run)(const mixt__update *update);
    double bytes;
} pass;

enum { PASSES = 3 };

/** The passes that end a step, as rows of their own. */
static mixt_status time_update(const mixt__trainer *t, int64_t runs, cli_profile_row rows[PASSES])
{
    const mixt__update *u = &t->update;
    const mixt__backend *b = t->backend;
    double elements = (double)u->total, moments = mixt__optimizer_moments(&u->optimizer);
    const pass passes[PASSES] = {
        {"gradient_stats", b->gradient_stats, 4 * elements},
        {"step_control", b->step_control, 0},
        // reads the gradients, reads and writes masters and moments, writes the working copies
        {"optimizer_step", b->optimizer_step, 4 * elements * (3 + 2 * moments) + copy_bytes(u)},
    };
    for (int64_t r = 0; r < runs; r++) {
        MIXT_TRY(b->mark(0));
        for (int i = 0; i < PASSES; i++) {
            const pass *p = &passes[i];
            MIXT_TRY(p->run(u));
            MIXT_TRY(b->mark(i + 1));
        }
        for (int i = 0; i < PASSES; i++) {
            double seconds;
            MIXT_TRY(b->between(i, i + 1, &seconds));
            rows[i].seconds += seconds / (double)runs;
        }
    }
    for (int i = 0; i < PASSES; i++) {
        rows[i].layer = "update";
        rows[i].op = passes[i].name;
        rows[i].kernel = b->name;
        rows[i].work = CLI_WORK_OPTIMIZER;
        rows[i].format = MIXT_DTYPE_FP32;
        rows[i].bytes = passes[i].bytes;
    }
    return MIXT_OK;
}

static mixt_status time_nodes(mixt__trainer *t, const void *input, const void *target, int64_t runs)
{
    const uint64_t host_key = 1;
    mixt__run run = {.input = input, .target = target};
    run.rng_key = t->backend->host_memory ? &host_key : mixt__feed_key(&t->feed, 0);
    MIXT_TRY(mixt__executable_run(t->train, &run)); // what is done the first time only stays out of the figures
    MIXT_TRY(t->backend->synchronize());
    MIXT_TRY(mixt__executable_profile(t->train, true));
    for (int64_t r = 0; r < runs; r++)
        MIXT_TRY(mixt__executable_run(t->train, &run));
    return t->backend->synchronize();
}

mixt_status cli_profile_run(mixt_trainer *trainer, const void *input, const void *target, int64_t runs,
                            cli_profile *profile)
{
    mixt__trainer *t = &trainer->core;
    mixt__executable *x = t->train;
    *profile = (cli_profile){.rows = mixt__alloc((size_t)(x->graph->node_count + PASSES) * sizeof *profile->rows)};
    if (!profile->rows)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the profile");
    profile->limits = t->backend->describe && t->backend->describe(&profile->device) == MIXT_OK;
    mixt_status status = time_nodes(t, input, target, runs);
    for (int64_t i = 0; status == MIXT_OK && i < x->graph->node_count; i++)
        if (!x->graph->nodes[i].alias)
            profile->rows[profile->count++] = node_row(x, i);
    (void)mixt__executable_profile(x, false);
    if (status == MIXT_OK)
        status = time_update(t, runs, &profile->rows[profile->count]);
    profile->count += PASSES;
    for (int64_t i = 0; status == MIXT_OK && i < profile->count; i++)
        profile->seconds += profile->rows[i].seconds;
    return status;
}

void cli_profile_free(cli_profile *profile)
{
    mixt__free(profile->rows);
    *profile = (cli_profile){0};
}

double cli_profile_share(const cli_profile *profile, const cli_profile_row *row)
{
    if (!profile->limits || !(row->seconds > 0))
        return NAN;
    double rate = profile->device.flops[row->tensor_cores ? row->format : MIXT_DTYPE_FP32];
    double compute = rate > 0 ? row->flops / row->seconds / rate : 0;
    double traffic = row->bytes / row->seconds / profile->device.bytes_s;
    return compute > traffic ? compute : traffic;
}
