/* What an op is: one const record each, listed in ops/ops.def. Passes, planner, CLI and tests read records only. */
#ifndef MIXT_GRAPH_OP_H
#define MIXT_GRAPH_OP_H

#include "graph/graph.h"

/** How the precision pass treats an op. */
typedef enum mixt__class {
    MIXT_CLASS_LOW,    // matrix work: operands in the policy's format, FP32 accumulation
    MIXT_CLASS_FULL,   // operands cast to FP32
    MIXT_CLASS_INSIDE, // takes and gives whatever comes, computes in FP32 inside: norms, losses, reductions
    MIXT_CLASS_FOLLOW, // pointwise, views, pooling: the widest format of its inputs
} mixt__class;

enum { MIXT_MAX_OUTPUTS = 8 };

/** What an op says about its outputs. */
typedef struct mixt__inferred {
    int count;
    struct {
        mixt__shape shape;
        mixt_dtype dtype;
    } out[MIXT_MAX_OUTPUTS];
} mixt__inferred;

typedef struct mixt__gradients mixt__gradients; // ops/gradients.h

struct mixt__op {
    const char *name;
    const char *acts_as; // the op whose policy rules apply; NULL: its own name
    mixt__class precision;
    mixt_work work; // an op and its gradient are of one kind
    size_t attrs_size;
    uint32_t fp32_inputs;    // bit i: input i stays FP32 whatever the policy (norm parameters, statistics)
    uint32_t given_inputs;   // bit i: input i is taken in the format that it comes in, whatever the others have
    uint32_t pair_inputs;    // bit i: input i may be a pair of numbers and scales, and is then contiguous
    uint32_t scaled_inputs;  // bit i: input i may be a pair with one scale for all: an operand in FP8 (quantise pass)
    uint32_t strided_inputs; // bit i: input i may be a strided view; its last dimension is contiguous
    uint32_t strided_outputs;
    uint32_t accumulate_outputs; // bit o: output o may be a parameter gradient: FP32, overwritten or added to
    uint32_t in_place_inputs;    // bit i: output 0 may take the memory of input i when that dies here
    uint32_t written_inputs;     // bit i: input i is written too: running statistics, caches. See freeze
    uint32_t exact_inputs;       // bit i: input i is compared, and must be the very bits that the forward pass made
    bool matrix_work;            // its FLOPs are what Tensor Cores or AMX can do; input 0 is an operand
    /** Shapes and formats of the outputs, or a failure that says which shapes do not fit. */
    mixt_status (*infer)(const mixt__graph *graph, const mixt__node *node, mixt__inferred *result);
    /** Emits the nodes of the gradient; NULL: not differentiable. */
    mixt_status (*grad)(mixt__gradients *gradients, const mixt__node *node);
    /** Floating-point operations of one run; NULL: one per output element. */
    double (*flops)(const mixt__graph *graph, const mixt__node *node);
    /** Bytes that one run moves at least; NULL: every input is read once and every output written once, those that are
     *  added to are read too. */
    double (*bytes)(const mixt__graph *graph, const mixt__node *node);
    /** Whether this node draws random numbers; NULL: never. */
    bool (*random)(const mixt__node *node);
    /** The rule by which ranks agree on the written_inputs that are STATE: each run makes them (1 - share) · old +
     *  share · new, and ranks take the average of what their runs saw as new. Whether this node does that, and with
     *  what share. NULL: it moves none. */
    bool (*moves)(const mixt__node *node, double *share);
    /** Changes the attributes so that written_inputs are only read; NULL: it always writes them. */
    void (*freeze)(void *attrs);
    /** Changes the attributes of a second run of a node in the same pass: the same outputs, and written_inputs are left
     *  as the first run left them. NULL: nodes that write inputs cannot run twice. */
    void (*repeat)(void *attrs);
    /** Changes the attributes so that output 0 is FP32 whatever the format of the operands; NULL: it cannot. */
    void (*widen)(void *attrs);
    /** Changes the attributes so that output 0 has this format where only a pair could say which; NULL: another input
     *  says it. */
    void (*give)(void *attrs, mixt_dtype dtype);
    /** Whether the gradient of this node reads its pair_inputs as pairs too; NULL: always. */
    bool (*pair_grad)(const void *attrs);
    /** For views: how output `o` lies in its base (offset and strides); false when it must be copied. NULL: not a view.
     */
    bool (*view)(const mixt__graph *graph, const mixt__node *node, int o, int64_t *offset, int64_t *strides);
    /** Attributes in words for `mixt plan`; NULL: none. */
    void (*describe)(const void *attrs, char *text, size_t size);
};

/** All records, ended by NULL. */
extern const mixt__op *const mixt__op_list[];
const mixt__op *mixt__op_find(const char *name);

/** Floating-point operations and bytes moved of one run; 0 for a view that nothing runs for. */
double mixt__node_flops(const mixt__graph *graph, const mixt__node *node);
double mixt__node_bytes(const mixt__graph *graph, const mixt__node *node);
/** Whether two runs of the node with other random keys differ. */
bool mixt__node_random(const mixt__node *node);

#endif
