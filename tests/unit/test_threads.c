/* The thread team: ranges that cover everything once, barriers that nobody passes early, with more threads than cores
 * too, and in the child of a fork; a caller that works by itself where the others keep it waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/threads.h"

#include <sys/wait.h>
#include <unistd.h>

enum { TEAM_MAX = 9, COUNT = 1000 };

static void mark_range(void *argument, int64_t begin, int64_t end, int thread)
{
    unsigned char *marks = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        marks[i]++;
}

static void test_ranges(void **state)
{
    (void)state;
    for (int threads = 1; threads <= TEAM_MAX; threads++)
        for (int64_t grain = 0; grain <= 700; grain += 7) {
            unsigned char marks[COUNT] = {0};
            mixt__threads_set(threads);
            mixt__parallel(COUNT, grain, mark_range, marks);
            for (int i = 0; i < COUNT; i++)
                assert_int_equal(marks[i], 1);
        }
    mixt__threads_set(0);
}

/** Every thread writes its number of the round, waits for all, and looks at what all have written. */
typedef struct rounds {
    int count;
    int64_t written[TEAM_MAX];
    int wrong[TEAM_MAX];
} rounds;

static void run_rounds(void *argument, int first, int end, int threads)
{
    rounds *r = argument;
    for (int round = 1; round <= r->count; round++) {
        for (int part = first; part < end; part++)
            r->written[part] = 100 * round + part;
        mixt__team_barrier();
        for (int part = first; part < end; part++)
            for (int other = 0; other < threads; other++)
                r->wrong[part] += r->written[other] != 100 * round + other;
        mixt__team_barrier(); // nobody writes the next round before all have looked
    }
}

static void check_rounds(int threads, int count)
{
    rounds r = {.count = count};
    assert_true(mixt__team_run(threads, run_rounds, &r));
    for (int i = 0; i < threads; i++)
        assert_int_equal(r.wrong[i], 0);
}

static void test_barriers(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) // teams of changing size: some workers miss many barriers
        check_rounds(1 + i * 5 % TEAM_MAX, 1 + i % 4);
}

static void run_inside(void *argument, int first, int end, int threads)
{
    int *refused = argument;
    (void)end;
    (void)threads;
    if (first == 0)
        *refused = mixt__team_inside() && !mixt__team_run(2, run_rounds, NULL);
}

static void test_no_region_in_a_region(void **state)
{
    int refused = 0;
    (void)state;
    assert_true(mixt__team_run(3, run_inside, &refused));
    assert_true(refused);
    assert_false(mixt__team_inside());
}

static void test_fork(void **state)
{
    int status = -1;
    (void)state;
    check_rounds(4, 3);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { // its workers are gone: it hires its own
        rounds r = {.count = 3};
        bool ran = mixt__team_run(4, run_rounds, &r);
        _exit(ran && !r.wrong[0] && !r.wrong[3] ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_rounds(4, 3);
}

/** One thread works for a moment, the others sleep for longer, as those do that wait for their turn on a busy machine.
 */
static void run_slowly(void *argument, int first, int end, int threads)
{
    int *alone = argument;
    *alone += first == 0 && end == threads;
    for (int part = first; part < end; part++)
        if (part > 0 && end - first < threads)
            usleep(2000);
}

static void test_a_team_that_loses_time_rests(void **state)
{
    int alone = 0, regions = 0;
    (void)state;
    mixt__team *team = mixt__team_open(2);
    mixt__team_hold before = mixt__team_use(team);
    double begin = mixt__time_now();
    while (mixt__time_now() - begin < 0.3 && regions < 100000) {
        assert_true(mixt__team_run(2, run_slowly, &alone));
        regions++;
    }
    assert_true(alone > 0 && alone < regions); // by itself for the most part, and now and then not
    assert_true(alone > 10 * (regions - alone));
    check_rounds(2, 5); // with the same result either way
    mixt__team_use_again(before);
    mixt__team_close(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_a_team_that_loses_time_rests),
        cmocka_unit_test(test_no_region_in_a_region),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
