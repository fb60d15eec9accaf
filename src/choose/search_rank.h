/* Which groups of layers lose most in a format: the order in which a search raises them. */
#ifndef MIXT_CHOOSE_SEARCH_RANK_H
#define MIXT_CHOOSE_SEARCH_RANK_H

#include "choose/search.h"

/** Ranks all groups for a format.
 *  @param low letter of the format
 *  @param safe letter of what groups are raised to
 *  @param order room for as many indices as there are groups: the one that loses most for what it saves comes first */
mixt_status mixt__search_rank(mixt__search *s, char low, char safe, int64_t *order);

#endif
