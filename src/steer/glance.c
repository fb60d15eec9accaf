/* Shadows on one batch, and sums over their gradients. */
#include "steer/glance.h"

#include "base/rng.h"
#include "data/buckets.h"
#include "policy/policy.h"
#include "steer/inquiry.h"
#include "train/shadow.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PART = 4,           // a look is at one of so many parts of a batch, ...
    SAMPLES = 8,        // ... of so many samples at least
    EXTREMES = 1 << 24, // numbers of inputs that are read to find the largest
    PIECE = 1 << 16,    // numbers of a gradient that are read at a time
};
static const double reach = 1000;          // updates of a layer that together ...
static const double matters = 0.005;       // ... change the loss by this share, to first order: else it does not count
static const double least = 0.5, most = 2; // of the gradient that are no loss

bool mixt__glance_lost(const mixt__glance_layer *layer)
{
    return layer->counts && !(layer->kept >= least && layer->kept <= most);
}

bool mixt__glance_loses(const mixt__glance *glance)
{
    bool any = glance->broken;
    for (int64_t i = 0; i < glance->count; i++)
        any |= mixt__glance_lost(&glance->layers[i]);
    return any;
}

float mixt__glance_scale(const mixt__trainer *t)
{
    return mixt__trainer_settings_of(t)->scaling.enabled ? mixt__trainer_control(t)->scale : 1;
}

/* ---- what it looks at ---- */

/** The layers whose parameters have gradients. */
static mixt_status list_layers(mixt__glance *glance)
{
    const mixt__params *p = mixt__trainer_params(glance->trainer);
    glance->layer_of = mixt__alloc((size_t)p->segment_count * sizeof *glance->layer_of + 1);
    glance->layers = mixt__alloc((size_t)p->segment_count * sizeof *glance->layers + 1);
    if (!glance->layer_of || !glance->layers)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the list of layers");
    for (int64_t s = 0; s < p->segment_count; s++) {
        char name[MIXT_GLANCE_LAYER];
        mixt__layer_of(p->table[p->segments[s].param].name, name);
        int64_t i = glance->count;
        while (i > 0 && strcmp(glance->layers[i - 1].name, name))
            i--;
        if (!i) {
            memcpy(glance->layers[glance->count++].name, name, sizeof name);
            i = glance->count;
        }
        glance->layer_of[s] = (int32_t)(i - 1);
    }
    return MIXT_OK;
}

static mixt_status take_memory(mixt__glance *glance, const mixt_data *data, int64_t offset)
{
    const mixt__trainer *t = glance->trainer;
    const mixt__trainer_settings *s = mixt__trainer_settings_of(t);
    int64_t batch = s->batch;
    glance->samples = batch / PART > SAMPLES ? batch / PART : batch < SAMPLES ? batch : SAMPLES;
    glance->input = mixt__alloc(mixt_data_input_bytes(data, glance->samples));
    glance->target = mixt__alloc(mixt_data_target_bytes(data, glance->samples));
    glance->gradients = mixt__alloc_uninit((size_t)mixt__trainer_params(t)->total * sizeof *glance->gradients + 1);
    glance->key = mixt__rng_key(s->seed, MIXT_RNG_STREAM_PASS, (uint64_t)(mixt__trainer_runs(t) + offset));
    return glance->input && glance->target && glance->gradients
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_MEMORY, "no memory to look at a batch");
}

mixt_status mixt__glance_read(const mixt__glance *glance, const mixt_data *data, int64_t pass)
{
    const mixt__trainer_settings *s = mixt__trainer_settings_of(glance->trainer);
    int64_t parts = s->split * s->ranks;
    mixt__data_places places = mixt__data_places_of(data, glance->samples, 0, glance->input, glance->target);
    mixt__data_which which = {s->batch * parts, s->accumulate / parts, pass / parts};
    return mixt__data_batch_piece(data, &which, &data->info, pass % parts * s->batch, glance->samples, &places);
}

/** @param with hears of the gradients, piece by piece, of a shadow that has run; `user` is its own */
static mixt_status run(const mixt__glance *glance, const mixt__shadow_options *options, float scale, double *loss,
                       mixt_status (*with)(mixt__glance *glance, const mixt__shadow *shadow, void *user), void *user)
{
    mixt__shadow *shadow;
    mixt__shadow_batch batch = {.input = glance->input, .target = glance->target, .key = glance->key, .scale = scale};
    MIXT_TRY(mixt__shadow_new(glance->trainer, options, &shadow));
    mixt_status status = mixt__shadow_run(shadow, &batch, loss);
    if (status == MIXT_OK)
        status = with((mixt__glance *)(uintptr_t)glance, shadow, user);
    mixt__shadow_free(shadow);
    return status;
}

static mixt_status keep_all(mixt__glance *glance, const mixt__shadow *shadow, void *user)
{
    (void)user;
    return mixt__shadow_gradients(shadow, 0, mixt__trainer_params(glance->trainer)->total, glance->gradients);
}

static mixt_status run_fp32(mixt__glance *glance)
{
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__shadow_options options = {.policy = &fp32, .batch = glance->samples};
    return run(glance, &options, 1, &glance->loss, keep_all, NULL);
}

mixt_status mixt__glance_open(mixt__glance *glance, const mixt__trainer *trainer, const mixt_data *data, int64_t offset)
{
    *glance = (mixt__glance){.trainer = trainer};
    MIXT_TRY(list_layers(glance));
    MIXT_TRY(take_memory(glance, data, offset));
    MIXT_TRY(mixt__glance_read(glance, data, mixt__trainer_position(trainer) + offset));
    return run_fp32(glance);
}

/** Puts a sample of another batch where the one with the smallest largest input is, if its own is larger. */
static void keep_larger(mixt__glance *glance, const mixt__glance *from, int64_t sample, size_t input, size_t target,
                        double *largest)
{
    const float *numbers = (const float *)((const char *)from->input + (size_t)sample * input);
    double mine = 0;
    int64_t least_at = 0;
    for (size_t i = 0; i < input / sizeof *numbers; i++)
        mine = fmax(mine, fabs((double)numbers[i])); // a NaN is no extreme
    for (int64_t i = 1; i < glance->samples; i++)
        least_at = largest[i] < largest[least_at] ? i : least_at;
    if (mine <= largest[least_at])
        return;
    largest[least_at] = mine;
    memcpy((char *)glance->input + (size_t)least_at * input, numbers, input);
    memcpy((char *)glance->target + (size_t)least_at * target, (const char *)from->target + (size_t)sample * target,
           target);
}

static mixt_status collect(mixt__glance *glance, mixt__glance *from, const mixt_data *data, double *largest)
{
    size_t input = mixt_data_input_bytes(data, 1), target = mixt_data_target_bytes(data, 1);
    int64_t each = from->samples * (int64_t)(input / sizeof(float)) + 1;
    int64_t passes = mixt_data_batches(data, from->samples);
    for (int64_t p = 0; p < passes && p * each < EXTREMES; p++) {
        MIXT_TRY(mixt__glance_read(from, data, p));
        for (int64_t i = 0; i < from->samples; i++)
            keep_larger(glance, from, i, input, target, largest);
    }
    return MIXT_OK;
}

mixt_status mixt__glance_open_extreme(mixt__glance *glance, const mixt__trainer *trainer, const mixt_data *data,
                                      bool *found)
{
    const mixt__batch_spec *spec = mixt__trainer_spec(trainer);
    mixt__glance from = {.trainer = trainer};
    *glance = (mixt__glance){.trainer = trainer};
    *found = spec->input_dtype == MIXT_DTYPE_FP32 && !spec->more_count;
    if (!*found)
        return MIXT_OK;
    MIXT_TRY(list_layers(glance));
    MIXT_TRY(take_memory(glance, data, 0));
    MIXT_TRY(mixt__glance_read(glance, data, 0)); // where there are too few
    double *largest = mixt__alloc((size_t)glance->samples * sizeof *largest);
    from.samples = mixt__trainer_settings_of(trainer)->batch;
    from.input = mixt__alloc(mixt_data_input_bytes(data, from.samples));
    from.target = mixt__alloc(mixt_data_target_bytes(data, from.samples));
    mixt_status status =
        largest && from.input && from.target ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to look at samples");
    if (status == MIXT_OK)
        status = collect(glance, &from, data, largest);
    mixt__glance_close(&from);
    mixt__free(largest);
    return status == MIXT_OK ? run_fp32(glance) : status;
}

void mixt__glance_close(mixt__glance *glance)
{
    mixt__free(glance->input);
    mixt__free(glance->target);
    mixt__free(glance->gradients);
    mixt__free(glance->layer_of);
    mixt__free(glance->layers);
    *glance = (mixt__glance){0};
}

/* ---- comparing ---- */

/** Sums over the gradients of a layer: of FP32 alone, and of both. */
typedef struct sums {
    double squares, products;    // g², g·low
    double magnitudes, followed; // |g|, low in the direction of g
} sums;

typedef struct comparing {
    sums *layers;
    double unscale;
    float *piece;
} comparing;

static void add_up(sums *s, const float *g, const float *low, int64_t count, double unscale)
{
    for (int64_t i = 0; i < count; i++) {
        double a = (double)g[i], b = (double)low[i] * unscale;
        s->squares += a * a;
        s->products += a * b;
        s->magnitudes += fabs(a);
        s->followed += a > 0 ? b : a < 0 ? -b : 0;
    }
}

static mixt_status compare(mixt__glance *glance, const mixt__shadow *shadow, void *user)
{
    comparing *c = user;
    const mixt__params *p = mixt__trainer_params(glance->trainer);
    for (int64_t s = 0; s < p->segment_count; s++) {
        int64_t end = p->segments[s].offset + p->segments[s].count;
        for (int64_t at = p->segments[s].offset; at < end; at += PIECE) {
            int64_t count = end - at < PIECE ? end - at : PIECE;
            MIXT_TRY(mixt__shadow_gradients(shadow, at, count, c->piece));
            add_up(&c->layers[glance->layer_of[s]], glance->gradients + at, c->piece, count, c->unscale);
        }
    }
    return MIXT_OK;
}

/** What a layer can change of the loss is its learning rate times its gradient's square, or its magnitudes where the
 *  optimizer divides gradients by their own size. */
static void judge(mixt__glance *glance, const sums *all)
{
    const mixt__trainer_settings *s = mixt__trainer_settings_of(glance->trainer);
    bool adaptive = mixt__optimizer_moments(&s->optimizer) > 1;
    for (int64_t i = 0; i < glance->count; i++) {
        const sums *x = &all[i];
        double change = (double)s->schedule.lr * (adaptive ? x->magnitudes : x->squares);
        glance->layers[i].counts =
            isfinite(glance->loss) && x->squares > 0 && change * reach > matters * fabs(glance->loss);
        glance->layers[i].kept = fmin(x->products / x->squares, x->followed / x->magnitudes);
        if (isfinite(x->products) && isfinite(x->followed))
            continue;
        glance->layers[i].kept = NAN;
        glance->layers[i].counts &= !s->scaling.dynamic; // an update that is skipped, with a lower scale to follow
    }
}

mixt_status mixt__glance_at(mixt__glance *glance, const mixt__policy *policy, float scale, double *loss)
{
    mixt__shadow_options options = {.policy = policy, .like_step = true, .batch = glance->samples};
    scale *=
        (float)glance->samples / (float)mixt__trainer_settings_of(glance->trainer)->batch; // a mean over fewer samples
    comparing c = {.unscale = 1 / (double)scale};
    c.layers = mixt__alloc((size_t)glance->count * sizeof *c.layers + 1);
    c.piece = mixt__alloc_uninit(PIECE * sizeof *c.piece);
    mixt_status status =
        c.layers && c.piece ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare gradients");
    if (status == MIXT_OK)
        status = run(glance, &options, scale, loss, compare, &c);
    if (status == MIXT_OK)
        judge(glance, c.layers);
    glance->broken = status == MIXT_OK && isfinite(glance->loss) && !isfinite(*loss);
    mixt__free(c.layers);
    mixt__free(c.piece);
    return status;
}
