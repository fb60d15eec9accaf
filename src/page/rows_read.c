/* Line by line, up to one that is being written. */
#include "base/files.h"
#include "page/rows_read.h"

#include <stdio.h>
#include <stdlib.h>

mixt__page_damage mixt__page_rows(const char *folder, const char *file, mixt__page_row *take, void *user)
{
    char path[4400], *line = NULL;
    size_t room = 0;
    int64_t number = 0;
    mixt__page_damage damage = {0};
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = mixt__file_open_stream(path);
    for (ssize_t length; f && (length = getline(&line, &room, f)) > 0;) {
        number++;
        if (line[length - 1] != '\n')
            break; // is being written
        json_t *row = json_loads(line, 0, NULL);
        if (!take(user, row)) {
            damage.first = damage.rows++ ? damage.first : number;
            json_decref(row);
        }
    }
    free(line);
    if (f)
        fclose(f);
    return damage;
}
