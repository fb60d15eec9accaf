/* Direct replay: FP32 and another policy run on the same batches from the same weights, and compared.
 *
 * FP32's outputs and gradients of all batches stay in host memory; a policy's are compared with them there, in FP64, on
 * all threads: part by part, parts added up in order, so that the figures do not depend on the number of threads. The
 * updates compared are those that the optimizer would make next, from the moments that the trainer has, without weight
 * decay, which is the same on both sides.
 */
#include "choose/sensitivity.h"

#include "base/rng.h"
#include "base/threads.h"
#include "num/num.h"
#include "ops/ops.h"
#include "passes/instrument.h"

#include <math.h>
#include <string.h>

enum { PART = 1 << 14 }; // numbers that one thread adds up at a time

static int64_t parts_of(int64_t count)
{
    return (count + PART - 1) / PART;
}

static int64_t part_end(int64_t part, int64_t count)
{
    return (part + 1) * PART < count ? (part + 1) * PART : count;
}

mixt__shadow_batch mixt__replay_batch(const mixt__replay *r, int64_t trial)
{
    mixt__shadow_batch b = {.input = r->inputs + (size_t)trial * r->input_bytes,
                            .target = r->targets + (size_t)trial * r->target_bytes,
                            .scale = r->scale};
    b.key = mixt__rng_key(mixt__trainer_settings_of(r->trainer)->seed, MIXT_RNG_STREAM_PASS,
                          (uint64_t)(mixt__trainer_runs(r->trainer) + trial));
    return b;
}

/** Batches from where training would go on. */
static mixt_status read_batches(mixt__replay *r, const mixt_data *data)
{
    int64_t next = mixt__trainer_position(r->trainer) * (mixt__trainer_settings_of(r->trainer)->batch / r->batch);
    for (int64_t i = 0; i < r->trials; i++)
        MIXT_TRY(mixt_data_batch(data, r->batch, next + i, r->inputs + (size_t)i * r->input_bytes,
                                 r->targets + (size_t)i * r->target_bytes));
    return MIXT_OK;
}

static mixt_status read_moments(mixt__replay *r)
{
    const mixt__params *params = mixt__trainer_params(r->trainer);
    for (int m = 0; m < 2; m++) {
        const mixt__param_role *role = &params->roles[MIXT_PARAM_MOMENT1 + m];
        if (!role->data)
            continue;
        r->moments[m] = mixt__alloc_uninit((size_t)params->roles[MIXT_PARAM_WEIGHT].here * sizeof *r->moments[m]);
        if (!r->moments[m])
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the optimizer's moments");
        MIXT_TRY(mixt__params_read_moment(params, m, r->moments[m]));
    }
    return MIXT_OK;
}

mixt_status mixt__replay_open(mixt__replay *r, mixt__trainer *trainer, const mixt_data *data, int64_t batch,
                              int64_t trials)
{
    size_t n = (size_t)trials;
    *r = (mixt__replay){.trainer = trainer, .batch = batch, .trials = trials, .scale = 1};
    r->input_bytes = mixt_data_input_bytes(data, batch);
    r->target_bytes = mixt_data_target_bytes(data, batch);
    r->inputs = mixt__alloc(n * r->input_bytes);
    r->targets = mixt__alloc(n * r->target_bytes);
    r->gradients = mixt__alloc_uninit(n * (size_t)mixt__trainer_params(trainer)->total * sizeof *r->gradients);
    r->losses = mixt__alloc(n * sizeof *r->losses);
    r->norms = mixt__alloc(n * sizeof *r->norms);
    r->low = mixt__alloc_uninit((size_t)mixt__trainer_params(trainer)->total * sizeof *r->low);
    r->sums = mixt__alloc((size_t)parts_of(mixt__trainer_params(trainer)->total) * sizeof *r->sums);
    if (!r->inputs || !r->targets || !r->gradients || !r->losses || !r->norms || !r->low || !r->sums)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the gradients of %lld batches", (long long)trials);
    MIXT_TRY(read_moments(r));
    return read_batches(r, data);
}

void mixt__replay_close(mixt__replay *r)
{
    mixt__free(r->inputs);
    mixt__free(r->targets);
    mixt__free(r->gradients);
    mixt__free(r->outputs);
    mixt__free(r->losses);
    mixt__free(r->norms);
    mixt__free(r->low);
    mixt__free(r->sums);
    mixt__free(r->low_outputs);
    for (int m = 0; m < 2; m++)
        mixt__free(r->moments[m]);
    *r = (mixt__replay){0};
}

static mixt_status take_outputs(mixt__replay *r, const mixt__shadow *shadow)
{
    if (r->outputs)
        return MIXT_OK;
    r->logits = mixt__shadow_logit_count(shadow);
    r->outputs = mixt__alloc_uninit((size_t)(r->trials * r->logits) * sizeof *r->outputs);
    r->low_outputs = mixt__alloc_uninit((size_t)r->logits * sizeof *r->low_outputs);
    return r->outputs && r->low_outputs ? MIXT_OK
                                        : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the outputs of a batch");
}

/** Numbers that are multiplied, and the sums of their squares. */
typedef struct scaled {
    float *numbers;
    int64_t count;
    float factor;
    double *sums;
} scaled;

static void scale_parts(void *argument, int64_t begin, int64_t end, int thread)
{
    const scaled *x = argument;
    (void)thread;
    for (int64_t part = begin; part < end; part++) {
        double squares = 0;
        for (int64_t i = part * PART; i < part_end(part, x->count); i++) {
            x->numbers[i] *= x->factor;
            squares += (double)x->numbers[i] * (double)x->numbers[i];
        }
        x->sums[part] = squares;
    }
}

/** The gradients of a shadow's last run without the loss scale, and their length: not finite where one of them is not.
 */
static mixt_status take_gradients(mixt__replay *r, const mixt__shadow *shadow, float *gradients, double *norm)
{
    scaled x = {gradients, mixt__trainer_params(r->trainer)->total, 1 / r->scale, r->sums};
    double squares = 0;
    MIXT_TRY(mixt__shadow_gradients(shadow, 0, x.count, gradients));
    mixt__parallel(parts_of(x.count), 1, scale_parts, &x);
    for (int64_t i = 0; i < parts_of(x.count); i++)
        squares += x.sums[i];
    *norm = sqrt(squares);
    return MIXT_OK;
}

mixt_status mixt__replay_take(mixt__replay *r, const mixt__shadow *shadow, int64_t trial)
{
    MIXT_TRY(take_outputs(r, shadow));
    MIXT_TRY(mixt__shadow_logits(shadow, r->outputs + trial * r->logits));
    r->flops += mixt__executable_flops(shadow->executable, true);
    return take_gradients(r, shadow, r->gradients + trial * mixt__trainer_params(r->trainer)->total, &r->norms[trial]);
}

mixt_status mixt__replay_reference(mixt__replay *r)
{
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__shadow_options options = {.policy = &fp32, .batch = r->batch, .keep_logits = true};
    mixt__shadow *shadow;
    MIXT_TRY(mixt__shadow_new(r->trainer, &options, &shadow));
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; status == MIXT_OK && i < r->trials; i++) {
        mixt__shadow_batch batch = mixt__replay_batch(r, i);
        status = mixt__shadow_run(shadow, &batch, &r->losses[i]);
        if (status == MIXT_OK)
            status = mixt__replay_take(r, shadow, i);
    }
    mixt__shadow_free(shadow);
    return status;
}

/* ---- comparing ---- */

/** Sums over pairs of numbers: FP32's and the policy's. */
typedef struct pairs {
    double reference, low, product, difference; // sums of squares, and of products
    double update, update_difference;           // the same of the updates
    double count, flushed, nonfinite;
} pairs;

/** From a gradient to what is taken from the weight, but for the learning rate. */
typedef struct direction {
    mixt__optimizer optimizer;
    double inv_bias1, inv_sqrt_bias2;
    double clip_value;
} direction;

static double update_of(const direction *d, double g, double m, double v)
{
    const mixt__optimizer *o = &d->optimizer;
    if (d->clip_value > 0)
        g = fmax(fmin(g, d->clip_value), -d->clip_value);
    if (o->kind == MIXT_OPTIMIZER_SGD) {
        double next = (double)o->momentum * m + g;
        return o->nesterov ? g + (double)o->momentum * next : next;
    }
    m = (double)o->beta1 * m + (1 - (double)o->beta1) * g;
    v = (double)o->beta2 * v + (1 - (double)o->beta2) * g * g;
    return m * d->inv_bias1 / (sqrt(v) * d->inv_sqrt_bias2 + (double)o->eps);
}

static direction direction_of(const mixt__trainer *t)
{
    mixt__control next = *mixt__trainer_control(t);
    next.step++;
    mixt__control_bias(&next, &mixt__trainer_settings_of(t)->optimizer);
    return (direction){.optimizer = mixt__trainer_settings_of(t)->optimizer,
                       .inv_bias1 = (double)next.inv_bias1,
                       .inv_sqrt_bias2 = (double)next.inv_sqrt_bias2,
                       .clip_value = (double)mixt__trainer_settings_of(t)->decided.clip_value};
}

/** What clipping by norm multiplies gradients of this length with. */
static double clip_factor(const mixt__trainer *t, double norm)
{
    return mixt__trainer_settings_of(t)->decided.clip > 0
               ? fmin(1.0, (double)mixt__trainer_settings_of(t)->decided.clip / (norm + 1e-6))
               : 1.0;
}

/** A comparison under way. */
typedef struct comparison {
    const mixt__replay *replay;
    const float *reference; // FP32's gradients
    const double *factors;  // what gradients are multiplied with before the update: FP32's, the policy's
    direction direction;
    int64_t first, count; // numbers of the arena
    pairs *parts;
} comparison;

static void add_pair(const comparison *x, int64_t i, pairs *p)
{
    const mixt__replay *r = x->replay;
    double a = (double)x->reference[i], b = (double)r->low[i];
    p->count++;
    if (!isfinite(b)) {
        p->nonfinite++;
        return;
    }
    p->flushed += a != 0 && b == 0;
    p->reference += a * a;
    p->low += b * b;
    p->product += a * b;
    p->difference += (a - b) * (a - b);
    double m = r->moments[0] ? (double)r->moments[0][i] : 0, v = r->moments[1] ? (double)r->moments[1][i] : 0;
    double u = update_of(&x->direction, a * x->factors[0], m, v);
    double w = update_of(&x->direction, b * x->factors[1], m, v);
    p->update += u * u;
    p->update_difference += (u - w) * (u - w);
}

static void add_parts(void *argument, int64_t begin, int64_t end, int thread)
{
    const comparison *x = argument;
    (void)thread;
    for (int64_t part = begin; part < end; part++) {
        pairs p = {0};
        for (int64_t i = part * PART; i < part_end(part, x->count); i++)
            add_pair(x, x->first + i, &p);
        x->parts[part] = p;
    }
}

static void add_sums(pairs *p, const pairs *part)
{
    p->reference += part->reference;
    p->low += part->low;
    p->product += part->product;
    p->difference += part->difference;
    p->update += part->update;
    p->update_difference += part->update_difference;
    p->count += part->count;
    p->flushed += part->flushed;
    p->nonfinite += part->nonfinite;
}

/** The sums over each parameter's gradients. @param segments one for each, and behind them one for each part */
static void compare_segments(const mixt__replay *r, int64_t trial, double norm, pairs *segments)
{
    const mixt__params *params = mixt__trainer_params(r->trainer);
    double factors[2] = {clip_factor(r->trainer, r->norms[trial]), clip_factor(r->trainer, norm)};
    comparison x = {r, r->gradients + trial * params->total, factors, direction_of(r->trainer), 0, 0, NULL};
    x.parts = segments + params->segment_count;
    for (int64_t s = 0; s < params->segment_count; s++) {
        x.first = params->segments[s].offset;
        x.count = params->segments[s].count;
        mixt__parallel(parts_of(x.count), 1, add_parts, &x);
        segments[s] = (pairs){0};
        for (int64_t part = 0; part < parts_of(x.count); part++)
            add_sums(&segments[s], &x.parts[part]);
    }
}

static bool same_shape(const mixt__graph *graph, int32_t value, int32_t other)
{
    return mixt__shape_equal(&graph->values[value].shape, &graph->values[other].shape);
}

/** Gradients that flow between nodes: not the loss and what is told beside it, which a loss that is fused with its
 *  gradient has too, in parts where the logits are. */
static bool is_flowing(void *user, const mixt__graph *graph, const mixt__node *node, int output)
{
    int32_t value = node->out[output];
    (void)user;
    return node->backward && graph->values[value].role == MIXT_ROLE_ACTIVATION &&
           !same_shape(graph, value, graph->loss) && !same_shape(graph, value, graph->metrics);
}

/** The largest magnitude of all that a shadow looked at in its last run. */
static mixt_status largest_instrumented(const mixt__shadow *shadow, double *largest)
{
    const mixt__graph *g = shadow->executable->graph;
    *largest = 0;
    for (int64_t i = 0; i < g->node_count; i++) {
        double numbers[MIXT_STATS_NUMBERS];
        if (g->nodes[i].op != &mixt__op_tensor_stats)
            continue;
        MIXT_TRY(mixt__device_download(mixt__trainer_device(shadow->trainer), numbers,
                                       mixt__executable_address(shadow->executable, g->nodes[i].out[0]),
                                       sizeof numbers));
        *largest = fmax(*largest, numbers[MIXT_STATS_AMAX]);
    }
    return MIXT_OK;
}

mixt_status mixt__replay_settle_scale(mixt__replay *r, const mixt__scaling *scaling)
{
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__instrument instrument = {.wanted = is_flowing};
    mixt__shadow_options options = {.policy = &fp32, .batch = r->batch, .instrument = &instrument};
    mixt__shadow_batch batch = mixt__replay_batch(r, 0);
    mixt__shadow *shadow;
    double loss, largest = 0;
    batch.scale = 1;
    MIXT_TRY(mixt__shadow_new(r->trainer, &options, &shadow));
    mixt_status status = mixt__shadow_run(shadow, &batch, &loss);
    r->flops += mixt__executable_flops(shadow->executable, true);
    if (status == MIXT_OK)
        status = largest_instrumented(shadow, &largest);
    mixt__shadow_free(shadow);
    double limit = (double)mixt__dtype_beyond(MIXT_DTYPE_FP16);
    while (largest * (double)r->scale >= limit && r->scale > scaling->floor)
        r->scale = fmaxf(r->scale * scaling->backoff, scaling->floor);
    return status;
}

/** What a set of parameters shows. @param norm of all of the policy's gradients */
static void judge_gradients(const pairs *segments, int64_t count, const bool *own, double norm, mixt__seen *seen)
{
    pairs p = {0};
    for (int64_t s = 0; s < count; s++)
        if (own[s])
            add_sums(&p, &segments[s]);
    bool bad = !isfinite(norm), none = !(p.reference > 0);
    seen->overflow = p.count > 0 ? p.nonfinite / p.count : 0;
    seen->underflow = p.count > 0 ? p.flushed / p.count : 0;
    seen->grad_cosine = bad ? (double)NAN : none ? 1 : p.low > 0 ? p.product / sqrt(p.reference * p.low) : 0;
    seen->grad_norm_error = bad ? (double)NAN : none ? 0 : fabs(sqrt(p.low / p.reference) - 1);
    seen->grad_error = bad ? (double)NAN : none ? 0 : sqrt(p.difference / p.reference);
    seen->update_error = bad ? (double)NAN : p.update > 0 ? sqrt(p.update_difference / p.update) : 0;
}

/** Outputs of FP32 and of a policy. */
typedef struct outputs {
    const float *reference, *low;
    int64_t count;
    pairs *parts; // signal in `reference`, noise in `difference`
} outputs;

static void add_outputs(void *argument, int64_t begin, int64_t end, int thread)
{
    const outputs *x = argument;
    (void)thread;
    for (int64_t part = begin; part < end; part++) {
        pairs p = {0};
        for (int64_t i = part * PART; i < part_end(part, x->count); i++) {
            double a = (double)x->reference[i], difference = (double)x->low[i] - a;
            p.reference += a * a;
            p.difference += difference * difference;
        }
        x->parts[part] = p;
    }
}

/** Signal to noise of the outputs. @param parts room for one each of the outputs' parts */
static mixt_status compare_outputs(mixt__replay *r, const mixt__shadow *shadow, int64_t trial, pairs *parts,
                                   mixt__seen *seen)
{
    outputs x = {r->outputs + trial * r->logits, r->low_outputs, r->logits, parts};
    pairs all = {0};
    MIXT_TRY(mixt__shadow_logits(shadow, r->low_outputs));
    mixt__parallel(parts_of(x.count), 1, add_outputs, &x);
    for (int64_t part = 0; part < parts_of(x.count); part++)
        add_sums(&all, &parts[part]);
    seen->snr_db = mixt__sense_decibels(all.reference, all.difference);
    return MIXT_OK;
}

/** One batch, the gradients of each set of parameters apart. @param seen one for each set */
static mixt_status run_trial(mixt__replay *r, mixt__shadow *shadow, int64_t trial, const bool *const *sets,
                             int64_t count, pairs *room, mixt__seen *seen)
{
    mixt__shadow_batch batch = mixt__replay_batch(r, trial);
    double loss, norm;
    mixt__seen first = {.loss = r->losses[trial], .margin = INFINITY};
    MIXT_TRY(mixt__shadow_run(shadow, &batch, &loss));
    r->flops += mixt__executable_flops(shadow->executable, true);
    MIXT_TRY(compare_outputs(r, shadow, trial, room, &first));
    MIXT_TRY(take_gradients(r, shadow, r->low, &norm));
    compare_segments(r, trial, norm, room);
    first.loss_change = loss - r->losses[trial];
    for (int64_t i = 0; i < count; i++) {
        seen[i] = first;
        judge_gradients(room, mixt__trainer_params(r->trainer)->segment_count, sets[i], norm, &seen[i]);
    }
    return MIXT_OK;
}

/** All batches. @param seen (trials, count) */
static mixt_status run_sets(mixt__replay *r, const mixt__policy *policy, const bool *const *sets, int64_t count,
                            mixt__seen *seen)
{
    mixt__shadow_options options = {.policy = policy, .batch = r->batch, .keep_logits = true};
    mixt__shadow *shadow;
    const mixt__params *params = mixt__trainer_params(r->trainer);
    int64_t gradients = params->segment_count + parts_of(params->total), outputs = parts_of(r->logits);
    pairs *room = mixt__alloc((size_t)(gradients > outputs ? gradients : outputs) * sizeof *room);
    if (!room)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare gradients");
    mixt_status status = mixt__shadow_new(r->trainer, &options, &shadow);
    for (int64_t i = 0; status == MIXT_OK && i < r->trials; i++)
        status = run_trial(r, shadow, i, sets, count, room, seen + i * count);
    mixt__shadow_free(shadow);
    mixt__free(room);
    return status;
}

mixt_status mixt__replay_policy(mixt__replay *r, const mixt__policy *policy, const bool *own, mixt__seen *seen)
{
    return run_sets(r, policy, &own, 1, seen);
}

/** The sets of parameters of the layers that have some, then all; returns how many there are. */
static int64_t list_sets(const mixt__sense_layers *layers, const bool *all, const bool **sets)
{
    int64_t count = 0;
    for (int64_t i = 0; i < layers->count; i++)
        if (layers->layers[i].own_params)
            sets[count++] = layers->layers[i].own;
    sets[count++] = all;
    return count;
}

/** Gives each layer its own figures; one without parameters has those of all. */
static void hand_out(const mixt__sense_layers *layers, const mixt__seen *seen, int64_t count, mixt__seen *whole,
                     mixt__seen *own)
{
    int64_t next = 0;
    *whole = seen[count - 1];
    for (int64_t i = 0; i < layers->count; i++)
        own[i] = layers->layers[i].own_params ? seen[next++] : *whole;
}

mixt_status mixt__replay_layers(mixt__replay *r, const mixt__policy *policy, const mixt__sense_layers *layers,
                                mixt__seen *whole, mixt__seen *own)
{
    int64_t count = 0;
    bool *all = mixt__alloc((size_t)mixt__trainer_params(r->trainer)->segment_count + 1);
    const bool **sets = mixt__alloc((size_t)(layers->count + 1) * sizeof *sets);
    mixt__seen *seen = mixt__alloc((size_t)(r->trials * (layers->count + 1)) * sizeof *seen);
    mixt_status status = MIXT_OK;
    if (!all || !sets || !seen)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for the figures of all layers");
    if (status == MIXT_OK) {
        memset(all, true, (size_t)mixt__trainer_params(r->trainer)->segment_count);
        count = list_sets(layers, all, sets);
        status = run_sets(r, policy, sets, count, seen);
    }
    for (int64_t i = 0; status == MIXT_OK && i < r->trials; i++)
        hand_out(layers, seen + i * count, count, &whole[i], own + i * layers->count);
    mixt__free(all);
    mixt__free(sets);
    mixt__free(seen);
    return status;
}
