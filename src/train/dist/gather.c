/* Planning when groups of weights are there, and fetching them. */
#include "train/dist/gather.h"

#include "num/num.h"

#include <string.h>

/** The segment of a parameter that a value is, or is a part of; -1: none. */
static int64_t segment_of(const mixt__graph *graph, const mixt__params *p, int32_t value)
{
    const mixt__value *v = &graph->values[mixt__value_base(graph, value)];
    return v->role == MIXT_ROLE_PARAM && v->param < p->count ? p->segment_of[v->param] : -1;
}

/* ---- planning ---- */

/** Marks which segments are read, in which form. */
static void find_forms(mixt__gather *a, const mixt__graph *graph, const mixt__params *p)
{
    for (int64_t s = 0; s < p->segment_count; s++)
        a->full[s] = a->low[s] = -1;
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].in_count; k++) {
            int32_t base = mixt__value_base(graph, graph->nodes[i].in[k]);
            int64_t s = segment_of(graph, p, base);
            if (s >= 0)
                *(graph->values[base].dtype == MIXT_DTYPE_FP32 ? &a->full[s] : &a->low[s]) = 0;
        }
}

/** The form of a format: FP32, or the low ones that have it. */
static int64_t *form_of(const mixt__gather *a, int64_t s, mixt_dtype format)
{
    if (format == MIXT_DTYPE_FP32)
        return &a->full[s];
    return a->params->segments[s].low == format ? &a->low[s] : NULL;
}

/** Elements of a group in a format. @param place whether segments are given their places */
static int64_t form_count(const mixt__gather *a, int64_t group, mixt_dtype format, bool place)
{
    int64_t count = 0;
    for (int64_t s = a->owners->firsts[group]; s < a->owners->firsts[group + 1]; s++) {
        int64_t *form = form_of(a, s, format);
        if (!form || *form < 0)
            continue;
        if (place)
            *form = count;
        count += mixt__params_copy_room(a->params->segments[s].count, format);
    }
    return count;
}

/** Where the elements of a format begin in a group's memory; of MIXT_DTYPE_COUNT: where it ends. */
static size_t form_begin(const mixt__gather *a, int64_t group, int format)
{
    enum { LINE = 64 };
    size_t at = 0;
    for (int d = 0; d < format; d++) {
        size_t bytes = (size_t)form_count(a, group, (mixt_dtype)d, false) * mixt_dtype_size((mixt_dtype)d);
        at += (bytes + LINE - 1) / LINE * LINE;
    }
    return at;
}

static size_t group_bytes(const mixt__gather *a, int64_t group)
{
    return form_begin(a, group, MIXT_DTYPE_COUNT);
}

/** One more node that reads a group. A group is dropped where two others were read since. */
static void read_group(mixt__gather *a, int64_t group, int64_t node)
{
    enum { OTHERS = 2 };
    int64_t others = 0, last = -1;
    for (int64_t i = a->count - 1; i >= 0; i--)
        if (a->stays[i].group == group) {
            last = i;
            break;
        }
    for (int64_t i = last + 1; last >= 0 && i < a->count; i++)
        others += a->stays[i].first > a->stays[last].last;
    if (last >= 0 && others < OTHERS)
        a->stays[last].last = node;
    else
        a->stays[a->count++] = (mixt__stay){.group = group, .first = node, .last = node};
}

static void find_stays(mixt__gather *a, const mixt__graph *graph, const mixt__params *p, const mixt__owners *o)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].in_count && !graph->nodes[i].alias; k++) {
            int64_t s = segment_of(graph, p, graph->nodes[i].in[k]);
            if (s >= 0)
                read_group(a, mixt__owners_group(o, s), i);
        }
    for (int64_t i = 0; i < a->count; i++) // gathered while the one before is read
        a->stays[i].begin = i ? a->stays[i - 1].first : 0;
}

/** The first place that is free from the node on at which it is taken. */
static void place_stay(mixt__gather *a, int64_t index)
{
    mixt__stay *stay = &a->stays[index];
    size_t bytes = group_bytes(a, stay->group);
    for (bool moved = true; moved;) {
        moved = false;
        for (int64_t i = 0; i < index; i++) {
            const mixt__stay *other = &a->stays[i];
            size_t end = other->at + group_bytes(a, other->group);
            if (other->last < stay->begin || end <= stay->at || stay->at + bytes <= other->at)
                continue;
            stay->at = end;
            moved = true;
        }
    }
    a->bytes = stay->at + bytes > a->bytes ? stay->at + bytes : a->bytes;
}

/** How often nodes read parameters: stays are not more. */
static int64_t count_reads(const mixt__graph *graph, const mixt__params *p)
{
    int64_t count = 0;
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].in_count; k++)
            count += segment_of(graph, p, graph->nodes[i].in[k]) >= 0;
    return count;
}

mixt_status mixt__gather_make(mixt__gather *a, const mixt__graph *graph, const mixt__params *p, const mixt__owners *o)
{
    size_t segments = (size_t)p->segment_count + 1;
    mixt__gather_free(a);
    size_t reads = (size_t)count_reads(graph, p) + 1, jobs = reads + (size_t)o->groups;
    a->stays = mixt__alloc(reads * sizeof *a->stays);
    a->full = mixt__alloc(2 * segments * sizeof *a->full);
    a->jobs = mixt__alloc(jobs * sizeof *a->jobs);
    a->fetch_job = mixt__alloc(jobs * sizeof *a->fetch_job);
    a->params = p;
    a->owners = o;
    if (!a->stays || !a->full || !a->jobs || !a->fetch_job) {
        mixt__gather_free(a);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to plan when weights are gathered");
    }
    a->low = a->full + segments;
    a->sum_job = a->fetch_job + reads;
    find_forms(a, graph, p);
    for (int64_t g = 0; g < o->groups; g++)
        for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
            (void)form_count(a, g, (mixt_dtype)d, true);
    find_stays(a, graph, p, o);
    for (int64_t i = 0; i < a->count; i++)
        place_stay(a, i);
    return MIXT_OK;
}

void mixt__gather_free(mixt__gather *a)
{
    mixt__free(a->stays);
    mixt__free(a->full);
    mixt__free(a->jobs);
    mixt__free(a->fetch_job);
    *a = (mixt__gather){0};
}

size_t mixt__gather_host_bytes(const mixt__gather *a)
{
    return a->bytes + (size_t)a->count * sizeof *a->landed;
}

void mixt__gather_place(mixt__gather *a, char *window, char *host)
{
    a->window = window;
    a->host = host ? host : window;
    a->landed = host ? (uint32_t *)(void *)(host + a->bytes) : NULL;
}

size_t mixt__gather_stay_bytes(const mixt__gather *a, int64_t stay)
{
    return group_bytes(a, a->stays[stay].group);
}

bool mixt__gather_shared(const mixt__gather *a, int64_t one, int64_t other)
{
    const mixt__stay *x = &a->stays[one], *y = &a->stays[other];
    return x->at < y->at + mixt__gather_stay_bytes(a, other) && y->at < x->at + mixt__gather_stay_bytes(a, one);
}

void *mixt__gather_address(const void *user, const mixt__value *value, int64_t node)
{
    const mixt__gather *a = user;
    int64_t s = a->params->segment_of[value->param], group = mixt__owners_group(a->owners, s);
    for (int64_t i = 0; i < a->count; i++)
        if (a->stays[i].group == group && a->stays[i].first <= node && node <= a->stays[i].last)
            return a->window + a->stays[i].at + form_begin(a, group, (int)value->dtype) +
                   (size_t)*form_of(a, s, value->dtype) * mixt_dtype_size(value->dtype);
    return NULL; // of a view, which nothing runs
}

/* ---- fetching ---- */

/** Where the element at `at` of the flat arenas, or the next that is read, stands among those of a format. */
static int64_t form_at(const mixt__gather *a, int64_t group, mixt_dtype format, int64_t at)
{
    int64_t end = 0;
    for (int64_t s = a->owners->firsts[group]; s < a->owners->firsts[group + 1]; s++) {
        const mixt__segment *segment = &a->params->segments[s];
        const int64_t *form = form_of(a, s, format);
        if (!form || *form < 0)
            continue;
        int64_t room = mixt__params_copy_room(segment->count, format);
        if (at < segment->offset + room)
            return *form + (at > segment->offset ? at - segment->offset : 0);
        end = *form + room;
    }
    return end;
}

/** Elements that lie one after the other in this rank's masters, and where they go. */
typedef struct run {
    const float *from;
    char *to;
    int64_t count;
    mixt_dtype format;
} run;

static mixt_status put_run(const mixt__gather_means *means, const run *r)
{
    return r->count ? means->put(means->user, r->to, r->from, r->count, r->format) : MIXT_OK;
}

/** This rank's own elements into their places: parameters that stand there as in its masters, and what is between
 *  them, at once. */
static mixt_status put_own(const mixt__gather *a, int64_t group, run *own, const mixt__gather_means *means)
{
    const mixt__params *p = a->params;
    const mixt__param_slice *slice = &p->shard.slices[group];
    int64_t size = (int64_t)mixt_dtype_size(own->format);
    char *begin = own->to;
    for (int64_t s = a->owners->firsts[group]; s < a->owners->firsts[group + 1]; s++) {
        mixt__segment cut = mixt__owners_segment(p, s, slice->begin, slice->begin + slice->count);
        const int64_t *form = form_of(a, s, own->format);
        if (!cut.count || !form || *form < 0)
            continue;
        const float *from = a->own + slice->at + (cut.offset - slice->begin);
        char *to = begin + (*form + cut.offset - p->segments[s].offset) * size;
        if (!own->count || to - own->to != (from - own->from) * size) {
            MIXT_TRY(put_run(means, own));
            *own = (run){from, to, 0, own->format};
        }
        own->count = from - own->from + cut.count;
    }
    return put_run(means, own);
}

mixt_status mixt__gather_fetch(const mixt__gather *a, int64_t stay, int64_t *cuts, const mixt__gather_means *means)
{
    int64_t group = a->stays[stay].group;
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        if (!form_count(a, group, (mixt_dtype)d, false))
            continue;
        char *to = a->host + a->stays[stay].at + form_begin(a, group, d);
        MIXT_TRY(put_own(a, group, &(run){.to = to, .format = (mixt_dtype)d}, means));
        mixt__owners_cuts(a->owners, a->params, group, cuts);
        for (int64_t rank = 0; rank <= a->owners->ranks; rank++)
            cuts[rank] = form_at(a, group, (mixt_dtype)d, cuts[rank]);
        MIXT_TRY(means->spread(means->user, to, cuts, mixt_dtype_size((mixt_dtype)d)));
    }
    return MIXT_OK;
}

static mixt_status put_on_host(void *user, void *to, const float *from, int64_t count, mixt_dtype format)
{
    (void)user;
    if (format == MIXT_DTYPE_FP32)
        memcpy(to, from, (size_t)count * sizeof *from);
    else
        mixt__narrow(format)(to, from, count);
    return MIXT_OK;
}

static mixt_status spread_over_hosts(void *group, void *data, const int64_t *cuts, size_t size)
{
    return mixt__group_gather_parts(group, data, cuts, size);
}

mixt__gather_means mixt__gather_over_hosts(mixt__group *group)
{
    return (mixt__gather_means){.put = put_on_host, .spread = spread_over_hosts, .user = group};
}

int64_t mixt__gather_sent(const mixt__gather *a, int64_t rank)
{
    const mixt__params *p = a->params;
    const mixt__owners *o = a->owners;
    int64_t bytes = 0;
    for (int64_t i = 0; i < a->count; i++)
        for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
            int64_t group = a->stays[i].group;
            int64_t begin = form_at(a, group, (mixt_dtype)d, mixt__owners_cut(o, p, group, rank));
            int64_t end = form_at(a, group, (mixt_dtype)d, mixt__owners_cut(o, p, group, rank + 1));
            bytes += (end - begin) * (int64_t)mixt_dtype_size((mixt_dtype)d) * (o->ranks - 1);
        }
    return bytes;
}

void mixt__gather_list(mixt__gather *a, const mixt__bucket *sums, int64_t count)
{
    int64_t fetched = 0, summed = 0;
    a->next = a->asked = a->job_count = 0;
    while (fetched < a->count || (sums && summed < count)) {
        int64_t ready = fetched < a->count ? a->stays[fetched].begin - 1 : INT64_MAX;
        if (fetched < a->count && (!sums || summed == count || ready <= sums[summed].ready)) {
            a->jobs[a->job_count++] = (mixt__bucket){.ready = ready, .group = -1 - fetched};
            a->fetch_job[fetched++] = a->job_count;
        } else {
            a->jobs[a->job_count++] = sums[summed];
            a->sum_job[summed++] = a->job_count;
        }
    }
}
