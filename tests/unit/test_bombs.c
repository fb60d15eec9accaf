/* Files of a few kilobytes that unpack, or claim, to be far more: each refused in a second, with no more memory than
 * four times what its header promises. Each is read in a process of its own, whose peak memory the system measures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "mixt/tokenizer.h"
#include "mixt/weights.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { UNPACKED = 6000, MIB = 1 << 20 }; // MiB that a bomb unpacks to

#define BYTES(text) (text), sizeof(text) - 1

/** Packs `size` bytes so that what follows does not depend on them; returns the packed bytes. */
static size_t pack(z_stream *stream, const void *bytes, size_t size, unsigned char *packed, size_t room)
{
    stream->next_in = (unsigned char *)(uintptr_t)bytes;
    stream->avail_in = (unsigned)size;
    stream->next_out = packed;
    stream->avail_out = (unsigned)room;
    assert_int_equal(deflate(stream, Z_FULL_FLUSH), Z_OK);
    return room - stream->avail_out;
}

/** A gzip file: the head, then `mib` MiB of one byte. They are packed once and written again and again; the checksum at
 *  the end, which nobody should come to, is left out. */
static void write_bomb(const char *name, const void *head, size_t size, int byte, int mib)
{
    static unsigned char block[MIB], packed[MIB / 16];
    z_stream stream = {0};
    FILE *file = fopen(temp_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    size_t length = pack(&stream, head, size, packed, sizeof packed);
    assert_int_equal(fwrite(packed, 1, length, file), length);
    memset(block, byte, sizeof block);
    length = pack(&stream, block, sizeof block, packed, sizeof packed);
    for (int i = 0; i < mib; i++)
        assert_int_equal(fwrite(packed, 1, length, file), length);
    deflateEnd(&stream);
    assert_int_equal(fclose(file), 0);
}

/** Opens `spec` (a vocabulary where it begins with "vocab:", weights with "weights:"), in a child; 0 when it is refused
 * with a message. */
static int try_open(const char *spec, const char *says)
{
    mixt_data_options options = mixt_data_options_default();
    mixt_data *data = NULL;
    mixt_tokenizer *tokenizer = NULL;
    options.seq = 8;
    mixt_status status = MIXT_OK;
    if (spec && !strncmp(spec, "vocab:", 6))
        status = mixt_tokenizer_open("auto", spec + 6, &tokenizer);
    else if (spec && !strncmp(spec, "weights:", 8))
        status = mixt_convert_file(spec + 8, temp_path("half.safetensors"), MIXT_DTYPE_FP16, NULL, true, NULL);
    else if (spec)
        status = mixt_data_open_with(spec, &options, &data);
    if (!spec)
        return 0;
    if (status == MIXT_OK || !strstr(mixt_error_text(), says)) {
        print_error("%s: %s: %s, expected '%s'\n", spec, mixt_status_text(status), mixt_error_text(), says);
        return 1;
    }
    return 0;
}

/** Peak memory in bytes of a process that opens `spec` (NULL: nothing), and its seconds. */
static int64_t measure(const char *spec, const char *says, double *seconds)
{
    struct rusage usage;
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(try_open(spec, says));
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    // The processor's time: the machine may have other work.
    *seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    return (int64_t)usage.ru_maxrss * 1024;
}

static void expect_refused(const char *spec, int64_t promised, const char *says)
{
    double idle, seconds;
    int64_t before = measure(NULL, NULL, &idle), peak = measure(in_folder(spec), says, &seconds);
    print_message("%-40s %7.1f MiB, %.2f s\n", spec, (double)(peak - before) / MIB, seconds);
    if (peak - before > 4 * promised + 4 * MIB) // a start of threads and libraries is not the reader's
        fail_msg("%s: peak of %lld bytes, %lld promised", spec, (long long)(peak - before), (long long)promised);
    if (seconds > 1)
        fail_msg("%s: %.2f s to refuse", spec, seconds);
}

static const unsigned char IMAGES[] = "\0\0\x08\x03\0\0\1\0\0\0\1\0\0\0\0\x40"; // 256 of 256 x 64: 4 MiB

static void idx_is_read_as_far_as_promised(void **state)
{
    (void)state;
    write_bomb("train-images-idx3-ubyte.gz", IMAGES, 16, 7, UNPACKED);
    write_gzip("train-labels-idx1-ubyte.gz", BYTES("\0\0\x08\x01\0\0\0\1\0"));
    expect_refused("idx:%s", 4 * MIB, "longer than its header says");
    write_bomb("train-labels-idx1-ubyte.gz", BYTES("\0\0\x08\x01\0\0\1\0"), 1, UNPACKED);
    unsigned char *good = calloc(1, 16 + 4 * MIB);
    assert_non_null(good);
    memcpy(good, IMAGES, 16);
    write_gzip("train-images-idx3-ubyte.gz", good, 16 + 4 * MIB);
    free(good);
    expect_refused("idx:%s", 4 * MIB, "longer than its header says");
}

/** A header that asks for more than the file has must not be believed before it is there. */
static void idx_that_promises_too_much(void **state)
{
    (void)state;
    write_gzip("train-images-idx3-ubyte.gz", BYTES("\0\0\x08\x03\0\x10\0\0\0\0\1\0\0\0\4\0abc"));
    expect_refused("idx:%s", 0, "cut off");
    write_file("train-images-idx3-ubyte", BYTES("\0\0\x08\x03\0\x10\0\0\0\0\1\0\0\0\4\0abc"));
    expect_refused("idx:%s", 0, "cut off");
    write_bomb("train-images-idx3-ubyte.gz", BYTES("none"), 7, UNPACKED);
    assert_int_equal(unlink(temp_path("train-images-idx3-ubyte")), 0);
    expect_refused("idx:%s", 0, "is not IDX");
}

/** Formats without a header: known by how they unpack, within the first 16 MiB. */
static void files_without_header(void **state)
{
    (void)state;
    const int64_t looked_at = 16 * MIB;
    write_bomb("rows.csv.gz", BYTES("1,2,0\n"), '1', UNPACKED);
    expect_refused("csv:%s/rows.csv.gz", looked_at, "200 times its size");
    write_bomb("words.txt.gz", BYTES("words"), 'a', UNPACKED);
    expect_refused("text:%s/words.txt.gz", looked_at, "200 times its size");
    write_bomb("data_batch_1.bin.gz", BYTES("\1"), 1, UNPACKED);
    expect_refused("cifar:%s", looked_at, "200 times its size");
    write_bomb("vocab.txt.gz", BYTES("[UNK]\n"), 'a', UNPACKED);
    assert_int_equal(rename(temp_path("vocab.txt.gz"), temp_path("vocab.txt")), 0);
    expect_refused("vocab:%s", looked_at, "200 times its size");
}

static void pictures_are_read_as_far_as_promised(void **state)
{
    (void)state;
    char folder[600], file[700], from[600];
    snprintf(folder, sizeof folder, "%s", temp_path("pictures"));
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(file, sizeof file, "%s/class", folder);
    assert_int_equal(mkdir(file, 0700), 0);
    write_text("pictures/class/b.pgm", "P5 1 1 255\nb"); // one to train on, one to hold out
    write_bomb("bomb", BYTES("P5 1024 1024 255\n"), 9, UNPACKED);
    snprintf(from, sizeof from, "%s", temp_path("bomb"));
    snprintf(file, sizeof file, "%s/class/a.pgm", folder);
    assert_int_equal(rename(from, file), 0);
    expect_refused("images:%s/pictures", MIB, "longer than its header says");
    assert_int_equal(unlink(file), 0);
    write_bomb("bomb", BYTES("\xff\xd8\xff"), 9, UNPACKED);
    snprintf(file, sizeof file, "%s/class/a.jpg", folder);
    assert_int_equal(rename(from, file), 0);
#ifdef MIXT_HAVE_JPEG
    expect_refused("images:%s/pictures", 16 * MIB, "200 times its size");
#endif
}

/** Arrays and weights are mapped: a header that asks for more than the file has is refused by the sizes alone. */
static void mapped_files(void **state)
{
    (void)state;
    write_npy("x.npy", "|u1", "(1000000, 100000)", "abcd", 4);
    expect_refused("npy:%s/x.npy", 0, "needs 100000000000 bytes");
    write_npy("x.npy", "<f8", "(9000000000000000000, 9)", "abcd", 4);
    expect_refused("npy:%s/x.npy", 0, "too large for any file");
    write_file("x.safetensors", BYTES("\xff\xff\xff\xff\xff\xff\xff\x3f{}"));
    expect_refused("weights:%s/x.safetensors", 0, "x.safetensors");
    write_file("x.safetensors", BYTES("\x40\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1000000,1000000],"
                                      "\"data_offsets\":[0,4]}}"));
    expect_refused("weights:%s/x.safetensors", 0, "x.safetensors");
    write_file("x.tokens", BYTES("mixttok\0\1\0\0\0\2\0\0\0\xff\xff\xff\xff\xff\xff\xff\0"));
    expect_refused("tokens:%s/x.tokens", 0, "x.tokens");
}

/** What compresses well and is meant is read: 3 MiB of equal rows. */
static void small_files_are_read(void **state)
{
    (void)state;
    char *text = malloc(3 * MIB);
    assert_non_null(text);
    for (int i = 0; i < 3 * MIB; i += 4)
        memcpy(text + i, i % 8 ? "1,0\n" : "2,1\n", 4);
    write_gzip("rows.csv.gz", text, 3 * MIB);
    free(text);
    mixt_data *data = open_ok("csv:%s/rows.csv.gz", mixt_data_options_default());
    assert_int_equal(mixt_data_describe(data)->classes, 2);
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(idx_is_read_as_far_as_promised, no_leak),
        cmocka_unit_test_teardown(idx_that_promises_too_much, no_leak),
        cmocka_unit_test_teardown(files_without_header, no_leak),
        cmocka_unit_test_teardown(pictures_are_read_as_far_as_promised, no_leak),
        cmocka_unit_test_teardown(mapped_files, no_leak),
        cmocka_unit_test_teardown(small_files_are_read, no_leak),
    };
    return cmocka_run_group_tests_name("bombs", tests, temp_folder_setup, temp_folder_teardown);
}
