/* Liveness over the schedule, in-place takeover, then offsets: largest first, each at the lowest place that is free
 * for its whole life.
 */
#include "passes/memory.h"

#include "graph/op.h"
#include "num/num.h"

#include <stdlib.h>
#include <string.h>

typedef struct block {
    int32_t value; // the activation that owns it
    size_t bytes, offset;
    int64_t first, last; // nodes between which it must stay, inclusive
} block;

typedef struct planner {
    const mixt__graph *graph;
    block *blocks;
    int64_t count;
    int32_t *block_of; // by value id: index of its block, -1: none
    int64_t in_place;
} planner;

size_t mixt__memory_bytes(const mixt__value *v)
{
    size_t bytes = (size_t)mixt__shape_count(&v->shape) * mixt_dtype_size(v->dtype);
    return (bytes + MIXT_MEMORY_ALIGNMENT - 1) / MIXT_MEMORY_ALIGNMENT * MIXT_MEMORY_ALIGNMENT;
}

/** Block of a value's memory, -1 when it is not an activation. */
static int32_t block_of(const planner *p, int32_t value)
{
    return p->block_of[mixt__value_base(p->graph, value)];
}

static void touch_one(planner *p, int32_t value, int64_t node)
{
    int32_t b = block_of(p, value);
    if (b < 0)
        return;
    block *k = &p->blocks[b];
    if (node < k->first)
        k->first = node;
    if (node > k->last)
        k->last = node;
}

/** A pair's scales live as long as its numbers. */
static void touch(planner *p, int32_t value, int64_t node)
{
    int32_t scales = p->graph->values[value].scales.value;
    touch_one(p, value, node);
    if (scales)
        touch_one(p, scales, node);
}

static void find_lives(planner *p)
{
    const mixt__graph *g = p->graph;
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        for (int o = 0; o < n->out_count; o++) {
            int32_t id = n->out[o];
            if (g->values[id].role == MIXT_ROLE_ACTIVATION && !g->values[id].base && p->block_of[id] < 0) {
                p->block_of[id] = (int32_t)p->count;
                p->blocks[p->count++] =
                    (block){.value = id, .bytes = mixt__memory_bytes(&g->values[id]), .first = i, .last = i};
            }
        }
    }
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        for (int o = 0; o < n->out_count; o++)
            touch(p, n->out[o], i);
        for (int k = 0; k < n->in_count; k++)
            touch(p, n->in[k], i);
    }
    for (int32_t v = 1; v < g->value_count; v++)
        if (g->values[v].output || v == g->loss || v == g->metrics)
            touch(p, v, g->node_count);
}

/** Whether output 0 of node i may take over the memory of input k. */
static bool can_take(const planner *p, int64_t i, int k)
{
    const mixt__graph *g = p->graph;
    const mixt__node *n = &g->nodes[i];
    const mixt__value *in = &g->values[n->in[k]], *out = &g->values[n->out[0]];
    int32_t from = block_of(p, n->in[k]), to = block_of(p, n->out[0]);
    if (from < 0 || to < 0 || from == to || out->base || p->blocks[from].last != i || p->blocks[to].first != i)
        return false;
    if (!mixt__shape_equal(&in->shape, &out->shape) || mixt_dtype_size(in->dtype) != mixt_dtype_size(out->dtype))
        return false;
    if (p->blocks[from].bytes != p->blocks[to].bytes || !mixt__value_contiguous(in))
        return false;
    for (int j = 0; j < n->in_count; j++) // another reading of the same memory in another shape would be overwritten
        if (block_of(p, n->in[j]) == from && !mixt__shape_equal(&g->values[n->in[j]].shape, &in->shape))
            return false;
    for (int o = 1; o < n->out_count; o++)
        if (block_of(p, n->out[o]) == from)
            return false;
    return true;
}

/** Redirects the values of block `to` into block `from`. */
static void take(planner *p, int32_t from, int32_t to)
{
    for (int32_t v = 1; v < p->graph->value_count; v++)
        if (p->block_of[v] == to)
            p->block_of[v] = from;
    p->blocks[from].last = p->blocks[to].last;
    p->blocks[to].bytes = 0;
    p->in_place++;
}

/** The input whose memory output 0 of node i takes over; -1: none. */
static int taken_input(const planner *p, int64_t i)
{
    const mixt__node *n = &p->graph->nodes[i];
    for (int k = 0; k < n->in_count && !n->alias; k++)
        if (mixt__bit(n->op->in_place_inputs, k) && can_take(p, i, k))
            return k;
    return -1;
}

static void find_in_place(planner *p)
{
    for (int64_t i = 0; i < p->graph->node_count; i++) {
        const mixt__node *n = &p->graph->nodes[i];
        int k = taken_input(p, i);
        if (k >= 0)
            take(p, block_of(p, n->in[k]), block_of(p, n->out[0]));
    }
}

static int by_size(const void *x, const void *y)
{
    const block *a = *(block *const *)x, *b = *(block *const *)y;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->first < b->first ? -1 : a->first > b->first ? 1 : a->value < b->value ? -1 : 1;
}

static int by_offset(const void *x, const void *y)
{
    const block *a = *(block *const *)x, *b = *(block *const *)y;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/** Lowest offset at which the block overlaps nothing that lives at the same time. */
static void place(block *b, block **placed, int64_t placed_count, block **scratch)
{
    int64_t rivals = 0;
    for (int64_t i = 0; i < placed_count; i++)
        if (placed[i]->first <= b->last && b->first <= placed[i]->last)
            scratch[rivals++] = placed[i];
    qsort(scratch, (size_t)rivals, sizeof *scratch, by_offset);
    size_t offset = 0;
    for (int64_t i = 0; i < rivals && scratch[i]->offset < offset + b->bytes; i++)
        if (scratch[i]->offset + scratch[i]->bytes > offset)
            offset = scratch[i]->offset + scratch[i]->bytes;
    b->offset = offset;
}

static mixt_status place_all(planner *p, mixt__memory_plan *plan)
{
    block **order = mixt__alloc((size_t)(3 * p->count + 1) * sizeof *order);
    if (!order)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the memory plan");
    int64_t live = 0, placed = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (p->blocks[i].bytes)
            order[live++] = &p->blocks[i];
    qsort(order, (size_t)live, sizeof *order, by_size);
    for (int64_t i = 0; i < live; i++) {
        place(order[i], order + p->count, placed, order + 2 * p->count);
        order[p->count + placed++] = order[i];
        size_t end = order[i]->offset + order[i]->bytes;
        if (end > plan->arena_bytes)
            plan->arena_bytes = end;
    }
    mixt__free(order);
    for (int32_t v = 1; v < p->graph->value_count; v++)
        if (p->block_of[v] >= 0)
            plan->offset[v] = p->blocks[p->block_of[v]].offset;
    return MIXT_OK;
}

static mixt_status open_planner(const mixt__graph *graph, planner *p)
{
    size_t values = (size_t)graph->value_count;
    *p = (planner){.graph = graph};
    p->blocks = mixt__alloc(values * sizeof *p->blocks);
    p->block_of = mixt__alloc(values * sizeof *p->block_of);
    if (!p->blocks || !p->block_of)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the memory plan");
    memset(p->block_of, 0xff, values * sizeof *p->block_of);
    find_lives(p);
    return MIXT_OK;
}

static void close_planner(planner *p)
{
    mixt__free(p->blocks);
    mixt__free(p->block_of);
}

mixt_status mixt__memory_loads(const mixt__graph *graph, int64_t from, size_t *loads, bool *taken)
{
    planner p;
    mixt_status status = open_planner(graph, &p);
    memset(loads, 0, (size_t)graph->node_count * sizeof *loads);
    for (int64_t i = 0; status == MIXT_OK && i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        int k = taken_input(&p, i);
        if (k < 0)
            continue;
        int32_t source = block_of(&p, n->in[k]);
        if (p.blocks[source].first < from)
            taken[p.blocks[source].value] = true;
        else
            take(&p, source, block_of(&p, n->out[0]));
    }
    for (int64_t i = 0; status == MIXT_OK && i < p.count; i++)
        for (int64_t t = p.blocks[i].first; t >= from && t <= p.blocks[i].last && t < graph->node_count; t++)
            loads[t] += p.blocks[i].bytes;
    close_planner(&p);
    return status;
}

mixt_status mixt__memory_plan_make(const mixt__graph *graph, mixt__memory_plan *plan)
{
    planner p;
    size_t values = (size_t)graph->value_count;
    *plan = (mixt__memory_plan){.offset = mixt__alloc(values * sizeof *plan->offset)};
    mixt_status status = open_planner(graph, &p);
    if (status == MIXT_OK && !plan->offset)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for the memory plan");
    if (status == MIXT_OK) {
        memset(plan->offset, 0xff, values * sizeof *plan->offset);
        for (int64_t i = 0; i < p.count; i++)
            plan->naive_bytes += p.blocks[i].bytes;
        for (int32_t v = 1; v < graph->value_count; v++)
            if (graph->values[v].role == MIXT_ROLE_SIDE) {
                plan->offset[v] = plan->side_bytes;
                plan->side_bytes += mixt__memory_bytes(&graph->values[v]);
            }
        find_in_place(&p);
        plan->in_place = p.in_place;
        status = place_all(&p, plan);
    }
    close_planner(&p);
    if (status != MIXT_OK)
        mixt__memory_plan_free(plan);
    return status;
}

void mixt__memory_plan_free(mixt__memory_plan *plan)
{
    mixt__free(plan->offset);
    plan->offset = NULL;
}
