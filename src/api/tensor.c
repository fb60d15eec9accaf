/* Tensors behind public handles, DLPack in and out. A tensor is counted: what was handed out as DLPack holds it too,
 * and may let go of it on any thread. */
#include "api/api.h"
#include "mixt/tensor.h"

#include <string.h>

struct mixt_tensor {
    int holders; // the handle, and what was handed out
    mixt_dtype dtype;
    int rank;
    int64_t dims[MIXT_MAX_RANK], strides[MIXT_MAX_RANK]; // strides in elements
    char *data;
    mixt_dlpack_device device;
    bool read_only;
    mixt_dlpack *from; // another library's; NULL: not
    void *own;         // memory of its own; NULL: not
};

/** A tensor handed out, with room for what its consumer reads. */
typedef struct handed {
    mixt_dlpack managed;
    mixt_tensor *tensor;
} handed;

static const struct {
    mixt_dtype dtype;
    mixt_dlpack_type type;
} types[] = {
    {MIXT_DTYPE_FP32, {MIXT_DLPACK_FLOAT, 32, 1}},  {MIXT_DTYPE_FP16, {MIXT_DLPACK_FLOAT, 16, 1}},
    {MIXT_DTYPE_BF16, {MIXT_DLPACK_BFLOAT, 16, 1}}, {MIXT_DTYPE_FP64, {MIXT_DLPACK_FLOAT, 64, 1}},
    {MIXT_DTYPE_INT8, {MIXT_DLPACK_INT, 8, 1}},     {MIXT_DTYPE_UINT8, {MIXT_DLPACK_UINT, 8, 1}},
    {MIXT_DTYPE_INT32, {MIXT_DLPACK_INT, 32, 1}},   {MIXT_DTYPE_INT64, {MIXT_DLPACK_INT, 64, 1}},
    {MIXT_DTYPE_TF32, {MIXT_DLPACK_FLOAT, 32, 1}}, // stored so
};
enum { TYPES = sizeof types / sizeof types[0] };

/* ---- making and freeing ---- */

static mixt_status make(void *data, mixt_dtype dtype, int rank, const int64_t *dims, mixt_tensor **tensor)
{
    if (rank < 0 || rank > MIXT_MAX_RANK || (rank && !dims) || !mixt_dtype_size(dtype))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "a tensor of %d dimensions, %s: expected 0 to %d dimensions and a number format", rank,
                          mixt_dtype_name(dtype), MIXT_MAX_RANK);
    mixt_tensor *t = mixt__alloc(sizeof *t);
    if (!t)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a tensor");
    *t = (mixt_tensor){.holders = 1, .dtype = dtype, .rank = rank, .data = data, .device = {MIXT_DLPACK_CPU, 0}};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        t->dims[i] = dims[i];
        t->strides[i] = stride;
        if (dims[i] < 0 || __builtin_mul_overflow(stride, dims[i] > 0 ? dims[i] : 1, &stride)) {
            mixt__free(t);
            return mixt__fail(MIXT_ERROR_SHAPE, "a tensor whose dimension %d is %lld", i, (long long)dims[i]);
        }
    }
    *tensor = t;
    return MIXT_OK;
}

/** One in memory of its own. */
static mixt_status make_own(mixt_dtype dtype, int rank, const int64_t *dims, mixt_tensor **tensor)
{
    MIXT_TRY(make(NULL, dtype, rank, dims, tensor));
    mixt_tensor *t = *tensor;
    t->own = mixt__alloc((size_t)mixt_tensor_elements(t) * mixt_dtype_size(dtype) + 1);
    t->data = t->own;
    if (t->own)
        return MIXT_OK;
    mixt_tensor_free(t);
    *tensor = NULL;
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a tensor");
}

mixt_status mixt_tensor_over(void *data, mixt_dtype dtype, int rank, const int64_t *dims, mixt_tensor **tensor)
{
    MIXT_TRY(mixt__need(tensor));
    *tensor = NULL;
    MIXT_TRY(mixt__need(data));
    return make(data, dtype, rank, dims, tensor);
}

void mixt_tensor_free(mixt_tensor *t)
{
    if (!t || __atomic_sub_fetch(&t->holders, 1, __ATOMIC_ACQ_REL))
        return;
    if (t->from && t->from->deleter)
        t->from->deleter(t->from);
    mixt__free(t->own);
    mixt__free(t);
}

/* ---- DLPack ---- */

static mixt_dtype dtype_of(const mixt_dlpack_type *type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].type.code == type->code && types[i].type.bits == type->bits && type->lanes == 1)
            return types[i].dtype;
    return MIXT_DTYPE_NONE;
}

mixt_status mixt_tensor_from_dlpack(mixt_dlpack *managed, mixt_tensor **tensor)
{
    MIXT_TRY(mixt__need(tensor));
    *tensor = NULL;
    MIXT_TRY(mixt__need(managed));
    if (managed->version_major != MIXT_DLPACK_MAJOR)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "DLPack of version %u: expected %d", managed->version_major,
                          MIXT_DLPACK_MAJOR);
    const mixt_dlpack_tensor *d = &managed->dl_tensor;
    mixt_dtype dtype = dtype_of(&d->dtype);
    if (!dtype)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "DLPack numbers of kind %d, %d bits, %d lanes: mixt has no such format", d->dtype.code,
                          d->dtype.bits, d->dtype.lanes);
    if (d->device.device_type < MIXT_DLPACK_CPU || d->device.device_type > MIXT_DLPACK_CUDA_HOST)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "DLPack device of kind %d: expected host or CUDA memory",
                          (int)d->device.device_type);
    MIXT_TRY(make((char *)d->data + d->byte_offset, dtype, d->ndim, d->shape, tensor));
    mixt_tensor *t = *tensor;
    t->device = d->device;
    t->read_only = managed->flags & MIXT_DLPACK_READ_ONLY;
    t->from = managed;
    for (int i = 0; d->strides && i < t->rank; i++)
        t->strides[i] = d->strides[i];
    return MIXT_OK;
}

static void let_go(mixt_dlpack *managed)
{
    handed *h = managed->manager_ctx;
    mixt_tensor_free(h->tensor);
    mixt__free(h);
}

mixt_status mixt_tensor_to_dlpack(mixt_tensor *t, mixt_dlpack **managed)
{
    MIXT_TRY(mixt__need(managed));
    *managed = NULL;
    MIXT_TRY(mixt__need(t));
    int i = 0;
    while (i < TYPES && types[i].dtype != t->dtype)
        i++;
    if (i == TYPES)
        return mixt__fail(MIXT_ERROR_DTYPE, "a tensor of %s: DLPack has no such format", mixt_dtype_name(t->dtype));
    handed *h = mixt__alloc(sizeof *h);
    if (!h)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to export a tensor");
    __atomic_add_fetch(&t->holders, 1, __ATOMIC_ACQ_REL);
    h->tensor = t;
    h->managed = (mixt_dlpack){
        .version_major = MIXT_DLPACK_MAJOR, .version_minor = MIXT_DLPACK_MINOR, .manager_ctx = h, .deleter = let_go};
    h->managed.flags = t->read_only ? MIXT_DLPACK_READ_ONLY : 0;
    h->managed.dl_tensor = (mixt_dlpack_tensor){.data = t->data,
                                                .device = t->device,
                                                .ndim = t->rank,
                                                .dtype = types[i].type,
                                                .shape = t->dims,
                                                .strides = t->strides};
    *managed = &h->managed;
    return MIXT_OK;
}

/* ---- what it is ---- */

void *mixt_tensor_data(const mixt_tensor *t)
{
    return t ? t->data : NULL;
}

mixt_dtype mixt_tensor_dtype(const mixt_tensor *t)
{
    return t ? t->dtype : MIXT_DTYPE_NONE;
}

int mixt_tensor_rank(const mixt_tensor *t)
{
    return t ? t->rank : 0;
}

int64_t mixt_tensor_dim(const mixt_tensor *t, int axis)
{
    return t && axis >= 0 && axis < t->rank ? t->dims[axis] : 0;
}

int64_t mixt_tensor_stride(const mixt_tensor *t, int axis)
{
    return t && axis >= 0 && axis < t->rank ? t->strides[axis] : 0;
}

int64_t mixt_tensor_elements(const mixt_tensor *t)
{
    int64_t count = t ? 1 : 0;
    for (int i = 0; t && i < t->rank; i++)
        count *= t->dims[i];
    return count;
}

const char *mixt_tensor_device(const mixt_tensor *t)
{
    return t && t->device.device_type == MIXT_DLPACK_CUDA ? "cuda" : "cpu";
}

bool mixt_tensor_read_only(const mixt_tensor *t)
{
    return t && t->read_only;
}

/* ---- of trainers and data ---- */

/** Refuses what the host cannot read from front to back. */
static mixt_status need_rows(const char *what, const mixt_tensor *t)
{
    int64_t stride = 1;
    if (!t)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s must not be NULL", what);
    bool rows = t->rank > 0 && t->device.device_type != MIXT_DLPACK_CUDA;
    for (int i = t->rank - 1; rows && i >= 0; i--) {
        rows = t->dims[i] == 1 || t->strides[i] == stride;
        stride *= t->dims[i];
    }
    return rows ? MIXT_OK : mixt__fail(MIXT_ERROR_ARGUMENT, "%s: expected a contiguous tensor in host memory", what);
}

static mixt_status tensor_of(mixt_trainer *t, int64_t index, bool gradient, mixt_tensor **tensor)
{
    mixt_param_info info;
    MIXT_TRY(mixt_trainer_param(t, index, &info));
    if (!mixt__trainer_has_weights(t->inner))
        return mixt__fail(MIXT_ERROR_STATE, "parameters have no values before the first step");
    if (gradient)
        MIXT_TRY(mixt__trainer_need_gradients(t->inner));
    const mixt__params *params = mixt__trainer_params(t->inner);
    void *place = NULL;
    mixt_dtype format;
    MIXT_TRY(mixt__params_place(params, (int32_t)index, gradient, &place, &format));
    MIXT_TRY(make(place, format, info.rank, info.dims, tensor));
    (*tensor)->read_only = !gradient;
    if (!strcmp(params->device->backend->name, "cuda")) {
        (*tensor)->device.device_type = MIXT_DLPACK_CUDA;
        (*tensor)->device.device_id = params->device->number;
    }
    return mixt__device_synchronize(params->device); // who reads it has streams of its own
}

mixt_status mixt_trainer_param_tensor(mixt_trainer *t, int64_t index, mixt_tensor **tensor)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, tensor));
    *tensor = NULL;
    return mixt__context_note(t->context, tensor_of(t, index, false, tensor));
}

mixt_status mixt_trainer_grad_tensor(mixt_trainer *t, int64_t index, mixt_tensor **tensor)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, tensor));
    *tensor = NULL;
    return mixt__context_note(t->context, tensor_of(t, index, true, tensor));
}

static mixt_status predict(mixt_trainer *t, const mixt_tensor *input, mixt_tensor **output)
{
    int64_t outputs;
    MIXT_TRY(need_rows("input", input));
    MIXT_TRY(mixt_trainer_outputs(t, &outputs));
    MIXT_TRY(make_own(MIXT_DTYPE_FP32, 2, (int64_t[]){input->dims[0], outputs}, output));
    mixt_status status = mixt_trainer_predict(t, input->data, input->dims[0], (float *)(*output)->own);
    if (status != MIXT_OK) {
        mixt_tensor_free(*output);
        *output = NULL;
    }
    return status;
}

mixt_status mixt_trainer_predict_tensor(mixt_trainer *t, const mixt_tensor *input, mixt_tensor **output)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, output));
    *output = NULL;
    return mixt__context_note(t->context, predict(t, input, output));
}

mixt_status mixt_data_from_tensors(const mixt_tensor *input, const mixt_tensor *target,
                                   const mixt_data_options *options, mixt_data **data)
{
    MIXT_TRY(mixt__need(data));
    *data = NULL;
    MIXT_TRY(need_rows("input", input));
    MIXT_TRY(need_rows("target", target));
    if (input->dims[0] != target->dims[0] || target->rank > 2)
        return mixt__fail(
            MIXT_ERROR_SHAPE,
            "%lld samples and %lld targets of %d dimensions: expected equal numbers, and targets of 1 or 2 dimensions",
            (long long)input->dims[0], (long long)target->dims[0], target->rank);
    bool classes = target->dtype == MIXT_DTYPE_INT32 && target->rank == 1;
    if ((input->dtype != MIXT_DTYPE_FP32 && input->dtype != MIXT_DTYPE_INT32) ||
        (!classes && target->dtype != MIXT_DTYPE_FP32))
        return mixt__fail(MIXT_ERROR_DTYPE, "input %s, target %s: fp32 or int32, with fp32 or one int32 per sample",
                          mixt_dtype_name(input->dtype), mixt_dtype_name(target->dtype));
    mixt_data_arrays arrays =
        MIXT_OPTIONS(mixt_data_arrays, .samples = input->dims[0], .input_rank = input->rank - 1, .inputs = input->data,
                     .input_dtype = input->dtype, .targets = target->data, .borrow = true);
    memcpy(arrays.input_dims, input->dims + 1, (size_t)arrays.input_rank * sizeof *input->dims);
    arrays.target = classes ? MIXT_TARGET_CLASS : MIXT_TARGET_VALUES;
    arrays.target_elements = !classes && target->rank == 2 ? target->dims[1] : 1;
    return mixt_data_from(&arrays, options, data);
}

mixt_status mixt_data_batch_tensors(const mixt_data *data, int64_t batch, int64_t number, mixt_tensor **input,
                                    mixt_tensor **target)
{
    MIXT_TRY(mixt__need(input));
    MIXT_TRY(mixt__need(target));
    *input = *target = NULL;
    const mixt_data_info *info = mixt_data_describe(data);
    if (info->array_count != 2 || batch < 1)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: batches of %lld, %d arrays: expected one input, one target and at least one sample",
                          info->path, (long long)batch, info->array_count);
    mixt_tensor **results[2] = {input, target};
    mixt_status status = MIXT_OK;
    for (int i = 0; i < 2 && status == MIXT_OK; i++) {
        const mixt_data_array *a = &info->arrays[i];
        int64_t dims[MIXT_MAX_RANK + 1] = {batch};
        memcpy(dims + 1, a->dims, (size_t)a->rank * sizeof *dims);
        status = make_own(a->dtype, a->rank + 1, dims, results[i]);
    }
    if (status == MIXT_OK)
        status = mixt_data_batch(data, batch, number, (*input)->own, (*target)->own);
    if (status != MIXT_OK) {
        mixt_tensor_free(*input);
        mixt_tensor_free(*target);
        *input = *target = NULL;
    }
    return status;
}
