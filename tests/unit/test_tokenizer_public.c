/* Tokenizers as a C user has them: there and back in memory, character by character, and through token files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#define VOCAB "tests/data/tokens"
#define TEXT "The mill stood where two rivers met: \xe5\xa4\xa9 \xf0\x9f\x98\x80.\n"

#define check_ok(call)                                                                                                 \
    do {                                                                                                               \
        if ((call) != MIXT_OK)                                                                                         \
            fail_msg("%s: %s", #call, mixt_error_text());                                                              \
    } while (0)

static mixt_tokenizer *open_kind(const char *kind, const char *folder)
{
    mixt_tokenizer *t;
    check_ok(mixt_tokenizer_open(kind, folder, &t));
    return t;
}

static void test_describe(void **state)
{
    (void)state;
    mixt_tokenizer *bytes = open_kind(NULL, NULL), *gpt2 = open_kind("gpt2", VOCAB),
                   *words = open_kind("wordpiece", VOCAB);
    mixt_tokenizer_info info = mixt_tokenizer_describe(bytes);
    assert_string_equal(info.kind, "bytes");
    assert_int_equal(info.size, 256);
    assert_int_equal(info.mask, -1);
    info = mixt_tokenizer_describe(gpt2);
    assert_string_equal(info.kind, "gpt2");
    assert_true(info.size > 256);
    info = mixt_tokenizer_describe(words);
    assert_true(info.mask >= 0 && info.mask < info.size);
    const char *piece;
    int64_t size;
    check_ok(mixt_tokenizer_piece(words, (int32_t)info.mask, &piece, &size));
    assert_int_equal(size, 6);
    assert_memory_equal(piece, "[MASK]", 6);
    check_ok(mixt_tokenizer_piece(bytes, 200, &piece, &size));
    assert_true(size == 1 && (unsigned char)piece[0] == 200);
    assert_int_equal(mixt_tokenizer_piece(bytes, 256, &piece, &size), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_tokenizer_piece(bytes, -1, &piece, &size), MIXT_ERROR_ARGUMENT);
    mixt_tokenizer_close(bytes);
    mixt_tokenizer_close(gpt2);
    mixt_tokenizer_close(words);
}

/** Whether `text` ends within a character. */
static bool is_cut(const char *text, int64_t size)
{
    int64_t start = size - 1;
    while (start > 0 && ((unsigned char)text[start] & 0xc0) == 0x80)
        start--;
    unsigned char c = size ? (unsigned char)text[start] : 0;
    int64_t length = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    return size && size - start != length;
}

static void test_there_and_back(void **state)
{
    const char *const kinds[] = {"bytes", "gpt2"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        mixt_tokenizer *t = open_kind(kinds[k], k ? VOCAB : "");
        mixt_decoder *d;
        int32_t *tokens;
        int64_t count, size;
        const char *text;
        char back[256] = "";
        check_ok(mixt_tokenizer_encode(t, TEXT, (int64_t)strlen(TEXT), &tokens, &count));
        assert_true(count > 0 && count <= (int64_t)strlen(TEXT));
        check_ok(mixt_decoder_new(t, false, &d));
        for (int64_t i = 0; i < count; i++) {
            check_ok(mixt_decoder_put(d, &tokens[i], 1, &text, &size));
            assert_int_equal(strlen(text), size);
            assert_false(is_cut(text, size));
            strncat(back, text, sizeof back - strlen(back) - 1);
        }
        check_ok(mixt_decoder_end(d, &text, &size));
        assert_int_equal(size, 0);
        assert_string_equal(back, TEXT);
        int32_t beyond = (int32_t)mixt_tokenizer_describe(t).size, negative = -1;
        assert_int_equal(mixt_decoder_put(d, &beyond, 1, &text, &size), MIXT_ERROR_DATA);
        assert_int_equal(mixt_decoder_put(d, &negative, 1, &text, &size), MIXT_ERROR_DATA);
        mixt_decoder_free(d);
        mixt_tokens_free(tokens);
        mixt_tokenizer_close(t);
    }
}

static void test_half_characters(void **state)
{
    (void)state;
    mixt_tokenizer *t = open_kind("bytes", "");
    mixt_decoder *d;
    const char *text;
    int64_t size;
    const int32_t half[] = {0xe5, 0xa4};
    check_ok(mixt_decoder_new(t, true, &d));
    check_ok(mixt_decoder_put_bytes(d, "prompt\xe5", 7, &text, &size));
    assert_string_equal(text, "prompt");
    check_ok(mixt_decoder_end(d, &text, &size));
    assert_string_equal(text, "\xef\xbf\xbd");
    check_ok(mixt_decoder_put(d, half, 2, &text, &size));
    assert_int_equal(size, 0);
    check_ok(mixt_decoder_end(d, &text, &size));
    assert_string_equal(text, "\xef\xbf\xbd");
    mixt_decoder_free(d);
    mixt_tokenizer_close(t);
}

/** Words are set apart by blanks, the first one only inside a text. */
static void test_blanks(void **state)
{
    (void)state;
    mixt_tokenizer *t = open_kind("wordpiece", VOCAB);
    int32_t *tokens;
    int64_t count, size;
    check_ok(mixt_tokenizer_encode(t, "the mill", 8, &tokens, &count));
    for (int inside = 0; inside < 2; inside++) {
        mixt_decoder *d;
        const char *text;
        check_ok(mixt_decoder_new(t, inside, &d));
        check_ok(mixt_decoder_put(d, tokens, count, &text, &size));
        assert_string_equal(text, inside ? " the mill" : "the mill");
        mixt_decoder_free(d);
    }
    mixt_tokens_free(tokens);
    mixt_tokenizer_close(t);
}

static bool told(void *user, const mixt_progress *p)
{
    *(bool *)user |= p->done == p->total;
    return true;
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
}

static void test_files(void **state)
{
    const char *text = temp_path("t.txt"), *tokens = temp_path("t.tokens"), *back = temp_path("back.txt");
    char found[256];
    (void)state;
    FILE *stream = fopen(text, "wb");
    fputs(TEXT, stream);
    fclose(stream);
    mixt_tokenizer *gpt2 = open_kind("gpt2", VOCAB), *words = open_kind("wordpiece", VOCAB);
    mixt_token_file_info made;
    mixt_token_file *file;
    bool done = false;
    check_ok(mixt_token_file_make(gpt2, text, tokens, false, told, &done, &made));
    assert_true(done);
    assert_int_equal(mixt_token_file_make(gpt2, text, tokens, false, NULL, NULL, NULL), MIXT_ERROR_FILE);
    assert_int_equal(mixt_token_file_make(gpt2, text, text, true, NULL, NULL, NULL), MIXT_ERROR_FILE);
    assert_non_null(strstr(mixt_error_text(), ": is the input file itself: choose another name"));

    int32_t *whole, part[3];
    int64_t count;
    check_ok(mixt_tokenizer_encode_file(gpt2, text, &whole, &count));
    assert_int_equal(made.count, count);
    assert_int_equal(made.vocabulary, mixt_tokenizer_describe(gpt2).size);
    check_ok(mixt_token_file_open(tokens, gpt2, &file));
    assert_int_equal(mixt_token_file_describe(file).count, count);
    assert_int_equal(mixt_token_file_describe(file).bytes, made.bytes);
    check_ok(mixt_token_file_read(file, count - 3, 3, part));
    assert_memory_equal(part, whole + count - 3, sizeof part);
    assert_int_equal(mixt_token_file_read(file, count - 2, 3, part), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_token_file_read(file, -1, 1, part), MIXT_ERROR_ARGUMENT);
    check_ok(mixt_token_file_write_text(file, gpt2, back, false));
    read_text(back, found, sizeof found);
    assert_string_equal(found, TEXT);
    assert_int_equal(mixt_token_file_write_text(file, gpt2, tokens, true), MIXT_ERROR_FILE);
    mixt_token_file_close(file);
    assert_int_equal(mixt_token_file_open(tokens, words, &file), MIXT_ERROR_DATA);
    assert_null(file);
    mixt_tokens_free(whole);
    mixt_tokenizer_close(gpt2);
    mixt_tokenizer_close(words);
}

/** What could not be made is NULL, whatever was wrong. */
static void test_nothing_made(void **state)
{
    (void)state;
    int32_t some, *tokens = &some;
    int64_t count = 1;
    mixt_decoder *decoder = (mixt_decoder *)&some;
    mixt_token_file *file = (mixt_token_file *)&some;
    mixt_inputs *inputs = (mixt_inputs *)&some;
    assert_int_equal(mixt_tokenizer_encode(NULL, "a", 1, &tokens, &count), MIXT_ERROR_ARGUMENT);
    assert_true(!tokens && !count);
    tokens = &some;
    assert_int_equal(mixt_tokenizer_encode_file(NULL, NULL, &tokens, &count), MIXT_ERROR_ARGUMENT);
    assert_null(tokens);
    assert_int_equal(mixt_decoder_new(NULL, false, &decoder), MIXT_ERROR_ARGUMENT);
    assert_null(decoder);
    assert_int_equal(mixt_token_file_open(NULL, NULL, &file), MIXT_ERROR_ARGUMENT);
    assert_null(file);
    assert_int_equal(mixt_inputs_open("a.pgm", NULL, &inputs), MIXT_ERROR_ARGUMENT);
    assert_null(inputs);
    mixt_tokens_free(NULL);
    mixt_decoder_free(NULL);
    mixt_token_file_close(NULL);
    mixt_inputs_close(NULL);
    mixt_tokenizer_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe), cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_half_characters),
        cmocka_unit_test(test_blanks),   cmocka_unit_test(test_files),          cmocka_unit_test(test_nothing_made),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
