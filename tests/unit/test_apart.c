/* The CPU as a device with memory of its own: copies come as late as they may on a GPU, so that tests in a GPU's place
 * find who does not wait for one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu/apart.h"

#include <string.h>

enum { BYTES = 256 };

static const mixt__backend *device;
static const mixt__beside *beside;

typedef struct fixture {
    char *there, *here; // the device's, the host's
} fixture;

static fixture start(void)
{
    fixture f = {device->alloc(BYTES), device->alloc_host(BYTES)};
    assert_true(f.there && f.here);
    memset(f.here, 1, BYTES);
    assert_int_equal(device->upload(f.there, f.here, BYTES), MIXT_OK);
    memset(f.here, 0, BYTES);
    return f;
}

static void finish(const fixture *f)
{
    device->free(f->there);
    device->free_host(f->here);
}

/** To the host: what was there when the copy was issued, once the host waits. */
static void test_copies_to_the_host(void **state)
{
    (void)state;
    fixture f = start();
    assert_int_equal(device->copy(f.here, f.there, BYTES), MIXT_OK);
    assert_int_equal(device->zero(f.there, BYTES), MIXT_OK);
    assert_int_equal(f.here[7], 0);
    assert_int_equal(device->synchronize(), MIXT_OK);
    assert_int_equal(f.here[7], 1);
    finish(&f);
}

/** Beside the kernels: what is there when the device is made to wait, once the host waits too. */
static void test_copies_beside(void **state)
{
    (void)state;
    fixture f = start();
    assert_int_equal(beside->copy(f.here, f.there, BYTES), MIXT_OK);
    assert_int_equal(device->synchronize(), MIXT_OK); // which is not for them
    assert_int_equal(f.here[7], 0);
    memset(f.there, 2, BYTES); // too early
    assert_int_equal(beside->join(), MIXT_OK);
    memset(f.there, 3, BYTES);
    assert_int_equal(f.here[7], 0);
    assert_int_equal(beside->query(), MIXT_OK);
    assert_int_equal(f.here[7], 2);
    finish(&f);
}

static void test_copies_in_order(void **state)
{
    (void)state;
    fixture f = start();
    memset(f.here, 5, BYTES);
    assert_int_equal(device->copy(f.there, f.here, BYTES), MIXT_OK);
    assert_int_equal(device->copy(f.here, f.there, BYTES), MIXT_OK); // behind the one that reads it
    assert_int_equal(device->synchronize(), MIXT_OK);
    assert_int_equal(f.here[7], 5);
    finish(&f);
}

static void test_account(void **state)
{
    (void)state;
    size_t before = device->allocated();
    fixture f = start();
    assert_int_equal(device->allocated(), before + BYTES);
    finish(&f);
    assert_int_equal(device->allocated(), before);
}

/** Once for all: a device that has failed stays failed. */
static void test_changed_sources(void **state)
{
    (void)state;
    fixture f = start();
    assert_int_equal(device->copy(f.there, f.here, BYTES), MIXT_OK);
    f.here[7] = 9;
    assert_int_equal(device->synchronize(), MIXT_ERROR_INTERNAL);
    finish(&f);
}

int main(void)
{
    device = mixt__backend_cpu_apart();
    beside = &mixt__beside_cpu_apart;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_to_the_host), cmocka_unit_test(test_copies_beside),
        cmocka_unit_test(test_copies_in_order),    cmocka_unit_test(test_account),
        cmocka_unit_test(test_changed_sources), // the last
    };
    return cmocka_run_group_tests_name("the CPU apart", tests, NULL, NULL);
}
