/* Inputs of the file from the arrays of a batch: which is which, and how its dimensions lie. */
#include "onnx/import.h"

#include <stdio.h>
#include <string.h>

enum { GUESSED_BATCH = 2, GUESSED_SIDE = 224, GUESSED_LENGTH = 16 };

bool mixt__onnx_input(const mixt__onnx *o, int index, mixt__onnx_type *type, int *rank, int64_t dims[MIXT_ONNX_RANK])
{
    const mixt__onnx_file *f = o->file;
    int seen = 0;
    for (int64_t i = 0; i < f->input_count; i++)
        if (f->values[f->inputs[i]].uses && seen++ == index)
            return mixt__onnx_value_shape(&f->values[f->inputs[i]], type, rank, dims);
    return false;
}

static bool contains(mixt__wire_span name, const char *word)
{
    char text[128];
    return strstr(mixt__onnx_text(name, text, sizeof text), word) != NULL;
}

/** What the file says of an input, as a text for people. */
static const char *shape_text(int rank, const int64_t *dims, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int i = 0; i < rank && used < size; i++)
        used += dims[i] < 0 ? (size_t)snprintf(text + used, size - used, "%s?", i ? ", " : "")
                            : (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "", (long long)dims[i]);
    if (used < size)
        snprintf(text + used, size - used, ")");
    return text;
}

/** How well sizes of the file fit an array with its dimensions in an order: how many are said; -1: they do not fit. */
static int fit(const mixt__shape *have, const int64_t *said, const int *order)
{
    int count = 0;
    for (int i = 1; i < have->rank; i++) {
        if (said[order[i]] >= 0 && said[order[i]] != have->dims[i])
            return -1;
        count += said[order[i]] >= 0;
    }
    return count;
}

/** An array with as many dimensions as the file says: as it is, or with its channels in front. */
static bool give_same(mixt__import *m, mixt__item *item, mixt__onnx_type type, mixt_value v, const int64_t *said)
{
    const mixt__shape have = m->b->graph->values[v.id].shape;
    int as_is[MIXT_ONNX_RANK], first[MIXT_ONNX_RANK];
    for (int i = 0; i < have.rank; i++) {
        as_is[i] = i;
        first[i] = i == 0 ? 0 : i == have.rank - 1 ? 1 : i + 1;
    }
    int plain = fit(&have, said, as_is), moved = have.rank > 2 ? fit(&have, said, first) : -1;
    if (plain < 0 && moved < 0)
        return false;
    bool picture = have.rank == 4; // (N, H, W, C) in memory, (N, C, H, W) in most files
    bool turn = moved > plain || (moved == plain && picture);
    mixt__item_give_in(m, item, type, v, turn ? first : as_is);
    return true;
}

/** The same numbers in another shape. */
static bool give_reshaped(mixt__import *m, mixt__item *item, mixt__onnx_type type, mixt_value v, int rank,
                          const int64_t *said)
{
    const mixt__shape have = m->b->graph->values[v.id].shape;
    int64_t dims[MIXT_ONNX_RANK], count = mixt__shape_count(&have) / have.dims[0], rest = 1;
    int open = 0;
    if (rank < 2 || rank > MIXT_MAX_RANK)
        return false;
    dims[0] = have.dims[0];
    for (int i = 1; i < rank; i++) {
        dims[i] = said[i];
        if (said[i] < 0)
            open = open ? -1 : i;
        else
            rest *= said[i];
    }
    if (open < 0 || rest < 1 || count % rest || (!open && rest != count))
        return false;
    if (open)
        dims[open] = count / rest;
    if (have.rank == 4 && rank == 2 && have.dims[3] > 1) // pictures flattened as other programs do: channel by channel
        v = mixt_transpose(m->b, v, (const int[]){0, 3, 1, 2});
    mixt__item_give(m, item, type, mixt_reshape(m->b, v, rank, dims));
    return true;
}

static mixt_status give_array(mixt__import *m, int32_t id, const char *array)
{
    const mixt__onnx_value *v = &m->f->values[id];
    int64_t said[MIXT_ONNX_RANK];
    int rank;
    mixt__onnx_type type;
    char name[128], file[128], data[128];
    mixt_value value = mixt_input(m->b, array);
    MIXT_TRY(mixt__import_check(m));
    const mixt__shape have = m->b->graph->values[value.id].shape;
    bool known = mixt__onnx_value_shape(v, &type, &rank, said);
    bool whole = m->b->graph->values[value.id].dtype == MIXT_DTYPE_INT32;
    mixt__onnx_text(v->name, name, sizeof name);
    if (type && whole == mixt__onnx_type_is_float(type) && type != MIXT_ONNX_UINT8 && type != MIXT_ONNX_BOOL)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: its input '%s' is %s, and '%s' of the data is %s", m->f->path, name,
                          mixt__onnx_type_name(type), array, whole ? "tokens or ids" : "numbers with a fraction");
    type = type ? type : whole ? MIXT_ONNX_INT64 : MIXT_ONNX_FLOAT;
    if (!known) {
        memset(said, -1, sizeof said);
        rank = have.rank;
    }
    if (rank == have.rank && give_same(m, &m->items[id], type, value, said))
        return mixt__import_check(m);
    if (give_reshaped(m, &m->items[id], type, value, rank, said))
        return mixt__import_check(m);
    return mixt__fail(MIXT_ERROR_SHAPE,
                      "%s: its input '%s' is %s, and a batch of the data is %s (images with channels last): resize or "
                      "crop the data (data.resize, data.crop, data.shape), or export the file for this size",
                      m->f->path, name, shape_text(rank, said, file, sizeof file),
                      mixt__shape_text(&have, data, sizeof data));
}

/** An input that is the same for all data: masks of what is padding, kinds of tokens, positions. */
static mixt_status give_known(mixt__import *m, int32_t id, mixt_value tokens, bool ones, bool count_up)
{
    const mixt__shape s = m->b->graph->values[tokens.id].shape;
    double *out;
    MIXT_TRY(mixt__item_constant(m, &m->items[id], MIXT_ONNX_INT64, s.rank, s.dims, &out));
    int64_t count = mixt__shape_count(&s), last = s.rank ? s.dims[s.rank - 1] : 1;
    for (int64_t i = 0; i < count; i++)
        out[i] = count_up ? (double)(i % last) : (double)ones;
    return MIXT_OK;
}

/** The array of the batch by a name; -1: there is none, or another input has it. */
static int array_of(const mixt_builder *b, mixt__wire_span name, unsigned taken)
{
    const mixt__graph *g = b->graph;
    for (int i = 0; i < g->array_count; i++)
        if (!g->arrays[i].target && mixt__wire_is(name, g->arrays[i].name) && !(taken >> i & 1))
            return i;
    return -1;
}

/** Lengths and masks stand beside an array, and are no inputs of their own. */
static bool stands_beside(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (!strcmp(dot, ".length") || !strcmp(dot, ".mask"));
}

static mixt_status give_input(mixt__import *m, int32_t id, unsigned *taken)
{
    const mixt__graph *g = m->b->graph;
    const mixt__onnx_value *v = &m->f->values[id];
    char text[128], beside[2 * MIXT_ARRAY_NAME];
    mixt_value first = {g->input};
    int at = array_of(m->b, v->name, *taken);
    bool begun = *taken != 0;
    if (at < 0 && begun && contains(v->name, "mask")) {
        snprintf(beside, sizeof beside, "%s.mask", g->arrays[0].name);
        if (!mixt_builder_has_input(m->b, beside))
            return give_known(m, id, first, true, false);
        mixt__item_give(m, &m->items[id], MIXT_ONNX_FLOAT, mixt_input(m->b, beside));
        return mixt__import_check(m);
    }
    if (at < 0 && begun && contains(v->name, "token_type"))
        return give_known(m, id, first, false, false);
    if (at < 0 && begun && contains(v->name, "position"))
        return give_known(m, id, first, false, true);
    for (int i = 0; at < 0 && i < g->array_count; i++)
        if (!g->arrays[i].target && !(*taken >> i & 1) && !stands_beside(g->arrays[i].name))
            at = i;
    if (at < 0)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: the data has nothing for its input '%s'", m->f->path,
                          mixt__onnx_text(v->name, text, sizeof text));
    *taken |= 1u << at;
    return give_array(m, id, g->arrays[at].name);
}

mixt_status mixt__import_inputs(mixt__import *m)
{
    unsigned taken = 0;
    for (int64_t i = 0; i < m->f->input_count; i++)
        if (m->f->values[m->f->inputs[i]].uses)
            MIXT_TRY(give_input(m, m->f->inputs[i], &taken));
    return MIXT_OK;
}

mixt_status mixt__onnx_guess_arrays(const mixt__onnx *o, mixt__graph *graph)
{
    const mixt__onnx_file *f = o->file;
    int64_t said[MIXT_ONNX_RANK];
    int rank;
    mixt__onnx_type type;
    for (int64_t i = 0; i < f->input_count; i++) {
        const mixt__onnx_value *v = &f->values[f->inputs[i]];
        if (!v->uses || graph->array_count == MIXT_ARRAYS_MAX)
            continue;
        if (!mixt__onnx_value_shape(v, &type, &rank, said) || rank > MIXT_MAX_RANK)
            rank = 2, said[0] = said[1] = -1;
        mixt__array a = {.dtype = mixt__onnx_type_is_float(type) || type == MIXT_ONNX_UINT8 || type == MIXT_ONNX_BOOL
                                      ? MIXT_DTYPE_FP32
                                      : MIXT_DTYPE_INT32,
                         .shape = {.rank = rank}};
        mixt__onnx_text(v->name, a.name, sizeof a.name);
        for (int k = 0; k < rank; k++) {
            int64_t open = k == 0 ? GUESSED_BATCH : rank == 4 && k > 1 ? GUESSED_SIDE : rank == 4 ? 3 : GUESSED_LENGTH;
            a.shape.dims[k] = said[k] > 0 ? said[k] : open;
        }
        graph->arrays[graph->array_count++] = a;
    }
    if (!graph->array_count)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s has no inputs", f->path);
    return mixt__graph_array_value(graph, 0, &graph->input);
}
