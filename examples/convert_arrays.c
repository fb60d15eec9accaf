/* Arrays between number formats: what each format keeps of a number, saturation, and stochastic rounding. */
#include <mixt/mixt.h>

#include <math.h>
#include <stdio.h>

enum { COUNT = 100000 };

static int failures;

static void check(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "wrong: %s (%s)\n", what, mixt_error_text());
        failures++;
    }
}

/** To a format and back. */
static float through(mixt_dtype format, float value)
{
    uint32_t bits;
    float back = 0;
    check(mixt_convert(&bits, format, &value, MIXT_DTYPE_FP32, 1, NULL) == MIXT_OK, "to the format");
    check(mixt_convert(&back, MIXT_DTYPE_FP32, &bits, format, 1, NULL) == MIXT_OK, "and back");
    return back;
}

int main(void)
{
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_TF32,     MIXT_DTYPE_FP16,
                                         MIXT_DTYPE_BF16, MIXT_DTYPE_FP8_E4M3, MIXT_DTYPE_FP8_E5M2};
    static const float values[] = {3.14159265f, 1e-3f, 1e-7f, 70000.0f};
    for (int f = 0; f < 6; f++) {
        printf("%-9s", mixt_dtype_name(formats[f]));
        for (int v = 0; v < 4; v++)
            printf("  %14.9g", through(formats[f], values[v]));
        printf("\n");
    }
    check(through(MIXT_DTYPE_FP16, 70000.0f) == INFINITY, "FP16 ends at 65504");
    check(through(MIXT_DTYPE_BF16, 70000.0f) == 70144.0f, "BF16 has FP32's range and 8 bits of mantissa");
    check(through(MIXT_DTYPE_FP16, 6e-8f) > 0, "FP16 subnormals survive");

    static float numbers[COUNT], back[COUNT];
    static uint16_t half[COUNT];
    for (int i = 0; i < COUNT; i++)
        numbers[i] = 70000.0f;
    mixt_convert(half, MIXT_DTYPE_FP16, numbers, MIXT_DTYPE_FP32, COUNT,
                 MIXT_OPTIONS_AT(mixt_convert_options, .saturate = true));
    check(mixt_fp16_to_fp32(half[COUNT - 1]) == 65504.0f, "saturation stops at the largest number");

    // 1 + 2^-10 lies an eighth of the way between the BF16 neighbours 1 and 1 + 2^-7: nearest always says 1, on average
    // stochastic rounding says what is true.
    double nearest = 0, stochastic = 0;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = 1 + 0x1p-10f;
    mixt_convert(half, MIXT_DTYPE_BF16, numbers, MIXT_DTYPE_FP32, COUNT, NULL);
    mixt_convert(back, MIXT_DTYPE_FP32, half, MIXT_DTYPE_BF16, COUNT, NULL);
    for (int i = 0; i < COUNT; i++)
        nearest += back[i] / COUNT;
    mixt_convert(half, MIXT_DTYPE_BF16, numbers, MIXT_DTYPE_FP32, COUNT,
                 MIXT_OPTIONS_AT(mixt_convert_options, .stochastic = true, .seed = 1));
    mixt_convert(back, MIXT_DTYPE_FP32, half, MIXT_DTYPE_BF16, COUNT, NULL);
    for (int i = 0; i < COUNT; i++)
        stochastic += back[i] / COUNT;
    printf("mean of %d times %.7f in BF16: nearest %.7f, stochastic %.7f\n", COUNT, numbers[0], nearest, stochastic);
    check(nearest > 0.999999 && nearest < 1.000001, "nearest loses the small part");
    check(fabs(stochastic - numbers[0]) < 5e-5, "stochastic rounding keeps it in the mean");
    return failures != 0;
}
