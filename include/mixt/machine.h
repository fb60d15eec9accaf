/* What can this machine do? Its processor, memory and GPUs, and what each number format will do on them.
 *
 * What cannot be read is left out or 0, never guessed. Nothing here opens a context; asking for a GPU loads the GPU's
 * libraries where a driver is installed, which can take a second the first time.
 */
#ifndef MIXT_MACHINE_H
#define MIXT_MACHINE_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether this build of mixt uses a library that it can do without: "jpeg", "microhttpd". False for other words. */
MIXT_API bool mixt_built_with(const char *library);

/* ---- the processor ---- */

enum { MIXT_CACHES_MAX = 8, MIXT_CPU_FEATURES_MAX = 16 };

typedef struct mixt_cpu_cache {
    int level;
    const char *type; /**< "Data", "Instruction", "Unified" */
    int64_t bytes;
} mixt_cpu_cache;

/** An instruction-set extension that mixt looks at. */
typedef struct mixt_cpu_feature {
    const char *name; /**< "avx512_bf16" */
    bool present;
} mixt_cpu_feature;

typedef struct mixt_cpu_info {
    const char *name; /**< "unknown" where the processor does not say */
    int cores_online; /**< of the machine */
    int cores_usable; /**< by this process; a container's limit counts */
    int threads; /**< that this thread uses now: those of the context it opened, MIXT_THREADS, or all usable cores */
    const char
        *isa; /**< instruction set in use: "scalar", "avx2", "avx512", "avx512_bf16", "amx"; MIXT_ISA lowers it */
    mixt_cpu_feature features[MIXT_CPU_FEATURES_MAX];
    int feature_count;
    mixt_cpu_cache caches[MIXT_CACHES_MAX]; /**< of the first core */
    int cache_count;
    int64_t memory_total;     /**< bytes, or those of the process's control group where that is less; 0: not known */
    int64_t memory_available; /**< bytes that are free or can be freed at once; 0: not known */
} mixt_cpu_info;

/** Fills in what is known about the processor and its memory. */
MIXT_API void mixt_cpu_describe(mixt_cpu_info *info);

/* ---- GPUs ---- */

typedef struct mixt_gpu_info {
    const char *name;
    int capability; /**< 10 × major + minor: 90 for Hopper */
    int multiprocessors;
    int tensor_cores;      /**< generation; 0: it has none */
    double clock;          /**< Hz, the highest that the device allows itself */
    size_t memory_bytes;   /**< of the device */
    size_t memory_free;    /**< bytes, now; 0: not known, of a GPU that is not in use */
    size_t cache_bytes;    /**< second level */
    double bytes_s;        /**< bytes a second: the limit of the device's memory */
    double power_limit;    /**< watts; NaN: not known */
    const char *driver;    /**< version of the driver and of the newest CUDA that it runs */
    const char *libraries; /**< names and versions of what mixt calls there */
    /** Floating-point operations a second at that clock, products of operands of this format; 0: no units for it. */
    double flops[MIXT_DTYPE_COUNT];
} mixt_gpu_info;

/** GPUs that the driver shows (CUDA_VISIBLE_DEVICES says which those are). A run uses the first. Where it is 0,
 *  mixt_error_text says why. */
MIXT_API int mixt_gpu_count(void);
/**
 * @param index from 0, which is the one that runs use.
 * @return MIXT_ERROR_DEVICE with the reason in mixt_error_text when there is none that can be used: no driver, no
 *   backend, no such device.
 */
MIXT_API mixt_status mixt_gpu_describe(int index, mixt_gpu_info *info);

/** What device "auto" means now, MIXT_DEVICE included: "cpu" or "cuda". */
MIXT_API const char *mixt_device_auto(void);

/* ---- number formats ---- */

/** How hardware serves a format. */
typedef enum mixt_support {
    MIXT_SUPPORT_NATIVE,   /**< it multiplies the format */
    MIXT_SUPPORT_WIDENED,  /**< it converts to FP32 on the way */
    MIXT_SUPPORT_EMULATED, /**< it has nothing for it */
} mixt_support;

/** "native", "widened", "emulated". */
MIXT_API const char *mixt_support_name(mixt_support support);

enum { MIXT_FORMATS_MAX = 8 };

/** One format on one device. All strings are constants. */
typedef struct mixt_format_info {
    const char *name; /**< "fp32", …, "fp8" for both kinds of FP8 */
    mixt_dtype dtype; /**< the format, for FP8 that with the larger mantissa */
    mixt_support support;
    const char *how;      /**< which instructions or units do the work */
    const char *training; /**< what a training run does with it */
    double flops;         /**< a second at most, where the device says so; else 0 */
} mixt_format_info;

/** Formats on the processor at the instruction set in use. Returns how many were written. */
MIXT_API int mixt_cpu_formats(mixt_format_info formats[MIXT_FORMATS_MAX]);
/** Formats on a GPU that mixt_gpu_describe has described. Returns how many were written. */
MIXT_API int mixt_gpu_formats(const mixt_gpu_info *gpu, mixt_format_info formats[MIXT_FORMATS_MAX]);

#ifdef __cplusplus
}
#endif
#endif
