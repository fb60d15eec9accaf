/* The environment table. */
#include "base/env.h"

#include <stdlib.h>

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
