/* Pointwise programs on the GPU: what the text generator, the compiled candidate and the interpreter share. */
#ifndef MIXT_BACKEND_CUDA_POINTWISE_POINTWISE_H
#define MIXT_BACKEND_CUDA_POINTWISE_POINTWISE_H

#include "backend/cuda/core/cuda.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MIXT_PW_THREADS = 256 };

/** The domain with neighbouring dimensions joined wherever every input walks through them alike. The outputs are
 *  contiguous; an input has stride 0 in the dimensions it is repeated along. */
typedef struct mixt__pw_domain {
    int rank; // at least 1
    int64_t count;
    int64_t dims[MIXT_MAX_RANK];
    int64_t strides[MIXT_PW_MAX_INPUTS][MIXT_MAX_RANK]; // in elements
} mixt__pw_domain;

/** How a program is cut into threads: each works on `unroll` vectors of `vector` neighbouring elements. */
typedef struct mixt__pw_cut {
    int vector, unroll;
    bool wide; // 64-bit element numbers
} mixt__pw_cut;

/** What a generated kernel takes; its text declares the same struct. */
typedef struct mixt__pw_arguments {
    const void *in[MIXT_PW_MAX_INPUTS];
    void *out[MIXT_PW_MAX_OUTPUTS];
    const uint64_t *rng_key;
    uint64_t count; // elements of the domain
} mixt__pw_arguments;

void mixt__pw_domain_of(const mixt__call *call, mixt__pw_domain *domain);

/** The cut for a GPU with this many multiprocessors. */
mixt__pw_cut mixt__pw_cut_of(const mixt__call *call, const mixt__pw_domain *domain, int multiprocessors);

/** Source with two kernels, pw_vector (cut.vector elements an access; aligned tensors) and pw_scalar, from mixt__alloc;
 *  NULL: no memory. Sizes are constants in it, but for the outermost dimension. */
char *mixt__pw_text(const mixt__call *call, const mixt__pw_domain *domain, mixt__pw_cut cut, int sm);

/** Dropout keeps an element when its random word shifted right by 8 is at least this; see
 * backend/cpu/pointwise/pointwise.h. */
static inline uint32_t mixt__pw_threshold(float rate)
{
    return (uint32_t)ceil((double)rate * 0x1p24);
}

/** What a kept element is multiplied by. */
static inline float mixt__pw_scale(float rate)
{
    return (float)(1.0 / (1.0 - (double)rate));
}

extern const mixt__kernel mixt__cuda_pointwise_plain;

#ifdef __cplusplus
}
#endif
#endif
