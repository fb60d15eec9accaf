/* Moments in codes of blocks: which parameters have them, where they lie, what they mean.
 *
 * Small parameters stay in FP32: a few numbers that share a scale with none like them, norms and biases among them, and
 * nothing is gained. Tables that are only looked up do as well: a row that is rarely read has moments far below those
 * of its neighbours in a block, which would be rounded away.
 */
#include "runtime/codes.h"

#include "base/status.h"
#include "num/blocks.h"

#include <string.h>

enum { LEAST = 4096, LINE = 64 };

/* ---- which ---- */

static bool reads(const mixt__node *node, const mixt__param *param)
{
    for (int i = 0; i < node->in_count; i++) {
        bool same = param->value && node->in[i] == param->value;
        for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
            same = same || (param->low[d] && node->in[i] == param->low[d]);
        if (same)
            return true;
    }
    return false;
}

/** Whether nothing but lookups of rows reads a parameter. */
static bool is_table(const mixt__graph *graph, const mixt__param *param)
{
    int64_t lookups = 0;
    for (int64_t n = 0; n < graph->node_count; n++)
        if (reads(&graph->nodes[n], param)) {
            if (strcmp(graph->nodes[n].op->name, "embedding"))
                return false;
            lookups++;
        }
    return lookups > 0;
}

/** How many elements a segment takes in a space. */
static int64_t room_of(const mixt__segment *s, int space)
{
    if (space == MIXT_SPACE_SCALES)
        return s->coded ? ((s->count + MIXT_BLOCK - 1) / MIXT_BLOCK + LINE / 4 - 1) / (LINE / 4) * (LINE / 4) : 0;
    return s->coded == (space == MIXT_SPACE_CODES) ? (s->count + LINE - 1) / LINE * LINE : 0;
}

mixt_status mixt__codes_lay_out(mixt__params *p, const mixt__graph *graph)
{
    bool any = false;
    if (!mixt__blocks_possible(p->moment_format))
        return MIXT_OK;
    for (int64_t s = 0; s < p->segment_count && p->moments > 0; s++) {
        const mixt__param *param = &graph->params[p->segments[s].param];
        p->segments[s].coded = param->count >= LEAST && !is_table(graph, param);
        any = any || p->segments[s].coded;
    }
    if (!any)
        p->moment_format = MIXT_DTYPE_FP32;
    for (int space = 0; space < MIXT_SPACES && any; space++) {
        int64_t *offset = p->codes.offset[space] = mixt__alloc((size_t)(p->count + 1) * sizeof *offset);
        int64_t *begin = p->codes.begin[space] = mixt__alloc((size_t)(p->segment_count + 1) * sizeof *begin);
        if (!offset || !begin)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the parameter table");
        for (int64_t i = 0; i < p->count; i++)
            offset[i] = -1;
        for (int64_t s = 0; s < p->segment_count; s++) {
            mixt__segment *segment = &p->segments[s];
            int64_t room = room_of(segment, space);
            begin[s + 1] = begin[s] + room;
            if (!room)
                continue;
            offset[segment->param] = begin[s];
            *(space == MIXT_SPACE_SCALES ? &segment->scale_offset : &segment->moment_offset) = begin[s];
        }
    }
    return MIXT_OK;
}

void mixt__codes_free(mixt__params *p)
{
    for (int space = 0; space < MIXT_SPACES; space++) {
        mixt__free(p->codes.offset[space]);
        mixt__free(p->codes.begin[space]);
        mixt__free(p->codes.slices[space]);
    }
    p->codes = (mixt__params_codes){0};
}

bool mixt__params_coded(const mixt__params *p, int64_t param)
{
    return p->codes.offset[MIXT_SPACE_CODES] && p->codes.offset[MIXT_SPACE_CODES][param] >= 0;
}

/* ---- where ---- */

int mixt__params_space_of(int role)
{
    if (role == MIXT_PARAM_MOMENT1 || role == MIXT_PARAM_MOMENT2)
        return MIXT_SPACE_CODES;
    if (role >= MIXT_PARAM_WIDE && role < MIXT_PARAM_SCALE)
        return MIXT_SPACE_WIDE;
    return role >= MIXT_PARAM_SCALE && role < MIXT_PARAM_GRADIENT ? MIXT_SPACE_SCALES : -1;
}

int64_t mixt__params_in_space(const mixt__params *p, int space, int64_t at)
{
    const int64_t *begin = p->codes.begin[space];
    int64_t low = 0, high = p->segment_count - 1;
    if (at >= p->total)
        return begin[p->segment_count];
    while (low < high) { // the segment that holds it
        int64_t middle = (low + high + 1) / 2;
        if (p->segments[middle].offset <= at)
            low = middle;
        else
            high = middle - 1;
    }
    int64_t inside = at - p->segments[low].offset;
    if (begin[low] == begin[low + 1] || inside >= p->segments[low].count)
        return begin[inside ? low + 1 : low];
    return begin[low] + (space == MIXT_SPACE_SCALES ? inside / MIXT_BLOCK : inside);
}

mixt_status mixt__codes_share_out(mixt__params *p)
{
    for (int space = 0; space < MIXT_SPACES && p->codes.begin[space]; space++) {
        mixt__free(p->codes.slices[space]);
        mixt__param_slice *slices = p->codes.slices[space] =
            mixt__alloc((size_t)(p->shard.slice_count + 1) * sizeof *slices);
        if (!slices)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to shard the state between ranks");
        int64_t at = 0;
        for (int64_t i = 0; i < p->shard.slice_count; i++) {
            const mixt__param_slice *flat = &p->shard.slices[i];
            int64_t begin = mixt__params_in_space(p, space, flat->begin);
            int64_t end = mixt__params_in_space(p, space, flat->begin + flat->count);
            slices[i] = (mixt__param_slice){begin, end - begin, at};
            at += end - begin;
        }
    }
    return MIXT_OK;
}

/* ---- what ---- */

void mixt__codes_open(float *values, const void *codes, const float *scales, mixt_dtype format, int64_t count)
{
    for (int64_t i = 0; i < count; i += MIXT_BLOCK)
        mixt__block_open(values + i, (const char *)codes + i, scales[i / MIXT_BLOCK], format,
                         count - i < MIXT_BLOCK ? count - i : MIXT_BLOCK);
}

void mixt__codes_close(void *codes, float *scales, const float *values, mixt_dtype format, int64_t count)
{
    for (int64_t i = 0; i < count; i += MIXT_BLOCK)
        scales[i / MIXT_BLOCK] = mixt__block_close((char *)codes + i, values + i, format,
                                                   count - i < MIXT_BLOCK ? count - i : MIXT_BLOCK, NULL);
}

static mixt_status read_role(const mixt__params *p, int id, void **copy)
{
    const mixt__param_role *role = &p->roles[id];
    *copy = mixt__alloc_uninit(role->bytes + 1);
    if (!*copy)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a copy of the %s", role->name);
    return role->data ? mixt__device_download(p->device, *copy, role->data, role->bytes) : MIXT_OK;
}

static void widen_all(const mixt__params *p, int which, const char *codes, const float *wide, const float *scales,
                      float *values)
{
    memset(values, 0, (size_t)p->total * sizeof *values);
    for (int64_t s = 0; s < p->segment_count; s++) {
        const mixt__segment *g = &p->segments[s];
        if (g->coded)
            mixt__codes_open(values + g->offset, codes + g->moment_offset, scales + g->scale_offset,
                             p->roles[MIXT_PARAM_MOMENT1 + which].format, g->count);
        else
            memcpy(values + g->offset, wide + g->moment_offset, (size_t)g->count * sizeof *values);
    }
}

mixt_status mixt__params_read_moment(const mixt__params *p, int which, float *values)
{
    const mixt__param_role *role = &p->roles[MIXT_PARAM_MOMENT1 + which];
    void *copies[3] = {NULL, NULL, NULL};
    const int ids[3] = {MIXT_PARAM_MOMENT1 + which, MIXT_PARAM_WIDE + which, MIXT_PARAM_SCALE + which};
    bool coded = p->codes.begin[0];
    mixt_status status = MIXT_OK;
    for (int i = 0; i < (coded ? 3 : 1) && status == MIXT_OK; i++)
        status = read_role(p, ids[i], &copies[i]);
    if (status == MIXT_OK && coded)
        widen_all(p, which, copies[0], copies[1], copies[2], values);
    else if (status == MIXT_OK && role->format == MIXT_DTYPE_FP32)
        memcpy(values, copies[0], role->bytes);
    else if (status == MIXT_OK)
        mixt__widen(role->format)(values, copies[0], role->here);
    for (int i = 0; i < 3; i++)
        mixt__free(copies[i]);
    return status;
}
