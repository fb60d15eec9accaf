/* The op records by name, for rules that emit each other's nodes and for backends that list candidates. */
#ifndef MIXT_OPS_OPS_H
#define MIXT_OPS_OPS_H

#include "graph/op.h"

#define MIXT_OP(name) extern const mixt__op mixt__op_##name;
#include "ops/ops.def"
#undef MIXT_OP

#endif
