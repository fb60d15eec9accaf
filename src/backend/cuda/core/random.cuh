/* base/rng.h on the device, to the same bits. */
#ifndef MIXT_BACKEND_CUDA_CORE_RANDOM_CUH
#define MIXT_BACKEND_CUDA_CORE_RANDOM_CUH

#include <stdint.h>

/** mixt__rng_key. */
static __device__ __forceinline__ uint64_t random_key(uint64_t seed, uint64_t stream, uint64_t substream)
{
    const uint64_t mix[3] = {0x9E3779B97F4A7C15u, stream, substream};
    uint64_t x = seed;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        x += mix[i] + 0x9E3779B97F4A7C15u * (uint64_t)(i + 1);
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        x ^= x >> 31;
    }
    return x;
}

/** mixt__rng_block_at. */
static __device__ __forceinline__ uint4 random_block(uint64_t key, uint64_t counter)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint32_t n0 = __umulhi(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = __umulhi(0xD2511F53u, c0) ^ c3 ^ k1;
        c1 = 0xCD9E8D57u * c2;
        c3 = 0xD2511F53u * c0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

#endif
