/* Counted, aligned allocation and the bump arena. A 64-byte header before each block keeps its size and its account. */
#include "base/alloc.h"

#include "base/account.h"
#include "base/env.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, ARENA_FIRST = 2 * 1024, ARENA_BLOCK = 64 * 1024, HUGE_PAGE = 2 * 1024 * 1024 };

static int64_t alloc_count;
static size_t alloc_bytes;

typedef struct block_header {
    size_t bytes;
    mixt__account *account; // NULL: on none
} block_header;

static block_header *header_of(void *block)
{
    return (block_header *)((char *)block - ALIGNMENT);
}

/** True when MIXT_FAIL_ALLOC names this allocation. */
static bool must_fail(int64_t number)
{
    static int64_t target = -1;
    if (target < 0)
        target = strtoll(mixt__env_get(MIXT_ENV_FAIL_ALLOC), NULL, 10);
    return target > 0 && number == target;
}

void *mixt__alloc_uninit(size_t bytes)
{
    int64_t number = __atomic_add_fetch(&alloc_count, 1, __ATOMIC_RELAXED);
    if (must_fail(number) || bytes > SIZE_MAX - 2 * ALIGNMENT)
        return NULL;
    size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + ALIGNMENT;
    bool large = rounded >= 2 * (size_t)HUGE_PAGE; // an arena: huge pages save address translation
    char *base = large ? aligned_alloc(HUGE_PAGE, (rounded + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE)
                       : aligned_alloc(ALIGNMENT, rounded);
    if (!base)
        return NULL;
    if (large)
        madvise(base, rounded, MADV_HUGEPAGE); // a wish: without it everything works the same
    *(block_header *)base = (block_header){bytes, mixt__account_add(bytes)};
    __atomic_add_fetch(&alloc_bytes, bytes, __ATOMIC_RELAXED);
    return base + ALIGNMENT;
}

void *mixt__alloc(size_t bytes)
{
    void *block = mixt__alloc_uninit(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *mixt__realloc(void *block, size_t bytes)
{
    void *next = mixt__alloc_uninit(bytes);
    if (!next || !block)
        return next;
    size_t old = header_of(block)->bytes;
    memcpy(next, block, old < bytes ? old : bytes);
    mixt__free(block);
    return next;
}

/* ---- memory that something else may still write to ---- */

enum { HELD_MAX = 256 };

static const void *held[HELD_MAX];
static int held_count; // more than there is room for: nothing is freed any more

void mixt__alloc_hold(const void *address)
{
    int at = __atomic_fetch_add(&held_count, 1, __ATOMIC_RELAXED);
    if (at < HELD_MAX)
        __atomic_store_n(&held[at], address, __ATOMIC_RELEASE);
}

bool mixt__alloc_holds(void)
{
    return __atomic_load_n(&held_count, __ATOMIC_RELAXED) > 0;
}

static bool is_held(const char *block, size_t bytes)
{
    int count = __atomic_load_n(&held_count, __ATOMIC_RELAXED);
    for (int i = 0; i < count && i < HELD_MAX; i++) {
        const char *address = __atomic_load_n(&held[i], __ATOMIC_ACQUIRE);
        if (address >= block && address < block + bytes)
            return true;
    }
    return count > HELD_MAX;
}

void mixt__free(void *block)
{
    if (!block)
        return;
    block_header *header = header_of(block);
    __atomic_sub_fetch(&alloc_bytes, header->bytes, __ATOMIC_RELAXED);
    mixt__account_remove(header->account, header->bytes);
    if (!is_held(block, header->bytes))
        free(header);
}

size_t mixt__alloc_size(const void *block)
{
    return block ? header_of((void *)(uintptr_t)block)->bytes : 0;
}

char *mixt__strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = mixt__alloc_uninit(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int64_t mixt__alloc_count(void)
{
    return __atomic_load_n(&alloc_count, __ATOMIC_RELAXED);
}

size_t mixt__alloc_bytes(void)
{
    return __atomic_load_n(&alloc_bytes, __ATOMIC_RELAXED);
}

struct mixt__arena_block {
    struct mixt__arena_block *previous;
    size_t used, size;
    _Alignas(16) char bytes[];
};

void *mixt__arena_alloc(mixt__arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    struct mixt__arena_block *block = arena->newest;
    if (!block || block->size - block->used < bytes) {
        size_t size = block ? 2 * block->size : ARENA_FIRST; // small things, as policies, have arenas too
        size = size > ARENA_BLOCK ? ARENA_BLOCK : size;
        size = bytes > size ? bytes : size;
        block = mixt__alloc(sizeof *block + size);
        if (!block) {
            arena->short_of_memory = true;
            return NULL;
        }
        block->size = size;
        block->previous = arena->newest;
        arena->newest = block;
    }
    void *result = block->bytes + block->used;
    block->used += bytes;
    return result;
}

char *mixt__arena_strdup(mixt__arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = mixt__arena_alloc(arena, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static char *print(mixt__arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : mixt__arena_alloc(arena, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *mixt__arena_printf(mixt__arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = print(arena, format, args);
    va_end(args);
    return text;
}

const char *mixt__arena_text(mixt__arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = print(arena, format, args);
    va_end(args);
    return text ? text : "";
}

void mixt__arena_free(mixt__arena *arena)
{
    for (struct mixt__arena_block *block = arena->newest; block;) {
        struct mixt__arena_block *previous = block->previous;
        mixt__free(block);
        block = previous;
    }
    arena->newest = NULL;
}

bool mixt__grow(void **array, int64_t *capacity, int64_t count, size_t element_size)
{
    if (count < *capacity)
        return true;
    int64_t next = *capacity ? *capacity * 2 : 16;
    void *bigger = mixt__alloc((size_t)next * element_size);
    if (!bigger)
        return false;
    if (count)
        memcpy(bigger, *array, (size_t)count * element_size);
    mixt__free(*array);
    *array = bigger;
    *capacity = next;
    return true;
}
