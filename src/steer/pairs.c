/* FP32 beside the trace. */
#include "steer/pairs.h"

#include "base/log.h"
#include "steer/consensus.h"
#include "steer/replay.h"

#include <math.h>

enum {
    FEWEST = 2 * MIXT_JUDGE_SERIES_LEAST, // updates that tell anything
    NEWEST = 8,                           // what is told of losses is the last eighth of those that are judged
};
static const double tiny = 0.02; // of the first loss: what lies below is held against that

/** Losses of both from the state of update `from` on. @param losses (2, updates) FP32's, then those of the trace */
static mixt_status replay(mixt__replay *r, int64_t from, int64_t updates, double *losses)
{
    MIXT_TRY(mixt__replay_from(r, from));
    for (int64_t i = 0; i < updates; i++) {
        MIXT_TRY(mixt__replay_step(r));
        losses[i] = r->row.loss;
        losses[updates + i] = mixt__trace_row_of(&r->ring->trace, r->row.step)->loss;
    }
    return MIXT_OK;
}

/** The second half of the updates: the first half is for what is lost to have an effect. `floor` is a loss below which
 *  nothing is held against the loss itself. */
static void judge(double *losses, double floor, double margin, mixt__pairs *p)
{
    int64_t half = p->updates / 2, newest = half / NEWEST > 0 ? half / NEWEST : 1;
    double *fp32 = losses + p->updates - half, *low = fp32 + p->updates, level = 0;
    p->low = p->fp32 = 0;
    for (int64_t i = 0; i < half; i++) {
        level += fp32[i] / (double)half;
        p->low += i >= half - newest ? low[i] / (double)newest : 0;
        p->fp32 += i >= half - newest ? fp32[i] / (double)newest : 0;
    }
    for (int64_t i = 0; i < half; i++)
        low[i] = (low[i] - fp32[i]) / fmax(fabs(level), floor);
    p->judgement = mixt__judge_series(low, half, margin, MIXT_UNIT_SHARE);
}

/** From one state. */
static mixt_status measure_from(mixt__replay *r, int64_t from, int64_t last, double began, double margin,
                                mixt__pairs *p)
{
    p->from = from;
    p->updates = last - from;
    p->replayed += p->updates;
    p->judgement = mixt_judge_value(MIXT_CLAIM_SAFE, NAN, margin, MIXT_EVIDENCE_REPLAYED);
    double *losses = mixt__alloc((size_t)(2 * p->updates) * sizeof *losses);
    mixt_status status = mixt__consensus_agree(
        r->ring->trainer, losses ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the losses of a replay"));
    if (status == MIXT_OK)
        status = replay(r, from, p->updates, losses);
    if (status == MIXT_OK)
        judge(losses, began > 0 ? tiny * began : 1e-30, margin, p);
    mixt__free(losses);
    return status;
}

/** The newer state says what FP32 makes of the newest updates, where there are enough since; the older one has more of
 *  them. */
static mixt_status measure(mixt__replay *r, double began, double margin, mixt__pairs *p)
{
    int64_t last = mixt__trainer_steps(r->ring->trainer), from = mixt__snapshots_before(r->ring, INT64_MAX);
    mixt_status status = mixt__replay_enter_fp32(r);
    for (; from >= 0 && status == MIXT_OK; from = mixt__snapshots_before(r->ring, from)) {
        if (last - from < FEWEST)
            continue;
        status = measure_from(r, from, last, began, margin, p);
        MIXT_LOG(TRAIN, "FP32 from update %lld on, %lld updates: loss %+.2f%% (%+.2f%% to %+.2f%%): %s",
                 (long long)from, (long long)p->updates, 100 * p->judgement.value, 100 * p->judgement.low,
                 100 * p->judgement.high, mixt_verdict_name(p->judgement.verdict));
        if (p->judgement.verdict == MIXT_VERDICT_NO)
            break;
    }
    mixt_status left = mixt__replay_leave_fp32(r);
    return status == MIXT_OK ? mixt__consensus_agree(r->ring->trainer, left) : status;
}

mixt_status mixt__pairs_measure(mixt__snapshots *ring, const mixt_data *data, double began, double margin,
                                mixt__pairs *p)
{
    mixt__trainer *t = ring->trainer;
    mixt__replay r = {.ring = ring, .data = data};
    *p = (mixt__pairs){.from = -1};
    p->judgement = mixt_judge_value(MIXT_CLAIM_SAFE, NAN, margin, MIXT_EVIDENCE_REPLAYED);
    mixt__snapshots_check(ring);
    int64_t oldest = mixt__snapshots_oldest(ring);
    if (oldest < 0 || mixt__trainer_steps(t) - oldest < FEWEST)
        return MIXT_OK;
    r.marks = ring->trace.ranks ? mixt__alloc((size_t)ring->trace.ranks * sizeof *r.marks) : NULL;
    mixt_status status = r.marks || !ring->trace.ranks ? mixt__snapshot_take(&ring->states[MIXT_SNAPSHOTS], t)
                                                       : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a replay");
    status = mixt__consensus_agree(t, status);
    if (status == MIXT_OK) {
        status = measure(&r, began, margin, p);
        mixt_status back = mixt__snapshot_restore(&ring->states[MIXT_SNAPSHOTS], t);
        status = status == MIXT_OK ? back : status;
    }
    mixt__free(r.marks);
    return status;
}
