/* Pointwise programs and accumulation into parameter gradients: the lists of candidates, and the simple ones. */
#include "backend/cpu/pointwise/pointwise.h"

#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

/* ---- a change of format alone ---- */

static bool convert_supports(const mixt__call *call, const char **reason)
{
    const mixt__pointwise_attrs *at = call->attrs;
    *reason = "only for a copy of a tensor of the same shape";
    return at->in_count == 1 && at->instr_count == 1 && at->out_count == 1 && at->instrs[0].code == MIXT_PW_COPY &&
           mixt__shape_count(&call->in[0].shape) == mixt__shape_count(&call->out[0].shape);
}

static mixt_status convert_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    return mixt_convert(dst->data, dst->dtype, src->data, src->dtype, mixt__shape_count(&dst->shape), NULL);
}

static const mixt__kernel convert = {.name = "convert", .supports = convert_supports, .run = convert_run};

const mixt__kernel *const mixt__cpu_pointwise_kernels[] = {&convert, &mixt__cpu_pointwise_tiled,
                                                           &mixt__cpu_pointwise_plain, NULL};

/* ---- accumulate: src of any float format into an FP32 gradient ---- */

enum { ADD_TILE = 1024, ADD_GRAIN = 16384 };

static void add_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__tensor *src = &call->in[0];
    mixt__widen_fn *widen = mixt__widen(src->dtype);
    mixt__pw_loop *add = mixt__pw_loops_at(mixt__isa_level())->fp32[MIXT_PW_ADD];
    float *dst = call->out[0].data, tile[ADD_TILE];
    (void)thread;
    for (int64_t i = begin; i < end; i += ADD_TILE) {
        int64_t count = end - i < ADD_TILE ? end - i : ADD_TILE;
        const char *from = (const char *)src->data + (size_t)i * mixt_dtype_size(src->dtype);
        if (!(call->accumulate & 1)) {
            widen(dst + i, from, count);
            continue;
        }
        if (src->dtype != MIXT_DTYPE_FP32)
            widen(tile, from, count);
        const void *addend = src->dtype == MIXT_DTYPE_FP32 ? (const void *)from : tile;
        add(&(mixt__pw_span){.dst = dst + i, .a = dst + i, .b = addend, .count = count});
    }
}

static mixt_status add_run(const mixt__call *call)
{
    mixt__parallel(mixt__shape_count(&call->out[0].shape), ADD_GRAIN, add_range, (void *)call);
    return MIXT_OK;
}

static mixt_status plain_add_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0];
    float *dst = call->out[0].data;
    for (int64_t i = 0; i < mixt__shape_count(&src->shape); i++)
        dst[i] = (call->accumulate & 1 ? dst[i] : 0.0f) + mixt__load(src->data, src->dtype, i);
    return MIXT_OK;
}

static const mixt__kernel add_tiled = {.name = "tiled", .run = add_run},
                          add_plain = {.name = "plain", .run = plain_add_run};

const mixt__kernel *const mixt__cpu_accumulate_kernels[] = {&add_tiled, &add_plain, NULL};
