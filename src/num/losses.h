/* What a conversion could not keep, beyond rounding. */
#ifndef MIXT_NUM_LOSSES_H
#define MIXT_NUM_LOSSES_H

#include "mixt/num.h"

typedef struct mixt__losses {
    int64_t overflowed; /**< past the range: infinite or NaN now */
    int64_t clamped;    /**< past the range: the nearest end of it now */
    int64_t vanished;   /**< not 0, too small for a floating-point format: 0 now */
    int64_t nan;        /**< NaN that an integer format does not have: 0 now */
} mixt__losses;

/** Adds what mixt_convert lost in making `dst` of `src` with these options. */
void mixt__losses_add(mixt__losses *losses, const void *dst, mixt_dtype dst_dtype, const void *src,
                      mixt_dtype src_dtype, int64_t count, const mixt_convert_options *options);

#endif
