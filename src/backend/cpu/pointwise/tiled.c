/* Pointwise programs, tile by tile: each instruction is one vector loop over a tile that stays in the L1 cache.
 *
 * prepare() decides where every operand of the program lies during a tile: in the tensor itself (FP32 of the domain's
 * shape), or in a slot, a tile of FP32 that inputs are widened or spread into and results are put in. Slots are reused
 * after the last use of what they hold. Bytes moved are those of the inputs and outputs, each once.
 *
 * Threads split the domain at multiples of `grain`; which thread computes an element never changes its bits.
 */
#include "backend/cpu/kernels.h"
#include "backend/cpu/pointwise/pointwise.h"
#include "base/rng.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>

enum {
    NO_SLOT = -1,
    SHORT_TILE = 512, // elements; programs with few slots take twice that
    SLOTS = 2 * MIXT_PW_MAX_INPUTS + MIXT_PW_MAX_INSTRS,
    PADDING = 16, // between slots, so that they do not start at the same place of a page
    FEW_SLOTS = 6,
    OPERANDS = MIXT_PW_MAX_INPUTS + MIXT_PW_MAX_INSTRS,
};

/** How an input covers the domain. */
typedef enum spread {
    SPREAD_LINEAR, // element by element
    SPREAD_ONE,    // one number
    SPREAD_PERIOD, // a vector repeated: a bias
    SPREAD_ANY,
} spread;

typedef struct source {
    spread spread;
    bool repeated; // SPREAD_PERIOD no longer than a tile: written out once for a tile at any phase
    int64_t period;
    mixt__shape domain; // SPREAD_ANY: the domain with neighbouring dimensions merged, and the input's steps in it
    int64_t strides[MIXT_MAX_RANK];
    mixt__widen_fn *widen;
    int last_use; // instruction, or the number of instructions when an output stores it
} source;

typedef struct program {
    source in[MIXT_PW_MAX_INPUTS];
    mixt__pw_instr instrs[MIXT_PW_MAX_INSTRS];
    int outs[MIXT_PW_MAX_OUTPUTS];
    int slot[OPERANDS];
    mixt__pw_loop *loop[MIXT_PW_MAX_INSTRS];
    mixt__narrow_fn *narrow[MIXT_PW_MAX_OUTPUTS];
    int64_t tile, count, grain;
    bool whole; // one loop does it all, straight on the tensors
} program;

/* ---- preparation ---- */

uint32_t mixt__pw_dropout_threshold(float rate)
{
    return (uint32_t)ceil((double)rate * 0x1p24);
}

uint64_t mixt__pw_dropout_key(uint64_t rng_key, uint32_t stream)
{
    return mixt__rng_key(rng_key, stream, 0);
}

float mixt__pw_dropout_scale(float rate)
{
    return (float)(1.0 / (1.0 - (double)rate));
}

const mixt__pw_loops *mixt__pw_loops_at(mixt__isa level)
{
    return level >= MIXT_ISA_AVX512 ? &mixt__pw_loops_avx512
           : level >= MIXT_ISA_AVX2 ? &mixt__pw_loops_avx2
                                    : &mixt__pw_loops_scalar;
}

/** Merges dimensions that an input walks through alike, and names the pattern that is left. */
static void classify(source *s, const mixt__shape *domain, const mixt__tensor *in)
{
    mixt__shape merged = {0};
    int lead = domain->rank - in->shape.rank;
    for (int d = 0; d < domain->rank; d++) {
        int64_t size = domain->dims[d], stride = d >= lead && in->shape.dims[d - lead] != 1 ? in->strides[d - lead] : 0;
        int last = merged.rank - 1;
        if (size == 1)
            continue;
        if (last >= 0 && s->strides[last] == stride * size) {
            merged.dims[last] *= size;
            s->strides[last] = stride;
            continue;
        }
        merged.dims[merged.rank] = size;
        s->strides[merged.rank++] = stride;
    }
    s->domain = merged;
    s->spread = SPREAD_ANY;
    if (merged.rank == 0 || (merged.rank == 1 && s->strides[0] == 1))
        s->spread = SPREAD_LINEAR;
    else if (merged.rank == 1 && s->strides[0] == 0)
        s->spread = SPREAD_ONE;
    else if (merged.rank == 2 && s->strides[0] == 0 && s->strides[1] == 1)
        s->spread = SPREAD_PERIOD;
    s->period = merged.rank ? merged.dims[merged.rank - 1] : 1;
    s->widen = mixt__widen(in->dtype);
}

/** Copies need no instruction: everyone reads what they copy. */
static int resolve(const mixt__pointwise_attrs *at, int operand)
{
    while (operand >= at->in_count && at->instrs[operand - at->in_count].code == MIXT_PW_COPY)
        operand = at->instrs[operand - at->in_count].a;
    return operand;
}

static void resolve_all(program *p, const mixt__pointwise_attrs *at, int *last_use)
{
    for (int k = 0; k < at->instr_count; k++) {
        mixt__pw_instr in = at->instrs[k];
        int *operands[3] = {&in.a, &in.b, &in.c};
        for (int i = 0; i < mixt__pw_operands[in.code]; i++) {
            *operands[i] = resolve(at, *operands[i]);
            if (in.code != MIXT_PW_COPY)
                last_use[*operands[i]] = k;
        }
        p->instrs[k] = in;
    }
    for (int o = 0; o < at->out_count; o++) {
        p->outs[o] = resolve(at, at->outs[o]);
        last_use[p->outs[o]] = at->instr_count;
    }
    for (int i = 0; i < at->in_count; i++)
        p->in[i].last_use = last_use[i];
}

static int take_slots(bool *taken, int *highest, int wanted)
{
    int slot = 0;
    while (taken[slot] || (wanted == 2 && taken[slot + 1]))
        slot++;
    for (int i = 0; i < wanted; i++)
        taken[slot + i] = true;
    if (*highest < slot + wanted)
        *highest = slot + wanted;
    return slot;
}

/** Places every operand; returns how many slots that needs. */
static int assign_slots(program *p, const mixt__call *call, const int *last_use)
{
    const mixt__pointwise_attrs *at = call->attrs;
    bool taken[SLOTS + 1] = {false};
    int highest = 0;
    for (int i = 0; i < OPERANDS; i++)
        p->slot[i] = NO_SLOT;
    for (int i = 0; i < at->in_count; i++) {
        source *s = &p->in[i];
        // an input that an output stores as it is must survive stores to other outputs: it gets a copy
        bool stored = s->last_use == at->instr_count && at->out_count > 1;
        s->repeated = s->spread == SPREAD_PERIOD && s->period <= SHORT_TILE;
        if (s->spread != SPREAD_LINEAR || call->in[i].dtype != MIXT_DTYPE_FP32 || stored)
            p->slot[i] = take_slots(taken, &highest, s->repeated ? 2 : 1);
    }
    for (int k = 0; k < at->instr_count; k++) {
        if (p->instrs[k].code == MIXT_PW_COPY)
            continue;
        for (int v = 0; v < at->in_count + k; v++) { // a result may take the place of an operand that ends here
            bool constant = v < at->in_count && (p->in[v].spread == SPREAD_ONE || p->in[v].repeated);
            if (p->slot[v] != NO_SLOT && last_use[v] == k && !constant)
                taken[p->slot[v]] = false;
        }
        p->slot[at->in_count + k] = take_slots(taken, &highest, 1);
    }
    return highest;
}

static bool all_linear(const program *p, const mixt__call *call, mixt_dtype dtype)
{
    for (int i = 0; i < call->in_count; i++)
        if (p->in[i].spread != SPREAD_LINEAR || call->in[i].dtype != dtype)
            return false;
    return call->out[0].dtype == dtype;
}

/** One instruction on tensors of one format that has loops of its own needs no tiles. */
static bool whole_program(const program *p, const mixt__call *call)
{
    const mixt__pointwise_attrs *at = call->attrs;
    if (at->instr_count != 1 || at->out_count != 1 || at->instrs[0].code == MIXT_PW_COPY || at->outs[0] != at->in_count)
        return false;
    return all_linear(p, call, MIXT_DTYPE_FP32) || all_linear(p, call, MIXT_DTYPE_BF16);
}

static int64_t cost(const mixt__pointwise_attrs *at)
{
    int64_t sum = at->in_count;
    for (int k = 0; k < at->instr_count; k++) {
        mixt__pw_code code = at->instrs[k].code;
        bool heavy = (code >= MIXT_PW_GELU && code <= MIXT_PW_SQRT) || code == MIXT_PW_DROPOUT || code == MIXT_PW_DIV ||
                     code == MIXT_PW_RECIPROCAL || code >= MIXT_PW_SIN;
        sum += heavy ? 8 : 1;
    }
    return sum;
}

static bool supports(const mixt__call *call, const char **reason)
{
    *reason = "a number format without array conversions";
    for (int i = 0; i < call->in_count; i++)
        if (!mixt__widen(call->in[i].dtype))
            return false;
    for (int o = 0; o < call->out_count; o++)
        if (!mixt__narrow(call->out[o].dtype))
            return false;
    return true;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    const mixt__pointwise_attrs *at = call->attrs;
    program *p = mixt__arena_alloc(arena, sizeof *p);
    int last_use[OPERANDS] = {0};
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a pointwise program");
    for (int i = 0; i < OPERANDS; i++)
        last_use[i] = -1;
    for (int i = 0; i < at->in_count; i++)
        classify(&p->in[i], &call->out[0].shape, &call->in[i]);
    resolve_all(p, at, last_use);
    p->tile = assign_slots(p, call, last_use) <= FEW_SLOTS ? 2 * SHORT_TILE : SHORT_TILE;
    p->count = mixt__shape_count(&call->out[0].shape);
    p->whole = whole_program(p, call);
    const mixt__pw_loops *loops = mixt__pw_loops_at(mixt__isa_level());
    for (int k = 0; k < at->instr_count; k++)
        p->loop[k] = p->whole && call->out[0].dtype == MIXT_DTYPE_BF16 ? loops->bf16[at->instrs[k].code]
                                                                       : loops->fp32[at->instrs[k].code];
    for (int o = 0; o < at->out_count; o++)
        p->narrow[o] = mixt__narrow(call->out[o].dtype);
    int64_t tiles = 32 / cost(at); // a thread gets work for some ten microseconds or is not woken
    p->grain = 2 * SHORT_TILE * (tiles > 1 ? tiles : 1);
    call->state = p;
    return MIXT_OK;
}

/* ---- a tile ---- */

/** A run in progress: where results may go straight into an output. */
typedef struct job {
    const mixt__call *call;
    const program *p;
    int direct[MIXT_PW_MAX_INSTRS]; // the output that instruction k writes itself, or -1
    bool done[MIXT_PW_MAX_OUTPUTS]; // outputs so written
    uint64_t dropout_key[MIXT_PW_MAX_INSTRS];
} job;

static const char *element_address(const mixt__tensor *t, int64_t index)
{
    return (const char *)t->data + (size_t)index * mixt_dtype_size(t->dtype);
}

/** Elements [index, index + count) of a repeated vector. */
static void load_period(float *dst, const source *s, const mixt__tensor *in, int64_t index, int64_t count)
{
    while (count > 0) {
        int64_t phase = index % s->period, run = s->period - phase < count ? s->period - phase : count;
        s->widen(dst, element_address(in, phase), run);
        dst += run;
        index += run;
        count -= run;
    }
}

/** Any broadcast: run by run along the innermost merged dimension. */
static void load_any(float *dst, const source *s, const mixt__tensor *in, int64_t index, int64_t count)
{
    int inner = s->domain.rank - 1;
    while (count > 0) {
        int64_t rest = index / s->period, phase = index % s->period, offset = phase * s->strides[inner];
        int64_t run = s->period - phase < count ? s->period - phase : count;
        for (int d = inner - 1; d >= 0; d--) {
            offset += rest % s->domain.dims[d] * s->strides[d];
            rest /= s->domain.dims[d];
        }
        if (s->strides[inner] == 1) {
            s->widen(dst, element_address(in, offset), run);
        } else {
            float value;
            s->widen(&value, element_address(in, offset), 1);
            for (int64_t i = 0; i < run; i++)
                dst[i] = value;
        }
        dst += run;
        index += run;
        count -= run;
    }
}

static float *slot_at(float *slots, const program *p, int slot)
{
    return slots + slot * (p->tile + PADDING);
}

/** What does not change from tile to tile. */
static void load_constants(const job *j, float *slots)
{
    for (int i = 0; i < j->call->in_count; i++) {
        const source *s = &j->p->in[i];
        float *dst = j->p->slot[i] == NO_SLOT ? NULL : slot_at(slots, j->p, j->p->slot[i]);
        int64_t tile = j->p->tile < j->p->count ? j->p->tile : j->p->count;
        if (s->repeated)
            load_period(dst, s, &j->call->in[i], 0, tile + s->period);
        else if (s->spread == SPREAD_ONE)
            load_any(dst, s, &j->call->in[i], 0, tile);
    }
}

/** Makes one input of a tile readable as FP32; returns where. */
static const float *load_input(const job *j, int i, float *slots, int64_t index, int64_t count)
{
    const source *s = &j->p->in[i];
    const mixt__tensor *in = &j->call->in[i];
    if (j->p->slot[i] == NO_SLOT)
        return (const float *)in->data + index;
    float *dst = slot_at(slots, j->p, j->p->slot[i]);
    if (s->spread == SPREAD_ONE)
        return dst;
    if (s->repeated)
        return dst + index % s->period;
    if (s->spread == SPREAD_LINEAR)
        s->widen(dst, element_address(in, index), count);
    else if (s->spread == SPREAD_ANY)
        load_any(dst, s, in, index, count);
    else if (in->dtype == MIXT_DTYPE_FP32 && index % s->period + count <= s->period)
        return (const float *)in->data + index % s->period;
    else
        load_period(dst, s, in, index, count);
    return dst;
}

static void run_tile(const job *j, float *slots, int64_t index, int64_t count)
{
    const program *p = j->p;
    const mixt__pointwise_attrs *at = j->call->attrs;
    const float *operand[OPERANDS];
    for (int i = 0; i < at->in_count; i++)
        operand[i] = load_input(j, i, slots, index, count);
    for (int k = 0; k < at->instr_count; k++) {
        const mixt__pw_instr *in = &p->instrs[k];
        int operands = mixt__pw_operands[in->code];
        if (in->code == MIXT_PW_COPY)
            continue;
        float *dst = j->direct[k] >= 0 ? (float *)j->call->out[j->direct[k]].data + index
                                       : slot_at(slots, p, p->slot[at->in_count + k]);
        mixt__pw_span span = {.dst = dst, .count = count, .imm = in->imm, .imm2 = in->imm2, .index = index};
        span.a = operand[in->a];
        span.b = operands > 1 ? operand[in->b] : NULL;
        span.c = operands > 2 ? operand[in->c] : NULL;
        span.key = j->dropout_key[k];
        p->loop[k](&span);
        operand[at->in_count + k] = dst;
    }
    for (int o = 0; o < at->out_count; o++)
        if (!j->done[o])
            p->narrow[o]((char *)element_address(&j->call->out[o], index), operand[p->outs[o]], count);
}

/* ---- a run ---- */

static void run_tiles(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    _Alignas(64) float slots[SLOTS * (SHORT_TILE + PADDING)];
    (void)thread;
    load_constants(j, slots);
    for (int64_t i = begin; i < end; i += j->p->tile)
        run_tile(j, slots, i, end - i < j->p->tile ? end - i : j->p->tile);
}

static void run_whole(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__pw_instr *in = &j->p->instrs[0];
    const mixt__tensor *t = j->call->in;
    int operands = mixt__pw_operands[in->code];
    (void)thread;
    mixt__pw_span span = {
        .count = end - begin, .imm = in->imm, .imm2 = in->imm2, .index = begin, .key = j->dropout_key[0]};
    span.dst = (char *)element_address(&j->call->out[0], begin);
    span.a = element_address(&t[in->a], begin);
    span.b = operands > 1 ? element_address(&t[in->b], begin) : NULL;
    span.c = operands > 2 ? element_address(&t[in->c], begin) : NULL;
    j->p->loop[0](&span);
}

/** An instruction may write an FP32 output itself unless that output is the memory of an input still to be read. */
static void find_direct(job *j)
{
    const mixt__pointwise_attrs *at = j->call->attrs;
    for (int k = 0; k < at->instr_count; k++)
        j->direct[k] = -1;
    for (int o = 0; o < at->out_count; o++) {
        int k = j->p->outs[o] - at->in_count;
        bool possible = k >= 0 && j->direct[k] < 0 && j->call->out[o].dtype == MIXT_DTYPE_FP32;
        for (int i = 0; i < at->in_count && possible; i++)
            possible = j->call->in[i].data != j->call->out[o].data || j->p->in[i].last_use <= k;
        if (possible) {
            j->direct[k] = o;
            j->done[o] = true;
        }
    }
}

static mixt_status run(const mixt__call *call)
{
    const mixt__pointwise_attrs *at = call->attrs;
    job j = {.call = call, .p = call->state};
    for (int k = 0; k < at->instr_count; k++)
        if (at->instrs[k].code == MIXT_PW_DROPOUT)
            j.dropout_key[k] = mixt__pw_dropout_key(*call->rng_key, at->instrs[k].key);
    if (!j.p->whole)
        find_direct(&j);
    mixt__parallel(j.p->count, j.p->grain, j.p->whole ? run_whole : run_tiles, &j);
    return MIXT_OK;
}

const mixt__kernel mixt__cpu_pointwise_tiled = {.name = "tiled", .supports = supports, .prepare = prepare, .run = run};
