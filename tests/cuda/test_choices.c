/* Kept choices, without a GPU: several processes, damaged files, no folder. The library's versions are stood in for;
 * each process reads the file afresh, so every use is a child of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/temp_folder.h"
#include "backend/cuda/core/cuda.h"

#include <glob.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

static mixt__cuda_device gpu = {.base = {.own = &gpu}, .name = "A GPU (of 1)"};
size_t cublasLtGetVersion(void);
size_t cudnnGetVersion(void);

size_t cublasLtGetVersion(void)
{
    return 130000;
}

size_t cudnnGetVersion(void)
{
    return 91900;
}

static bool in_child(bool (*work)(int number), int number)
{
    int status;
    pid_t child = fork();
    if (!child)
        _exit(work(number) ? 0 : 1);
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void text_key(char *key, size_t size, int number)
{
    snprintf(key, size, "product:%d", number);
}

static bool put_ten(int first)
{
    for (int i = 10 * first; i < 10 * first + 10; i++) {
        char key[32];
        int64_t value[3] = {i, -i, 7};
        text_key(key, sizeof key, i);
        mixt__cuda_choice_put(&gpu, key, value, sizeof value);
    }
    return true;
}

static bool has(int number)
{
    char key[32];
    int64_t value[3] = {0};
    text_key(key, sizeof key, number);
    return mixt__cuda_choice_get(&gpu, key, value, sizeof value) && value[0] == number && value[1] == -number &&
           value[2] == 7 && !mixt__cuda_choice_get(&gpu, key, value, sizeof value - 1);
}

static bool has_not(int number)
{
    return !has(number);
}

static const char *only_file(void)
{
    static char path[512];
    glob_t found;
    assert_int_equal(glob(temp_path("cache/deep/choices-*.txt"), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
    globfree(&found);
    return path;
}

static void many_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 8 };
    for (int i = 0; i < PROCESSES; i++)
        if (!fork())
            _exit(put_ten(i) ? 0 : 1);
    for (int i = 0; i < PROCESSES; i++)
        assert_true(wait(NULL) > 0);
    for (int i = 0; i < 10 * PROCESSES; i++)
        assert_true(in_child(has, i));
    assert_true(in_child(has_not, 10 * PROCESSES));
    assert_non_null(strstr(only_file(), "choices-A-GPU--of-1--cublaslt130000-cudnn91900.txt"));
}

static bool damage(int at)
{
    FILE *file = fopen(only_file(), "r+");
    fseek(file, at, SEEK_SET);
    int old = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(old == 'x' ? 'y' : 'x', file);
    return fclose(file) == 0;
}

/** Damages the first line of the file, in its value or in its checksum; which choice that was. */
static int damage_first(bool value)
{
    char line[1024];
    int number, length = 0;
    FILE *file = fopen(only_file(), "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_int_equal(sscanf(line, "product:%d%n", &number, &length), 1);
    assert_true(damage(value ? length + 5 : (int)strlen(line) - 3));
    return number;
}

/** That choice is gone, the others stay, and it can be made anew. */
static void damaged_lines(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        int lost = damage_first(i == 0);
        assert_true(in_child(has_not, lost));
        assert_true(in_child(has, (lost + 1) % 80));
        assert_true(in_child(put_ten, lost / 10));
        assert_true(in_child(has, lost));
    }
}

/* ---- the same key at once ---- */

static pthread_barrier_t *line; // in memory that processes share
static int64_t *outcomes;

static bool put_one(int number)
{
    int64_t value[3] = {number, -number, 7}, kept[3] = {0};
    has_not(0); // reads the file, which has no such key yet
    pthread_barrier_wait(line);
    bool first = mixt__cuda_choice_put(&gpu, "contested", value, sizeof value);
    outcomes[number] = value[0];
    return first == (value[0] == number) && mixt__cuda_choice_get(&gpu, "contested", kept, sizeof kept) &&
           !memcmp(kept, value, sizeof kept);
}

static bool is_contested(int number)
{
    int64_t value[3] = {0};
    return mixt__cuda_choice_get(&gpu, "contested", value, sizeof value) && value[0] == number;
}

/** The first to tell decides for all who time it then, and for those who come later. */
static void one_of_many(void **state)
{
    (void)state;
    enum { PROCESSES = 8 };
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t attributes;
    assert_true(shared != MAP_FAILED);
    line = shared;
    outcomes = (int64_t *)((char *)shared + 1024);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(line, &attributes, PROCESSES);
    for (int i = 0; i < PROCESSES; i++)
        if (!fork())
            _exit(put_one(i) ? 0 : 1);
    for (int i = 0, status; i < PROCESSES; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    for (int i = 1; i < PROCESSES; i++)
        assert_int_equal(outcomes[i], outcomes[0]);
    assert_true(in_child(is_contested, (int)outcomes[0]));
    munmap(shared, 4096);
}

/** One that is there and does not serve (of another library, say) gives way. */
static bool replaces(int number)
{
    int64_t value[3] = {0}, better[3] = {number, -number, 7};
    return mixt__cuda_choice_get(&gpu, "contested", value, sizeof value) &&
           mixt__cuda_choice_put(&gpu, "contested", better, sizeof better) && is_contested(number);
}

static void refused_ones(void **state)
{
    (void)state;
    assert_true(in_child(replaces, 1000));
    assert_true(in_child(is_contested, 1000));
}

static bool keeps_for_itself(int number)
{
    return put_ten(number) && has(10 * number);
}

static void no_folder(void **state)
{
    (void)state;
    setenv("MIXT_CACHE", "/proc/nothing/here", 1);
    assert_true(in_child(keeps_for_itself, 0));
    assert_true(in_child(has_not, 0));
}

/* ---- two devices of one process ---- */

/** Of one kind the first to tell decides for both; another kind of GPU has choices of its own. */
static bool devices_agree(int number)
{
    mixt__cuda_device second = {.base = {.own = &second}, .name = "A GPU (of 1)"};
    mixt__cuda_device other = {.base = {.own = &other}, .name = "Another GPU"};
    int64_t value[3] = {number, -number, 7}, late[3] = {-1, -1, -1}, own[3] = {5, 5, 5}, kept[3];
    bool good = !mixt__cuda_choice_get(&second, "shared", kept, sizeof kept) && // both have looked, and found none
                mixt__cuda_choice_put(&gpu, "shared", value, sizeof value) &&
                !mixt__cuda_choice_put(&second, "shared", late, sizeof late) && late[0] == number &&
                mixt__cuda_choice_get(&second, "shared", kept, sizeof kept) && kept[0] == number &&
                !mixt__cuda_choice_get(&other, "shared", kept, sizeof kept) &&
                mixt__cuda_choice_put(&other, "shared", own, sizeof own) && own[0] == 5;
    mixt__cuda_choices_drop(&second);
    good = good && !second.choices.count && mixt__cuda_choice_get(&second, "shared", kept, sizeof kept) &&
           kept[0] == number;
    mixt__cuda_choices_drop(&second);
    mixt__cuda_choices_drop(&other);
    return good;
}

/** What one device adopted from a checkpoint is no other's. */
static bool adopts_alone(int number)
{
    mixt__cuda_device second = {.base = {.own = &second}, .name = "A GPU (of 1)"};
    int64_t kept[3];
    char key[32], text[2048];
    put_ten(number / 10);
    size_t bytes = mixt__cuda_choices_print(&gpu.base, NULL, 0);
    if (bytes > sizeof text)
        return false;
    mixt__cuda_choices_print(&gpu.base, text, bytes);
    setenv("MIXT_CACHE", temp_path("empty"), 1);
    mixt__cuda_choices_drop(&gpu); // now as after a start with an empty folder
    mixt__cuda_choices_adopt(&gpu.base, text, bytes);
    text_key(key, sizeof key, number);
    bool good = has(number) && gpu.choices.adopted && !mixt__cuda_choice_get(&second, key, kept, sizeof kept);
    mixt__cuda_choices_drop(&second);
    return good;
}

static void two_devices(void **state)
{
    (void)state;
    setenv("MIXT_CACHE", temp_path("cache/deep"), 1);
    assert_true(in_child(devices_agree, 2000));
    assert_true(in_child(adopts_alone, 500));
    setenv("MIXT_CACHE", "/dev/null/none", 1);
    assert_true(in_child(devices_agree, 3000));
    setenv("MIXT_CACHE", temp_path("cache/deep"), 1);
    rmdir(temp_path("empty"));
}

static void remove_cache(void)
{
    glob_t found;
    if (glob(temp_path("cache/deep/*"), 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
    globfree(&found);
    rmdir(temp_path("cache/deep"));
    rmdir(temp_path("cache"));
}

/** What a checkpoint carries: in memory that processes share. */
static struct {
    size_t bytes;
    char text[8192];
} * carried;

static bool prints(int first)
{
    put_ten(first);
    carried->bytes = mixt__cuda_choices_print(&gpu.base, NULL, 0);
    return carried->bytes <= sizeof carried->text &&
           mixt__cuda_choices_print(&gpu.base, carried->text, sizeof carried->text) == carried->bytes;
}

static bool puts_other(int number)
{
    int64_t other[3] = {-1, -1, -1};
    char key[32];
    text_key(key, sizeof key, number);
    return mixt__cuda_choice_put(&gpu, key, other, sizeof other);
}

/** Takes over what another process chose, against what it has itself. */
static bool adopts(int number)
{
    puts_other(number);
    mixt__cuda_choices_adopt(&gpu.base, carried->text, carried->bytes);
    return has(number) && has(number + 1) && has_not(number + 100);
}

/** Takes over what another process chose, and tells a choice of its own. */
static bool goes_on(int number)
{
    int64_t value[3] = {number, -number, 7};
    char key[32];
    mixt__cuda_choices_adopt(&gpu.base, carried->text, carried->bytes);
    text_key(key, sizeof key, number);
    return has(300) && mixt__cuda_choice_put(&gpu, key, value, sizeof value);
}

static bool has_other(int number)
{
    int64_t value[3];
    char key[32];
    text_key(key, sizeof key, number);
    return mixt__cuda_choice_get(&gpu, key, value, sizeof value) && value[0] == -1;
}

static bool adopts_nothing(int number)
{
    mixt__cuda_choices_adopt(&gpu.base, carried->text, carried->bytes);
    return has_not(number);
}

/** A run with an empty folder goes on with the choices of its checkpoint; those of another GPU stay out. */
static void carried_over(void **state)
{
    (void)state;
    carried = mmap(NULL, sizeof *carried, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(carried != MAP_FAILED);
    setenv("MIXT_CACHE", "/dev/null/none", 1);
    assert_true(in_child(prints, 30));
    assert_true(in_child(has_not, 305));
    assert_true(in_child(adopts, 305));
    setenv("MIXT_CACHE", temp_path("cache/deep"), 1); // a run that goes on leaves the choices of others as they are
    assert_true(in_child(puts_other, 300));
    assert_true(in_child(goes_on, 400));
    assert_true(in_child(has, 400));
    assert_true(in_child(has_other, 300));
    assert_true(in_child(has_not, 301));
    setenv("MIXT_CACHE", "/dev/null/none", 1);
    carried->text[3] ^= 1; // inside the GPU's name
    assert_true(in_child(adopts_nothing, 306));
    munmap(carried, sizeof *carried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_processes), cmocka_unit_test(damaged_lines),
                                       cmocka_unit_test(one_of_many),    cmocka_unit_test(refused_ones),
                                       cmocka_unit_test(no_folder),      cmocka_unit_test(carried_over),
                                       cmocka_unit_test(two_devices)};
    temp_folder_make();
    setenv("MIXT_CACHE", temp_path("cache/deep"), 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_cache();
    temp_folder_remove();
    return failed;
}
