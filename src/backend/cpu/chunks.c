/* Chunks of the flat arenas, shared out by elements: a thread takes those that begin in its range. */
#include "backend/cpu/chunks.h"

#include "base/threads.h"

typedef struct share {
    const mixt__update *update;
    mixt__chunk_fn *fn;
} share;

static void run_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const share *s = argument;
    mixt__chunk chunk = {0};
    int64_t position = 0; // elements in the segments before
    (void)thread;
    for (int64_t i = 0; i < s->update->segment_count && position < end; i++) {
        int64_t count = s->update->segments[i].count;
        chunk.segment = i;
        for (int64_t at = 0; at < count; at += MIXT_CPU_CHUNK, chunk.index++) {
            if (position + at < begin || position + at >= end)
                continue;
            chunk.begin = at;
            chunk.count = count - at < MIXT_CPU_CHUNK ? count - at : MIXT_CPU_CHUNK;
            s->fn(s->update, &chunk);
        }
        position += count;
    }
}

static int64_t element_count(const mixt__update *update)
{
    int64_t count = 0;
    for (int64_t i = 0; i < update->segment_count; i++)
        count += update->segments[i].count;
    return count;
}

void mixt__chunks_run(const mixt__update *update, mixt__chunk_fn *fn)
{
    share s = {update, fn};
    mixt__parallel(element_count(update), MIXT_CPU_CHUNK, run_range, &s);
}

void mixt__chunks_walk(const mixt__update *update, mixt__chunk_fn *fn)
{
    share s = {update, fn};
    run_range(&s, 0, element_count(update), 0);
}
