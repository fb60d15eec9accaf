/* Describes operation graphs to cuDNN. What it says about each tensor and operation is also hashed, so that a graph is
 * known again without comparing descriptors. */
#include "backend/cuda/core/cudnn_graph.h"

#include "base/status.h"

#include <string.h>

mixt_status mixt__cudnn_check(cudnnStatus_t status, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return MIXT_OK;
    char detail[512] = "";
    cudnnGetLastErrorString(detail, sizeof detail);
    return mixt__fail(MIXT_ERROR_DEVICE, "cuDNN, %s: %s%s%s", what, cudnnGetErrorString(status), *detail ? ": " : "",
                      detail);
}

cudnnHandle_t mixt__cudnn_handle(mixt__cuda_device *gpu)
{
    cudnnHandle_t *handle = &gpu->cudnn.handles[0], made = NULL;
    if (*handle)
        return *handle;
    if (mixt__cudnn_check(cudnnCreate(&made), "opening the library") == MIXT_OK &&
        mixt__cudnn_check(cudnnSetStream(made, gpu->stream), "setting the stream") == MIXT_OK)
        *handle = made;
    return *handle;
}

cudnnDataType_t mixt__cudnn_type(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_BF16   ? CUDNN_DATA_BFLOAT16
           : dtype == MIXT_DTYPE_FP16 ? CUDNN_DATA_HALF
                                      : CUDNN_DATA_FLOAT;
}

void mixt__cudnn_begin(mixt__cudnn_graph *g, mixt__cuda_device *gpu, const char *name)
{
    memset(g, 0, sizeof *g);
    g->gpu = gpu;
    g->name = name;
    g->hash = g->kind = 1469598103934665603u;
    if (!mixt__cudnn_handle(gpu))
        g->status = MIXT_ERROR_DEVICE;
}

mixt_status mixt__cudnn_finish(mixt__cudnn_graph *g, cudnnHandle_t handle)
{
    MIXT_TRY(g->status);
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->graph);
    if (!status)
        status = cudnnBackendSetAttribute(g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    if (!status)
        status = cudnnBackendSetAttribute(g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          g->op_count, g->ops);
    if (!status)
        status = cudnnBackendFinalize(g->graph);
    return g->status = mixt__cudnn_check(status, "making a graph");
}

void mixt__cudnn_end(mixt__cudnn_graph *g)
{
    if (g->graph)
        cudnnBackendDestroyDescriptor(g->graph);
    for (int i = 0; i < g->op_count; i++)
        cudnnBackendDestroyDescriptor(g->ops[i]);
    for (int i = 0; i < g->extra_count; i++)
        cudnnBackendDestroyDescriptor(g->extras[i]);
    for (int i = 1; i <= g->tensor_count; i++)
        cudnnBackendDestroyDescriptor(g->tensors[i]);
    memset(g, 0, sizeof *g);
}

/* ---- descriptors: the first failure sticks ---- */

static void check(mixt__cudnn_graph *g, cudnnStatus_t status, const char *what)
{
    if (g->status == MIXT_OK && status != CUDNN_STATUS_SUCCESS)
        g->status = mixt__fail_context(mixt__cudnn_check(status, what), "%s", g->name);
}

static uint64_t mixed(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return hash;
}

static void mix(mixt__cudnn_graph *g, const void *data, size_t bytes)
{
    g->hash = mixed(g->hash, data, bytes);
    g->kind = mixed(g->kind, data, bytes);
}

/** A descriptor at the end of one of the graph's lists; NULL after a failure. */
static cudnnBackendDescriptor_t make(mixt__cudnn_graph *g, cudnnBackendDescriptorType_t type,
                                     cudnnBackendDescriptor_t *list, int *count, int limit)
{
    cudnnBackendDescriptor_t made = NULL;
    if (g->status == MIXT_OK && *count >= limit)
        g->status = mixt__fail(MIXT_ERROR_DEVICE, "%s: too large a graph for cuDNN", g->name);
    if (g->status == MIXT_OK)
        check(g, cudnnBackendCreateDescriptor(type, &made), "making a descriptor");
    if (g->status != MIXT_OK)
        return NULL;
    mix(g, &type, sizeof type);
    list[(*count)++] = made;
    return made;
}

static cudnnBackendDescriptor_t make_op(mixt__cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
    return make(g, type, g->ops, &g->op_count, MIXT_CUDNN_OPS);
}

static cudnnBackendDescriptor_t make_extra(mixt__cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
    return make(g, type, g->extras, &g->extra_count, MIXT_CUDNN_OPS);
}

/** Bytes of one element of an attribute that the builder sets. */
static size_t attribute_size(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
        return 8;
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    default:
        return 4; // floats and enumerations
    }
}

static void set(mixt__cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (g->status != MIXT_OK)
        return;
    mix(g, &name, sizeof name);
    mix(g, values, (size_t)count * attribute_size(type));
    check(g, cudnnBackendSetAttribute(d, name, type, count, values), "setting an attribute");
}

static void set_extra(mixt__cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                      cudnnBackendDescriptor_t extra)
{
    if (g->status == MIXT_OK)
        check(g, cudnnBackendSetAttribute(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &extra), "joining descriptors");
}

/** Nothing for tensor 0: an operand that is left out. */
static void set_tensor(mixt__cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int tensor)
{
    if (g->status != MIXT_OK || !tensor)
        return;
    mix(g, &name, sizeof name);
    mix(g, &tensor, sizeof tensor);
    set_extra(g, d, name, g->tensors[tensor]);
}

static void finish(mixt__cudnn_graph *g, cudnnBackendDescriptor_t d, const char *what)
{
    if (g->status == MIXT_OK)
        check(g, cudnnBackendFinalize(d), what);
}

/* ---- tensors ---- */

static size_t type_size(cudnnDataType_t type)
{
    return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2 : type == CUDNN_DATA_BOOLEAN ? 1 : 4;
}

static int tensor(mixt__cudnn_graph *g, const mixt__cudnn_shape *shape, bool is_virtual, bool by_value)
{
    int64_t alignment = 16, uid = g->tensor_count + 1;
    int count = g->tensor_count;
    cudnnBackendDescriptor_t d =
        make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, g->tensors + 1, &g->tensor_count, MIXT_CUDNN_TENSORS);
    set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &shape->type);
    uint64_t kind = g->kind;
    set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, shape->rank, shape->dims);
    if (shape->by_batch) {
        g->batch = shape->dims[0];
        g->kind = mixed(kind, shape->dims + 1, (size_t)(shape->rank - 1) * sizeof shape->dims[0]);
    }
    set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, shape->rank, shape->strides);
    set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    if (is_virtual)
        set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    if (by_value)
        set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    finish(g, d, "describing a tensor");
    return g->status == MIXT_OK ? count + 1 : 0;
}

int mixt__cudnn_memory(mixt__cudnn_graph *g, const mixt__cudnn_shape *shape)
{
    int t = tensor(g, shape, false, false);
    size_t last = 0;
    for (int i = 0; i < shape->rank; i++)
        last += (size_t)((shape->dims[i] - 1) * shape->strides[i]);
    g->bytes[t] = t ? (last + 1) * type_size(shape->type) : 0;
    return t;
}

int mixt__cudnn_virtual(mixt__cudnn_graph *g, const mixt__cudnn_shape *shape)
{
    return tensor(g, shape, true, false);
}

int mixt__cudnn_virtual4(mixt__cudnn_graph *g, cudnnDataType_t type, int64_t a, int64_t b, int64_t c, int64_t d)
{
    mixt__cudnn_shape shape = {.type = type, .rank = 4, .dims = {a, b, c, d}, .strides = {b * c * d, c * d, d, 1}};
    return mixt__cudnn_virtual(g, &shape);
}

int mixt__cudnn_scalar(mixt__cudnn_graph *g, float value, int rank)
{
    mixt__cudnn_shape shape = {.type = CUDNN_DATA_FLOAT, .rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = shape.strides[i] = 1;
    int t = tensor(g, &shape, false, true);
    g->by_value[t] = t != 0;
    memcpy(&g->value[t], &value, sizeof value);
    mix(g, &value, sizeof value);
    return t;
}

/* ---- operations ---- */

static void set_scale(mixt__cudnn_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, float value)
{
    set(g, d, name, CUDNN_TYPE_FLOAT, 1, &value);
}

void mixt__cudnn_convolve(mixt__cudnn_graph *g, const mixt__cudnn_conv *c)
{
    static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t conv, src, weight, dst, alpha, beta;
    } kinds[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
    };
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    int64_t spatial = c->spatial;
    cudnnBackendDescriptor_t conv = make_extra(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(g, conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(g, conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(g, conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
    set(g, conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial, c->pad_before);
    set(g, conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial, c->pad_after);
    set(g, conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial, c->stride);
    set(g, conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial, c->dilation);
    finish(g, conv, "describing a convolution");
    cudnnBackendDescriptor_t op = make_op(g, kinds[c->kind].type);
    set_extra(g, op, kinds[c->kind].conv, conv);
    set_tensor(g, op, kinds[c->kind].src, c->src);
    set_tensor(g, op, kinds[c->kind].weight, c->weight);
    set_tensor(g, op, kinds[c->kind].dst, c->dst);
    set_scale(g, op, kinds[c->kind].alpha, 1);
    set_scale(g, op, kinds[c->kind].beta, c->beta);
    finish(g, op, "describing a convolution");
}

void mixt__cudnn_matmul(mixt__cudnn_graph *g, int a, int b, int dst)
{
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t product = make_extra(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(g, product, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    finish(g, product, "describing a product");
    cudnnBackendDescriptor_t op = make_op(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_extra(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, dst);
    finish(g, op, "describing a product");
}

void mixt__cudnn_map(mixt__cudnn_graph *g, const mixt__cudnn_pointwise *p)
{
    bool gradient = p->mode >= CUDNN_POINTWISE_RELU_BWD && p->mode < CUDNN_POINTWISE_CMP_EQ;
    cudnnBackendDescriptor_t map = make_extra(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(g, map, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &p->mode);
    set(g, map, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &p->compute);
    if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
        set(g, map, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &p->axis);
    finish(g, map, "describing a pointwise operation");
    cudnnBackendDescriptor_t op = make_op(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_extra(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, map);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x);
    set_tensor(g, op, gradient ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->b);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p->t);
    set_tensor(g, op, gradient ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p->dst);
    finish(g, op, "describing a pointwise operation");
}

void mixt__cudnn_reduce(mixt__cudnn_graph *g, cudnnReduceTensorOp_t kind, int src, int dst)
{
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t reduction = make_extra(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set(g, reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(g, reduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &kind);
    finish(g, reduction, "describing a reduction");
    cudnnBackendDescriptor_t op = make_op(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_extra(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, src);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, dst);
    finish(g, op, "describing a reduction");
}

void mixt__cudnn_reshape(mixt__cudnn_graph *g, int src, int dst)
{
    cudnnBackendDescriptor_t op = make_op(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, src);
    set_tensor(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, dst);
    finish(g, op, "describing a reshape");
}
