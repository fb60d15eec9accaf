/* The next step of a trainer from the side: its batches, the shadows that run on them, what they find. */
#include "inspect/debug.h"

#include "api/api.h"
#include "base/rng.h"
#include "data/buckets.h"
#include "num/num.h"
#include "train/lengths.h"
#include "train/pass_weights.h"

#include <math.h>
#include <stdio.h>

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to inspect a step");
}

/* ---- batches ---- */

/** The batch of a pass, in host memory, as the trainer will get it. */
typedef struct batch_room {
    void *input, *target;
    int64_t batch, parts, group; // samples of a pass, passes of a batch, batches of an update
    const mixt_data_info *info;  // of its samples: of data in buckets those of the next update
    const mixt__batch_spec *spec;
} batch_room;

/** A number of FP32 data that is not finite, or not any more in the format `fed`: that of its sample in the batch; -1:
 *  none. A NaN among targets is left out by losses of values. */
static int64_t bad_sample(const void *numbers, mixt_dtype dtype, mixt_dtype fed, const mixt__shape *shape,
                          bool allow_nan)
{
    float beyond = mixt__dtype_beyond(fed);
    int64_t count = mixt__shape_count(shape), each = shape->dims[0] ? count / shape->dims[0] : 1;
    for (int64_t i = 0; dtype == MIXT_DTYPE_FP32 && i < count; i++) {
        float x = ((const float *)numbers)[i];
        if ((!isfinite(x) && !(allow_nan && isnan(x))) || fabsf(x) >= beyond)
            return i / each;
    }
    return -1;
}

/** The batch of the data that a pass is of. */
static mixt__data_which which_of(const batch_room *r, int64_t number)
{
    return (mixt__data_which){r->batch * r->parts, r->group, number / r->parts};
}

/** What the batches of the next update look like. */
static batch_room room_of(const mixt__trainer *t, const mixt_data *data)
{
    batch_room r = {.batch = mixt__trainer_settings_of(t)->batch,
                    .parts = mixt__trainer_settings_of(t)->split * mixt__trainer_settings_of(t)->ranks,
                    .info = &data->info,
                    .spec = mixt__trainer_spec(t)};
    r.group = mixt__trainer_settings_of(t)->accumulate / r.parts;
    if (!mixt__lengths_count(t) || !mixt__lengths_match(t, data))
        return r;
    mixt__data_which which = which_of(&r, mixt__trainer_position(t));
    int bucket = mixt__data_bucket_of(data, &which);
    r.info = &mixt__data_bucket_at(data, bucket)->info;
    r.spec = mixt__lengths_spec_of(t, bucket);
    return r;
}

/** Which sample of the set stands at a place of a batch. */
static int64_t sample_at(const mixt_data *data, const batch_room *r, int64_t number, int64_t place)
{
    mixt__data_which which = which_of(r, number);
    return mixt__data_sample_at(data, &which, number % r->parts * r->batch + place);
}

static void find_bad_sample(mixt__sights *s, const mixt__trainer *t, const mixt_data *data, const batch_room *r,
                            int64_t number)
{
    const mixt__batch_spec *b = r->spec;
    s->place = bad_sample(r->input, b->input_dtype, mixt__trainer_fed_dtype(t), &b->input, false);
    s->rounded = s->place >= 0 && bad_sample(r->input, b->input_dtype, MIXT_DTYPE_FP32, &b->input, false) < 0;
    s->target = s->place < 0;
    if (s->target)
        s->place = bad_sample(r->target, b->target_dtype, b->target_dtype, &b->target, true);
    s->sample = s->place < 0 ? -1 : sample_at(data, r, number, s->place);
}

/* ---- passes ---- */

/** Compiles a shadow; a lack of memory is no failure. */
static mixt_status make_shadow(mixt__sights *s, const mixt__trainer *t, const mixt__shadow_options *options,
                               mixt__shadow **shadow)
{
    mixt_status status = mixt__shadow_new(t, options, shadow);
    if (status != MIXT_ERROR_MEMORY)
        return status;
    snprintf(s->why, sizeof s->why, "%s", mixt_error_text());
    return MIXT_OK;
}

/** Once more with each op by itself, which shows what hides in larger kernels. */
static mixt_status walk_plain(mixt__sights *s, const mixt__trainer *t, const mixt__shadow_batch *batch)
{
    mixt__shadow_options plain = {
        .policy = &mixt__trainer_settings_of(t)->policy, .no_fusion = true, .like_step = true};
    plain.spec = &s->low->spec;
    mixt__walk_found found;
    mixt__walk_options o = {.found = &found};
    MIXT_TRY(make_shadow(s, t, &plain, &s->plain));
    if (!s->plain)
        return MIXT_OK;
    const mixt__graph *g = s->plain->executable->graph;
    s->plain_values = o.sights = mixt__alloc((size_t)g->value_count * sizeof *o.sights);
    if (!o.sights)
        return no_memory();
    int32_t *partner = NULL;
    if (s->full)
        MIXT_TRY(mixt__debug_match(g, g, s->full->executable->graph, &partner));
    o.partner = partner;
    mixt_status status = mixt__debug_walk(s->plain, s->full, batch, &o);
    mixt__free(partner);
    return status;
}

/** The batch of pass number `p` of the next step, and what it runs with. */
static mixt_status make_batch(const mixt__trainer *t, const mixt_data *data, const batch_room *r, int64_t p,
                              mixt__pass_weights *weights, mixt__shadow_batch *batch)
{
    int64_t number = mixt__trainer_position(t) + p;
    mixt__control control;
    MIXT_TRY(mixt__trainer_fetch_control(t, &control));
    mixt__data_places places = mixt__data_places_as(r->info, r->batch, 0, r->input, r->target);
    mixt__data_which which = which_of(r, number);
    MIXT_TRY(mixt__data_batch_piece(data, &which, r->info, number % r->parts * r->batch, r->batch, &places));
    *batch = (mixt__shadow_batch){.input = r->input, .target = r->target, .scale = control.seed};
    batch->key =
        mixt__rng_key(mixt__trainer_settings_of(t)->seed, MIXT_RNG_STREAM_PASS, (uint64_t)(mixt__trainer_runs(t) + p));
    if (mixt__trainer_steps(t) + 1 == mixt__trainer_settings_of(t)->inject_overflow)
        batch->scale = INFINITY;
    if (mixt__trainer_settings_of(t)->accumulate > 1)
        batch->scale *= mixt__pass_weight(
            weights, mixt__targets_count(r->target, r->spec->target_dtype, mixt__shape_count(&r->spec->target)));
    return MIXT_OK;
}

/** What is written of the values that come by. */
typedef struct dump {
    const mixt_debug_options *options;
    const mixt__sights *sights;
} dump;

static mixt_status write_value(void *user, int32_t value, const float *numbers)
{
    const dump *d = user;
    const mixt__graph *g = d->sights->low->executable->graph;
    return mixt__debug_dump_value(d->options, d->sights->names[value], &g->values[value], numbers);
}

/** Whether a pass makes gradients that are not finite: run as a whole, which is much less work than a look. */
static mixt_status ends_badly(const mixt__sights *s, const mixt__shadow_batch *batch, bool *bad)
{
    int64_t total = s->low->params->total;
    float *numbers = mixt__alloc_uninit((size_t)total * sizeof *numbers + 1);
    double loss;
    mixt_status status = numbers ? mixt__shadow_run(s->low, batch, &loss) : no_memory();
    if (status == MIXT_OK)
        status = mixt__shadow_gradients(s->low, 0, total, numbers);
    *bad = status == MIXT_OK && !isfinite(loss);
    for (int64_t i = 0; status == MIXT_OK && !*bad && i < total; i++)
        *bad = !isfinite(numbers[i]);
    mixt__free(numbers);
    return status;
}

/** Looks at one pass: the first that ends badly, else the last, which the real step's statistics are of. */
static mixt_status walk_passes(mixt__sights *s, const mixt__trainer *t, const mixt_data *data, const batch_room *r,
                               const int32_t *partner, dump *d)
{
    mixt__pass_weights weights = {0};
    mixt__walk_found found = {.first_bad = -1, .full_loss = NAN};
    mixt__walk_options o = {.partner = partner, .sights = s->by_value, .found = &found, .user = d};
    o.see = d->options->dump ? write_value : NULL;
    mixt__shadow_batch batch;
    bool bad = false;
    for (int64_t p = 0; p < mixt__trainer_settings_of(t)->accumulate && !bad; p++) {
        s->pass = p;
        MIXT_TRY(make_batch(t, data, r, p, &weights, &batch));
        if (p + 1 < mixt__trainer_settings_of(t)->accumulate)
            MIXT_TRY(ends_badly(s, &batch, &bad));
    }
    MIXT_TRY(mixt__debug_walk(s->low, s->full, &batch, &o));
    s->first_bad = found.first_bad;
    s->full_bad = found.full_bad;
    s->full_loss = mixt__trainer_settings_of(t)->accumulate == 1 ? found.full_loss : NAN;
    if (found.first_bad < 0)
        return MIXT_OK;
    find_bad_sample(s, t, data, r, mixt__trainer_position(t) + s->pass);
    return walk_plain(s, t, &batch);
}

/** FP32's partners of low's values: found by way of the graph in which each op stands by itself. */
static mixt_status find_partners(const mixt__sights *s, const mixt__trainer *t, int32_t **partner)
{
    mixt__shadow_options options = {
        .policy = &mixt__trainer_settings_of(t)->policy, .no_fusion = true, .like_step = true};
    mixt__graph *plain;
    *partner = NULL;
    if (!s->full)
        return MIXT_OK;
    options.spec = &s->low->spec;
    MIXT_TRY(mixt__shadow_graph(t, &options, &plain));
    mixt_status status = mixt__debug_match(s->low->executable->graph, plain, s->full->executable->graph, partner);
    mixt__graph_free(plain);
    return status;
}

/** The shadows, and the names of values. */
static mixt_status make_shadows(mixt_debug *d, const mixt__trainer *t, const batch_room *r, mixt__sights *s)
{
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    const mixt__shadow_options low = {
        .policy = &mixt__trainer_settings_of(t)->policy, .like_step = true, .spec = r->spec};
    const mixt__shadow_options full = {.policy = &fp32, .no_fusion = true, .spec = r->spec};
    *s = (mixt__sights){.first_bad = -1, .sample = -1, .place = -1, .full_loss = NAN};
    MIXT_TRY(make_shadow(s, t, &low, &s->low));
    if (!s->low)
        return MIXT_OK;
    MIXT_TRY(make_shadow(s, t, &full, &s->full));
    s->by_value = mixt__alloc((size_t)s->low->executable->graph->value_count * sizeof *s->by_value);
    return s->by_value ? mixt__debug_name(s->low->executable->graph, &d->arena, &s->names) : no_memory();
}

mixt_status mixt__sights_take(mixt_debug *d, const mixt_trainer *trainer, const mixt_data *data,
                              const mixt_debug_options *options, mixt__sights *s)
{
    const mixt__trainer *t = trainer->inner;
    dump written = {options, s};
    int32_t *partner = NULL;
    batch_room r = room_of(t, data);
    MIXT_TRY(make_shadows(d, t, &r, s));
    if (!s->low)
        return options->dump ? mixt__fail(MIXT_ERROR_MEMORY, "%s", s->why) : MIXT_OK;
    if (options->dump) {
        MIXT_TRY(mixt__debug_dump_check(trainer, s->low->executable->graph, s->names, options));
        MIXT_TRY(mixt__debug_dump_params(trainer, options));
    }
    r.input = mixt__alloc_uninit(mixt__spec_input_bytes(r.spec) + 1);
    r.target = mixt__alloc_uninit(mixt__spec_target_bytes(r.spec) + 1);
    mixt_status status = r.input && r.target ? find_partners(s, t, &partner) : no_memory();
    if (status == MIXT_OK)
        status = walk_passes(s, t, data, &r, partner, &written);
    mixt__free(r.input);
    mixt__free(r.target);
    mixt__free(partner);
    return status;
}

void mixt__sights_free(mixt__sights *s)
{
    mixt__shadow_free(s->low);
    mixt__shadow_free(s->full);
    mixt__shadow_free(s->plain);
    mixt__free(s->by_value);
    mixt__free(s->names);
    mixt__free(s->plain_values);
    *s = (mixt__sights){0};
}
