/* Text with added tokens written out, as chat templates write it: ids equal to those of Hugging Face's tokenizers, of
 * Qwen2.5 and Phi-3 where the shared data is there, and of a small vocabulary made here for what those two do not ask.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/normal.h"
#include "mixt/mixt.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool same_ids(const mixt_tokenizer *t, const char *text, int64_t size, const json_t *wanted)
{
    int32_t *tokens;
    int64_t count;
    assert_int_equal(mixt_tokenizer_encode_marked(t, text, size, &tokens, &count), MIXT_OK);
    bool same = count == (int64_t)json_array_size(wanted);
    for (int64_t i = 0; same && i < count; i++)
        same = tokens[i] == (int32_t)json_integer_value(json_array_get(wanted, (size_t)i));
    mixt_tokens_free(tokens);
    return same;
}

static void check_reference(const char *name)
{
    const char *base = getenv("MIXT_TEST_DATA");
    char folder[512], path[600];
    size_t index, wrong = 0;
    mixt_tokenizer *t;
    snprintf(folder, sizeof folder, "%s/tokenizers/%s", base && *base ? base : "../shared/data", name);
    snprintf(path, sizeof path, "%s/encode_reference.json", folder);
    if (access(path, R_OK) != 0)
        skip();
    json_t *rows = json_load_file(path, JSON_ALLOW_NUL, NULL), *row;
    assert_int_equal(json_array_size(rows), 78);
    if (mixt_tokenizer_open(NULL, folder, &t) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    json_array_foreach(rows, index, row)
    {
        const json_t *text = json_object_get(row, "text");
        if (same_ids(t, json_string_value(text), (int64_t)json_string_length(text), json_object_get(row, "ids")))
            continue;
        print_message("%s: row %zu: %.60s\n", name, index, json_string_value(text));
        wrong++;
    }
    mixt_tokenizer_close(t);
    json_decref(rows);
    assert_int_equal(wrong, 0);
}

static void test_qwen2(void **state)
{
    (void)state;
    check_reference("qwen2");
}

static void test_phi3(void **state)
{
    (void)state;
    check_reference("phi-3");
}

static void compose_is(const char *text, const char *wanted)
{
    unsigned char *made;
    int64_t bytes, size = (int64_t)strlen(text);
    assert_int_equal(mixt__normal_compose((const unsigned char *)text, size, &made, &bytes), MIXT_OK);
    assert_int_equal(bytes, strlen(wanted));
    assert_memory_equal(made, wanted, (size_t)bytes);
    assert_true(mixt__normal_may_change((const unsigned char *)text, size) || !strcmp(text, wanted));
    mixt__free(made);
}

/** Rows of Unicode's NormalizationTest.txt, a few of each kind. */
static void test_compose(void **state)
{
    (void)state;
    compose_is("plain", "plain");
    compose_is("e\xcc\x81", "\xc3\xa9");                                                // e + acute
    compose_is("\xe1\xb8\x8a\xcc\xa3", "\xe1\xb8\x8c\xcc\x87");                         // D dot above, dot below
    compose_is("\xe2\x84\xab \xe2\x84\xa6", "\xc3\x85 \xce\xa9");                       // Angstrom, Ohm
    compose_is("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81");                 // Hangul
    compose_is("a\xcc\x96\xcc\x81", "\xc3\xa1\xcc\x96");                                // a mark passed over
    compose_is("\xe0\xa4\x95\xe0\xa4\xbc", "\xe0\xa4\x95\xe0\xa4\xbc");                 // excluded from composing
    compose_is("\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc");                             // and its composed form
    compose_is("\xe0\xa7\x87\xe0\xa6\xbe", "\xe0\xa7\x8b");                             // vowel signs
    compose_is("\xf0\x9d\x85\xa0", "\xf0\x9d\x85\x98\xf0\x9d\x85\xa5\xf0\x9d\x85\xae"); // musical symbol
    compose_is("\xcc\x81"
               "a",
               "\xcc\x81"
               "a"); // a mark at the beginning
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_qwen2), cmocka_unit_test(test_phi3),
                                       cmocka_unit_test(test_compose)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
