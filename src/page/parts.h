/* The page itself, without its data. */
#ifndef MIXT_PAGE_PARTS_H
#define MIXT_PAGE_PARTS_H

#include <stddef.h>
#include <stdio.h>

typedef void mixt__page_put(void *user, const char *data, size_t bytes);

/** The page in pieces. @param data puts what it shows, at the place for it */
void mixt__page_print(mixt__page_put *put, void *user, void (*data)(void *user));
/** The page that asks its server for what it shows. */
void mixt__page_print_live(FILE *stream);

#endif
