/* The loop that loops.h declares, compiled for the baseline, AVX2 and AVX-512.
 *
 * A group of eight numbers is one step: all but the exponents stays in registers. The square of an FP32 number is exact
 * in FP64, so that a fused multiply-add gives the same bits.
 */
#include "backend/cpu/statistics/loops.h"

#include "base/isa_at.h"

#include <string.h>

enum { LANES = MIXT_STATS_LANES };

typedef float lanes_f32 __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_i32 __attribute__((vector_size(4 * LANES)));
typedef double lanes_f64 __attribute__((vector_size(8 * LANES)));

/** The registers between two steps. */
typedef struct state {
    lanes_f64 sum, squares;
    lanes_f32 low, high;
    lanes_i32 zeros, nan, inf;
} state;

static inline void take(state *s, const float *src, lanes_i32 *exponents)
{
    const int32_t infinite = 0x7f800000;
    lanes_f32 x;
    lanes_i32 bits;
    memcpy(&x, src, sizeof x);
    memcpy(&bits, src, sizeof bits);
    lanes_i32 size = bits & 0x7fffffff, finite = size < infinite; // all ones where it is
    lanes_f32 kept = (lanes_f32)(bits & finite);
    lanes_f64 wide = __builtin_convertvector(kept, lanes_f64);
    s->sum += wide;
    s->squares += wide * wide;
    lanes_i32 lower = finite & (x < s->low), higher = finite & (x > s->high);
    s->low = (lanes_f32)((bits & lower) | ((lanes_i32)s->low & ~lower));
    s->high = (lanes_f32)((bits & higher) | ((lanes_i32)s->high & ~higher));
    s->zeros -= size == 0;
    s->nan -= size > infinite;
    s->inf -= size == infinite;
    *exponents = size >> 23;
}

void MIXT_AT(mixt__stats_loop)(mixt__stats_sums *sums, const float *x, int64_t groups)
{
    state s;
    _Static_assert(sizeof s.sum == sizeof sums->sum && sizeof s.low == sizeof sums->low, "the same lanes");
    memcpy(&s.sum, sums->sum, sizeof s.sum);
    memcpy(&s.squares, sums->squares, sizeof s.squares);
    memcpy(&s.low, sums->low, sizeof s.low);
    memcpy(&s.high, sums->high, sizeof s.high);
    memcpy(&s.zeros, sums->zeros, sizeof s.zeros);
    memcpy(&s.nan, sums->nan, sizeof s.nan);
    memcpy(&s.inf, sums->inf, sizeof s.inf);
    for (int64_t g = 0; g < groups; g++) {
        lanes_i32 exponents;
        take(&s, x + g * LANES, &exponents);
        for (int lane = 0; lane < LANES; lane++)
            sums->exponents[lane][exponents[lane]]++;
    }
    memcpy(sums->sum, &s.sum, sizeof s.sum);
    memcpy(sums->squares, &s.squares, sizeof s.squares);
    memcpy(sums->low, &s.low, sizeof s.low);
    memcpy(sums->high, &s.high, sizeof s.high);
    memcpy(sums->zeros, &s.zeros, sizeof s.zeros);
    memcpy(sums->nan, &s.nan, sizeof s.nan);
    memcpy(sums->inf, &s.inf, sizeof s.inf);
}
