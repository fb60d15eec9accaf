/* V elements at a time: 16 bytes, or one where channels or pointers do not allow that. Widened to FP32 where used. */
#ifndef MIXT_BACKEND_CUDA_CORE_PACK_CUH
#define MIXT_BACKEND_CUDA_CORE_PACK_CUH

#include "backend/cuda/core/device.cuh"

template <typename T, int V> struct pack {
    uint4 raw; // as loaded: widened where it is used, so that loads in flight cost few registers
};

template <typename T> struct pack<T, 1> {
    T raw;
};

template <typename T, int V> static __device__ __forceinline__ pack<T, V> load(const void *base, int64_t at)
{
    const T *p = static_cast<const T *>(base) + at;
    if constexpr (V == 1)
        return {*p};
    else
        return {*reinterpret_cast<const uint4 *>(p)};
}

/** The same of what nobody reads again soon: it leaves the cache first. */
template <typename T, int V> static __device__ __forceinline__ pack<T, V> load_last(const void *base, int64_t at)
{
    const T *p = static_cast<const T *>(base) + at;
    if constexpr (V == 1)
        return {*p};
    else
        return {__ldcs(reinterpret_cast<const uint4 *>(p))};
}

/** The two elements of a word. */
static __device__ __forceinline__ void widen(float *r, unsigned word, bf16)
{
    r[0] = __uint_as_float(word << 16);
    r[1] = __uint_as_float(word & 0xffff0000u);
}
static __device__ __forceinline__ void widen(float *r, unsigned word, fp16)
{
    float2 two = __half22float2(*reinterpret_cast<const __half2 *>(&word));
    r[0] = two.x;
    r[1] = two.y;
}

template <typename T, int V> static __device__ __forceinline__ void unpack(float *r, const pack<T, V> &x)
{
    if constexpr (V == 1) {
        r[0] = to_float(x.raw);
    } else if constexpr (V == 4) {
        *reinterpret_cast<uint4 *>(r) = x.raw;
    } else {
        widen(r + 0, x.raw.x, T());
        widen(r + 2, x.raw.y, T());
        widen(r + 4, x.raw.z, T());
        widen(r + 6, x.raw.w, T());
    }
}

template <typename T, int V> static __device__ __forceinline__ void store(void *base, int64_t at, const float *r)
{
    T *p = static_cast<T *>(base) + at;
    if constexpr (V == 1) {
        *p = from_float<T>(r[0]);
    } else {
        vec16<T> packed;
        for (int i = 0; i < V; i++)
            packed.v[i] = from_float<T>(r[i]);
        store16(p, packed);
    }
}

/** V floats; 16-byte aligned unless V is 1. */
template <int V> static __device__ __forceinline__ void load_constants(float *r, const float *base, int64_t at)
{
    if constexpr (V == 1) {
        r[0] = base[at];
    } else {
        for (int i = 0; i < V; i += 4)
            *reinterpret_cast<float4 *>(r + i) = *reinterpret_cast<const float4 *>(base + at + i);
    }
}

#endif
