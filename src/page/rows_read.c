/* Line by line, up to one that is being written. */
#include "page/rows_read.h"

#include "base/status.h"
#include "store/json.h"
#include "store/json_rows.h"

#include <stdio.h>
#include <string.h>

typedef struct reading {
    mixt__page_row *take;
    void *user;
    mixt__page_damage *damage;
} reading;

static mixt_status take_line(void *user, const char *text, int64_t line)
{
    const reading *r = user;
    json_t *row;
    if (!strchr(text, '\n'))
        return MIXT_OK; // is being written
    MIXT_TRY(mixt__json_row(text, &row));
    if (!r->take(r->user, row)) {
        r->damage->first = r->damage->rows++ ? r->damage->first : line;
        json_decref(row);
    }
    return MIXT_OK;
}

mixt_status mixt__page_rows(const char *folder, const char *file, mixt__page_row *take, void *user,
                            mixt__page_damage *damage)
{
    char path[4400];
    reading r = {take, user, damage};
    *damage = (mixt__page_damage){0};
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return mixt__json_lines_read(path, take_line, &r);
}
