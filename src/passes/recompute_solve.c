/* The cheapest set of units to compute again within a budget: exact, by dynamic programming with bounds.
 *
 * Units are decided from the last to the first, keep or again. All readers of a unit are then decided already, so it is
 * known when its values are needed, and what a decision costs and holds in memory is final. Two partial decisions are
 * alike when what is left to decide cannot tell them apart: the same needs of undecided values and the same loads at
 * times that are still open. A time is closed when every undecided value that will be kept lives there and nothing that
 * will be computed again does; of all closed times only the worst load counts. Among alike decisions one with a lower
 * load and lower cost beats the others. A network is cut by this where few values cross from block to block: behind
 * such a place all decisions about the later blocks are alike but for load and cost.
 *
 * Bounds: values still undecided must fit beside the worst closed load; the cheapest way to free enough of them, taken
 * in parts, is what a partial decision costs at least. A first pass that follows only the most promising decisions
 * gives an upper bound, beyond which the second does not look.
 */
#include "passes/recompute_search.h"

#include <math.h>
#include <string.h>

enum {
    BEAM = 256,   // partial decisions followed at once in the first pass
    WIDTH = 8192, // and in the second: about a second's work for some hundred units
};

typedef struct decision {
    int32_t before; // -1: none
    bool again;
} decision;

/** What is left to decide at a stage: units 0 … unit-1. */
typedef struct stage {
    int64_t unit;
    int64_t early;      // times up to here are open
    int64_t late;       // times from here on are, by the graph's own readers
    int64_t bytes;      // of all values with late readers
    int64_t freed;      // entries of the two below
    int64_t *sum_bytes; // units by cost of a byte: bytes freed by the first 0, 1, 2, …
    double *sum_cost;
} stage;

typedef struct search {
    const mixt__recompute_problem *problem;
    int64_t budget, width;
    double best; // cost that must be beaten
    bool quick;  // the first pass alone
    mixt__recompute_states now, next;
    decision *decisions;
    int64_t decision_count, decision_capacity;
    double *price;     // by unit: what freeing its values costs at least
    int32_t *readers;  // by unit: how often its values are read by units
    int32_t *by_price; // units that may be computed again and free memory, cheapest bytes first
    int64_t priced;
    stage stage;
    // the state at hand, spread out
    int64_t *load;         // by time
    int64_t *first, *last; // by value: needs of undecided values by decided units; first INT64_MAX: none
    int32_t *needed;       // values with such needs
    int64_t needed_count;
    int64_t early_from, early_to; // times with loads: up to but without the second
    int64_t late_from, late_to;
    int64_t looked, dropped;
    double dropped_bound;
} search;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to choose what is computed again");
}

/* ---- bounds ---- */

static int64_t late_bytes(const mixt__recompute_problem *p, const mixt__recompute_unit *u)
{
    int64_t bytes = 0;
    for (int32_t v = u->first; v < u->first + u->count; v++)
        bytes += p->values[v].last_late >= 0 ? (int64_t)p->values[v].bytes : 0;
    return bytes;
}

/** Fills in what is left to decide when units below `unit` are open. */
static void set_stage(search *s, int64_t unit)
{
    const mixt__recompute_problem *p = s->problem;
    stage *g = &s->stage;
    g->unit = unit;
    g->early = -1;
    g->late = p->times;
    g->bytes = g->freed = 0;
    g->sum_bytes[0] = 0;
    g->sum_cost[0] = 0;
    for (int64_t v = 0; v < p->value_count && p->values[v].unit < unit; v++) {
        const mixt__recompute_value *value = &p->values[v];
        g->early = value->last_early > g->early ? value->last_early : g->early;
        g->late = value->first_late < g->late ? value->first_late : g->late;
        g->bytes += value->last_late >= 0 ? (int64_t)value->bytes : 0;
    }
    for (int64_t i = 0; i < s->priced; i++) {
        if (s->by_price[i] >= unit)
            continue;
        const mixt__recompute_unit *u = &p->units[s->by_price[i]];
        g->sum_bytes[g->freed + 1] = g->sum_bytes[g->freed] + late_bytes(p, u);
        g->sum_cost[g->freed + 1] = g->sum_cost[g->freed] + s->price[s->by_price[i]];
        g->freed++;
    }
}

/** The least that freeing enough of the undecided values costs beside a closed load; infinite: it cannot be done. */
static double least_cost(const search *s, int64_t closed)
{
    const stage *g = &s->stage;
    int64_t excess = g->bytes - (s->budget - closed), low = 0, high = g->freed;
    if (excess <= 0)
        return 0;
    if (g->sum_bytes[high] < excess)
        return INFINITY;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (g->sum_bytes[middle] < excess)
            low = middle;
        else
            high = middle;
    }
    double part = (double)(excess - g->sum_bytes[low]) / (double)(g->sum_bytes[high] - g->sum_bytes[low]);
    return g->sum_cost[low] + part * (g->sum_cost[high] - g->sum_cost[low]);
}

/** Bytes that unit u reads of a unit that nobody else needs: no late reader, no other unit; 0: others need it. */
static int64_t own_bytes(const search *s, const mixt__recompute_unit *u, const mixt__recompute_unit *maker)
{
    const mixt__recompute_problem *p = s->problem;
    int64_t bytes = 0, reads = 0;
    for (int32_t k = 0; k < u->in_count; k++)
        if (p->values[u->in[k]].unit == maker - p->units) {
            bytes += (int64_t)p->values[u->in[k]].bytes;
            reads++;
        }
    return late_bytes(p, maker) || s->readers[maker - p->units] != reads ? 0 : bytes;
}

/** Whether input k of a unit is the first one that this maker makes. */
static bool first_of_maker(const mixt__recompute_problem *p, const mixt__recompute_unit *u, int32_t k)
{
    for (int32_t j = 0; j < k; j++)
        if (p->values[u->in[j]].unit == p->values[u->in[k]].unit)
            return false;
    return true;
}

/** What freeing a unit's values costs at least: its own seconds, and those of units whose only use is to be read by it
 *  and which hold no less memory than it frees: to keep those instead would free nothing. */
static void find_prices(search *s)
{
    const mixt__recompute_problem *p = s->problem;
    for (int64_t i = 0; i < p->unit_count; i++)
        for (int32_t k = 0; k < p->units[i].in_count; k++)
            s->readers[p->values[p->units[i].in[k]].unit]++;
    for (int64_t i = 0; i < p->unit_count; i++) {
        const mixt__recompute_unit *u = &p->units[i];
        int64_t freed = late_bytes(p, u);
        s->price[i] = u->may ? u->seconds : INFINITY;
        for (int32_t k = 0; k < u->in_count && freed; k++) {
            int32_t maker = p->values[u->in[k]].unit;
            if (first_of_maker(p, u, k) && own_bytes(s, u, &p->units[maker]) >= freed)
                s->price[i] += s->price[maker];
        }
    }
}

static void sort_by_price(search *s)
{
    const mixt__recompute_problem *p = s->problem;
    for (int32_t u = 0; u < p->unit_count; u++) {
        int64_t bytes = late_bytes(p, &p->units[u]), at = s->priced;
        if (!(s->price[u] < INFINITY) || !bytes)
            continue;
        double price = s->price[u] / (double)bytes;
        for (; at > 0; at--) { // insertion: units are hundreds
            int32_t other = s->by_price[at - 1];
            if (s->price[other] / (double)late_bytes(p, &p->units[other]) <= price)
                break;
            s->by_price[at] = s->by_price[at - 1];
        }
        s->by_price[at] = u;
        s->priced++;
    }
}

/* ---- a state, spread out and packed ---- */

static void add_need(search *s, int32_t value, int64_t first, int64_t last)
{
    if (s->first[value] == INT64_MAX) {
        int64_t at = s->needed_count++;
        for (; at > 0 && s->needed[at - 1] > value; at--) // sorted: alike states have the same key
            s->needed[at] = s->needed[at - 1];
        s->needed[at] = value;
    }
    s->first[value] = first < s->first[value] ? first : s->first[value];
    s->last[value] = last > s->last[value] ? last : s->last[value];
}

/** Adds to the loads of open times; false when one exceeds the budget. */
static bool add_load(search *s, int64_t from, int64_t to, int64_t bytes)
{
    bool fits = true;
    for (int64_t t = from; t <= to; t++) {
        s->load[t] += bytes;
        fits &= s->load[t] + (int64_t)s->problem->base[t] <= s->budget;
    }
    return fits;
}

/* A key: number of needs, (value, first, last) each; where early loads begin, how many; where late loads begin, how
 * many; the loads. */

static void spread(search *s, const mixt__recompute_state *x)
{
    const int64_t *key = s->now.pool + x->key;
    int64_t needs = *key++;
    for (int64_t i = 0; i < needs; i++, key += 3)
        add_need(s, (int32_t)key[0], key[1], key[2]);
    s->early_from = key[0];
    s->early_to = key[0] + key[1];
    s->late_from = key[2];
    s->late_to = key[2] + key[3];
    memcpy(s->load + s->early_from, key + 4, (size_t)key[1] * sizeof *key);
    memcpy(s->load + s->late_from, key + 4 + key[1], (size_t)key[3] * sizeof *key);
}

static void clear(search *s)
{
    if (s->early_to > s->early_from)
        memset(s->load + s->early_from, 0, (size_t)(s->early_to - s->early_from) * sizeof *s->load);
    memset(s->load + s->late_from, 0, (size_t)(s->late_to - s->late_from) * sizeof *s->load);
    for (int64_t i = 0; i < s->needed_count; i++) {
        s->first[s->needed[i]] = INT64_MAX;
        s->last[s->needed[i]] = -1;
    }
    s->needed_count = 0;
}

static bool grow_pool(mixt__recompute_states *list, int64_t more)
{
    while (list->pool_count + more > list->pool_capacity) {
        int64_t capacity = 2 * list->pool_capacity + 1024;
        int64_t *larger = mixt__realloc(list->pool, (size_t)capacity * sizeof *larger);
        if (!larger)
            return false;
        list->pool = larger;
        list->pool_capacity = capacity;
    }
    return true;
}

static uint64_t hash_of(const int64_t *key, int64_t count)
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < count; i++) {
        h = (h ^ (uint64_t)key[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

/** Whether decided units need a value earlier or longer than the graph's own readers. */
static bool adds_need(const search *s, int32_t v)
{
    return s->first[v] < s->problem->values[v].first_late || s->last[v] > s->problem->values[v].last_late;
}

/** Writes the key of the state at hand; needs of the unit just decided are left out. */
static bool pack(search *s, mixt__recompute_state *x, int64_t early_from, int64_t late, int64_t late_to)
{
    const stage *g = &s->stage;
    int64_t early_count = g->early >= early_from ? g->early - early_from + 1 : 0, late_count = late_to - late;
    if (!grow_pool(&s->next, 5 + 3 * s->needed_count + early_count + late_count))
        return false;
    int64_t *begin = s->next.pool + s->next.pool_count, *key = begin + 1;
    for (int64_t i = 0; i < s->needed_count; i++) {
        int32_t v = s->needed[i];
        if (s->problem->values[v].unit >= g->unit || !adds_need(s, v))
            continue;
        *key++ = v;
        *key++ = s->first[v];
        *key++ = s->last[v];
    }
    *begin = (key - begin - 1) / 3;
    *key++ = early_from;
    *key++ = early_count;
    *key++ = late;
    *key++ = late_count;
    memcpy(key, s->load + early_from, (size_t)early_count * sizeof *key);
    memcpy(key + early_count, s->load + late, (size_t)late_count * sizeof *key);
    x->key = s->next.pool_count;
    x->key_count = (int32_t)(key + early_count + late_count - begin);
    x->hash = hash_of(begin, x->key_count);
    s->next.pool_count += x->key_count;
    return true;
}

/** Takes the times [from, to] into the worst closed load. */
static void close_times(const search *s, int64_t from, int64_t to, int64_t *closed)
{
    for (int64_t t = from; t <= to; t++) {
        int64_t load = s->load[t] + (int64_t)s->problem->base[t];
        *closed = load > *closed ? load : *closed;
    }
}

/** Puts the state at hand on the list of the next stage, unless it cannot lead to anything better. */
static bool put(search *s, mixt__recompute_state x, int64_t early_before)
{
    const stage *g = &s->stage;
    int64_t late = g->late, late_to = s->late_to, early_from = s->early_from;
    for (int64_t i = 0; i < s->needed_count; i++)
        if (s->problem->values[s->needed[i]].unit < g->unit && s->first[s->needed[i]] < late)
            late = s->first[s->needed[i]];
    close_times(s, g->early + 1, early_before, &x.closed);
    close_times(s, s->late_from, late - 1, &x.closed);
    if (x.closed > s->budget)
        return true;
    x.bound = x.cost + least_cost(s, x.closed);
    if (!(x.bound < s->best))
        return true;
    while (late_to > late && !s->load[late_to - 1])
        late_to--;
    while (early_from <= g->early && !s->load[early_from])
        early_from++;
    early_from = early_from > g->early + 1 ? g->early + 1 : early_from;
    late_to = late_to < late ? late : late_to;
    if (!pack(s, &x, early_from, late, late_to) ||
        !mixt__grow((void **)&s->next.list, &s->next.capacity, s->next.count, sizeof x))
        return false;
    s->next.list[s->next.count++] = x;
    return true;
}

/* ---- decisions ---- */

/** When the values of the unit at hand are needed first; INT64_MAX: never. */
static int64_t first_need(const search *s, const mixt__recompute_unit *u)
{
    int64_t when = INT64_MAX;
    for (int32_t v = u->first; v < u->first + u->count; v++) {
        int64_t own = s->problem->values[v].first_late;
        when = own < when ? own : when;
        when = s->first[v] < when ? s->first[v] : when;
    }
    return when;
}

static int64_t last_need(const search *s, int32_t v)
{
    int64_t own = s->problem->values[v].last_late;
    return s->last[v] > own ? s->last[v] : own;
}

/** Loads of open times reach as far as what was just decided. */
static void extend(search *s, int64_t to)
{
    s->late_to = to + 1 > s->late_to ? to + 1 : s->late_to;
}

static bool keep(search *s, const mixt__recompute_unit *u, int64_t early_before, mixt__recompute_state *x)
{
    bool fits = true;
    for (int32_t v = u->first; v < u->first + u->count; v++) {
        const mixt__recompute_value *value = &s->problem->values[v];
        int64_t last = last_need(s, v), from = value->last_early + 1;
        if (last < 0)
            continue;
        last = mixt__recompute_end(value, last);
        fits &= add_load(s, from, early_before, (int64_t)value->bytes);
        fits &= add_load(s, s->late_from, last, (int64_t)value->bytes);
        s->early_from = from < s->early_from ? from : s->early_from;
        s->early_to = early_before + 1;
        extend(s, last);
        x->closed += (int64_t)value->bytes;
    }
    return fits && x->closed <= s->budget;
}

static bool run_again(search *s, const mixt__recompute_unit *u, int64_t when, mixt__recompute_state *x)
{
    bool fits = true;
    x->cost += u->seconds;
    for (int32_t v = u->first; v < u->first + u->count; v++) {
        int64_t last = last_need(s, v);
        last = last < 0 ? when : mixt__recompute_end(&s->problem->values[v], last);
        fits &= add_load(s, when, last, (int64_t)s->problem->values[v].bytes);
        extend(s, last);
    }
    for (int32_t k = 0; k < u->in_count; k++)
        add_need(s, u->in[k], when, when);
    return fits;
}

/** Decides unit stage.unit for one state, one way. */
static bool decide(search *s, int64_t index, bool again, int64_t early_before)
{
    const mixt__recompute_unit *u = &s->problem->units[s->stage.unit];
    mixt__recompute_state x = s->now.list[index];
    int32_t before = x.link;
    clear(s);
    spread(s, &x);
    int64_t when = first_need(s, u);
    bool needed = when != INT64_MAX;
    if (again && (!needed || !u->may))
        return true;
    if (needed && !(again ? run_again(s, u, when, &x) : keep(s, u, early_before, &x)))
        return true;
    if (!mixt__grow((void **)&s->decisions, &s->decision_capacity, s->decision_count, sizeof *s->decisions))
        return false;
    x.link = (int32_t)s->decision_count;
    int64_t count = s->next.count;
    if (!put(s, x, early_before))
        return false;
    if (s->next.count > count)
        s->decisions[s->decision_count++] = (decision){.before = before, .again = again};
    return true;
}

/* ---- a pass over all units ---- */

static bool run_pass(search *s)
{
    const mixt__recompute_problem *p = s->problem;
    s->now.count = s->next.count = s->next.pool_count = s->decision_count = 0;
    clear(s);
    set_stage(s, p->unit_count);
    s->early_from = s->early_to = s->stage.early + 1;
    s->late_from = s->late_to = p->late;
    if (!put(s, (mixt__recompute_state){.link = -1}, p->late - 1))
        return false;
    for (int64_t i = p->unit_count - 1; i >= 0; i--) {
        mixt__recompute_states done = s->now;
        s->now = s->next;
        s->next = done;
        s->next.count = s->next.pool_count = 0;
        int64_t early_before = s->stage.early;
        set_stage(s, i);
        for (int64_t k = 0; k < s->now.count; k++)
            if (!decide(s, k, false, early_before) || !decide(s, k, true, early_before))
                return false;
        s->looked += s->next.count;
        mixt__recompute_thin(&s->next, s->width, &s->dropped, &s->dropped_bound);
    }
    return true;
}

/** The best state at the end of a pass; NULL: none. */
static const mixt__recompute_state *best_of(const search *s)
{
    const mixt__recompute_state *best = NULL;
    for (int64_t i = 0; i < s->next.count; i++)
        if (!best || mixt__recompute_by_bound(&s->next.list[i], best) < 0)
            best = &s->next.list[i];
    return best;
}

/** Takes over the end of a pass where it is better than what was known. */
static void take_best(search *s, bool *again, mixt__recompute_answer *answer)
{
    const mixt__recompute_state *x = best_of(s);
    if (!x)
        return;
    answer->found = true;
    answer->seconds = x->cost;
    answer->peak = (size_t)x->closed;
    int32_t link = x->link;
    for (int64_t u = 0; u < s->problem->unit_count; u++) { // the newest decision is about the first unit
        again[u] = s->decisions[link].again;
        link = s->decisions[link].before;
    }
}

static mixt_status search_all(search *s, bool *again, mixt__recompute_answer *answer)
{
    s->width = BEAM;
    bool enough = run_pass(s);
    if (enough)
        take_best(s, again, answer);
    if (enough && s->dropped && !s->quick) { // else the first pass has seen everything
        s->dropped = 0;
        s->dropped_bound = INFINITY;
        s->width = WIDTH;
        s->best = answer->found ? answer->seconds : INFINITY;
        enough = run_pass(s);
        if (enough)
            take_best(s, again, answer);
    }
    answer->lower = s->dropped_bound < answer->seconds ? s->dropped_bound : answer->seconds;
    answer->states = s->looked;
    answer->dropped = s->dropped;
    return enough ? MIXT_OK : no_memory();
}

static bool open_search(search *s, const mixt__recompute_problem *p)
{
    size_t units = (size_t)p->unit_count + 1, values = (size_t)p->value_count + 1, times = (size_t)p->times + 1;
    s->problem = p;
    s->best = s->dropped_bound = INFINITY;
    s->price = mixt__alloc(units * sizeof *s->price);
    s->readers = mixt__alloc(units * sizeof *s->readers);
    s->by_price = mixt__alloc(units * sizeof *s->by_price);
    s->stage.sum_bytes = mixt__alloc(units * sizeof *s->stage.sum_bytes);
    s->stage.sum_cost = mixt__alloc(units * sizeof *s->stage.sum_cost);
    s->load = mixt__alloc(times * sizeof *s->load);
    s->first = mixt__alloc(values * sizeof *s->first);
    s->last = mixt__alloc(values * sizeof *s->last);
    s->needed = mixt__alloc(values * sizeof *s->needed);
    if (!s->price || !s->readers || !s->by_price || !s->stage.sum_bytes || !s->stage.sum_cost || !s->load ||
        !s->first || !s->last || !s->needed)
        return false;
    for (int64_t v = 0; v < p->value_count; v++) {
        s->first[v] = INT64_MAX;
        s->last[v] = -1;
    }
    find_prices(s);
    sort_by_price(s);
    return true;
}

static void close_search(search *s)
{
    mixt__free(s->price);
    mixt__free(s->readers);
    mixt__free(s->by_price);
    mixt__free(s->stage.sum_bytes);
    mixt__free(s->stage.sum_cost);
    mixt__free(s->load);
    mixt__free(s->first);
    mixt__free(s->last);
    mixt__free(s->needed);
    mixt__free(s->now.list);
    mixt__free(s->now.pool);
    mixt__free(s->next.list);
    mixt__free(s->next.pool);
    mixt__free(s->decisions);
}

mixt_status mixt__recompute_solve(const mixt__recompute_problem *p, size_t budget, bool quick, bool *again,
                                  mixt__recompute_answer *answer)
{
    search s = {.budget = budget < INT64_MAX / 4 ? (int64_t)budget : INT64_MAX / 4, .quick = quick};
    *answer = (mixt__recompute_answer){0};
    mixt_status status = open_search(&s, p) ? search_all(&s, again, answer) : no_memory();
    close_search(&s);
    return status;
}
