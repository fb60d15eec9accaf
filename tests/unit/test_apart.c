/* The CPU as a device with memory of its own: copies come as late as they may on a GPU, so that tests in a GPU's place
 * find who does not wait for one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/cpu/apart.h"
#include "backend/cpu/guard.h"
#include "ops/ops.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void set(char *there, int value)
{
    mixt__cpu_guard.open();
    memset(there, value, BYTES);
    mixt__cpu_guard.shut();
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
    set(f.there, 2); // too early
    assert_int_equal(beside->join(), MIXT_OK);
    set(f.there, 3);
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
    char *later = device->alloc(BYTES);
    mixt__cpu_guard.shut();
    assert_int_equal(f.there[7], 1);
    later[7] = 1;
    mixt__cpu_guard.shut();
    assert_int_equal(signal_of_reading(f.there), SIGSEGV);
    assert_int_equal(signal_of_reading(later), SIGSEGV);
    device->free(later);
    finish(&f);
}

/** Memory that was given back is taken again, and blocks do not share any. */
static void test_guard_blocks(void **state)
{
    (void)state;
    char *a = device->alloc(3 * BYTES), *b = device->alloc(BYTES);
    device->free(a);
    char *c = device->alloc(BYTES), *d = device->alloc(BYTES);
    assert_ptr_equal(c, a);
    set(b, 1);
    set(c, 2);
    set(d, 3);
    char *blocks[] = {b, c, d};
    for (int i = 0; i < 3; i++) {
        char at[BYTES];
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        assert_int_equal(device->download(at, blocks[i], BYTES), MIXT_OK);
        assert_true(at[0] == i + 1 && at[BYTES - 1] == i + 1);
        device->free(blocks[i]);
    }
    assert_null(device->alloc((size_t)1 << 41)); // more than there are addresses for
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
        const mixt__kernel *const *own = mixt__backend_cpu.kernels(ops[i]), *const *list = device->kernels(ops[i]);
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
