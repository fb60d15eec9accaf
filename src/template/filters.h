/* Filters, in two files: of single values, and of lists. */
#ifndef MIXT_TEMPLATE_FILTERS_H
#define MIXT_TEMPLATE_FILTERS_H

#include "template/run.h"

/** NULL: there is none of that name. */
const mixt__tpl_function *mixt__tpl_list_filter(const char *name, size_t size);

#endif
