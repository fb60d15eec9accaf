/* Which of cuBLASLt's algorithms: timed once per form on this GPU, then kept (see choices.c).
 *
 * The heuristic's first answer is up to a fifth slower than the best of its first dozen. Trials run on random numbers
 * (zeros take less power and mislead). Short products are timed as a recorded run of many, as a step replays them.
 * Split sums are combined from the workspace in FP32 only: in the result's own format they would round too often.
 */
#include "backend/cuda/gemm/matmul.h"

#include "base/log.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { HEURISTIC = 12, SPLIT_BEST = 3, SPLITS = 5, TRIALS = HEURISTIC + SPLIT_BEST * SPLITS, MOST_REPEATS = 24 };
enum { DEEP = 8192 }; // sums from this length on are also tried in parts
static const size_t WORKSPACE_LIMIT = (size_t)64 << 20;
static const double SMALLEST_TIMED = 1e5; // multiplications; below, every algorithm takes as long as its launch
static const double RECORD_BELOW = 50e-6, ONCE_ABOVE = 4e-3, BUDGET = 0.6; // seconds

/** What is kept. */
typedef struct choice {
    cublasLtMatmulAlgo_t algo;
    uint64_t workspace_bytes;
} choice;

int mixt__cuda_lt_algorithms(mixt__cuda_device *gpu, mixt__cuda_lt *lt, cublasLtMatmulHeuristicResult_t *results,
                             int capacity)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, c_align = 64;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t bytes;
    } attributes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE_LIMIT, sizeof WORKSPACE_LIMIT},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &lt->b_align, sizeof lt->b_align}, // its first operand is our b
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &lt->a_align, sizeof lt->a_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c_align, sizeof c_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c_align, sizeof c_align},
    };
    int count = 0, good = 0;
    if (cublasLtMatmulPreferenceInit(&preference) != CUBLAS_STATUS_SUCCESS)
        return 0;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (cublasLtMatmulPreferenceSetAttribute(&preference, attributes[i].name, attributes[i].value,
                                                 attributes[i].bytes) != CUBLAS_STATUS_SUCCESS)
            return 0;
    if (cublasLtMatmulAlgoGetHeuristic(mixt__cuda_lt_handle(gpu), &lt->desc, &lt->b, &lt->a, &lt->c, &lt->c,
                                       &preference, capacity, results, &count) != CUBLAS_STATUS_SUCCESS)
        return 0;
    for (int i = 0; i < count; i++)
        if (results[i].state == CUBLAS_STATUS_SUCCESS)
            results[good++] = results[i];
    return good;
}

/** Adds the first few with their sums in parts, for few results of long sums, which leave multiprocessors idle and of
 * which the heuristic knows little. */
static int add_splits(mixt__cuda_device *gpu, mixt__cuda_lt *lt, cublasLtMatmulHeuristicResult_t *results, int count)
{
    static const int32_t parts[SPLITS] = {2, 3, 4, 6, 8};
    const uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    int all = count;
    for (int i = 0; i < count && i < SPLIT_BEST; i++)
        for (int n = 0; n < SPLITS; n++) {
            cublasLtMatmulAlgo_t algo = results[i].algo;
            cublasLtMatmulHeuristicResult_t *checked = &results[all];
            if (cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts[n],
                                                     sizeof parts[n]) == CUBLAS_STATUS_SUCCESS &&
                cublasLtMatmulAlgoConfigSetAttribute(&algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                                     sizeof scheme) == CUBLAS_STATUS_SUCCESS &&
                cublasLtMatmulAlgoCheck(mixt__cuda_lt_handle(gpu), &lt->desc, &lt->b, &lt->a, &lt->c, &lt->c, &algo,
                                        checked) == CUBLAS_STATUS_SUCCESS &&
                checked->workspaceSize <= WORKSPACE_LIMIT) {
                checked->algo = algo;
                all++;
            }
        }
    return all;
}

/* ---- kept choices ---- */

static void describe(const mixt__call *call, char *text, size_t size)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *a = &call->in[0], *b = &call->in[1];
    mixt__cuda_product p = mixt__cuda_product_of(call);
    bool tf32 = call->arithmetic == MIXT_DTYPE_TF32; // the rest of the arithmetic is the operands' format
    snprintf(text, size,
             "matmul:%c%c:%lldx%lldx%lldx%lld:ld%lld,%lld:step%lld,%lld:%s-%s-%s:bias%d:addend%d:epi%d:view%d%d",
             at->trans_a ? 't' : 'n', at->trans_b ? 't' : 'n', (long long)p.batch, (long long)p.m, (long long)p.n,
             (long long)p.k, (long long)p.a_ld, (long long)p.b_ld, (long long)p.a_step, (long long)p.b_step,
             mixt_dtype_name(a->dtype), mixt_dtype_name(call->out[0].dtype), tf32 ? "tf32" : "fp32", at->bias,
             at->addend, (int)at->epilogue, !a->contiguous, !b->contiguous);
}

static bool recall(mixt__cuda_device *gpu, const char *key, mixt__cuda_lt *lt)
{
    choice kept;
    cublasLtMatmulHeuristicResult_t checked;
    if (!mixt__cuda_choice_get(gpu, key, &kept, sizeof kept) || kept.workspace_bytes > WORKSPACE_LIMIT)
        return false;
    if (cublasLtMatmulAlgoCheck(mixt__cuda_lt_handle(gpu), &lt->desc, &lt->b, &lt->a, &lt->c, &lt->c, &kept.algo,
                                &checked) != CUBLAS_STATUS_SUCCESS ||
        checked.workspaceSize > kept.workspace_bytes)
        return false;
    lt->algo = kept.algo;
    lt->algo_bytes = kept.workspace_bytes;
    return true;
}

/* ---- trials ---- */

typedef struct trial {
    mixt__cuda_device *gpu;
    mixt__cuda_lt *lt;
    mixt__cuda_lt_data data;
    int repeats;
    cudaGraphExec_t recorded;
} trial;

static mixt_status issue(void *argument)
{
    trial *t = argument;
    if (t->recorded)
        return mixt__cuda_check(cudaGraphLaunch(t->recorded, t->gpu->stream), "timing a matrix product");
    return mixt__cuda_lt_issue(t->gpu, t->lt, &t->data) == CUBLAS_STATUS_SUCCESS ? MIXT_OK : MIXT_ERROR_DEVICE;
}

/** One run after a first that loads the kernel, in seconds; negative when it fails. */
static double time_once(trial *t)
{
    cudaEvent_t begin = NULL, end = NULL;
    float milliseconds = -1000;
    bool good = cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess && issue(t) == MIXT_OK &&
                cudaEventRecord(begin, t->gpu->stream) == cudaSuccess && issue(t) == MIXT_OK &&
                cudaEventRecord(end, t->gpu->stream) == cudaSuccess && cudaEventSynchronize(end) == cudaSuccess &&
                cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess;
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    (void)cudaGetLastError();
    return good ? 1e-3 * (double)milliseconds : -1;
}

static bool record(trial *t)
{
    cudaGraph_t graph = NULL;
    bool good = cudaStreamBeginCapture(t->gpu->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    if (!good)
        return false;
    for (int i = 0; i < t->repeats; i++)
        good = issue(t) == MIXT_OK && good;
    good = cudaStreamEndCapture(t->gpu->stream, &graph) == cudaSuccess && good;
    good = good && cudaGraphInstantiate(&t->recorded, graph, 0) == cudaSuccess;
    if (graph)
        cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    return good;
}

static double time_algorithm(trial *t)
{
    double seconds = time_once(t);
    if (seconds < 0 || seconds > ONCE_ABOVE)
        return seconds;
    if (seconds > RECORD_BELOW)
        return mixt__cuda_time(t->gpu, issue, t);
    t->repeats = MOST_REPEATS;
    if (record(t))
        seconds = mixt__cuda_time(t->gpu, issue, t) / t->repeats;
    if (t->recorded)
        cudaGraphExecDestroy(t->recorded);
    t->recorded = NULL;
    return seconds;
}

/** Elements from the first to the last of a tensor. */
static int64_t span(const mixt__tensor *t)
{
    int64_t last = 0;
    for (int i = 0; i < t->shape.rank; i++)
        last += (t->shape.dims[i] - 1) * t->strides[i];
    return last + 1;
}

typedef struct part {
    const mixt__tensor *tensor;
    const void **pointer;
    size_t offset;
} part;

/** Takes memory for the call's tensors and fills it; NULL when there is not enough. */
static void *take_data(const mixt__call *call, trial *t)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *pre = mixt__cuda_product_pre(call), *bias = mixt__cuda_product_bias(call);
    const mixt__tensor as_result = {
        .dtype = call->out[0].dtype, .shape = {1, {bias ? mixt__tensor_count(bias) : 0}}, .strides = {1}};
    part parts[] = {{&call->in[0], &t->data.a, 0},
                    {&call->in[1], &t->data.b, 0},
                    {&call->out[0], (const void **)&t->data.d, 0},
                    {mixt__cuda_product_addend(call), &t->data.c, 0},
                    {bias ? &as_result : NULL, &t->data.bias, 0},
                    {!t->lt->fused_gelu                   ? NULL
                     : at->epilogue == MIXT_EPILOGUE_GELU ? &call->out[1]
                                                          : pre,
                     (const void **)&t->data.aux, 0}};
    size_t bytes = WORKSPACE_LIMIT;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].tensor) {
            parts[i].offset = bytes;
            bytes += ((size_t)span(parts[i].tensor) * mixt_dtype_size(parts[i].tensor->dtype) + 255) / 256 * 256;
        }
    char *block = mixt__cuda_scratch(bytes);
    if (!block)
        return NULL;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].tensor) {
            *parts[i].pointer = block + parts[i].offset;
            if (mixt__cuda_fill_random(mixt__cuda_of(call), block + parts[i].offset, parts[i].tensor->dtype,
                                       span(parts[i].tensor)) != MIXT_OK) {
                mixt__cuda_scratch_free(block);
                return NULL;
            }
        }
    t->data.workspace = block;
    bool gradient = call->out[0].dtype == MIXT_DTYPE_FP32 && call->in[0].dtype != MIXT_DTYPE_FP32 && !at->wide;
    t->data.beta = t->data.c || gradient ? 1.0f : 0.0f;
    if (!t->data.c)
        t->data.c = t->data.d;
    return block;
}

/** Index of the fastest, -1 when none could be timed. A later one must be faster by 1%: ties go to the heuristic. */
static int fastest(const mixt__call *call, mixt__cuda_lt *lt, const cublasLtMatmulHeuristicResult_t *results, int count)
{
    trial t = {.gpu = mixt__cuda_of(call), .lt = lt};
    double best_time = 0, spent = 0, first = 0;
    int best = -1;
    void *block = take_data(call, &t);
    for (int i = 0; block && i < count && spent < BUDGET; i++) {
        lt->algo = results[i].algo;
        lt->algo_bytes = results[i].workspaceSize;
        double seconds = time_algorithm(&t);
        spent += seconds > ONCE_ABOVE ? 2 * seconds : seconds > 0 ? 8 * seconds : 0;
        if (i == 0)
            first = seconds;
        if (seconds > 0 && (best < 0 || seconds < 0.99 * best_time)) {
            best = i;
            best_time = seconds;
        }
    }
    mixt__cuda_scratch_free(block);
    if (best >= 0)
        MIXT_LOG(PLAN, "cuBLASLt: algorithm %d of %d, %.1f us (the first: %.1f us)", best, count, 1e6 * best_time,
                 1e6 * first);
    return best;
}

mixt_status mixt__cuda_lt_choose(const mixt__call *call, mixt__cuda_lt *lt)
{
    char key[256];
    mixt__cuda_device *gpu = mixt__cuda_of(call);
    cublasLtMatmulHeuristicResult_t results[TRIALS];
    mixt__cuda_product p = mixt__cuda_product_of(call);
    double work = (double)p.batch * (double)p.m * (double)p.n * (double)p.k;
    describe(call, key, sizeof key);
    if (recall(gpu, key, lt))
        return MIXT_OK;
    bool first = work < SMALLEST_TIMED || gpu->base.rough;
    int count = mixt__cuda_lt_algorithms(gpu, lt, results, first ? 1 : HEURISTIC), best = 0;
    if (!count)
        return mixt__fail(MIXT_ERROR_DEVICE, "cuBLASLt has no algorithm for a matrix product (%s)", key);
    if (count > 1 && p.k >= DEEP)
        count = add_splits(gpu, lt, results, count);
    if (count > 1)
        best = fastest(call, lt, results, count);
    lt->algo = results[best < 0 ? 0 : best].algo;
    lt->algo_bytes = results[best < 0 ? 0 : best].workspaceSize;
    if (count > 1 && best >= 0) {
        choice kept = {.algo = lt->algo, .workspace_bytes = lt->algo_bytes};
        if (!mixt__cuda_choice_put(gpu, key, &kept, sizeof kept))
            (void)recall(gpu, key, lt);
    }
    return MIXT_OK;
}
