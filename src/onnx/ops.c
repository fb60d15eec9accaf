/* The table of ops. */
#include "onnx/ops.h"

static const mixt__onnx_op ops[] = {
#define MIXT_ONNX_OP_RECORD(name, function) {#name, mixt__onnx_##function},
    MIXT_ONNX_OPS(MIXT_ONNX_OP_RECORD)
#undef MIXT_ONNX_OP_RECORD
};

mixt__onnx_make *mixt__onnx_op_find(mixt__wire_span domain, mixt__wire_span op)
{
    if (domain.bytes && !mixt__wire_is(domain, "ai.onnx") && !mixt__wire_is(domain, "com.microsoft"))
        return NULL;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (mixt__wire_is(op, ops[i].name))
            return ops[i].make;
    return NULL;
}
