/* Ids of one set among those of another, by their names: numbers follow the order of a file, and say nothing. */
#ifndef MIXT_DATA_IDS_H
#define MIXT_DATA_IDS_H

#include "mixt/data.h"

/** For each id of `now` the id of the same name in `then`; both have names.
 *  @param from (now->ids) set; -1: `then` has none
 *  @param users (ids of users of `now`) what was found for users, where ids are days of theirs: a day is called after
 *    its user's number; NULL: they are not */
mixt_status mixt__ids_match(const mixt_data_array *now, const mixt_data_array *then, const int64_t *users,
                            int64_t *from);

#endif
