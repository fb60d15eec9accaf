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

enum { OTHERS = 3 };                 // batches to compare with
static const double many_times = 20; // the loss of others: guilty, however widely losses scatter
static const double far_above = 3;   // times a loss: not by another way that training took
static const double outlying = 100;  // times the largest input of another batch
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
    bool confirms;       // from weights of a lower learning rate: their level tells nothing
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

/** A pass to compare with: of the updates before as they were made, for batches may have been left out between; where
 *  they are not known, one that came before or will come. */
static int64_t other_pass(const court *c, int64_t first, int64_t index)
{
    int64_t passes = mixt__trainer_settings_of(c->q->trainer)->accumulate, update = c->q->begin - 1 - index / passes;
    const mixt__trace_row *row = mixt__trace_row_of(&c->q->ring->trace, update);
    if (row)
        return row->batch + passes - 1 - index % passes;
    return first >= OTHERS ? first - 1 - index : first + passes + index;
}

/** Of passes that came before, or where there were none, will come. The median is not moved by one that is bad too. */
static mixt_status run_others(court *c, int64_t first)
{
    double losses[OTHERS];
    for (int64_t i = 0; i < OTHERS; i++) {
        int64_t pass = other_pass(c, first, i);
        MIXT_TRY(run_pass(c, pass, &losses[i]));
        losses[i] = isnan(losses[i]) ? (double)INFINITY : losses[i];
    }
    double low = fmin(losses[0], losses[1]), high = fmax(losses[0], losses[1]);
    c->others = fmax(low, fmin(high, losses[2]));
    return read_pass(c, other_pass(c, first, 0), c->other_input, c->other_target);
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

/** The largest magnitude among the inputs of sample `place` of a batch that are FP32. */
static double size_of(const court *c, const float *input, const char *target, int64_t place)
{
    const mixt_data_info *info = mixt_data_describe(c->q->replay.data);
    int64_t batch = mixt__trainer_settings_of(c->q->trainer)->batch;
    mixt__data_places places =
        mixt__data_places_of(c->q->replay.data, batch, place, (void *)(uintptr_t)input, (void *)(uintptr_t)target);
    double largest = 0;
    for (int a = 0; a < info->array_count; a++) {
        const mixt_data_array *array = &info->arrays[a];
        const float *numbers = (const float *)(void *)places.at[a];
        for (int64_t i = 0; !array->target && array->dtype == MIXT_DTYPE_FP32 && i < array->elements; i++)
            largest = fmax(largest, fabs((double)numbers[i]));
    }
    return largest;
}

/** The sample whose inputs are by far larger than any of another batch; -1: none. @param times by how much */
static int64_t find_outlier(const court *c, double *times)
{
    int64_t batch = mixt__trainer_settings_of(c->q->trainer)->batch, found = -1;
    double usual = 0;
    for (int64_t i = 0; i < batch; i++)
        usual = fmax(usual, size_of(c, c->other_input, c->other_target, i));
    *times = outlying;
    for (int64_t i = 0; i < batch && usual > 0; i++) {
        double now = size_of(c, c->input, c->target, i) / usual;
        found = now > *times ? i : found;
        *times = fmax(*times, now);
    }
    return found;
}

/** The file or folder without where it lies: a run that goes on may name that in another way. */
static const char *file_of(const mixt_data_info *info)
{
    const char *slash = strrchr(info->path, '/');
    const char *name = slash && slash[1] ? slash + 1 : info->path;
    return *name ? name : info->kind;
}

/** Where the suspect's batch stands in the data, and the sample at a place of it. @param place -1: no single one */
static void locate(const court *c, int64_t place)
{
    mixt_diagnosis *d = c->q->d;
    const mixt_data *data = c->q->replay.data;
    const mixt__trainer_settings *s = mixt__trainer_settings_of(c->q->trainer);
    mixt__data_which which = which_of(s, c->pass);
    int64_t per_epoch = mixt__data_epoch_batches(data, which.batch, which.group), number = which.number;
    d->kind = MIXT_DIAGNOSIS_BATCH;
    d->cause = MIXT_CAUSE_DATA;
    d->epoch = number / per_epoch + 1;
    d->batch = number % per_epoch;
    d->place = place < 0 ? -1 : place + c->pass % parts_of(s) * s->batch;
    d->sample = place < 0 ? -1 : mixt__data_sample_at(data, &which, d->place);
    d->rank = s->ranks > 1 ? c->rank : -1;
}

static mixt_status name_batch(const court *c, bool guilty)
{
    mixt_diagnosis *d = c->q->d;
    const mixt_data *data = c->q->replay.data;
    const mixt_data_info *info = mixt_data_describe(data);
    int64_t place = find_broken(c);
    bool broken = place >= 0;
    if (!broken && guilty)
        MIXT_TRY(bisect(c, &place));
    locate(c, place);
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
             "a loss of %.4g in FP32 from the same weights: this machine is not reliable",
             (long long)d->step, where, d->value, d->fp32, c->loss);
}

/** The suspect is found. */
static mixt_status judge_suspect(court *c)
{
    mixt__inquiry *q = c->q;
    const mixt__trace_row *row = mixt__trace_row_of(&q->ring->trace, q->begin);
    MIXT_TRY(run_others(c, row->batch));
    MIXT_TRY(read_pass(c, c->pass, c->input, c->target));
    bool all = !c->confirms && stands_out(q, c->others, q->usual.loss);
    bool guilty = stands_out(q, c->loss, c->others) || c->loss > many_times * c->others;
    if (!c->confirms && !guilty && !all && is_contradicted(c)) {
        blame_machine(c);
        return MIXT_OK;
    }
    q->d->fp32 = c->loss;
    if (find_broken(c) >= 0 || (guilty && !all))
        return name_batch(c, guilty);
    snprintf(q->words->text, sizeof q->words->text,
             "unknown: update %lld gives the same bits again, its batch has a loss of %.4g in FP32, others %.4g, usual "
             "was %.4g",
             (long long)q->begin, c->loss, c->others, q->d->usual);
    return MIXT_OK;
}

/** What the rank that judges has found, for the others. */
static mixt_status take_over(const court *c)
{
    mixt__inquiry *q = c->q;
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

/** One rank judges, the others take over what it says. */
static mixt_status judge(court *c)
{
    mixt__inquiry *q = c->q;
    const mixt__group *group = mixt__ranks_group(q->trainer);
    MIXT_TRY(find_suspect(c, mixt__trace_row_of(&q->ring->trace, q->begin)->batch));
    bool here = !group || group->rank == c->rank;
    MIXT_TRY(mixt__consensus_agree(q->trainer, here ? judge_suspect(c) : MIXT_OK));
    return take_over(c);
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

/** The first of the passes of this process with such a sample. @param pass -1: none */
static mixt_status find_own_outlier(court *c, int64_t first, trial *found)
{
    *found = (trial){.pass = -1};
    MIXT_TRY(read_pass(c, other_pass(c, first, 0), c->other_input, c->other_target));
    first += mixt__ranks_first(c->q->trainer);
    for (int64_t p = first; p < first + mixt__ranks_made(c->q->trainer) && found->pass < 0; p++) {
        MIXT_TRY(read_pass(c, p, c->input, c->target));
        if (find_outlier(c, &found->loss) >= 0)
            found->pass = p;
    }
    return MIXT_OK;
}

static mixt_status name_outlier(court *c)
{
    mixt_diagnosis *d = c->q->d;
    double times;
    MIXT_TRY(read_pass(c, c->pass, c->input, c->target));
    locate(c, find_outlier(c, &times));
    snprintf(c->q->words->text, sizeof c->q->words->text,
             "data: sample %lld of %.200s, place %lld of batch %lld of epoch %lld, has inputs up to %.3g times the "
             "largest of another batch: FP32 can hold the results, the format cannot",
             (long long)d->sample, file_of(mixt_data_describe(c->q->replay.data)), (long long)d->place,
             (long long)d->batch, (long long)d->epoch, times);
    return MIXT_OK;
}

static mixt_status look_for_outlier(court *c, bool *found)
{
    const mixt__trainer *t = c->q->trainer;
    const mixt__group *group = mixt__ranks_group(t);
    int64_t first = mixt__trace_row_of(&c->q->ring->trace, c->q->begin)->batch;
    trial mine, *all;
    int count;
    MIXT_TRY(mixt__consensus_agree(t, find_own_outlier(c, first, &mine)));
    MIXT_TRY(mixt__consensus_gather(t, &mine, sizeof mine, (void **)&all, &count));
    c->pass = -1;
    for (int i = count - 1; i >= 0; i--)
        c->pass = all[i].pass >= 0 ? all[i].pass : c->pass;
    mixt__free(all);
    *found = c->pass >= 0;
    if (!*found)
        return MIXT_OK;
    c->rank = (int)((c->pass - first) / mixt__ranks_passes(t));
    bool here = !group || group->rank == c->rank;
    MIXT_TRY(mixt__consensus_agree(t, here ? name_outlier(c) : MIXT_OK));
    return take_over(c);
}

mixt_status mixt__inquire_outlier(mixt__inquiry *q, bool *found)
{
    court c = {.q = q};
    mixt_status status = mixt__consensus_agree(q->trainer, open_court(&c));
    if (status == MIXT_OK)
        status = look_for_outlier(&c, found);
    close_court(&c);
    return status;
}

mixt_status mixt__inquire_batch(mixt__inquiry *q, bool confirms)
{
    court c = {.q = q, .confirms = confirms};
    MIXT_TRY(mixt__replay_to(&q->replay, q->begin - 1));
    mixt_status status = mixt__consensus_agree(q->trainer, open_court(&c));
    if (status == MIXT_OK)
        status = judge(&c);
    close_court(&c);
    return status;
}
