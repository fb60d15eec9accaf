/* How do numbers get in and out without a copy? Tensors: a place in memory, a format, a shape. They are given to other
 * libraries and taken from them as DLPack has it, which NumPy, PyTorch, JAX and CuPy speak.
 *
 *   mixt_tensor *weight;
 *   mixt_dlpack *managed;
 *   mixt_trainer_param_tensor(trainer, 0, &weight); // the trainer's own memory, not a copy
 *   mixt_tensor_to_dlpack(weight, &managed);        // for another library, which calls managed->deleter in the end
 *   mixt_tensor_free(weight);
 *
 * Whoever gets a tensor frees it, at any time and on any thread; what it shows lives as long as its owner: a parameter
 * until the trainer is compiled again or its context is closed. What is taken in lives until the tensor is freed.
 */
#ifndef MIXT_TENSOR_H
#define MIXT_TENSOR_H

#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- DLPack, version 1: the same bytes as <dlpack/dlpack.h> has, under names of its own ---- */

enum {
    MIXT_DLPACK_MAJOR = 1,
    MIXT_DLPACK_MINOR = 0,
    MIXT_DLPACK_CPU = 1,       /**< kinds of device */
    MIXT_DLPACK_CUDA = 2,      /**< memory of a GPU */
    MIXT_DLPACK_CUDA_HOST = 3, /**< of the host, which a GPU reads too */
    MIXT_DLPACK_INT = 0,       /**< kinds of number */
    MIXT_DLPACK_UINT = 1,
    MIXT_DLPACK_FLOAT = 2,
    MIXT_DLPACK_BFLOAT = 4,
    MIXT_DLPACK_READ_ONLY = 1, /**< flags */
    MIXT_DLPACK_COPIED = 2,
};

typedef struct mixt_dlpack_device {
    int32_t device_type;
    int32_t device_id;
} mixt_dlpack_device;

typedef struct mixt_dlpack_type {
    uint8_t code, bits;
    uint16_t lanes; /**< 1 */
} mixt_dlpack_type;

typedef struct mixt_dlpack_tensor {
    void *data;
    mixt_dlpack_device device;
    int32_t ndim;
    mixt_dlpack_type dtype;
    int64_t *shape;
    int64_t *strides; /**< in elements; NULL: row after row */
    uint64_t byte_offset;
} mixt_dlpack_tensor;

/** DLManagedTensorVersioned. */
typedef struct mixt_dlpack {
    uint32_t version_major, version_minor;
    void *manager_ctx;
    void (*deleter)(struct mixt_dlpack *self); /**< called once, by who has it last; may be NULL */
    uint64_t flags;
    mixt_dlpack_tensor dl_tensor;
} mixt_dlpack;

/* ---- tensors ---- */

typedef struct mixt_tensor mixt_tensor;

/** A tensor over memory of the host that stays the caller's, row after row.
 *  @param dims of `rank` dimensions, 0 to MIXT_MAX_RANK. @param tensor set to NULL on failure */
MIXT_API mixt_status mixt_tensor_over(void *data, mixt_dtype dtype, int rank, const int64_t *dims,
                                      mixt_tensor **tensor);
/** Takes a tensor of another library. On success the tensor owns `managed` and calls its deleter when it is freed; on
 *  failure `managed` stays the caller's.
 *  @return MIXT_ERROR_UNSUPPORTED for a version, device or format that mixt does not have */
MIXT_API mixt_status mixt_tensor_from_dlpack(mixt_dlpack *managed, mixt_tensor **tensor);
/** The same memory for another library, to be ended by its deleter; the tensor may be freed before.
 *  @return MIXT_ERROR_DTYPE for a format that DLPack has no name for */
MIXT_API mixt_status mixt_tensor_to_dlpack(mixt_tensor *tensor, mixt_dlpack **managed);
/** NULL is allowed. */
MIXT_API void mixt_tensor_free(mixt_tensor *tensor);

/** The first element: of the host, or of the GPU's memory (mixt_tensor_device). */
MIXT_API void *mixt_tensor_data(const mixt_tensor *tensor);
MIXT_API mixt_dtype mixt_tensor_dtype(const mixt_tensor *tensor);
MIXT_API int mixt_tensor_rank(const mixt_tensor *tensor);
/** Size of a dimension, and elements from one place of it to the next; 0 where there is no such dimension. */
MIXT_API int64_t mixt_tensor_dim(const mixt_tensor *tensor, int axis);
MIXT_API int64_t mixt_tensor_stride(const mixt_tensor *tensor, int axis);
/** Product of the dims. */
MIXT_API int64_t mixt_tensor_elements(const mixt_tensor *tensor);
/** "cpu" or "cuda". */
MIXT_API const char *mixt_tensor_device(const mixt_tensor *tensor);
/** Whether nobody may write there. */
MIXT_API bool mixt_tensor_read_only(const mixt_tensor *tensor);

/* ---- of a trainer ---- */

/** A parameter where it lies: reading it sees each update. In FP32, but for one that is frozen and kept in a lower
 *  format alone: that is given in its own (mixt_tensor_dtype), and refused where the format needs scales. Read only:
 *  mixt_trainer_param_set writes, since copies in lower formats go with it. Fails where ranks have shared the parameter
 *  out.
 *  @param index from 0, as of mixt_trainer_param */
MIXT_API mixt_status mixt_trainer_param_tensor(mixt_trainer *trainer, int64_t index, mixt_tensor **tensor);
/** Its gradient, while gradients made by hand wait: may be written, before they are applied. */
MIXT_API mixt_status mixt_trainer_grad_tensor(mixt_trainer *trainer, int64_t index, mixt_tensor **tensor);
/** mixt_trainer_predict on a tensor of samples in host memory, row after row.
 *  @param output set to FP32 (samples, outputs), in memory of its own */
MIXT_API mixt_status mixt_trainer_predict_tensor(mixt_trainer *trainer, const mixt_tensor *input, mixt_tensor **output);

/* ---- of a data set ---- */

/** A data set over two tensors in host memory, row after row, the samples in front: read where they are, so that they
 *  must outlive the set. Targets are INT32 classes (N), or FP32 values (N) or (N, values).
 *  @param options as of mixt_data_from */
MIXT_API mixt_status mixt_data_from_tensors(const mixt_tensor *input, const mixt_tensor *target,
                                            const mixt_data_options *options, mixt_data **data);
/** mixt_data_batch in memory of its own, of a set with one input and one target. */
MIXT_API mixt_status mixt_data_batch_tensors(const mixt_data *data, int64_t batch, int64_t number, mixt_tensor **input,
                                             mixt_tensor **target);

#ifdef __cplusplus
}
#endif
#endif
