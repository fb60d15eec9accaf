/* How a reduction lies in memory: what the fast candidates of every backend begin with. */
#ifndef MIXT_BACKEND_REDUCE_H
#define MIXT_BACKEND_REDUCE_H

#include "backend/backend.h"

/** The tensor as (outer, summed, inner). */
typedef struct mixt__reduce_layout {
    int64_t outer, summed, inner;
} mixt__reduce_layout;

/** False when summed and kept dimensions alternate more than (kept, summed, kept). */
static inline bool mixt__reduce_find(const mixt__call *call, mixt__reduce_layout *l)
{
    const mixt__reduce_attrs *at = (const mixt__reduce_attrs *)call->attrs;
    const mixt__shape *shape = &call->in[0].shape;
    int stage = 0; // 0: outer, 1: summed, 2: inner
    l->outer = l->summed = l->inner = 1;
    for (int i = 0; i < shape->rank; i++) {
        bool summed = at->axes >> i & 1;
        if (shape->dims[i] == 1)
            continue;
        if (summed && stage == 2)
            return false;
        stage = summed ? 1 : stage == 1 ? 2 : stage;
        *(stage == 0 ? &l->outer : stage == 1 ? &l->summed : &l->inner) *= shape->dims[i];
    }
    return true;
}

#endif
