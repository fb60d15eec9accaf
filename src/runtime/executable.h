/* A plan: a flat list of prepared kernel calls over one arena. Made from a compiled graph and a backend; its exact
 * memory is known before it is allocated, and a run takes no memory at all.
 */
#ifndef MIXT_RUNTIME_EXECUTABLE_H
#define MIXT_RUNTIME_EXECUTABLE_H

#include "backend/backend.h"
#include "passes/memory.h"
#include "passes/recompute.h"
#include "runtime/params.h"

enum { MIXT_MAX_REFUSALS = 6 };

/** Why a candidate stands where it does: for `mixt plan --explain`. */
typedef struct mixt__choice {
    const mixt__kernel *kernel;
    int refused_count;
    struct {
        const char *kernel, *reason;
    } refused[MIXT_MAX_REFUSALS];
} mixt__choice;

typedef struct mixt__executable {
    mixt__graph *graph; // owned
    mixt__device *device;
    mixt__arena memory_of_calls;
    mixt__call *calls; // one per node; views have no kernel
    mixt__choice *choices;
    mixt__memory_plan plan;
    mixt__recompute_choice recompute; // what the passes chose to compute again
    size_t workspace_bytes;
    int threads;             // of the CPU: what the calls were prepared for
    char *arena, *workspace; // device memory
    char *side;              // the same for plan.side_bytes; the caller's, who sets it before mixt__executable_bind
    bool borrowed;           // that of another: see mixt__executable_share
    float *seed;             // the loss's gradient, where a run brings none; borrowed
    double *seconds;         // by node, when profiling
    int64_t profiled_runs;
} mixt__executable;

/** Chooses kernels and plans memory; takes ownership of the graph, also on failure. */
mixt_status mixt__executable_take(mixt__graph *graph, mixt__device *device, mixt__executable **executable);
mixt_status mixt__executable_allocate(mixt__executable *executable);
/** Makes the memory that `executable` will take large enough for `other` too: the two never run at once. */
void mixt__executable_widen(mixt__executable *executable, const mixt__executable *other);
/** In place of allocate: runs in the memory of `owner`, which was widened for it. */
void mixt__executable_share(mixt__executable *executable, const mixt__executable *owner);
/** Gives back what allocate took, also half of it. */
void mixt__executable_release(mixt__executable *executable);
void mixt__executable_free(mixt__executable *executable);

/** Points the calls at parameters and at the loss's gradient (device memory; NULL: none); call once after both are
 * allocated. */
void mixt__executable_bind(mixt__executable *executable, const mixt__params *params, float *seed);

typedef struct mixt__run {
    const void *input, *target; // device memory of the batch
    const void *const *inputs;  // by value id, where a graph has several inputs or caches; NULL: only `input`
    const uint64_t *rng_key;    // device memory
    const float *seed;          // device memory: the loss's gradient in this run; NULL: the one bound
    bool accumulate;            // add to the gradients instead of overwriting them
    void (*passed)(void *user, int64_t node); // told of each node that was run; NULL: nobody asks
    void *user;
} mixt__run;

mixt_status mixt__executable_run(mixt__executable *executable, const mixt__run *run);
/** Runs one node, those before it having run: for who looks at values before their memory is taken by others. What the
 *  node reads and writes is then described by calls[node]; of a view nothing runs. */
mixt_status mixt__executable_run_node(mixt__executable *executable, const mixt__run *run, int64_t node);

/** Device address of an activation that was marked to be kept. */
void *mixt__executable_address(const mixt__executable *executable, int32_t value);

/** Starts or stops timing each node. */
mixt_status mixt__executable_profile(mixt__executable *executable, bool on);

double mixt__executable_flops(const mixt__executable *executable, bool matrix_only);

#endif
