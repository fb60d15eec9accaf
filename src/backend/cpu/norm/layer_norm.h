/* The candidates of layer norm and of its gradient. */
#ifndef MIXT_BACKEND_CPU_NORM_LAYER_NORM_H
#define MIXT_BACKEND_CPU_NORM_LAYER_NORM_H

#include "backend/backend.h"

extern const mixt__kernel mixt__layer_norm_avx512, mixt__layer_norm_avx2;
extern const mixt__kernel mixt__layer_norm_grad_avx512, mixt__layer_norm_grad_avx2;

#endif
