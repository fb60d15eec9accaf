/* Rows with checksums: any byte that changes is found, whatever is not read whole is an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "store/json_rows.h"

#include <stdlib.h>
#include <string.h>

static mixt_status count(void *user, json_t *row)
{
    assert_null(json_object_get(row, "checksum"));
    ++*(int64_t *)user;
    return MIXT_OK;
}

static mixt_status read_text(const char *text, size_t bytes, int64_t *rows)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, bytes, "r");
    assert_non_null(file);
    *rows = 0;
    mixt_status status = mixt__json_rows_read(file, "rows.jsonl", count, rows);
    fclose(file);
    return status;
}

/** Three rows, the first of an older version. */
static size_t make(char *all, size_t size)
{
    char *second = mixt__json_row_seal(strdup("{\"stage\":\"baseline\",\"loss\":0.25}"));
    char *third = mixt__json_row_seal(strdup("{\"undo\":\"baseline\"}"));
    assert_true(second && third);
    int bytes = snprintf(all, size, "{\"figure\":\"fp32\"}\n%s\n%s\n", second, third);
    free(second);
    free(third);
    return (size_t)bytes;
}

static void test_whole(void **state)
{
    (void)state;
    char all[400];
    int64_t rows;
    size_t bytes = make(all, sizeof all);
    assert_int_equal(read_text(all, bytes, &rows), MIXT_OK);
    assert_int_equal(rows, 3);
    FILE *empty = fopen("/dev/null", "r");
    assert_non_null(empty);
    assert_int_equal(mixt__json_rows_read(empty, "rows.jsonl", count, &rows), MIXT_OK);
    fclose(empty);
    assert_null(mixt__json_row_seal(NULL));
}

/** Bytes of the sealed rows, each with every bit changed; the letters of "checksum" make a row of an older version. */
static void test_damage(void **state)
{
    (void)state;
    char all[400];
    int64_t rows;
    size_t bytes = make(all, sizeof all), first = (size_t)(strchr(all, '\n') - all) + 1;
    for (size_t i = first; i < bytes; i++) {
        for (int bit = 0; bit < 8; bit++) {
            all[i] = (char)(all[i] ^ (1 << bit));
            mixt_status status = read_text(all, bytes, &rows);
            if (status == MIXT_OK)
                assert_int_equal(rows, 3); // nothing is lost
            else
                assert_int_equal(status, MIXT_ERROR_FORMAT);
            all[i] = (char)(all[i] ^ (1 << bit));
        }
    }
    char *digit = strstr(all, "0.25");
    *digit = '1';
    assert_int_equal(read_text(all, bytes, &rows), MIXT_ERROR_FORMAT);
    assert_non_null(strstr(mixt_error_text(), "rows.jsonl:2: the row is damaged: its checksum is another"));
}

/** Cut at any byte: what is left of the last row is no row, and a whole one without its end of line is damage. */
static void test_cut(void **state)
{
    (void)state;
    char all[400];
    int64_t rows;
    size_t bytes = make(all, sizeof all);
    const char *second = strchr(all, '\n') + 1, *third = strchr(second, '\n') + 1;
    for (const char *end = third; end < all + bytes - 1; end++) {
        assert_int_equal(read_text(all, (size_t)(end - all), &rows), MIXT_OK);
        assert_int_equal(rows, 2);
    }
    assert_int_equal(read_text(all, bytes - 1, &rows), MIXT_ERROR_FORMAT);
}

static mixt_status refuse(void *user, json_t *row)
{
    (void)row;
    return ++*(int *)user == 2 ? mixt_fail(MIXT_ERROR_MEMORY, "no memory") : MIXT_OK;
}

static void test_failures(void **state)
{
    (void)state;
    char all[400];
    int calls = 0;
    size_t bytes = make(all, sizeof all);
    FILE *file = fmemopen(all, bytes, "r"), *folder = fopen("/", "r");
    assert_int_equal(mixt__json_rows_read(file, "rows.jsonl", refuse, &calls), MIXT_ERROR_MEMORY);
    assert_int_equal(calls, 2);
    fclose(file);
    assert_non_null(folder); // reading a folder fails
    assert_int_equal(mixt__json_rows_read(folder, "/", refuse, &calls), MIXT_ERROR_FILE);
    fclose(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
