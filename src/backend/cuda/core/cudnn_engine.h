/* Engine configurations of cuDNN's graphs as data: what the heuristic proposes, an engine with its knobs as numbers
 * that build the same configuration again, and execution plans built from them. */
#ifndef MIXT_BACKEND_CUDA_CORE_CUDNN_ENGINE_H
#define MIXT_BACKEND_CUDA_CORE_CUDNN_ENGINE_H

#include "backend/cuda/core/cudnn_graph.h"

enum {
    MIXT_CUDNN_PROPOSALS = 48, // asked of the heuristic
    MIXT_CUDNN_KNOBS = 24,     // of one configuration
};

/** What is remembered: at most 256 bytes. */
typedef struct mixt__cudnn_choice {
    int32_t engine, knob_count;
    int32_t knobs[MIXT_CUDNN_KNOBS][2]; // type, value
    double seconds;                     // 0: not timed
} mixt__cudnn_choice;

/** The heuristic's proposals, best first, and their number; all of `configs` is made, for mixt__cudnn_proposals_free.
 */
int64_t mixt__cudnn_propose(const mixt__cudnn_graph *g, cudnnBackendHeurMode_t mode,
                            cudnnBackendDescriptor_t configs[MIXT_CUDNN_PROPOSALS]);
void mixt__cudnn_proposals_free(cudnnBackendDescriptor_t configs[MIXT_CUDNN_PROPOSALS]);

/** The engine and knobs of a configuration, and the engine's numerical notes as bits. */
cudnnStatus_t mixt__cudnn_config_read(cudnnBackendDescriptor_t config, mixt__cudnn_choice *choice, unsigned *notes);
/** The configuration of a choice; the caller destroys it, also after a failure. */
cudnnStatus_t mixt__cudnn_config_make(const mixt__cudnn_graph *g, const mixt__cudnn_choice *choice,
                                      cudnnBackendDescriptor_t *config);

/** Bytes of workspace that its plan will need, said without building it. A failure: this cuDNN cannot say. */
cudnnStatus_t mixt__cudnn_config_workspace(cudnnBackendDescriptor_t config, size_t *bytes);

/** A configuration on its way to a plan. */
typedef struct mixt__cudnn_built {
    cudnnBackendDescriptor_t config; // in
    mixt__cudnn_choice choice;       // the caller's, not read here
    unsigned notes;                  // the same
    cudnnBackendDescriptor_t plan;   // out; the caller destroys it, also after a failure
    size_t workspace_bytes;
    cudnnStatus_t status;
    char detail[200]; // cuDNN's words after a failure
} mixt__cudnn_built;

/** Builds the plan: an engine that is compiled only now takes half a second and more. */
void mixt__cudnn_build(mixt__cudnn_built *built, cudnnHandle_t handle);

/** Nothing for NULL. */
void mixt__cudnn_destroy(cudnnBackendDescriptor_t descriptor);

#endif
