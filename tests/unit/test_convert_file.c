/* mixt_convert_file: between file kinds and formats; whatever fails leaves nothing behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/temp_folder.h"
#include "mixt/weights.h"
#include "store/npy.h"
#include "store/safetensors.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { COUNT = 3000 };

static float values[COUNT];
static const int64_t indices[3] = {7, -1, 1ll << 40};

static void write_weights(const char *path)
{
    const mixt__file_tensor tensors[] = {
        {.name = "index", .dtype = MIXT_DTYPE_INT64, .rank = 1, .dims = {3}, .data = indices},
        {.name = "w", .dtype = MIXT_DTYPE_FP32, .rank = 2, .dims = {COUNT / 3, 3}, .data = values},
        {.name = "empty", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {0}, .data = values},
    };
    const mixt__text_pair pair = {"format", "pt"};
    const mixt__metadata metadata = {&pair, 1};
    assert_int_equal(mixt__safetensors_write(path, tensors, 3, &metadata), MIXT_OK);
}

static void test_weights(void **state)
{
    (void)state;
    const char *src = temp_path("a.safetensors"), *dst = temp_path("b.safetensors");
    write_weights(src);
    for (int d = 1; d < MIXT_DTYPE_NF4; d++) {
        mixt_dtype dtype = (mixt_dtype)d;
        static char want[COUNT * 8];
        assert_int_equal(mixt_convert_file(src, dst, dtype, NULL, true, NULL), MIXT_OK);
        assert_int_equal(mixt_convert(want, dtype, values, MIXT_DTYPE_FP32, COUNT, NULL), MIXT_OK);
        mixt__safetensors *file;
        assert_int_equal(mixt__safetensors_open(dst, &file), MIXT_OK);
        assert_int_equal(file->count, 3);
        const mixt__file_tensor *w = mixt__safetensors_find(file, "w"), *index = mixt__safetensors_find(file, "index");
        assert_true(w && index);
        assert_int_equal(w->dtype, dtype == MIXT_DTYPE_TF32 ? MIXT_DTYPE_FP32 : dtype);
        assert_int_equal(w->rank, 2);
        assert_memory_equal(w->data, want, COUNT * mixt_dtype_size(dtype));
        assert_int_equal(index->dtype, MIXT_DTYPE_INT64); // not floating point: kept
        assert_memory_equal(index->data, indices, sizeof indices);
        assert_string_equal(mixt__safetensors_metadata(file, "format"), "pt");
        mixt__safetensors_close(file);
    }
    assert_int_equal(mixt_convert_file(src, src, MIXT_DTYPE_FP16, NULL, true, NULL), MIXT_OK); // onto itself
    assert_int_equal(temp_folder_files(1), 2);
}

static void test_arrays(void **state)
{
    (void)state;
    const char *src = temp_path("a.npy"), *half = temp_path("half.npy"), *brain = temp_path("brain.safetensors");
    const char *back = temp_path("back.npy");
    mixt__file_tensor tensor = {.dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {COUNT}, .data = values};
    assert_int_equal(mixt__npy_write(src, &tensor, false), MIXT_OK);
    assert_int_equal(mixt_convert_file(src, half, MIXT_DTYPE_FP16, NULL, false, NULL), MIXT_OK);
    assert_int_equal(mixt_convert_file(src, brain, MIXT_DTYPE_BF16, NULL, false, NULL), MIXT_OK);
    assert_int_equal(mixt_convert_file(brain, back, MIXT_DTYPE_FP64, NULL, false, NULL), MIXT_OK);
    mixt__npy file;
    assert_int_equal(mixt__npy_open(half, &file), MIXT_OK);
    assert_int_equal(file.tensor.dtype, MIXT_DTYPE_FP16);
    assert_int_equal(((const uint16_t *)file.tensor.data)[5], mixt_fp16_from_fp32(values[5]));
    mixt__npy_close(&file);
    assert_int_equal(mixt__npy_open(back, &file), MIXT_OK);
    for (int i = 0; i < COUNT; i++)
        assert_true(((const double *)file.tensor.data)[i] == (double)mixt_bf16_to_fp32(mixt_bf16_from_fp32(values[i])));
    mixt__npy_close(&file);
    assert_int_equal(temp_folder_files(1), 4);
}

static void test_stochastic_differs_by_tensor(void **state)
{
    (void)state;
    const char *src = temp_path("a.safetensors"), *one = temp_path("one.safetensors"),
               *two = temp_path("two.safetensors");
    const mixt__file_tensor tensors[2] = {
        {.name = "a", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {COUNT}, .data = values},
        {.name = "b", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {COUNT}, .data = values},
    };
    assert_int_equal(mixt__safetensors_write(src, tensors, 2, NULL), MIXT_OK);
    mixt_convert_options options = MIXT_OPTIONS(mixt_convert_options, .stochastic = true, .seed = 5);
    assert_int_equal(mixt_convert_file(src, one, MIXT_DTYPE_BF16, &options, false, NULL), MIXT_OK);
    assert_int_equal(mixt_convert_file(src, two, MIXT_DTYPE_BF16, &options, false, NULL), MIXT_OK);
    mixt__safetensors *first, *second;
    assert_int_equal(mixt__safetensors_open(one, &first), MIXT_OK);
    assert_int_equal(mixt__safetensors_open(two, &second), MIXT_OK);
    assert_memory_equal(first->tensors[0].data, second->tensors[0].data, COUNT * 2);
    assert_memory_equal(first->tensors[1].data, second->tensors[1].data, COUNT * 2);
    assert_memory_not_equal(first->tensors[0].data, first->tensors[1].data, COUNT * 2);
    mixt__safetensors_close(first);
    mixt__safetensors_close(second);
    temp_folder_files(1);
}

static void test_report(void **state)
{
    (void)state;
    const float odd[] = {1e9f, -1e9f, 1e-30f, NAN, 1};
    const int64_t index = 3;
    const mixt__file_tensor tensors[] = {
        {.name = "index", .dtype = MIXT_DTYPE_INT64, .rank = 1, .dims = {1}, .data = &index},
        {.name = "w", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {5}, .data = odd},
    };
    const mixt_convert_options clamp = MIXT_OPTIONS(mixt_convert_options, .saturate = true);
    const char *src = temp_path("a.safetensors"), *dst = temp_path("b.safetensors");
    mixt_convert_report r;
    assert_int_equal(mixt__safetensors_write(src, tensors, 2, NULL), MIXT_OK);
    assert_int_equal(mixt_convert_file(src, dst, MIXT_DTYPE_FP16, NULL, true, &r), MIXT_OK);
    assert_true(r.kept == 1 && r.overflowed == 2 && r.clamped == 0 && r.vanished == 1 && r.nan_lost == 0);
    assert_int_equal(mixt_convert_file(src, dst, MIXT_DTYPE_FP16, &clamp, true, &r), MIXT_OK);
    assert_true(r.kept == 1 && r.overflowed == 0 && r.clamped == 2 && r.vanished == 1 && r.nan_lost == 0);
    assert_int_equal(mixt_convert_file(src, dst, MIXT_DTYPE_INT8, NULL, true, &r), MIXT_OK);
    assert_true(r.overflowed == 0 && r.clamped == 2 && r.nan_lost == 1);
    assert_int_equal(mixt_convert_file(NULL, dst, MIXT_DTYPE_FP16, NULL, true, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_convert_file(src, NULL, MIXT_DTYPE_FP16, NULL, true, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(temp_folder_files(1), 2);
}

static void test_refusals(void **state)
{
    (void)state;
    const char *src = temp_path("a.safetensors"), *array = temp_path("a.npy"), *dst = temp_path("out.npy");
    mixt__file_tensor tensor = {.dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {COUNT}, .data = values};
    write_weights(src);
    assert_int_equal(mixt__npy_write(array, &tensor, false), MIXT_OK);
    const struct {
        const char *src, *dst;
        mixt_dtype dtype;
        mixt_status status;
        const char *text;
    } cases[] = {
        {array, dst, MIXT_DTYPE_BF16, MIXT_ERROR_DTYPE, ".safetensors"},
        {array, dst, MIXT_DTYPE_FP8_E4M3, MIXT_ERROR_DTYPE, "fp8_e4m3"},
        {src, dst, MIXT_DTYPE_FP16, MIXT_ERROR_UNSUPPORTED, "3 tensors"},
        {src, array, MIXT_DTYPE_FP16, MIXT_ERROR_FILE, array},
        {array, src, MIXT_DTYPE_FP16, MIXT_ERROR_FILE, src},
        {array, dst, MIXT_DTYPE_NONE, MIXT_ERROR_DTYPE, array},
        {temp_path("absent.npy"), dst, MIXT_DTYPE_FP16, MIXT_ERROR_FILE, "absent.npy"},
        {array, "weights.bin", MIXT_DTYPE_FP16, MIXT_ERROR_UNSUPPORTED, "weights.bin"},
        {"weights.bin", dst, MIXT_DTYPE_FP16, MIXT_ERROR_UNSUPPORTED, "weights.bin"},
        {array, temp_path("no/such/folder.npy"), MIXT_DTYPE_FP16, MIXT_ERROR_FILE, "folder.npy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(mixt_convert_file(cases[i].src, cases[i].dst, cases[i].dtype, NULL, false, NULL),
                         cases[i].status);
        if (!strstr(mixt_error_text(), cases[i].text))
            fail_msg("case %zu: %s", i, mixt_error_text());
        assert_int_equal(temp_folder_files(0), 2);
    }
    mixt_convert_options options = MIXT_OPTIONS(mixt_convert_options, .scale = -1);
    assert_int_equal(mixt_convert_file(array, dst, MIXT_DTYPE_INT8, &options, false, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(temp_folder_files(1), 2);
}

/** A file-size limit acts as a full disk: short writes, then an error. The old file stays, nothing else remains. */
static void test_full_disk(void **state)
{
    (void)state;
    const char *src = temp_path("a.safetensors");
    const char *const outputs[2] = {temp_path("out.safetensors"), temp_path("out.npy")};
    mixt__file_tensor tensor = {.name = "w", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {COUNT}, .data = values};
    assert_int_equal(mixt__safetensors_write(src, &tensor, 1, NULL), MIXT_OK);
    for (int i = 0; i < 2; i++)
        assert_true(temp_write(outputs[i], "old", 3));
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (rlim_t bytes = 0; bytes < COUNT * 4; bytes = bytes * 3 + 1)
        for (int i = 0; i < 2; i++) {
            limit = (struct rlimit){bytes, before.rlim_max};
            setrlimit(RLIMIT_FSIZE, &limit);
            mixt_status status = mixt_convert_file(src, outputs[i], MIXT_DTYPE_FP64, NULL, true, NULL);
            setrlimit(RLIMIT_FSIZE, &before);
            assert_int_equal(status, MIXT_ERROR_FILE);
            assert_non_null(strstr(mixt_error_text(), outputs[i]));
            assert_int_equal(temp_folder_files(0), 3);
            size_t length;
            unsigned char *old = temp_read(outputs[i], &length);
            assert_true(old && length == 3 && !memcmp(old, "old", 3));
            free(old);
        }
    signal(SIGXFSZ, handler);
    temp_folder_files(1);
}

/** This program again, with its n-th allocation failing: the conversion reports it and leaves nothing behind. */
static void test_out_of_memory(void **state)
{
    (void)state;
    const char *src = temp_path("a.safetensors"), *dst = temp_path("out.safetensors");
    write_weights(src);
    int n = 0, code = -1;
    while (code != 0 && n < 200) {
        char number[16];
        snprintf(number, sizeof number, "%d", ++n);
        pid_t child = fork();
        if (child == 0) {
            setenv("MIXT_FAIL_ALLOC", number, 1);
            execl("/proc/self/exe", "test_convert_file", src, dst, (char *)NULL);
            _exit(99);
        }
        int status;
        assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
        code = WEXITSTATUS(status);
        if (code != 0 && code != MIXT_ERROR_MEMORY)
            fail_msg("allocation %d failed: exit status %d", n, code);
        assert_int_equal(temp_folder_files(0), code == 0 ? 2 : 1);
    }
    assert_true(code == 0 && n > 5); // the last one failed an allocation that never came
    temp_folder_files(1);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i - COUNT / 2) * 0.0371f;
    if (argc == 3)
        return (int)mixt_convert_file(argv[1], argv[2], MIXT_DTYPE_BF16, NULL, false, NULL);
    temp_folder_make();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_stochastic_differs_by_tensor),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_out_of_memory),
    };
    int failed = cmocka_run_group_tests_name("convert_file", tests, NULL, NULL);
    temp_folder_remove();
    return failed;
}
