/* The list of oracles: one for each op of ops.def, so that an op without one does not link. */
#include "oracle/oracle.h"

#include <string.h>

#define MIXT_OP(name) extern const oracle oracle_##name;
#include "ops/ops.def"
#undef MIXT_OP

const oracle *const oracle_list[] = {
#define MIXT_OP(name) &oracle_##name,
#include "ops/ops.def"
#undef MIXT_OP
    NULL,
};

const oracle *oracle_find(const char *op)
{
    for (int i = 0; oracle_list[i]; i++)
        if (!strcmp(oracle_list[i]->op, op))
            return oracle_list[i];
    return NULL;
}
