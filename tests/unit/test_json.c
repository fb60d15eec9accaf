/* JSON that is complete or not written: with the n-th allocation of jansson failing, for every n, the text is what it
 * should be or there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "store/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t countdown; // allocations until one fails; 0: none does
static int64_t calls;

static void *failing(size_t bytes)
{
    calls++;
    return countdown && --countdown == 0 ? NULL : malloc(bytes);
}

/** As documents are built: nobody looks at each value. */
static json_t *build(void)
{
    json_t *layers = json_array(), *inner = json_object(), *o = json_object();
    mixt__json_set_text(inner, "name", "fc\xffone"); // no UTF-8
    mixt__json_set_real(inner, "nan", (double)NAN);
    mixt__json_set_real(inner, "third", 1.0 / 3);
    for (int i = 0; i < 9; i++)
        mixt__json_add(layers, json_pack("{s:i, s:s}", "layer", i, "format", "bf16"));
    mixt__json_add_real(layers, (double)INFINITY);
    mixt__json_set(inner, "layers", layers);
    mixt__json_set(o, "inner", inner);
    mixt__json_set(o, "step", json_integer(7));
    json_t *rest = json_pack("{s:i, s:o}", "a", 1, "b", mixt__json_string("text"));
    mixt__json_merge(o, rest);
    json_decref(rest);
    return o;
}

static char *text_of(void)
{
    json_t *o = build(), *copy = mixt__json_copy(o);
    char *text = mixt__json_dumps(copy, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(copy);
    json_decref(o);
    return text;
}

static void test_every_allocation(void **state)
{
    (void)state;
    json_set_alloc_funcs(failing, free);
    char *whole = text_of();
    int64_t total = calls, refused = 0;
    assert_non_null(whole);
    assert_non_null(strstr(whole, "\"name\":\"fc\xef\xbf\xbdone\",\"third\":0.333"));
    assert_non_null(strstr(whole, "null]},\"step\":7,\"a\":1,\"b\":\"text\"}"));
    assert_true(total > 100);
    for (int64_t n = 1; n <= total; n++) {
        countdown = n;
        char *text = text_of();
        countdown = 0;
        if (text)
            assert_string_equal(text, whole);
        refused += !text;
        free(text);
        text = text_of(); // a failure before says nothing about this one
        assert_non_null(text);
        assert_string_equal(text, whole);
        free(text);
    }
    assert_true(refused > total / 2);
    free(whole);
    json_set_alloc_funcs(malloc, free);
}

static void test_more_than_the_table(void **state)
{
    (void)state;
    enum { MANY = 1500 };
    static json_t *lost[MANY];
    json_t *whole = json_object();
    for (int round = 0; round < 2; round++) { // in the second, more at once than can be remembered
        int count = round ? MANY : MANY / 2;
        for (int i = 0; i < count; i++) {
            lost[i] = json_array();
            mixt__json_add(lost[i], NULL);
            assert_null(mixt__json_dumps(lost[i], 0));
        }
        assert_true(mixt__json_whole(whole) == !round);
        for (int i = 0; i < count; i++) {
            assert_false(mixt__json_whole(lost[i]));
            json_decref(lost[i]);
        }
        assert_true(mixt__json_whole(whole) == !round);
    }
    json_decref(whole);
}

static void test_parse(void **state)
{
    (void)state;
    json_t *value;
    assert_int_equal(mixt__json_parse("x.json", "{\"a\": [1, 2]}", 13, 0, &value), MIXT_OK);
    json_decref(value);
    assert_int_equal(mixt__json_parse("x.json", "{\"a\": [1, 2}", 12, 0, &value), MIXT_ERROR_FORMAT);
    assert_non_null(strstr(mixt_error_text(), "x.json:1:12"));
    json_set_alloc_funcs(malloc, free);
}

static int blocks; // that are held

static void *counted(size_t bytes)
{
    void *block = failing(bytes);
    blocks += block != NULL;
    return block;
}

static void uncounted(void *block)
{
    blocks -= block != NULL;
    free(block);
}

/** Long words make the lexer's buffer grow, which jansson does not look at: without a jump it aborts, or takes what is
 * left for a wrong token. */
static void test_parse_without_memory(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a name of more than sixteen bytes\": [1234567890123456789, true, \"\\u00e9 and so on, "
        "for more than thirty-two bytes\"], \"b\": 1.234567890123456789e-12}";
    json_t *value;
    int n = 1;
    json_set_alloc_funcs(counted, uncounted);
    for (mixt_status status = MIXT_ERROR_MEMORY; status != MIXT_OK; n++) {
        countdown = n;
        status = mixt__json_parse("x.json", text, sizeof text - 1, 0, &value);
        countdown = 0;
        if (status == MIXT_OK)
            json_decref(value);
        else
            assert_int_equal(status, MIXT_ERROR_MEMORY);
        assert_int_equal(blocks, 0);
    }
    assert_true(n > 12);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation), cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_without_memory),
        cmocka_unit_test(test_more_than_the_table), // last: it leaves nothing that is believed
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
