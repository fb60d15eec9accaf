/* An ONNX file, mapped: its graph as lists of nodes, values and initializers that point into the mapping.
 *
 * What the file says is untrusted: everything that is given out lies within it, sizes have been checked against the
 * bytes that are there, and what does not fit is refused with the name of the part. Numbers of initializers are read
 * where they lie, in the file or in the files of external data beside it, and never copied whole.
 */
#ifndef MIXT_ONNX_FILE_H
#define MIXT_ONNX_FILE_H

#include "onnx/schema.h"
#include "onnx/wire.h"
#include "store/file.h"

enum {
    MIXT_ONNX_RANK = 8,
    MIXT_ONNX_NODES_MAX = 1 << 17,
    MIXT_ONNX_VALUES_MAX = 1 << 19,
    MIXT_ONNX_OPSETS = 16,
};

typedef struct mixt__onnx_tensor {
    mixt__wire_span name;
    mixt__onnx_type type;
    int rank;
    int64_t dims[MIXT_ONNX_RANK];
    int64_t count;          // of elements
    mixt__wire_span data;   // little-endian elements; at NULL: they are not there, or lie in `fields`
    mixt__wire_span fields; // the message, where elements are fields of their own
    uint32_t elements;      // number of that field; 0: they are in `data`
    bool absent;            // a parameter of a run, whose values are in its checkpoints
} mixt__onnx_tensor;

typedef struct mixt__onnx_node {
    mixt__wire_span op, domain, name, message;
    int32_t *in, *out; // numbers of values; 0: left out
    int32_t in_count, out_count;
} mixt__onnx_node;

typedef struct mixt__onnx_value {
    mixt__wire_span name;
    int32_t producer;     // node; -1: none
    int32_t initializer;  // -1: it is none
    int32_t uses;         // of nodes, and of the graph's outputs
    int32_t user;         // the node that uses it first; -1: none does
    bool input, output;   // of the graph
    mixt__wire_span type; // of an input or output: what the file says of it
} mixt__onnx_value;

typedef struct mixt__onnx_external mixt__onnx_external; // a file of external data that is mapped

typedef struct mixt__onnx_file {
    char *path;
    mixt__file_map map;
    mixt__arena arena;
    mixt__onnx_external *external;
    int64_t ir_version, opset; // the latter of ONNX's own ops
    mixt__wire_span producer, name;
    bool without_weights; // written for a run: parameters' values are in its checkpoints
    mixt__onnx_node *nodes;
    int64_t node_count;
    mixt__onnx_value *values; // from 1 on
    int64_t value_count, value_capacity;
    mixt__wire_span *initializers; // messages
    int64_t initializer_count;
    int32_t *inputs, *outputs; // values, without inputs that are initializers too
    int64_t input_count, output_count;
    int32_t *table; // values by the hash of their names
    int64_t table_size;
} mixt__onnx_file;

/** Whether a name is that of such a file: "net.onnx". */
bool mixt__onnx_is(const char *path);
mixt_status mixt__onnx_file_open(const char *path, mixt__onnx_file **file);
void mixt__onnx_file_close(mixt__onnx_file *file);

/** The value of a name; 0: there is none. */
int32_t mixt__onnx_find(const mixt__onnx_file *file, mixt__wire_span name);
/** Text for messages, cut to `size`. Returns `text`. */
const char *mixt__onnx_text(mixt__wire_span span, char *text, size_t size);

/** What the file says of an input or output: -1 for a size that it leaves open. False: it says no shape. */
bool mixt__onnx_value_shape(const mixt__onnx_value *value, mixt__onnx_type *type, int *rank,
                            int64_t dims[MIXT_ONNX_RANK]);

/* ---- attributes ---- */

typedef struct mixt__onnx_attribute {
    int type; // MIXT_ONNX_IS_…; 0: the node does not have it
    double f;
    int64_t i;
    mixt__wire_span s;
    mixt__wire_span message;
} mixt__onnx_attribute;

mixt__onnx_attribute mixt__onnx_attribute_of(const mixt__onnx_node *node, const char *name);
int64_t mixt__onnx_int(const mixt__onnx_node *node, const char *name, int64_t fallback);
double mixt__onnx_float(const mixt__onnx_node *node, const char *name, double fallback);
/** @return how many there are; those past `most` are not stored. -1: the node does not have it */
int mixt__onnx_ints(const mixt__onnx_node *node, const char *name, int64_t *numbers, int most);
int mixt__onnx_floats(const mixt__onnx_node *node, const char *name, double *numbers, int most);
/** Whether it is a text, and this one. */
bool mixt__onnx_text_is(const mixt__onnx_node *node, const char *name, const char *text);

/** Whether it is a list of texts, all of them this one. */
bool mixt__onnx_texts_are(const mixt__onnx_node *node, const char *name, const char *text);

/* ---- tensors ---- */

/** Reads a TensorProto; external data is mapped. */
mixt_status mixt__onnx_tensor_read(mixt__onnx_file *file, mixt__wire_span message, mixt__onnx_tensor *tensor);
/** A tensor as numbers of one type, converted. @param values (tensor->count) */
mixt_status mixt__onnx_tensor_floats(const mixt__onnx_tensor *tensor, float *values);
mixt_status mixt__onnx_tensor_doubles(const mixt__onnx_tensor *tensor, double *values);
/** Whether elements are numbers with a fraction. */
bool mixt__onnx_type_is_float(mixt__onnx_type type);
const char *mixt__onnx_type_name(mixt__onnx_type type);
/** Bits of one element; 0: it is none that is read. */
int mixt__onnx_type_bits(mixt__onnx_type type);

/** A file of external data, mapped once. @param location relative to the folder of the model's file */
mixt_status mixt__onnx_external_open(mixt__onnx_file *file, mixt__wire_span location, mixt__wire_span *whole);
void mixt__onnx_external_close(mixt__onnx_file *file);

#endif
