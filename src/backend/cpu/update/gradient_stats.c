/* Gradient statistics and step control on the CPU: one pass over the gradients, then a decision.
 *
 * Each chunk leaves its partial sums in the workspace; they are added in order, so that the thread count does not show.
 */
#include "backend/cpu/update/training.h"

#include "backend/control.h"
#include "backend/cpu/update/segment_chunks.h"
#include "backend/cpu/update/loops.h"

_Static_assert(sizeof(mixt__chunk_stats) <= 32, "mixt__update_workspace counts 32 bytes per chunk");
_Static_assert(MIXT_CPU_CHUNK <= UINT16_MAX, "a chunk's counts are 16 bits");

static void measure(const mixt__update *update, const mixt__segment_chunk *chunk)
{
    mixt__chunk_stats *partial = update->workspace;
    const float *g = (const float *)update->gradient.data + update->segments[chunk->segment].offset + chunk->begin;
    mixt__update_loops_get()->stats(g, chunk->count, &partial[chunk->index]);
}

static void add_partial(const mixt__update *update, const mixt__segment_chunk *chunk)
{
    const mixt__chunk_stats *partial = (const mixt__chunk_stats *)update->workspace + chunk->index;
    mixt__segment_stats *stats = &update->stats[chunk->segment];
    stats->sum_squares += partial->sum_squares;
    stats->nonfinite += partial->nonfinite;
    stats->zeros += partial->zeros;
    if (partial->amax > stats->amax)
        stats->amax = partial->amax;
}

mixt_status mixt__cpu_gradient_stats(const mixt__update *update)
{
    mixt__segment_chunks_run(update, measure);
    for (int64_t i = 0; i < update->segment_count; i++)
        update->stats[i] = (mixt__segment_stats){0};
    mixt__segment_chunks_walk(update, add_partial);
    return MIXT_OK;
}

void mixt__cpu_join_stats(const mixt__segment_stats *chunks, int64_t count, mixt__segment_stats *stats)
{
    *stats = (mixt__segment_stats){0};
    for (int64_t i = 0; i < count; i++) {
        stats->sum_squares += chunks[i].sum_squares;
        stats->nonfinite += chunks[i].nonfinite;
        stats->zeros += chunks[i].zeros;
        if (chunks[i].amax > stats->amax)
            stats->amax = chunks[i].amax;
    }
}

/** The first segment in backward order whose gradient is not finite; -1: all are. */
static int32_t first_bad(const mixt__update *update)
{
    for (int64_t i = 0; i < update->segment_count; i++) {
        int32_t segment = update->backward_order ? update->backward_order[i] : (int32_t)i;
        if (update->stats[segment].nonfinite)
            return segment;
    }
    return -1;
}

mixt_status mixt__cpu_step_control(const mixt__update *update)
{
    double sum_squares = 0;
    for (int64_t i = 0; i < update->segment_count; i++)
        sum_squares += update->stats[i].sum_squares;
    mixt__control_check(update->control, update->damage);
    update->control->bad_segment = first_bad(update);
    mixt__control_advance(update->control, update, sum_squares, update->control->bad_segment >= 0);
    return MIXT_OK;
}
