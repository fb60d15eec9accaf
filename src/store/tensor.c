/* Sizes and texts of shapes. */
#include "store/tensor.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>

int64_t mixt__file_tensor_count(mixt_dtype dtype, int rank, const int64_t *dims)
{
    int64_t count = 1, bytes;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return -1;
        empty = empty || dims[i] == 0;
        // A zero later on does not excuse dimensions whose product overflows before it.
        if (dims[i] > 0 && __builtin_mul_overflow(count, dims[i], &count))
            return -1;
    }
    if (__builtin_mul_overflow(count, (int64_t)mixt_dtype_size(dtype), &bytes))
        return -1;
    return empty ? 0 : count;
}

mixt_status mixt__weights_finite(const char *name, const void *values, int64_t from, int64_t count, const char *then)
{
    const float *value = values;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(value[i]))
            return mixt__fail(MIXT_ERROR_DATA, "'%s' is not finite (element %lld is %g): %s", name,
                              (long long)(from + i), isnan(value[i]) ? (double)NAN : (double)value[i], then);
    return MIXT_OK;
}

mixt__dims_text mixt__dims_print(int rank, const int64_t *dims)
{
    mixt__dims_text shape = {"["};
    size_t used = 1;
    for (int i = 0; i < rank && i < MIXT__FILE_RANK; i++)
        used +=
            (size_t)snprintf(shape.text + used, sizeof shape.text - used, "%s%lld", i ? ", " : "", (long long)dims[i]);
    snprintf(shape.text + used, sizeof shape.text - used, "]");
    return shape;
}
