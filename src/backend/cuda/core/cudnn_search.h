/* Engines for a graph on their way to a choice: what the heuristic proposes, those of it that are allowed, plans built
 * from them.
 *
 * Many engines are compiled when their plan is built, half a second each. Plans of one graph are therefore built side
 * by side, and those of all graphs that are known ahead at once.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_CUDNN_SEARCH_H
#define MIXT_BACKEND_CUDA_CORE_CUDNN_SEARCH_H

#include "backend/cuda/core/cudnn_engine.h"

enum { MIXT_CUDNN_KEY = 64 };

typedef struct mixt__cudnn_search {
    cudnnBackendDescriptor_t configs[MIXT_CUDNN_PROPOSALS];
    mixt__cudnn_built list[MIXT_CUDNN_PROPOSALS]; // of those that are allowed, best first
    int allowed, built;                           // how many; the first `built` of them have plans, or failed
} mixt__cudnn_search;

/** Asks for proposals. The graph must be finished. */
void mixt__cudnn_search_begin(mixt__cudnn_search *search, const mixt__cudnn_graph *g, cudnnBackendHeurMode_t mode,
                              const mixt__cudnn_wish *wish);
/** Builds the next `count`, or as many as there are threads for at once; at least one where one is left. */
void mixt__cudnn_search_build(mixt__cuda_device *gpu, mixt__cudnn_search *search, int count);
/** Builds the first of each of these searches, where nothing is built yet, on all cores. */
void mixt__cudnn_search_build_first(mixt__cuda_device *gpu, mixt__cudnn_search **searches, int count);
/** Leaves those before `first` out, of which none is built: it becomes the first. */
void mixt__cudnn_search_skip(mixt__cudnn_search *search, int first);
/** Frees what nobody took over. */
void mixt__cudnn_search_end(mixt__cudnn_search *search);

/** A graph that will be asked for soon. */
typedef struct mixt__cudnn_ahead mixt__cudnn_ahead;
struct mixt__cudnn_ahead {
    mixt__cudnn_ahead *next;
    char key[MIXT_CUDNN_KEY];
    mixt__cudnn_graph graph;
    mixt__cudnn_wish wish;
    mixt__cudnn_choice kept; // only this one is built, when `is_kept`
    bool is_kept;
    int wanted; // plans to build
    mixt__cudnn_search search;
};

/** Takes over the graph, which is left empty. Without memory it is left as it is. */
void mixt__cudnn_ahead_add(const char *key, mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, int wanted,
                           const mixt__cudnn_choice *kept);
/** Finishes and builds all that were added, on all cores. */
void mixt__cudnn_ahead_build(mixt__cuda_device *gpu);
/** The one that was added under this key, which is the caller's now; NULL: none. */
mixt__cudnn_ahead *mixt__cudnn_ahead_take(mixt__cuda_device *gpu, const char *key);
bool mixt__cudnn_ahead_has(const mixt__cuda_device *gpu, const char *key);
/** NULL is allowed. */
void mixt__cudnn_ahead_free(mixt__cudnn_ahead *ahead);

#endif
