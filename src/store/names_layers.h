/* What config.json says of single layers: which have a window, which have no positions. */
#ifndef MIXT_STORE_NAMES_LAYERS_H
#define MIXT_STORE_NAMES_LAYERS_H

#include "store/names.h"

#include <jansson.h>

/** Reads them into window, full_every and nope_every; sliding_window itself has been read. Fails on a pattern that the
 *  model here does not have. */
mixt_status mixt__layers_read(const mixt__names *names, const json_t *config, const char *path,
                              mixt__name_facts *facts);
/** An entry with a word or a number for each layer. NULL: no memory. */
json_t *mixt__layers_pack(mixt__name_special special, const mixt__name_facts *facts);

#endif
