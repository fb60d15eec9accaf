/* Names of ids looked up in those of another set. */
#include "data/table/ids.h"

#include "base/status.h"
#include "data/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What a user's day is called where the user has another number; NULL: he has none there. The day of nobody stays. */
static const char *day_there(const char *day, const int64_t *users, char *room, size_t size)
{
    char *rest;
    int64_t user = strtoll(day, &rest, 10);
    if (!*day)
        return day;
    *room = '\0';
    if (users[user] >= 0)
        snprintf(room, size, "%lld%s", (long long)users[user], rest);
    return *room ? room : NULL;
}

mixt_status mixt__ids_match(const mixt_data_array *now, const mixt_data_array *then, const int64_t *users,
                            int64_t *from)
{
    mixt__names names = {0};
    char room[400]; // a time may have 309 digits
    bool full = false;
    for (int64_t i = 0; i < then->ids && !full; i++)
        full = mixt__names_add(&names, then->names[i], (int64_t)strlen(then->names[i])) < 0;
    for (int64_t i = 0; i < now->ids; i++) {
        const char *name = users ? day_there(now->names[i], users, room, sizeof room) : now->names[i];
        from[i] = name ? mixt__names_number(&names, name, (int64_t)strlen(name)) : -1;
    }
    mixt__names_free(&names);
    return full ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of %lld ids", (long long)then->ids) : MIXT_OK;
}
