/* The device's own description: name, memory, the rates of its units, versions.
 *
 * Rates are what one multiprocessor can do in a cycle by compute capability, times multiprocessors, times the highest
 * clock: limits that no kernel passes, not speeds that one reaches.
 */
#include "backend/cuda/info.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <math.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/** Floating-point operations in a cycle on one multiprocessor; a multiply-add counts two. FP32: its vector units. */
typedef struct rates {
    int capability; // from this one up to the next row's
    int generation; // of Tensor Cores
    int fp32, tf32, fp16, bf16, fp8;
} rates;

static const rates rate_table[] = {
    {70, 1, 128, 0, 1024, 0, 0},
    {75, 2, 128, 0, 1024, 0, 0},
    {80, 3, 128, 1024, 2048, 2048, 0},
    {86, 3, 256, 512, 1024, 1024, 0},
    {89, 4, 256, 512, 1024, 1024, 2048},
    {90, 4, 256, 2048, 4096, 4096, 8192},
    {100, 5, 256, 4096, 8192, 8192, 16384},
    {120, 5, 256, 512, 1024, 1024, 2048},
};

static const rates *rates_of(int capability)
{
    const rates *found = &rate_table[0];
    for (size_t i = 0; i < sizeof rate_table / sizeof rate_table[0]; i++)
        if (rate_table[i].capability <= capability)
            found = &rate_table[i];
    return found;
}

static double attribute(int device, enum cudaDeviceAttr which)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

static void fill_rates(int device, mixt_gpu_info *info)
{
    const rates *r = rates_of(info->capability);
    double cycles = info->clock * info->multiprocessors;
    info->tensor_cores = r->generation;
    info->flops[MIXT_DTYPE_FP32] = cycles * r->fp32;
    info->flops[MIXT_DTYPE_TF32] = cycles * r->tf32;
    info->flops[MIXT_DTYPE_FP16] = cycles * r->fp16;
    info->flops[MIXT_DTYPE_BF16] = cycles * r->bf16;
    info->flops[MIXT_DTYPE_FP8_E4M3] = info->flops[MIXT_DTYPE_FP8_E5M2] = cycles * r->fp8;
    info->bytes_s = 2 * 1e3 * attribute(device, cudaDevAttrMemoryClockRate) *
                    attribute(device, cudaDevAttrGlobalMemoryBusWidth) / 8;
}

/** Texts that stay as they are as long as the library is loaded: a process sees the same GPUs all the time. */
enum { DEVICES_MAX = 64 };
static char names[DEVICES_MAX][128], drivers[64], libraries[192];

static void write_texts(void)
{
    char driver[32];
    int cuda = 0, runtime = 0, major = 0, minor = 0, lt = (int)cublasLtGetVersion(), dnn = (int)cudnnGetVersion();
    for (int i = 0; i < mixt__cuda_devices(); i++) {
        struct cudaDeviceProp properties;
        if (cudaGetDeviceProperties(&properties, i) == cudaSuccess)
            snprintf(names[i], sizeof names[i], "%.127s", properties.name);
    }
    mixt__cuda_driver_version(driver, sizeof driver);
    (void)cudaDriverGetVersion(&cuda);
    (void)cudaRuntimeGetVersion(&runtime);
    (void)nvrtcVersion(&major, &minor);
    snprintf(drivers, sizeof drivers, "%s%sup to CUDA %d.%d", driver, driver[0] ? ", " : "", cuda / 1000,
             cuda % 1000 / 10);
    snprintf(libraries, sizeof libraries, "CUDA %d.%d, cuBLASLt %d.%d.%d, cuDNN %d.%d.%d, NVRTC %d.%d", runtime / 1000,
             runtime % 1000 / 10, lt / 10000, lt / 100 % 100, lt % 100, dnn / 10000, dnn / 100 % 100, dnn % 100, major,
             minor);
}

int mixt__cuda_devices(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        return 0;
    return count < DEVICES_MAX ? count : DEVICES_MAX;
}

/** The calling thread's current GPU stays what it was. */
static mixt_status free_memory(int index, size_t *bytes)
{
    int before = 0;
    size_t total;
    MIXT_TRY(mixt__cuda_check(cudaGetDevice(&before), "asking for the GPU"));
    cudaError_t error = cudaSetDevice(index);
    if (error == cudaSuccess)
        error = cudaMemGetInfo(bytes, &total);
    (void)cudaSetDevice(before);
    return mixt__cuda_check(error, "asking for the GPU's memory");
}

mixt_status mixt__cuda_describe_at(int index, mixt_gpu_info *info)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct cudaDeviceProp properties;
    MIXT_TRY(mixt__cuda_check(cudaGetDeviceProperties(&properties, index), "asking for a GPU's properties"));
    pthread_once(&once, write_texts);
    *info = (mixt_gpu_info){.capability = 10 * properties.major + properties.minor};
    info->multiprocessors = properties.multiProcessorCount;
    info->name = names[index < DEVICES_MAX ? index : DEVICES_MAX - 1];
    info->driver = drivers;
    info->libraries = libraries;
    if (!index || mixt__cuda_was_opened(index))
        MIXT_TRY(free_memory(index, &info->memory_free));
    info->memory_bytes = properties.totalGlobalMem;
    info->cache_bytes = (size_t)attribute(index, cudaDevAttrL2CacheSize);
    info->clock = 1e3 * attribute(index, cudaDevAttrClockRate);
    info->power_limit = mixt__cuda_power_limit(index);
    fill_rates(index, info);
    return MIXT_OK;
}

mixt_status mixt__cuda_describe(mixt__device *device, mixt_gpu_info *info)
{
    return mixt__cuda_describe_at(device->number, info);
}
