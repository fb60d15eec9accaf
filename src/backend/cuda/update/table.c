/* Builds and keeps the tables that table.h describes. */
#include "backend/cuda/update/table.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

typedef struct mixt__cuda_table_entry {
    const void *owner; // update->workspace
    mixt__segment *segments;
    int32_t *order;
    mixt__cuda_table table;
} entry;

static int32_t ordered(const mixt__update *update, int64_t i)
{
    return update->backward_order ? update->backward_order[i] : (int32_t)i;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/** Field by field: the padding of a segment says nothing. */
static bool same_segment(const mixt__segment *a, const mixt__segment *b)
{
    return a->offset == b->offset && a->count == b->count && a->first == b->first && a->low == b->low &&
           a->low_offset == b->low_offset && bits_of(a->weight_decay) == bits_of(b->weight_decay) &&
           bits_of(a->lr_scale) == bits_of(b->lr_scale);
}

static bool same(const entry *e, const mixt__update *update)
{
    if (e->table.segment_count != update->segment_count)
        return false;
    for (int64_t i = 0; i < update->segment_count; i++)
        if (!same_segment(&e->segments[i], &update->segments[i]) || e->order[i] != ordered(update, i))
            return false;
    return true;
}

static void drop(entry *e)
{
    mixt__free(e->segments);
    mixt__free(e->order);
    *e = (entry){0};
}

/* ---- making one ---- */

/** Where the parts of a table lie in its memory, each at a multiple of 8 bytes; the chunks come first. */
typedef struct layout {
    size_t chunks, first_at, order_at, counter_at, bytes;
} layout;

static layout layout_of(const mixt__segment *segments, int64_t segment_count)
{
    size_t count = (size_t)segment_count;
    layout l = {.chunks = (size_t)mixt__update_chunks(segments, segment_count, MIXT_CUDA_CHUNK)};
    l.first_at = l.chunks * sizeof(mixt__cuda_chunk);
    l.order_at = l.first_at + (count + 2) / 2 * 16;
    l.counter_at = l.order_at + (count + 3) / 4 * 16;
    l.bytes = l.counter_at + 16;
    return l;
}

size_t mixt__cuda_update_workspace(mixt__device *device, const mixt__segment *segments, int64_t segment_count)
{
    (void)device;
    return mixt__update_workspace(segments, segment_count) + (layout_of(segments, segment_count).bytes + 63) / 64 * 64;
}

static void fill_chunks(const mixt__update *update, mixt__cuda_chunk *chunks, int64_t *first)
{
    int64_t index = 0;
    for (int64_t i = 0; i < update->segment_count; i++) {
        const mixt__segment *s = &update->segments[i];
        first[i] = index;
        for (int64_t begin = 0; begin < s->count; begin += MIXT_CUDA_CHUNK) {
            int64_t left = s->count - begin;
            chunks[index++] = (mixt__cuda_chunk){.at = s->offset + begin,
                                                 .low_at = s->low_offset + begin,
                                                 .count = (int32_t)(left < MIXT_CUDA_CHUNK ? left : MIXT_CUDA_CHUNK),
                                                 .segment = (int32_t)i,
                                                 .low = (int32_t)s->low,
                                                 .weight_decay = s->weight_decay,
                                                 .lr_scale = s->lr_scale,
                                                 .first = (int32_t)((s->first + begin) / 16)};
        }
    }
    first[update->segment_count] = index;
}

/** Fills the end of the workspace, in order with the kernels: those that were issued may read an older table there, and
 *  the next ones read this one. A plain cudaMemcpy returns while the bytes may still be under way, and this stream does
 *  not wait for the one it uses. */
static mixt_status make(cudaStream_t stream, entry *e, const mixt__update *update)
{
    size_t segments = (size_t)update->segment_count;
    layout l = layout_of(update->segments, update->segment_count);
    char *host = mixt__alloc(l.bytes);
    char *device = (char *)update->workspace + mixt__update_workspace(update->segments, update->segment_count);
    mixt_status status = MIXT_ERROR_MEMORY;
    e->owner = update->workspace;
    e->segments = mixt__alloc((segments + 1) * sizeof *e->segments);
    e->order = mixt__alloc((segments + 1) * sizeof *e->order);
    if (host && e->segments && e->order) {
        memcpy(e->segments, update->segments, segments * sizeof *e->segments);
        for (size_t i = 0; i < segments; i++)
            e->order[i] = ordered(update, (int64_t)i);
        fill_chunks(update, (mixt__cuda_chunk *)host, (int64_t *)(void *)(host + l.first_at));
        memcpy(host + l.order_at, e->order, segments * sizeof *e->order);
        status = mixt__cuda_check(cudaMemcpyAsync(device, host, l.bytes, cudaMemcpyHostToDevice, stream),
                                  "copying the segment table");
        if (status == MIXT_OK) // `host` ends here
            status = mixt__cuda_check(cudaStreamSynchronize(stream), "copying the segment table");
        e->table = (mixt__cuda_table){.segment_count = update->segment_count,
                                      .chunk_count = (int64_t)l.chunks,
                                      .chunks = (mixt__cuda_chunk *)(void *)device,
                                      .first = (int64_t *)(void *)(device + l.first_at),
                                      .order = (int32_t *)(void *)(device + l.order_at),
                                      .counter = (unsigned *)(void *)(device + l.counter_at)};
    }
    mixt__free(host);
    if (status == MIXT_ERROR_MEMORY)
        status = mixt__fail(status, "no memory for the table of %zu parameters", segments);
    if (status != MIXT_OK)
        drop(e);
    return status;
}

void mixt__cuda_table_forget(mixt__device *device, const void *block, size_t bytes)
{
    mixt__cuda_tables *tables = &mixt__cuda_device_of(device)->tables;
    uintptr_t begin = (uintptr_t)block;
    for (int64_t i = tables->count - 1; i >= 0; i--) {
        uintptr_t owner = (uintptr_t)tables->list[i].owner;
        if (owner < begin || owner >= begin + bytes)
            continue;
        drop(&tables->list[i]);
        tables->list[i] = tables->list[--tables->count];
    }
}

mixt_status mixt__cuda_table_get(mixt__device *device, const mixt__update *update, mixt__cuda_table *table)
{
    cudaStream_t stream = mixt__cuda_device_of(device)->stream;
    mixt__cuda_tables *tables = &mixt__cuda_device_of(device)->tables;
    entry *found = NULL;
    for (int64_t i = 0; i < tables->count && !found; i++)
        if (tables->list[i].owner == update->workspace)
            found = &tables->list[i];
    if (!found || !same(found, update)) {
        enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
        MIXT_TRY(mixt__cuda_check(cudaStreamIsCapturing(stream, &capturing), "asking for a capture"));
        if (capturing != cudaStreamCaptureStatusNone)
            return mixt__fail(MIXT_ERROR_INTERNAL, "a step was recorded before its update ran once");
        if (!found) {
            if (!mixt__grow((void **)&tables->list, &tables->capacity, tables->count, sizeof *tables->list))
                return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a table of parameters");
            found = &tables->list[tables->count++];
            *found = (entry){0};
        }
        drop(found);
        MIXT_TRY(make(stream, found, update));
    }
    *table = found->table;
    return MIXT_OK;
}
