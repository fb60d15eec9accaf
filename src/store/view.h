/* Weights under another program's names and in its layouts, read row by row: what a writer of a further format takes,
 * whether they lie so in a file already or a run has them under the names here. */
#ifndef MIXT_STORE_VIEW_H
#define MIXT_STORE_VIEW_H

#include "store/weights.h"

typedef struct mixt__view mixt__view;
struct mixt__view {
    const mixt__file_tensor *tensors; // (count) names, ranks and dims; without data
    int64_t count;
    /** Rows of the first dimension, from `first` on, as FP32; of a tensor of rank 1 each number is one. */
    mixt_status (*rows)(mixt__view *view, int64_t index, int64_t first, int64_t count, float *values);
    void (*close)(mixt__view *view);
};

/** The tensors of a file, or of several with an index (safetensors.h). */
mixt_status mixt__view_open(const char *path, mixt__view **view);
/** What an export would write; its folder and dtype are not looked at. Of `request`, names and facts are used, and the
 *  request must live as long as the view. */
mixt_status mixt__view_export(const mixt__export_request *request, mixt__view **view);
/** NULL is allowed. */
void mixt__view_close(mixt__view *view);

/** config.json of what mixt__view_export shows; freed with free(). NULL: no memory, or the family has none. */
char *mixt__view_config(const mixt__export_request *request, const mixt__view *view);

#endif
