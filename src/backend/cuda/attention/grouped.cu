/* Grouped heads in the gradient of attention: each kernel makes grad_k and grad_v for every head of q, in workspace,
 * and one pass adds up those of a group, in order and in FP32.
 *
 * A thread takes 16 bytes of a head of k and v. Bytes: what the kernels wrote, once, and grad_k and grad_v.
 */
#include "backend/cuda/attention/attention.h"
#include "backend/cuda/core/pack.cuh"

enum { THREADS = 256, ALIGNMENT = 256 };

typedef struct job {
    void *full[2];                         // of k and v or their gradients: (B, S, heads · dim)
    void *shared[2];                       // (B, S, heads / group · dim) by strides
    int64_t batch[2], row[2];              // those
    int64_t rows, keys, width, dim, group; // rows: B · S; width: of a row of `shared`
} job;

/** What a thread takes of a row. */
typedef struct place {
    int64_t row, column, first; // first: of the first head of the group, in a row of `full`
} place;

template <int V> static __device__ __forceinline__ place place_of(const job &j)
{
    int64_t packs = j.width / V, at = (int64_t)blockIdx.x * THREADS + threadIdx.x, column = at % packs * V;
    return {at / packs, column, column / j.dim * j.group * j.dim + column % j.dim};
}

static __device__ __forceinline__ int64_t shared_at(const job &j, const place &at, int which)
{
    return at.row / j.keys * j.batch[which] + at.row % j.keys * j.row[which] + at.column;
}

/** V divides dim, so that no pack lies in two heads. */
template <typename T, int V> static __global__ void __launch_bounds__(THREADS) add_groups(const job j)
{
    place at = place_of<V>(j);
    if (at.row >= j.rows)
        return;
    for (int which = 0; which < 2; which++) {
        float sum[V] = {};
        for (int64_t m = 0; m < j.group; m++) {
            float part[V];
            unpack(part, load<T, V>(j.full[which], at.row * j.width * j.group + at.first + m * j.dim));
            for (int i = 0; i < V; i++)
                sum[i] += part[i];
        }
        store<T, V>(j.shared[which], shared_at(j, at, which), sum);
    }
}

template <typename T, int V> static __global__ void __launch_bounds__(THREADS) repeat_heads(const job j)
{
    place at = place_of<V>(j);
    if (at.row >= j.rows)
        return;
    for (int which = 0; which < 2; which++) {
        float x[V];
        unpack(x, load<T, V>(j.shared[which], shared_at(j, at, which)));
        for (int64_t m = 0; m < j.group; m++)
            store<T, V>(j.full[which], at.row * j.width * j.group + at.first + m * j.dim, x);
    }
}

template <typename T, int V> static void launch(const mixt__cuda_device *gpu, const job &j, bool repeat)
{
    unsigned blocks = (unsigned)mixt__ceil_div(j.rows * (j.width / V), THREADS);
    if (blocks && repeat)
        repeat_heads<T, V><<<blocks, THREADS, 0, gpu->stream>>>(j);
    else if (blocks)
        add_groups<T, V><<<blocks, THREADS, 0, gpu->stream>>>(j);
}

/** `shared`: the tensors with the heads of k and v, `full` those with the heads of q. */
static mixt_status move(const mixt__call *call, const mixt__tensor *shared, void *const *full, bool repeat)
{
    mixt__heads s = mixt__heads_of(call);
    job j = {};
    int64_t size = (int64_t)mixt_dtype_size(call->in[0].dtype);
    bool vectors = s.dim % (16 / size) == 0;
    for (int i = 0; i < 2; i++) {
        const mixt__tensor *t = &shared[i];
        j.full[i] = full[i];
        j.shared[i] = t->data;
        j.batch[i] = t->strides[0];
        j.row[i] = t->strides[1];
        vectors = vectors && aligned16(t->data) && (t->strides[0] | t->strides[1]) * size % 16 == 0;
    }
    j.keys = s.keys;
    j.rows = s.batch * s.keys;
    j.dim = s.dim;
    j.group = s.group;
    j.width = s.count / s.group * s.dim;
    if (vectors)
        DISPATCH(call->in[0].dtype, T, (launch<T, vec16<T>::size>(mixt__cuda_of(call), j, repeat)));
    else
        DISPATCH(call->in[0].dtype, T, (launch<T, 1>(mixt__cuda_of(call), j, repeat)));
    return mixt__cuda_launched("attention");
}

extern "C" size_t mixt__attention_full_bytes(const mixt__call *call)
{
    const mixt__tensor *k = &call->in[1];
    size_t bytes = (size_t)(mixt__tensor_count(k) * mixt__heads_of(call).group) * mixt_dtype_size(k->dtype);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/** As if the tensor had the heads of q, one behind the other. */
static void widen_heads(mixt__tensor *t, int64_t group)
{
    t->data = NULL;
    t->shape.dims[2] *= group;
    t->strides[2] = 1;
    t->strides[1] = t->shape.dims[2];
    t->strides[0] = t->shape.dims[1] * t->strides[1];
    t->contiguous = true;
}

extern "C" mixt__call mixt__attention_spread(const mixt__call *call, mixt__tensor out[3])
{
    mixt__call spread = *call;
    int64_t group = mixt__heads_of(call).group;
    if (group == 1)
        return spread;
    for (int o = 0; o < 3; o++) {
        out[o] = call->out[o];
        if (o)
            widen_heads(&out[o], group);
    }
    spread.out = out;
    return spread;
}

extern "C" mixt__call mixt__attention_repeat(const mixt__call *call, mixt__tensor in[6])
{
    mixt__call repeated = *call;
    for (int i = 0; i < call->in_count; i++) {
        in[i] = call->in[i];
        if (i == 1 || i == 2)
            widen_heads(&in[i], mixt__heads_of(call).group);
    }
    repeated.in = in;
    return repeated;
}

extern "C" mixt_status mixt__attention_copy_keys(const mixt__call *call, void *const full[2])
{
    return move(call, &call->in[1], full, true);
}

extern "C" void mixt__attention_grouped_room(mixt__call *call)
{
    if (mixt__heads_of(call).group > 1)
        call->workspace_bytes =
            (call->workspace_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + 2 * mixt__attention_full_bytes(call);
}

extern "C" mixt_status mixt__attention_grouped(const mixt__call *call, mixt_status (*run)(const mixt__call *call))
{
    mixt__tensor out[3];
    size_t bytes = mixt__attention_full_bytes(call);
    // In a call that is spread already, q and grad_k have the same heads.
    if (mixt__heads_of(call).group == 1 || call->out[1].shape.dims[2] == call->in[0].shape.dims[2])
        return run(call);
    mixt__call spread = mixt__attention_spread(call, out);
    out[1].data = (char *)call->workspace + call->workspace_bytes - 2 * bytes;
    out[2].data = (char *)out[1].data + bytes;
    MIXT_TRY(run(&spread));
    void *full[2] = {out[1].data, out[2].data};
    return move(call, &call->out[1], full, false);
}
