/* CPU time that a control group gives, read as cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "base/cores.h"

#include <string.h>
#include <sys/stat.h>

static void write_line(const char *name, const char *line)
{
    assert_true(temp_write(temp_path(name), line, strlen(line)));
}

static void version_2(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int cores;
    } cases[] = {
        {"200000 100000\n", 2},   {"150000 100000\n", 2}, {"100001 100000\n", 2},
        {"1000 100000\n", 1},     {"max 100000\n", 0},    {"-1 100000\n", 0},
        {"200000 0\n", 0},        {"200000\n", 0},        {"", 0},
        {"1600000 100000\n", 16}, {"nonsense\n", 0},      {"9223372036854775807 1\n", 0},
    };
    temp_folder_make();
    assert_int_equal(mixt__cores_given(temp_path(".")), 0); // nothing there
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_line("cpu.max", cases[i].line);
        assert_int_equal(mixt__cores_given(temp_path(".")), cases[i].cores);
    }
    temp_folder_remove();
}

static void version_1(void **state)
{
    (void)state;
    temp_folder_make();
    assert_int_equal(mkdir(temp_path("cpu"), 0700), 0);
    write_line("cpu/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(mixt__cores_given(temp_path(".")), 0); // of what?
    write_line("cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(mixt__cores_given(temp_path(".")), 3);
    write_line("cpu/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(mixt__cores_given(temp_path(".")), 0);
    temp_folder_remove();
}

static void at_least_one(void **state)
{
    (void)state;
    assert_in_range(mixt__cores_usable(), 1, 1 << 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_2),
        cmocka_unit_test(version_1),
        cmocka_unit_test(at_least_one),
    };
    return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
