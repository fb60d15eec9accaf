/* The same updates again: other bits mean that a machine computed something wrong, then or now. */
#include "steer/inquiry.h"
#include "steer/consensus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double no_number = 1e6; // stands for how far apart a number and none are
static const double outlier = 50;    // times the next largest difference of its parameter: a single number that flipped

void mixt__layer_of(const char *parameter, char layer[128])
{
    snprintf(layer, 128, "%s", parameter);
    char *dot = strrchr(layer, '.');
    if (dot)
        *dot = '\0';
}

static const char *name_of(const mixt__inquiry *q, int64_t segment)
{
    const mixt__params *p = mixt__trainer_params(q->trainer);
    return p->table[p->segments[segment].param].name;
}

/** What the first replay had at the update that differs. */
typedef struct kept {
    mixt__trace_row row;
    mixt__segment_stats *stats; // (segments)
} kept;

/** What a rank has of an update that was computed again. */
typedef struct comparison {
    bool differs; // anything of it
    bool state;   // the weights that this rank has kept
    int32_t rank; // whose own figures are others; -1: nobody's
} comparison;

/** Whether the trainer has the very weights of the state that was kept of this update, where there is one: a weight
 * that flipped shows in the numbers of the next update only, and the state is as bad as that. */
static mixt_status compare_state(const mixt__inquiry *q, bool *same)
{
    const mixt__snapshot *state = mixt__snapshots_state(q->ring, mixt__trainer_steps(q->trainer));
    const mixt__params *p = mixt__trainer_params(q->trainer);
    for (int64_t s = 0; state && *same && s < p->segment_count; s++) {
        const mixt__segment *at = &p->segments[s];
        size_t bytes = (size_t)at->count * sizeof(float);
        float *now = mixt__alloc_uninit(bytes);
        mixt_status status = now ? mixt__params_get(p, at->param, now)
                                 : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare %s", name_of(q, s));
        *same = status != MIXT_OK || !memcmp(now, mixt__snapshot_weights(state) + at->offset, bytes);
        mixt__free(now);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}

/** The rank to blame, by what all of them have: one with other figures, else one that alone has other weights. */
static int find_rank(const comparison *all, int count)
{
    int kept = 0, found = -1;
    for (int i = 0; i < count; i++)
        if (all[i].rank >= 0)
            return all[i].rank;
    for (int i = count - 1; i >= 0; i--) {
        kept += all[i].state;
        found = all[i].state ? i : found;
    }
    return kept < count ? found : -1;
}

/** Whether the newest update of the replay has other bits than it had, on any rank. @param rank the one; -1: not known
 */
static mixt_status compare_update(const mixt__inquiry *q, bool *differs, int *rank)
{
    comparison mine = {0}, *all;
    int marked, count;
    bool same = mixt__replay_same(&q->replay, &marked);
    bool kept = true;
    MIXT_TRY(mixt__consensus_agree(q->trainer, same ? compare_state(q, &kept) : MIXT_OK));
    mine.differs = !same || !kept;
    mine.state = !kept;
    mine.rank = marked;
    MIXT_TRY(mixt__consensus_gather(q->trainer, &mine, sizeof mine, (void **)&all, &count));
    *differs = false;
    for (int i = 0; i < count; i++)
        *differs |= all[i].differs;
    *rank = *differs ? find_rank(all, count) : -1;
    mixt__free(all);
    return MIXT_OK;
}

/** From the oldest state to the newest update, or to `stop`. @param differs the first that has other bits; 0: none */
static mixt_status compare(mixt__inquiry *q, int64_t stop, int64_t *differs, kept *first)
{
    size_t bytes = (size_t)q->ring->trace.segments * sizeof *first->stats;
    *differs = 0;
    MIXT_TRY(mixt__replay_from(&q->replay, q->oldest));
    while (mixt__trainer_steps(q->trainer) < stop) {
        bool now = false;
        MIXT_TRY(mixt__replay_step(&q->replay));
        if (!*differs)
            MIXT_TRY(compare_update(q, &now, &q->d->rank));
        if (!now)
            continue;
        *differs = q->replay.row.step;
        first->row = q->replay.row;
        memcpy(first->stats, q->replay.stats, bytes);
    }
    return MIXT_OK;
}

/* ---- which parameter ---- */

/** The largest difference between two copies of a parameter, where it is, and the next. */
typedef struct difference {
    double largest, next;
    int64_t at;
} difference;

static double distance(float a, float b)
{
    double d = fabs((double)a - (double)b);
    return isnan(d) ? (isnan(a) && isnan(b) ? 0 : (double)INFINITY) : d;
}

static difference compare_values(const float *a, const float *b, int64_t count)
{
    difference found = {0};
    for (int64_t i = 0; i < count; i++) {
        double d = distance(a[i], b[i]);
        if (d > found.largest) {
            found.next = found.largest;
            found.largest = d;
            found.at = i;
        } else if (d > found.next) {
            found.next = d;
        }
    }
    return found;
}

/** A parameter of one rank with a single weight far from what the replay gives at the same update. */
typedef struct suspect {
    int64_t segment; // -1: there is none
    int64_t element; // of the flat arenas
    double worst;    // how far
} suspect;

static mixt_status find_own_weight(const mixt__inquiry *q, suspect *found)
{
    const mixt__params *p = mixt__trainer_params(q->trainer);
    const float *bad = mixt__snapshot_weights(&q->ring->states[MIXT_SNAPSHOTS]);
    *found = (suspect){.segment = -1};
    for (int64_t s = 0; s < p->segment_count; s++) {
        const mixt__segment *at = &p->segments[s];
        float *good = mixt__alloc_uninit((size_t)at->count * sizeof *good);
        mixt_status status = good ? mixt__params_get(p, at->param, good)
                                  : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare %s", name_of(q, s));
        difference d = status == MIXT_OK ? compare_values(bad + at->offset, good, at->count) : (difference){0};
        mixt__free(good);
        MIXT_TRY(status);
        if (d.largest > outlier * d.next && d.largest > found->worst)
            *found = (suspect){s, at->offset + d.at, d.largest};
    }
    return MIXT_OK;
}

/** Of which rank such a weight is: the one to blame, where that is known. One that several have is the owner's, who
 * gave it to them; else it is that of the rank where it is furthest. */
static int choose_rank(const mixt__inquiry *q, const suspect *all, int count)
{
    int worst = 0, have = 0;
    if (q->d->rank >= 0)
        return q->d->rank;
    for (int i = 0; i < count; i++) {
        have += all[i].segment >= 0;
        worst = all[i].worst > all[worst].worst ? i : worst;
    }
    int owner = have > 1 ? mixt__ranks_owner_of(q->trainer, all[worst].segment, all[worst].element) : -1;
    return owner >= 0 && all[owner].segment >= 0 ? owner : worst;
}

/** The parameter with such a weight, of any rank, and which one it is. @param segment -1: there is none */
static mixt_status find_weight(const mixt__inquiry *q, int64_t *segment)
{
    suspect mine, *all;
    int count;
    MIXT_TRY(mixt__consensus_agree(q->trainer, find_own_weight(q, &mine)));
    MIXT_TRY(mixt__consensus_gather(q->trainer, &mine, sizeof mine, (void **)&all, &count));
    int rank = count > 1 ? choose_rank(q, all, count) : 0;
    *segment = all[rank].segment;
    if (count > 1 && *segment >= 0)
        q->d->rank = rank;
    if (*segment >= 0)
        q->d->element = all[rank].element - mixt__trainer_params(q->trainer)->segments[*segment].offset;
    mixt__free(all);
    return MIXT_OK;
}

/** How far apart the gradients of a parameter are: decades of their squares. */
static double gap(const mixt__segment_stats *a, const mixt__segment_stats *b)
{
    if ((a->nonfinite > 0) != (b->nonfinite > 0))
        return no_number;
    double gap = fabs(log(fmax(a->sum_squares, 1e-300)) - log(fmax(b->sum_squares, 1e-300)));
    return isfinite(gap) ? gap : 0;
}

/** The parameter whose gradient was furthest off at that update; -1: several are no numbers at all. */
static int64_t find_gradient(const mixt__inquiry *q, const kept *first)
{
    const mixt__segment_stats *then = mixt__trace_stats_of(&q->ring->trace, first->row.step);
    int64_t found = -1, broken = 0;
    double widest = 0;
    for (int64_t s = 0; s < q->ring->trace.segments; s++) {
        double now = gap(&then[s], &first->stats[s]);
        broken += now == no_number;
        found = now > widest ? s : found;
        widest = now > widest ? now : widest;
    }
    return broken > 1 ? -1 : found;
}

static mixt_status name_parameter(mixt__inquiry *q, const kept *first)
{
    mixt_diagnosis *d = q->d;
    int64_t segment;
    MIXT_TRY(find_weight(q, &segment));
    bool weight = segment >= 0;
    segment = weight ? segment : find_gradient(q, first);
    if (segment >= 0) {
        snprintf(q->words->parameter, sizeof q->words->parameter, "%s", name_of(q, segment));
        mixt__layer_of(d->parameter, q->words->layers[0]);
    }
    char where[32] = "";
    if (d->rank >= 0)
        snprintf(where, sizeof where, " on rank %d", d->rank);
    snprintf(q->words->text, sizeof q->words->text,
             "hardware: update %lld gave other bits%s when it was computed again from update %lld%s%s",
             (long long)d->step, where, (long long)mixt__snapshots_before(q->ring, d->step),
             segment < 0 ? ""
             : weight    ? "; a single weight is far off in "
                         : "; furthest off is the gradient of ",
             d->parameter);
    return MIXT_OK;
}

/* ---- whether it stays ---- */

/** Whether the newest update of a further replay has other bits than the first replay gave. */
static bool differs_again(const mixt__inquiry *q, const kept *first)
{
    int rank;
    if (mixt__trainer_steps(q->trainer) < q->d->step)
        return !mixt__replay_same(&q->replay, &rank);
    return !mixt__trace_same(&first->row, first->stats, &q->replay.row, q->replay.stats, q->ring->trace.segments);
}

static mixt_status replay_again(mixt__inquiry *q, const kept *first)
{
    mixt_diagnosis *d = q->d;
    int rank;
    MIXT_TRY(mixt__replay_from(&q->replay, q->oldest));
    while (mixt__trainer_steps(q->trainer) < d->step && !d->persists) {
        MIXT_TRY(mixt__replay_step(&q->replay));
        d->persists = differs_again(q, first);
        MIXT_TRY(mixt__consensus_any(q->trainer, &d->persists, &rank));
    }
    size_t length = strlen(d->text);
    snprintf(q->words->text + length, sizeof q->words->text - length, "; %s",
             d->persists ? "a second replay gave other bits again: this machine is not reliable"
                         : "a second replay gave the same bits as the first: it happened once");
    return MIXT_OK;
}

/** Whether the update at which the trouble began was made before and had none, from the same state: the run went back
 *  because of a machine that erred, and nothing was changed since. */
static bool went_well_before(mixt__inquiry *q)
{
    mixt_diagnosis *d = q->d;
    const mixt__trace_row *now = mixt__trace_row_of(&q->ring->trace, q->begin);
    mixt__trace_row before = {.loss = mixt__snapshots_former(q->ring, q->begin), .grad_norm = INFINITY};
    if (isnan(before.loss) || mixt__row_signs(&before, &q->usual) || !(mixt__row_signs(now, &q->usual)))
        return false;
    d->kind = MIXT_DIAGNOSIS_HARDWARE;
    d->cause = MIXT_CAUSE_HARDWARE;
    d->persists = true;
    d->step = q->begin;
    d->value = now->loss;
    d->usual = before.loss;
    snprintf(q->words->text, sizeof q->words->text,
             "hardware: update %lld has a loss of %.4g from the same state from which it had %.4g before the run went "
             "back to update %lld: a number stays wrong, this machine is not reliable",
             (long long)q->begin, isnan(now->loss) ? (double)NAN : now->loss, before.loss,
             (long long)q->ring->former.at);
    return true;
}

static mixt_status inquire(mixt__inquiry *q, bool *differs, kept *first)
{
    mixt_diagnosis *d = q->d;
    int64_t step;
    *differs = went_well_before(q);
    if (*differs)
        return MIXT_OK;
    MIXT_TRY(compare(q, q->last, &step, first));
    *differs = step > 0;
    if (!*differs)
        return MIXT_OK;
    const mixt__trace_row *row = mixt__trace_row_of(&q->ring->trace, step);
    d->kind = MIXT_DIAGNOSIS_HARDWARE;
    d->cause = MIXT_CAUSE_HARDWARE;
    d->step = step;
    d->value = row->loss;
    d->usual = first->row.loss;
    MIXT_TRY(name_parameter(q, first));
    return replay_again(q, first);
}

mixt_status mixt__inquire_hardware(mixt__inquiry *q, bool *differs)
{
    kept first = {.stats = mixt__alloc((size_t)q->ring->trace.segments * sizeof *first.stats)};
    mixt_status status = mixt__consensus_agree(
        q->trainer, first.stats ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a replay"));
    if (status == MIXT_OK)
        status = inquire(q, differs, &first);
    mixt__free(first.stats);
    return status;
}
