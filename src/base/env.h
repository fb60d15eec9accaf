/* Environment variables, declared once in env.def: the same table gives the values, `mixt help env` and the man page.
 */
#ifndef MIXT_BASE_ENV_H
#define MIXT_BASE_ENV_H

#include "mixt/program.h"

typedef enum mixt__env {
#define MIXT_ENV(name, fallback, help) MIXT_ENV_##name,
#include "base/env.def"
#undef MIXT_ENV
    MIXT_ENV_COUNT
} mixt__env;

extern const mixt_env_info mixt__env_table[MIXT_ENV_COUNT];

/** The variable's value, or its default; never NULL. */
const char *mixt__env_get(mixt__env variable);
/** Whether a variable that is 0 or 1 is 1; refused where it is neither. Empty is its default, 1. */
mixt_status mixt__env_on(mixt__env variable, bool *on);

#endif
