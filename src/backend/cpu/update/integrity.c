/* Whether state is as it was written, on the CPU: sums made anew, working copies, blocks, the verdict of an update.
 *
 * What the optimizer reads it sums by the way (optimizer.c); here is the rest.
 */
#include "backend/cpu/update/training.h"

#include "backend/control.h"
#include "backend/cpu/update/loops.h"
#include "backend/cpu/update/moments.h"
#include "backend/cpu/update/segment_chunks.h"
#include "base/status.h"
#include "base/threads.h"

#include <string.h>

uint64_t mixt__words_sum(const void *bytes, size_t count)
{
    uint64_t last = 0;
    size_t whole = count / sizeof last;
    memcpy(&last, (const char *)bytes + whole * sizeof last, count % sizeof last);
    return mixt__update_loops_get()->words(bytes, (int64_t)whole) + last;
}

/* ---- segments ---- */

static uint64_t sum_of(const mixt__update_role *role, const mixt__segment *segment, const mixt__segment_chunk *chunk)
{
    int64_t size = (int64_t)mixt_dtype_size(role->format);
    return role->data ? mixt__words_sum((const char *)role->data + (segment->offset + chunk->begin) * size,
                                        (size_t)(chunk->count * size))
                      : 0;
}

static uint64_t sum_of_copy(const mixt__update *update, const mixt__segment_chunk *chunk)
{
    const mixt__segment *segment = &update->segments[chunk->segment];
    int64_t size = (int64_t)mixt_dtype_size(segment->low);
    if (segment->low == MIXT_DTYPE_NONE)
        return 0;
    return mixt__words_sum((const char *)update->low[segment->low] + (segment->low_offset + chunk->begin) * size,
                           (size_t)(chunk->count * size));
}

static void add_all(const mixt__update *update, const mixt__segment_chunk *chunk,
                    uint64_t sums[MIXT_SUMMED][MIXT_SUM_PARTS])
{
    const mixt__segment *segment = &update->segments[chunk->segment];
    sums[MIXT_SUMMED_WEIGHT][0] += sum_of(&update->weight, segment, chunk);
    for (int i = 0; i < 2; i++) {
        mixt__moment m = mixt__moment_at(update, i, segment, chunk->begin);
        sums[MIXT_SUMMED_MOMENT1 + i][0] += mixt__moment_sum(&m, chunk->count);
    }
    sums[MIXT_SUMMED_COPY][0] += sum_of_copy(update, chunk);
}

static void write_all(const mixt__update *update, const mixt__segment_chunk *chunk)
{
    add_all(update, chunk, chunk->sums->written);
}

mixt_status mixt__cpu_sum_segments(const mixt__update *update)
{
    for (int i = 0; i < 2; i++)
        memset(update->sums[i], 0, (size_t)update->segment_count * sizeof *update->sums[i]);
    mixt__segment_chunks_sum(update, write_all);
    return MIXT_OK;
}

static void read_all(const mixt__update *update, const mixt__segment_chunk *chunk)
{
    add_all(update, chunk, chunk->sums->read);
}

mixt_status mixt__cpu_check_segments(const mixt__update *update)
{
    if (update->control->found_inf)
        mixt__segment_chunks_sum(update, read_all);
    return MIXT_OK;
}

mixt_status mixt__cpu_judge_sums(const mixt__update *update)
{
    const mixt__control *control = update->control;
    mixt__segment_sums *now = update->sums[control->step & 1], *before = update->sums[(control->step & 1) ^ 1];
    for (int64_t s = 0; s < update->segment_count; s++)
        for (int i = 0; i < MIXT_SUMMED; i++)
            if (mixt__sums_differ(update, &before[s], &now[s], i))
                mixt__damage_note(update->damage, i, s);
    memset(before, 0, (size_t)update->segment_count * sizeof *before);
    return MIXT_OK;
}

/* ---- blocks ---- */

typedef struct block_sum {
    const char *block;
    int64_t bytes;
    uint64_t sum;
} block_sum;

enum { GRAIN = 1 << 16 };

static void sum_range(void *argument, int64_t begin, int64_t end, int thread)
{
    block_sum *s = argument;
    int64_t last = end * GRAIN < s->bytes ? end * GRAIN : s->bytes;
    (void)thread;
    uint64_t sum = mixt__words_sum(s->block + begin * GRAIN, (size_t)(last - begin * GRAIN));
    (void)__atomic_add_fetch(&s->sum, sum, __ATOMIC_RELAXED);
}

static uint64_t sum_block(const mixt__still_block *block)
{
    block_sum s = {.block = block->data, .bytes = block->bytes};
    mixt__parallel((s.bytes + GRAIN - 1) / GRAIN, 1, sum_range, &s);
    return s.sum;
}

mixt_status mixt__cpu_sum_blocks(mixt__still_block *blocks, int64_t count, mixt__damage *damage)
{
    for (int64_t i = 0; i < count; i++) {
        blocks[i].now = sum_block(&blocks[i]);
        blocks[i].then = damage ? blocks[i].then : blocks[i].now;
        if (blocks[i].now != blocks[i].then)
            mixt__damage_note(damage, blocks[i].what, i);
    }
    return MIXT_OK;
}

/* ---- running statistics ---- */

mixt_status mixt__cpu_check_statistics(const mixt__update *update)
{
    for (int64_t i = 0; i < update->statistics_count; i++)
        if (memcmp(&update->statistics[i], &update->kept[i], sizeof *update->kept)) {
            mixt__damage_note(update->damage, MIXT_DAMAGED_STATE, i);
            break;
        }
    return MIXT_OK;
}
