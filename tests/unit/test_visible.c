/* Which GPU a process takes of those that a machine shows. */
#include "backend/visible.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_choose(void **state)
{
    char name[64];
    (void)state;
    assert_false(mixt__gpu_choose(NULL, 0, 3, name, sizeof name)); // the only one, or none: ranks share it
    assert_false(mixt__gpu_choose(NULL, 1, 3, name, sizeof name));
    assert_false(mixt__gpu_choose("2", 8, 3, name, sizeof name)); // the launcher has chosen
    assert_false(mixt__gpu_choose("", 8, 3, name, sizeof name));
    assert_true(mixt__gpu_choose(NULL, 4, 3, name, sizeof name));
    assert_string_equal(name, "3");
    assert_true(mixt__gpu_choose(NULL, 4, 6, name, sizeof name)); // more processes than GPUs: they take turns
    assert_string_equal(name, "2");
    assert_true(mixt__gpu_choose("5,GPU-8f2,7", 8, 1, name, sizeof name));
    assert_string_equal(name, "GPU-8f2");
    assert_true(mixt__gpu_choose("5,GPU-8f2,7", 8, 5, name, sizeof name));
    assert_string_equal(name, "7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choose)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
