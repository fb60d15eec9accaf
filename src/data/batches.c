/* Samples of an open set in the order that training or validation asks for them. A batch is a function of the set, the
 * size and the number: any thread may make any of them at any time. */
#include "data/buckets.h"

#include "base/threads.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

int64_t mixt_data_batches(const mixt_data *data, int64_t batch)
{
    return mixt__need_open(data, "data") == MIXT_OK && batch > 0 ? data->info.samples / batch : 0;
}

/** Sample `index` as number k behind the places. */
static mixt_status write_sample(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                                int64_t k, const mixt__data_places *places)
{
    char *at[MIXT_DATA_ARRAYS_MAX];
    for (int i = 0; i < as->array_count; i++)
        at[i] = places->at[i] + k * as->arrays[i].elements * 4; // FP32 and INT32: four bytes either way
    if (data->kind->arrays)
        return data->kind->arrays(data, as, index, epoch, at);
    return data->kind->sample(data, index, epoch, at[0], at[1]);
}

uint64_t mixt__data_order_seed(const mixt_data *data, int64_t epoch)
{
    if (epoch < data->order_from)
        return data->order_before;
    bool given = data->options.order_seed != (uint64_t)MIXT_AUTO;
    return given ? data->options.order_seed : data->options.seed;
}

void mixt__data_order_before(mixt_data *data, uint64_t seed, int64_t from)
{
    data->order_before = seed;
    data->order_from = from;
}

int64_t mixt__data_sample_at(const mixt_data *data, const mixt__data_which *w, int64_t place)
{
    if (data->buckets)
        return mixt__data_bucket_sample(data, w, place);
    int64_t per_epoch = data->info.samples / w->batch, epoch = w->number / per_epoch;
    int64_t at = w->number % per_epoch * w->batch + place;
    uint64_t key = mixt__rng_key(mixt__data_order_seed(data, epoch), MIXT_STREAM_ORDER, (uint64_t)epoch);
    return data->options.in_order ? at : mixt__order_at(key, data->info.samples, at);
}

void mixt__data_leave_out(const mixt_data *from, const int64_t *samples, int count)
{
    mixt_data *data = (mixt_data *)from;
    if (count)
        memcpy(data->left_out, samples, (size_t)count * sizeof *samples);
    data->left_out_count = count;
}

static bool is_left_out(const mixt_data *data, int64_t sample)
{
    for (int i = 0; i < data->left_out_count; i++)
        if (data->left_out[i] == sample)
            return true;
    return false;
}

/** The sample that is read for a place of a batch: that of the next place where its own is left out. */
static int64_t sample_for(const mixt_data *data, const mixt__data_which *w, int64_t place)
{
    int64_t own = mixt__data_sample_at(data, w, place), sample = own;
    for (int64_t i = 1; i < w->batch && is_left_out(data, sample); i++)
        sample = mixt__data_sample_at(data, w, (place + i) % w->batch);
    return is_left_out(data, sample) ? own : sample;
}

void mixt__data_inject(const mixt_data *injected, const mixt__data_fault *faults, int count)
{
    mixt_data *data = (mixt_data *)injected;
    if (count)
        memcpy(data->injected, faults, (size_t)count * sizeof *faults);
    data->injected_count = count;
}

/** Spoils sample `place` of a batch where that has a fault: its first input, or its first target. */
static void spoil(const mixt_data_info *info, const mixt__data_fault *f, int64_t place, float *input, void *target,
                  int64_t targets)
{
    if (!f->labels && place == f->place)
        input[info->arrays[0].elements / 2] = NAN;
    for (int64_t i = 0; f->labels && info->classes && i < targets; i++) {
        int32_t *label = (int32_t *)target + i;
        *label = *label < 0 ? *label : (int32_t)((*label + 1) % info->classes);
    }
    if (f->labels && !info->classes && place == f->place)
        ((float *)target)[0] += 1e4f;
}

/** The same for a part of it that lies at its places. */
static void spoil_piece(const mixt_data *data, const mixt__data_which *w, const mixt_data_info *info, int64_t first,
                        int64_t count, const mixt__data_places *places)
{
    int target = 0;
    while (!info->arrays[target].target)
        target++;
    int64_t inputs = info->arrays[0].elements, targets = info->arrays[target].elements;
    for (int i = 0; i < data->injected_count; i++)
        for (int64_t k = 0; k < count && data->injected[i].batch == w->batch && data->injected[i].number == w->number;
             k++)
            if (!is_left_out(data, mixt__data_sample_at(data, w, first + k)))
                spoil(info, &data->injected[i], first + k, (float *)(void *)places->at[0] + k * inputs,
                      (float *)(void *)places->at[target] + k * targets, targets);
}

mixt_status mixt__data_batch_piece(const mixt_data *data, const mixt__data_which *which, const mixt_data_info *as,
                                   int64_t first, int64_t count, const mixt__data_places *places)
{
    int64_t epoch = which->number / mixt__data_epoch_batches(data, which->batch, which->group);
    for (int64_t k = 0; k < count; k++)
        MIXT_TRY(write_sample(data, as, sample_for(data, which, first + k), epoch, k, places));
    if (data->injected_count)
        spoil_piece(data, which, as, first, count, places);
    return MIXT_OK;
}

mixt_status mixt_data_batch(const mixt_data *data, int64_t batch, int64_t number, void *input, void *target)
{
    MIXT_TRY(mixt__need_open(data, "data"));
    if (batch < 1 || batch > data->info.samples)
        return mixt__fail(
            MIXT_ERROR_ARGUMENT, "%s:%s: a batch of %lld samples, but the %s part has %lld; lower the batch size",
            data->info.kind, data->path, (long long)batch, data->info.split, (long long)data->info.samples);
    if (number < 0 || !input || !target)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "batch %lld: expected a number from 0 and two buffers",
                          (long long)number);
    mixt__data_places places = mixt__data_places_of(data, batch, 0, input, target);
    return mixt__data_batch_piece(data, &(mixt__data_which){batch, 1, number}, &data->info, 0, batch, &places);
}

/** Samples first + begin to first + end into their places. */
static mixt_status read_range(const mixt_data *data, int64_t first, int64_t begin, int64_t end,
                              const mixt__data_places *places)
{
    for (int64_t k = begin; k < end; k++)
        MIXT_TRY(write_sample(data, &data->info, first + k, -1, k, places));
    return MIXT_OK;
}

/** A read that all threads share, and the failure of its earliest sample. */
typedef struct shared_read {
    const mixt_data *data;
    int64_t first, bad;
    const mixt__data_places *places;
    pthread_mutex_t lock;
    mixt_status status;
    char error[2048];
} shared_read;

static void read_part(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    shared_read *r = argument;
    mixt_status status = read_range(r->data, r->first, begin, end, r->places);
    if (status == MIXT_OK)
        return;
    pthread_mutex_lock(&r->lock);
    if (r->status == MIXT_OK || begin < r->bad) {
        r->status = status;
        r->bad = begin;
        snprintf(r->error, sizeof r->error, "%s", mixt_error_text()); // this thread's text is not the caller's
    }
    pthread_mutex_unlock(&r->lock);
}

static mixt_status read_together(const mixt_data *data, int64_t first, int64_t count, const mixt__data_places *places)
{
    shared_read r = {.data = data, .first = first, .places = places, .status = MIXT_OK};
    pthread_mutex_init(&r.lock, NULL);
    mixt__parallel(count, 1, read_part, &r);
    pthread_mutex_destroy(&r.lock);
    if (r.status != MIXT_OK)
        mixt__error_set(r.error);
    return r.status;
}

mixt_status mixt_data_read(const mixt_data *data, int64_t first, int64_t count, void *input, void *target,
                           int64_t *valid)
{
    MIXT_TRY(mixt__need_open(data, "data"));
    MIXT_TRY(mixt__need(valid));
    return mixt__data_read_some(data, first, count, count, input, target, valid);
}

mixt_status mixt__data_read_some(const mixt_data *data, int64_t first, int64_t count, int64_t batch, void *input,
                                 void *target, int64_t *valid)
{
    *valid = 0;
    if (first < 0 || count < 1 || !input || !target)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "read of %lld samples at %lld: expected a count from 1 and two buffers",
                          (long long)count, (long long)first);
    if (first >= data->info.samples)
        return mixt__fail(MIXT_END, "%s:%s: all %lld samples are read", data->info.kind, data->path,
                          (long long)data->info.samples);
    mixt__data_places places = mixt__data_places_of(data, batch, 0, input, target);
    if (count > data->info.samples - first)
        count = data->info.samples - first;
    MIXT_TRY(data->kind->slow ? read_together(data, first, count, &places)
                              : read_range(data, first, 0, count, &places));
    *valid = count;
    return MIXT_OK;
}

mixt_status mixt_data_next(mixt_data *data, int64_t batch, void *input, void *target)
{
    MIXT_TRY(mixt__need_open(data, "data"));
    if (data->next == INT64_MAX) // there is no number after it
        return mixt__fail(MIXT_END, "%s:%s: batch %lld is past the last number", data->info.kind, data->path,
                          (long long)data->next);
    MIXT_TRY(mixt_data_batch(data, batch, data->next, input, target));
    data->next++;
    return MIXT_OK;
}

void mixt_data_seek(mixt_data *data, int64_t number)
{
    if (mixt__need_open(data, "data") == MIXT_OK)
        data->next = number < 0 ? 0 : number;
}
