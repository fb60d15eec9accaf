/* One question after the other: are the bits the same, is FP32 calm, then which layer, which batch, or which rate. */
#include "steer/diagnosis.h"

#include "judge/judge.h"
#include "steer/inquiry.h"
#include "steer/consensus.h"
#include "steer/glance.h"
#include "store/json.h"
#include "train/integrity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double apart = 0.25;   // of logarithms of losses
static const double gentle = 0.125; // of the learning rate
static const double larger = 2;     // times the norm in FP32: too much for rounding
static const double risen = 1.25;   // times the loss at which training was healthy: it is so no more
enum {
    FOLLOWING = 4, // updates behind the first one with a sign that FP32 is asked about too
    DEAD = 3,      // of those without any gradient of a parameter: its layer is dead, whatever was seen of it
    RATES = 8,     // updates before the trouble whose learning rates are looked at
};

const char *mixt_diagnosis_name(mixt_diagnosis_kind kind)
{
    static const char *const names[] = {
#define MIXT_DIAGNOSIS_NAME(name, text) text,
        MIXT_DIAGNOSIS_LIST(MIXT_DIAGNOSIS_NAME)
#undef MIXT_DIAGNOSIS_NAME
    };
    return (unsigned)kind < MIXT_DIAGNOSIS_COUNT ? names[kind] : "none";
}

/* ---- FP32 ---- */

/** What FP32 has of the trouble. */
typedef struct verdict {
    bool calm, dead; // dead: a layer is, as it is in the low format
    double loss;     // of the update at which it began
    int64_t apart;   // the first update at which the two are apart; 0: none
} verdict;

/** Whether a figure is nearer to what went wrong than to what was usual, by their logarithms. */
static bool half_way(double value, double usual, double wrong)
{
    return !isfinite(value) || log(value) - log(usual) > 0.5 * (log(wrong) - log(usual));
}

/** Whether an update has in FP32 what it had before. */
static bool has_it_too(const mixt__inquiry *q, const mixt__trace_row *low, const mixt__trace_row *row)
{
    unsigned before = mixt__row_signs(low, &q->usual), now = mixt__row_signs(row, &q->usual);
    if (now & MIXT_SIGN_LOSS && !(row->loss < low->loss)) // it is no better, whatever the sign was
        return isfinite(low->loss) || !isfinite(row->loss);
    if (before & (MIXT_SIGN_NOT_FINITE | MIXT_SIGN_SKIPPED))
        return now & (MIXT_SIGN_NOT_FINITE | MIXT_SIGN_SKIPPED | MIXT_SIGN_LOSS);
    if (before & MIXT_SIGN_LOSS)
        return half_way(row->loss, q->usual.loss, low->loss);
    if (before & MIXT_SIGN_NORM)
        return half_way((double)row->grad_norm, q->usual.norm, (double)low->grad_norm);
    return false;
}

/** Whether a low format is worse than FP32 by more than rounding makes it, so close to a common state. */
static bool are_apart(const mixt__trace_row *low, const mixt__trace_row *row)
{
    if (!isfinite(row->loss) || row->skipped)
        return false; // FP32 is not calm itself
    return !isfinite(low->loss) || low->skipped || log(low->loss) - log(row->loss) > apart;
}

/** The same updates in FP32 from the state of update `from`, up to a few behind the first sign. */
static mixt_status run_fp32(mixt__inquiry *q, int64_t from, verdict *v)
{
    int64_t end = q->begin + FOLLOWING < q->last ? q->begin + FOLLOWING : q->last;
    const mixt__segment *segments = mixt__trainer_params(q->trainer)->segments;
    int64_t dead = 0;
    *v = (verdict){.calm = true, .loss = NAN};
    MIXT_TRY(mixt__replay_from(&q->replay, from));
    while (mixt__trainer_steps(q->trainer) < end) {
        MIXT_TRY(mixt__replay_step(&q->replay));
        const mixt__trace_row *low = mixt__trace_row_of(&q->ring->trace, q->replay.row.step);
        bool parted = are_apart(low, &q->replay.row); // and stay so until it is seen: else it was chance
        if (parted && !v->apart)
            v->apart = low->step;
        else if (!parted && low->step < q->begin)
            v->apart = 0;
        if (low->step == q->begin || v->apart == low->step)
            v->loss = q->replay.row.loss;
        if (low->step < q->begin)
            continue;
        dead += !q->replay.row.skipped && mixt__trace_dead(&q->ring->trace, q->begin, q->replay.stats, segments) >= 0;
        v->dead = dead >= DEAD || (dead && q->signs & MIXT_SIGN_DEAD);
        v->calm &= !has_it_too(q, low, &q->replay.row);
    }
    v->calm &= !v->dead;
    return MIXT_OK;
}

/** The layer that is dead is found in FP32, where nothing else makes values 0. */
static mixt_status ask_fp32(mixt__inquiry *q, verdict *v)
{
    mixt_status status = mixt__replay_enter_fp32(&q->replay), left;
    if (status == MIXT_OK)
        status = run_fp32(q, q->d->good, v);
    if (status == MIXT_OK && !v->calm && !v->dead && q->oldest < q->d->good)
        status = run_fp32(q, q->oldest, v); // what went wrong before it was seen may be in the newer state already
    if (status == MIXT_OK && v->dead) {
        status = mixt__replay_from(&q->replay, q->d->good);
        if (status == MIXT_OK)
            status = mixt__inquire_layers(q);
    }
    left = mixt__replay_leave_fp32(&q->replay);
    return status == MIXT_OK ? mixt__consensus_agree(q->trainer, left) : status;
}

/* ---- what it is ---- */

/** The loss that this one was held against: what was usual, or where the run was healthy, where the updates before had
 *  left that already. */
static double anchor(const mixt__inquiry *q)
{
    return q->healthy > 0 && q->usual.loss > risen * q->healthy ? q->healthy : q->usual.loss;
}

/** The trouble began at update `step`, as far as is known. */
static void begin_at(mixt__inquiry *q, int64_t step)
{
    mixt_diagnosis *d = q->d;
    q->begin = d->step = step;
    d->value = mixt__trace_row_of(&q->ring->trace, step)->loss;
    d->usual = anchor(q);
    d->good = mixt__snapshots_before(q->ring, step);
}

/** Whether a layer that has no gradient in the low format would change the loss with the one that FP32 has: a gradient
 *  that is next to nothing is nothing lost. Rank 0 looks. */
static mixt_status ask_dead(mixt__inquiry *q, bool *format)
{
    mixt__trainer *t = q->trainer;
    const mixt__group *group = mixt__ranks_group(t);
    mixt__glance glance = {0};
    double loss;
    MIXT_TRY(mixt__replay_to(&q->replay, q->begin - 1));
    mixt_status status = mixt__consensus_agree(t, mixt__trainer_ready(t, q->replay.data));
    if (status == MIXT_OK && (!group || group->rank == 0)) {
        status = mixt__glance_open(&glance, t, q->replay.data, 0);
        if (status == MIXT_OK)
            status = mixt__glance_at(&glance, &mixt__trainer_settings_of(t)->policy, mixt__glance_scale(t), &loss);
        for (int64_t i = 0; status == MIXT_OK && i < glance.count; i++)
            *format |= mixt__glance_lost(&glance.layers[i]);
        mixt__glance_close(&glance);
    }
    MIXT_TRY(mixt__consensus_agree(t, status));
    return mixt__consensus_take(t, 0, format, sizeof *format);
}

/** Whether the format alone makes the difference: FP32 from the same weights on the same batch is far better. What is
 *  not finite in the low format is so already. */
static mixt_status ask_same_weights(mixt__inquiry *q, bool *format)
{
    const mixt__trace_row *row = mixt__trace_row_of(&q->ring->trace, q->begin);
    double loss, norm;
    *format = !isfinite(row->loss) || row->skipped;
    if (*format)
        return MIXT_OK;
    MIXT_TRY(mixt__replay_from(&q->replay, q->d->good));
    if (q->signs & MIXT_SIGN_DEAD)
        MIXT_TRY(ask_dead(q, format));
    if (*format)
        return MIXT_OK;
    MIXT_TRY(mixt__inquire_same_weights(q, &loss, &norm));
    *format = isfinite(loss) && log(row->loss) - log(loss) > apart;
    if (q->signs & MIXT_SIGN_NORM && isfinite(norm))
        *format = *format || (double)row->grad_norm > larger * norm;
    return MIXT_OK;
}

/** At the update where FP32 went another way, else at the one with the first sign. */
static mixt_status suspect_precision(mixt__inquiry *q, int64_t parted, bool *format)
{
    int64_t begin = q->begin;
    *format = false;
    if (parted && parted < begin) {
        begin_at(q, parted);
        MIXT_TRY(ask_same_weights(q, format));
    }
    if (*format || (!q->signs && begin != q->begin))
        return MIXT_OK;
    begin_at(q, begin);
    MIXT_TRY(ask_same_weights(q, format));
    if (!*format)
        q->signs &= ~(unsigned)MIXT_SIGN_DEAD; // FP32 has a gradient there that changes nothing
    return MIXT_OK;
}

static mixt_status blame_precision(mixt__inquiry *q)
{
    mixt_diagnosis *d = q->d;
    mixt_cause symptom = d->symptom;
    MIXT_TRY(mixt__replay_from(&q->replay, d->good));
    MIXT_TRY(mixt__inquire_layers(q));
    d->kind = MIXT_DIAGNOSIS_PRECISION;
    d->cause = MIXT_CAUSE_PRECISION;
    d->symptom = symptom == MIXT_CAUSE_SCALE_COLLAPSE ? symptom : d->symptom;
    int length = snprintf(
        q->words->text, sizeof q->words->text,
        "precision: update %lld gives the same bits again, but FP32 has no problem there (loss %.4g, %.4g in FP32)",
        (long long)d->step, d->value, d->fp32);
    if (*d->layers[0])
        length += snprintf(q->words->text + length, sizeof q->words->text - (size_t)length,
                           "; the first bad value is in %s of %s", d->op, d->layers[0]);
    if (d->rank >= 0 && (size_t)length < sizeof q->words->text)
        snprintf(q->words->text + length, sizeof q->words->text - (size_t)length, " on rank %d", d->rank);
    return MIXT_OK;
}

static void blame_dead(mixt__inquiry *q)
{
    mixt_diagnosis *d = q->d;
    d->kind = MIXT_DIAGNOSIS_DEAD_LAYER;
    d->cause = d->symptom = MIXT_CAUSE_GRADIENT_ANOMALY;
    snprintf(q->words->text, sizeof q->words->text,
             "dead layer: from update %lld on layer %s outputs only 0, in FP32 too: it no longer learns",
             (long long)d->step, *d->layers[0] ? d->layers[0] : "(not found)");
}

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

/** What no batch explains: the learning rate, where a lower one is calm on the same batches. */
static mixt_status blame_optimizer(mixt__inquiry *q)
{
    mixt_diagnosis *d = q->d;
    const mixt__trace_row *row = find_rate(q);
    char jump[96] = "";
    bool found;
    MIXT_TRY(mixt__inquire_rate(q, &found));
    if (!found)
        return MIXT_OK;
    d->kind = MIXT_DIAGNOSIS_OPTIMIZER;
    d->cause = MIXT_CAUSE_OPTIMIZER;
    d->step = row ? row->step : q->begin > d->good + 1 ? q->begin - 1 : q->begin;
    if (row)
        snprintf(jump, sizeof jump, "; it was %.4g at update %lld, %.4g before", (double)row->lr, (long long)row->step,
                 mixt__trace_usual(&q->ring->trace, row->step).lr);
    snprintf(
        q->words->text, sizeof q->words->text,
        "optimizer: the learning rate is too high for this state: from update %lld on %s (loss %.4g, usual was "
        "%.4g), in FP32 too; with train.lr=%.3g in place of %.3g the same updates from update %lld have no problem%s",
        (long long)d->step,
        q->signs & MIXT_SIGN_DEAD ? "a layer outputs only 0" : "the loss is worse than without training", d->value,
        d->usual, d->calm_lr, d->lr, (long long)d->good, jump);
    return MIXT_OK;
}

/** Weights that too large updates have spoilt find samples that mean nothing. One that is bad is so for weights too
 * that were made from the good state with a fraction of the learning rate. */
static mixt_status confirm_batch(mixt__inquiry *q)
{
    mixt_diagnosis found = *q->d;
    mixt__diagnosis_words words = *q->words;
    mixt__trainer_try_rate(q->trainer, gentle);
    mixt_status status = mixt__replay_from(&q->replay, q->d->good);
    q->d->kind = MIXT_DIAGNOSIS_UNKNOWN;
    if (status == MIXT_OK)
        status = mixt__inquire_batch(q, true);
    mixt__trainer_try_rate(q->trainer, 1);
    MIXT_TRY(status);
    bool confirmed = q->d->kind == MIXT_DIAGNOSIS_BATCH;
    double loss = q->d->fp32;
    *q->d = found;
    *q->words = words;
    if (confirmed)
        return MIXT_OK;
    q->d->kind = MIXT_DIAGNOSIS_UNKNOWN;
    q->d->cause = q->d->symptom;
    q->d->epoch = q->d->batch = 0;
    q->d->place = q->d->sample = -1;
    q->d->rank = -1;
    snprintf(q->words->text, sizeof q->words->text,
             "unknown: update %lld gives the same bits again; its batch is unusual with these weights (loss %.4g in "
             "FP32 too), but normal with the weights of an eighth of the learning rate (%.4g)",
             (long long)q->begin, q->d->fp32, loss);
    return blame_optimizer(q);
}

static mixt_status inquire(mixt__inquiry *q)
{
    mixt_diagnosis *d = q->d;
    bool differs;
    verdict v;
    MIXT_TRY(mixt__inquire_hardware(q, &differs));
    if (differs) {
        d->good = mixt__snapshots_before(q->ring, d->step);
        return MIXT_OK;
    }
    begin_at(q, q->begin);
    MIXT_TRY(ask_fp32(q, &v));
    d->fp32 = v.loss;
    if (v.dead) {
        q->signs |= MIXT_SIGN_DEAD; // rates are asked about it too
        MIXT_TRY(blame_optimizer(q));
        if (d->kind == MIXT_DIAGNOSIS_UNKNOWN)
            blame_dead(q);
        return MIXT_OK;
    }
    bool format = false;
    int64_t begin = q->begin;
    if (v.calm)
        MIXT_TRY(suspect_precision(q, v.apart, &format));
    bool outlier = false;
    if (format)
        MIXT_TRY(mixt__inquire_outlier(q, &outlier));
    if (format)
        return outlier ? MIXT_OK : blame_precision(q);
    begin_at(q, begin);
    MIXT_TRY(mixt__replay_from(&q->replay, d->good));
    MIXT_TRY(mixt__inquire_batch(q, false));
    if (d->kind == MIXT_DIAGNOSIS_BATCH)
        return confirm_batch(q);
    return d->kind == MIXT_DIAGNOSIS_UNKNOWN ? blame_optimizer(q) : MIXT_OK;
}

/* ---- before and after ---- */

/** Whether the update can be computed again, and where the trainer is now. */
static mixt_status prepare(mixt__inquiry *q)
{
    const mixt__trace *trace = &q->ring->trace;
    q->replay.marks = trace->ranks ? mixt__alloc((size_t)trace->ranks * sizeof *q->replay.marks) : NULL;
    if (trace->ranks && !q->replay.marks)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a replay");
    if (q->oldest < 0 || q->seen <= q->oldest || q->seen > q->last || mixt__trainer_steps(q->trainer) < q->last)
        return mixt__fail(MIXT_ERROR_STATE, "update %lld cannot be replayed: only %lld to %lld can", (long long)q->seen,
                          (long long)q->oldest + 1, (long long)q->last);
    return mixt__snapshot_take(&q->ring->states[MIXT_SNAPSHOTS], q->trainer);
}

static mixt_status start(mixt__inquiry *q, const mixt__diagnose_request *r)
{
    const mixt__trace *trace = &r->ring->trace;
    q->last = trace->first + trace->count - 1;
    q->seen = r->step ? r->step : q->last;
    mixt__snapshots_check(q->ring);
    q->oldest = mixt__snapshots_oldest(q->ring);
    MIXT_TRY(mixt__consensus_agree(q->trainer, prepare(q)));
    mixt__trace_anchor(&r->ring->trace, r->healthy);
    q->began = r->began;
    q->healthy = r->healthy;
    q->begin = mixt__trace_begin(trace, q->seen, mixt__trainer_params(q->trainer)->segments, &q->signs);
    q->begin = q->begin <= q->oldest ? q->oldest + 1 : q->begin;
    q->usual = mixt__trace_usual(trace, q->begin);
    return MIXT_OK;
}

/** Leaves the trainer where it is wanted. */
static mixt_status finish(mixt__inquiry *q, bool stay)
{
    if (stay)
        return mixt__snapshot_restore(&q->ring->states[MIXT_SNAPSHOTS], q->trainer);
    return mixt__snapshots_go_back(q->ring, q->d->good);
}

/** Nothing to compute: the memory is short. */
static mixt_status say_memory(const mixt__diagnose_request *r, mixt_diagnosis *d)
{
    d->kind = MIXT_DIAGNOSIS_MEMORY;
    d->cause = MIXT_CAUSE_MEMORY_WARNING;
    d->step = r->step ? r->step : mixt__trainer_steps(r->ring->trainer);
    d->good = mixt__trainer_steps(r->ring->trainer); // nothing was computed wrong: the state is good as it is
    snprintf(r->words->text, sizeof r->words->text, "memory: short since update %lld; nothing was computed wrong",
             (long long)d->step);
    return MIXT_OK;
}

/** Nothing to compute: sums of the state have found it. States to go back to were verified when they were kept. */
static mixt_status say_damage(const mixt__diagnose_request *r, const mixt__integrity_finding *found, mixt_diagnosis *d)
{
    d->kind = MIXT_DIAGNOSIS_HARDWARE;
    d->cause = MIXT_CAUSE_HARDWARE;
    d->step = found->step;
    d->rank = found->rank;
    snprintf(r->words->parameter, sizeof r->words->parameter, "%s", found->parameter);
    mixt__layer_of(d->parameter, r->words->layers[0]);
    snprintf(r->words->text, sizeof r->words->text, "%s", found->text);
    d->persists = mixt__integrity_heal(r->ring->trainer) != MIXT_OK;
    return MIXT_OK;
}

void mixt__diagnosis_point(mixt_diagnosis *d, const mixt__diagnosis_words *words)
{
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS; i++)
        d->layers[i] = words->layers[i];
    d->op = words->op;
    d->parameter = words->parameter;
    d->text = words->text;
}

mixt_status mixt__diagnose(const mixt__diagnose_request *r, mixt_diagnosis *d)
{
    mixt__inquiry q = {.ring = r->ring, .trainer = r->ring->trainer, .d = d, .words = r->words};
    *d = (mixt_diagnosis){.cause = r->symptom, .symptom = r->symptom, .good = -1, .place = -1, .sample = -1};
    memset(r->words, 0, sizeof *r->words);
    mixt__diagnosis_point(d, r->words);
    d->rank = -1;
    d->element = -1;
    d->value = d->usual = d->fp32 = NAN;
    if (r->symptom == MIXT_CAUSE_MEMORY_WARNING || r->symptom == MIXT_CAUSE_STALL)
        return say_memory(r, d);
    if (mixt__trainer_damage(q.trainer))
        return say_damage(r, mixt__trainer_damage(q.trainer), d);
    q.replay = (mixt__replay){.ring = r->ring, .data = r->data};
    mixt_status status = start(&q, r);
    bool started = status == MIXT_OK;
    if (started)
        status = inquire(&q);
    mixt__free(q.replay.marks);
    if (status != MIXT_OK && started && r->stay && !mixt__trainer_is_broken(q.trainer))
        (void)finish(&q, true); // what failed first is what is told; the caller may go on from where it was
    MIXT_TRY(status);
    d->replayed = q.replay.updates;
    return finish(&q, r->stay);
}

/* ---- the row ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return *text ? mixt__json_string(text) : json_null();
}

static json_t *evidence_of(const mixt_diagnosis *d)
{
    json_t *layers = json_array();
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS && *d->layers[i]; i++)
        mixt__json_add(layers, mixt__json_string(d->layers[i]));
    json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "text", d->text, "found",
                          mixt_diagnosis_name(d->kind), "symptom", mixt_cause_name(d->symptom), "began",
                          (json_int_t)d->step, "good", (json_int_t)d->good, "loss", number(d->value), "usual",
                          number(d->usual), "fp32", number(d->fp32), "layers", layers, "op", text_or_null(d->op),
                          "parameter", text_or_null(d->parameter));
    if (d->judged.updates)
        mixt__json_set(o, "judgement", mixt__judgement_object(&d->judged));
    if (d->rank >= 0)
        mixt__json_set(o, "rank", json_integer(d->rank));
    if (d->kind == MIXT_DIAGNOSIS_HARDWARE) {
        mixt__json_set(o, "persists", json_boolean(d->persists));
        mixt__json_set(o, "element", d->element < 0 ? json_null() : json_integer(d->element));
    }
    if (d->kind == MIXT_DIAGNOSIS_OPTIMIZER) {
        mixt__json_set(o, "lr", number(d->lr));
        mixt__json_set(o, "calm_lr", number(d->calm_lr));
    }
    if (d->kind == MIXT_DIAGNOSIS_BATCH) {
        mixt__json_set(o, "epoch", json_integer(d->epoch));
        mixt__json_set(o, "batch", json_integer(d->batch));
        mixt__json_set(o, "place", d->place < 0 ? json_null() : json_integer(d->place));
        mixt__json_set(o, "sample", d->sample < 0 ? json_null() : json_integer(d->sample));
    }
    return o;
}

json_t *mixt__diagnosis_row(const mixt_diagnosis *d, int64_t step, double time)
{
    mixt_severity severity = d->kind == MIXT_DIAGNOSIS_UNKNOWN  ? MIXT_SEVERITY_INFO
                             : d->kind == MIXT_DIAGNOSIS_MEMORY ? MIXT_SEVERITY_WARNING
                                                                : MIXT_SEVERITY_CRITICAL;
    return json_pack("{s:I, s:o, s:s, s:s, s:s, s:o, s:n, s:n, s:s, s:o}", "step", (json_int_t)step, "time",
                     number(time), "kind", "diagnosis", "severity", mixt_severity_name(severity), "cause",
                     mixt_cause_name(d->cause), "layer", text_or_null(d->layers[0]), "from", "to", "action", "none",
                     "evidence", evidence_of(d));
}
