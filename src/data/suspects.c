/* Rows of a table that do not look like the others: told as warnings when a set is opened, never changed or left out.
 *
 *   size    a value 10,000 times as large as any other row's in its channel: a sample in other units, or damaged
 *   runs    one label in many rows in a row, where labels are in random order otherwise
 *   labels  rows in a row whose labels do not fit their inputs, where others' do: nearest mean of a class, on some
 *           hundred elements
 *
 * Files sorted by class are common: they have long runs, and those are no sign. What is hard to tell apart is no sign
 * either: a row counts against its own class's share of misses.
 */
#include "data/data.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    TOP = 8,          // rows that may be suspected of their size
    ROWS_LEAST = 200, // fewer tell nothing
    BLOCK_LEAST = 48, // labels in a row
    LOOKED = 128,     // elements of a row that are compared with means
    CLASSES_MOST = 200,
};
static const float LARGER = 1e4f;       // than any other row
static const double CHANCE = 1e-9;      // of a run, or of misses in a row, in files that are as they should be
static const double MISSES_WRONG = 0.9; // share of misses among labels that are wrong
static const double MISSES_USUAL = 0.6; // of right ones, at most: else labels cannot be checked so

/* ---- size ---- */

typedef struct large {
    float size;
    int64_t row;
} large;

/** Keeps the largest, in order. */
static void take(large top[TOP + 1], float size, int64_t row)
{
    int i = TOP;
    for (; i > 0 && top[i - 1].size < size; i--)
        top[i] = top[i - 1];
    top[i] = (large){size, row};
}

static void find_sizes(const mixt__table *t, int64_t channels, large *top, float *sizes)
{
    int64_t elements = mixt__table_elements(t);
    for (int64_t row = 0; row < t->rows; row++) {
        const float *x = (const float *)t->input + row * elements;
        memset(sizes, 0, (size_t)channels * sizeof *sizes);
        for (int64_t k = 0; k < elements; k += channels)
            for (int64_t c = 0; c < channels; c++)
                sizes[c] = fmaxf(sizes[c], fabsf(x[k + c]));
        for (int64_t c = 0; c < channels; c++)
            if (sizes[c] > top[c * (TOP + 1) + TOP].size)
                take(top + c * (TOP + 1), sizes[c], row);
    }
}

/** How many rows stand out in a channel. */
static int count_larger(const large top[TOP + 1])
{
    for (int i = TOP; i > 0; i--)
        if (top[i].size > 0 && top[i - 1].size / top[i].size > LARGER)
            return i;
    return 0;
}

/** @param found set to whether any stand out */
static mixt_status check_sizes(mixt_data *data, const mixt__table *t, bool *found)
{
    int64_t channels = t->dims[t->rank - 1], told[TOP];
    int count = 0;
    large *top = mixt__alloc((size_t)channels * (TOP + 1) * sizeof *top);
    float *sizes = mixt__alloc((size_t)channels * sizeof *sizes);
    mixt_status status = top && sizes ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to look at", t->path);
    if (status == MIXT_OK)
        find_sizes(t, channels, top, sizes);
    for (int64_t c = 0; status == MIXT_OK && c < channels; c++) {
        const large *of = top + c * (TOP + 1);
        int larger = count_larger(of);
        for (int i = 0; i < larger && status == MIXT_OK && count < TOP; i++) {
            bool known = false;
            for (int k = 0; k < count; k++)
                known = known || told[k] == of[i].row;
            if (known)
                continue;
            told[count++] = of[i].row;
            status = mixt__data_warn(data,
                                     "%s: sample %lld of the file (from 0) has %.4g in channel %lld, where no other "
                                     "has more than %.4g: is it in other units, or damaged?",
                                     t->path, (long long)of[i].row, (double)of[i].size, (long long)c,
                                     (double)of[larger].size);
        }
    }
    *found = count > 0;
    mixt__free(top);
    mixt__free(sizes);
    return status;
}

/* ---- labels ---- */

/** Some rows in a row. */
typedef struct block {
    int64_t begin, count;
} block;

static block longest_run(const mixt__table *t)
{
    block best = {0, 0}, run = {0, 0};
    for (int64_t i = 0; i < t->rows; i++) {
        run = i && t->labels[i] == t->labels[i - 1] ? (block){run.begin, run.count + 1} : (block){i, 1};
        best = run.count > best.count ? run : best;
    }
    return best;
}

/** Rows of each class, but for those of a block. @return how many */
static int64_t count_classes(const mixt__table *t, const block *without, int64_t *counts)
{
    int64_t all = 0;
    memset(counts, 0, (size_t)t->classes * sizeof *counts);
    for (int64_t i = 0; i < t->rows; i++)
        if ((i < without->begin || i >= without->begin + without->count) && t->labels[i] >= 0 &&
            t->labels[i] < t->classes) {
            counts[t->labels[i]]++;
            all++;
        }
    return all;
}

/** Whether neighbours have the same label as often as in random order, or more rarely. */
static bool is_mixed(const mixt__table *t, const block *without, const int64_t *counts, int64_t all)
{
    int64_t same = 0, pairs = 0;
    double expected = 0;
    for (int64_t i = 1; i < t->rows; i++)
        if (i < without->begin || i > without->begin + without->count) {
            same += t->labels[i] == t->labels[i - 1];
            pairs++;
        }
    for (int64_t c = 0; c < t->classes; c++)
        expected += ((double)counts[c] / (double)all) * ((double)counts[c] / (double)all);
    double share = (double)same / (double)pairs, spread = sqrt(expected / (double)pairs);
    return share < 1.2 * expected + 5 * spread;
}

static mixt_status check_runs(mixt_data *data, const mixt__table *t, int64_t *counts)
{
    block run = longest_run(t);
    int32_t label = t->labels[run.begin];
    int64_t all = count_classes(t, &run, counts);
    if (run.count < BLOCK_LEAST || all < ROWS_LEAST || label < 0 || label >= t->classes)
        return MIXT_OK;
    double share = ((double)counts[label] + 1) / ((double)all + 2);
    double chance = log((double)t->rows) + (double)run.count * log(share); // Bonferroni over where it may begin
    if (chance > log(CHANCE) || !is_mixed(t, &run, counts, all))
        return MIXT_OK;
    return mixt__data_warn(
        data,
        "%s: samples %lld to %lld of the file (from 0) are all of class %d, and labels are in random "
        "order otherwise: are those labels wrong?",
        t->path, (long long)run.begin, (long long)(run.begin + run.count - 1), (int)label);
}

/* ---- labels and inputs ---- */

/** Rows as they are compared: some of their elements, scaled. */
typedef struct glance {
    const mixt__table *table;
    const float *mean, *scale; // (channels) sample = (stored - mean) × scale, stored bytes as 0 to 1
    int64_t elements, channels, step, looked;
} glance;

static glance glance_of(const mixt__table *t, const float *mean, const float *std, float *scale)
{
    glance g = {.table = t, .mean = mean, .scale = scale};
    g.elements = mixt__table_elements(t);
    g.channels = t->dims[t->rank - 1];
    g.step = g.elements > LOOKED ? g.elements / LOOKED : 1;
    g.looked = (g.elements + g.step - 1) / g.step;
    for (int64_t c = 0; c < g.channels; c++)
        scale[c] = std[c] > 0 ? 1 / std[c] : 1;
    return g;
}

static void read_row(const glance *g, int64_t row, float *x)
{
    for (int64_t i = 0, k = 0; i < g->looked; i++, k += g->step) {
        int64_t at = row * g->elements + k, c = k % g->channels;
        float value = g->table->dtype == MIXT_DTYPE_UINT8 ? (float)((const unsigned char *)g->table->input)[at] / 255
                                                          : ((const float *)g->table->input)[at];
        x[i] = fmaxf(-5, fminf(5, (value - g->mean[c]) * g->scale[c]));
    }
}

static bool is_labelled(const mixt__table *t, int64_t row)
{
    return t->labels[row] >= 0 && t->labels[row] < t->classes;
}

static void find_means(const glance *g, const int64_t *counts, float *x, float *means)
{
    const mixt__table *t = g->table;
    for (int64_t row = 0; row < t->rows; row++) {
        if (!is_labelled(t, row))
            continue;
        float *mean = means + t->labels[row] * g->looked, share = 1 / (float)counts[t->labels[row]];
        read_row(g, row, x);
        for (int64_t i = 0; i < g->looked; i++)
            mean[i] += share * x[i];
    }
}

/** Whether another class that has rows is nearer than the row's own. */
static bool misses(const glance *g, const int64_t *counts, const float *means, const float *x, int32_t label)
{
    float best = FLT_MAX;
    int64_t nearest = -1;
    for (int64_t c = 0; c < g->table->classes; c++) {
        float distance = 0;
        for (int64_t i = 0; i < g->looked && counts[c]; i++)
            distance += (x[i] - means[c * g->looked + i]) * (x[i] - means[c * g->looked + i]);
        if (counts[c] && distance < best) {
            best = distance;
            nearest = c;
        }
    }
    return nearest != label;
}

/** The rows in a row that are most likely wrong, from whether each misses. @param usual share of misses by class
 *  @param likelihood receives the logarithm of how much more likely */
static block worst_block(const mixt__table *t, const bool *missed, const double *usual, double *likelihood)
{
    block best = {0, 0};
    double sum = 0;
    int64_t begin = 0;
    *likelihood = 0;
    for (int64_t row = 0; row < t->rows; row++) {
        if (!is_labelled(t, row))
            continue;
        double miss = usual[t->labels[row]];
        sum += missed[row] ? log(MISSES_WRONG / miss) : log((1 - MISSES_WRONG) / (1 - miss));
        if (sum <= 0) {
            sum = 0;
            begin = row + 1;
        }
        if (sum > *likelihood) {
            *likelihood = sum;
            best = (block){begin, row + 1 - begin};
        }
    }
    return best;
}

static mixt_status check_fit(mixt_data *data, const glance *g, const int64_t *counts, float *room, bool *missed,
                             double *usual)
{
    const mixt__table *t = g->table;
    float *x = room, *means = room + g->looked;
    double all = 0, likelihood;
    find_means(g, counts, x, means);
    for (int64_t row = 0; row < t->rows; row++) {
        if (!is_labelled(t, row))
            continue;
        read_row(g, row, x);
        missed[row] = misses(g, counts, means, x, t->labels[row]);
        usual[t->labels[row]] += missed[row];
        all += missed[row];
    }
    for (int64_t c = 0; c < t->classes; c++) { // neither never nor always
        double share = (usual[c] + 1) / ((double)counts[c] + 2);
        usual[c] = fmin(fmax(share, 0.02), 0.95 * MISSES_WRONG);
    }
    if (all / (double)t->rows > MISSES_USUAL)
        return MIXT_OK;
    block worst = worst_block(t, missed, usual, &likelihood);
    if (worst.count < BLOCK_LEAST || worst.count * 4 > t->rows || likelihood < log((double)t->rows) - log(CHANCE))
        return MIXT_OK;
    return mixt__data_warn(data,
                           "%s: the labels of samples %lld to %lld of the file (from 0), or about those, do not fit "
                           "their inputs as others' do: are they wrong?",
                           t->path, (long long)worst.begin, (long long)(worst.begin + worst.count - 1));
}

static mixt_status check_labels(mixt_data *data, const mixt__table *t, const float *mean, const float *std)
{
    int64_t channels = t->dims[t->rank - 1], *counts = mixt__alloc((size_t)t->classes * sizeof *counts);
    float *scale = mixt__alloc((size_t)channels * sizeof *scale);
    double *usual = mixt__alloc((size_t)t->classes * sizeof *usual);
    bool *missed = mixt__alloc((size_t)t->rows);
    mixt_status status = counts && scale && usual && missed
                             ? check_runs(data, t, counts)
                             : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to look at labels", t->path);
    if (status == MIXT_OK) {
        glance g = glance_of(t, mean, std, scale);
        float *room = mixt__alloc((size_t)((t->classes + 1) * g.looked) * sizeof *room);
        (void)count_classes(t, &(block){0, 0}, counts);
        status = room ? check_fit(data, &g, counts, room, missed, usual)
                      : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to look at labels", t->path);
        mixt__free(room);
    }
    mixt__free(counts);
    mixt__free(scale);
    mixt__free(usual);
    mixt__free(missed);
    return status;
}

mixt_status mixt__table_suspects(mixt_data *data, const mixt__table *t, const float *mean, const float *std)
{
    bool large = false;
    if (data->options.no_check || t->rows < ROWS_LEAST)
        return MIXT_OK;
    if (t->dtype == MIXT_DTYPE_FP32)
        MIXT_TRY(check_sizes(data, t, &large));
    bool labels = t->labels && t->classes > 1 && t->classes <= CLASSES_MOST;
    return labels && !large ? check_labels(data, t, mean, std) : MIXT_OK;
}
