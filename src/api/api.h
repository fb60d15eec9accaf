/* The objects behind the public handles. */
#ifndef MIXT_API_API_H
#define MIXT_API_API_H

#include "base/handles.h"
#include "infer/generator.h"
#include "policy/policy.h"
#include "train/trainer.h"

/** A model that is being built by calls: api/model_builder.c. */
typedef struct mixt__kept_model mixt__kept_model;

typedef struct mixt__onnx mixt__onnx; // onnx/onnx.h

struct mixt_context {
    mixt__handle handle;
    char error[1024]; // the first failure
    mixt__device *device;
    mixt__arena arena; // of the handles
    mixt_data **data;
    int64_t data_count, data_capacity;
    mixt_trainer **trainers;
    int64_t trainer_count, trainer_capacity;
    mixt_generator **generators;
    int64_t generator_count, generator_capacity;
    mixt__kept_model *building; // those that are not finished
    mixt__onnx **files;         // models that are files
    int64_t file_count, file_capacity;
};

struct mixt_model {
    mixt__handle handle;
    mixt_context *context;
    mixt__model model;
};

struct mixt_trainer {
    mixt__handle handle;
    mixt_context *context;
    mixt_policy *policy;          // its own
    mixt_trainer_options options; // as given, for a change of precision
    mixt__trainer *inner;
};

struct mixt_generator {
    mixt__handle handle;
    mixt_context *context;
    mixt_policy *policy; // its own
    mixt__generator inner;
    const char *warning; // about the file of its weights; NULL: none
};

/** The device of a name: "auto" (NULL too), "cpu", "cuda" or "cuda:N", with so many CPU threads (0: the default). Auto
 * takes the first GPU when one is usable, else the CPU. A failure of "cuda" says what is missing. */
mixt_status mixt__device_open(const char *name, int threads, mixt__device **device);
/** Whether a name is a GPU's, "cuda" or "cuda:N", and which one: the first is 0. */
bool mixt__device_is_gpu(const char *name, int *number);
/** From now on every device of this thread is this one, that only plans; NULL: as it was. */
void mixt__device_assume(mixt__device *device);
/** Devices that this thread opens plan roughly from the beginning, or do not. */
void mixt__device_open_roughly(bool on);

/** Refuses a context that mixt_open did not give, or that is closed; the text names the caller. */
#define mixt__need_context(context) mixt__need_context_at(__func__, (context))
mixt_status mixt__need_context_at(const char *function, const mixt_context *context);
/** A model that the context owns; NULL, and the failure noted, when memory ends. */
mixt_model *mixt__context_add_model(mixt_context *context, const mixt__model *model);
/** Frees what models that are not finished hold beside the context's own memory. */
void mixt__context_close_builders(mixt_context *context);
/** Closes the files that are models of the context. */
void mixt__context_close_files(mixt_context *context);
/** Gives a data set to the context; where that fails it is closed. */
mixt_status mixt__context_take_data(mixt_context *context, mixt_data *data);
/** Remembers the first failure in the context; returns the status as it is. */
mixt_status mixt__context_note(mixt_context *context, mixt_status status);
/** mixt__need, noted in the context. */
#define mixt__need_in(context, argument) mixt__context_note((context), mixt__need(argument))

/** The trainer behind a handle made elsewhere (the zoo's models), owned by the context.
 *  @param trainer NULL on failure */
mixt_status mixt__trainer_open(mixt_context *context, const mixt__model *model, const mixt_trainer_options *options,
                               mixt_trainer **trainer);
/** Frees a trainer before its context is closed: for those who make many, one after the other. NULL is allowed. */
void mixt__trainer_close(mixt_trainer *trainer);

/** Whether a file has only what was trained of a model, as mixt__trainer_save_of writes it. */
mixt_status mixt__weights_are_partial(const char *path, bool *partial);
/** Weights from a .safetensors file; everything is checked before the first one changes. Those that a file of what was
 *  trained leaves away stay as they are. */
mixt_status mixt__weights_load(mixt__params *params, const char *path);
/** Bytes that saving the weights takes for the while. */
size_t mixt__weights_bytes(const mixt__params *params);
/** mixt_trainer_save of weights that are those of an earlier update, `of`; the file says so ("weights_step").
 *  @param trained what is frozen is left away */
mixt_status mixt__trainer_save_of(mixt_trainer *trainer, const char *path, int64_t of, bool trained);

#endif
