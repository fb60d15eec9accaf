/* The list of records and look-up by name. */
#include "ops/ops.h"

#include <string.h>

const mixt__op *const mixt__op_list[] = {
#define MIXT_OP(name) &mixt__op_##name,
#include "ops/ops.def"
#undef MIXT_OP
    NULL,
};

const mixt__op *mixt__op_find(const char *name)
{
    for (int i = 0; mixt__op_list[i]; i++)
        if (!strcmp(mixt__op_list[i]->name, name))
            return mixt__op_list[i];
    return NULL;
}
