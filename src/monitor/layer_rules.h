/* What is wrong in the statistics of layers, and for how many looks it has been. */
#ifndef MIXT_WATCH_LAYER_RULES_H
#define MIXT_WATCH_LAYER_RULES_H

#include "mixt/monitor.h"

#include <jansson.h>

/** Looks in a row, up to 255, in which a layer's gradient was mostly flushed and a parameter's was all 0. */
typedef struct mixt__layer_memory {
    uint8_t *flushed, *dead; // by layer, by parameter
    int64_t layers, params;
} mixt__layer_memory;

typedef struct mixt__layer_finding {
    mixt_cause cause;
    double value, limit;
    char layer[128];
    char text[256];
} mixt__layer_finding;

enum { MIXT_LAYER_FINDINGS = 3 };

/** The worst of each kind: a layer close to an overflow, one that is flushed to 0, a parameter that does not learn.
 *  @return how many there are */
int mixt__layer_rules(mixt__layer_memory *memory, const mixt_layer_signals *signals,
                      mixt__layer_finding found[MIXT_LAYER_FINDINGS]);
void mixt__layer_memory_free(mixt__layer_memory *memory);
json_t *mixt__layer_memory_pack(const mixt__layer_memory *memory);
void mixt__layer_memory_unpack(mixt__layer_memory *memory, const json_t *object);

#endif
