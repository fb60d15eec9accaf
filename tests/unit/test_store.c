/* safetensors and .npy: round trips, and damaged files of every kind: each an error that names the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/temp_folder.h"
#include "mixt/num.h"
#include "store/npy.h"
#include "store/safetensors.h"

#include <ftw.h>

static unsigned char payload[4096];

/** The newest failure must say which file, and have happened. */
static void assert_refused(mixt_status status, const char *path, const char *what)
{
    if (status == MIXT_OK)
        fail_msg("%s was accepted", what);
    if (!strstr(mixt_error_text(), path))
        fail_msg("%s: the message does not name the file: %s", what, mixt_error_text());
}

/** A safetensors file of this header and this many bytes of data. */
static void write_raw(const char *path, const char *header, size_t data_bytes)
{
    unsigned char file[8192];
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(file + 8, header, length);
    memcpy(file + 8 + length, payload, data_bytes);
    assert_true(temp_write(path, file, 8 + length + data_bytes));
}

static mixt_status try_open(const char *path)
{
    mixt__safetensors *file = NULL;
    mixt_status status = mixt__safetensors_open(path, &file);
    assert_true((status == MIXT_OK) == (file != NULL));
    if (file) // every byte it promises must be there
        for (int64_t i = 0; i < file->count; i++)
            for (size_t b = 0; b < file->tensors[i].bytes; b++)
                (void)*((const volatile unsigned char *)file->tensors[i].data + b);
    mixt__safetensors_close(file);
    return status;
}

static void test_safetensors_round_trip(void **state)
{
    (void)state;
    const mixt__file_tensor tensors[] = {
        {.name = "bytes", .dtype = MIXT_DTYPE_UINT8, .rank = 1, .dims = {3}, .data = payload + 1},
        {.name = "int8", .dtype = MIXT_DTYPE_INT8, .rank = 2, .dims = {5, 1}, .data = payload + 2},
        {.name = "scalar", .dtype = MIXT_DTYPE_FP32, .rank = 0, .data = payload},
        {.name = "half", .dtype = MIXT_DTYPE_FP16, .rank = 8, .dims = {1, 2, 1, 3, 1, 1, 2, 1}, .data = payload},
        {.name = "brain \"q\" \xc3\xa9", .dtype = MIXT_DTYPE_BF16, .rank = 3, .dims = {2, 3, 7}, .data = payload + 8},
        {.name = "e4m3", .dtype = MIXT_DTYPE_FP8_E4M3, .rank = 1, .dims = {11}, .data = payload + 9},
        {.name = "e5m2", .dtype = MIXT_DTYPE_FP8_E5M2, .rank = 1, .dims = {13}, .data = payload + 10},
        {.name = "empty", .dtype = MIXT_DTYPE_FP32, .rank = 2, .dims = {4, 0}, .data = payload},
        {.name = "int32", .dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {9}, .data = payload + 3},
        {.name = "int64", .dtype = MIXT_DTYPE_INT64, .rank = 1, .dims = {5}, .data = payload + 4},
        {.name = "double", .dtype = MIXT_DTYPE_FP64, .rank = 1, .dims = {6}, .data = payload + 5},
        {.name = "tf32", .dtype = MIXT_DTYPE_TF32, .rank = 1, .dims = {2}, .data = payload + 6},
    };
    enum { COUNT = sizeof tensors / sizeof tensors[0] };
    const mixt__text_pair pairs[2] = {{"format", "mixt"}, {"note", "a \"quoted\" text"}};
    const mixt__metadata metadata = {pairs, 2};
    const char *path = temp_path("all.safetensors");
    assert_int_equal(mixt__safetensors_write(path, tensors, COUNT, &metadata), MIXT_OK);
    mixt__safetensors *file;
    assert_int_equal(mixt__safetensors_open(path, &file), MIXT_OK);
    assert_int_equal(file->count, COUNT);
    assert_string_equal(mixt__safetensors_metadata(file, "note"), pairs[1].value);
    assert_null(mixt__safetensors_metadata(file, "absent"));
    assert_null(mixt__safetensors_find(file, "absent"));
    for (int i = 0; i < COUNT; i++) {
        const mixt__file_tensor *got = mixt__safetensors_find(file, tensors[i].name);
        assert_non_null(got);
        assert_int_equal(got->dtype, tensors[i].dtype == MIXT_DTYPE_TF32 ? MIXT_DTYPE_FP32 : tensors[i].dtype);
        assert_int_equal(got->rank, tensors[i].rank);
        assert_memory_equal(got->dims, tensors[i].dims, sizeof got->dims);
        assert_memory_equal(got->data, tensors[i].data, got->bytes);
        assert_int_equal((uintptr_t)got->data % mixt_dtype_size(got->dtype), 0);
    }
    mixt__safetensors_close(file);
    size_t bytes;
    unsigned char *raw = temp_read(path, &bytes);
    assert_non_null(raw);
    assert_int_equal((raw[0] | raw[1] << 8) % 8, 0);
    free(raw);
    assert_int_equal(mixt__safetensors_write(path, NULL, 0, NULL), MIXT_OK); // no tensors at all is a file too
    assert_int_equal(try_open(path), MIXT_OK);
    assert_int_equal(temp_folder_files(1), 1);
}

static const struct {
    const char *what, *header;
    size_t data_bytes;
} bad_headers[] = {
    {"an empty text", "  ", 0},
    {"an array", "[]", 0},
    {"a number", "42", 0},
    {"unclosed JSON", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4},
    {"a trailing comma", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},}", 4},
    {"text after the object", "{} x", 0},
    {"bytes that are not UTF-8", "{\"\xff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4},
    {"a name used twice",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
     "\"data_offsets\":[1,2]}}",
     2},
    {"an entry that is no object", "{\"a\":3}", 0},
    {"no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4},
    {"a dtype that is no text", "{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4},
    {"an unknown dtype", "{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4},
    {"a dtype that mixt lacks", "{\"a\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4},
    {"a shape that is no array", "{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4},
    {"a negative dimension", "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4},
    {"two negative dimensions", "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1,-1],\"data_offsets\":[0,4]}}", 4},
    {"a fraction as dimension", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4},
    {"a text as dimension", "{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4},
    {"nine dimensions", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4},
    {"a shape that overflows", "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
     0},
    {"a shape whose bytes overflow",
     "{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0},
    {"an overflow hidden by a zero",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]}}", 0},
    {"a number past 64 bits", "{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999999],\"data_offsets\":[0,4]}}",
     4},
    {"no offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4},
    {"one offset", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4},
    {"three offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4},
    {"offsets that are no numbers", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[null,4]}}", 4},
    {"a negative offset", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4},
    {"offsets the wrong way round", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4},
    {"offsets past the end", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4},
    {"huge offsets",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9223372036854775803,9223372036854775807]}}", 4},
    {"a size that does not fit the shape", "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8},
    {"overlapping tensors",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
     "\"data_offsets\":[2,6]}}",
     6},
    {"two tensors in one place",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
     "\"data_offsets\":[0,4]}}",
     4},
    {"a hole between tensors",
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
     "\"data_offsets\":[6,10]}}",
     10},
    {"a hole at the start", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", 6},
    {"bytes after the last tensor", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 5},
    {"data without tensors", "{}", 8},
    {"an unknown key", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],\"x\":1}}", 4},
    {"metadata that is no object", "{\"__metadata__\":[]}", 0},
    {"metadata that is no text", "{\"__metadata__\":{\"a\":1}}", 0},
};

static void test_safetensors_bad_headers(void **state)
{
    (void)state;
    const char *path = temp_path("bad.safetensors");
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++) {
        write_raw(path, bad_headers[i].header, bad_headers[i].data_bytes);
        assert_refused(try_open(path), path, bad_headers[i].what);
    }
    write_raw(path, "{\"layer.7\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8);
    assert_int_equal(try_open(path), MIXT_ERROR_FORMAT);
    assert_non_null(strstr(mixt_error_text(), "layer.7"));
    assert_non_null(strstr(mixt_error_text(), "12")); // the bytes expected
    assert_int_equal(try_open(temp_path("absent.safetensors")), MIXT_ERROR_FILE);
    assert_int_equal(try_open(temp_folder), MIXT_ERROR_FILE);
    temp_folder_files(1);
}

/** Cut at every length; every header byte replaced by others; impossible header lengths. */
static void test_safetensors_damage(void **state)
{
    (void)state;
    const char *path = temp_path("damaged.safetensors");
    const mixt__file_tensor tensors[2] = {
        {.name = "a", .dtype = MIXT_DTYPE_FP32, .rank = 2, .dims = {2, 3}, .data = payload},
        {.name = "b", .dtype = MIXT_DTYPE_BF16, .rank = 1, .dims = {5}, .data = payload},
    };
    const mixt__text_pair pair = {"format", "pt"};
    const mixt__metadata metadata = {&pair, 1};
    assert_int_equal(mixt__safetensors_write(path, tensors, 2, &metadata), MIXT_OK);
    size_t bytes;
    unsigned char *good = temp_read(path, &bytes), *bad = malloc(bytes + 1);
    assert_true(good && bad);
    for (size_t length = 0; length < bytes; length++) {
        assert_true(temp_write(path, good, length));
        assert_refused(try_open(path), path, "a file cut short");
    }
    memcpy(bad, good, bytes);
    bad[bytes] = 0;
    assert_true(temp_write(path, bad, bytes + 1));
    assert_refused(try_open(path), path, "a byte too many");
    const unsigned char other[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '"', '{', '}', '[', ',', '-', '0', '9'};
    size_t header_end = bytes - 24 - 10;
    for (size_t at = 0; at < header_end; at++)
        for (size_t k = 0; k < sizeof other; k++) {
            memcpy(bad, good, bytes);
            bad[at] = other[k];
            assert_true(temp_write(path, bad, bytes));
            mixt_status status = try_open(path); // may be harmless (a letter of a name), must not crash
            if (status != MIXT_OK)
                assert_refused(status, path, "a damaged byte");
            else
                assert_true(at >= 8 || good[at] == other[k]); // no other header length can be right
        }
    free(good);
    free(bad);
    temp_folder_files(1);
}

static void test_safetensors_writer_refuses(void **state)
{
    (void)state;
    const char *path = temp_path("refused.safetensors");
    mixt__file_tensor good = {.name = "a", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {1}, .data = payload};
    mixt__file_tensor two[2] = {good, good};
    assert_refused(mixt__safetensors_write(path, two, 2, NULL), path, "a name used twice");
    const char *const names[] = {"", "__metadata__", "\xff\xfe"};
    for (size_t i = 0; i < 3; i++) {
        mixt__file_tensor tensor = good;
        tensor.name = names[i];
        assert_refused(mixt__safetensors_write(path, &tensor, 1, NULL), path, "a bad name");
    }
    mixt__file_tensor tensor = good;
    tensor.dtype = MIXT_DTYPE_NONE;
    assert_refused(mixt__safetensors_write(path, &tensor, 1, NULL), path, "no dtype");
    tensor = good;
    tensor.dims[0] = -1;
    assert_refused(mixt__safetensors_write(path, &tensor, 1, NULL), path, "a negative dimension");
    tensor = good;
    tensor.rank = 9;
    assert_refused(mixt__safetensors_write(path, &tensor, 1, NULL), path, "rank 9");
    assert_int_equal(temp_folder_files(0), 0);
    const char *nowhere = temp_path("absent/x.safetensors");
    assert_refused(mixt__safetensors_write(nowhere, &good, 1, NULL), nowhere, "a missing folder");
    assert_int_equal(mixt__safetensors_write(temp_folder, &good, 1, NULL), MIXT_ERROR_FILE);
}

static int64_t models_read;

static int read_model(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)walk;
    size_t length = strlen(path);
    if (kind != FTW_F || length < 12 || strcmp(path + length - 12, ".safetensors"))
        return 0;
    if (try_open(path) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    models_read++;
    return 0;
}

static void test_real_models(void **state)
{
    (void)state;
    const char *data = getenv("MIXT_TEST_DATA");
    char path[1024];
    snprintf(path, sizeof path, "%s/safetensors_models", data && *data ? data : "../shared/data");
    if (access(path, R_OK)) {
        print_message("skipped: %s is not there\n", path);
        return;
    }
    nftw(path, read_model, 8, FTW_PHYS);
    assert_true(models_read > 0);
    print_message("%lld files read\n", (long long)models_read);
}

static void test_npy_round_trip(void **state)
{
    (void)state;
    const mixt_dtype dtypes[] = {MIXT_DTYPE_FP16,  MIXT_DTYPE_FP32,  MIXT_DTYPE_FP64, MIXT_DTYPE_INT8,
                                 MIXT_DTYPE_UINT8, MIXT_DTYPE_INT32, MIXT_DTYPE_INT64};
    const char *path = temp_path("array.npy");
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
        for (int rank = 0; rank <= 8; rank++) {
            mixt__file_tensor tensor = {.dtype = dtypes[d], .rank = rank, .data = payload + 1};
            for (int i = 0; i < rank; i++)
                tensor.dims[i] = i % 3 + 1;
            assert_int_equal(mixt__npy_write(path, &tensor, true), MIXT_OK);
            mixt__npy file;
            assert_int_equal(mixt__npy_open(path, &file), MIXT_OK);
            assert_int_equal(file.tensor.dtype, dtypes[d]);
            assert_int_equal(file.tensor.rank, rank);
            assert_memory_equal(file.tensor.dims, tensor.dims, sizeof tensor.dims);
            assert_memory_equal(file.tensor.data, payload + 1, file.tensor.bytes);
            assert_int_equal((uintptr_t)file.tensor.data % 64, 0);
            mixt__npy_close(&file);
        }
    mixt__file_tensor brain = {.dtype = MIXT_DTYPE_BF16, .rank = 1, .dims = {4}, .data = payload};
    assert_int_equal(mixt__npy_write(path, &brain, true), MIXT_ERROR_DTYPE);
    assert_non_null(strstr(mixt_error_text(), ".safetensors"));
    brain.dtype = MIXT_DTYPE_FP32;
    assert_refused(mixt__npy_write(path, &brain, false), path, "an existing file");
    assert_int_equal(temp_folder_files(1), 1);
}

/** An .npy file of this version and header text with `data_bytes` after it. */
static void write_raw_npy(const char *path, int version, const char *header, size_t data_bytes)
{
    unsigned char file[2048] = "\x93NUMPY";
    size_t length = strlen(header), width = version == 1 ? 2 : 4;
    file[6] = (unsigned char)version;
    for (size_t i = 0; i < width; i++)
        file[8 + i] = (unsigned char)(length >> (8 * i));
    memcpy(file + 8 + width, header, length);
    memcpy(file + 8 + width + length, payload, data_bytes);
    assert_true(temp_write(path, file, 8 + width + length + data_bytes));
}

static mixt_status try_npy(const char *path)
{
    mixt__npy file;
    mixt_status status = mixt__npy_open(path, &file);
    for (size_t b = 0; status == MIXT_OK && b < file.tensor.bytes; b++)
        (void)*((const volatile unsigned char *)file.tensor.data + b);
    if (status == MIXT_OK)
        mixt__npy_close(&file);
    return status;
}

static const char *const good_npy[] = {
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
    "{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}",
    "{'descr': '|i1', 'fortran_order': False, 'shape': (24,), }\n",
    "{'descr': '<u1', 'fortran_order': True, 'shape': (24,), }\n",
};

static const char *const bad_npy[] = {
    "",
    "{",
    "{}",
    "[]",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), ",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } x",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0, 3), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (6), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3], }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, ), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,2,3), }",
    "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
    "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }",
    "{'descr': '<f4', 'shape': (2, 3), }",
    "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}",
    "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }",
    "{'descr': '<V2', 'fortran_order': False, 'shape': (2, 6), }",
    "{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
    "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }",
    "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3), }",
};

static void test_npy_headers(void **state)
{
    (void)state;
    const char *path = temp_path("header.npy");
    for (size_t i = 0; i < sizeof good_npy / sizeof good_npy[0]; i++)
        for (int version = 1; version <= 3; version++) {
            write_raw_npy(path, version, good_npy[i], 24);
            if (try_npy(path) != MIXT_OK)
                fail_msg("%s: %s", good_npy[i], mixt_error_text());
        }
    for (size_t i = 0; i < sizeof bad_npy / sizeof bad_npy[0]; i++)
        for (int version = 1; version <= 2; version++) {
            write_raw_npy(path, version, bad_npy[i], 24);
            assert_refused(try_npy(path), path, bad_npy[i]);
        }
    write_raw_npy(path, 4, good_npy[0], 24);
    assert_refused(try_npy(path), path, "version 4");
    write_raw_npy(path, 2, good_npy[0], 24);
    size_t bytes;
    unsigned char *raw = temp_read(path, &bytes);
    assert_non_null(raw);
    for (size_t length = 0; length < bytes; length++) {
        assert_true(temp_write(path, raw, length));
        assert_refused(try_npy(path), path, "a file cut short");
    }
    for (size_t at = 0; at < bytes - 24; at++) { // damaged bytes must not crash
        unsigned char kept = raw[at];
        raw[at] ^= 0xff;
        assert_true(temp_write(path, raw, bytes));
        (void)try_npy(path);
        raw[at] = kept;
    }
    free(raw);
    temp_folder_files(1);
}

int main(void)
{
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (unsigned char)(i * 37 + i / 256);
    temp_folder_make();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors_round_trip),
        cmocka_unit_test(test_safetensors_bad_headers),
        cmocka_unit_test(test_safetensors_damage),
        cmocka_unit_test(test_safetensors_writer_refuses),
        cmocka_unit_test(test_real_models),
        cmocka_unit_test(test_npy_round_trip),
        cmocka_unit_test(test_npy_headers),
    };
    int failed = cmocka_run_group_tests_name("store", tests, NULL, NULL);
    temp_folder_remove();
    return failed;
}
