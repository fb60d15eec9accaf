/* The GPU for `mixt info`: what it is and can do, or why none is used. */
#ifndef MIXT_CLI_GPU_H
#define MIXT_CLI_GPU_H

#include "backend/device.h"

#include <jansson.h>

typedef struct cli_gpu {
    bool usable;
    char reason[1024]; // why it is not
    mixt__device_info info;
    const char *automatic; // the device that auto means now: "cpu" or "cuda"
} cli_gpu;

cli_gpu cli_gpu_read(void);
/** Lines for people: the GPU, its Tensor Cores, limits, driver and libraries; or one line with the reason. */
void cli_gpu_print(const cli_gpu *gpu);
/** Which units multiply each format there, and how fast at most. */
void cli_gpu_print_formats(const cli_gpu *gpu);
json_t *cli_gpu_json(const cli_gpu *gpu);

#endif
