/* The builder: a graph under construction, a scope, a sticky error. Op files use it to offer their public functions. */
#ifndef MIXT_GRAPH_BUILDER_H
#define MIXT_GRAPH_BUILDER_H

#include "base/options.h"
#include "graph/op.h"
#include "graph/tape.h"

enum { MIXT_SCOPE_SIZE = 256, MIXT_SCOPE_DEPTH = 32 };

struct mixt_builder {
    mixt__graph *graph;
    mixt_status status;
    char error[1024];
    char scope[MIXT_SCOPE_SIZE];
    size_t scope_start[MIXT_SCOPE_DEPTH]; // length of the scope before each push
    int scope_depth;
    void *user;
    bool has_loss;        // the graph gets a loss
    int32_t counted;      // metrics of the loss that was added first; 0: none yet
    uint32_t rng_streams; // dropout calls so far: each gets its own stream
    mixt__tape *tape;     // that calls are recorded on; NULL: none
};

/** Starts building into `graph`. */
void mixt__builder_start(mixt_builder *b, mixt__graph *graph, void *user);
/** MIXT_OK, or the first failure with its text as the thread's error. */
mixt_status mixt__builder_finish(const mixt_builder *b);

/** Records a failure if none is recorded yet; `layer` may be NULL. Returns the null value. */
mixt_value mixt__builder_error(mixt_builder *b, mixt_status status, const char *layer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Makes a failure the builder's; true when there is none. `layer` may be NULL. */
bool mixt__builder_ok(mixt_builder *b, const char *layer, mixt_status status);

/** Lays options that a caller gave over `own`, which holds the defaults; false where they are refused. */
#define mixt__builder_options(b, layer, type, own, given)                                                              \
    mixt__builder_ok((b), (layer), mixt__options(type, (own), (given)))
/** Whether a number that may be left out is finite and at least 0; where it is not, the builder fails and names it. */
bool mixt__builder_number(mixt_builder *b, const char *layer, const char *argument, float value);

/** Scope and name joined with a dot, in the graph's memory. */
const char *mixt__builder_path(mixt_builder *b, const char *name);

/** True when the builder has not failed and every value is real. */
bool mixt__builder_ready(mixt_builder *b, const char *layer, const mixt_value *values, int count);

/** Appends a node in the current scope (layer: scope.name, or the scope alone when name is NULL); first output. */
mixt_value mixt__builder_node(mixt_builder *b, const mixt__op *op, const char *name, const void *attrs,
                              const mixt_value *in, int in_count);
/** The same, all outputs. */
bool mixt__builder_node_outputs(mixt_builder *b, const mixt__op *op, const char *name, const void *attrs,
                                const mixt_value *in, int in_count, mixt_value *out);

/** True while building a graph that goes on from what earlier runs left in its caches. */
bool mixt__builder_generating(const mixt_builder *b);
/** The memory of one layer between runs; zero at the beginning of a text. */
mixt_value mixt__builder_cache(mixt_builder *b, const mixt__shape *shape);

/** A parameter "scope.layer.part". */
mixt_value mixt__builder_param(mixt_builder *b, const char *layer, const char *part, const mixt__param *param);

#endif
