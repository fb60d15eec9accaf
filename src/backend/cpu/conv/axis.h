/* An axis of a convolution as its result sees it: the forward result and the gradient of the source are both sums over
 * taps, each of which reads one position of the other tensor or none.
 */
#ifndef MIXT_BACKEND_CPU_CONV_AXIS_H
#define MIXT_BACKEND_CPU_CONV_AXIS_H

#include <stdbool.h>
#include <stdint.h>

/** Position p reads, by tap t, position (p · step + t · tap_step + first) / part of the other tensor where that is
 *  whole and inside. */
typedef struct mixt__conv_steps {
    int64_t taps, step, tap_step, first, part, size;
} mixt__conv_steps;

/** Where tap t of position p reads; −1: nowhere. */
static inline int64_t mixt__conv_reads(const mixt__conv_steps *a, int64_t p, int64_t t)
{
    int64_t at = p * a->step + t * a->tap_step + a->first;
    return at < 0 || at % a->part || at / a->part >= a->size ? -1 : at / a->part;
}

/** `turned`: of the gradient of the source, which reads grad_dst; `size` is that of what is read. */
static inline mixt__conv_steps mixt__conv_axis_of(bool turned, int64_t taps, int64_t stride, int64_t dilation,
                                                  int64_t pad, int64_t size)
{
    return turned ? (mixt__conv_steps){taps, 1, -dilation, pad, stride, size}
                  : (mixt__conv_steps){taps, stride, dilation, -pad, 1, size};
}

#endif
