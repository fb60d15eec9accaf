/* Rows in one block, statistics in another; what is usual from medians of the rows before. */
#include "steer/trace.h"

#include "base/statistics.h"
#include "store/checksum.h"

#include <math.h>
#include <string.h>

enum {
    WINDOW = 50, // rows that tell what is usual
    LEVEL = 8,   // that tell a level
    QUIET = 3,   // rows without a sign that end a trouble
    KNOWN = 3,   // rows without which nothing is usual, but for a loss that is far off
};
static const double deviations = 5, least_rise = 0.26, least_norm = 1.1; // rises are of logarithms: 1.3 and 3 times
static const double next_to_nothing = 1e-5;                              // of the norm of all gradients
static const double least_deviation = 0.02, few_rise = 0.4; // 1.5 times a loss that is known from less rows

static size_t row_bytes(int64_t segments, int64_t ranks)
{
    return sizeof(mixt__trace_row) + (size_t)segments * sizeof(mixt__segment_stats) +
           (size_t)ranks * sizeof(mixt__trace_mark);
}

/** Ranks that leave marks. */
static int64_t ranks_of(const mixt__trainer *t)
{
    return mixt__trainer_settings_of(t)->ranks > 1 ? mixt__trainer_settings_of(t)->ranks : 0;
}

size_t mixt__trace_bytes(const mixt__trainer *t, int64_t capacity)
{
    return (size_t)capacity * row_bytes(mixt__trainer_params(t)->segment_count, ranks_of(t));
}

mixt_status mixt__trace_open(mixt__trace *t, const mixt__trainer *trainer, int64_t capacity)
{
    int64_t segments = mixt__trainer_params(trainer)->segment_count, ranks = ranks_of(trainer);
    *t = (mixt__trace){.capacity = capacity, .segments = segments, .ranks = ranks, .healthy = NAN};
    t->rows = mixt__alloc((size_t)capacity * sizeof *t->rows);
    t->stats = mixt__alloc((size_t)(capacity * segments) * sizeof *t->stats);
    t->marks = ranks ? mixt__alloc((size_t)(capacity * ranks) * sizeof *t->marks) : NULL;
    if (t->rows && t->stats && (t->marks || !ranks))
        return MIXT_OK;
    mixt__trace_close(t);
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the trace of %lld updates", (long long)capacity);
}

void mixt__trace_close(mixt__trace *t)
{
    mixt__free(t->rows);
    mixt__free(t->stats);
    mixt__free(t->marks);
    *t = (mixt__trace){0};
}

void mixt__trace_start(mixt__trace *t, int64_t first)
{
    t->first = first;
    t->count = 0;
}

void mixt__trace_drop_before(mixt__trace *t, int64_t first)
{
    int64_t gone = first - t->first;
    if (gone <= 0)
        return;
    gone = gone < t->count ? gone : t->count;
    t->count -= gone;
    t->first = first;
    memmove(t->rows, t->rows + gone, (size_t)t->count * sizeof *t->rows);
    memmove(t->stats, t->stats + gone * t->segments, (size_t)(t->count * t->segments) * sizeof *t->stats);
    if (t->ranks)
        memmove(t->marks, t->marks + gone * t->ranks, (size_t)(t->count * t->ranks) * sizeof *t->marks);
}

void mixt__trace_cut(mixt__trace *t, int64_t step)
{
    int64_t left = step - t->first;
    t->count = left < 0 ? 0 : left < t->count ? left : t->count;
    t->first = left < 0 ? step : t->first;
}

bool mixt__trace_full(const mixt__trace *t)
{
    return t->count == t->capacity;
}

const mixt__trace_row *mixt__trace_row_of(const mixt__trace *t, int64_t step)
{
    int64_t at = step - t->first;
    return at >= 0 && at < t->count ? &t->rows[at] : NULL;
}

const mixt__segment_stats *mixt__trace_stats_of(const mixt__trace *t, int64_t step)
{
    int64_t at = step - t->first;
    return at >= 0 && at < t->count ? t->stats + at * t->segments : NULL;
}

const mixt__trace_mark *mixt__trace_marks_of(const mixt__trace *t, int64_t step)
{
    int64_t at = step - t->first;
    return at >= 0 && at < t->count && t->ranks ? t->marks + at * t->ranks : NULL;
}

mixt_status mixt__trace_mark_step(const mixt__trace *t, mixt__trainer *trainer, int64_t step, mixt__trace_mark *marks)
{
    const float(*all)[MIXT_PASS_FIGURES];
    int64_t passes = mixt__ranks_passes(trainer);
    if (!t->ranks)
        return MIXT_OK;
    MIXT_TRY(mixt__trainer_pass_figures(trainer, step, &all));
    for (int64_t rank = 0; rank < t->ranks; rank++) {
        const float(*own)[MIXT_PASS_FIGURES] = all + rank * passes;
        double loss = 0, targets = 0;
        for (int64_t i = 0; i < passes; i++) {
            loss += (double)own[i][0];
            targets += (double)own[i][2];
        }
        marks[rank].figures = mixt__checksum(own, (size_t)passes * sizeof *own);
        marks[rank].loss = targets > 0 ? loss / targets : 0;
    }
    return MIXT_OK;
}

int mixt__trace_worst_rank(const mixt__trace *t, int64_t step)
{
    const mixt__trace_mark *marks = mixt__trace_marks_of(t, step);
    int worst = 0;
    for (int rank = 0; marks && rank < t->ranks; rank++) {
        if (!isfinite(marks[rank].loss))
            return rank;
        worst = marks[rank].loss > marks[worst].loss ? rank : worst;
    }
    return marks ? worst : -1;
}

mixt_status mixt__trace_add(mixt__trace *t, mixt__trainer *trainer, const mixt_step *step)
{
    const mixt__segment_stats *stats;
    int64_t behind = mixt__trainer_steps(trainer) - step->step, passes = mixt__trainer_settings_of(trainer)->accumulate;
    if (step->step != t->first + t->count || mixt__trace_full(t))
        return mixt__fail(MIXT_ERROR_STATE, "the trace continues with update %lld, not with %lld",
                          (long long)(t->first + t->count), (long long)step->step);
    MIXT_TRY(mixt__trainer_stats_of(trainer, step->step, &stats));
    mixt__trace_row *row = &t->rows[t->count];
    *row = (mixt__trace_row){.step = step->step, .loss = step->loss, .skipped = step->skipped};
    row->batch = mixt__trainer_position(trainer) - (behind + 1) * passes;
    row->grad_norm = (float)step->grad_norm;
    row->lr = (float)step->lr;
    row->scale = (float)step->scale;
    if (t->ranks)
        MIXT_TRY(mixt__trace_mark_step(t, trainer, step->step, t->marks + t->count * t->ranks));
    memcpy(t->stats + t->count++ * t->segments, stats, (size_t)t->segments * sizeof *stats);
    return MIXT_OK;
}

/* ---- kept with a checkpoint ---- */

/** What stands before the rows. */
typedef struct head {
    char magic[8];
    int64_t first, count, segments, ranks;
} head;
static const char magic[8] = "mixttr2";

void *mixt__trace_pack(const mixt__trace *t, int64_t last, size_t *bytes)
{
    int64_t wanted = last - t->first + 1, count = wanted < 0 ? 0 : wanted < t->count ? wanted : t->count;
    head h = {.first = t->first, .count = count, .segments = t->segments, .ranks = t->ranks};
    size_t rows = (size_t)count * sizeof *t->rows, stats = (size_t)(count * t->segments) * sizeof *t->stats;
    size_t marks = (size_t)(count * t->ranks) * sizeof *t->marks;
    *bytes = sizeof h + rows + stats + marks;
    char *block = mixt__alloc(*bytes);
    if (!block)
        return NULL;
    memcpy(h.magic, magic, sizeof magic);
    memcpy(block, &h, sizeof h);
    memcpy(block + sizeof h, t->rows, rows);
    memcpy(block + sizeof h + rows, t->stats, stats);
    if (marks)
        memcpy(block + sizeof h + rows + stats, t->marks, marks);
    return block;
}

mixt_status mixt__trace_unpack(mixt__trace *t, const void *block, size_t bytes)
{
    head h = {.count = -1};
    if (bytes >= sizeof h)
        memcpy(&h, block, sizeof h);
    bool fits = !memcmp(h.magic, magic, sizeof magic) && h.count >= 0 && h.count <= t->capacity &&
                h.segments == t->segments && h.ranks == t->ranks && h.first >= 0 &&
                bytes == sizeof h + (size_t)h.count * row_bytes(h.segments, h.ranks);
    if (!fits)
        return mixt__fail(MIXT_ERROR_FORMAT, "the trace of updates is of another model, of other ranks, or cut");
    const char *from = (const char *)block + sizeof h;
    size_t rows = (size_t)h.count * sizeof *t->rows, stats = (size_t)(h.count * h.segments) * sizeof *t->stats;
    memcpy(t->rows, from, rows);
    memcpy(t->stats, from + rows, stats);
    if (h.ranks)
        memcpy(t->marks, from + rows + stats, (size_t)(h.count * h.ranks) * sizeof *t->marks);
    t->first = h.first;
    t->count = h.count;
    return MIXT_OK;
}

static bool same_bits(const void *a, const void *b, size_t size)
{
    return !memcmp(a, b, size);
}

bool mixt__trace_same(const mixt__trace_row *a, const mixt__segment_stats *x, const mixt__trace_row *b,
                      const mixt__segment_stats *y, int64_t segments)
{
    if (a->step != b->step || a->skipped != b->skipped || !same_bits(&a->loss, &b->loss, sizeof a->loss) ||
        !same_bits(&a->grad_norm, &b->grad_norm, sizeof a->grad_norm) || !same_bits(&a->lr, &b->lr, sizeof a->lr) ||
        !same_bits(&a->scale, &b->scale, sizeof a->scale))
        return false;
    for (int64_t s = 0; s < segments; s++)
        if (!same_bits(&x[s].sum_squares, &y[s].sum_squares, sizeof x[s].sum_squares) ||
            !same_bits(&x[s].amax, &y[s].amax, sizeof x[s].amax) || x[s].nonfinite != y[s].nonfinite ||
            x[s].zeros != y[s].zeros)
            return false;
    return true;
}

/* ---- what stands out ---- */

static double logarithm(double value)
{
    return log(fmax(value, 1e-30));
}

/** Median and deviation of logarithms. */
static void middle(double *values, int64_t count, double *centre, double *deviation)
{
    *centre = mixt__median(values, count);
    for (int64_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - *centre);
    *deviation = fmax(1.4826 * mixt__median(values, count), least_deviation);
}

static bool counts(const mixt__trace_row *row)
{
    return !row->skipped && isfinite(row->loss) && isfinite(row->grad_norm);
}

/** Median and deviation of the logarithms of up to eight losses up to row number `last`; less only where training
 *  began there. @return how many; 0: it is no level */
static int64_t level_at(const mixt__trace *t, int64_t last, double *centre, double *deviation)
{
    double losses[LEVEL];
    int64_t count = 0;
    for (int64_t i = last; i >= 0 && count < LEVEL; i--)
        if (counts(&t->rows[i]))
            losses[count++] = logarithm(t->rows[i].loss);
    if (!count || (count < LEVEL && t->first > 1))
        return 0;
    middle(losses, count, centre, deviation);
    return count;
}

/** Puts the best level before row number `end` in place of what is usual, where losses have risen far above it. */
static void hold_to_best(const mixt__trace *t, int64_t end, mixt__usual_row *u)
{
    double now, best = t->healthy, deviation = least_deviation, centre, scatter;
    if (!level_at(t, end - 1, &now, &scatter))
        return;
    for (int64_t i = 0; i < end; i++)
        if (level_at(t, i, &centre, &scatter) && !(centre >= best)) { // it is NaN at first
            best = centre;
            deviation = scatter;
        }
    if (!(now - best > fmax(least_rise, deviations * deviation)))
        return;
    u->loss = exp(best);
    u->loss_deviation = deviation;
}

void mixt__trace_anchor(mixt__trace *t, double loss)
{
    double first, scatter, healthy = loss > 0 ? log(loss) : (double)NAN;
    int64_t last = t->count < LEVEL ? t->count - 1 : LEVEL - 1;
    t->healthy = NAN;
    if (isfinite(healthy) && level_at(t, last, &first, &scatter) && first - healthy > least_rise)
        t->healthy = healthy;
}

mixt__usual_row mixt__trace_usual(const mixt__trace *t, int64_t step)
{
    double losses[WINDOW], norms[WINDOW], rates[WINDOW], loss, norm;
    mixt__usual_row u = {.loss = NAN, .norm = NAN, .lr = NAN};
    for (int64_t i = step - 1; u.rows < WINDOW; i--) {
        const mixt__trace_row *row = mixt__trace_row_of(t, i);
        if (!row)
            break;
        if (!counts(row))
            continue;
        losses[u.rows] = logarithm(row->loss);
        norms[u.rows] = logarithm((double)row->grad_norm);
        rates[u.rows++] = (double)row->lr;
    }
    if (!u.rows)
        return u;
    middle(losses, u.rows, &loss, &u.loss_deviation);
    middle(norms, u.rows, &norm, &u.norm_deviation);
    u.loss = exp(loss);
    u.norm = exp(norm);
    u.lr = mixt__median(rates, u.rows);
    hold_to_best(t, step - t->first < t->count ? step - t->first : t->count, &u);
    return u;
}

unsigned mixt__row_signs(const mixt__trace_row *row, const mixt__usual_row *u)
{
    unsigned signs = row->skipped ? MIXT_SIGN_SKIPPED : 0;
    if (!isfinite(row->loss))
        return signs | MIXT_SIGN_LOSS | MIXT_SIGN_NOT_FINITE;
    double rise = logarithm(row->loss) - logarithm(u->loss);
    if (u->rows && rise > fmax(u->rows < KNOWN ? few_rise : least_rise, deviations * u->loss_deviation))
        signs |= MIXT_SIGN_LOSS;
    if (u->rows < KNOWN)
        return signs;
    rise = logarithm((double)row->grad_norm) - logarithm(u->norm);
    if (isfinite(row->grad_norm) && rise > fmax(least_norm, deviations * u->norm_deviation))
        signs |= MIXT_SIGN_NORM;
    return signs;
}

/** Whether a gradient is not 0 everywhere, and more than next to nothing beside those of all parameters: one that is
 *  lost then changes nothing. */
static bool is_alive(const mixt__trace_row *row, const mixt__segment_stats *stats, int64_t elements)
{
    double norm = sqrt((double)stats->sum_squares) / (double)row->scale;
    return stats->zeros < elements && !(norm < next_to_nothing * (double)row->grad_norm);
}

/** Whether most of the rows before had a gradient. */
static bool was_alive(const mixt__trace *t, int64_t step, int64_t segment, int64_t elements)
{
    int64_t alive = 0, rows = 0;
    for (int64_t i = step - 1; rows < WINDOW && mixt__trace_row_of(t, i); i--) {
        if (mixt__trace_row_of(t, i)->skipped)
            continue;
        alive += is_alive(mixt__trace_row_of(t, i), &mixt__trace_stats_of(t, i)[segment], elements);
        rows++;
    }
    return rows && alive > rows / 2;
}

bool mixt__trace_dead_at(const mixt__trace *t, int64_t step, const mixt__segment_stats *stats,
                         const mixt__segment *segments, int64_t segment)
{
    return stats[segment].zeros == segments[segment].count && was_alive(t, step, segment, segments[segment].count);
}

int64_t mixt__trace_dead(const mixt__trace *t, int64_t step, const mixt__segment_stats *stats,
                         const mixt__segment *segments)
{
    for (int64_t s = 0; s < t->segments; s++)
        if (mixt__trace_dead_at(t, step, stats, segments, s))
            return s;
    return -1;
}

static unsigned signs_of(const mixt__trace *t, int64_t step, const mixt__segment *segments)
{
    const mixt__trace_row *row = mixt__trace_row_of(t, step);
    mixt__usual_row usual = mixt__trace_usual(t, step);
    unsigned signs = mixt__row_signs(row, &usual);
    if (!row->skipped && mixt__trace_dead(t, step, mixt__trace_stats_of(t, step), segments) >= 0)
        signs |= MIXT_SIGN_DEAD;
    return signs;
}

int64_t mixt__trace_begin(const mixt__trace *t, int64_t seen, const mixt__segment *segments, unsigned *signs)
{
    int64_t begin = seen, quiet = 0;
    *signs = signs_of(t, seen, segments);
    for (int64_t i = seen - 1; quiet < QUIET && mixt__trace_row_of(t, i); i--) {
        unsigned found = signs_of(t, i, segments);
        quiet = found ? 0 : quiet + 1;
        if (!found)
            continue;
        begin = i;
        *signs |= found;
    }
    return begin;
}
