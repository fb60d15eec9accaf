/* The runs in some folders: each itself, or folders in it and in those. They keep their numbers; new ones come behind.
 */
#ifndef MIXT_PAGE_RUN_LIST_H
#define MIXT_PAGE_RUN_LIST_H

#include "mixt/types.h"

typedef struct mixt__run_list {
    char **roots;
    int64_t root_count;
    char **folders;
    int64_t count, capacity;
} mixt__run_list;

/** Fails where there is no such folder, and is to be closed then too; one without runs may get some. */
mixt_status mixt__run_list_open(mixt__run_list *list, const char *const *folders, int64_t count);
/** Looks for new ones. */
void mixt__run_list_scan(mixt__run_list *list);
void mixt__run_list_close(mixt__run_list *list);

#endif
