/* The place of each sample in its batch: see ops/places.c. A batch has few samples: one thread. */
#include "backend/cpu/kernels.h"

static mixt_status run(const mixt__call *call)
{
    const int32_t *targets = call->in[0].data;
    int32_t *places = call->out[0].data;
    for (int64_t i = 0; i < mixt__shape_count(&call->in[0].shape); i++)
        places[i] = targets[i] < 0 ? -1 : (int32_t)i;
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = run};

const mixt__kernel *const mixt__cpu_places_kernels[] = {&plain, NULL};
