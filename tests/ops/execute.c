/* Builds a call over guarded, poisoned memory, runs it, and compares outputs with the oracle's.
 *
 * Outputs start as NaN patterns, so an element left unwritten fails; gaps of strided inputs hold NaNs, so reading one
 * shows; bytes before and after every buffer and in the gaps of strided outputs must stay as they were.
 * On a device with its own memory every buffer has a mirror there, guards included, copied over before and back after.
 */
#include "ops/execute.h"

#include "base/threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIRROR_ALIGNMENT = 256, GUARD = 64, GUARD_BYTE = 0xa5, POISON = 0xff, GAP = 3, OFFSET = 5, ALIGNED_OFFSET = 16 };

typedef struct buffer {
    unsigned char *raw, *before; // before: a copy of raw as it was when the kernel started
    unsigned char *device;       // where the kernel finds it: raw itself on the CPU
    size_t bytes;                // of raw
    mixt__tensor tensor;
} buffer;

typedef struct run {
    const test_case *c;
    const variant *v;
    result *r;
    buffer in[MAX_TENSORS], scales[MAX_TENSORS], out[MAX_TENSORS], workspace;
    double *old[MAX_TENSORS]; // contents of outputs that are added to
    mixt__tensor in_tensors[MAX_TENSORS], out_tensors[MAX_TENSORS];
    mixt__call call;
    mixt__arena arena;
} run;

static mixt__device *device = &mixt__device_cpu;

void execute_on(mixt__device *where)
{
    device = where;
}

static void *take(size_t bytes)
{
    void *block = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!block) {
        fprintf(stderr, "ops: out of memory\n");
        exit(2);
    }
    return block;
}

static void fail(run *x, const char *what)
{
    if (x->r->outcome != OUTCOME_FAIL)
        snprintf(x->r->text, sizeof x->r->text, "%s", what);
    x->r->outcome = OUTCOME_FAIL;
}

/* ---- layouts ---- */

/** Strides in elements; returns how many elements the tensor spans. */
static int64_t lay_out(mixt__tensor *t, layout l)
{
    int rank = t->shape.rank, order[MIXT_MAX_RANK]; // order: from the innermost dimension out
    for (int i = 0; i < rank; i++)
        order[i] = rank - 1 - i;
    if (l == LAYOUT_PERMUTED && rank >= 3) {
        order[1] = rank - 3;
        order[2] = rank - 2;
    }
    int64_t stride = 1, span = 1;
    for (int i = 0; i < rank; i++) {
        int64_t size = t->shape.dims[order[i]];
        t->strides[order[i]] = stride;
        span += (size - 1) * stride;
        stride *= size;
        if (i == 0 && l == LAYOUT_PADDED)
            stride += GAP;
        if (i == 0 && l == LAYOUT_PACKED)
            stride *= 3;
    }
    t->contiguous = l == LAYOUT_PLAIN;
    return mixt__shape_count(&t->shape) ? span : 0;
}

static int64_t position(const mixt__tensor *t, int64_t i)
{
    int64_t at = 0;
    if (t->contiguous)
        return i;
    for (int d = t->shape.rank - 1; d >= 0; d--) {
        at += i % t->shape.dims[d] * t->strides[d];
        i /= t->shape.dims[d];
    }
    return at;
}

static void make_buffer(buffer *b, const test_tensor *t, mixt_dtype dtype, layout l)
{
    size_t size = mixt_dtype_size(dtype);
    b->tensor = (mixt__tensor){.dtype = dtype, .shape = t->shape};
    size_t data = (size_t)lay_out(&b->tensor, l) * size;
    size_t shift = size * (l == LAYOUT_PLAIN ? 0 : l == LAYOUT_PACKED ? ALIGNED_OFFSET : OFFSET);
    b->bytes = GUARD + shift + data + GUARD;
    b->raw = take(b->bytes);
    b->before = take(b->bytes);
    memset(b->raw, GUARD_BYTE, b->bytes);
    memset(b->raw + GUARD + shift, POISON, data);
    b->tensor.data = b->raw + GUARD + shift;
}

static void write_values(buffer *b, const double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        number_encode(b->tensor.data, b->tensor.dtype, position(&b->tensor, i), values[i]);
}

/** Changes outside the tensor's elements: guards and gaps. */
static bool strayed(buffer *b)
{
    size_t size = mixt_dtype_size(b->tensor.dtype);
    int64_t count = mixt__shape_count(&b->tensor.shape);
    unsigned char *data = b->before + ((unsigned char *)b->tensor.data - b->raw);
    for (int64_t i = 0; i < count; i++) { // forgive the elements themselves, then nothing else may differ
        size_t at = (size_t)position(&b->tensor, i) * size;
        memcpy(data + at, (unsigned char *)b->tensor.data + at, size);
    }
    return memcmp(b->raw, b->before, b->bytes) != 0;
}

/* ---- comparing ---- */

/** NaN where NaN is expected; the right infinity where that is expected or the format's range may be left. */
static bool same_special(double got, double expected, double tolerance, mixt_dtype dtype)
{
    if (isnan(expected))
        return isnan(got);
    double furthest = isinf(expected) ? expected : expected + copysign(tolerance, expected);
    return isinf(got) && signbit(got) == signbit(expected) && isinf(number_round(furthest, dtype));
}

static void compare(run *x, const char *what, int index, const test_tensor *t, const buffer *b, const double *old)
{
    double u = number_roundoff(b->tensor.dtype), tiny = number_smallest(b->tensor.dtype);
    int64_t dropped = 0;
    for (int64_t i = 0; i < t->count && x->r->outcome != OUTCOME_FAIL; i++) {
        double got = number_decode(b->tensor.data, b->tensor.dtype, position(&b->tensor, i));
        double expected = t->value[i] + (old ? old[i] : 0), slack = t->slack[i], tolerance = 0;
        if (x->c->integers && !x->c->inexact)
            slack = 0;
        else if (old)
            slack += 2 * U32 * (fabs(old[i]) + fabs(t->value[i]));
        if (slack > 0)
            tolerance = slack + u * (fabs(expected) + slack) + tiny;
        else
            expected = number_round(expected, b->tensor.dtype);
        if (x->c->zero_or_value && got == 0 && t->value[i] != 0) {
            x->r->zero_hash = (x->r->zero_hash ^ (uint64_t)i) * 1099511628211u;
            dropped++;
            continue;
        }
        if (same_special(got, expected, tolerance, b->tensor.dtype))
            continue;
        double error = fabs(got - expected);
        if (tolerance > 0 && error / tolerance > x->r->worst)
            x->r->worst = error / tolerance;
        if (!(error <= tolerance)) {
            fail(x, "");
            snprintf(x->r->text, sizeof x->r->text,
                     "%s %d, element %lld of %lld: got %.9g, expected %.9g, error %.3g, tolerance %.3g%s", what, index,
                     (long long)i, (long long)t->count, got, expected, error, tolerance, old ? " (added to)" : "");
        }
    }
    double share = x->c->zero_share, n = (double)t->count;
    if (x->c->zero_or_value && fabs((double)dropped - share * n) > 5 * sqrt(n * share * (1 - share)) + 1)
        fail(x, "dropout: the share of zeros is not the rate");
}

static void check(run *x, bool added)
{
    for (int o = 0; o < x->c->out_count; o++) {
        bool old = added && x->call.accumulate >> o & 1;
        compare(x, "output", o, &x->c->out[o], &x->out[o], old ? x->old[o] : NULL);
        if (strayed(&x->out[o]))
            fail(x, "bytes outside an output were written");
    }
    for (int i = 0; i < x->c->in_count; i++) {
        if (x->c->after[i].value)
            compare(x, "input written in place", i, &x->c->after[i], &x->in[i], NULL);
        else if (i != x->v->in_place && memcmp(x->in[i].raw, x->in[i].before, x->in[i].bytes))
            fail(x, "an input was changed");
        if (x->c->in[i].scale && memcmp(x->scales[i].raw, x->scales[i].before, x->scales[i].bytes))
            fail(x, "an input's scales were changed");
    }
    if (memcmp(x->workspace.raw, x->workspace.before, GUARD) ||
        memcmp(x->workspace.raw + x->workspace.bytes - GUARD, x->workspace.before + x->workspace.bytes - GUARD, GUARD))
        fail(x, "bytes outside the workspace were written");
}

/* ---- running ---- */

static void snapshot(buffer *b)
{
    memcpy(b->before, b->raw, b->bytes);
}

static void start(run *x)
{
    for (int i = 0; i < x->c->in_count; i++) {
        const test_tensor *t = &x->c->in[i];
        write_values(&x->in[i], t->scale ? t->number : t->value, t->count);
        snapshot(&x->in[i]);
        if (!t->scale)
            continue;
        write_values(&x->scales[i], t->scale, t->scales);
        snapshot(&x->scales[i]);
    }
    for (int o = 0; o < x->c->out_count; o++) {
        bool is_input = o == 0 && x->v->in_place >= 0;
        if (x->call.accumulate >> o & 1)
            write_values(&x->out[o], x->old[o], x->c->out[o].count);
        if (!is_input)
            snapshot(&x->out[o]);
        else
            memcpy(x->out[0].before, x->in[x->v->in_place].raw, x->out[0].bytes);
    }
    memset(x->workspace.raw, GUARD_BYTE, x->workspace.bytes);
    memset(x->workspace.raw + GUARD, POISON, x->workspace.bytes - 2 * GUARD);
    snapshot(&x->workspace);
}

/** Every buffer once: output 0 may be an input's. */
static int buffers(run *x, buffer **list)
{
    int count = 0;
    for (int i = 0; i < x->c->in_count; i++) {
        list[count++] = &x->in[i];
        if (x->c->in[i].scale)
            list[count++] = &x->scales[i];
    }
    for (int o = 0; o < x->c->out_count; o++)
        if (o > 0 || x->v->in_place < 0)
            list[count++] = &x->out[o];
    list[count++] = &x->workspace;
    return count;
}

/** Gives every buffer its mirror: data, behind the guard, aligned as the planner aligns. */
static void place_mirrors(run *x)
{
    static unsigned char *slab;
    static size_t slab_bytes;
    buffer *list[3 * MAX_TENSORS + 1];
    int count = buffers(x, list);
    size_t need = MIRROR_ALIGNMENT;
    for (int i = 0; i < count; i++)
        need += (list[i]->bytes / MIRROR_ALIGNMENT + 2) * MIRROR_ALIGNMENT;
    if (need > slab_bytes && !device->backend->host_memory) {
        mixt__device_free(device, slab);
        slab = mixt__device_alloc(device, need);
        slab_bytes = need;
    }
    size_t at = MIRROR_ALIGNMENT - GUARD;
    for (int i = 0; i < count; i++) {
        list[i]->device = device->backend->host_memory ? list[i]->raw : slab + at;
        at += (list[i]->bytes / MIRROR_ALIGNMENT + 1) * MIRROR_ALIGNMENT;
    }
    if (x->v->in_place >= 0)
        x->out[0].device = x->in[x->v->in_place].device;
}

static void *mirrored(const buffer *b)
{
    return b->device + ((unsigned char *)b->tensor.data - b->raw);
}

static mixt_status copy_mirrors(run *x, bool back)
{
    buffer *list[3 * MAX_TENSORS + 1];
    int count = device->backend->host_memory ? 0 : buffers(x, list);
    for (int i = 0; i < count; i++)
        MIXT_TRY(back ? mixt__device_download(device, list[i]->raw, list[i]->device, list[i]->bytes)
                      : mixt__device_upload(device, list[i]->device, list[i]->raw, list[i]->bytes));
    return MIXT_OK;
}

static mixt_status run_there(run *x, const mixt__kernel *kernel)
{
    MIXT_TRY(copy_mirrors(x, false));
    MIXT_TRY(kernel->run(&x->call));
    MIXT_TRY(mixt__device_synchronize(device));
    return copy_mirrors(x, true);
}

static bool run_once(run *x, const mixt__kernel *kernel, bool added)
{
    start(x);
    x->r->zero_hash = 1469598103934665603u;
    mixt_status status = run_there(x, kernel);
    if (status != MIXT_OK) {
        fail(x, "");
        snprintf(x->r->text, sizeof x->r->text, "run failed: %s", mixt_error_text());
    } else {
        check(x, added);
    }
    return x->r->outcome != OUTCOME_FAIL;
}

/** A second run over the same memory must give the same bits. */
static void run_again(run *x, const mixt__kernel *kernel)
{
    unsigned char *first[MAX_TENSORS] = {0};
    for (int o = 0; o < x->c->out_count; o++) {
        first[o] = take(x->out[o].bytes);
        memcpy(first[o], x->out[o].raw, x->out[o].bytes);
    }
    if (run_once(x, kernel, false))
        for (int o = 0; o < x->c->out_count; o++)
            if (memcmp(first[o], x->out[o].raw, x->out[o].bytes))
                fail(x, "a second run gave other bits");
    for (int o = 0; o < x->c->out_count; o++)
        free(first[o]);
}

/** The key that dropout reads, in the device's memory. */
static const uint64_t *rng_key(void)
{
    static const uint64_t key = 0x1234567;
    static uint64_t *there;
    if (device->backend->host_memory)
        return &key;
    if (!there) {
        there = mixt__device_alloc(device, sizeof key);
        mixt__device_upload(device, there, &key, sizeof key);
    }
    return there;
}

static uint32_t added_outputs(const test_case *c)
{
    return c->op->accumulate_outputs & ~c->never_added;
}

static void build(run *x)
{
    const test_case *c = x->c;
    const mixt__op *op = c->op;
    for (int i = 0; i < c->in_count; i++) {
        bool strided = op->strided_inputs >> i & 1 && !c->in[i].scale;
        make_buffer(&x->in[i], &c->in[i], c->in[i].dtype, strided ? x->v->inputs : LAYOUT_PLAIN);
        x->in_tensors[i] = x->in[i].tensor;
        if (!c->in[i].scale)
            continue;
        make_buffer(&x->scales[i], &(test_tensor){.shape = {1, {c->in[i].scales}}}, MIXT_DTYPE_FP32, LAYOUT_PLAIN);
        x->in_tensors[i].scale_kind = c->in[i].scale_kind;
    }
    for (int o = 0; o < c->out_count; o++) {
        bool param = x->v->param_grad && added_outputs(c) >> o & 1;
        make_buffer(&x->out[o], &c->out[o], param ? MIXT_DTYPE_FP32 : c->out[o].dtype,
                    op->strided_outputs >> o & 1 ? x->v->outputs : LAYOUT_PLAIN);
        if (param)
            x->old[o] = malloc((size_t)(c->out[o].count + 1) * sizeof(double));
        for (int64_t i = 0; x->old[o] && i < c->out[o].count; i++)
            x->old[o][i] = c->integers ? (double)(i % 7 - 3) : number_round(sin((double)i + 0.5), MIXT_DTYPE_FP32);
        x->out_tensors[o] = x->out[o].tensor;
    }
    if (x->v->in_place >= 0) { // the buffer of output 0 stays for its guards, but the data lies in the input's
        buffer *shared = &x->in[x->v->in_place];
        free(x->out[0].raw);
        x->out[0].raw = shared->raw;
        x->out[0].bytes = shared->bytes;
        x->out[0].tensor.data = x->out_tensors[0].data = shared->tensor.data;
    }
    x->call = (mixt__call){.op = op,
                           .attrs = &c->attrs,
                           .layer = "test",
                           .arithmetic = c->arithmetic,
                           .in_count = c->in_count,
                           .out_count = c->out_count,
                           .in = x->in_tensors,
                           .out = x->out_tensors,
                           .rng_key = rng_key()};
}

static void destroy(run *x)
{
    for (int i = 0; i < x->c->in_count; i++) {
        free(x->in[i].raw);
        free(x->in[i].before);
        free(x->scales[i].raw);
        free(x->scales[i].before);
    }
    for (int o = 0; o < x->c->out_count; o++) {
        if (o > 0 || x->v->in_place < 0)
            free(x->out[o].raw);
        free(x->out[o].before);
        free(x->old[o]);
    }
    free(x->workspace.raw);
    free(x->workspace.before);
    mixt__arena_free(&x->arena);
}

/** As the planner does it: without data, before memory is known. */
static bool prepare(run *x, const mixt__kernel *kernel)
{
    const char *reason = "no reason given";
    for (int i = 0; i < x->c->in_count; i++)
        x->in_tensors[i].data = NULL;
    for (int o = 0; o < x->c->out_count; o++)
        x->out_tensors[o].data = NULL;
    if (kernel->supports && !kernel->supports(&x->call, &reason)) {
        x->r->outcome = OUTCOME_REFUSED;
        snprintf(x->r->text, sizeof x->r->text, "%s", reason);
        return false;
    }
    if (kernel->prepare && kernel->prepare(&x->call, &x->arena) != MIXT_OK) {
        fail(x, "");
        snprintf(x->r->text, sizeof x->r->text, "prepare failed: %s", mixt_error_text());
        return false;
    }
    x->workspace.bytes = GUARD + x->call.workspace_bytes + GUARD;
    x->workspace.raw = take(x->workspace.bytes);
    x->workspace.before = take(x->workspace.bytes);
    place_mirrors(x);
    for (int i = 0; i < x->c->in_count; i++) {
        x->in_tensors[i].data = mirrored(&x->in[i]);
        x->in_tensors[i].scales = x->c->in[i].scale ? mirrored(&x->scales[i]) : NULL;
    }
    for (int o = 0; o < x->c->out_count; o++)
        x->out_tensors[o].data = mirrored(&x->out[o]);
    x->call.workspace = x->workspace.device + GUARD;
    return true;
}

bool variant_applies(const variant *v, const test_case *c, const oracle *o)
{
    bool strided = v->inputs != LAYOUT_PLAIN || v->outputs != LAYOUT_PLAIN;
    if (v->integers && !o->exact_integers)
        return false;
    if (v->param_grad && !added_outputs(c))
        return false;
    if (strided && !c->op->strided_inputs && !c->op->strided_outputs)
        return false;
    if (v->inputs == LAYOUT_PACKED && !c->op->matrix_work)
        return false;
    if (v->in_place < 0)
        return true;
    return v->in_place < c->in_count && c->op->in_place_inputs >> v->in_place & 1 &&
           c->in[v->in_place].dtype == c->out[0].dtype &&
           mixt__shape_equal(&c->in[v->in_place].shape, &c->out[0].shape);
}

void execute(const test_case *c, const mixt__kernel *kernel, const variant *v, result *r)
{
    run x = {.c = c, .v = v, .r = r};
    memset(r, 0, sizeof *r);
    mixt__threads_set(v->threads);
    build(&x);
    if (prepare(&x, kernel)) {
        if (c->strict && !x.call.tensor_cores)
            x.c = c->strict;
        bool good = run_once(&x, kernel, false);
        if (good && v->in_place < 0 && v->threads > 1)
            run_again(&x, kernel);
        if (v->param_grad && r->outcome != OUTCOME_FAIL) {
            x.call.accumulate = added_outputs(c);
            run_once(&x, kernel, true);
        }
        if (kernel->release)
            kernel->release(&x.call);
    }
    destroy(&x);
}
