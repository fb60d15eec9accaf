/* FP32 has the trouble too: is it the batch, or the weights?
 *
 * A shadow in FP32 runs on the suspected batch and on others, all from the weights before that update. If the others go
 * wrong too, the weights are to blame, and with them the updates before. Else the batch is, and the sample is found by
 * putting innocent ones in the place of half of the batch, and of half of the rest, until one is left.
 *
 * Of several ranks each runs on its own passes of the update, as it has read them; the one with the worst of all is the
 * judge, and the others take over what it finds.
 */
#include "steer/inquiry.h"
#include "steer/consensus.h"

#include "base/rng.h"
#include "data/buckets.h"
#include "policy/policy.h"
#include "train/shadow.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OTHERS = 3, RATES = 8 };      // batches to compare with; updates before the trouble whose rates are looked at
static const double many_times = 20; // the loss of others: guilty, however widely losses scatter
static const double far_above = 3;   // times a loss: not by another way that training took
static const double one_half = 4;    // times the other half's share of the harm: the culprit is in this one

typedef struct court {
    mixt__inquiry *q;
    mixt__shadow *shadow;
    float *input, *mixed_input;  // (batch, elements): of the suspect; of what runs
    char *target, *mixed_target; // four bytes an element, whatever they are
    float *other_input;
    char *other_target;
    int64_t pass;        // the suspect: number of a pass
    int rank;            // that made it
    double loss, others; // of the suspect; median of the others
} court;

/* ---- batches ---- */

/** Passes that share a batch of the data: of all ranks. */
static int64_t parts_of(const mixt__trainer_settings *s)
{
    return s->split * s->ranks;
}

/** The batch of the data that a pass is of. */
static mixt__data_which which_of(const mixt__trainer_settings *s, int64_t pass)
{
    int64_t parts = parts_of(s);
    return (mixt__data_which){s->batch * parts, s->accumulate / parts, pass / parts};
}

static mixt_status read_pass(const court *c, int64_t pass, void *input, void *target)
{
    const mixt__trainer_settings *s = mixt__trainer_settings_of(c->q->trainer);
    const mixt_data *data = c->q->replay.data;
    mixt__data_places places = mixt__data_places_of(data, s->batch, 0, input, target);
    mixt__data_which which = which_of(s, pass);
    return mixt__data_batch_piece(data, &which, &data->info, pass % parts_of(s) * s->batch, s->batch, &places);
}

/** @param key of the random numbers */
static mixt_status run_with(const court *c, const void *input, const void *target, uint64_t key, double *loss)
{
    mixt__shadow_batch batch = {.input = input, .target = target, .key = key, .scale = 1};
    return mixt__shadow_run(c->shadow, &batch, loss);
}

static mixt_status run(const court *c, const void *input, const void *target, double *loss)
{
    return run_with(c, input, target, 1, loss);
}

static mixt_status run_pass(const court *c, int64_t pass, double *loss)
{
    MIXT_TRY(read_pass(c, pass, c->mixed_input, c->mixed_target));
    return run(c, c->mixed_input, c->mixed_target, loss);
}

/** A pass and its loss. */
typedef struct trial {
    int64_t pass;
    double loss;
} trial;

static bool is_worse(const trial *a, const trial *b)
{
    return isfinite(b->loss) && (a->loss > b->loss || !isfinite(a->loss));
}

/** The worst of the passes that this process has made. */
static mixt_status try_own(const court *c, int64_t first, trial *worst)
{
    first += mixt__ranks_first(c->q->trainer);
    *worst = (trial){.pass = first, .loss = -DBL_MAX};
    for (int64_t p = first; p < first + mixt__ranks_made(c->q->trainer) && isfinite(worst->loss); p++) {
        trial now = {.pass = p};
        MIXT_TRY(run_pass(c, p, &now.loss));
        *worst = is_worse(&now, worst) ? now : *worst;
    }
    return MIXT_OK;
}

/** The worst pass of the update, and the rank that has made it. */
static mixt_status find_suspect(court *c, int64_t first)
{
    const mixt__trainer *t = c->q->trainer;
    trial mine, *all;
    int count, worst = 0;
    MIXT_TRY(mixt__consensus_agree(t, try_own(c, first, &mine)));
    MIXT_TRY(mixt__consensus_gather(t, &mine, sizeof mine, (void **)&all, &count));
    for (int i = 1; i < count; i++)
        worst = is_worse(&all[i], &all[worst]) ? i : worst;
    c->loss = all[worst].loss;
    c->pass = all[worst].pass;
    c->rank = (int)((c->pass - first) / mixt__ranks_passes(t));
    mixt__free(all);
    return MIXT_OK;
}

/** Of passes that came before, or where there were none, will come. The median is not moved by one that is bad too. */
static mixt_status run_others(court *c, int64_t first)
{
    double losses[OTHERS];
    int64_t passes = mixt__trainer_settings_of(c->q->trainer)->accumulate;
    for (int64_t i = 0; i < OTHERS; i++) {
        int64_t pass = first >= OTHERS ? first - 1 - i : first + passes + i;
        MIXT_TRY(run_pass(c, pass, &losses[i]));
        losses[i] = isnan(losses[i]) ? (double)INFINITY : losses[i];
    }
    double low = fmin(losses[0], losses[1]), high = fmax(losses[0], losses[1]);
    c->others = fmax(low, fmin(high, losses[2]));
    int64_t good = first >= OTHERS ? first - 1 : first + passes;
    return read_pass(c, good, c->other_input, c->other_target);
}

/* ---- the sample ---- */

/** Loss of the suspect with innocent samples in all places but [begin, end), above theirs. */
static mixt_status harm(const court *c, int64_t begin, int64_t end, double *above)
{
    const mixt_data *data = c->q->replay.data;
    int64_t batch = mixt__trainer_settings_of(c->q->trainer)->batch;
    double loss, base;
    mixt__data_copy_samples(data, batch, 0, batch, c->other_input, c->other_target, c->mixed_input, c->mixed_target);
    MIXT_TRY(run(c, c->mixed_input, c->mixed_target, &base));
    mixt__data_copy_samples(data, batch, begin, end, c->input, c->target, c->mixed_input, c->mixed_target);
    MIXT_TRY(run(c, c->mixed_input, c->mixed_target, &loss));
    *above = isfinite(loss) ? fmax(loss - base, 1e-12) : (double)INFINITY;
    return MIXT_OK;
}

/** Halves the batch until one sample is left; -1: several share the harm. */
static mixt_status bisect(const court *c, int64_t *place)
{
    int64_t begin = 0, end = mixt__trainer_settings_of(c->q->trainer)->batch;
    *place = -1;
    while (end - begin > 1) {
        int64_t middle = (begin + end) / 2;
        double left, right;
        MIXT_TRY(harm(c, begin, middle, &left));
        MIXT_TRY(harm(c, middle, end, &right));
        if ((isinf(left) && isinf(right)) || (left < one_half * right && right < one_half * left))
            return MIXT_OK;
        if (left > right)
            end = middle;
        else
            begin = middle;
    }
    *place = begin;
    return MIXT_OK;
}

/** The first sample with an input that is no finite number; -1: none. */
static int64_t find_broken(const court *c)
{
    const mixt_data_info *info = mixt_data_describe(c->q->replay.data);
    int64_t batch = mixt__trainer_settings_of(c->q->trainer)->batch;
    mixt__data_places places = mixt__data_places_of(c->q->replay.data, batch, 0, c->input, c->target);
    for (int a = 0; a < info->array_count; a++) {
        const mixt_data_array *array = &info->arrays[a];
        const float *numbers = (const float *)(void *)places.at[a];
        for (int64_t i = 0; !array->target && array->dtype == MIXT_DTYPE_FP32 && i < batch * array->elements; i++)
            if (!isfinite(numbers[i]))
                return i / array->elements;
    }
    return -1;
}

/** The file or folder without where it lies: a run that goes on may name that in another way. */
static const char *file_of(const mixt_data_info *info)
{
    const char *slash = strrchr(info->path, '/');
    const char *name = slash && slash[1] ? slash + 1 : info->path;
    return *name ? name : info->kind;
}

static mixt_status name_batch(const court *c, bool guilty)
{
    mixt_diagnosis *d = c->q->d;
    const mixt_data *data = c->q->replay.data;
    const mixt_data_info *info = mixt_data_describe(data);
    const mixt__trainer_settings *s = mixt__trainer_settings_of(c->q->trainer);
    mixt__data_which which = which_of(s, c->pass);
    int64_t per_epoch = mixt__data_epoch_batches(data, which.batch, which.group), number = which.number;
    int64_t place = find_broken(c);
    bool broken = place >= 0;
    if (!broken && guilty)
        MIXT_TRY(bisect(c, &place));
    d->kind = MIXT_DIAGNOSIS_BATCH;
    d->cause = MIXT_CAUSE_DATA;
    d->epoch = number / per_epoch + 1;
    d->batch = number % per_epoch;
    d->place = place < 0 ? -1 : place + c->pass % parts_of(s) * s->batch;
    d->sample = place < 0 ? -1 : mixt__data_sample_at(data, &which, d->place);
    d->rank = s->ranks > 1 ? c->rank : -1;
    int length = snprintf(c->q->words->text, sizeof c->q->words->text,
                          "data: batch %lld of epoch %lld of %.200s has a loss of %.4g in FP32 too, others %.4g",
                          (long long)d->batch, (long long)d->epoch, file_of(info), c->loss, c->others);
    size_t used = (size_t)length < sizeof c->q->words->text ? (size_t)length : sizeof c->q->words->text - 1;
    char where[32] = "";
    if (d->rank >= 0)
        snprintf(where, sizeof where, " on rank %d", d->rank);
    if (place >= 0)
        snprintf(c->q->words->text + used, sizeof c->q->words->text - used,
                 "; sample %lld, place %lld of the batch,%s %s", (long long)d->sample, (long long)d->place, where,
                 broken ? "has an input that is not finite" : "does it");
    return MIXT_OK;
}

/* ---- the verdict ---- */

/** The first update close before the trouble with a learning rate far above the usual one; NULL: none. */
static const mixt__trace_row *find_rate(const mixt__inquiry *q)
{
    for (int64_t i = q->begin - RATES; i <= q->begin; i++) {
        const mixt__trace_row *row = mixt__trace_row_of(&q->ring->trace, i);
        mixt__usual_row usual = mixt__trace_usual(&q->ring->trace, i);
        if (row && usual.rows && (double)row->lr > 3 * usual.lr)
            return row;
    }
    return NULL;
}

static void blame_optimizer(const court *c)
{
    mixt__inquiry *q = c->q;
    mixt_diagnosis *d = q->d;
    const mixt__trace_row *row = find_rate(q);
    d->kind = MIXT_DIAGNOSIS_OPTIMIZER;
    d->cause = MIXT_CAUSE_DATA;
    d->step = row ? row->step : q->begin - 1;
    int length =
        snprintf(q->words->text, sizeof q->words->text,
                 "optimizer: before update %lld any batch has a loss of about %.4g in FP32, usual was %.4g: the "
                 "updates before were too large",
                 (long long)q->begin, c->others, q->usual.loss);
    size_t used = (size_t)length < sizeof q->words->text ? (size_t)length : sizeof q->words->text - 1;
    if (row)
        snprintf(q->words->text + used, sizeof q->words->text - used,
                 "; the learning rate was %.4g at update %lld, %.4g before", (double)row->lr, (long long)row->step,
                 mixt__trace_usual(&q->ring->trace, row->step).lr);
}

/** @param usual NaN: nothing is, and only what is not finite stands out */
static bool stands_out(const mixt__inquiry *q, double loss, double usual)
{
    if (isnan(usual))
        return !isfinite(loss);
    mixt__usual_row held = q->usual;
    mixt__trace_row row = {.loss = loss, .grad_norm = INFINITY};
    held.loss = usual;
    held.rows = held.rows < 3 ? 3 : held.rows;
    return mixt__row_signs(&row, &held) & MIXT_SIGN_LOSS;
}

/** Whether the update went wrong in FP32 as well, and the same batch from the same weights does by no means. */
static bool is_contradicted(const court *c)
{
    const mixt_diagnosis *d = c->q->d;
    if (!(c->q->signs & MIXT_SIGN_LOSS) || stands_out(c->q, c->loss, c->q->usual.loss))
        return false;
    return !isfinite(d->fp32) || (stands_out(c->q, d->fp32, c->q->usual.loss) && d->fp32 > far_above * c->loss);
}

/** The trainer went wrong in FP32, a shadow from the same weights on the same batch does not: that is not one
 *  computation with two results but a machine that errs whenever this update is computed. */
static void blame_machine(const court *c)
{
    mixt_diagnosis *d = c->q->d;
    char where[32] = "";
    d->kind = MIXT_DIAGNOSIS_HARDWARE;
    d->cause = MIXT_CAUSE_HARDWARE;
    d->persists = true;
    d->rank = mixt__trace_worst_rank(&c->q->ring->trace, c->q->begin);
    if (d->rank >= 0)
        snprintf(where, sizeof where, " on rank %d", d->rank);
    snprintf(c->q->words->text, sizeof c->q->words->text,
             "hardware: update %lld goes wrong%s each time it is computed (loss %.4g, %.4g in FP32), yet its batch has "
             "a loss of %.4g in FP32 from the same weights: the machine is not to be trusted",
             (long long)d->step, where, d->value, d->fp32, c->loss);
}

/** The suspect is found. */
static mixt_status judge_suspect(court *c)
{
    mixt__inquiry *q = c->q;
    const mixt__trace_row *row = mixt__trace_row_of(&q->ring->trace, q->begin);
    MIXT_TRY(run_others(c, row->batch));
    MIXT_TRY(read_pass(c, c->pass, c->input, c->target));
    bool all = stands_out(q, c->others, q->usual.loss);
    bool guilty = stands_out(q, c->loss, c->others) || c->loss > many_times * c->others;
    if (!guilty && !all && is_contradicted(c)) {
        blame_machine(c);
        return MIXT_OK;
    }
    q->d->fp32 = c->loss;
    if (find_broken(c) >= 0 || (guilty && !all))
        return name_batch(c, guilty);
    if (all)
        blame_optimizer(c);
    else
        snprintf(q->words->text, sizeof q->words->text,
                 "nothing: update %lld gives the same bits again, its batch has a loss of %.4g in FP32, others %.4g",
                 (long long)q->begin, c->loss, c->others);
    return MIXT_OK;
}

/** One rank judges, the others take over what it says. */
static mixt_status judge(court *c)
{
    mixt__inquiry *q = c->q;
    const mixt__group *group = mixt__ranks_group(q->trainer);
    MIXT_TRY(find_suspect(c, mixt__trace_row_of(&q->ring->trace, q->begin)->batch));
    bool here = !group || group->rank == c->rank;
    MIXT_TRY(mixt__consensus_agree(q->trainer, here ? judge_suspect(c) : MIXT_OK));
    struct {
        mixt_diagnosis d;
        mixt__diagnosis_words words;
    } told = {*q->d, *q->words};
    MIXT_TRY(mixt__consensus_take(q->trainer, c->rank, &told, sizeof told));
    *q->d = told.d;
    *q->words = told.words;
    mixt__diagnosis_point(q->d, q->words);
    return MIXT_OK;
}

static mixt_status open_court(court *c)
{
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__shadow_options options = {.policy = &fp32};
    int64_t batch = mixt__trainer_settings_of(c->q->trainer)->batch;
    size_t input = mixt_data_input_bytes(c->q->replay.data, batch);
    size_t target = mixt_data_target_bytes(c->q->replay.data, batch);
    c->input = mixt__alloc(input);
    c->mixed_input = mixt__alloc(input);
    c->other_input = mixt__alloc(input);
    c->target = mixt__alloc(target);
    c->mixed_target = mixt__alloc(target);
    c->other_target = mixt__alloc(target);
    if (!c->input || !c->mixed_input || !c->other_input || !c->target || !c->mixed_target || !c->other_target)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for batches to compare");
    return mixt__shadow_new(c->q->trainer, &options, &c->shadow);
}

static void close_court(court *c)
{
    mixt__shadow_free(c->shadow);
    mixt__free(c->input);
    mixt__free(c->mixed_input);
    mixt__free(c->other_input);
    mixt__free(c->target);
    mixt__free(c->mixed_target);
    mixt__free(c->other_target);
}

/** The passes of the update that this process makes, with the random numbers that they had. @param losses (made) */
static mixt_status run_own(const court *c, double *losses)
{
    const mixt__trainer *t = c->q->trainer;
    const mixt__trace_row *row = mixt__trace_row_of(&c->q->ring->trace, c->q->begin);
    int64_t first = mixt__ranks_first(t);
    for (int64_t i = first; i < first + mixt__ranks_made(t); i++) {
        uint64_t key = mixt__rng_key(mixt__trainer_settings_of(t)->seed, MIXT_RNG_STREAM_PASS,
                                     (uint64_t)(mixt__trainer_runs(t) + i));
        MIXT_TRY(read_pass(c, row->batch + i, c->mixed_input, c->mixed_target));
        MIXT_TRY(run_with(c, c->mixed_input, c->mixed_target, key, &losses[i - first]));
    }
    return MIXT_OK;
}

/** All of them, of all ranks. */
static mixt_status run_update(court *c, double *loss)
{
    const mixt__trainer *t = c->q->trainer;
    size_t bytes = (size_t)mixt__ranks_made(t) * sizeof(double);
    double *mine = mixt__alloc(bytes), *all = NULL, sum = 0;
    int count;
    mixt_status status = mixt__consensus_agree(
        t, mine ? run_own(c, mine) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the losses of an update"));
    if (status == MIXT_OK)
        status = mixt__consensus_gather(t, mine, bytes, (void **)&all, &count);
    for (int64_t i = 0; status == MIXT_OK && i < mixt__trainer_settings_of(t)->accumulate; i++)
        sum += all[i];
    *loss = sum / (double)mixt__trainer_settings_of(t)->accumulate;
    mixt__free(mine);
    mixt__free(all);
    return status;
}

/** Of the gradients of the shadow's last run. */
static mixt_status measure_norm(const court *c, double *norm)
{
    enum { PIECE = 1 << 16 };
    int64_t total = mixt__trainer_params(c->q->trainer)->total;
    float *values = mixt__alloc_uninit(PIECE * sizeof *values);
    mixt_status status = values ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for gradients");
    double squares = 0;
    for (int64_t at = 0; at < total && status == MIXT_OK; at += PIECE) {
        int64_t count = total - at < PIECE ? total - at : PIECE;
        status = mixt__shadow_gradients(c->shadow, at, count, values);
        for (int64_t i = 0; i < count && status == MIXT_OK; i++)
            squares += (double)values[i] * (double)values[i];
    }
    mixt__free(values);
    *norm = sqrt(squares);
    return status;
}

mixt_status mixt__inquire_same_weights(mixt__inquiry *q, double *loss, double *norm)
{
    court c = {.q = q};
    *norm = NAN;
    MIXT_TRY(mixt__replay_to(&q->replay, q->begin - 1));
    mixt_status status = mixt__consensus_agree(q->trainer, open_court(&c));
    if (status == MIXT_OK)
        status = run_update(&c, loss);
    if (status == MIXT_OK && mixt__trainer_settings_of(q->trainer)->accumulate == 1)
        status = measure_norm(&c, norm);
    close_court(&c);
    return status;
}

mixt_status mixt__inquire_batch(mixt__inquiry *q)
{
    court c = {.q = q};
    MIXT_TRY(mixt__replay_to(&q->replay, q->begin - 1));
    mixt_status status = mixt__consensus_agree(q->trainer, open_court(&c));
    if (status == MIXT_OK)
        status = judge(&c);
    close_court(&c);
    return status;
}
