/* What a page says of one run, beside its columns of numbers. */
#ifndef MIXT_PAGE_RUN_DATA_H
#define MIXT_PAGE_RUN_DATA_H

#include "mixt/metrics.h"

#include <jansson.h>

typedef struct mixt__run_data {
    mixt_metrics *metrics; // NULL: there are none that can be read
    json_t *about;         // name, model, precision, state, problems, events
    json_t *layers;        // rows of layers.jsonl
} mixt__run_data;

/** Fails where there is no run at all; what is missing or damaged in one is said in `about`. */
mixt_status mixt__run_data_read(const char *folder, mixt__run_data *data);
/** The same without figures and events; NULL where the folder's name is not UTF-8. */
json_t *mixt__run_about(const char *folder);
void mixt__run_data_free(mixt__run_data *data);

#endif
