/* What <mixt/machine.h> says about this machine: consistent with itself, whatever the machine is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include <stdlib.h>
#include <string.h>

static void test_processor(void **state)
{
    (void)state;
    mixt_cpu_info cpu;
    mixt_cpu_describe(&cpu);
    assert_true(cpu.name[0]);
    assert_in_range(cpu.cores_usable, 1, cpu.cores_online);
    assert_true(cpu.threads >= 1);
    assert_true(cpu.memory_total > 0 && cpu.memory_available <= cpu.memory_total);
    assert_in_range(cpu.feature_count, 1, MIXT_CPU_FEATURES_MAX);
    bool avx2 = false;
    for (int i = 0; i < cpu.feature_count; i++)
        avx2 = avx2 || (!strcmp(cpu.features[i].name, "avx2") && cpu.features[i].present);
    assert_true(avx2 || !strcmp(cpu.isa, "scalar"));
    for (int i = 0; i < cpu.cache_count; i++)
        assert_true(cpu.caches[i].level >= 1 && cpu.caches[i].bytes > 0 && cpu.caches[i].type[0]);
}

/** The context opened last decides the threads. */
static void test_threads(void **state)
{
    (void)state;
    mixt_cpu_info cpu;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 3);
    mixt_cpu_describe(&cpu);
    assert_int_equal(cpu.threads, 3);
    mixt_close(context);
}

static void test_processor_formats(void **state)
{
    (void)state;
    static const char *const names[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "int8"};
    mixt_format_info formats[MIXT_FORMATS_MAX];
    assert_int_equal(mixt_cpu_formats(formats), 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(formats[i].name, names[i]);
        assert_true(*formats[i].how && *formats[i].training);
    }
    assert_int_equal(formats[0].support, MIXT_SUPPORT_NATIVE);
    assert_string_equal(mixt_support_name(formats[1].support), "emulated");
}

/** Formats of a device that is not here: what it has units for is native. */
static void test_gpu_formats(void **state)
{
    (void)state;
    mixt_gpu_info gpu = {.tensor_cores = 3};
    mixt_format_info formats[MIXT_FORMATS_MAX];
    gpu.flops[MIXT_DTYPE_FP32] = 2e13;
    gpu.flops[MIXT_DTYPE_BF16] = 3e14;
    int count = mixt_gpu_formats(&gpu, formats);
    assert_int_equal(count, 5);
    for (int i = 0; i < count; i++) {
        bool native = formats[i].dtype == MIXT_DTYPE_FP32 || formats[i].dtype == MIXT_DTYPE_BF16;
        assert_int_equal(formats[i].support, native ? MIXT_SUPPORT_NATIVE : MIXT_SUPPORT_EMULATED);
        assert_true(formats[i].flops == gpu.flops[formats[i].dtype]);
    }
    assert_string_equal(formats[0].how, "vector units");
    assert_string_equal(formats[3].how, "Tensor Cores");
}

/** With a GPU or without one: the count, the description and what auto means fit together. */
static void test_gpus(void **state)
{
    (void)state;
    mixt_gpu_info gpu;
    int count = mixt_gpu_count();
    mixt_status status = mixt_gpu_describe(0, &gpu);
    assert_int_equal(status, count ? MIXT_OK : MIXT_ERROR_DEVICE);
    if (count)
        assert_true(gpu.name[0] && gpu.memory_free <= gpu.memory_bytes && gpu.bytes_s > 0);
    else
        assert_true(*mixt_error_text());
    assert_int_equal(mixt_gpu_describe(count, &gpu), MIXT_ERROR_DEVICE);
    assert_int_equal(mixt_gpu_describe(-1, &gpu), MIXT_ERROR_DEVICE);
    assert_int_equal(mixt_gpu_describe(0, NULL), MIXT_ERROR_ARGUMENT);
    const char *asked = getenv("MIXT_DEVICE");
    if (asked && !strcmp(asked, "cpu"))
        assert_string_equal(mixt_device_auto(), "cpu");
}

/** The reason is the caller's, and need not be asked for. */
static void test_pick(void **state)
{
    (void)state;
    mixt_dtype format, again;
    char *why;
    assert_int_equal(mixt_precision_pick("cpu", &format, &why), MIXT_OK);
    assert_true(mixt_dtype_is_float(format) && strstr(why, "has"));
    mixt_free(why);
    assert_int_equal(mixt_precision_pick("cpu", &again, NULL), MIXT_OK);
    assert_int_equal(format, again);
    assert_int_equal(mixt_precision_pick("toaster", &format, &why), MIXT_ERROR_DEVICE);
    assert_null(why);
}

static void test_build(void **state)
{
    (void)state;
    assert_true(strchr(mixt_version(), '.') != NULL);
    assert_false(mixt_built_with("magic"));
    assert_false(mixt_built_with(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processor),   cmocka_unit_test(test_threads), cmocka_unit_test(test_processor_formats),
        cmocka_unit_test(test_gpu_formats), cmocka_unit_test(test_gpus),    cmocka_unit_test(test_build),
        cmocka_unit_test(test_pick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
