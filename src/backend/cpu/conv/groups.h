/* Groups of few channels in vectors: how the channels of a group lie in one, and how one read channel of each group
 * comes to the lanes of its group. Included by the files compiled for AVX2 and AVX-512.
 */
#ifndef MIXT_BACKEND_CPU_CONV_GROUPS_H
#define MIXT_BACKEND_CPU_CONV_GROUPS_H

#include "backend/cpu/conv/conv.h"
#include "backend/cpu/core/vec.h"

#ifdef __AVX512F__
enum { VECTORS = 2 }; // of a unit at most
#else
enum { VECTORS = 1 };
#endif

enum { LINE = 64 };

typedef enum spread {
    SPREAD_ONE,   // a vector has lanes of one group: a read channel is broadcast
    SPREAD_QUADS, // groups of 4 on both sides
    SPREAD_ANY    // several groups, by a table
} spread;

/** What a group has in the result's vectors and what it reads, and how many groups share a vector. */
typedef struct lanes {
    int64_t width, reads, groups;
    spread form;
    int32_t table[VEC_LANES][VEC_LANES]; // SPREAD_ANY: the lane that lane j reads for channel n
} lanes;

static inline lanes lanes_of(int64_t width, int64_t reads)
{
    lanes l = {.width = width, .reads = reads, .groups = VEC_LANES / (width > reads ? width : reads)};
    if (l.groups < 2) {
        l.groups = 1;
        return l;
    }
    l.form = width == 4 && reads == 4 ? SPREAD_QUADS : SPREAD_ANY;
    for (int64_t n = 0; n < reads; n++)
        for (int64_t j = 0; j < l.groups * width; j++)
            l.table[n][j] = (int32_t)(j / width * reads + n);
    return l;
}

/** Channels of the result from `to`: whole vectors but for the last, which has `last` lanes. */
typedef struct unit {
    int64_t to, last, from, reads; // from, reads: the channels that it reads
    int64_t packed;                // its first value in the weight or the sums as units lie there
    int vectors;
} unit;

/** The units of the result, at most one a channel, with `size` packed vectors for each of their own; how many, and
 *  the packed values of all. */
static inline int64_t cut_channels(const lanes *l, int64_t groups, int64_t size, unit *units, int64_t *packed)
{
    int64_t count = 0, used = 0;
    for (int64_t g = 0; g < groups; g += l->groups) {
        int64_t here = groups - g < l->groups ? groups - g : l->groups, width = here * l->width;
        for (int64_t at = 0; at < width;) {
            int vectors = width - at > VEC_LANES ? VECTORS : 1;
            int64_t left = width - at - (vectors - 1) * VEC_LANES, last = left < VEC_LANES ? left : VEC_LANES;
            units[count++] = (unit){g * l->width + at, last, g * l->reads, here * l->reads, used, vectors};
            used += size * vectors * VEC_LANES;
            at += vectors * VEC_LANES;
        }
    }
    *packed = used;
    return count;
}

/** Bytes of `count` elements, up to whole cache lines. */
static inline size_t whole_lines(int64_t count, size_t size)
{
    return ((size_t)count * size + LINE - 1) / LINE * LINE;
}

/** Channel n of each group that lies in x, in the lanes of the group; with SPREAD_QUADS n is a constant. */
VEC_INLINE vec spread_lanes(spread form, const lanes *l, vec x, int64_t n)
{
#ifdef __AVX512F__
    if (form == SPREAD_QUADS)
        return n == 0   ? _mm512_permute_ps(x, 0x00)
               : n == 1 ? _mm512_permute_ps(x, 0x55)
               : n == 2 ? _mm512_permute_ps(x, 0xaa)
                        : _mm512_permute_ps(x, 0xff);
    return _mm512_permutexvar_ps(_mm512_loadu_si512(l->table[n]), x);
#else
    if (form == SPREAD_QUADS)
        return n == 0   ? _mm256_permute_ps(x, 0x00)
               : n == 1 ? _mm256_permute_ps(x, 0x55)
               : n == 2 ? _mm256_permute_ps(x, 0xaa)
                        : _mm256_permute_ps(x, 0xff);
    return _mm256_permutevar8x32_ps(x, _mm256_loadu_si256((const __m256i *)l->table[n]));
#endif
}

/** What these candidates take: groups, in the formats of the others. */
static inline bool groups_supports(const mixt__call *call, const char **reason)
{
    if (!vec_supports(call, reason) || !mixt__conv_is_ordinary(call, reason))
        return false;
    mixt__conv v = mixt__conv_of(call);
    if (v.groups == 1)
        *reason = "only groups";
    else if (v.c / v.groups > 64 || v.o / v.groups > 64)
        *reason = "only groups of up to 64 channels";
    else if (call->in[0].dtype == MIXT_DTYPE_BF16 && (v.c / v.groups > 32 || v.o / v.groups > 32))
        *reason = "in BF16 only groups of up to 32 channels"; // the engine multiplies pairs
    return !*reason;
}

#endif
