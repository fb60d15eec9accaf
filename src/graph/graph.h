/* The typed static graph: values that carry a number format, nodes that compute them, parameters.
 *
 * Invariants (checked by mixt__graph_verify): nodes stand in an order in which every input is made before it is used;
 * every value has one producer, except parameter gradients, which several nodes may add to; shapes and formats of
 * outputs are those that the op infers from its inputs; every node has the arithmetic that its operands allow. Not
 * here: memory, kernels, devices.
 */
#ifndef MIXT_GRAPH_GRAPH_H
#define MIXT_GRAPH_GRAPH_H

#include "base/alloc.h"
#include "base/status.h"
#include "mixt/graph.h"
#include "num/format.h"
#include "num/nf4.h"

typedef struct mixt__op mixt__op;

enum {
    MIXT_ARRAYS_MAX = 16, // of a batch, lengths and masks included
    MIXT_ARRAY_NAME = 32, // bytes of a name, its end included
    MIXT_PARTS_MAX = 8,   // layers that lie side by side in one
};

typedef enum mixt__role {
    MIXT_ROLE_ACTIVATION, // made by a node; memory is planned
    MIXT_ROLE_INPUT,      // a batch's data, written from outside before each run
    MIXT_ROLE_TARGET,     // a batch's labels
    MIXT_ROLE_PARAM,      // a parameter in one format: the FP32 master or a low-precision working copy
    MIXT_ROLE_GRAD,       // a parameter's gradient, FP32, added to in place
    MIXT_ROLE_STATE,      // running statistics, FP32, read and written in place
    MIXT_ROLE_SEED,       // the loss's gradient: loss scale over accumulation count, one FP32
    MIXT_ROLE_CACHE, // what a generating model remembers from run to run: read and written in place by one node, in
                     // the format in which that node takes it
    MIXT_ROLE_SCALE, // the scales of a parameter's copy that is a pair, FP32
    MIXT_ROLE_SIDE,  // made by a node, in memory of its own beside the plan's
    MIXT_ROLE_COUNT
} mixt__role;

typedef struct mixt__shape {
    int rank;
    int64_t dims[MIXT_MAX_RANK];
} mixt__shape;

/** Of a value that is a pair, number · scale: what shares a scale, and the scales. */
typedef struct mixt__scales {
    mixt__scale_kind kind; // NONE: numbers are the values
    int64_t block;         // of BLOCK: elements along the last dimension that share one; of NESTED: words of all
    int32_t value;         // FP32, in the shape of mixt__scale_shape
} mixt__scales;

typedef struct mixt__value {
    mixt_dtype dtype;
    mixt__scales scales;
    mixt_dtype gradient; // the format in which its gradient is added up: its own, unless the policy types backward
                         // passes apart
    mixt__shape shape;
    int64_t strides[MIXT_MAX_RANK]; // in elements; row-major unless a view says otherwise
    mixt__role role;
    int32_t producer; // index of the node that makes it; -1: comes from outside
    int32_t param;    // index in the parameter table for PARAM, GRAD and STATE; else -1
    int32_t base;     // the value whose memory this one is a view of; 0: it has its own
    int64_t offset;   // of a view within its base, in elements
    size_t place;     // INPUT and TARGET: where it begins in the block of a batch's inputs or targets, in bytes
    bool output;      // read from outside after the run: its memory is not reused
    const char *name; // for people; never NULL
} mixt__value;

typedef struct mixt__node {
    const mixt__op *op;
    const void *attrs; // the op's own attribute struct, owned by the graph
    const char *layer; // dotted path of the layer it came from; never NULL
    int32_t *in, *out; // value ids
    int in_count, out_count;
    bool backward;         // emitted by differentiation
    bool teacher;          // part of a teacher: see model/teacher.h
    bool recomputed;       // a copy of a forward node that runs again in the backward pass
    bool alias;            // a view: its output is its input's memory, nothing runs
    mixt_dtype arithmetic; // the format in which operands are multiplied: see mixt__node_arithmetic
    mixt_dtype gradient;   // forward nodes: the format in which the operands of their gradient are multiplied
    int32_t rule;          // the policy's rule that decided its format; -1: none did
    int32_t source;        // the node of the graph as it was built that it comes from, of a gradient that it is the
                           // gradient of; -1: none, or casts
    const char *why;       // what decided its format, or why this cast is here; "" before the precision pass
    mixt_dtype saves;      // forward: the format in which what its gradient reads again is kept; backward: that of the
                           // node whose gradient it is. NONE: as it is
    const char *saves_why; // what decided that; NULL with NONE
    uint32_t accumulates;  // bit o: output o is a parameter gradient already written by an earlier node of the run
} mixt__node;

typedef enum mixt__init_kind { MIXT_INIT_ZERO, MIXT_INIT_ONE, MIXT_INIT_NORMAL, MIXT_INIT_UNIFORM } mixt__init_kind;

/** A parameter or running statistic: one segment of the flat arenas. */
typedef struct mixt__param {
    const char *name;
    mixt__shape shape;
    int64_t count;
    mixt__init_kind init;
    float init_scale;     // standard deviation, or half-width of the uniform range
    bool trainable;       // false: running statistics
    bool frozen;          // training leaves it as it is: no gradient, no update
    bool constant;        // frozen whatever is asked for: numbers that a file has in its graph
    mixt_dtype frozen_in; // the only format that there is of it; NONE: what its readers want
    bool teacher;         // a teacher's: frozen, and none of the model's own; these stand behind all others
    bool decay;           // weight decay applies (matrices and kernels, not biases and norms)
    bool adapter;         // of a layer whose weight is frozen: see model/lora.h; these stand behind the layers'
    bool beside;          // trained beside adapters
    int part_count;       // layers that lie side by side in it, one's rows behind the other's; 0: it is one
    int64_t parts[MIXT_PARTS_MAX]; // their rows
    int32_t value;                 // FP32 value; 0 until used
    int32_t low[MIXT_DTYPE_COUNT]; // working copies by format; 0: none
    int32_t grad;                  // gradient value; 0: none
} mixt__param;

/** A parameter as a matrix that may be kept in NF4. */
static inline mixt__nf4_matrix mixt__param_matrix(const mixt__param *param)
{
    mixt__nf4_matrix m;
    m.rows = param->shape.rank == 2 ? param->shape.dims[0] : 0;
    m.cols = param->shape.rank == 2 ? param->shape.dims[1] : 0;
    m.part_count = param->part_count;
    for (int i = 0; i < MIXT_NF4_PARTS; i++)
        m.parts[i] = i < param->part_count ? param->parts[i] : 0;
    return m;
}

/** A named array of a batch. A batch is one block of inputs and one of targets; arrays lie in them in this order. */
typedef struct mixt__array {
    char name[MIXT_ARRAY_NAME];
    bool target;
    mixt_dtype dtype; // as the data gives it
    mixt__shape shape;
    int32_t value; // 0: nothing asked for it yet
} mixt__array;

typedef struct mixt__graph {
    mixt__arena arena; // names, attributes, input and output lists
    mixt__value *values;
    int64_t value_count, value_capacity; // ids start at 1
    mixt__node *nodes;
    int64_t node_count, node_capacity;
    mixt__param *params;
    int64_t param_count, param_capacity; // a teacher's included
    mixt__array arrays[MIXT_ARRAYS_MAX]; // of a batch, inputs first
    int array_count;
    int32_t input, target;               // the first of each; 0: none
    int32_t seed, logits, loss, metrics; // well-known values; 0: none
    int32_t positions;    // generating: INT32 (T), the places of the input's tokens in the text; 0: whole texts at once
    int64_t plain_values; // values with numbers below this are from before any fusion: graphs that differ in nothing
                          // else have them in common
    int64_t cache_rows;   // generating: places that a cache has room for
    bool training;
    bool of_values;      // the logits are values, not scores of classes: made in FP32 whatever the policy
    bool counts_correct; // metrics[1] means something
} mixt__graph;

mixt_status mixt__graph_new(mixt__graph **graph);
void mixt__graph_free(mixt__graph *graph);

/** A new value; *id 0 when its shape is impossible or memory ends. */
mixt_status mixt__graph_value(mixt__graph *graph, mixt__role role, mixt_dtype dtype, const mixt__shape *shape,
                              const char *name, int32_t *id);

/** The value of an array of the batch, made at the first call. */
mixt_status mixt__graph_array_value(mixt__graph *graph, int index, int32_t *id);
/** Gives the values of arrays their places in the batch's blocks: once their formats are settled. */
void mixt__graph_place_arrays(mixt__graph *graph);

/** Appends a node: copies attrs, infers outputs. `backward` and `layer` come from the graph's current settings.
 *  On success *node_index tells where; outputs are nodes[index].out. */
mixt_status mixt__graph_node(mixt__graph *graph, const mixt__op *op, const char *layer, const void *attrs,
                             const int32_t *in, int in_count, int64_t *node_index);

/** Moves the nodes from `first` on, which were appended, each behind the older node that its anchor names, with -1 in
 *  front of all; those of one anchor keep their order. */
mixt_status mixt__graph_insert(mixt__graph *graph, int64_t first, const int64_t *anchors);

/** Whether a parameter can be had in a format without a cast: the FP32 master, or the one low format that it has or
 *  may still get a working copy in. */
bool mixt__graph_param_has(const mixt__graph *graph, int32_t param, mixt_dtype dtype);
/** The FP32 or low-precision value of a parameter, made on first use; 0 when out of memory. */
int32_t mixt__graph_param_value(mixt__graph *graph, int32_t param, mixt_dtype dtype);
/** The gradient value of a parameter, made on first use. */
int32_t mixt__graph_param_grad(mixt__graph *graph, int32_t param);
mixt_status mixt__graph_param(mixt__graph *graph, const mixt__param *param, int32_t *index);

/** The format that holds numbers of both; NONE with another is that other. FP16 and BF16 meet in FP32. */
static inline mixt_dtype mixt__dtype_widest(mixt_dtype a, mixt_dtype b)
{
    if (a == b || b == MIXT_DTYPE_NONE)
        return a;
    return a == MIXT_DTYPE_NONE ? b : MIXT_DTYPE_FP32;
}

/** The format in which a node multiplies where its policy says `wanted`.
 *
 *  Matrix work (op->matrix_work) multiplies in the format of its operands: FP16, BF16, or FP32, and then in TF32 where
 *  that is wanted: the kernels may round FP32 operands to TF32 and nothing else. Of BF16 operands it may be FP8, where
 *  the op takes operands with scales: the quantise pass then makes pairs of them. Products are added in FP32 always.
 *  What is not matrix work computes in FP32 whatever it reads and writes. */
mixt_dtype mixt__node_arithmetic(const mixt__graph *graph, const mixt__node *node, mixt_dtype wanted);

/** Why a node has its formats, in words: what decided (a rule and where it stands, the policy's default, the class of
 *  the op) or, of a cast, which node wanted it: "input 0 of h.0.attn.qkv wants bf16, h.0.ln1 gives fp32". Nodes of
 *  matrix work begin with their arithmetic: "bf16: policy.yaml:7 (layer 'h.*', op '*')". */
mixt_status mixt__node_explain(const mixt__graph *graph, int64_t node, char **text);
/** A node that does the work of another one too keeps what either saves in the wider of their formats. */
void mixt__node_saves_join(mixt__node *node, const mixt__node *other);
/** What the class of an op says about its formats, in words. */
const char *mixt__class_reason(const mixt__op *op);
/** One reason for a node that does the work of two of the same op: both of them, or the one that says more than the
 *  op's class. NULL when memory ends. */
const char *mixt__reason_join(mixt__graph *graph, const mixt__op *op, const char *first, const char *second);

/** The shape of a value's scales. */
mixt__shape mixt__scale_shape(const mixt__shape *shape, mixt__scale_kind kind, int64_t block);
/** Makes a value a pair, with scales of a role, its parameter's where it has one. */
mixt_status mixt__graph_pair(mixt__graph *graph, int32_t value, mixt__role role, mixt__scale_kind kind, int64_t block);

/** Whether any of some values is a pair. */
bool mixt__graph_has_pair(const mixt__graph *graph, const int32_t *values, int count);

/** Bytes of all its elements, and of its scales. */
double mixt__value_bytes(const mixt__value *value);

/** A bit of a mask over a node's inputs or outputs; those past the 32nd (a concat may have more) are never set. */
static inline bool mixt__bit(uint32_t mask, int index)
{
    return index < 32 && mask >> index & 1;
}

/** Follows views down to the value that owns the memory. */
int32_t mixt__value_base(const mixt__graph *graph, int32_t id);
bool mixt__value_contiguous(const mixt__value *value);

/** Elements that one value may have: 64 TiB of FP32. Nothing has memory for more, and bytes of many such values still
 *  add up within 64 bits. */
#define MIXT_ELEMENTS_MAX ((int64_t)1 << 44)
/** Refuses a size below 0 and more elements than that, as if sizes of 0 were 1. Every value and parameter of a graph
 *  has passed: what is counted later cannot overflow. */
mixt_status mixt__shape_check(const mixt__shape *shape);
int64_t mixt__shape_count(const mixt__shape *shape);
bool mixt__shape_equal(const mixt__shape *a, const mixt__shape *b);
/** Row-major strides in elements. */
void mixt__shape_strides(const mixt__shape *shape, int64_t *strides);
/** "(8, 28, 28, 1)" into a buffer; returns it. */
const char *mixt__shape_text(const mixt__shape *shape, char *buffer, size_t size);
mixt__shape mixt__shape_of(int rank, const int64_t *dims);

mixt_status mixt__graph_verify(const mixt__graph *graph, const char *after_pass);

/** Prints one line a node through `write`, typed: what `mixt plan --graph` shows. */
void mixt__graph_print(const mixt__graph *graph, void (*write)(void *argument, const char *line), void *argument);

#endif
