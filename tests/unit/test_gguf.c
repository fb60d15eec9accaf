/* GGUF: blocks as the gguf package packs them (tests/peers/golden_gguf.py), the bytes of a small file, what has no
 * place in a format, and nothing left where writing fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "store/file.h"
#include "store/gguf.h"

#include "../support/temp_folder.h"

#include <math.h>

enum { MOST = 4096 };

static int64_t unhex(const char *text, unsigned char *bytes)
{
    int64_t count = 0;
    unsigned byte;
    for (; sscanf(text, "%2x", &byte) == 1; text += 2)
        bytes[count++] = (unsigned char)byte;
    return count;
}

static void test_blocks(void **state)
{
    (void)state;
    static char name[16], in[2 * MOST], out[2 * MOST];
    static unsigned char wanted[MOST], packed[MOST];
    static float values[MOST / sizeof(float)];
    int cases = 0;
    FILE *file = fopen("tests/data/gguf/blocks.golden", "r");
    assert_non_null(file);
    for (; fscanf(file, "%15s %8191s %8191s", name, in, out) == 3; cases++) {
        int type = mixt__gguf_type_parse(name);
        assert_true(type >= 0);
        int64_t count = unhex(in, (unsigned char *)values) / (int64_t)sizeof(float), bytes = unhex(out, wanted);
        assert_int_equal(mixt__gguf_bytes((mixt__gguf_type)type, count), bytes);
        assert_int_equal(mixt__gguf_pack((mixt__gguf_type)type, "w", values, count, packed), MIXT_OK);
        assert_memory_equal(packed, wanted, (size_t)bytes);
    }
    fclose(file);
    assert_int_equal(cases, 40);
}

static void test_range(void **state)
{
    (void)state;
    float values[MIXT_GGUF_BLOCK] = {0};
    unsigned char packed[4 * MIXT_GGUF_BLOCK];
    values[3] = -70000;
    assert_int_equal(mixt__gguf_pack(MIXT_GGUF_F16, "h.w", values, MIXT_GGUF_BLOCK, packed), MIXT_ERROR_DTYPE);
    assert_non_null(strstr(mixt_error_text(), "tensor 'h.w' holds -70000, beyond what f16 can hold"));
    assert_int_equal(mixt__gguf_pack(MIXT_GGUF_BF16, "h.w", values, MIXT_GGUF_BLOCK, packed), MIXT_OK);
    assert_int_equal(mixt__gguf_pack(MIXT_GGUF_Q8_0, "h.w", values, MIXT_GGUF_BLOCK, packed), MIXT_OK);
    values[3] = 1e6f;
    assert_int_equal(mixt__gguf_pack(MIXT_GGUF_Q4_0, "h.w", values, MIXT_GGUF_BLOCK, packed), MIXT_ERROR_DTYPE);
    assert_int_equal(mixt__gguf_pack(MIXT_GGUF_Q8_0, "h.w", values, MIXT_GGUF_BLOCK, packed), MIXT_OK);
    values[3] = 1e7f;
    assert_int_equal(mixt__gguf_pack(MIXT_GGUF_Q8_0, "h.w", values, MIXT_GGUF_BLOCK, packed), MIXT_ERROR_DTYPE);
    assert_int_equal(mixt__gguf_type_parse("q5_0"), -1);
}

/** Rows that tell which they are; the third call fails where `argument` says so. */
static mixt_status rows(void *argument, int64_t index, int64_t first, int64_t count, float *values)
{
    int64_t row = index ? 3 : 32, all = index ? 1 : count;
    for (int64_t i = 0; i < all * row; i++)
        values[i] = (float)(100 * index + first * row + i);
    return argument && index ? mixt_fail(MIXT_ERROR_DATA, "damaged") : MIXT_OK;
}

static const mixt__gguf_tensor tensors[] = {{"a.weight", MIXT_GGUF_F16, 2, {2, 32}, false},
                                            {"b.weight", MIXT_GGUF_F32, 1, {3}, true}};

static void test_file(void **state)
{
    (void)state;
    static const unsigned char head[] =
        "GGUF\3\0\0\0\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
        "\1\0\0\0\0\0\0\0k\x8\0\0\0\2\0\0\0\0\0\0\0hi"
        "\1\0\0\0\0\0\0\0n\x9\0\0\0\5\0\0\0\2\0\0\0\0\0\0\0\xff\xff\xff\xff\7\0\0\0"
        "\x8\0\0\0\0\0\0\0a.weight\2\0\0\0 \0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0"
        "\x8\0\0\0\0\0\0\0b.weight\1\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\x80\0\0\0\0\0\0\0";
    mixt__gguf_fields fields = {0};
    const char *path = temp_path("small.gguf");
    int64_t told;
    size_t bytes;
    mixt__gguf_put_text(&fields, "k", "hi");
    mixt__gguf_put_array(&fields, "n", MIXT_GGUF_INT32, 2);
    mixt__gguf_add_int(&fields, -1);
    mixt__gguf_add_int(&fields, 7);
    assert_int_equal(mixt__gguf_write(path, false, &fields, tensors, 2, rows, NULL, &told), MIXT_OK);
    unsigned char *all = temp_read(path, &bytes);
    assert_non_null(all);
    assert_int_equal(bytes, told);
    size_t data = (sizeof head - 1 + 31) / 32 * 32;
    assert_int_equal(bytes, data + 128 + 32); // 64 FP16, then 3 FP32 and padding
    assert_memory_equal(all, head, sizeof head - 1);
    float b[3];
    memcpy(b, all + data + 128, sizeof b);
    assert_true(b[0] == 100 && b[2] == 102);
    uint16_t last;
    memcpy(&last, all + data + 126, sizeof last);
    assert_int_equal(last, 0x53e0); // 63
    free(all);
    assert_int_equal(mixt__gguf_write(path, false, &fields, tensors, 2, rows, NULL, NULL), MIXT_ERROR_FILE); // is there
    mixt__gguf_fields_free(&fields);
}

static void test_nothing_left(void **state)
{
    (void)state;
    mixt__gguf_fields fields = {0};
    temp_folder_empty();
    mixt__gguf_put_bool(&fields, "x", true);
    assert_int_equal(mixt__gguf_write(temp_path("a.gguf"), false, &fields, tensors, 2, rows, &fields, NULL),
                     MIXT_ERROR_DATA);
    for (int64_t number = 1; number <= 3; number++) {
        mixt__file_fail_write(number);
        assert_int_equal(mixt__gguf_write(temp_path("a.gguf"), false, &fields, tensors, 2, rows, NULL, NULL),
                         MIXT_ERROR_FILE);
    }
    mixt__file_fail_write(0);
    assert_int_equal(temp_folder_files(0), 0);
    mixt__gguf_tensor odd = {"c.weight", MIXT_GGUF_Q8_0, 2, {2, 33}, false};
    assert_int_equal(mixt__gguf_write(temp_path("a.gguf"), false, &fields, &odd, 1, rows, NULL, NULL),
                     MIXT_ERROR_SHAPE);
    assert_non_null(strstr(mixt_error_text(), "rows of 33 are not whole blocks of 32"));
    assert_int_equal(temp_folder_files(0), 0);
    mixt__gguf_fields_free(&fields);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_nothing_left),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
