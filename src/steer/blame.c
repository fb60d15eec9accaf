/* Which layers: the update at which it began, with statistics of every value (train/instrument.h).
 *
 * The update before it is looked at as well, where it is made by the same plan: what was 0 everywhere while all was
 * well is not to blame now. Of several ranks each looks at the values of its own passes; the worst of all
 * counts.
 */
#include "steer/glance.h"
#include "steer/inquiry.h"
#include "steer/consensus.h"

#include "train/instrument.h"

#include <stdio.h>
#include <string.h>

static const double many_tiny = 0.25; // share of an FP16 value's numbers below its normal range
static const double broken = 2;       // the badness of values that are no numbers, or all 0

typedef struct looking {
    mixt__inquiry *q;
    mixt__instrumented_value *value; // that is read
    int64_t count;                   // of values
    int64_t parts;                   // of an update, by rank, that this process makes
    int64_t *counts;                 // (parts, count, MIXT_STATS_COUNTS) over the passes of a part
    bool *zero;                      // (parts, count) it was 0 everywhere before; NULL: not known
} looking;

static int64_t *counts_of(const looking *l, int64_t part, int64_t index)
{
    return l->counts + (part * l->count + index) * MIXT_STATS_COUNTS;
}

static bool is_zero(const int64_t *counts)
{
    return counts[MIXT_STATS_COUNT] > 1 && counts[MIXT_STATS_ZEROS] == counts[MIXT_STATS_COUNT];
}

static bool is_finite(const int64_t *counts)
{
    return !counts[MIXT_STATS_NAN] && !counts[MIXT_STATS_INF];
}

/** How bad value number `index` is in a part. What was made first is worse than what followed from it. */
static double badness(const looking *l, int64_t part, int64_t index)
{
    const int64_t *counts = counts_of(l, part, index);
    double count = (double)counts[MIXT_STATS_COUNT];
    if (!is_finite(counts) || (is_zero(counts) && !(l->zero && l->zero[part * l->count + index])))
        return broken;
    int64_t below = counts[MIXT_STATS_EXPONENTS] - counts[MIXT_STATS_ZEROS]; // subnormals of FP32
    for (int e = 1; e - 127 < -14; e++)
        below += counts[MIXT_STATS_EXPONENTS + e];
    double tiny = count > 0 ? (double)below / count : 0;
    return mixt__format_narrow(l->value->dtype) && tiny > many_tiny ? tiny : 0;
}

static bool is_named(const mixt_diagnosis *d, const char *layer)
{
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS; i++)
        if (!strcmp(d->layers[i], layer))
            return true;
    return false;
}

/** The worst value of one rank's passes, of a layer that is not named yet. */
typedef struct culprit {
    double bad;    // 0: there is none
    int64_t index; // among values
    int64_t rank;
    mixt_cause symptom;
    char layer[128], op[48];
} culprit;

static mixt_status find_culprit(const looking *l, int64_t part, culprit *c)
{
    const mixt__trainer *t = l->q->trainer;
    const mixt__instrumented_value *v = l->value;
    const mixt__node *node;
    *c = (culprit){.rank = mixt__ranks_group(t) ? mixt__ranks_group(t)->rank : part};
    for (int64_t i = 0; i < l->count; i++) {
        MIXT_TRY(mixt__trainer_instrumented_describe(t, i, &node, l->value));
        double bad = badness(l, part, i);
        if (v->gradient || !*v->layer || bad <= c->bad || is_named(l->q->d, v->layer))
            continue;
        c->bad = bad;
        c->index = i;
        c->symptom = is_finite(counts_of(l, part, i)) ? MIXT_CAUSE_UNDERFLOW : MIXT_CAUSE_OVERFLOW;
        snprintf(c->layer, sizeof c->layer, "%s", v->layer);
        snprintf(c->op, sizeof c->op, "%s", v->op);
    }
    return MIXT_OK;
}

/** Whether `a` is worse: of values that are as bad, the one that was made first. */
static bool is_worse(const culprit *a, const culprit *b)
{
    return a->bad > b->bad || (a->bad == b->bad && a->bad > 0 && a->index < b->index);
}

/** That of the ranks whose passes this process makes. */
static mixt_status find_own(const looking *l, culprit *worst)
{
    culprit c;
    MIXT_TRY(find_culprit(l, 0, worst));
    for (int64_t part = 1; part < l->parts; part++) {
        MIXT_TRY(find_culprit(l, part, &c));
        *worst = is_worse(&c, worst) ? c : *worst;
    }
    return MIXT_OK;
}

/** Adds the layer of the worst value of all ranks that is of none of those named. @param worst 0: there is none */
static mixt_status name_worst(const looking *l, int slot, double *worst)
{
    mixt_diagnosis *d = l->q->d;
    mixt__diagnosis_words *words = l->q->words;
    culprit mine, *all;
    int count, at = 0;
    MIXT_TRY(mixt__consensus_agree(l->q->trainer, find_own(l, &mine)));
    MIXT_TRY(mixt__consensus_gather(l->q->trainer, &mine, sizeof mine, (void **)&all, &count));
    for (int i = 1; i < count; i++)
        at = is_worse(&all[i], &all[at]) ? i : at;
    *worst = all[at].bad;
    memcpy(words->layers[slot], all[at].layer, sizeof words->layers[slot]);
    if (slot == 0 && *worst > 0) {
        memcpy(words->op, all[at].op, sizeof words->op);
        d->symptom = all[at].symptom;
        d->rank = mixt__trainer_settings_of(l->q->trainer)->ranks > 1 ? (int)all[at].rank : -1;
    }
    mixt__free(all);
    return MIXT_OK;
}

/** Where a value is broken, those that follow may be so because of it: only its layer is to blame. */
static mixt_status name_layers(const looking *l)
{
    double worst = 1;
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS && worst > 0 && worst < broken; i++)
        MIXT_TRY(name_worst(l, i, &worst));
    return MIXT_OK;
}

static mixt_status note_zeros(looking *l)
{
    l->zero = mixt__alloc((size_t)(l->parts * l->count) + 1);
    if (!l->zero)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to inspect values");
    for (int64_t i = 0; i < l->parts * l->count; i++)
        l->zero[i] = is_zero(l->counts + i * MIXT_STATS_COUNTS);
    return MIXT_OK;
}

/** Adds what a pass has left to that of its part. */
static mixt_status add_pass(void *user, int64_t index)
{
    looking *l = user;
    const mixt__trainer *t = l->q->trainer;
    int64_t part = (index - mixt__ranks_first(t)) / mixt__ranks_passes(t);
    for (int64_t i = 0; i < l->count; i++) {
        int64_t *counts = counts_of(l, part, i);
        MIXT_TRY(mixt__trainer_instrumented_read(t, i, l->value));
        for (int k = 0; k < MIXT_STATS_COUNTS; k++)
            counts[k] += l->value->counts[k];
    }
    return MIXT_OK;
}

/** The next update, as an instrumented one. */
static mixt_status step(looking *l)
{
    mixt__trainer *t = l->q->trainer;
    memset(l->counts, 0, (size_t)(l->parts * l->count * MIXT_STATS_COUNTS) * sizeof *l->counts);
    MIXT_TRY(mixt__trainer_instrument_next(t));
    mixt__trainer_set_passed(t, add_pass, l);
    mixt_status status = mixt__replay_step(&l->q->replay);
    mixt__trainer_set_passed(t, NULL, NULL);
    return status;
}

static mixt_status compile(looking *l)
{
    const mixt__instrument all = {.targets = {MIXT_DTYPE_FP16}};
    MIXT_TRY(mixt__trainer_instrument(l->q->trainer, &all));
    l->count = mixt__trainer_instrumented_count(l->q->trainer);
    mixt__free(l->counts);
    l->counts = mixt__alloc((size_t)(l->parts * l->count * MIXT_STATS_COUNTS) * sizeof *l->counts + 1);
    return l->counts ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to inspect values");
}

/** The instrumented step, for the next update: compiled where there is none. */
static mixt_status instrument(looking *l)
{
    mixt__trainer *t = l->q->trainer;
    mixt_status status = mixt__consensus_agree(t, mixt__trainer_ready(t, l->q->replay.data));
    if (status == MIXT_OK && !mixt__trainer_instrumented_graph(t)) { // another plan: its values are others, too
        mixt__free(l->zero);
        l->zero = NULL;
        status = compile(l);
    }
    return mixt__consensus_agree(t, status);
}

static mixt_status look(looking *l)
{
    mixt__trainer *t = l->q->trainer;
    mixt__trainer_drop_instrumented(t); // who instrumented it before has other questions
    MIXT_TRY(instrument(l));
    if (mixt__trainer_steps(t) == l->q->begin - 2) {
        MIXT_TRY(step(l));
        MIXT_TRY(mixt__consensus_agree(t, note_zeros(l)));
    }
    MIXT_TRY(instrument(l));
    MIXT_TRY(step(l));
    return name_layers(l);
}

/** The last layer whose gradients are all 0: those before it get none either, and a norm behind it has one of its bias.
 */
static void name_last_dead(mixt__inquiry *q, const mixt__segment_stats *stats)
{
    const mixt__params *p = mixt__trainer_params(q->trainer);
    char name[MIXT_GLANCE_LAYER], layer[MIXT_GLANCE_LAYER] = "";
    bool all = false;
    for (int64_t s = 0; s <= p->segment_count; s++) {
        name[0] = '\0';
        if (s < p->segment_count)
            mixt__layer_of(p->table[p->segments[s].param].name, name);
        if (strcmp(name, layer)) {
            if (all)
                snprintf(q->words->layers[0], sizeof q->words->layers[0], "%s", layer);
            snprintf(layer, sizeof layer, "%s", name);
            all = true;
        }
        all = all && s < p->segment_count && mixt__trace_dead_at(&q->ring->trace, q->begin, stats, p->segments, s);
    }
}

/** Where values cannot be inspected, gradients still say which layer is dead; another culprit stays unnamed. */
static mixt_status name_by_gradient(mixt__inquiry *q)
{
    const mixt__trace *trace = &q->ring->trace;
    int64_t step = q->begin;
    while (step < q->last && mixt__trace_row_of(trace, step) && mixt__trace_row_of(trace, step)->skipped)
        step++;
    const mixt__segment_stats *stats = mixt__trace_stats_of(trace, step);
    if (q->signs & MIXT_SIGN_DEAD && stats)
        name_last_dead(q, stats);
    return mixt__replay_to(&q->replay, q->begin);
}

mixt_status mixt__inquire_layers(mixt__inquiry *q)
{
    looking l = {.q = q, .parts = mixt__ranks_parts(q->trainer)};
    MIXT_TRY(mixt__replay_to(&q->replay, q->begin - 2)); // or it is behind that already
    l.value = mixt__alloc(sizeof *l.value);
    mixt_status status = mixt__consensus_agree(
        q->trainer, l.value ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to inspect values"));
    if (status == MIXT_OK)
        status = look(&l);
    mixt__trainer_drop_instrumented(q->trainer);
    mixt__free(l.zero);
    mixt__free(l.counts);
    mixt__free(l.value);
    return status == MIXT_ERROR_UNSUPPORTED ? name_by_gradient(q) : status;
}
