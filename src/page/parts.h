/* The page itself, without its data. */
#ifndef MIXT_PAGE_PARTS_H
#define MIXT_PAGE_PARTS_H

#include "mixt/types.h"

#include <stddef.h>
#include <stdio.h>

typedef void mixt__page_put(void *user, const char *data, size_t bytes);

/** The page in pieces; where it fails it is not whole. @param data puts what it shows, at the place for it */
mixt_status mixt__page_print(mixt__page_put *put, void *user, void (*data)(void *user));
/** The page that asks its server for what it shows. */
mixt_status mixt__page_print_live(FILE *stream);

#endif
