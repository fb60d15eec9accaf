/* A short list of oneDNN primitives with all their memory, made at plan time and run without allocation by mixt.
 *
 * Memory objects are bound to tensors of the call or to parts of its workspace; scratchpads are the user's, that is the
 * workspace too. Only files whose name ends in _onednn.c include this.
 */
#ifndef MIXT_BACKEND_CPU_CORE_PROGRAM_ONEDNN_H
#define MIXT_BACKEND_CPU_CORE_PROGRAM_ONEDNN_H

#include "backend/backend.h"

#include <oneapi/dnnl/dnnl.h>

enum { MIXT_ONEDNN_MEMORIES = 12, MIXT_ONEDNN_STEPS = 4, MIXT_ONEDNN_ARGS = 6 };

/** What a memory object is bound to at each run. */
typedef enum mixt__onednn_source {
    MIXT_ONEDNN_IN0,
    MIXT_ONEDNN_IN1,
    MIXT_ONEDNN_IN2,
    MIXT_ONEDNN_OUT,
    MIXT_ONEDNN_WORKSPACE,
    MIXT_ONEDNN_SCRATCH, // after the workspace's other parts; steps run one after the other and share it
} mixt__onednn_source;

/** When a step runs. */
typedef enum mixt__onednn_when {
    MIXT_ONEDNN_ALWAYS,
    MIXT_ONEDNN_IF_OVERWRITING,
    MIXT_ONEDNN_IF_ACCUMULATING,
} mixt__onednn_when;

typedef struct mixt__onednn_program {
    struct {
        dnnl_memory_t object;
        mixt__onednn_source source;
        size_t offset; // within the workspace
    } memory[MIXT_ONEDNN_MEMORIES];
    struct {
        dnnl_primitive_t primitive;
        mixt__onednn_when when;
        dnnl_exec_arg_t args[MIXT_ONEDNN_ARGS];
        int arg_count;
    } step[MIXT_ONEDNN_STEPS];
    int memory_count, step_count;
    size_t workspace_bytes, scratch_bytes; // a call needs both together
} mixt__onednn_program;

/** One argument of a step: what it is to the primitive, and the memory (an index from mixt__onednn_memory). */
typedef struct mixt__onednn_arg {
    int name, memory;
} mixt__onednn_arg;

/** The one CPU engine, limited to mixt's own instruction-set level; NULL when oneDNN cannot make it. */
dnnl_engine_t mixt__onednn_engine(void);

/** FP32 and BF16; undefined for others. */
dnnl_data_type_t mixt__onednn_type(mixt_dtype dtype);

/** A descriptor with the strides of a row-major tensor whose dimensions are taken in `order`. */
dnnl_memory_desc_t mixt__onednn_plain(const int64_t *dims, int rank, const int *order, dnnl_data_type_t type);

/** Attributes with the user's scratchpad and, with `add`, a sum with what the result holds; NULL when out of memory. */
dnnl_primitive_attr_t mixt__onednn_attributes(bool add);

/** Adds a memory object (and room in the workspace where it is bound to that); *index names it. */
mixt_status mixt__onednn_memory(mixt__onednn_program *program, const dnnl_memory_desc_t *desc,
                                mixt__onednn_source source, int *index);

/** Adds a step that runs `desc` (borrowed) with `count` arguments; its scratchpad is added here. */
mixt_status mixt__onednn_step(mixt__onednn_program *program, const_dnnl_primitive_desc_t desc, mixt__onednn_when when,
                              const mixt__onednn_arg *args, int count);

/** Adds a reorder between two memories of the program; with `add`, onto what the target holds. */
mixt_status mixt__onednn_reorder(mixt__onednn_program *program, int from, int to, bool add, mixt__onednn_when when);

/** The end of a kernel's prepare: hands the program over to the call, or frees it when building it failed. */
mixt_status mixt__onednn_keep(mixt__call *call, mixt__onednn_program *program, mixt_status built);

// A kernel's run and release, for a call that holds a program.
mixt_status mixt__onednn_run(const mixt__call *call);
void mixt__onednn_release(mixt__call *call);

/** Whether oneDNN has more than its reference code for a primitive. */
bool mixt__onednn_is_fast(const_dnnl_primitive_desc_t desc);

/** A failed oneDNN call as mixt's status. */
mixt_status mixt__onednn_failed(dnnl_status_t status, const char *what);

#define MIXT_TRY_ONEDNN(call, what)                                                                                    \
    do {                                                                                                               \
        dnnl_status_t mixt_onednn_status = (call);                                                                     \
        if (mixt_onednn_status != dnnl_success)                                                                        \
            return mixt__onednn_failed(mixt_onednn_status, what);                                                      \
    } while (0)

#endif
