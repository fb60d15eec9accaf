/* The ops of ONNX that are made, one line each: MIXT_ONNX_OP(name in ONNX, function). */
#ifndef MIXT_ONNX_OPS_H
#define MIXT_ONNX_OPS_H

#include "onnx/import.h"

#define MIXT_ONNX_OPS(X)                                                                                               \
    X(Identity, identity)                                                                                              \
    X(Cast, cast)                                                                                                      \
    X(CastLike, identity)                                                                                              \
    X(Shape, shape)                                                                                                    \
    X(Size, size)                                                                                                      \
    X(Constant, constant)                                                                                              \
    X(Reshape, reshape)                                                                                                \
    X(Flatten, flatten)                                                                                                \
    X(Squeeze, squeeze)                                                                                                \
    X(Unsqueeze, squeeze)                                                                                              \
    X(Transpose, transpose)                                                                                            \
    X(Expand, expand)                                                                                                  \
    X(Slice, slice)                                                                                                    \
    X(Split, split)                                                                                                    \
    X(Concat, concat)                                                                                                  \
    X(Gather, gather)                                                                                                  \
    X(Add, binary)                                                                                                     \
    X(Sub, binary)                                                                                                     \
    X(Mul, binary)                                                                                                     \
    X(Div, binary)                                                                                                     \
    X(Max, many)                                                                                                       \
    X(Min, many)                                                                                                       \
    X(Sum, many)                                                                                                       \
    X(Mean, many)                                                                                                      \
    X(Pow, pow)                                                                                                        \
    X(Where, where)                                                                                                    \
    X(Neg, unary)                                                                                                      \
    X(Relu, unary)                                                                                                     \
    X(Sigmoid, unary)                                                                                                  \
    X(Tanh, unary)                                                                                                     \
    X(Exp, unary)                                                                                                      \
    X(Log, unary)                                                                                                      \
    X(Sqrt, unary)                                                                                                     \
    X(Abs, unary)                                                                                                      \
    X(Reciprocal, unary)                                                                                               \
    X(Softplus, unary)                                                                                                 \
    X(Softsign, unary)                                                                                                 \
    X(Mish, unary)                                                                                                     \
    X(Gelu, gelu)                                                                                                      \
    X(HardSigmoid, hard_sigmoid)                                                                                       \
    X(HardSwish, hard_swish)                                                                                           \
    X(LeakyRelu, leaky)                                                                                                \
    X(PRelu, prelu)                                                                                                    \
    X(Elu, elu)                                                                                                        \
    X(Selu, elu)                                                                                                       \
    X(Celu, elu)                                                                                                       \
    X(Clip, clip)                                                                                                      \
    X(Erf, unary)                                                                                                      \
    X(Dropout, dropout)                                                                                                \
    X(Softmax, softmax)                                                                                                \
    X(LogSoftmax, softmax)                                                                                             \
    X(ReduceMean, reduce)                                                                                              \
    X(ReduceSum, reduce)                                                                                               \
    X(ReduceL2, reduce)                                                                                                \
    X(ReduceSumSquare, reduce)                                                                                         \
    X(ReduceLogSumExp, reduce)                                                                                         \
    X(MatMul, matmul)                                                                                                  \
    X(Gemm, gemm)                                                                                                      \
    X(ConvTranspose, conv_transpose)                                                                                   \
    X(Conv, conv)                                                                                                      \
    X(MaxPool, pool)                                                                                                   \
    X(AveragePool, pool)                                                                                               \
    X(GlobalAveragePool, global_pool)                                                                                  \
    X(BatchNormalization, batch_norm)                                                                                  \
    X(LayerNormalization, layer_norm)                                                                                  \
    X(RMSNormalization, layer_norm)                                                                                    \
    X(SimplifiedLayerNormalization, layer_norm)                                                                        \
    X(Floor, unary)                                                                                                    \
    X(Ceil, unary)                                                                                                     \
    X(Round, unary)                                                                                                    \
    X(Sin, unary)                                                                                                      \
    X(Cos, unary)                                                                                                      \
    X(Not, unary)                                                                                                      \
    X(Equal, compare)                                                                                                  \
    X(Less, compare)                                                                                                   \
    X(Greater, compare)                                                                                                \
    X(LessOrEqual, compare)                                                                                            \
    X(GreaterOrEqual, compare)                                                                                         \
    X(And, compare)                                                                                                    \
    X(Or, compare)                                                                                                     \
    X(ReduceMax, reduce)                                                                                               \
    X(ReduceMin, reduce)                                                                                               \
    X(GlobalMaxPool, global_pool)                                                                                      \
    X(ArgMax, argmax)                                                                                                  \
    X(CumSum, cumsum)                                                                                                  \
    X(Trilu, trilu)                                                                                                    \
    X(Tile, tile)                                                                                                      \
    X(DepthToSpace, blocks)                                                                                            \
    X(SpaceToDepth, blocks)                                                                                            \
    X(InstanceNormalization, group_norm)                                                                               \
    X(GroupNormalization, group_norm)                                                                                  \
    X(Einsum, einsum)                                                                                                  \
    X(LSTM, recurrent)                                                                                                 \
    X(GRU, recurrent)                                                                                                  \
    X(RNN, recurrent)

#define MIXT_ONNX_OP_DECLARE(name, function) mixt__onnx_make mixt__onnx_##function;
MIXT_ONNX_OPS(MIXT_ONNX_OP_DECLARE)
#undef MIXT_ONNX_OP_DECLARE

/** The activation x · sigmoid(x) where a Sigmoid is only used so. @return whether it was made */
bool mixt__onnx_take_silu(mixt__import *m, const mixt__onnx_node *n, mixt_status *status);
/** Gelu from its parts, Div, Erf, Add, Mul, Mul, beginning with this node. @return whether it was made */
bool mixt__onnx_take_gelu(mixt__import *m, const mixt__onnx_node *n, mixt_status *status);
/** Layer norm from its parts, ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add, beginning with this node. */
bool mixt__onnx_take_layer_norm(mixt__import *m, const mixt__onnx_node *n, mixt_status *status);
/** The outputs of the layer that a node makes, where it is the new last one; else `outputs`. */
int64_t mixt__onnx_head(const mixt__import *m, const mixt__onnx_node *n, int64_t outputs);
/** A weight or bias, or where the node is the new last layer one of its own: dimension `axis` of the item's is the
 * outputs. */
mixt_status mixt__onnx_weight(mixt__import *m, const mixt__onnx_node *n, mixt__item *item, const int *order, int axis,
                              bool decay, mixt_value *value);

#endif
