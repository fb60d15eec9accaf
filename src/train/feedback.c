/* Feedback of compressed sums: planned with the step, saved with the rest of the state. */
#include "train/feedback.h"

#include "base/threads.h"

#include <stdio.h>
#include <string.h>

static const char prefix[] = "feedback/", factors_name[] = "factors";
enum { NAME_BYTES = 32 };

/* ---- the compressor ---- */

static mixt__compress_piece add_segment(const mixt__trainer *t, mixt__compressor *c, int64_t index)
{
    const mixt__segment *s = &t->params->segments[index];
    const mixt__shape *shape = &t->params->table[s->param].shape;
    int64_t rows = shape->rank > 1 ? shape->dims[0] : 1;
    return mixt__compress_add(&c->how, &c->counts, s->offset, rows, s->count / rows);
}

bool mixt__feedback_plan(const mixt__trainer *t, mixt__compressor *c)
{
    const mixt__ranks *r = &t->ranks;
    *c = (mixt__compressor){.how = r->compression, .group = r->group, .ranks = t->settings.ranks};
    if (c->how.kind == MIXT_COMPRESS_NONE || c->ranks == 1)
        return false;
    c->parts = mixt__ranks_parts(t);
    c->total = t->params->total;
    c->bucket = r->bucket;
    for (int64_t i = 0; i < t->params->segment_count; i++)
        (void)add_segment(t, c, i);
    return true;
}

void mixt__feedback_begin(mixt__trainer *t)
{
    mixt__compressor *c = &t->ranks.compressor, planned;
    (void)mixt__feedback_plan(t, &planned);
    planned.pieces = c->pieces;
    planned.feedback = c->feedback;
    planned.factors = c->factors;
    planned.moved = c->moved;
    planned.workspace = c->workspace;
    planned.seconds = c->seconds;
    *c = planned;
    c->counts = (mixt__compress_counts){0};
    for (int64_t i = 0; i < t->params->segment_count; i++)
        c->pieces[i] = add_segment(t, c, i);
}

/** The loss scale of the passes, and how many updates there were; the device has made them. */
static mixt_status read_control(const mixt__trainer *t, mixt__control *control)
{
    if (!t->backend->host_memory)
        return t->backend->download(control, t->control, sizeof *control);
    *control = *t->control;
    return MIXT_OK;
}

mixt_status mixt__feedback_part(mixt__trainer *t, int64_t part, float *grad)
{
    mixt__control control;
    MIXT_TRY(read_control(t, &control));
    mixt__compress_part(&t->ranks.compressor, part, grad, control.scale);
    return MIXT_OK;
}

mixt_status mixt__feedback_sum(mixt__trainer *t, float *grad)
{
    mixt__control control;
    MIXT_TRY(read_control(t, &control));
    return mixt__compress_sum(&t->ranks.compressor, grad, control.scale, control.step < t->ranks.compress_after);
}

/* ---- snapshots ---- */

static bool is_kept(const mixt__trainer *t)
{
    return t->ranks.compression.kind != MIXT_COMPRESS_NONE && t->settings.ranks > 1;
}

/** Rows that a snapshot's copies have: one a rank, or those of this process. */
static int64_t rows_of(const mixt__compressor *c, mixt__snapshot_kind kind)
{
    return kind == MIXT_SNAPSHOT_WHOLE ? c->ranks : c->parts;
}

/** Factors are the same on all ranks: one saves them. */
static bool has_factors(const mixt__compressor *c, mixt__snapshot_kind kind)
{
    return c->counts.right && (kind != MIXT_SNAPSHOT_PART || !c->group || c->group->rank == 0);
}

int64_t mixt__feedback_elements(const mixt__trainer *t, mixt__snapshot_kind kind)
{
    mixt__compressor c;
    if (!mixt__feedback_plan(t, &c))
        return 0;
    return rows_of(&c, kind) * c.total + (has_factors(&c, kind) ? c.counts.right : 0);
}

int64_t mixt__feedback_pieces(const mixt__trainer *t, const float *copies, int64_t first,
                              mixt__checkpoint_piece *pieces)
{
    mixt__compressor c;
    if (!mixt__feedback_plan(t, &c))
        return 0;
    bool factors = has_factors(&c, MIXT_SNAPSHOT_PART);
    int64_t rank = c.group ? c.group->rank : 0, unit = sizeof(float);
    if (pieces)
        pieces[0] = (mixt__checkpoint_piece){.tensor = first + rank, .bytes = c.total * unit, .data = copies};
    if (pieces && factors)
        pieces[1] = (mixt__checkpoint_piece){
            .tensor = first + c.ranks, .bytes = c.counts.right * unit, .data = copies + c.total};
    return 1 + factors;
}

int64_t mixt__feedback_tensors(const mixt__trainer *t)
{
    return is_kept(t) ? t->settings.ranks + 1 : 0;
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
    s->feedback = s->trainer->backend->alloc_host((size_t)elements * sizeof *s->feedback);
    return s->feedback ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a copy of the ranks' feedback");
}

void mixt__feedback_list(mixt__snapshot *s, char *names)
{
    const mixt__compressor *c = &s->trainer->ranks.compressor;
    for (int64_t i = 0; i < mixt__feedback_tensors(s->trainer); i++, names += NAME_BYTES) {
        bool factors = i == c->ranks;
        mixt__file_tensor *t = &s->tensors[s->count];
        int64_t count = factors ? c->counts.right : c->total;
        *t = (mixt__file_tensor){.dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {count}, .name = names};
        t->data = s->kind == MIXT_SNAPSHOT_PART ? NULL : s->feedback + i * c->total;
        if (factors)
            snprintf(names, NAME_BYTES, "%s", factors_name);
        else
            snprintf(names, NAME_BYTES, "%s%lld", prefix, (long long)i);
        s->count += count > 0;
    }
}

/** This process's rows from the trainer to a snapshot's copies, or back. */
static void copy_rows(const mixt__snapshot *s, const mixt__compressor *c, bool back)
{
    bool collected = c->group && s->kind == MIXT_SNAPSHOT_WHOLE; // of the others: nothing that is put back
    int64_t rows = collected ? 0 : c->parts * c->total;
    float *factors = s->feedback + rows_of(c, s->kind) * c->total;
    memcpy(back ? c->feedback : s->feedback, back ? s->feedback : c->feedback, (size_t)rows * sizeof *factors);
    if (has_factors(c, s->kind))
        memcpy(back ? c->factors : factors, back ? factors : c->factors, (size_t)c->counts.right * sizeof *factors);
}

void mixt__feedback_take(mixt__snapshot *s, const mixt__trainer *t)
{
    if (s->feedback)
        copy_rows(s, &t->ranks.compressor, false);
}

void mixt__feedback_fill(mixt__snapshot *s, const mixt__snapshot *own)
{
    const mixt__compressor *c = &s->trainer->ranks.compressor;
    memcpy(s->feedback + rows_of(c, s->kind) * c->total, own->feedback + rows_of(c, own->kind) * c->total,
           (size_t)c->counts.right * sizeof *s->feedback);
}

void mixt__feedback_put_back(const mixt__snapshot *s, mixt__trainer *t)
{
    if (s->feedback)
        copy_rows(s, &t->ranks.compressor, true);
}

/* ---- back from a checkpoint ---- */

bool mixt__feedback_is(const char *name)
{
    return !strncmp(name, prefix, sizeof prefix - 1) || !strcmp(name, factors_name);
}

/** Rank number `from` of the checkpoint's, into one of this process's. */
static void add_row(mixt__compressor *c, int64_t from, const float *row)
{
    int64_t to = from % c->ranks, part = c->group ? 0 : to;
    float *feedback = c->feedback + part * c->total;
    if (c->group && to != c->group->rank)
        return;
    if (from < c->ranks)
        memcpy(feedback, row, (size_t)c->total * sizeof *row);
    for (int64_t i = 0; i < c->total && from >= c->ranks; i++)
        feedback[i] += row[i];
}

mixt_status mixt__feedback_restore(mixt__trainer *t, const mixt__checkpoint *checkpoint, bool load)
{
    mixt__compressor *c = &t->ranks.compressor;
    char name[NAME_BYTES];
    const mixt__file_tensor *tensor;
    if (!is_kept(t))
        return MIXT_OK;
    if (load)
        mixt__parallel_zero(c->feedback, (size_t)(c->parts * c->total) * sizeof *c->feedback);
    for (int64_t i = 0;; i++) {
        snprintf(name, sizeof name, "%s%lld", prefix, (long long)i);
        tensor = mixt__safetensors_find(checkpoint->state, name);
        if (!tensor)
            break;
        if (tensor->dtype != MIXT_DTYPE_FP32 || tensor->rank != 1 || tensor->dims[0] != t->params->total)
            return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s' is %s %s, the model has fp32 [%lld]", name,
                              mixt_dtype_name(tensor->dtype), mixt__dims_print(tensor->rank, tensor->dims).text,
                              (long long)t->params->total);
        if (load)
            add_row(c, i, tensor->data);
    }
    tensor = mixt__safetensors_find(checkpoint->state, factors_name);
    if (!load || !c->counts.right)
        return MIXT_OK;
    size_t bytes = (size_t)c->counts.right * sizeof *c->factors;
    if (tensor && tensor->bytes == bytes && tensor->dtype == MIXT_DTYPE_FP32)
        memcpy(c->factors, tensor->data, bytes);
    else
        memset(c->factors, 0, bytes); // of another rank, or none: they begin again
    return MIXT_OK;
}
