/* Every file of configs/ loads, passes the rules between keys, and names a model that exists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/config.h"
#include "models/models.h"

#include <glob.h>

static void every_file_is_valid(void **state)
{
    (void)state;
    glob_t files;
    assert_int_equal(glob("configs/*.yaml", 0, NULL, &files), 0);
    assert_true(files.gl_pathc >= 7);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        mixt_config *config;
        const mixt__zoo_entry *entry;
        assert_int_equal(mixt_config_new(&config), MIXT_OK);
        if (mixt_config_load(config, files.gl_pathv[i]) != MIXT_OK || mixt_config_check(config) != MIXT_OK ||
            mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry) != MIXT_OK)
            fail_msg("%s: %s", files.gl_pathv[i], mixt_error_text());
        mixt_config_free(config);
    }
    globfree(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_file_is_valid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
