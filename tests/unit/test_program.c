/* What a program around the library asks for: failures of its own, the version, the environment, word guesses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <mixt/mixt.h>

static void test_fail(void **state)
{
    (void)state;
    assert_int_equal(mixt_fail(MIXT_ERROR_DATA, "row %d: no label", 7), MIXT_ERROR_DATA);
    assert_string_equal(mixt_error_text(), "row 7: no label");
    assert_int_equal(mixt_fail(MIXT_ERROR_FILE, "rows.csv: %s", mixt_error_text()), MIXT_ERROR_FILE);
    assert_string_equal(mixt_error_text(), "rows.csv: row 7: no label");
}

static void test_version(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(mixt_version(), MIXT_VERSION);
    assert_int_equal(mixt_version_number(), MIXT_VERSION_NUMBER);
    snprintf(text, sizeof text, "%d.%d.%d", MIXT_VERSION_MAJOR, MIXT_VERSION_MINOR, MIXT_VERSION_PATCH);
    assert_string_equal(mixt_version(), text);
}

static void test_env_list(void **state)
{
    (void)state;
    int threads = 0;
    for (int i = 0; i < mixt_env_count(); i++) {
        const mixt_env_info *info = mixt_env_at(i);
        assert_int_equal(strncmp(info->name, "MIXT_", 5), 0);
        assert_true(strlen(info->help) > 10);
        threads += !strcmp(info->name, "MIXT_THREADS");
    }
    assert_int_equal(threads, 1);
    assert_null(mixt_env_at(mixt_env_count()));
    assert_null(mixt_env_at(-1));
}

static void test_env_check(void **state)
{
    const struct {
        const char *name, *good, *bad, *text;
    } variables[] = {
        {"MIXT_THREADS", "2", "two", "MIXT_THREADS: expected an integer from 0 to 1024, found 'two'"},
        {"MIXT_DEVICE", "cpu", "cup",
         "MIXT_DEVICE: expected auto, cpu, cuda or cuda:N, found 'cup' (did you mean cpu?)"},
        {"MIXT_ISA", "avx2", "avx", "MIXT_ISA: no instruction set 'avx' (did you mean avx2?): it takes scalar, avx2"},
        {"MIXT_LOG", "error,plan", "plan,eror", "MIXT_LOG: no category 'eror' (did you mean error?): it takes error"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *name = variables[i].name, *before = getenv(name);
        char kept[64] = "";
        if (before)
            strncpy(kept, before, sizeof kept - 1);
        setenv(name, variables[i].bad, 1);
        assert_int_equal(mixt_env_check(), MIXT_ERROR_CONFIG);
        if (strncmp(mixt_error_text(), variables[i].text, strlen(variables[i].text)))
            fail_msg("%s", mixt_error_text());
        setenv(name, variables[i].good, 1);
        assert_int_equal(mixt_env_check(), MIXT_OK);
        setenv(name, kept, 1);
    }
}

static void test_nearest(void **state)
{
    const char *const words[] = {"train", NULL, "tokenize", "eval"};
    (void)state;
    assert_string_equal(mixt_word_nearest("tarin", words, 4), "train");
    assert_string_equal(mixt_word_nearest("EVAL", words, 4), "eval");
    assert_null(mixt_word_nearest("xyzzy", words, 4));
    assert_null(mixt_word_nearest("train", words, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail),      cmocka_unit_test(test_version), cmocka_unit_test(test_env_list),
        cmocka_unit_test(test_env_check), cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
