#line 475 "docs/c-api.md"
#include <mixt/compute.h>

static mixt_value product(mixt_builder *b, const mixt_value *inputs)
{
    return mixt_matmul(b, inputs[0], inputs[1]);
}

/** a, b and c are FP16, 64 × 64 each. */
mixt_status multiply(mixt_context *context, uint16_t *a, uint16_t *b, uint16_t *c)
{
    mixt_array in[2] = {{.data = a, .dtype = MIXT_DTYPE_FP16, .rank = 2, .dims = {64, 64}},
                        {.data = b, .dtype = MIXT_DTYPE_FP16, .rank = 2, .dims = {64, 64}}};
    mixt_array out = {.data = c, .dtype = MIXT_DTYPE_FP16, .rank = 2, .dims = {64, 64}};
    return mixt_compute(context, product, in, 2, &out);
}
