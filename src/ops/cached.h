/* The form of attention that goes on from what earlier runs left: made while generating. */
#ifndef MIXT_OPS_CACHED_H
#define MIXT_OPS_CACHED_H

#include "graph/builder.h"
#include "ops/attrs.h"

/** Whether the heads of q and those of k and v, perhaps fewer, fit together. */
mixt_status mixt__attention_check_heads(const mixt__attention_attrs *attrs, const mixt__shape *q, const mixt__shape *k,
                                        const char *op);
void mixt__attention_describe(const void *attrs, char *text, size_t size);
mixt_value mixt__attention_cached(mixt_builder *b, mixt_value q, mixt_value k, mixt_value v,
                                  const mixt__attention_attrs *attrs);

#endif
