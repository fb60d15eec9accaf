/* From the graph of an ONNX file to calls on the builder: what the handlers of ops share.
 *
 * Every build makes all calls again with the sizes of its batch, so that shapes are numbers throughout and arithmetic
 * on them is done here, never in the graph. A value keeps the order of dimensions that the file gives it (N, C, H, W)
 * apart from the order in which it lies in memory (N, H, W, C): transposes only change the former, and are made where
 * an op needs another order in memory.
 */
#ifndef MIXT_ONNX_IMPORT_H
#define MIXT_ONNX_IMPORT_H

#include "onnx/onnx.h"

#include "graph/builder.h"

typedef enum mixt__item_kind {
    MIXT_ITEM_NONE,      // not made, or what makes it is not supported
    MIXT_ITEM_CONSTANT,  // known now
    MIXT_ITEM_PARAMETER, // an initializer that is trained, not in the graph yet
    MIXT_ITEM_COMPUTED,  // a value of the graph
} mixt__item_kind;

/** A value of the file while the graph is built. */
typedef struct mixt__item {
    mixt__item_kind kind;
    mixt__onnx_type type;
    int rank;
    int64_t dims[MIXT_ONNX_RANK]; // as the file has them
    const double *numbers;        // CONSTANT: row by row; NULL: of an initializer that is not read yet
    int32_t initializer;          // PARAMETER, and CONSTANT where it is one; else -1
    int32_t owner;                // of those: the value whose name it has
    mixt_value value;             // COMPUTED: of as many dimensions, some of size 1 where it is larger here (broadcast)
    int order[MIXT_ONNX_RANK];    // COMPUTED: dimension i in memory is dimension order[i] here; PARAMETER: dimension i
                                  // of the file's tensor is dimension order[i] here
} mixt__item;

/** Something of a file that is not supported. */
typedef struct mixt__onnx_problem {
    int32_t node;
    const char *text;
} mixt__onnx_problem;

typedef struct mixt__import {
    mixt__onnx *onnx;
    const mixt__onnx_file *f;
    mixt_builder *b;
    mixt__arena arena;     // of constants and texts; lives as long as the build
    size_t constant_bytes; // of those
    mixt__item *items;     // by value of the file
    bool *done;            // by node: made with another one
    mixt_value *made;      // by value: its parameter in the graph
    int32_t at;            // the node that is being made
    const mixt__onnx_node *node;
    int64_t batch; // samples of this build
    mixt__onnx_problem *problems;
    int64_t problem_count, problem_capacity;
    bool explains; // no batch is there: sizes that the file leaves open are guessed
} mixt__import;

/** Makes a node: reads its inputs' items, gives its outputs. MIXT_ERROR_UNSUPPORTED: noted, the import goes on. */
typedef mixt_status mixt__onnx_make(mixt__import *m, const mixt__onnx_node *n);

typedef struct mixt__onnx_op {
    const char *name;
    mixt__onnx_make *make;
} mixt__onnx_op;

/** What makes an op of ONNX; NULL: nothing does. */
mixt__onnx_make *mixt__onnx_op_find(mixt__wire_span domain, mixt__wire_span op);

/** MIXT_ERROR_UNSUPPORTED with a text that says why. */
mixt_status mixt__import_refuse(mixt__import *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** What the builder has come to. */
mixt_status mixt__import_check(const mixt__import *m);

/* ---- values ---- */

/** Input `k` of a node; NULL: it is left out. */
mixt__item *mixt__import_in(mixt__import *m, const mixt__onnx_node *n, int k);
/** The item of output `k`; never NULL: of one that is left out a scratch item. */
mixt__item *mixt__import_out(mixt__import *m, const mixt__onnx_node *n, int k);
bool mixt__item_is(const mixt__item *item, mixt__item_kind kind);
int64_t mixt__item_count(const mixt__item *item);
/** The numbers of a CONSTANT; NULL: memory ended, or it is none. */
const double *mixt__item_numbers(mixt__import *m, mixt__item *item);
/** A CONSTANT of one element. */
bool mixt__item_scalar(mixt__import *m, mixt__item *item, double *number);
/** A CONSTANT of whole numbers: how many are stored; -1: it is none, or has more than `most`. */
int mixt__item_ints(mixt__import *m, mixt__item *item, int64_t *numbers, int most);

/** Makes an item a CONSTANT with room for its numbers, which the caller fills. */
mixt_status mixt__item_constant(mixt__import *m, mixt__item *item, mixt__onnx_type type, int rank, const int64_t *dims,
                                double **numbers);
/** Makes an item a value of the graph whose dimensions lie in the file's order. */
void mixt__item_give(mixt__import *m, mixt__item *item, mixt__onnx_type type, mixt_value value);
/** The same in another order: dimension i in memory is order[i] of the file's. */
void mixt__item_give_in(mixt__import *m, mixt__item *item, mixt__onnx_type type, mixt_value value, const int *order);

/** A value that is an initializer, or a copy of one, as it is at the beginning. */
mixt_status mixt__item_begin(mixt__import *m, int32_t value);
/** Brings an item into the graph, whatever its order in memory. */
mixt_status mixt__item_compute(mixt__import *m, mixt__item *item);
/** Its value with the dimensions in memory in this order (NULL: the file's), as `rank` dimensions: ones are put in
 * front where it has fewer. Those of size 1 may stand for larger ones (broadcast). */
mixt_status mixt__item_value(mixt__import *m, mixt__item *item, int rank, const int *order, mixt_value *value);
/** The same with every dimension in its full size. */
mixt_status mixt__item_full(mixt__import *m, mixt__item *item, const int *order, mixt_value *value);
/** A reshape where the shape differs. */
mixt_value mixt__import_reshape(mixt__import *m, mixt_value value, int rank, const int64_t *dims);

/** A parameter as it is to lie in memory: dimension i is order[i] of the item's; NULL: in the item's order. One that is
 *  in the graph already is transposed where that differs. @param decay weight decay applies */
mixt_status mixt__item_parameter(mixt__import *m, mixt__item *item, const int *order, bool decay, mixt_value *value);
/** A parameter that is made of initializers as a recipe says, for the layer of a node.
 *  @param param name, shape, and how it is drawn where the file has no values */
mixt_status mixt__import_parameter(mixt__import *m, const mixt__onnx_recipe *recipe, const mixt__param *param,
                                   mixt_value *value);

/** The layer that a node makes: its weight's name without its last part, else the node's own name. */
const char *mixt__import_layer(mixt__import *m, const mixt__onnx_node *n, const mixt__item *weight);
/** The same text with an end mark, in the arena of the graph. */
const char *mixt__import_name(mixt__import *m, mixt__wire_span name);
/** The nodes made until leave belong to a layer. */
void mixt__import_enter(mixt__import *m, const mixt__onnx_node *n, const mixt__item *weight);
void mixt__import_leave(mixt__import *m);

/** An axis as the file says it, from the end where it is negative; -1: there is no such. */
int mixt__import_axis(int64_t axis, int rank);
/** Whole numbers of an attribute, or, from opset on where they became one, of an input. -1: there are none */
int mixt__import_list(mixt__import *m, const mixt__onnx_node *n, const char *attribute, int input, int64_t *numbers,
                      int most);
/** The node that alone uses a value, if it is this op; NULL: another does, or several do. */
const mixt__onnx_node *mixt__import_only_user(const mixt__import *m, int32_t value, const char *op);
/** The node that makes a value, if it is this op. */
const mixt__onnx_node *mixt__import_maker(const mixt__import *m, int32_t value, const char *op);
void mixt__import_done(mixt__import *m, const mixt__onnx_node *n);

/* ---- shapes ---- */

/** The sizes that a reshape asks for, 0 and -1 resolved. @param batch samples: a leading size that was written for
 *  another number of them stands for it; 0: none does. False: they do not fit */
bool mixt__import_shape(const mixt__item *item, int rank, int64_t *dims, bool allow_zero, int64_t batch);
/** The sizes behind Squeeze or Unsqueeze; -1: the axes do not fit. */
int mixt__import_squeezed(mixt__import *m, const mixt__onnx_node *n, const mixt__item *item, int64_t *dims);
/** The order of a Transpose; false: it is none. */
bool mixt__import_perm(const mixt__onnx_node *n, int rank, int64_t *order);

/** What a slice takes of a dimension. */
typedef struct mixt__slice_range {
    int64_t begin, count, step;
} mixt__slice_range;
mixt_status mixt__import_slices(mixt__import *m, const mixt__onnx_node *n, const mixt__item *item,
                                mixt__slice_range ranges[MIXT_ONNX_RANK]);

/* ---- a build ---- */

/** Inputs of the file from the arrays of the batch. */
mixt_status mixt__import_inputs(mixt__import *m);
/** A batch as the file says it, sizes that it leaves open guessed: to see what of it is supported. */
mixt_status mixt__onnx_guess_arrays(const mixt__onnx *onnx, mixt__graph *graph);
/** Makes all nodes that the output needs. */
mixt_status mixt__import_run(mixt__import *m);
void mixt__import_free(mixt__import *m);

/* ---- constants ---- */

/** Computes a node whose inputs are all known. MIXT_ERROR_UNSUPPORTED: it is no op that is folded. */
mixt_status mixt__onnx_fold(mixt__import *m, const mixt__onnx_node *n);
/** Whether its op is one that is folded. */
bool mixt__onnx_folds(const mixt__onnx_node *n);

#endif
