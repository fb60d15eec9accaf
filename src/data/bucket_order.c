/* The updates of an epoch whose samples are in buckets.
 *
 * Samples in the epoch's order go to their buckets. Each bucket's fill whole updates; the rest, fewer than an update,
 * joins the rest of the bucket above, in the order, and so on. So every epoch has as many updates of each bucket, and
 * as many in all as without buckets. Then the updates are shuffled.
 */
#include "data/buckets_inside.h"

#include <stdlib.h>

mixt_status mixt__data_epochs_take(mixt_data *data)
{
    mixt__data_buckets *b = data->buckets;
    size_t samples = (size_t)data->info.samples;
    bool complete = (b->left = mixt__alloc(samples * sizeof *b->left)) != NULL;
    for (int i = 0; i < MIXT_EPOCHS_KEPT; i++)
        complete = (b->epochs[i].sample = mixt__alloc(samples * sizeof *b->epochs[i].sample)) && complete;
    return complete ? MIXT_OK
                    : mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for the order of its samples", data->kind->name,
                                 data->path);
}

void mixt__data_epochs_free(mixt__data_buckets *b)
{
    mixt__free(b->of);
    mixt__free(b->left);
    for (int i = 0; i < MIXT_EPOCHS_KEPT; i++)
        mixt__free(b->epochs[i].sample);
}

/** The last bucket that has samples: what is left there is left out. */
static int last_of(const mixt__data_buckets *b)
{
    int last = b->count - 1;
    while (last && !b->bucket[last].samples)
        last--;
    return last;
}

/** Where the updates of each bucket begin, in updates, and their number in all. */
static int64_t share_out(const mixt__data_buckets *b, int64_t update, int64_t first[MIXT_BUCKETS_MAX + 2])
{
    int64_t left = 0;
    int last = last_of(b);
    first[0] = 0;
    for (int k = 0; k < b->count; k++) {
        int64_t samples = b->bucket[k].samples + (k <= last ? left : 0);
        first[k + 1] = first[k] + samples / update;
        left = samples % update;
    }
    return first[b->count];
}

int64_t mixt__data_bucket_updates(const mixt_data *data, int bucket, int64_t samples)
{
    int64_t first[MIXT_BUCKETS_MAX + 2];
    share_out(data->buckets, samples, first);
    return first[bucket + 1] - first[bucket];
}

int64_t mixt__data_epoch_batches(const mixt_data *data, int64_t batch, int64_t group)
{
    return data->buckets ? data->info.samples / (batch * group) * group : data->info.samples / batch;
}

static uint64_t key_of(const mixt_data *data, int stream, int64_t epoch)
{
    return mixt__rng_key(mixt__data_order_seed(data, epoch), (uint64_t)stream, (uint64_t)epoch);
}

/** Which update of the epoch's table a batch is of, and which epoch's. */
static int64_t update_of(const mixt_data *data, const mixt__data_which *w, int64_t *epoch)
{
    int64_t updates = data->info.samples / (w->batch * w->group), update = w->number / w->group;
    *epoch = update / updates;
    return mixt__order_at(key_of(data, MIXT_STREAM_BUCKETS, *epoch), updates, update % updates);
}

int mixt__data_bucket_of(const mixt_data *data, const mixt__data_which *w)
{
    const mixt__data_buckets *b = data->buckets;
    int64_t first[MIXT_BUCKETS_MAX + 2], epoch;
    int k = 0;
    if (!b)
        return 0;
    share_out(b, w->batch * w->group, first);
    for (int64_t update = update_of(data, w, &epoch); update >= first[k + 1];)
        k++;
    return k;
}

static int by_place(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/** Puts together what is left of each bucket; `begin` is where it lies in b->left. */
static void fill_from_left(const mixt_data *data, mixt__epoch_table *t, const int64_t *first, const int64_t *begin)
{
    const mixt__data_buckets *b = data->buckets;
    int64_t from = 0; // the rest that moves up lies before what the next bucket has left
    for (int k = 0; k <= last_of(b); k++) {
        int64_t own = b->bucket[k].samples / t->update;
        qsort(b->left + from, (size_t)(begin[k + 1] - from), sizeof *b->left, by_place);
        for (int64_t u = first[k] + own; u < first[k + 1]; u++, from += t->update)
            for (int64_t i = 0; i < t->update; i++)
                t->sample[u * t->update + i] = (int32_t)mixt__order_at(t->key, data->info.samples, b->left[from + i]);
    }
}

/** All updates of an epoch. */
static void fill(const mixt_data *data, mixt__epoch_table *t)
{
    const mixt__data_buckets *b = data->buckets;
    int64_t first[MIXT_BUCKETS_MAX + 2], begin[MIXT_BUCKETS_MAX + 2] = {0}, next[MIXT_BUCKETS_MAX + 1],
                                                                  left[MIXT_BUCKETS_MAX + 1];
    share_out(b, t->update, first);
    for (int k = 0; k < b->count; k++) {
        begin[k + 1] = begin[k] + b->bucket[k].samples % t->update;
        next[k] = first[k] * t->update;
        left[k] = begin[k];
    }
    for (int64_t i = 0; i < data->info.samples; i++) {
        int32_t sample = (int32_t)mixt__order_at(t->key, data->info.samples, i);
        int k = b->of[sample];
        if (next[k] < (first[k] + b->bucket[k].samples / t->update) * t->update)
            t->sample[next[k]++] = sample;
        else
            b->left[left[k]++] = (int32_t)i;
    }
    fill_from_left(data, t, first, begin);
}

/** The table of an epoch, filled where it is not there. Under the lock. */
static const mixt__epoch_table *table_of(const mixt_data *data, int64_t update, int64_t epoch)
{
    mixt__data_buckets *b = data->buckets;
    uint64_t key = key_of(data, MIXT_STREAM_ORDER, epoch);
    for (int i = 0; i < MIXT_EPOCHS_KEPT; i++)
        if (b->epochs[i].update == update && b->epochs[i].key == key)
            return &b->epochs[i];
    mixt__epoch_table *t = &b->epochs[b->next];
    b->next = (b->next + 1) % MIXT_EPOCHS_KEPT;
    t->update = update;
    t->key = key;
    fill(data, t);
    return t;
}

int64_t mixt__data_bucket_sample(const mixt_data *data, const mixt__data_which *w, int64_t place)
{
    int64_t epoch, samples = w->batch * w->group, update = update_of(data, w, &epoch);
    pthread_mutex_lock(&data->buckets->lock);
    const mixt__epoch_table *t = table_of(data, samples, epoch);
    int64_t sample = t->sample[update * samples + w->number % w->group * w->batch + place];
    pthread_mutex_unlock(&data->buckets->lock);
    return sample;
}
