/* What ranks have each of their own, saved with the rest of the state and taken up again.
 *
 * A snapshot's copies are sections: feedback, then as many moments as there are, each with a row of every rank, or of
 * this one; then factors. A rank's own snapshot has its moments in its arenas already, and one section.
 */
#include "train/dist/feedback.h"

#include "base/threads.h"
#include "train/dist/local.h"
#include "train/trainer_inside.h"

#include <stdio.h>
#include <string.h>

static const char *const sections[] = {"feedback/", "feedback-moment1/", "feedback-moment2/"};
static const char factors_name[] = "factors";
enum { NAME_BYTES = 40, SECTIONS = 3 };

/** Names of which only the section differs. */
static void print_name(char name[NAME_BYTES], int64_t section, int64_t rank)
{
    snprintf(name, NAME_BYTES, "%s%lld", sections[section], (long long)rank);
}

/* ---- snapshots ---- */

/** How a snapshot's copies lie. */
typedef struct layout {
    mixt__compressor c; // as planned
    int64_t sections, rows;
    bool factors; // the same on all ranks: one saves them
} layout;

static bool lay_out(const mixt__trainer *t, mixt__snapshot_kind kind, layout *l)
{
    if (!mixt__local_plan(t, &l->c))
        return false;
    l->sections = kind == MIXT_SNAPSHOT_OWN ? 1 : 1 + t->params->moments;
    l->rows = kind == MIXT_SNAPSHOT_WHOLE ? l->c.ranks : 1;
    l->factors = l->c.counts.right && (kind != MIXT_SNAPSHOT_PART || !l->c.group || l->c.group->rank == 0);
    return true;
}

/** Where factors begin, behind all rows. */
static int64_t rows_elements(const layout *l)
{
    return l->sections * l->rows * l->c.total;
}

int64_t mixt__feedback_elements(const mixt__trainer *t, mixt__snapshot_kind kind)
{
    layout l;
    if (!lay_out(t, kind, &l))
        return 0;
    return rows_elements(&l) + (l.factors ? l.c.counts.right : 0);
}

int64_t mixt__feedback_pieces(const mixt__trainer *t, const mixt__snapshot *of, int64_t first,
                              mixt__checkpoint_piece *pieces)
{
    layout l, part;
    if (!lay_out(t, of->kind, &l) || !lay_out(t, MIXT_SNAPSHOT_PART, &part))
        return 0;
    int64_t rank = l.c.group ? l.c.group->rank : 0, unit = sizeof(float);
    for (int64_t s = 0; s < part.sections && pieces; s++) {
        const float *row = s < l.sections
                               ? of->feedback + s * l.c.total
                               : (float *)(void *)of->blocks[MIXT_PARAM_WEIGHT + s]; // moments follow the weights
        pieces[s] = (mixt__checkpoint_piece){.tensor = first + s * l.c.ranks + rank, .bytes = l.c.total * unit};
        pieces[s].data = row;
    }
    if (pieces && part.factors)
        pieces[part.sections] = (mixt__checkpoint_piece){.tensor = first + part.sections * l.c.ranks,
                                                         .bytes = l.c.counts.right * unit,
                                                         .data = of->feedback + rows_elements(&l)};
    return part.sections + part.factors;
}

int64_t mixt__feedback_tensors(const mixt__trainer *t)
{
    layout l;
    return lay_out(t, MIXT_SNAPSHOT_WHOLE, &l) ? l.sections * l.rows + 1 : 0;
}

size_t mixt__feedback_name_bytes(const mixt__trainer *t)
{
    return (size_t)mixt__feedback_tensors(t) * NAME_BYTES;
}

mixt_status mixt__feedback_open(mixt__snapshot *s)
{
    int64_t elements = mixt__feedback_elements(s->trainer, s->kind);
    if (!elements)
        return MIXT_OK;
    s->feedback = mixt__device_alloc_host(s->trainer->device, (size_t)elements * sizeof *s->feedback);
    return s->feedback ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a copy of what ranks have each");
}

void mixt__feedback_list(mixt__snapshot *s, char *names)
{
    layout l;
    bool kept = lay_out(s->trainer, MIXT_SNAPSHOT_WHOLE, &l), part = s->kind == MIXT_SNAPSHOT_PART;
    for (int64_t i = 0; kept && i <= l.sections * l.rows; i++, names += NAME_BYTES) {
        bool factors = i == l.sections * l.rows;
        mixt__file_tensor *t = &s->tensors[s->count];
        int64_t count = factors ? l.c.counts.right : l.c.total;
        *t = (mixt__file_tensor){.dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {count}, .name = names};
        t->data = part ? NULL : s->feedback + i * l.c.total;
        if (factors)
            snprintf(names, NAME_BYTES, "%s", factors_name);
        else
            print_name(names, i / l.rows, i % l.rows);
        s->count += count > 0;
    }
}

/** A rank's own: of a section, where the trainer has it. */
static const float *own_of(const mixt__trainer *t, int64_t section)
{
    return section ? mixt__role_fp32(&t->params->roles[MIXT_PARAM_WEIGHT + section]) : t->ranks.local.feedback;
}

mixt_status mixt__feedback_take(mixt__snapshot *s, const mixt__trainer *t)
{
    layout l;
    if (!s->feedback || !lay_out(t, s->kind, &l))
        return MIXT_OK;
    for (int64_t i = 0; i < l.sections && s->kind != MIXT_SNAPSHOT_WHOLE; i++)
        MIXT_TRY(mixt__device_copy(t->device, s->feedback + i * l.c.total, own_of(t, i),
                                   (size_t)l.c.total * sizeof *s->feedback));
    if (l.factors)
        memcpy(s->feedback + rows_elements(&l), t->ranks.local.compressor.factors,
               (size_t)l.c.counts.right * sizeof *s->feedback);
    return MIXT_OK;
}

void mixt__feedback_fill(mixt__snapshot *s, const mixt__snapshot *own)
{
    layout to, from;
    if (lay_out(s->trainer, s->kind, &to) && lay_out(s->trainer, own->kind, &from))
        memcpy(s->feedback + rows_elements(&to), own->feedback + rows_elements(&from),
               (size_t)to.c.counts.right * sizeof *s->feedback);
}

void mixt__feedback_put_back(const mixt__snapshot *s, mixt__trainer *t)
{
    layout l;
    if (!s->feedback || !lay_out(t, s->kind, &l))
        return;
    memcpy(t->ranks.local.feedback, s->feedback, (size_t)l.c.total * sizeof *s->feedback);
    memcpy(t->ranks.local.compressor.factors, s->feedback + rows_elements(&l),
           (size_t)l.c.counts.right * sizeof *s->feedback);
}

mixt_status mixt__feedback_collect(mixt__trainer *t, const mixt__ranks_own *own, float *to)
{
    layout l;
    mixt__group *g = t->ranks.group;
    size_t bytes = (size_t)t->params->total * sizeof(float);
    if (!lay_out(t, MIXT_SNAPSHOT_WHOLE, &l))
        return MIXT_OK;
    for (int64_t rank = 0; rank <= g->size; rank++)
        g->cuts[rank] = rank * l.c.total;
    for (int64_t s = 0; s < l.sections; s++) {
        const float *from = own_of(t, s);
        if (own)
            from = s ? (float *)(void *)own->roles[MIXT_PARAM_WEIGHT + s] : own->feedback;
        if (!own && s && !t->device->backend->host_memory) {
            MIXT_TRY(mixt__device_download(t->device, t->ranks.discrete.staged, from, bytes));
            from = t->ranks.discrete.staged;
        }
        MIXT_TRY(mixt__group_collect_parts(g, from, to ? to + s * l.rows * l.c.total : NULL, g->cuts, sizeof *from));
    }
    return MIXT_OK;
}

/* ---- back from a checkpoint ---- */

bool mixt__feedback_is(const char *name)
{
    bool found = !strcmp(name, factors_name);
    for (int i = 0; i < SECTIONS; i++)
        found = found || !strncmp(name, sections[i], strlen(sections[i]));
    return found;
}

static const mixt__file_tensor *find_row(const mixt__checkpoint *c, int64_t section, int64_t rank)
{
    char name[NAME_BYTES];
    print_name(name, section, rank);
    return mixt__safetensors_find(c->state, name);
}

/** Of how many ranks a checkpoint has something. */
static int64_t count_rows(const mixt__checkpoint *c)
{
    int64_t rows = 0;
    while (find_row(c, 0, rows))
        rows++;
    return rows;
}

/** Whether each rank of this trainer goes on with what was its own. */
static bool is_same(const mixt__trainer *t, const mixt__checkpoint *c)
{
    return t->ranks.local.feedback && count_rows(c) == t->settings.ranks;
}

static mixt_status check_rows(const mixt__params *params, const mixt__checkpoint *checkpoint)
{
    int64_t rows = count_rows(checkpoint);
    for (int64_t i = 0; i < rows * (1 + params->moments); i++) {
        const mixt__file_tensor *tensor = find_row(checkpoint, i / rows, i % rows);
        char name[NAME_BYTES];
        print_name(name, i / rows, i % rows);
        if (!tensor)
            return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s' is missing, '%s0' is there", name, sections[0]);
        if (tensor->dtype != MIXT_DTYPE_FP32 || tensor->rank != 1 || tensor->dims[0] != params->total)
            return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s' is %s %s, the model has fp32 [%lld]", name,
                              mixt_dtype_name(tensor->dtype), mixt__dims_print(tensor->rank, tensor->dims).text,
                              (long long)params->total);
    }
    return MIXT_OK;
}

mixt_status mixt__feedback_restore(mixt__trainer *t, const mixt__checkpoint *checkpoint, bool load)
{
    mixt__ranks *r = &t->ranks;
    MIXT_TRY(check_rows(t->params, checkpoint));
    if (!load || !r->local.feedback)
        return MIXT_OK;
    if (is_same(t, checkpoint))
        memcpy(r->local.feedback, find_row(checkpoint, 0, r->group->rank)->data,
               (size_t)t->params->total * sizeof(float));
    else
        mixt__parallel_zero(r->local.feedback, (size_t)t->params->total * sizeof(float));
    size_t bytes = (size_t)r->local.compressor.counts.right * sizeof(float);
    const mixt__file_tensor *tensor = mixt__safetensors_find(checkpoint->state, factors_name);
    if (tensor && tensor->bytes == bytes && tensor->dtype == MIXT_DTYPE_FP32)
        memcpy(r->local.compressor.factors, tensor->data, bytes);
    else if (bytes)
        memset(r->local.compressor.factors, 0, bytes); // of another rank, or none: they begin again
    return MIXT_OK;
}

/** Of all ranks: moments in their mean, masters less the mean of what was not sent. */
static void join_rows(const mixt__checkpoint *checkpoint, int which, int64_t offset, int64_t count, float *values)
{
    int64_t rows = count_rows(checkpoint);
    float share = which == MIXT_PARAM_WEIGHT ? -1 / (float)rows : 1 / (float)rows;
    if (which != MIXT_PARAM_WEIGHT)
        memset(values, 0, (size_t)count * sizeof *values);
    for (int64_t rank = 0; rank < rows; rank++) {
        const float *row = (const float *)find_row(checkpoint, which, rank)->data + offset;
        for (int64_t i = 0; i < count; i++)
            values[i] += share * row[i];
    }
}

mixt_status mixt__feedback_values(const mixt__trainer *t, const mixt__checkpoint *checkpoint, int which, int64_t offset,
                                  const mixt__file_tensor *tensor, float **values)
{
    bool same = is_same(t, checkpoint);
    *values = NULL;
    if (!count_rows(checkpoint) || which > MIXT_PARAM_MOMENT2 || (same && which == MIXT_PARAM_WEIGHT))
        return MIXT_OK;
    *values = mixt__alloc(tensor->bytes + 1);
    if (!*values)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to put together what ranks had each");
    memcpy(*values, tensor->data, tensor->bytes);
    if (same)
        memcpy(*values, (const float *)find_row(checkpoint, which, t->ranks.group->rank)->data + offset, tensor->bytes);
    else
        join_rows(checkpoint, which, offset, (int64_t)(tensor->bytes / sizeof(float)), *values);
    return MIXT_OK;
}
