/* Thread-block clusters for the recurrence: a block's messages into the shared memory of its neighbours.
 *
 * A message is an asynchronous store that counts its bytes on a barrier of the receiver; a receiver waits until all
 * bytes of a step have come. Buffers and barriers alternate between two: a block can send for step n + 2 only when it
 * has all messages of step n + 1, and each block sends those after it has read step n, so nothing is overwritten early
 * and no other synchronisation is needed.
 */
#ifndef MIXT_BACKEND_CUDA_RECURRENT_CLUSTER_CUH
#define MIXT_BACKEND_CUDA_RECURRENT_CLUSTER_CUH

#include "backend/cuda/recurrent/cells.cuh"

enum {
    CLUSTER_SLOTS = 32,    // of a block: all four sums of them
    CLUSTER_SEQUENCES = 8, // of a cluster: what one Tensor Core product takes at the least
    CLUSTER_THREADS = CLUSTER_SLOTS * CLUSTER_SEQUENCES,
    CLUSTER_BLOCKS = 16, // of a cluster, at most
    CLUSTER_UNITS = 512, // hidden size, at most
    CLUSTER_AHEAD = 6,   // steps between the prefetch into L2 and its use
};

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void prefetch_l2(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

static __device__ __forceinline__ uint32_t cluster_rank()
{
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ uint32_t cluster_size()
{
    uint32_t size;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}

/** What to add to an address in this block's shared memory to get the same place in another's. */
static __device__ __forceinline__ uint32_t neighbour_offset(const void *here, uint32_t rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(here)), "r"(rank));
    return there - shared_address(here);
}

static __device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/** Barriers for one arrival and `bytes` of messages each; then everyone in the cluster may send. */
static __device__ __forceinline__ void arrivals_init(uint64_t *barriers, int count, uint32_t bytes)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < count; i++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barriers[i])) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads(); // without it racecheck takes the two halves for two threads
    if (threadIdx.x == 0)
        for (int i = 0; i < count; i++)
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barriers[i])),
                         "r"(bytes)
                         : "memory");
    cluster_sync();
}

/** Waits for the messages of a step, and makes its barrier ready for those of the step after the next. */
static __device__ __forceinline__ void arrivals_wait(uint64_t barriers[2], int step, uint32_t bytes)
{
    uint32_t barrier = shared_address(&barriers[step & 1]), parity = step >> 1 & 1, done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    if (threadIdx.x == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void send(uint32_t to, uint32_t barrier, uint64_t x)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to), "l"(x),
                 "r"(barrier)
                 : "memory");
}

static __device__ __forceinline__ void send(uint32_t to, uint32_t barrier, float x)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
                 "r"(__float_as_uint(x)), "r"(barrier)
                 : "memory");
}

static __device__ __forceinline__ void send(uint32_t to, uint32_t barrier, const float x[4])
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(__float_as_uint(x[0])), "r"(__float_as_uint(x[1])), "r"(__float_as_uint(x[2])),
                 "r"(__float_as_uint(x[3])), "r"(barrier)
                 : "memory");
}

#endif

/* ---- what a step backward reads ---- */

/** By one lane: of one slot and sequence. Idle lanes read what the first slot's lane reads. */
template <class C, typename T>
static __device__ __forceinline__ void backward_load(slot_inputs<C, T> *r, const recurrent_backward<T> &a,
                                                     int64_t sequence, int t, int slot, bool valid)
{
    slot_inputs_load(r, a, valid ? sequence * a.steps + t : t, t, valid ? slot : 0);
}

/** Into L2: what is saved of this block's slots, the state's gradient and the carry, a lane for each and sequence. Of
 *  a layer that saves nothing, dst and the state's gradient, a lane for each 64 units. */
template <class C, typename T>
static __device__ __forceinline__ void backward_prefetch(const recurrent_backward<T> &a, int64_t first, int t,
                                                         int slot0)
{
    int which = threadIdx.x >> 3, unit = slot0 * C::WIDTH + (C::SAVED ? 0 : which / 2 * 64);
    int64_t sequence = first + (threadIdx.x & 7), step = sequence * a.steps + t;
    if (which > (C::SAVED ? 5 : 3) || unit >= a.hidden || sequence >= a.batch || t < 0)
        return;
    if (C::SAVED && which < 4)
        prefetch_l2(a.saved + (SUMS * step + which) * a.hidden + unit);
    else if (C::SAVED ? which == 4 : which & 1)
        prefetch_l2(a.grad_dst + step * a.hidden + unit);
    else if (C::CARRY)
        prefetch_l2(a.carry + step * a.hidden + unit);
    else
        prefetch_l2(a.saved + step * a.hidden + unit);
}

/* ---- host ---- */

/** A kernel by how many groups of 8 sequences a cluster takes through the steps in turns: 1, 2. */
struct cluster_kernels {
    const void *by_groups[2];
};

/** One call's problem for them. */
struct cluster_problem {
    mixt__recurrent_sizes s;
    int width;          // units of a slot
    size_t group_bytes; // of dynamic shared memory for each group
    const char *what;   // for messages
};

struct cluster_config {
    cudaLaunchConfig_t config;
    cudaLaunchAttribute cluster;
};

static inline void cluster_configure(const mixt__cuda_device *gpu, cluster_config *l, const cluster_problem *p,
                                     int groups)
{
    int64_t needed = mixt__ceil_div(p->s.hidden, CLUSTER_SLOTS * p->width);
    unsigned blocks = needed < 2 ? 2 : (unsigned)needed; // a cluster has neighbours; a block without slots sends zeros
    *l = {};
    l->cluster.id = cudaLaunchAttributeClusterDimension;
    l->cluster.val.clusterDim = {blocks, 1, 1};
    l->config.gridDim = dim3((unsigned)mixt__ceil_div(p->s.batch, groups * CLUSTER_SEQUENCES) * blocks);
    l->config.blockDim = dim3(CLUSTER_THREADS);
    l->config.dynamicSmemBytes = (size_t)groups * p->group_bytes;
    l->config.stream = gpu->stream;
    l->config.attrs = &l->cluster;
    l->config.numAttrs = 1;
}

/** How many such clusters the GPU runs at once; 0: none. Also lets the kernel have clusters and memory of this size. */
static inline int cluster_room(const mixt__cuda_device *gpu, const void *kernel, const cluster_problem *p, int groups)
{
    cluster_config l;
    int room = 0, bytes = (int)((size_t)groups * p->group_bytes);
    cluster_configure(gpu, &l, p, groups);
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) != cudaSuccess ||
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess ||
        cudaOccupancyMaxActiveClusters(&room, kernel, &l.config) != cudaSuccess)
        room = 0;
    (void)cudaGetLastError();
    return room;
}

static inline bool cluster_supports(const mixt__cuda_device *gpu, cluster_kernels kernels, const cluster_problem *p,
                                    const mixt__tensor *sequences, const mixt__tensor *weight, const char **reason)
{
    const mixt__recurrent_sizes *s = &p->s;
    if (gpu->sm < 90)
        *reason = "the GPU has no thread-block clusters";
    else if (sequences->dtype != weight->dtype)
        *reason = "gates and weights have different formats";
    else if (s->hidden > CLUSTER_UNITS)
        *reason = "the weights are too large for one cluster";
    else if (s->hidden % 8)
        *reason = "the hidden size is not a multiple of 8";
    else if (!s->batch || !s->steps || s->steps > INT32_MAX || s->batch > INT32_MAX)
        *reason = "nothing to do, or too much";
    else if (!cluster_room(gpu, kernels.by_groups[0], p, 1))
        *reason = "the GPU has no room for a cluster of this size";
    else
        return true;
    return false;
}

/** With two groups in turns where one alone would need more clusters than run at once: a step of two takes little
 * longer than one of one. Clusters do not depend on each other, so they need not all run at once. */
static inline mixt_status cluster_launch(const mixt__cuda_device *gpu, cluster_kernels kernels,
                                         const cluster_problem *p, void *arguments)
{
    cluster_config l;
    int room = cluster_room(gpu, kernels.by_groups[0], p, 1), groups = 1;
    if (room < mixt__ceil_div(p->s.batch, CLUSTER_SEQUENCES) && kernels.by_groups[1] &&
        cluster_room(gpu, kernels.by_groups[1], p, 2) >= room)
        groups = 2;
    cluster_configure(gpu, &l, p, groups);
    void *list[] = {arguments};
    return mixt__cuda_check(cudaLaunchKernelExC(&l.config, kernels.by_groups[groups - 1], list), p->what);
}

#endif
