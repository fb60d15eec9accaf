/* What a device says about itself: for `mixt info`, and the limits that a profile is held against. */
#ifndef MIXT_BACKEND_DEVICE_H
#define MIXT_BACKEND_DEVICE_H

#include "mixt/types.h"

typedef struct mixt__device_info {
    char name[128];
    int capability; // 10 × major + minor: 90 for Hopper
    int multiprocessors;
    int tensor_cores; // generation; 0: it has none
    double clock;     // Hz, the highest that the device allows itself
    size_t memory_bytes, memory_free, cache_bytes;
    double flops[MIXT_DTYPE_COUNT]; // a second at that clock, products of operands of this format; 0: no units for it
    double bytes_s;                 // device memory's limit
    double power_limit;             // watts; NaN: not known
    char driver[64];                // "580.65.06, CUDA 13.0"
    char libraries[192];            // names and versions of what the backend calls
} mixt__device_info;

/** Shares of a span of time in which units of the device were at work, from its own counters: 0 to 1. */
typedef struct mixt__device_activity {
    double multiprocessors, tensor_cores;
    double memory; // of its bandwidth
} mixt__device_activity;

#endif
