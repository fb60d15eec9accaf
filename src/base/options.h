/* Options that callers give, laid over the defaults: see mixt/types.h. A caller's struct may be smaller or larger than
 * the library's own, so that nobody reads one before it went through here. */
#ifndef MIXT_BASE_OPTIONS_H
#define MIXT_BASE_OPTIONS_H

#include "base/status.h"

/** Lays what the caller gave over `own`, which holds the defaults.
 *  @param given NULL: all defaults */
#define mixt__options(type, own, given) mixt__options_lay(#type, (own), sizeof(type), (1 ? (given) : (const type *)(own)))
mixt_status mixt__options_lay(const char *type, void *own, size_t size, const void *given);

/** Fills a caller's struct of `size` bytes with defaults; what lies behind those that are known becomes 0. NULL and a
 *  size that holds nothing are passed over. */
void mixt__options_fill(void *options, size_t size, const void *own, size_t own_size);

#endif
