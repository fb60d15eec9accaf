/* Products of operands in FP8: both are widened to BF16, in the workspace, and the engine multiplies them.
 *
 * CPUs have no units for FP8. A number of FP8 times a power of two is one of BF16, so widening rounds nothing, and what
 * comes out is what FP8 units that add in FP32 would give, but for the order of the sums. Bytes: what the engine moves,
 * and each operand once more, a byte in and two out.
 */
#include "backend/cpu/core/tensor.h"
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/quantise.h"

enum { INPUTS_MAX = 5, TILE = 512, GRAIN = 8192, ALIGNMENT = 64 };

extern const mixt__kernel mixt__matmul_packed;

static size_t widened_bytes(const mixt__tensor *t)
{
    size_t bytes = (size_t)mixt__shape_count(&t->shape) * sizeof(uint16_t);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/** The call with operands in BF16, whose numbers are, once they are widened, at the beginning of the workspace. */
static mixt__call on_bf16(const mixt__call *call, mixt__tensor in[INPUTS_MAX])
{
    mixt__call c = *call;
    char *at = call->workspace;
    memcpy(in, call->in, (size_t)call->in_count * sizeof *in);
    for (int k = 0; k < 2; k++) {
        in[k].dtype = MIXT_DTYPE_BF16;
        in[k].scale_kind = MIXT_SCALE_NONE;
        in[k].data = at;
        at = at ? at + widened_bytes(&call->in[k]) : NULL;
    }
    c.in = in;
    c.workspace = at;
    c.arithmetic = MIXT_DTYPE_BF16;
    return c;
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__tensor in[INPUTS_MAX];
    *reason = "for operands in FP8 only";
    if (!mixt__tensor_is_scaled(&call->in[0]) || !mixt__tensor_is_scaled(&call->in[1]))
        return false;
    mixt__call c = on_bf16(call, in);
    return mixt__matmul_packed.supports(&c, reason);
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__tensor in[INPUTS_MAX];
    mixt__call c = on_bf16(call, in);
    MIXT_TRY(mixt__matmul_packed.prepare(&c, arena));
    call->state = c.state;
    call->workspace_bytes = c.workspace_bytes + widened_bytes(&call->in[0]) + widened_bytes(&call->in[1]);
    return MIXT_OK;
}

typedef struct widening {
    const mixt__tensor *src;
    uint16_t *dst;
} widening;

static void widen_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const widening *w = argument;
    mixt__narrow_fn *narrow = mixt__narrow(MIXT_DTYPE_BF16);
    float tile[TILE];
    (void)thread;
    for (int64_t i = begin; i < end; i += TILE) {
        int64_t count = end - i < TILE ? end - i : TILE;
        mixt__dequantise(tile, (const char *)w->src->data + i, w->src->dtype, count, w->src->scales[0]);
        narrow(w->dst + i, tile, count);
    }
}

static mixt_status run(const mixt__call *call)
{
    mixt__tensor in[INPUTS_MAX];
    mixt__call c = on_bf16(call, in);
    for (int k = 0; k < 2; k++) {
        widening w = {.src = &call->in[k], .dst = in[k].data};
        mixt__parallel(mixt__shape_count(&in[k].shape), GRAIN, widen_range, &w);
    }
    return mixt__matmul_packed.run(&c);
}

const mixt__kernel mixt__matmul_widened = {.name = "widened", .supports = supports, .prepare = prepare, .run = run};
