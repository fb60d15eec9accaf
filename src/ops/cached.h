/* The form of attention that goes on from what earlier runs left: made while generating. */
#ifndef MIXT_OPS_CACHED_H
#define MIXT_OPS_CACHED_H

#include "graph/builder.h"
#include "ops/attrs.h"

mixt_value mixt__attention_cached(mixt_builder *b, mixt_value q, mixt_value k, mixt_value v,
                                  const mixt__attention_attrs *attrs);

#endif
