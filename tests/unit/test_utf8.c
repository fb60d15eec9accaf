/* Bytes to whole characters: every code point passes, everything else becomes U+FFFD, nothing comes out in halves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/utf8.h"

#include <string.h>

#define BAD "\xef\xbf\xbd"

static int encode(uint32_t c, unsigned char *bytes)
{
    if (c < 0x80) {
        bytes[0] = (unsigned char)c;
        return 1;
    }
    int length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, c >>= 6)
        bytes[i] = (unsigned char)(0x80 | (c & 0x3f));
    bytes[0] = (unsigned char)(c | (0xf00u >> length & 0xff));
    return length;
}

static void test_every_code_point(void **state)
{
    (void)state;
    for (uint32_t c = 1; c < 0x110000; c++) {
        mixt__utf8 s = {0};
        unsigned char bytes[4];
        char text[MIXT_UTF8_ROOM] = "";
        int length = encode(c, bytes);
        if (c >= 0xd800 && c < 0xe000)
            continue; // surrogates are no characters
        for (int i = 0; i < length; i++)
            if ((mixt__utf8_put(&s, bytes[i], text) != 0) != (i + 1 == length))
                fail_msg("U+%04X: byte %d", c, i);
        if (strlen(text) != (size_t)length || memcmp(text, bytes, (size_t)length) || mixt__utf8_end(&s, text))
            fail_msg("U+%04X came out otherwise", c);
    }
}

static void expect(const char *bytes, const char *wanted)
{
    mixt__utf8 s = {0};
    char all[128] = "", text[MIXT_UTF8_ROOM];
    for (; *bytes; bytes++) {
        size_t length = mixt__utf8_put(&s, (unsigned char)*bytes, text);
        assert_int_equal(length, strlen(text));
        strcat(all, text);
    }
    mixt__utf8_end(&s, text);
    strcat(all, text);
    assert_string_equal(all, wanted);
}

static void test_what_is_no_character(void **state)
{
    (void)state;
    expect("a\x80z", "a" BAD "z");
    expect("\xff\xfe", BAD BAD);
    expect("\xc3", BAD);
    expect("\xc3(", BAD "(");
    expect("\xe2\x82", BAD);
    expect("\xe2\x82\xc3\xa9", BAD "\xc3\xa9");
    expect("\xc0\xaf", BAD BAD);                 // overlong
    expect("\xe0\x80\x80", BAD BAD BAD);         // overlong
    expect("\xed\xa0\x80", BAD BAD BAD);         // a surrogate
    expect("\xf4\x90\x80\x80", BAD BAD BAD BAD); // past U+10FFFF
    expect("\xf0\x9f\x98\x80!", "\xf0\x9f\x98\x80!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_code_point),
                                       cmocka_unit_test(test_what_is_no_character)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
