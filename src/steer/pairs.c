/* FP32 beside the trace. */
#include "steer/pairs.h"

#include "base/log.h"
#include "steer/consensus.h"
#include "steer/replay.h"

#include <math.h>

enum {
    BLOCKS = 8,   // that pairs of updates are put together in, ...
    SHORTEST = 2, // ... of so many updates at least
    FEWEST = 16,  // updates that tell anything
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

/** The second half of the updates, in blocks: how much worse the trace is. @return how many blocks; 0: too few */
static int64_t put_together(const double *losses, double floor, double worse[BLOCKS], mixt__pairs *p)
{
    int64_t updates = p->updates, half = updates / 2, size = half / BLOCKS, count = BLOCKS;
    if (size < SHORTEST) {
        size = SHORTEST;
        count = half / SHORTEST;
    }
    for (int64_t b = 0; b < count; b++) {
        double fp32 = 0, low = 0;
        for (int64_t i = updates - (b + 1) * size; i < updates - b * size; i++) {
            fp32 += losses[i] / (double)size;
            low += losses[updates + i] / (double)size;
        }
        worse[b] = (low - fp32) / fmax(fabs(fp32), floor);
        if (b == 0) {
            p->low = low;
            p->fp32 = fp32;
        }
    }
    p->judgement.updates = size;
    return count;
}

static mixt_status judge(const double *losses, double began, double margin, mixt__pairs *p)
{
    double worse[BLOCKS];
    int64_t count = put_together(losses, began > 0 ? tiny * began : 1e-30, worse, p), size = p->judgement.updates;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(worse[i]))
            return MIXT_OK; // not a matter of a little more or less
    if (count < 2)
        return MIXT_OK;
    MIXT_TRY(mixt_judge_worse(worse, count, margin, MIXT_UNIT_SHARE, &p->judgement));
    p->judgement.updates = size;
    return MIXT_OK;
}

/** From one state. */
static mixt_status measure_from(mixt__replay *r, int64_t from, int64_t last, double began, double margin,
                                mixt__pairs *p)
{
    p->from = from;
    p->updates = last - from;
    p->replayed += p->updates;
    p->judgement = mixt_judge_value(MIXT_CLAIM_SAFE, NAN, margin, MIXT_EVIDENCE_MEASURED);
    double *losses = mixt__alloc((size_t)(2 * p->updates) * sizeof *losses);
    mixt_status status = mixt__consensus_agree(
        r->ring->trainer, losses ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the losses of a replay"));
    if (status == MIXT_OK)
        status = replay(r, from, p->updates, losses);
    if (status == MIXT_OK)
        status = judge(losses, began, margin, p);
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
    p->judgement = mixt_judge_value(MIXT_CLAIM_SAFE, NAN, margin, MIXT_EVIDENCE_MEASURED);
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
