/* Inside folding: walks over the elements of constants. */
#ifndef MIXT_ONNX_FOLD_H
#define MIXT_ONNX_FOLD_H

#include "onnx/import.h"

/** All places of a shape, row by row. */
typedef struct mixt__walk {
    int rank;
    int64_t dims[MIXT_ONNX_RANK], at[MIXT_ONNX_RANK];
    bool more;
} mixt__walk;

static inline mixt__walk mixt__walk_start(int rank, const int64_t *dims)
{
    mixt__walk w = {.rank = rank, .more = true};
    for (int i = 0; i < rank; i++) {
        w.dims[i] = dims[i];
        w.more = w.more && dims[i] > 0;
    }
    return w;
}

static inline bool mixt__walk_more(const mixt__walk *w)
{
    return w->more;
}

static inline void mixt__walk_next(mixt__walk *w)
{
    int i = w->rank - 1;
    for (; i >= 0 && ++w->at[i] == w->dims[i]; i--)
        w->at[i] = 0;
    w->more = i >= 0;
}

/** Where an array of such steps has this place. */
static inline int64_t mixt__walk_at(const mixt__walk *w, const int64_t *steps)
{
    int64_t at = 0;
    for (int i = 0; i < w->rank; i++)
        at += w->at[i] * steps[i];
    return at;
}

/** Whether an op only moves elements, or makes them. */
bool mixt__onnx_folds_shape(mixt__wire_span op);
/** Nodes of such. */
mixt_status mixt__onnx_fold_shape(mixt__import *m, const mixt__onnx_node *n);

#endif
