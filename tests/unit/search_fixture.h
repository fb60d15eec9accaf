/* What tests of searches share: configurations, and searches that take a moment. */
#ifndef MIXT_TESTS_SEARCH_FIXTURE_H
#define MIXT_TESTS_SEARCH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"
#include "choose/search.h"
#include "train/trainer_inside.h"
#include "../support/temp_folder.h"

#include <mixt/mixt.h>

#include <math.h>
#include <string.h>
#include <sys/stat.h>

static inline mixt_config *config_of(const char *yaml)
{
    mixt_config *config;
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    assert_int_equal(mixt_config_parse(config, yaml, "test"), MIXT_OK);
    return config;
}

static inline void set(mixt_config *config, const char *format, const char *value)
{
    char setting[600];
    snprintf(setting, sizeof setting, format, value);
    assert_int_equal(mixt_config_set(config, setting, "test"), MIXT_OK);
}

static inline void must(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

/* ---- small searches ---- */

static const char small_yaml[] = "model: mlp\nthreads: 1\ndevice: cpu\nnet: {hidden: [16, 16]}\n"
                                 "data: {kind: digits, limit: 128}\ntrain: {batch: 64, epochs: 1}\n";

static const char wide_yaml[] = "model: convnet\nthreads: 1\ndevice: cpu\nnet: {channels: [4]}\n"
                                "data: {kind: digits, limit: 128}\ntrain: {batch: 16, epochs: 1}\n";

static inline mixt_search_options small_options(const char *file)
{
    mixt_search_options o =
        MIXT_OPTIONS(mixt_search_options, .lose = 0.5, .goal = MIXT_SEARCH_MEMORY, .steps = 1, .trials = 2);
    o.write = temp_path(file);
    return o;
}

static inline void search_small(const mixt_search_options *o, const char *yaml)
{
    mixt_config *config = config_of(yaml);
    mixt_search_result *found;
    must(mixt_search_with(config, o, &found));
    mixt_search_free(found);
    mixt_config_free(config);
}

static inline void refused(const mixt_search_options *o, const char *yaml, mixt_status status, const char *word)
{
    mixt_config *config = config_of(yaml);
    mixt_search_result *found;
    assert_int_equal(mixt_search_with(config, o, &found), status);
    assert_null(found);
    if (!strstr(mixt_error_text(), word))
        fail_msg("'%s' has no '%s'", mixt_error_text(), word);
    mixt_config_free(config);
}

#endif
