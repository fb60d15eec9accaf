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
#include "store/checkpoint_inside.h"
#include "store/checksum.h"

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

/** The head, then `mib` MiB of one byte, deflated. They are packed once and repeated; the end of the stream, which
 * nobody should come to, is left out. To be freed.
 *  @param bits of zlib's window: with 16 for gzip, negative for a bare stream */
static unsigned char *make_bomb(int bits, const void *head, size_t size, int byte, int mib, size_t *length)
{
    static unsigned char block[MIB], packed[MIB / 16];
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, bits, 9, Z_DEFAULT_STRATEGY), Z_OK);
    size_t first = pack(&stream, head, size, packed, sizeof packed);
    memset(block, byte, sizeof block);
    unsigned char *bomb = malloc(first + (size_t)mib * (MIB / 16));
    assert_non_null(bomb);
    memcpy(bomb, packed, first);
    size_t piece = pack(&stream, block, sizeof block, packed, sizeof packed);
    for (int i = 0; i < mib; i++)
        memcpy(bomb + first + (size_t)i * piece, packed, piece);
    deflateEnd(&stream);
    *length = first + (size_t)mib * piece;
    return bomb;
}

/** The same as a gzip file. */
static void write_bomb(const char *name, const void *head, size_t size, int byte, int mib)
{
    size_t length;
    unsigned char *bomb = make_bomb(15 + 16, head, size, byte, mib, &length);
    write_file(name, bomb, length);
    free(bomb);
}

/** Opens `spec` (a vocabulary where it begins with "vocab:", weights with "weights:", a checkpoint with "checkpoint:"),
 * in a child; 0 when it is refused with a message. */
static int try_open(const char *spec, const char *says)
{
    mixt_data_options options = MIXT_OPTIONS(mixt_data_options);
    mixt_data *data = NULL;
    mixt_tokenizer *tokenizer = NULL;
    mixt__checkpoint *checkpoint = NULL;
    options.seq = 8;
    mixt_status status = MIXT_OK;
    if (spec && !strncmp(spec, "vocab:", 6))
        status = mixt_tokenizer_open("auto", spec + 6, &tokenizer);
    else if (spec && !strncmp(spec, "weights:", 8))
        status = mixt_convert_file(spec + 8, temp_path("half.safetensors"), MIXT_DTYPE_FP16, NULL, true, NULL);
    else if (spec && !strncmp(spec, "checkpoint:", 11))
        status = mixt__checkpoint_open(spec + 11, &checkpoint);
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
#if defined(__SANITIZE_ADDRESS__)
    promised = INT64_MAX / 8; // the sanitizer keeps books of its own in memory; the plain build judges the reader's
#endif
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
    // 65536 of 256 x 256: 4 GiB, all of which could be unpacked
    write_bomb("train-images-idx3-ubyte.gz", BYTES("\0\0\x08\x03\0\1\0\0\0\0\1\0\0\0\1\0"), 7, UNPACKED);
    expect_refused("idx:%s", 16 * MIB, "200 times its size");
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

/* ---- PNG ---- */

static void put_big(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void write_chunk(FILE *file, const char *name, const unsigned char *data, size_t size)
{
    unsigned char head[8], sum[4];
    put_big(head, (uint32_t)size);
    memcpy(head + 4, name, 4);
    put_big(sum, (uint32_t)crc32_z(crc32_z(0, head + 4, 4), data, size));
    assert_int_equal(fwrite(head, 1, 8, file) + fwrite(data, 1, size, file) + fwrite(sum, 1, 4, file), size + 12);
}

/** A grey picture of that side; `pixels` of it are those that come. */
static void write_png(const char *path, uint32_t side, const unsigned char *pixels, size_t size)
{
    unsigned char header[13] = {[8] = 8};
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    put_big(header, side);
    put_big(header + 4, side);
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, file);
    write_chunk(file, "IHDR", header, sizeof header);
    write_chunk(file, "IDAT", pixels, size);
    write_chunk(file, "IEND", header, 0);
    assert_int_equal(fclose(file), 0);
}

static void png_is_read_as_far_as_promised(void **state)
{
    (void)state;
    char file[600];
    size_t length;
    assert_int_equal(mkdir(temp_path("png"), 0700), 0);
    assert_int_equal(mkdir(temp_path("png/class"), 0700), 0);
    write_text("png/class/b.pgm", "P5 1 1 255\nb");
    snprintf(file, sizeof file, "%s", temp_path("png/class/a.png"));
    unsigned char *bomb = make_bomb(15, "", 0, 0, UNPACKED, &length); // rows of filter 0
    write_png(file, 2048, bomb, length);                              // 4 MiB, and 6 GB come
    expect_refused("images:%s/png", 4 * MIB + (int64_t)length, "more pixels than its header says");
    write_png(file, 30000, bomb, 3000); // 900 MB from 3 kB
    expect_refused("images:%s/png", 0, "too many");
    write_png(file, 2048, bomb, 4030); // some of them come
    expect_refused("images:%s/png", 4 * MIB, "fewer rows than its header says");
    free(bomb);
}

/* ---- NPZ ---- */

static void put_little(unsigned char **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8)
        *(*at)++ = (unsigned char)value;
}

/** An archive of one deflated member x.npy and a stored y.npy of nothing; `claim`: bytes that the list states for x. */
static void write_npz(const char *name, const unsigned char *packed, size_t length, uint64_t claim)
{
    static const char *const names[] = {"x.npy", "y.npy"};
    unsigned char *bytes = malloc(length + 1024), *at = bytes, list[512], *entry = list;
    assert_non_null(bytes);
    for (int i = 0; i < 2; i++) {
        uint64_t local = (uint64_t)(at - bytes), size = i ? 0 : length;
        for (int listed = 0; listed < 2; listed++) {
            unsigned char **to = listed ? &entry : &at;
            put_little(to, listed ? 0x02014b50 : 0x04034b50, 4);
            put_little(to, 20, listed ? 4 : 2);
            put_little(to, 0, 2);
            put_little(to, i ? 0 : 8, 2);
            put_little(to, 0, 8); // time and checksum
            put_little(to, size, 4);
            put_little(to, i ? 0 : claim, 4);
            put_little(to, 5, 2);
            put_little(to, 0, listed ? 12 : 2);
            if (listed)
                put_little(to, local, 4);
            memcpy(*to, names[i], 5);
            *to += 5;
        }
        memcpy(at, packed, size);
        at += size;
    }
    uint64_t where = (uint64_t)(at - bytes), listed = (uint64_t)(entry - list);
    memcpy(at, list, listed);
    at += listed;
    put_little(&at, 0x06054b50, 4);
    put_little(&at, 0, 4);
    put_little(&at, 2, 2);
    put_little(&at, 2, 2);
    put_little(&at, listed, 4);
    put_little(&at, where, 4);
    put_little(&at, 0, 2);
    write_file(name, bytes, (size_t)(at - bytes));
    free(bytes);
}

static void npz_is_read_as_far_as_promised(void **state)
{
    (void)state;
    unsigned char head[128];
    size_t length;
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(head + 10, BYTES("{'descr': '|u1', 'fortran_order': False, 'shape': (4096, 1024), }"));
    head[127] = '\n';
    unsigned char *bomb = make_bomb(-15, head, sizeof head, 7, 4000, &length); // the list holds 32 bits
    write_npz("x.npz", bomb, length, (uint64_t)4000 * MIB + 128);
    expect_refused("npz:%s/x.npz", 0, "needs 4194432 bytes, but the archive has 4194304128 there");
    write_npz("x.npz", bomb, length, 4 * MIB + 128); // the list is as modest as the header; more comes, of another sum
    expect_refused("npz:%s/x.npz", 4 * MIB, "whose checksum is another");
    write_npz("x.npz", bomb, 2000, (uint64_t)4000 * MIB);
    expect_refused("npz:%s/x.npz", 0, "cannot come from 2000 packed ones");
    free(bomb);
}

/* ---- checkpoints ---- */

/** A sealed manifest that promises a state of so many bytes, with `more` behind its scalars. */
static void write_manifest(int64_t bytes, const char *more)
{
    char seal[MIXT_CHECKPOINT_SEAL + 1];
    size_t room = strlen(more) + 512;
    char *text = malloc(room);
    assert_non_null(text);
    int length = snprintf(text, room,
                          "{\"format\": \"%s\", \"version\": %d, \"files\": {}, \"state\": {\"bytes\": %lld, "
                          "\"header\": \"0\", \"tensors\": {}}, \"scalars\": {%s}",
                          MIXT_CHECKPOINT_FORMAT, MIXT_CHECKPOINT_VERSION, (long long)bytes, more);
    mixt__checkpoint_seal(seal, mixt__checksum(text, (size_t)length));
    memcpy(text + length, seal, MIXT_CHECKPOINT_SEAL);
    write_file("step/manifest.json", text, (size_t)length + MIXT_CHECKPOINT_SEAL);
    free(text);
}

/** Files with holes: large without taking room on the disk. */
static void checkpoints_are_read_as_far_as_promised(void **state)
{
    (void)state;
    const int64_t huge = (int64_t)64 << 30;
    assert_int_equal(mkdir(temp_path("step"), 0700), 0);
    write_file("step/state.safetensors", BYTES("\xf8\xff\xff\xff\x0f\0\0\0")); // a header of all the rest
    assert_int_equal(truncate(temp_path("step/state.safetensors"), huge), 0);
    write_manifest(huge, "");
    expect_refused("checkpoint:%s/step", 0, "the checksum of its header is wrong");
    write_manifest(huge / 2, "");
    expect_refused("checkpoint:%s/step", 0, "should have 34359738368");
    write_file("step/state.safetensors", BYTES("\2\0\0\0\0\0\0\0{}"));
    write_manifest(huge, "");
    expect_refused("checkpoint:%s/step", 0, "it has 10 bytes and should have 68719476736");
    char *many = malloc(20 * MIB + 8);
    assert_non_null(many);
    memcpy(many, "\"a\":[1", 6);
    for (int i = 6; i < 20 * MIB; i += 2)
        memcpy(many + i, ",1", 2);
    memcpy(many + 20 * MIB, "]", 2);
    write_manifest(10, many);
    expect_refused("checkpoint:%s/step", 20 * MIB, "are not the size of a manifest");
    free(many);
    assert_int_equal(truncate(temp_path("step/manifest.json"), huge), 0);
    expect_refused("checkpoint:%s/step", 0, "are not the size of a manifest");
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
    mixt_data *data = open_ok("csv:%s/rows.csv.gz", MIXT_OPTIONS(mixt_data_options));
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
        cmocka_unit_test_teardown(png_is_read_as_far_as_promised, no_leak),
        cmocka_unit_test_teardown(npz_is_read_as_far_as_promised, no_leak),
        cmocka_unit_test_teardown(checkpoints_are_read_as_far_as_promised, no_leak),
        cmocka_unit_test_teardown(mapped_files, no_leak),
        cmocka_unit_test_teardown(small_files_are_read, no_leak),
    };
    return cmocka_run_group_tests_name("bombs", tests, temp_folder_setup, temp_folder_teardown);
}
