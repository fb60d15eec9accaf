/* Choosing buckets: the lengths that leave the least padding.
 *
 * Lengths are rounded up to whole steps, which makes few of them: a grid. Buckets are a chain of its points, each
 * larger than the one before in no length smaller; what a chain costs is the sum over its points of the samples that
 * come with one, times what a sample is padded to there. The cheapest chain of at most so many points is found by
 * dynamic programming: exact on the grid, and the same whenever the set is the same.
 */
#include "data/buckets_inside.h"

#include "base/log.h"

#include <string.h>

enum {
    STEP = 8,      // what lengths are rounded up to
    VALUES = 48,   // rounded lengths of an axis, at most
    BY_ITSELF = 4, // buckets where nobody says how many,
    WORTH = 10,    // and the percent of elements that they must save then
};

/** Lengths of samples, rounded up: a grid and what lies on it. */
typedef struct grid {
    int64_t step[MIXT_BUCKET_AXES], most[MIXT_BUCKET_AXES]; // what is rounded to; the longest that there is
    int64_t values[MIXT_BUCKET_AXES];                       // points of each axis
    int64_t points;
    int64_t *below; // (points) samples that fit
    int64_t *cost;  // (buckets, points) of the cheapest chain that ends there
    int32_t *from;  // (buckets, points) the point before
} grid;

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its lengths", data->kind->name, data->path);
}

/** Lengths of one sample. */
static void lengths_of(const mixt_data *data, int64_t index, int64_t lengths[MIXT_BUCKET_AXES])
{
    const mixt__data_buckets *b = data->buckets;
    for (int x = 0; x < b->axes; x++)
        lengths[x] = data->kind->length(data, index, b->array[x]);
}

/** Whether two arrays are as long as each other in all samples. */
static bool same_lengths(const mixt_data *data, int a, int b)
{
    for (int64_t i = 0; i < data->info.samples; i++)
        if (data->kind->length(data, i, a) != data->kind->length(data, i, b))
            return false;
    return true;
}

/** Which arrays have lengths, and which of those have the same ones. */
static void find_axes(mixt_data *data)
{
    mixt__data_buckets *b = data->buckets;
    for (int i = 0; i < data->info.array_count; i++) {
        b->axis[i] = -1;
        if (!data->info.arrays[i].rank || data->kind->length(data, 0, i) < 0)
            continue;
        for (int x = 0; x < b->axes && b->axis[i] < 0; x++)
            if (data->info.arrays[b->array[x]].dims[0] == data->info.arrays[i].dims[0] &&
                same_lengths(data, b->array[x], i))
                b->axis[i] = x;
        if (b->axis[i] < 0 && b->axes < MIXT_BUCKET_AXES) { // one more keeps its longest
            b->axis[i] = b->axes;
            b->array[b->axes++] = i;
        }
    }
}

/** Elements of one place of an axis, of all arrays that have it. */
static int64_t weight_of(const mixt_data *data, int axis)
{
    int64_t weight = 0;
    for (int i = 0; i < data->info.array_count; i++)
        if (data->buckets->axis[i] == axis)
            weight += data->info.arrays[i].elements / data->info.arrays[i].dims[0];
    return weight;
}

static int64_t elements_of(const mixt_data *data, const int64_t places[MIXT_BUCKET_AXES])
{
    int64_t elements = 0;
    for (int x = 0; x < data->buckets->axes; x++)
        elements += places[x] * weight_of(data, x);
    return elements;
}

static void free_grid(grid *g)
{
    mixt__free(g->below);
    mixt__free(g->cost);
    mixt__free(g->from);
}

/** The lengths that a point of the grid stands for. */
static void places_of(const mixt_data *data, const grid *g, int64_t point, int64_t places[MIXT_BUCKET_AXES])
{
    for (int x = 0; x < data->buckets->axes; x++, point /= g->values[x - 1]) {
        int64_t longest = data->info.arrays[data->buckets->array[x]].dims[0];
        places[x] = (point % g->values[x] + 1) * g->step[x];
        places[x] = places[x] > data->kind->least ? places[x] : data->kind->least;
        places[x] = places[x] < longest ? places[x] : longest;
    }
}

/** The point that holds these lengths. */
static int64_t point_of(const mixt_data *data, const grid *g, const int64_t lengths[MIXT_BUCKET_AXES])
{
    int64_t point = 0, stride = 1;
    for (int x = 0; x < data->buckets->axes; stride *= g->values[x++])
        point += lengths[x] ? (lengths[x] - 1) / g->step[x] * stride : 0;
    return point;
}

/** Counts samples by their point, then those below each: sums along every axis in turn. */
static mixt_status make_grid(const mixt_data *data, int buckets, grid *g)
{
    int64_t lengths[MIXT_BUCKET_AXES];
    for (int64_t i = 0; i < data->info.samples; i++) {
        lengths_of(data, i, lengths);
        for (int x = 0; x < data->buckets->axes; x++)
            g->most[x] = lengths[x] > g->most[x] ? lengths[x] : g->most[x];
    }
    g->points = 1;
    for (int x = 0; x < data->buckets->axes; x++) {
        g->step[x] = STEP;
        while ((g->most[x] + g->step[x] - 1) / g->step[x] > VALUES)
            g->step[x] += STEP;
        g->values[x] = g->most[x] ? (g->most[x] + g->step[x] - 1) / g->step[x] : 1;
        g->points *= g->values[x];
    }
    g->below = mixt__alloc((size_t)g->points * sizeof *g->below);
    g->cost = mixt__alloc((size_t)(g->points * buckets) * sizeof *g->cost);
    g->from = mixt__alloc((size_t)(g->points * buckets) * sizeof *g->from);
    if (!g->below || !g->cost || !g->from)
        return no_memory(data);
    for (int64_t i = 0; i < data->info.samples; i++) {
        lengths_of(data, i, lengths);
        g->below[point_of(data, g, lengths)]++;
    }
    for (int64_t x = 0, stride = 1; x < data->buckets->axes; stride *= g->values[x++])
        for (int64_t p = 0; p < g->points; p++)
            g->below[p] += p / stride % g->values[x] ? g->below[p - stride] : 0;
    return MIXT_OK;
}

/** Whether point `a` is another one than `b` and no longer in any length. */
static bool is_below(const mixt_data *data, const grid *g, int64_t a, int64_t b)
{
    bool below = a != b;
    for (int x = 0; x < data->buckets->axes; a /= g->values[x], b /= g->values[x], x++)
        below = below && a % g->values[x] <= b % g->values[x];
    return below;
}

/** The cheapest chain of at most `buckets` points to the last point of the grid, the shortest first; its length. */
static int find_chain(const mixt_data *data, int buckets, grid *g, int64_t *chain)
{
    int64_t places[MIXT_BUCKET_AXES], last = g->points - 1;
    int best = 0;
    for (int k = 0; k < buckets; k++)
        for (int64_t q = 0; q < g->points; q++) {
            int64_t at = k * g->points + q;
            places_of(data, g, q, places);
            int64_t each = elements_of(data, places);
            g->cost[at] = g->below[q] * each;
            g->from[at] = -1;
            for (int64_t p = 0; k && p < q; p++) {
                int64_t cost = g->cost[at - q - g->points + p] + (g->below[q] - g->below[p]) * each;
                if (cost < g->cost[at] && is_below(data, g, p, q)) {
                    g->cost[at] = cost;
                    g->from[at] = (int32_t)p;
                }
            }
        }
    for (int k = 1; k < buckets; k++)
        best = g->cost[k * g->points + last] < g->cost[best * g->points + last] ? k : best;
    int count = 1;
    for (int64_t p = last, k = best; g->from[k * g->points + p] >= 0; p = g->from[k-- * g->points + p])
        count++;
    for (int64_t p = last, k = best, i = count - 1; i >= 0; p = g->from[k-- * g->points + p], i--)
        chain[i] = p;
    return count;
}

/** What samples of a bucket look like. */
static mixt_status describe(mixt_data *data, mixt__data_bucket *bucket)
{
    const mixt__data_buckets *b = data->buckets;
    mixt_data_info *info = &bucket->info;
    mixt_data_array *arrays = mixt__arena_alloc(&data->arena, (size_t)data->info.array_count * sizeof *arrays);
    if (!arrays)
        return no_memory(data);
    *info = data->info;
    info->arrays = arrays;
    info->input_elements = info->target_elements = 0;
    for (int i = 0; i < info->array_count; i++) {
        arrays[i] = data->info.arrays[i];
        if (b->axis[i] >= 0) {
            int64_t each = arrays[i].elements / arrays[i].dims[0];
            arrays[i].dims[0] = bucket->places[b->axis[i]];
            arrays[i].elements = each * arrays[i].dims[0];
        }
        *(arrays[i].target ? &info->target_elements : &info->input_elements) += arrays[i].elements;
    }
    memcpy(info->input_dims, arrays[0].dims, sizeof info->input_dims);
    return MIXT_OK;
}

/** Puts samples where they belong, and counts elements. */
static void sort_samples(mixt_data *data)
{
    mixt__data_buckets *b = data->buckets;
    int64_t lengths[MIXT_BUCKET_AXES];
    for (int64_t i = 0; i < data->info.samples; i++) {
        int k = 0;
        lengths_of(data, i, lengths);
        for (bool fits = false; !fits; k += !fits) {
            fits = true;
            for (int x = 0; x < b->axes; x++)
                fits = fits && lengths[x] <= b->bucket[k].places[x];
        }
        b->of[i] = (uint8_t)k;
        b->bucket[k].samples++;
        b->filled += elements_of(data, lengths);
        b->with += elements_of(data, b->bucket[k].places);
    }
    b->without = data->info.samples * elements_of(data, b->bucket[b->count - 1].places);
}

/** The chain as buckets, and behind it the set's own lengths where those are longer. */
static mixt_status take_chain(mixt_data *data, const grid *g, const int64_t *chain, int count)
{
    mixt__data_buckets *b = data->buckets;
    bool whole = true;
    for (int k = 0; k < count; k++)
        places_of(data, g, chain[k], b->bucket[k].places);
    for (int x = 0; x < b->axes; x++) {
        int64_t longest = data->info.arrays[b->array[x]].dims[0];
        whole = whole && b->bucket[count - 1].places[x] == longest;
        b->bucket[count].places[x] = longest;
    }
    b->count = count + !whole;
    b->of = mixt__alloc((size_t)data->info.samples);
    if (!b->of)
        return no_memory(data);
    for (int k = 0; k < b->count; k++)
        MIXT_TRY(describe(data, &b->bucket[k]));
    sort_samples(data);
    return mixt__data_epochs_take(data);
}

static mixt_status make(mixt_data *data)
{
    mixt__data_buckets *b = data->buckets;
    int64_t chain[MIXT_BUCKETS_MAX];
    int most = data->options.buckets < 0 ? BY_ITSELF : (int)data->options.buckets;
    grid g = {0};
    find_axes(data);
    mixt_status status = b->axes ? make_grid(data, most, &g) : MIXT_OK;
    if (status == MIXT_OK && b->axes)
        status = take_chain(data, &g, chain, find_chain(data, most, &g, chain));
    free_grid(&g);
    return status;
}

mixt_status mixt__data_buckets_make(mixt_data *data)
{
    int64_t asked = data->options.buckets;
    if (asked > 1 && !data->kind->length)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "data: 'buckets' is not for %s (%s), whose samples all have the same length; leave it out",
                          data->kind->name, data->kind->what);
    if (asked == 0 || asked == 1 || !data->kind->length || !data->info.samples || data->info.samples > INT32_MAX)
        return MIXT_OK;
    if (asked < 0 && (!data->kind->bucketed || data->options.in_order))
        return MIXT_OK;
    if (data->options.in_order)
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "%s:%s: data.in_order keeps the order of the file, but data.buckets sorts by length: set only one of them",
            data->kind->name, data->path);
    data->buckets = mixt__alloc(sizeof *data->buckets);
    if (!data->buckets)
        return no_memory(data);
    pthread_mutex_init(&data->buckets->lock, NULL);
    MIXT_TRY(make(data));
    const mixt__data_buckets *b = data->buckets;
    MIXT_LOG(DATA, "%s:%s: %d buckets, %lld elements of an epoch in place of %lld", data->kind->name, data->path,
             b->count, (long long)b->with, (long long)b->without);
    bool worth = asked > 0 || 100 * b->with <= (100 - WORTH) * b->without;
    if (b->count > 1 && worth)
        return MIXT_OK;
    mixt__data_buckets_free(data->buckets);
    data->buckets = NULL;
    return MIXT_OK;
}

void mixt__data_buckets_free(mixt__data_buckets *b)
{
    if (!b)
        return;
    mixt__data_epochs_free(b);
    pthread_mutex_destroy(&b->lock);
    mixt__free(b);
}

/* ---- what is told of them ---- */

int mixt__data_bucket_count(const mixt_data *data)
{
    return data->buckets ? data->buckets->count : 0;
}

const mixt__data_bucket *mixt__data_bucket_at(const mixt_data *data, int bucket)
{
    return &data->buckets->bucket[bucket];
}

const char *mixt__data_bucket_axis(const mixt_data *data, int axis)
{
    const mixt__data_buckets *b = data->buckets;
    int found = b && axis < b->axes ? b->array[axis] : -1;
    for (int i = 0; found >= 0 && i < data->info.array_count; i++) // "target" says more than "previous"
        found = b->axis[i] == axis && data->info.arrays[i].target ? i : found;
    return found < 0 ? NULL : data->info.arrays[found].name;
}

void mixt__data_bucket_elements(const mixt_data *data, int64_t *without, int64_t *with, int64_t *filled)
{
    *without = data->buckets->without;
    *with = data->buckets->with;
    *filled = data->buckets->filled;
}
