/* Configurations of tests, from settings in one text. Include cmocka first. */
#ifndef MIXT_TESTS_SETTINGS_H
#define MIXT_TESTS_SETTINGS_H

#include "mixt/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static inline void settings_add(mixt_config *config, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Settings, separated by spaces. */
static inline void settings_add(mixt_config *config, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        if (mixt_config_set(config, word, "test") != MIXT_OK)
            fail_msg("%s: %s", word, mixt_error_text());
}

/** One without any, for mixt_config_free. */
static inline mixt_config *settings_new(void)
{
    mixt_config *config;
    if (mixt_config_new(&config) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return config;
}

#endif
