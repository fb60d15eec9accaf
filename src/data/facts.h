/* What a trained model must know of its data, apart from the data: shapes, units, classes, and by which checksum the
 * samples are known again. Packed as JSON when a run begins; unpacked it is a data set that describes samples and has
 * none.
 */
#ifndef MIXT_DATA_FACTS_H
#define MIXT_DATA_FACTS_H

#include "data/data.h"

#include <jansson.h>

/** What is to be remembered of an open set; NULL: no memory. Names that are no UTF-8 are kept with '?' for the bytes
 *  that are none. */
json_t *mixt__data_facts_pack(const mixt_data *data);
/** A set that describes samples as the packed one does, for mixt_inputs_open, as `like` of another set, or to compile
 *  for; reading samples of it fails. Everything is checked.
 *  @param data set to the set, close it with mixt_data_close; NULL on failure */
mixt_status mixt__data_facts_unpack(const json_t *facts, mixt_data **data);
/** The first class that has another name in a set that was packed: a name with '?' for bytes that are no UTF-8 is any.
 *  -1: none, or one of both has no names. */
int64_t mixt__data_facts_other_class(const char *const *now, int64_t now_count, const char *const *then,
                                     int64_t then_count);
/** Whether a set only describes samples. */
bool mixt__data_is_facts(const mixt_data *data);

#endif
