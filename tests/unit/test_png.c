/* PNG against an encoder of the test's own: every filter, colour type and depth; and hostile files that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/image/picture.h"

#include <sys/stat.h>

enum { WIDTH = 13, HEIGHT = 11, ROOM = 1 << 14, STEPS_MAX = 8 };

/** A file in the making. */
typedef struct png {
    unsigned char bytes[ROOM];
    size_t size;
} png;

static void put_big(unsigned char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static void add_chunk(png *p, const char *name, const void *data, size_t size)
{
    unsigned char *at = p->bytes + p->size;
    put_big(at, (uint32_t)size);
    memcpy(at + 4, name, 4);
    memcpy(at + 8, data, size);
    put_big(at + 8 + size, (uint32_t)crc32(crc32(0, NULL, 0), at + 4, (unsigned)size + 4));
    p->size += size + 12;
}

static void begin(png *p, int width, int height, int depth, int type, int interlace)
{
    unsigned char header[13] = {[8] = (unsigned char)depth, (unsigned char)type, 0, 0, (unsigned char)interlace};
    put_big(header, (uint32_t)width);
    put_big(header + 4, (uint32_t)height);
    memcpy(p->bytes, "\x89PNG\r\n\x1a\n", 8);
    p->size = 8;
    add_chunk(p, "IHDR", header, sizeof header);
}

/** Packs filtered rows and adds them in two chunks. */
static void add_rows(png *p, const unsigned char *rows, size_t size)
{
    static unsigned char packed[ROOM];
    uLongf length = sizeof packed;
    assert_int_equal(compress2(packed, &length, rows, size, 9), Z_OK);
    add_chunk(p, "IDAT", packed, length / 3);
    add_chunk(p, "IDAT", packed + length / 3, length - length / 3);
}

/** What a filter predicts, written after the standard's own words. */
static int predict(int filter, int a, int b, int c)
{
    int p = a + b - c, pa = p > a ? p - a : a - p, pb = p > b ? p - b : b - p, pc = p > c ? p - c : c - p;
    switch (filter) {
    case 1:
        return a;
    case 2:
        return b;
    case 3:
        return (a + b) >> 1;
    case 4:
        return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
    default:
        return 0;
    }
}

/** Rows of `row_bytes` raw bytes, each with the filter y % 5. */
static size_t filter_rows(const unsigned char *raw, int row_bytes, int step, unsigned char *rows)
{
    for (int y = 0; y < HEIGHT; y++) {
        unsigned char *to = rows + y * (row_bytes + 1);
        *to++ = (unsigned char)(y % 5);
        for (int i = 0; i < row_bytes; i++) {
            int a = i < step ? 0 : raw[y * row_bytes + i - step], b = y ? raw[(y - 1) * row_bytes + i] : 0;
            int c = i < step || !y ? 0 : raw[(y - 1) * row_bytes + i - step];
            to[i] = (unsigned char)(raw[y * row_bytes + i] - predict(y % 5, a, b, c));
        }
    }
    return (size_t)(HEIGHT * (row_bytes + 1));
}

static int raw_number(const unsigned char *row, int depth, int index)
{
    if (depth == 16)
        return row[2 * index] * 256 + row[2 * index + 1];
    int bit = index * depth;
    return row[bit / 8] >> (8 - depth - bit % 8) & ((1 << depth) - 1);
}

static void every_filter_and_colour_type(void **state)
{
    (void)state;
    static const struct {
        int type, depth, samples;
    } kinds[] = {{0, 1, 1}, {0, 2, 1}, {0, 4, 1}, {0, 8, 1}, {0, 16, 1}, {2, 8, 3}, {2, 16, 3},
                 {3, 1, 1}, {3, 4, 1}, {3, 8, 1}, {4, 8, 2}, {4, 16, 2}, {6, 8, 4}, {6, 16, 4}};
    static png p;
    static unsigned char raw[ROOM], rows[ROOM], palette[256 * 3];
    uint32_t random = 12345;
    for (int i = 0; i < 256 * 3; i++)
        palette[i] = (unsigned char)(i * 7 + 3);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int depth = kinds[k].depth, samples = kinds[k].samples, type = kinds[k].type;
        int row_bytes = (WIDTH * samples * depth + 7) / 8, step = samples * depth < 8 ? 1 : samples * depth / 8;
        for (int i = 0; i < HEIGHT * row_bytes; i++)
            raw[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
        begin(&p, WIDTH, HEIGHT, depth, type, 0);
        if (type == 3)
            add_chunk(&p, "PLTE", palette, sizeof palette);
        add_chunk(&p, "tEXt", "Title\0none", 10);
        add_rows(&p, rows, filter_rows(raw, row_bytes, step, rows));
        add_chunk(&p, "IEND", "", 0);
        write_file("a.png", p.bytes, p.size);
        mixt__picture picture;
        check_ok(mixt__picture_read(temp_path("a.png"), 0, &picture));
        assert_int_equal(picture.channels, type == 0 || type == 4 ? 1 : 3);
        assert_int_equal(picture.width * 100 + picture.height, WIDTH * 100 + HEIGHT);
        assert_int_equal(mixt__picture_is_grey(temp_path("a.png")), picture.channels == 1);
        for (int y = 0; y < HEIGHT; y++)
            for (int i = 0; i < WIDTH * picture.channels; i++) {
                int x = i / (int)picture.channels, c = i % (int)picture.channels, most = (1 << depth) - 1;
                int number = raw_number(raw + y * row_bytes, depth, type == 3 ? x : x * samples + c);
                int wanted = type == 3 ? palette[3 * number + c] : (number * 255 + most / 2) / most;
                assert_int_equal(picture.pixels[(y * WIDTH) * picture.channels + i], wanted);
            }
        mixt__picture_free(&picture);
    }
}

static void expect_refused(const png *p, const char *says)
{
    mixt__picture picture;
    write_file("a.png", p->bytes, p->size);
    mixt_status status = mixt__picture_read(temp_path("a.png"), 3, &picture);
    if (status == MIXT_OK || !strstr(mixt_error_text(), says))
        fail_msg("%s: %s, expected '%s'", mixt_status_text(status), mixt_error_text(), says);
    assert_null(picture.pixels);
}

/** A whole grey file of 8 bits with `rows` rows. */
static void make_grey(png *p, int rows)
{
    static const unsigned char zeros[ROOM];
    begin(p, WIDTH, HEIGHT, 8, 0, 0);
    add_rows(p, zeros, (size_t)(rows * (WIDTH + 1)));
    add_chunk(p, "IEND", "", 0);
}

static void hostile_files_are_refused(void **state)
{
    (void)state;
    static png p;
    static const unsigned char filter[ROOM] = {5};
    begin(&p, WIDTH, HEIGHT, 8, 0, 1);
    expect_refused(&p, "is interlaced; save it without");
    begin(&p, 0, HEIGHT, 8, 0, 0);
    expect_refused(&p, "none, or too many");
    begin(&p, 65000, 65000, 8, 0, 0);
    expect_refused(&p, "none, or too many");
    begin(&p, 16000, 16000, 8, 6, 0);
    expect_refused(&p, "claim 16000 x 16000 pixels");
    begin(&p, WIDTH, HEIGHT, 3, 0, 0);
    expect_refused(&p, "no such colour type, depth");
    begin(&p, WIDTH, HEIGHT, 4, 2, 0);
    expect_refused(&p, "no such colour type, depth");
    make_grey(&p, HEIGHT - 1);
    expect_refused(&p, "fewer rows than its header says");
    make_grey(&p, HEIGHT + 1);
    expect_refused(&p, "more pixels than its header says");
    make_grey(&p, HEIGHT);
    p.size -= 12;
    expect_refused(&p, "cut off");
    make_grey(&p, HEIGHT);
    p.bytes[p.size++] = 'x';
    expect_refused(&p, "there are bytes after its end");
    make_grey(&p, HEIGHT);
    p.bytes[8 + 25 + 8 + 1] ^= 1;
    expect_refused(&p, "checksum of a chunk is wrong");
    begin(&p, WIDTH, HEIGHT, 8, 0, 0);
    add_rows(&p, filter, (size_t)(HEIGHT * (WIDTH + 1)));
    expect_refused(&p, "a filter that does not exist");
    begin(&p, WIDTH, HEIGHT, 8, 3, 0);
    add_rows(&p, (const unsigned char[ROOM]){0}, (size_t)(HEIGHT * (WIDTH + 1)));
    expect_refused(&p, "a colour that its palette does not have");
}

/** Cut anywhere, or with a byte changed: refused, for everything is under a checksum. */
static void damage_is_noticed(void **state)
{
    (void)state;
    static png p, changed;
    make_grey(&p, HEIGHT);
    for (size_t i = 0; i < p.size; i++) {
        changed = p;
        changed.size = i + 1 < p.size ? i + 1 : 1;
        expect_refused(&changed, "a.png: ");
        changed = p;
        changed.bytes[i] ^= 0x20;
        expect_refused(&changed, "a.png: ");
    }
}

static void folders_of_png(void **state)
{
    (void)state;
    static png p;
    for (const char *const *name = (const char *const[]){"cat", "dog", NULL}; *name; name++)
        assert_int_equal(mkdir(temp_path(*name), 0700), 0);
    make_grey(&p, HEIGHT);
    write_file("cat/a.png", p.bytes, p.size);
    write_file("cat/b.png", p.bytes, p.size);
    write_file("dog/a.PNG", p.bytes, p.size);
    write_file("dog/b.png", p.bytes, p.size);
    mixt_data *data = open_ok("%s", MIXT_OPTIONS(mixt_data_options, .split = "all", .crop = 8));
    const mixt_data_info *info = mixt_data_describe(data);
    assert_string_equal(info->kind, "images");
    assert_int_equal(info->channels * 10 + info->classes, 12);
    assert_int_equal(info->samples, 4);
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_filter_and_colour_type, no_leak),
        cmocka_unit_test_teardown(hostile_files_are_refused, no_leak),
        cmocka_unit_test_teardown(damage_is_noticed, no_leak),
        cmocka_unit_test_teardown(folders_of_png, no_leak),
    };
    return cmocka_run_group_tests_name("png", tests, temp_folder_setup, temp_folder_teardown);
}
