/* Pages for which memory ends at the n-th request, for every n: refused with words and nothing written, or the page, or
 * one that says what it could not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/temp_folder.h"

#include <mixt/mixt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory that ends: the C library's functions by their own names ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static int64_t requests, fail_at;

static bool ends(void)
{
    return __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED) == fail_at;
}

void *malloc(size_t bytes)
{
    return ends() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return ends() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return ends() ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return ends() ? NULL : __libc_memalign(alignment, bytes);
}

/* ---- a run, and pages of it ---- */

static int train(void **state)
{
    (void)state;
    char out[600];
    temp_folder_make();
    snprintf(out, sizeof out, "out=%s", temp_path("run"));
    const char *const settings[] = {"model=mlp",
                                    "net.hidden=4",
                                    "data.kind=random",
                                    "data.shape=6",
                                    "data.classes=3",
                                    "data.samples=64",
                                    "device=cpu",
                                    "threads=1",
                                    "train.batch=8",
                                    "precision=bf16",
                                    "train.steps=3",
                                    "train.log_every=1",
                                    "train.validate_every=1",
                                    out,
                                    NULL};
    mixt_config *config;
    mixt_run *run;
    mixt_status status = mixt_config_new(&config);
    if (status == MIXT_OK)
        status = mixt_run_open_config(config, MIXT_OPTIONS_AT(mixt_run_options, .settings = settings), &run);
    if (status == MIXT_OK)
        status = mixt_run_train(run, NULL);
    if (status != MIXT_OK)
        return print_error("%s\n", mixt_error_text()), 1;
    mixt_run_close(run);
    mixt_config_free(config);
    return 0;
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    assert_non_null(file);
    assert_non_null(text);
    assert_in_range(fread(text, 1, (1 << 20) - 1, file), 1, (1 << 20) - 2);
    fclose(file);
    return text;
}

static void every_request(void **state)
{
    (void)state;
    char run[512], page[512];
    snprintf(run, sizeof run, "%s", temp_path("run"));
    snprintf(page, sizeof page, "%s", temp_path("page.html"));
    const char *const runs[] = {run};
    int64_t refused = 0, others = 0;
    assert_int_equal(mixt_page_write(runs, 1, page, NULL), MIXT_OK);
    char *whole = read_all(page);
    assert_null(strstr(whole, "\"problems\":[\""));
    for (int64_t n = 1;; n++) {
        unlink(page);
        requests = 0;
        fail_at = n;
        mixt_status status = mixt_page_write(runs, 1, page, NULL);
        bool reached = requests >= n;
        fail_at = 0;
        if (status != MIXT_OK) {
            if (!strstr(mixt_error_text(), "memory"))
                fail_msg("request %lld: '%s'", (long long)n, mixt_error_text());
            assert_int_not_equal(access(page, F_OK), 0);
            refused++;
        } else {
            char *now = read_all(page);
            if (strcmp(now, whole) && !strstr(now, "\"problems\":[\""))
                fail_msg("request %lld: another page that names no problem", (long long)n);
            others += strcmp(now, whole) != 0;
            free(now);
        }
        if (!reached)
            break;
    }
    free(whole);
    assert_true(refused > 100 && others > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_request)};
    return cmocka_run_group_tests(tests, train, temp_folder_teardown);
}
