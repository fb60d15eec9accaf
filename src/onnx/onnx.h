/* A model from an ONNX file: opened once, built for every batch, its parameters read from the file. */
#ifndef MIXT_ONNX_ONNX_H
#define MIXT_ONNX_ONNX_H

#include "onnx/file.h"

#include "graph/graph.h"
#include "mixt/graph.h"

#include <pthread.h>

/** What an initializer is for training. */
typedef enum mixt__onnx_role {
    MIXT_ONNX_CONSTANT,
    MIXT_ONNX_PARAMETER,
    MIXT_ONNX_STATISTIC,
} mixt__onnx_role;

/** How a parameter of the graph comes from tensors of the file. */
typedef enum mixt__onnx_recipe_kind {
    MIXT_ONNX_AS_IS,     // transposed by `order`
    MIXT_ONNX_CONSTANTS, // numbers that were computed when the graph was built
} mixt__onnx_recipe_kind;

typedef struct mixt__onnx_recipe {
    const char *name; // of the parameter
    mixt__onnx_recipe_kind kind;
    int32_t initializer;
    int order[MIXT_ONNX_RANK]; // dimension i of the parameter is order[i] of the tensor
    float *numbers;            // CONSTANTS
    int64_t count;
} mixt__onnx_recipe;

typedef struct mixt__onnx_options {
    int64_t head;       // outputs of a new last layer; 0: as in the file
    const char *output; // which of the outputs the model gives; NULL: the first
    bool logits;        // what is behind the last layer (softmax, sigmoid) is the loss's
    bool any;           // an output that does not depend on the data is one too: for tests
} mixt__onnx_options;

typedef struct mixt__onnx {
    mixt__onnx_file *file;
    mixt__onnx_options options;
    mixt__onnx_role *roles; // by value: of initializers, and of copies of them under another name
    int32_t *sources;       // by value: the initializer that it is, or is a copy of; -1: none
    bool *needed;           // by node: the output depends on it
    int32_t output;         // the value that the model gives
    int32_t head;           // the node of the last layer, where it is new; -1: none
    mixt__arena arena;      // of recipes and texts
    mixt__onnx_recipe *recipes;
    int64_t recipe_count, recipe_capacity;
    pthread_mutex_t lock; // of the recipes: a model may be built by several threads
} mixt__onnx;

mixt_status mixt__onnx_open(const char *path, const mixt__onnx_options *options, mixt__onnx **onnx);
void mixt__onnx_close(mixt__onnx *onnx);

/** The model as a function of mixt: `user` of the builder is a mixt__onnx. */
mixt_value mixt__onnx_build(mixt_builder *b, mixt_value x);
mixt_value mixt__onnx_build_with(mixt_builder *b, mixt_value x, mixt__onnx *onnx);
/** The values that a parameter begins with. @param given false: the file has none, they are drawn */
mixt_status mixt__onnx_begin(const void *user, const mixt__param *param, float *values, bool *given);

/** Everything that is not supported, a line each; "" where there is nothing. @param text for mixt__free */
mixt_status mixt__onnx_explain(const char *path, const mixt__onnx_options *options, char **text);

/** What the file says of its data: dims without the batch's, -1 where it leaves one open. @return false: no such */
bool mixt__onnx_input(const mixt__onnx *onnx, int index, mixt__onnx_type *type, int *rank,
                      int64_t dims[MIXT_ONNX_RANK]);
/** Its outputs of one sample in the last dimension; 0: not known. */
int64_t mixt__onnx_outputs(const mixt__onnx *onnx);

/** Writes the graph without the values of parameters, for a run whose checkpoints have them. */
mixt_status mixt__onnx_write_graph(const mixt__onnx *onnx, const char *path);

/** Finds out what each initializer is for. */
mixt_status mixt__onnx_find_roles(mixt__onnx *onnx);

#endif
