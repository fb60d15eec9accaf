/* z = x + y on BF16 vectors: added in FP32, rounded once. Checked bit by bit against single conversions. */
#include <mixt/mixt.h>

#include <stdio.h>

enum { COUNT = 1000003 };

static mixt_value sum(mixt_builder *b, const mixt_value *in)
{
    return mixt_add(b, in[0], in[1]);
}

int main(void)
{
    static uint16_t x[COUNT], y[COUNT], z[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = mixt_bf16_from_fp32((float)i * 0.25f);
        y[i] = mixt_bf16_from_fp32(1e6f / (float)(i + 1));
    }

    mixt_context *ctx = mixt_open();
    mixt_array inputs[] = {{x, MIXT_DTYPE_BF16, 1, {COUNT}}, {y, MIXT_DTYPE_BF16, 1, {COUNT}}};
    mixt_array result = {z, MIXT_DTYPE_BF16, 1, {COUNT}};
    mixt_status status = mixt_compute(ctx, sum, inputs, 2, &result);

    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += z[i] != mixt_bf16_from_fp32(mixt_bf16_to_fp32(x[i]) + mixt_bf16_to_fp32(y[i]));
    printf("%d sums, %d not correctly rounded; %g + %g = %g in BF16\n", COUNT, wrong, mixt_bf16_to_fp32(x[401]),
           mixt_bf16_to_fp32(y[401]), mixt_bf16_to_fp32(z[401]));
    if (status != MIXT_OK)
        fprintf(stderr, "%s\n", mixt_error(ctx));
    mixt_close(ctx);
    return status != MIXT_OK || wrong;
}
