#line 459 "docs/c-api.md"
#include <mixt/weights.h>

mixt_status shrink(void)
{
    mixt_convert_report report;
    return mixt_convert_file("weights.safetensors", "half.safetensors", MIXT_DTYPE_BF16, NULL,
                             false, &report); // false: an existing file is not replaced
}
