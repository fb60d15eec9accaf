/* The environment table. */
#include "base/env.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

const mixt_env_info mixt__env_table[MIXT_ENV_COUNT] = {
#define MIXT_ENV(name, fallback, help) {"MIXT_" #name, fallback, help},
#include "base/env.def"
#undef MIXT_ENV
};

const char *mixt__env_get(mixt__env variable)
{
    const char *value = getenv(mixt__env_table[variable].name);
    return value ? value : mixt__env_table[variable].fallback;
}

mixt_status mixt__env_on(mixt__env variable, bool *on)
{
    const char *text = mixt__env_get(variable);
    *on = strcmp(text, "0") != 0;
    if (!*on || !*text || !strcmp(text, "1"))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: '%s' is neither 0 nor 1", mixt__env_table[variable].name, text);
}
