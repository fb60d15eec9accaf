#line 324 "docs/c-api.md"
#include <mixt/bench.h>
#include <stdio.h>

mixt_status time_perceptron(void)
{
    mixt_bench_result result;
    mixt_status status = mixt_bench_run("mlp", &result, .precision = "bf16", .threads = 2);
    if (status == MIXT_OK)
        printf("%.3f ms a step\n", 1e3 * result.seconds);
    mixt_bench_free(&result);
    return status;
}
