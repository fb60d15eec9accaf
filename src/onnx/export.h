/* From a graph of mixt to an ONNX file: the model as it predicts, with its weights in FP32.
 *
 * The graph is given twice, for two numbers of samples: sizes that differ are those of the batch, which the file leaves
 * open. Every value may lie in the file in one of two orders, or in both: as in mixt, or with its channels in front,
 * which is what ONNX's convolutions take. Who needs the other one than there is adds a Transpose, once. Not here: which
 * run, and where its weights are.
 */
#ifndef MIXT_ONNX_EXPORT_H
#define MIXT_ONNX_EXPORT_H

#include "onnx/schema.h"
#include "onnx/wire.h"

#include "graph/graph.h"

enum { MIXT_ONNX_OPSET = 20, MIXT_ONNX_IR = 9, MIXT_EXPORT_MASK = 4 };

/** A line of the file's metadata. */
typedef struct mixt__onnx_pair {
    const char *key, *value;
} mixt__onnx_pair;

/** What is written. */
typedef struct mixt__onnx_model_out {
    const mixt__graph *graph, *other; // the same model for two numbers of samples; graph->logits is the output
    mixt_status (*values)(void *user, int32_t param, float *values); // FP32 numbers of a parameter
    void *user;
    const char *name; // of the model
    const mixt__onnx_pair *pairs;
    int pair_count;
} mixt__onnx_model_out;

/** What was written. */
typedef struct mixt__onnx_written {
    int64_t nodes, tensors, bytes;
} mixt__onnx_written;

/** Writes the file whole or not at all. Fails with MIXT_ERROR_UNSUPPORTED and the names of all layers that cannot be
 *  written. @param source what is exported, for messages */
mixt_status mixt__onnx_write_model(const mixt__onnx_model_out *model, const char *source, const char *path,
                                   bool overwrite, mixt__onnx_written *written);

/* ---- inside: what those share that make nodes ---- */

/** The order of a value's dimensions. */
typedef enum mixt__onnx_order {
    MIXT_ONNX_NATURAL, // as in mixt
    MIXT_ONNX_FIRST,   // (N, …, C) with its channels in front: (N, C, …)
    MIXT_ONNX_ORDERS
} mixt__onnx_order;

typedef struct mixt__export {
    const mixt__onnx_model_out *model;
    const mixt__graph *g;
    mixt__arena arena;
    mixt__wire_out graph;                   // the message that is being written
    const char *(*names)[MIXT_ONNX_ORDERS]; // by value: its name in the file in each order; NULL: it is not there so
    const char **taken;                     // names that are given
    int64_t taken_count, taken_capacity;
    const char *mask;                  // the newest mask of attention, and …
    int64_t mask_of[MIXT_EXPORT_MASK]; // … its sizes
    char problems[1600];               // texts, one behind the other; "": there are none
    size_t problem_bytes;
    int64_t more_problems;  // that found no place there
    const mixt__node *node; // that is being made
    mixt__onnx_written written;
    mixt_status status; // the first failure: all that follows does nothing
} mixt__export;

/** An attribute of a node; a list of them ends with one without a name. */
typedef struct mixt__onnx_give {
    const char *name;
    int type; // MIXT_ONNX_IS_…
    int64_t i;
    float f;
    const char *s;
    const int64_t *ints;
    int count;
} mixt__onnx_give;

#define MIXT_GIVE_INT(key, number) ((mixt__onnx_give){.name = (key), .type = MIXT_ONNX_IS_INT, .i = (number)})
#define MIXT_GIVE_FLOAT(key, number) ((mixt__onnx_give){.name = (key), .type = MIXT_ONNX_IS_FLOAT, .f = (number)})
#define MIXT_GIVE_TEXT(key, text) ((mixt__onnx_give){.name = (key), .type = MIXT_ONNX_IS_STRING, .s = (text)})
#define MIXT_GIVE_INTS(key, numbers, n)                                                                                \
    ((mixt__onnx_give){.name = (key), .type = MIXT_ONNX_IS_INTS, .ints = (numbers), .count = (n)})
#define MIXT_GIVES(...) ((const mixt__onnx_give[]){__VA_ARGS__, {0}})
#define MIXT_TAKES(...) ((const char *const[]){__VA_ARGS__, NULL})

/** Writes a node of the layer that is being made. @param in names, ended by NULL; "" for one that is left out
 *  @return the name of its output; never NULL */
const char *mixt__export_node(mixt__export *m, const char *op, const char *const *in, const mixt__onnx_give *gives);
/** The same with several outputs. */
void mixt__export_nodes(mixt__export *m, const char *op, const char *const *in, const mixt__onnx_give *gives,
                        const char **out, int out_count);

/** The name of a value in an order, made from the other where it is only there so. */
const char *mixt__export_value(mixt__export *m, int32_t value, mixt__onnx_order order);
/** The name of input `k` of the node that is being made. */
const char *mixt__export_in(mixt__export *m, int k, mixt__onnx_order order);
/** Whether a value is there with its channels in front, and not as in mixt. */
bool mixt__export_is_first(const mixt__export *m, int32_t value);
/** Output `k` of the node that is being made has this name. */
void mixt__export_give(mixt__export *m, int k, mixt__onnx_order order, const char *name);
/** Sizes of a value, -1 for that of the batch; false: more than one depends on it, or it is a part of one. */
bool mixt__export_dims(const mixt__export *m, int32_t value, int64_t dims[MIXT_MAX_RANK]);

/** Constants. */
const char *mixt__export_floats(mixt__export *m, int rank, const int64_t *dims, const float *numbers);
const char *mixt__export_ints(mixt__export *m, const int64_t *numbers, int count);
const char *mixt__export_float(mixt__export *m, float number);

/** The same under a name of its own. */
const char *mixt__export_named(mixt__export *m, const char *name, int rank, const int64_t *dims, const float *numbers);

/** Notes that the node that is being made cannot be written, and why. */
void mixt__export_refuse(mixt__export *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** What makes an op of mixt. */
typedef void mixt__onnx_put(mixt__export *m, const mixt__node *n);
mixt__onnx_put mixt__onnx_put_pointwise, mixt__onnx_put_attention, mixt__onnx_put_rotary_table, mixt__onnx_put_rotary;
/** Whether a product is written with the recurrent layer that takes it. */
bool mixt__export_is_in_cell(const mixt__export *m, const mixt__node *product);
mixt__onnx_put mixt__onnx_put_recurrent;
/** NULL: nothing does. */
mixt__onnx_put *mixt__onnx_put_find(const mixt__op *op);

#endif
