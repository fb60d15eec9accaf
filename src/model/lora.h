/* LoRA: adapters beside frozen linear layers (Hu et al., 2021).
 *
 * A layer x W^T (+ bias) becomes x W^T (+ bias) + scale · dropout(x) A^T B^T, where A has `rank` rows and B as many
 * columns. It is done to the graph that a model function has built, before its loss: a model function says nothing of
 * adapters and gets them in all of its graphs, and what the head is, which the graph knows, gets none. A layer with
 * several side by side (mixt_linear's parts) has an A whose rows are those of all of them, and a B for each.
 */
#ifndef MIXT_MODEL_LORA_H
#define MIXT_MODEL_LORA_H

#include "mixt/graph.h"

#include <stdint.h>

struct mixt_builder;

typedef struct mixt__lora {
    int64_t rank; // 0: there are no adapters
    float alpha;  // 0: twice the rank
    float dropout;
    bool rslora;        // scale is alpha / sqrt(rank), not alpha / rank
    const char *layers; // globs of layers, or "all-linear"; NULL, "": that
    const char *also;   // globs of parameters that are trained beside; NULL, "": none
} mixt__lora;

/** Endings of parameters' names: "h.0.attn.qkv.lora_a" and "….lora_b"; of a layer with parts "….lora_b.0",
 * "….lora_b.1", each of its own place. */
#define MIXT_LORA_A "lora_a"
#define MIXT_LORA_B "lora_b"

/** What B's product is multiplied by. */
float mixt__lora_scale(const mixt__lora *lora);
/** Whether its numbers make sense. */
mixt_status mixt__lora_check(const mixt__lora *lora);
/** Gives the layers of a graph their adapters. @param logits what the model function returned; may change */
mixt_status mixt__lora_apply(struct mixt_builder *b, const mixt__lora *lora, mixt_value *logits);

#endif
