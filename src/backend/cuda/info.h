/* The device in words and limits (info.c), its power and energy (power.c). */
#ifndef MIXT_BACKEND_CUDA_INFO_H
#define MIXT_BACKEND_CUDA_INFO_H

#include "backend/cuda/core/cuda.h"

mixt_status mixt__cuda_describe(mixt__device *device, mixt_gpu_info *info);
/** Devices that the driver shows. */
int mixt__cuda_devices(void);
/** One of them. Of those that were not opened, but for the first, no memory is known to be free: asking would open
 *  them. */
mixt_status mixt__cuda_describe_at(int index, mixt_gpu_info *info);

/** Joules of the device's GPU since the first call; NaN when NVIDIA's management library does not say. */
double mixt__cuda_energy(mixt__device *device);
/** Begins a span (NULL), or says what the units did since; false when the GPU does not count that. */
bool mixt__cuda_activity(mixt__device *device, mixt__device_activity *since);
/** Watts that the GPU of this number may draw; NaN: not known. */
double mixt__cuda_power_limit(int number);
/** The driver's version; "" when not known. */
void mixt__cuda_driver_version(char *text, size_t size);

#endif
