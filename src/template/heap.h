/* Memory of a template or of one rendering: taken piece by piece up to a bound, freed together. */
#ifndef MIXT_TEMPLATE_HEAP_H
#define MIXT_TEMPLATE_HEAP_H

#include "base/status.h"

typedef struct mixt__tpl_heap {
    struct mixt__tpl_block *newest;
    char *at, *end;    // what is free of the newest block
    size_t held, most; // bytes of all blocks, and how many there may be
} mixt__tpl_heap;

/** Zeroed memory for an object. */
mixt_status mixt__tpl_take(mixt__tpl_heap *heap, size_t bytes, void **object);
/** Room for a text, not zeroed. */
mixt_status mixt__tpl_take_text(mixt__tpl_heap *heap, size_t bytes, char **text);
/** Lets the text that ends at `end` grow where it stands: the newest piece can, if there is room behind it. */
bool mixt__tpl_grow_text(mixt__tpl_heap *heap, const char *end, size_t more);
void mixt__tpl_heap_free(mixt__tpl_heap *heap);

#endif
