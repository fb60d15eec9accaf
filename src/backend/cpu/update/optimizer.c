/* The optimizer on the CPU: one pass over the flat arenas that writes weights, moments and working copies.
 *
 * With g the unscaled and clipped gradient, lr the segment's rate, d its weight decay and t the number of this update:
 *   SGD       g += d·w; m = momentum·m + g; w -= lr·m (plain: lr·g; Nesterov: lr·(g + momentum·m))
 *   Adam      g += d·w; m = b1·m + (1 - b1)·g; v = b2·v + (1 - b2)·g²;
 *             w -= lr·(m/(1 - b1^t)) / (sqrt(v/(1 - b2^t)) + eps)
 *   AdamW     the same without d in g, and w -= lr·d·w from the old w
 *   LAMB      u = Adam's quotient + d·w; w -= lr·r·u with r = |w|/|u| over the segment, 1 when either norm is 0
 * LAMB needs two passes: moments and norms, then weights. A skipped step returns before anything is touched.
 *
 * Moments in BF16 and in codes are widened, updated in FP32 and rounded again, block by block (moments.h). The weights'
 * step is made from the moments before they are rounded (LAMB's second pass: after).
 */
#include "backend/cpu/update/training.h"

#include "backend/cpu/update/segment_chunks.h"
#include "backend/cpu/update/loops.h"
#include "backend/cpu/update/moments.h"
#include "base/status.h"
#include "num/blocks.h"

#include <math.h>
#include <string.h>

enum { NARROW_BLOCK = 1024 }; // still in the first-level cache when it is rounded; whole blocks of codes

_Static_assert(2 * sizeof(double) <= 32, "mixt__update_workspace counts 32 bytes per chunk");

static mixt__rule rule_of(const mixt__update *update, const mixt__segment *segment)
{
    const mixt__optimizer *o = &update->optimizer;
    const mixt__control *control = update->control;
    return (mixt__rule){
        .grad_factor = control->grad_factor,
        .clip = update->clip_value > 0 ? update->clip_value : INFINITY,
        .lr = control->lr * segment->lr_scale,
        .weight_decay = segment->weight_decay,
        .momentum = o->momentum,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .one_minus_beta1 = (float)(1.0 - o->beta1),
        .one_minus_beta2 = (float)(1.0 - o->beta2),
        .inv_bias1 = control->inv_bias1,
        .inv_sqrt_bias2 = control->inv_sqrt_bias2,
        .eps = o->eps,
        .others = o->others,
        .share = (float)(1.0 / (1.0 + (double)o->others)),
    };
}

static mixt__update_fn *loop_of(const mixt__optimizer *o)
{
    const mixt__optimizer_loops *loops = mixt__optimizer_loops_get();
    switch (o->kind) {
    case MIXT_OPTIMIZER_ADAM:
        return loops->adam;
    case MIXT_OPTIMIZER_ADAMW:
        return loops->adamw;
    case MIXT_OPTIMIZER_LAMB:
        return loops->lamb_apply;
    default:
        return o->momentum == 0 ? loops->sgd : o->nesterov ? loops->nesterov : loops->momentum;
    }
}

static float *fp32_at(const mixt__update_role *role, int64_t at)
{
    return role->data ? (float *)role->data + at : NULL;
}

/* ---- a block: its arrays, and the sums of what is read and written: of FP32 in the loops' registers, of the rest in
 * the first-level cache ---- */

typedef struct work {
    mixt__update_block block;
    mixt__moment moments[2];
} work;

static void sum_narrow(const work *w, uint64_t sums[MIXT_SUMMED][MIXT_SUM_PARTS])
{
    for (int i = 0; i < 2; i++)
        if (w->block.apart[i])
            sums[MIXT_SUMMED_MOMENT1 + i][0] += mixt__moment_sum(&w->moments[i], w->block.count);
}

/** Opens a block of a chunk. @param done elements of the chunk before it @param room (2) for as many elements
 *  @param writes whether moments are written */
static void begin(work *w, const mixt__update *update, const mixt__segment_chunk *chunk, int64_t done, int64_t count,
                  float *const room[2], bool writes)
{
    const mixt__segment *segment = &update->segments[chunk->segment];
    int64_t inside = chunk->begin + done, at = segment->offset + inside;
    for (int i = 0; i < 2; i++)
        w->moments[i] = mixt__moment_at(update, i, segment, inside);
    w->block = (mixt__update_block){.w = fp32_at(&update->weight, at),
                                    .g = fp32_at(&update->gradient, at),
                                    .m = mixt__moment_open(&w->moments[0], count, room[0]),
                                    .v = mixt__moment_open(&w->moments[1], count, room[1]),
                                    .count = count,
                                    .sums = chunk->sums};
    for (int i = 0; i < 2; i++)
        w->block.apart[i] = mixt__moment_is_narrow(&w->moments[i]);
    if (chunk->sums && writes)
        sum_narrow(w, chunk->sums->read);
}

/** Behind the loop. */
static void end(const work *w, bool writes)
{
    for (int i = 0; i < 2 && writes; i++)
        mixt__moment_close(&w->moments[i], w->block.count, i ? w->block.v : w->block.m);
    if (w->block.sums && writes)
        sum_narrow(w, w->block.sums->written);
}

/* LAMB's workspace: two sums a chunk, then one ratio a segment. */
static double *chunk_sums(const mixt__update *update, int64_t chunk)
{
    return (double *)update->workspace + 2 * chunk;
}

static float *ratios(const mixt__update *update)
{
    return (float *)chunk_sums(update, mixt__update_chunks(update->segments, update->segment_count, MIXT_CPU_CHUNK));
}

static void lamb_first(const mixt__update *update, const mixt__segment_chunk *chunk)
{
    mixt__rule rule = rule_of(update, &update->segments[chunk->segment]);
    float m[MIXT_CPU_CHUNK], v[MIXT_CPU_CHUNK];
    work w;
    begin(&w, update, chunk, 0, chunk->count, (float *const[2]){m, v}, true);
    mixt__optimizer_loops_get()->lamb_moments(&rule, &w.block, chunk_sums(update, chunk->index));
    end(&w, true);
}

float mixt__cpu_lamb_ratio(const double *sums, int64_t count)
{
    double weights = 0, updates = 0;
    for (int64_t i = 0; i < count; i++) {
        weights += sums[2 * i];
        updates += sums[2 * i + 1];
    }
    return weights > 0 && updates > 0 ? (float)sqrt(weights / updates) : 1.0f;
}

static void lamb_ratios(const mixt__update *update)
{
    int64_t index = 0;
    for (int64_t i = 0; i < update->segment_count; i++) {
        int64_t count = mixt__update_chunks(&update->segments[i], 1, MIXT_CPU_CHUNK);
        ratios(update)[i] = mixt__cpu_lamb_ratio(chunk_sums(update, index), count);
        index += count;
    }
}

/** A working copy whose format the loops do not write. */
static void round_copy(const mixt__update *update, const mixt__segment *segment, int64_t in_segment,
                       const mixt__update_block *block, mixt__chunk_sums *sums)
{
    size_t size = mixt_dtype_size(segment->low), bytes = (size_t)block->count * size;
    char *low = (char *)update->low[segment->low] + (size_t)(segment->low_offset + in_segment) * size;
    if (sums)
        sums->read[MIXT_SUMMED_COPY][0] += mixt__words_sum(low, bytes);
    mixt__narrow(segment->low)(low, block->w, block->count);
    if (sums)
        sums->written[MIXT_SUMMED_COPY][0] += mixt__words_sum(low, bytes);
}

static bool is_in_loop(mixt_dtype low)
{
    return low == MIXT_DTYPE_BF16 || low == MIXT_DTYPE_FP16;
}

/** A block of a chunk. @param done elements of the chunk before it */
static void apply_block(const mixt__update *update, const mixt__segment_chunk *chunk, const mixt__rule *rule,
                        int64_t done, int64_t count)
{
    const mixt__segment *segment = &update->segments[chunk->segment];
    int64_t inside = chunk->begin + done;
    bool writes = update->optimizer.kind != MIXT_OPTIMIZER_LAMB; // which has made its moments before
    float m[NARROW_BLOCK], v[NARROW_BLOCK];
    work w;
    begin(&w, update, chunk, done, count, (float *const[2]){m, v}, writes);
    if (is_in_loop(segment->low)) {
        w.block.low = (uint16_t *)update->low[segment->low] + segment->low_offset + inside;
        w.block.low_format = segment->low;
    }
    mixt__update_fn *loop = loop_of(&update->optimizer);
    loop(rule, &w.block);
    if (segment->low != MIXT_DTYPE_NONE && !w.block.low)
        round_copy(update, segment, inside, &w.block, chunk->sums);
    end(&w, writes);
}

static bool is_narrow(const mixt__update *update, const mixt__segment *segment)
{
    mixt__moment m = mixt__moment_at(update, 0, segment, 0), v = mixt__moment_at(update, 1, segment, 0);
    return mixt__moment_is_narrow(&m) || mixt__moment_is_narrow(&v);
}

static void apply(const mixt__update *update, const mixt__segment_chunk *chunk)
{
    const mixt__segment *segment = &update->segments[chunk->segment];
    mixt__rule rule = rule_of(update, segment);
    if (update->optimizer.kind == MIXT_OPTIMIZER_LAMB)
        rule.lr *= ratios(update)[chunk->segment];
    bool whole = !is_narrow(update, segment) && (segment->low == MIXT_DTYPE_NONE || is_in_loop(segment->low));
    int64_t step = whole ? chunk->count : NARROW_BLOCK;
    for (int64_t done = 0; done < chunk->count; done += step)
        apply_block(update, chunk, &rule, done, chunk->count - done < step ? chunk->count - done : step);
}

static mixt_status check(const mixt__update *update)
{
    int moments = mixt__optimizer_moments(&update->optimizer);
    for (int i = 0; i < moments; i++) {
        const mixt__update_role *role = &update->moments[i];
        bool codes = role->scales && mixt__blocks_possible(role->format);
        if (!role->data)
            return mixt__fail(MIXT_ERROR_INTERNAL, "the optimizer keeps %d moments, but has no memory for them",
                              moments);
        if (role->format != MIXT_DTYPE_FP32 && role->format != MIXT_DTYPE_BF16 && !codes)
            return mixt__fail(MIXT_ERROR_DTYPE, "no moments in %s are possible", mixt_dtype_name(role->format));
    }
    for (int64_t i = 0; i < update->segment_count; i++) {
        mixt_dtype low = update->segments[i].low;
        if (low != MIXT_DTYPE_NONE && (!mixt__narrow(low) || !update->low[low]))
            return mixt__fail(MIXT_ERROR_DTYPE, "parameter %d: no working copy in %s is possible",
                              (int)update->segments[i].param, mixt_dtype_name(low));
    }
    return MIXT_OK;
}

/** Statistics of an update that is applied are kept, those of a skipped one are what they were. */
static void settle_statistics(const mixt__update *update, bool skipped)
{
    size_t bytes = (size_t)update->statistics_count * sizeof(float);
    if (bytes)
        memcpy(skipped ? update->statistics : update->kept, skipped ? update->kept : update->statistics, bytes);
}

mixt_status mixt__cpu_optimizer_step(const mixt__update *update)
{
    MIXT_TRY(check(update));
    settle_statistics(update, update->control->found_inf);
    if (update->control->found_inf)
        return MIXT_OK;
    if (update->optimizer.kind == MIXT_OPTIMIZER_LAMB) {
        mixt__segment_chunks_sum(update, lamb_first);
        lamb_ratios(update);
    }
    mixt__segment_chunks_sum(update, apply);
    return MIXT_OK;
}

mixt_status mixt__cpu_lamb_moments(const mixt__update *update)
{
    MIXT_TRY(check(update));
    if (!update->control->found_inf)
        mixt__segment_chunks_sum(update, lamb_first);
    return MIXT_OK;
}

mixt_status mixt__cpu_lamb_weights(const mixt__update *update, const float *given)
{
    settle_statistics(update, update->control->found_inf);
    if (update->control->found_inf)
        return MIXT_OK;
    if (update->segment_count)
        memcpy(ratios(update), given, (size_t)update->segment_count * sizeof *given);
    mixt__segment_chunks_sum(update, apply);
    return MIXT_OK;
}
