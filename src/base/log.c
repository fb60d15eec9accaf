/* Log categories from MIXT_LOG; one line a record, written whole so that threads do not mix. */
#include "base/log.h"

#include "base/env.h"
#include "base/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char mixt__log_choices[] = "error|plan|dispatch|memory|data|train|all";

/** What is no category is passed over: the command refuses it, a library has nowhere to say so. */
static int parse_mask(const char *text)
{
    int mask = 0, all = mixt__choice_find(mixt__log_choices, "all");
    while (*text) {
        char word[16];
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), text);
        int position = mixt__choice_find(mixt__log_choices, word);
        if (position >= 0)
            mask |= position == all ? ~0 : 1 << position;
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
