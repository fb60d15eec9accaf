/* Which partial decisions need not be followed: those that another one beats, whatever is decided later. */
#include "passes/recompute_search.h"

#include <stdlib.h>
#include <string.h>

enum { NEIGHBOURS = 32 }; // that a state is held against

static int by_key(const void *a, const void *b)
{
    const mixt__recompute_state *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->closed != y->closed)
        return x->closed < y->closed ? -1 : 1;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return x->link < y->link ? -1 : 1;
}

int mixt__recompute_by_bound(const void *a, const void *b)
{
    const mixt__recompute_state *x = a, *y = b;
    if (x->bound != y->bound)
        return x->bound < y->bound ? -1 : 1;
    if (x->closed != y->closed)
        return x->closed < y->closed ? -1 : 1;
    return x->link < y->link ? -1 : 1;
}

/** Whether x needs the same undecided values as y from the same times on, and none for longer. (One that is needed
 *  later is not better: made again there, it needs its own inputs there.) */
static bool needs_within(const int64_t *x, const int64_t *y)
{
    bool within = *x == *y;
    const int64_t *a = x + 1, *b = y + 1;
    for (int64_t i = 0; within && i < *x; i++, a += 3, b += 3)
        within = a[0] == b[0] && a[1] == b[1] && a[2] <= b[2];
    return within;
}

/** Whether loads x (from which time, how many, the loads) are at no time above loads y. */
static bool loads_within(int64_t from_x, int64_t count_x, const int64_t *x, int64_t from_y, int64_t count_y,
                         const int64_t *y)
{
    for (int64_t i = 0; i < count_x; i++) {
        int64_t at = from_x + i - from_y;
        if (x[i] > (at >= 0 && at < count_y ? y[at] : 0))
            return false;
    }
    return true;
}

/** Whether whatever completes y completes x at no higher load and cost. */
static bool beats(const mixt__recompute_states *n, const mixt__recompute_state *x, const mixt__recompute_state *y)
{
    if (x->closed > y->closed || x->cost > y->cost)
        return false;
    const int64_t *a = n->pool + x->key, *b = n->pool + y->key;
    if (!needs_within(a, b))
        return false;
    a += 1 + 3 * a[0];
    b += 1 + 3 * b[0];
    return loads_within(a[0], a[1], a + 4, b[0], b[1], b + 4) &&
           loads_within(a[2], a[3], a + 4 + a[1], b[2], b[3], b + 4 + b[1]);
}

static int by_load(const void *a, const void *b)
{
    const mixt__recompute_state *x = a, *y = b;
    if (x->closed != y->closed)
        return x->closed < y->closed ? -1 : 1;
    return mixt__recompute_by_bound(a, b);
}

/** Leaves out states that another one beats, as far as a few neighbours tell. */
static void thin_by_neighbours(mixt__recompute_states *n)
{
    int64_t kept = 0;
    qsort(n->list, (size_t)n->count, sizeof *n->list, by_load);
    for (int64_t i = 0; i < n->count; i++) {
        bool beaten = false;
        for (int64_t k = kept - 1; k >= 0 && k >= kept - NEIGHBOURS && !beaten; k--)
            beaten = beats(n, &n->list[k], &n->list[i]);
        if (!beaten)
            n->list[kept++] = n->list[i];
    }
    n->count = kept;
}

/** Leaves out states that another one with the same key beats. */
static void thin_by_key(mixt__recompute_states *n)
{
    int64_t kept = 0;
    qsort(n->list, (size_t)n->count, sizeof *n->list, by_key);
    for (int64_t i = 0; i < n->count; i++) {
        const mixt__recompute_state *x = &n->list[i], *last = kept ? &n->list[kept - 1] : NULL;
        bool alike = last && last->hash == x->hash && last->key_count == x->key_count &&
                     !memcmp(n->pool + last->key, n->pool + x->key, (size_t)x->key_count * sizeof *n->pool);
        if (!alike || x->cost < last->cost)
            n->list[kept++] = *x;
    }
    n->count = kept;
}

void mixt__recompute_thin(mixt__recompute_states *n, int64_t width, int64_t *dropped, double *dropped_bound)
{
    if (!n->count) // then there may be no list
        return;
    thin_by_key(n);
    thin_by_neighbours(n);
    if (n->count <= width)
        return;
    qsort(n->list, (size_t)n->count, sizeof *n->list, mixt__recompute_by_bound);
    int64_t half = width / 2; // the other half for those that take least: a cheap state may have no room left
    qsort(n->list + half, (size_t)(n->count - half), sizeof *n->list, by_load);
    *dropped += n->count - width;
    for (int64_t i = width; i < n->count; i++)
        if (n->list[i].bound < *dropped_bound)
            *dropped_bound = n->list[i].bound;
    n->count = width;
}
