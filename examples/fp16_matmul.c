/* An FP16 matrix product that accumulates in FP32: C = A·B. Checked against the sum in double precision. */
#include <mixt/mixt.h>

#include <math.h>
#include <stdio.h>

enum { M = 96, N = 72, K = 200 };

static mixt_value product(mixt_builder *b, const mixt_value *in)
{
    return mixt_matmul(b, in[0], in[1]);
}

/** sin fills the matrix with numbers of every size; they are rounded to FP16 here, once. */
static void fill(uint16_t *matrix, int count, float step)
{
    for (int i = 0; i < count; i++)
        matrix[i] = mixt_fp16_from_fp32(sinf(step * (float)i));
}

int main(void)
{
    static uint16_t a[M * K], b[K * N], c[M * N];
    fill(a, M * K, 0.37f);
    fill(b, K * N, 0.71f);

    mixt_context *ctx = mixt_open();
    mixt_array inputs[] = {{a, MIXT_DTYPE_FP16, 2, {M, K}}, {b, MIXT_DTYPE_FP16, 2, {K, N}}};
    mixt_array result = {c, MIXT_DTYPE_FP16, 2, {M, N}};
    mixt_status status = mixt_compute(ctx, product, inputs, 2, &result);

    // The sum is exact to FP32, so the error is that of one rounding to FP16: at most 2^-11 of the result.
    double worst = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double exact = 0;
            for (int k = 0; k < K; k++)
                exact += (double)mixt_fp16_to_fp32(a[i * K + k]) * mixt_fp16_to_fp32(b[k * N + j]);
            double error = fabs(mixt_fp16_to_fp32(c[i * N + j]) - exact) / fmax(fabs(exact), 0.05);
            worst = fmax(worst, error);
        }
    printf("(%d x %d)·(%d x %d) in FP16: largest relative error %.2e, one rounding is %.2e\n", M, K, K, N, worst,
           ldexp(1, -11));
    if (status != MIXT_OK)
        fprintf(stderr, "%s\n", mixt_error(ctx));
    mixt_close(ctx);
    return status == MIXT_OK && worst < 1.1 * ldexp(1, -11) ? 0 : 1;
}
