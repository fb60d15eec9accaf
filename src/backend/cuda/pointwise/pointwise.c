/* Pointwise programs compiled at plan time; the interpreter stands behind them. Bytes moved: each tensor once. */
#include "backend/cuda/pointwise/pointwise.h"

#include "backend/cuda/core/jit.h"
#include "backend/cuda/kernels.h"
#include "base/alloc.h"
#include "base/status.h"

typedef struct prepared {
    const void *kernels[2]; // vector, scalar
    mixt__pw_cut cut;
    int64_t count;
    uint32_t repeated; // bit i: input i is read element by element even by the vector kernel
} prepared;

static bool known(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_FP32 || dtype == MIXT_DTYPE_FP16 || dtype == MIXT_DTYPE_BF16;
}

/** FP8 is only ever read: what is kept in it was rounded by a scaled_cast. */
static bool readable(mixt_dtype dtype)
{
    return known(dtype) || dtype == MIXT_DTYPE_FP8_E4M3;
}

static bool compile(const mixt__call *call, prepared *p, const char **reason)
{
    static const char *const names[2] = {"pw_vector", "pw_scalar"};
    mixt__pw_domain domain;
    mixt__pw_domain_of(call, &domain);
    p->cut = mixt__pw_cut_of(call, &domain, mixt__cuda_of(call)->multiprocessors);
    p->count = domain.count;
    for (int i = 0; i < call->in_count; i++)
        if (!domain.strides[i][domain.rank - 1])
            p->repeated |= 1u << i;
    if (domain.count == 0)
        return true;
    *reason = "no memory for the program's text";
    int sm = mixt__cuda_of(call)->sm;
    char *text = mixt__pw_text(call, &domain, p->cut, sm);
    bool good = text && mixt__jit_kernels(sm, text, names, 2, p->kernels, reason);
    mixt__free(text);
    return good;
}

/** Compiles already here: where that fails, the interpreter is chosen. */
static bool supports(const mixt__call *call, const char **reason)
{
    prepared p = {.count = 0};
    for (int i = 0; i < call->in_count; i++)
        if (!readable(call->in[i].dtype) || !call->in[i].contiguous) {
            *reason = "an input is strided or of a rare format";
            return false;
        }
    for (int o = 0; o < call->out_count; o++)
        if (!known(call->out[o].dtype)) {
            *reason = "an output is of a rare format";
            return false;
        }
    return compile(call, &p, reason);
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    prepared *p = mixt__arena_alloc(arena, sizeof *p);
    const char *reason = "";
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to prepare a pointwise program");
    if (!compile(call, p, &reason))
        return mixt__fail(MIXT_ERROR_DEVICE, "a pointwise program does not compile: %s", reason);
    call->state = p;
    return MIXT_OK;
}

static bool aligned(const mixt__tensor *t, int vector)
{
    size_t bytes = mixt_dtype_size(t->dtype) * (size_t)vector;
    return (uintptr_t)t->data % (bytes < 16 ? bytes : 16) == 0;
}

static mixt_status run(const mixt__call *call)
{
    const prepared *p = call->state;
    mixt__pw_arguments arguments = {.rng_key = call->rng_key, .count = (uint64_t)p->count};
    bool vectors = p->cut.vector > 1;
    if (p->count == 0)
        return MIXT_OK;
    for (int i = 0; i < call->in_count; i++) {
        arguments.in[i] = call->in[i].data;
        vectors = vectors && (p->repeated >> i & 1 || aligned(&call->in[i], p->cut.vector));
    }
    for (int o = 0; o < call->out_count; o++) {
        arguments.out[o] = call->out[o].data;
        vectors = vectors && aligned(&call->out[o], p->cut.vector);
    }
    int64_t work = vectors ? p->count / p->cut.vector : p->count;
    int64_t blocks = mixt__ceil_div(work, (int64_t)MIXT_PW_THREADS * p->cut.unroll);
    void *list[] = {&arguments};
    return mixt__cuda_check(cudaLaunchKernel(p->kernels[vectors ? 0 : 1], (dim3){(unsigned)(blocks ? blocks : 1), 1, 1},
                                             (dim3){MIXT_PW_THREADS, 1, 1}, list, 0, mixt__cuda_of(call)->stream),
                            "pointwise");
}

static const mixt__kernel compiled = {.name = "compiled", .supports = supports, .prepare = prepare, .run = run};

const mixt__kernel *const mixt__cuda_pointwise_kernels[] = {&compiled, &mixt__cuda_pointwise_plain, NULL};
