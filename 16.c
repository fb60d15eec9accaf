#line 445 "docs/c-api.md"
#include <mixt/num.h>

mixt_status halve(const float *from, uint16_t *to, int64_t count)
{
    mixt_convert_options options = {.saturate = true}; // the largest finite value, not infinity
    return mixt_convert(to, MIXT_DTYPE_FP16, from, MIXT_DTYPE_FP32, count, &options);
}
