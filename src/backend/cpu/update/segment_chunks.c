/* Chunks of the flat arenas, divided segment by segment: a thread takes the same part of each large one, which is
 * the part that its rows of a weight's gradient fell into, so that those stay in its cache. Small ones are dealt out.
 * Who is done helps those who are not: cores that run several threads, or other people's, are not equally fast.
 */
#include "backend/cpu/update/segment_chunks.h"

#include "base/threads.h"

enum { MOST_SHARES = 256, LINE = 64 };

/** How many of a share's chunks are taken, alone on its cache line. */
typedef struct cursor {
    _Alignas(LINE) int64_t taken;
} cursor;

typedef struct share_out {
    const mixt__update *update;
    mixt__segment_chunk_fn *fn;
    int64_t shares;
    bool summed;
    cursor *cursors;
    bool *finished; // by share: all its chunks are taken; a hint, together so that few lines tell it of all
} share_out;

static int64_t take_one(const share_out *s, int64_t share)
{
    return __atomic_fetch_add(&s->cursors[share].taken, 1, __ATOMIC_RELAXED);
}

static int64_t chunks_of(const mixt__segment *segment)
{
    return (segment->count + MIXT_CPU_CHUNK - 1) / MIXT_CPU_CHUNK;
}

static void run_chunk(const share_out *s, int64_t segment, int64_t number, int64_t index, mixt__chunk_sums *sums)
{
    int64_t begin = number * MIXT_CPU_CHUNK, rest = s->update->segments[segment].count - begin;
    mixt__segment_chunk chunk = {.index = index, .segment = segment, .begin = begin, .sums = sums};
    chunk.count = rest < MIXT_CPU_CHUNK ? rest : MIXT_CPU_CHUNK;
    s->fn(s->update, &chunk);
}

/** Puts what one thread has summed of a segment to what others have: what was read goes off what had been written. */
static void put_sums(const mixt__update *update, int64_t segment, const mixt__chunk_sums *sums)
{
    mixt__segment_sums *now = &update->sums[update->control->step & 1][segment];
    mixt__segment_sums *before = &update->sums[(update->control->step & 1) ^ 1][segment];
    for (int i = 0; i < MIXT_SUMMED; i++) {
        uint64_t read = 0, written = 0;
        for (int k = 0; k < MIXT_SUM_PARTS; k++) {
            read += sums->read[i][k];
            written += sums->written[i][k];
        }
        if (read)
            (void)__atomic_sub_fetch(&before->words[i], read, __ATOMIC_RELAXED);
        if (written)
            (void)__atomic_add_fetch(&now->words[i], written, __ATOMIC_RELAXED);
    }
}

/** Those chunks of a share that nobody has taken yet. */
static void run_share(const share_out *s, int64_t share)
{
    int64_t before = 0, dealt = 0; // chunks of all segments, of small ones
    int64_t place = 0, mine = take_one(s, share);
    for (int64_t i = 0; i < s->update->segment_count; i++) {
        int64_t count = chunks_of(&s->update->segments[i]), spread = i % s->shares; // who gets one more changes
        int64_t first = (count * share + spread) / s->shares, end = (count * (share + 1) + spread) / s->shares;
        if (count < s->shares) {
            first = (share + s->shares - dealt % s->shares) % s->shares;
            end = first < count ? first + 1 : first;
            dealt += count;
        }
        mixt__chunk_sums sums = {0};
        bool any = false;
        for (int64_t c = first; c < end; c++)
            if (place++ == mine) {
                run_chunk(s, i, c, before + c, s->summed ? &sums : NULL);
                mine = take_one(s, share);
                any = true;
            }
        if (any && s->summed)
            put_sums(s->update, i, &sums);
        before += count;
    }
    __atomic_store_n(&s->finished[share], true, __ATOMIC_RELAXED);
}

static void run_shares(void *argument, int64_t begin, int64_t end, int thread)
{
    const share_out *s = argument;
    (void)thread;
    for (int64_t share = begin; share < end; share++)
        run_share(s, share);
    for (int64_t i = 0; i < s->shares; i++) {
        int64_t other = (end + i) % s->shares;
        if (!__atomic_load_n(&s->finished[other], __ATOMIC_RELAXED))
            run_share(s, other);
    }
}

static void run(const mixt__update *update, mixt__segment_chunk_fn *fn, bool summed)
{
    cursor cursors[MOST_SHARES];
    bool finished[MOST_SHARES];
    int64_t chunks = mixt__update_chunks(update->segments, update->segment_count, MIXT_CPU_CHUNK);
    int64_t shares = mixt__threads_count();
    shares = shares < chunks ? shares : chunks;
    shares = shares < MOST_SHARES ? shares : MOST_SHARES;
    for (int64_t i = 0; i < shares; i++) {
        cursors[i].taken = 0;
        finished[i] = false;
    }
    share_out s = {update, fn, shares, summed, cursors, finished};
    mixt__parallel(shares, 1, run_shares, &s);
}

void mixt__segment_chunks_run(const mixt__update *update, mixt__segment_chunk_fn *fn)
{
    run(update, fn, false);
}

void mixt__segment_chunks_sum(const mixt__update *update, mixt__segment_chunk_fn *fn)
{
    run(update, fn, update->sums[0]);
}

void mixt__segment_chunks_walk(const mixt__update *update, mixt__segment_chunk_fn *fn)
{
    share_out s = {update, fn, .shares = 1};
    int64_t index = 0;
    for (int64_t i = 0; i < update->segment_count; i++)
        for (int64_t c = 0; c < chunks_of(&update->segments[i]); c++)
            run_chunk(&s, i, c, index++, NULL);
}
