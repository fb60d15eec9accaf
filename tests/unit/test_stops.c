/* Texts that end another, in pieces of every size: what is given is what stands in front of the first of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/generate.h"

#include <stdio.h>
#include <string.h>

/** Cuts a text into pieces of `length`; what is given of it, and whether it was stopped. */
static bool give(const char *const *texts, int64_t count, const char *text, int64_t length, char *given)
{
    mixt_stops *stops;
    bool found = false;
    const char *part;
    int64_t size = (int64_t)strlen(text), bytes;
    *given = '\0';
    assert_int_equal(mixt_stops_new(texts, count, &stops), MIXT_OK);
    for (int64_t at = 0; at < size && !found; at += length) {
        int64_t some = size - at < length ? size - at : length;
        assert_int_equal(mixt_stops_put(stops, text + at, some, &part, &bytes, &found), MIXT_OK);
        strncat(given, part, (size_t)bytes);
    }
    assert_int_equal(mixt_stops_end(stops, &part, &bytes), MIXT_OK);
    if (!found)
        strncat(given, part, (size_t)bytes);
    mixt_stops_free(stops);
    return found;
}

static void test_pieces(void **state)
{
    (void)state;
    static const char *const texts[] = {"\nuser:", "aab", "", NULL};
    static const struct {
        const char *text, *given;
        bool found;
    } cases[] = {{"hello\nuser: more", "hello", true},
                 {"hello\nuse", "hello\nuse", false},
                 {"aaab", "a", true},
                 {"aaaaaaab aab", "aaaaa", true},
                 {"", "", false},
                 {"aab", "", true},
                 {"\n\nuser:aab", "\n", true},
                 {"ends with aa", "ends with aa", false}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int64_t length = 1; length < 14; length++) {
            char given[64];
            assert_int_equal(give(texts, 4, cases[c].text, length, given), cases[c].found);
            assert_string_equal(given, cases[c].given);
        }
}

/** Nothing is held back that cannot become a stop any more. */
static void test_held(void **state)
{
    (void)state;
    static const char *const texts[] = {"stop"};
    mixt_stops *stops;
    const char *part;
    int64_t bytes;
    bool found;
    assert_int_equal(mixt_stops_new(texts, 1, &stops), MIXT_OK);
    assert_int_equal(mixt_stops_put(stops, "a sto", 5, &part, &bytes, &found), MIXT_OK);
    assert_int_equal(bytes, 2);
    assert_int_equal(mixt_stops_put(stops, "re", 2, &part, &bytes, &found), MIXT_OK);
    assert_true(bytes == 5 && !memcmp(part, "store", 5) && !found);
    assert_int_equal(mixt_stops_put(stops, NULL, 1, &part, &bytes, &found), MIXT_ERROR_ARGUMENT);
    mixt_stops_free(stops);
    mixt_stops_free(NULL);
    assert_int_equal(mixt_stops_end(stops, &part, &bytes), MIXT_ERROR_STATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_held)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
