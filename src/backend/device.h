/* What a device says about itself: mixt_gpu_info, and what its units do while it runs. */
#ifndef MIXT_BACKEND_DEVICE_H
#define MIXT_BACKEND_DEVICE_H

#include "mixt/machine.h"

/** Shares of a span of time in which units of the device were at work, from its own counters: 0 to 1. */
typedef struct mixt__device_activity {
    double multiprocessors, tensor_cores;
    double memory; // of its bandwidth
} mixt__device_activity;

#endif
