/* The CPU as a device with memory of its own: copies come as late as they may on a GPU, so that tests in a GPU's place
 * find who does not wait for one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu/discrete.h"
#include "backend/cpu/guard.h"
#include "ops/ops.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 256 };

static mixt__device *device;
static const mixt__beside *beside;

typedef struct fixture {
    char *there, *here; // the device's, the host's
} fixture;

static fixture start(void)
{
    fixture f = {mixt__device_alloc(device, BYTES), mixt__device_alloc_host(device, BYTES)};
    assert_true(f.there && f.here);
    memset(f.here, 1, BYTES);
    assert_int_equal(mixt__device_upload(device, f.there, f.here, BYTES), MIXT_OK);
    memset(f.here, 0, BYTES);
    return f;
}

static void set(char *there, int value)
{
    mixt__cpu_guard.open();
    memset(there, value, BYTES);
    mixt__cpu_guard.shut();
}

static void finish(const fixture *f)
{
    mixt__device_free(device, f->there);
    mixt__device_free_host(device, f->here);
}

/** To the host: what was there when the copy was issued, once the host waits. */
static void test_copies_to_the_host(void **state)
{
    (void)state;
    fixture f = start();
    assert_int_equal(mixt__device_copy(device, f.here, f.there, BYTES), MIXT_OK);
    assert_int_equal(mixt__device_zero(device, f.there, BYTES), MIXT_OK);
    assert_int_equal(f.here[7], 0);
    assert_int_equal(mixt__device_synchronize(device), MIXT_OK);
    assert_int_equal(f.here[7], 1);
    finish(&f);
}

/** Beside the kernels: what is there when the device is made to wait, once the host waits too. */
static void test_copies_beside(void **state)
{
    (void)state;
    fixture f = start();
    assert_int_equal(beside->copy(device, f.here, f.there, BYTES), MIXT_OK);
    assert_int_equal(mixt__device_synchronize(device), MIXT_OK); // which is not for them
    assert_int_equal(f.here[7], 0);
    set(f.there, 2); // too early
    assert_int_equal(beside->join(device), MIXT_OK);
    set(f.there, 3);
    assert_int_equal(f.here[7], 0);
    assert_int_equal(beside->query(device), MIXT_OK);
    assert_int_equal(f.here[7], 2);
    finish(&f);
}

static void test_copies_in_order(void **state)
{
    (void)state;
    fixture f = start();
    memset(f.here, 5, BYTES);
    assert_int_equal(mixt__device_copy(device, f.there, f.here, BYTES), MIXT_OK);
    assert_int_equal(mixt__device_copy(device, f.here, f.there, BYTES), MIXT_OK); // behind the one that reads it
    assert_int_equal(mixt__device_synchronize(device), MIXT_OK);
    assert_int_equal(f.here[7], 5);
    finish(&f);
}

static void test_account(void **state)
{
    (void)state;
    size_t before = mixt__device_allocated(device);
    fixture f = start();
    assert_int_equal(mixt__device_allocated(device), before + BYTES);
    finish(&f);
    assert_int_equal(mixt__device_allocated(device), before);
}

/** The signal that ends a process that reads there; 0: none does. */
static int signal_of_reading(const volatile char *at)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        signal(SIGSEGV, SIG_DFL); // a sanitizer's or cmocka's would report it
        _exit(*at == 127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/** The host alone cannot read a block; who computes can, until the last of several has ended. */
static void test_guard(void **state)
{
    (void)state;
    fixture f = start();
    assert_int_equal(signal_of_reading(f.there), SIGSEGV);
    assert_int_equal(signal_of_reading(f.here), 0);
    mixt__cpu_guard.open();
    mixt__cpu_guard.open();
    char *later = mixt__device_alloc(device, BYTES);
    mixt__cpu_guard.shut();
    assert_int_equal(f.there[7], 1);
    later[7] = 1;
    mixt__cpu_guard.shut();
    assert_int_equal(signal_of_reading(f.there), SIGSEGV);
    assert_int_equal(signal_of_reading(later), SIGSEGV);
    mixt__device_free(device, later);
    finish(&f);
}

/** Memory that was given back is taken again, and blocks do not share any. */
static void test_guard_blocks(void **state)
{
    (void)state;
    char *a = mixt__device_alloc(device, 3 * BYTES), *b = mixt__device_alloc(device, BYTES);
    mixt__device_free(device, a);
    char *c = mixt__device_alloc(device, BYTES), *d = mixt__device_alloc(device, BYTES);
    assert_ptr_equal(c, a);
    set(b, 1);
    set(c, 2);
    set(d, 3);
    char *blocks[] = {b, c, d};
    for (int i = 0; i < 3; i++) {
        char at[BYTES];
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        assert_int_equal(mixt__device_download(device, at, blocks[i], BYTES), MIXT_OK);
        assert_true(at[0] == i + 1 && at[BYTES - 1] == i + 1);
        mixt__device_free(device, blocks[i]);
    }
    assert_null(mixt__device_alloc(device, (size_t)1 << 41)); // more than there are addresses for
}

/** Every candidate of the CPU's is there, in its order, and opens the memory: none is the CPU's own. */
static void test_candidates(void **state)
{
    (void)state;
    const mixt__op *const ops[] = {
#define MIXT_OP(name) &mixt__op_##name,
#include "ops/ops.def"
#undef MIXT_OP
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        const mixt__kernel *const *own = mixt__backend_cpu.kernels(ops[i]), *const *list =
                                                                                device->backend->kernels(ops[i]);
        for (; *own && *list; own++, list++) {
            assert_string_equal((*list)->name, (*own)->name);
            assert_true((*list)->run != (*own)->run);
        }
        assert_true(!*own && !*list);
    }
}

/** Once for all: a device that has failed stays failed. */
static void test_changed_sources(void **state)
{
    (void)state;
    fixture f = start();
    assert_int_equal(mixt__device_copy(device, f.there, f.here, BYTES), MIXT_OK);
    f.here[7] = 9;
    assert_int_equal(mixt__device_synchronize(device), MIXT_ERROR_INTERNAL);
    finish(&f);
}

int main(void)
{
    device = mixt__device_cpu_discrete();
    beside = device->backend->beside;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_to_the_host),
        cmocka_unit_test(test_copies_beside),
        cmocka_unit_test(test_copies_in_order),
        cmocka_unit_test(test_account),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_guard_blocks),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_changed_sources), // the last
    };
    return cmocka_run_group_tests_name("the CPU apart", tests, NULL, NULL);
}
