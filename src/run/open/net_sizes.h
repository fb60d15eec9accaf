/* The sizes of a model, which have three places: keys of a configuration, what the zoo builds from, and what another
 * program's config.json says.
 */
#ifndef MIXT_RUN_NET_SIZES_H
#define MIXT_RUN_NET_SIZES_H

#include "config/config.h"
#include "models/models.h"
#include "store/names.h"

/** Numbers of a configuration to those of a model. */
mixt_status mixt__net_sizes_read(const mixt_config *config, mixt__model_sizes *sizes);
/** What config.json would say of a decoder, beside what its tensors tell. */
mixt_status mixt__net_sizes_facts(const mixt_config *config, const mixt__zoo_entry *entry, mixt__name_facts *facts);
/** What config.json says, as keys. @param missing only those that were not set before */
mixt_status mixt__net_sizes_set(mixt_config *config, const mixt__zoo_entry *entry, const mixt__name_facts *facts,
                                bool missing, const char *origin);
/** Sets a key, unless it was set before and `missing` is true. */
mixt_status mixt__net_size_set(mixt_config *config, bool missing, mixt__config_key key, const char *value,
                               const char *origin);
mixt_status mixt__net_size_set_number(mixt_config *config, bool missing, mixt__config_key key, double value,
                                      const char *origin);

#endif
