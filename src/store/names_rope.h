/* What config.json says of rotary positions. */
#ifndef MIXT_STORE_NAMES_ROPE_H
#define MIXT_STORE_NAMES_ROPE_H

#include "store/names.h"

#include <jansson.h>

/** The entry "rope_scaling" of these facts: null where frequencies stay. NULL: no memory. */
json_t *mixt__rope_pack(const mixt__name_facts *facts);
/** The share of a head that turns. NULL: no memory. */
json_t *mixt__rope_pack_share(const mixt__name_facts *facts);
/** Reads theta and scaling from "rope_theta" and "rope_scaling", or from "rope_parameters", which has both; head_dim
 * and positions are known. Fails on a kind of scaling that the model here does not have. */
mixt_status mixt__rope_read(const mixt__names *names, const json_t *config, const char *path, mixt__name_facts *facts);
/** Fails where positions or windows that were read differ from the facts here. */
mixt_status mixt__rope_check(const char *path, const mixt__name_facts *there, const mixt__name_facts *facts);

#endif
