/* Blocks of memory, each larger than what it is taken for; what is left of one when the next begins is lost. */
#include "template/heap.h"

#include "base/alloc.h"

#include <string.h>

enum { BLOCK = 64 << 10 };

struct mixt__tpl_block {
    struct mixt__tpl_block *before;
    _Alignas(16) char bytes[];
};

static mixt_status add_block(mixt__tpl_heap *heap, size_t bytes)
{
    size_t size = bytes > BLOCK / 4 ? bytes : BLOCK;
    if (size > heap->most - heap->held)
        return mixt__fail(MIXT_ERROR_DATA, "the template needs more than %zu MiB of memory", heap->most >> 20);
    struct mixt__tpl_block *block = mixt__alloc_uninit(sizeof *block + size);
    if (!block)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to render a template");
    block->before = heap->newest;
    heap->newest = block;
    heap->at = block->bytes;
    heap->end = block->bytes + size;
    heap->held += size;
    return MIXT_OK;
}

mixt_status mixt__tpl_take_text(mixt__tpl_heap *heap, size_t bytes, char **text)
{
    if (!heap->newest || bytes > (size_t)(heap->end - heap->at))
        MIXT_TRY(add_block(heap, bytes));
    *text = heap->at;
    heap->at += bytes;
    return MIXT_OK;
}

mixt_status mixt__tpl_take(mixt__tpl_heap *heap, size_t bytes, void **object)
{
    enum { ALIGN = 16 };
    size_t past = (size_t)(-(uintptr_t)heap->at) % ALIGN;
    if (heap->newest && past <= (size_t)(heap->end - heap->at))
        heap->at += past;
    else
        heap->at = heap->end; // a new block is aligned
    char *bytes_at;
    MIXT_TRY(mixt__tpl_take_text(heap, bytes, &bytes_at));
    *object = memset(bytes_at, 0, bytes);
    return MIXT_OK;
}

bool mixt__tpl_grow_text(mixt__tpl_heap *heap, const char *end, size_t more)
{
    if (!heap->newest || end != heap->at || more > (size_t)(heap->end - heap->at))
        return false;
    heap->at += more;
    return true;
}

void mixt__tpl_heap_free(mixt__tpl_heap *heap)
{
    for (struct mixt__tpl_block *block = heap->newest, *before; block; block = before) {
        before = block->before;
        mixt__free(block);
    }
    *heap = (mixt__tpl_heap){.most = heap->most};
}
