/* A teacher's parameters: given once, read by the step, never written. One block holds each of them in the formats in
 * which the compiled graph reads it and no other: of a teacher in BF16 there is no FP32 master.
 */
#include "runtime/params.h"

#include "num/num.h"

enum { ALIGNMENT = 64 };

static size_t padded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/** Whether a graph reads a parameter in this format. */
static bool is_read(const mixt__param *param, mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_FP32 ? param->value : param->low[dtype];
}

mixt_status mixt__params_lay_out_fixed(mixt__params *p, const mixt__graph *graph)
{
    size_t before = p->fixed_bytes;
    bool again = p->fixed;
    if (!again)
        p->fixed = mixt__alloc((size_t)(p->fixed_count + 1) * sizeof *p->fixed);
    if (!p->fixed)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the table of a teacher's parameters");
    p->fixed_bytes = 0;
    for (int64_t i = 0; i < p->fixed_count; i++)
        for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
            const mixt__param *param = &graph->params[p->count + i];
            bool read = is_read(param, (mixt_dtype)d);
            p->fixed[i].offset[d] = read ? (int64_t)p->fixed_bytes : -1;
            p->fixed_bytes += read ? padded((size_t)param->count * mixt_dtype_size((mixt_dtype)d)) : 0;
        }
    if (again && before != p->fixed_bytes)
        return mixt__fail(MIXT_ERROR_INTERNAL, "the teacher's parameters take %zu bytes, not %zu", p->fixed_bytes,
                          before);
    return MIXT_OK;
}

mixt_status mixt__params_give(mixt__params *p, int64_t index, const float *values)
{
    int64_t count = p->table[p->count + index].count;
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        int64_t offset = p->fixed[index].offset[d];
        size_t bytes = (size_t)count * mixt_dtype_size((mixt_dtype)d);
        if (offset < 0)
            continue;
        void *rounded = mixt__alloc_uninit(bytes);
        if (!rounded)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to round a teacher's parameter");
        mixt__narrow((mixt_dtype)d)(rounded, values, count);
        mixt_status status = mixt__device_upload(p->device, p->fixed_block + offset, rounded, bytes);
        mixt__free(rounded);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}

void *mixt__params_fixed_address(const mixt__params *p, int32_t param, mixt_dtype dtype)
{
    return p->fixed_block + p->fixed[param - p->count].offset[dtype];
}
