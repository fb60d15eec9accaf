/* Log categories from MIXT_LOG; one line a record, written whole so that threads do not mix. */
#include "base/log.h"

#include "base/env.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int mask;
} categories[] = {
    {"error", MIXT_LOG_ERROR},
    {"plan", MIXT_LOG_PLAN},
    {"dispatch", MIXT_LOG_DISPATCH},
    {"memory", MIXT_LOG_MEMORY},
    {"data", MIXT_LOG_DATA},
    {"train", MIXT_LOG_TRAIN},
    {"all", ~0},
};

static int parse_mask(const char *text)
{
    int mask = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++)
            if (strlen(categories[i].name) == length && !strncmp(text, categories[i].name, length))
                mask |= categories[i].mask;
        text += length + (text[length] == ',');
    }
    return mask;
}

int mixt__log_mask(void)
{
    static int mask = -1; // two threads may both compute it: same value
    int known = __atomic_load_n(&mask, __ATOMIC_RELAXED);
    if (known < 0) {
        known = parse_mask(mixt__env_get(MIXT_ENV_LOG)) & 0x7fffffff;
        __atomic_store_n(&mask, known, __ATOMIC_RELAXED);
    }
    return known;
}

void mixt__log_write(const char *category, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "mixt [%s] %s\n", category, line);
}
