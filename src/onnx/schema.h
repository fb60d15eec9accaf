/* The part of ONNX's schema that is read and written: numbers of fields and of element types, as onnx.proto has them.
 */
#ifndef MIXT_ONNX_SCHEMA_H
#define MIXT_ONNX_SCHEMA_H

enum {
    MIXT_ONNX_MODEL_IR_VERSION = 1,
    MIXT_ONNX_MODEL_PRODUCER = 2,
    MIXT_ONNX_MODEL_PRODUCER_VERSION = 3,
    MIXT_ONNX_MODEL_GRAPH = 7,
    MIXT_ONNX_MODEL_OPSET = 8,
    MIXT_ONNX_MODEL_METADATA = 14,
    MIXT_ONNX_MODEL_FUNCTIONS = 25,
};

enum { MIXT_ONNX_OPSET_DOMAIN = 1, MIXT_ONNX_OPSET_VERSION = 2 };

enum { MIXT_ONNX_PAIR_KEY = 1, MIXT_ONNX_PAIR_VALUE = 2 }; // of metadata and of external data

enum {
    MIXT_ONNX_GRAPH_NODE = 1,
    MIXT_ONNX_GRAPH_NAME = 2,
    MIXT_ONNX_GRAPH_INITIALIZER = 5,
    MIXT_ONNX_GRAPH_INPUT = 11,
    MIXT_ONNX_GRAPH_OUTPUT = 12,
    MIXT_ONNX_GRAPH_VALUE_INFO = 13,
    MIXT_ONNX_GRAPH_SPARSE_INITIALIZER = 15,
};

enum {
    MIXT_ONNX_NODE_INPUT = 1,
    MIXT_ONNX_NODE_OUTPUT = 2,
    MIXT_ONNX_NODE_NAME = 3,
    MIXT_ONNX_NODE_OP_TYPE = 4,
    MIXT_ONNX_NODE_ATTRIBUTE = 5,
    MIXT_ONNX_NODE_DOMAIN = 7,
};

enum {
    MIXT_ONNX_ATTRIBUTE_NAME = 1,
    MIXT_ONNX_ATTRIBUTE_F = 2,
    MIXT_ONNX_ATTRIBUTE_I = 3,
    MIXT_ONNX_ATTRIBUTE_S = 4,
    MIXT_ONNX_ATTRIBUTE_T = 5,
    MIXT_ONNX_ATTRIBUTE_G = 6,
    MIXT_ONNX_ATTRIBUTE_FLOATS = 7,
    MIXT_ONNX_ATTRIBUTE_INTS = 8,
    MIXT_ONNX_ATTRIBUTE_STRINGS = 9,
    MIXT_ONNX_ATTRIBUTE_TYPE = 20,
};

/** Values of ATTRIBUTE_TYPE. */
enum {
    MIXT_ONNX_IS_FLOAT = 1,
    MIXT_ONNX_IS_INT = 2,
    MIXT_ONNX_IS_STRING = 3,
    MIXT_ONNX_IS_TENSOR = 4,
    MIXT_ONNX_IS_GRAPH = 5,
    MIXT_ONNX_IS_FLOATS = 6,
    MIXT_ONNX_IS_INTS = 7,
    MIXT_ONNX_IS_STRINGS = 8,
};

enum { MIXT_ONNX_VALUE_NAME = 1, MIXT_ONNX_VALUE_TYPE = 2 };
enum { MIXT_ONNX_TYPE_TENSOR = 1 };
enum { MIXT_ONNX_TYPE_ELEMENT = 1, MIXT_ONNX_TYPE_SHAPE = 2 };
enum { MIXT_ONNX_SHAPE_DIM = 1 };
enum { MIXT_ONNX_DIM_VALUE = 1, MIXT_ONNX_DIM_PARAM = 2 };

enum {
    MIXT_ONNX_TENSOR_DIMS = 1,
    MIXT_ONNX_TENSOR_DATA_TYPE = 2,
    MIXT_ONNX_TENSOR_SEGMENT = 3,
    MIXT_ONNX_TENSOR_FLOATS = 4,
    MIXT_ONNX_TENSOR_INT32S = 5,
    MIXT_ONNX_TENSOR_STRINGS = 6,
    MIXT_ONNX_TENSOR_INT64S = 7,
    MIXT_ONNX_TENSOR_NAME = 8,
    MIXT_ONNX_TENSOR_RAW = 9,
    MIXT_ONNX_TENSOR_DOUBLES = 10,
    MIXT_ONNX_TENSOR_UINT64S = 11,
    MIXT_ONNX_TENSOR_EXTERNAL = 13,
    MIXT_ONNX_TENSOR_LOCATION = 14,
};

/** Types of elements. X(NAME, number, name, bits of one) */
#define MIXT_ONNX_TYPES(X)                                                                                             \
    X(FLOAT, 1, "float", 32)                                                                                           \
    X(UINT8, 2, "uint8", 8)                                                                                            \
    X(INT8, 3, "int8", 8)                                                                                              \
    X(UINT16, 4, "uint16", 16)                                                                                         \
    X(INT16, 5, "int16", 16)                                                                                           \
    X(INT32, 6, "int32", 32)                                                                                           \
    X(INT64, 7, "int64", 64)                                                                                           \
    X(STRING, 8, "string", 0)                                                                                          \
    X(BOOL, 9, "bool", 8)                                                                                              \
    X(FLOAT16, 10, "float16", 16)                                                                                      \
    X(DOUBLE, 11, "double", 64)                                                                                        \
    X(UINT32, 12, "uint32", 32)                                                                                        \
    X(UINT64, 13, "uint64", 64)                                                                                        \
    X(COMPLEX64, 14, "complex64", 0)                                                                                   \
    X(COMPLEX128, 15, "complex128", 0)                                                                                 \
    X(BFLOAT16, 16, "bfloat16", 16)                                                                                    \
    X(FLOAT8E4M3FN, 17, "float8e4m3fn", 8)                                                                             \
    X(FLOAT8E4M3FNUZ, 18, "float8e4m3fnuz", 8)                                                                         \
    X(FLOAT8E5M2, 19, "float8e5m2", 8)                                                                                 \
    X(FLOAT8E5M2FNUZ, 20, "float8e5m2fnuz", 8)                                                                         \
    X(UINT4, 21, "uint4", 4)                                                                                           \
    X(INT4, 22, "int4", 4)                                                                                             \
    X(FLOAT4E2M1, 23, "float4e2m1", 4)

typedef enum mixt__onnx_type {
    MIXT_ONNX_UNDEFINED = 0,
#define MIXT_ONNX_TYPE_ENUM(name, number, text, bits) MIXT_ONNX_##name = number,
    MIXT_ONNX_TYPES(MIXT_ONNX_TYPE_ENUM)
#undef MIXT_ONNX_TYPE_ENUM
        MIXT_ONNX_TYPE_COUNT
} mixt__onnx_type;

#endif
