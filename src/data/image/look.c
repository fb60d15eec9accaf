/* How large the pictures of a folder are, and whether they are grey, by a few of them. */
#include "data/image/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURES = 64, OF_A_FOLDER = 8 };

typedef struct looking {
    const char *folder;
    int64_t sides[PICTURES];
    int count, of_folder;
    bool grey;
} looking;

static mixt_status look_at(void *user, const char *name)
{
    looking *l = user;
    char path[MIXT_PATH_SIZE];
    mixt__picture picture;
    if (l->count == PICTURES || l->of_folder == OF_A_FOLDER ||
        snprintf(path, sizeof path, "%s/%s", l->folder, name) >= MIXT_PATH_SIZE ||
        mixt__picture_read(path, 0, &picture) != MIXT_OK)
        return MIXT_OK; // whoever trains on it says what is wrong with it
    l->sides[l->count++] = picture.height < picture.width ? picture.height : picture.width;
    l->of_folder++;
    l->grey = l->grey && picture.channels == 1;
    mixt__picture_free(&picture);
    return MIXT_OK;
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/** Looks at the pictures of a folder, and of folders in it down to `depth`. */
static void look_into(looking *l, const char *folder, int depth)
{
    struct dirent **entries;
    char path[MIXT_PATH_SIZE];
    int count;
    l->folder = folder;
    l->of_folder = 0;
    (void)mixt__folder_pictures(folder, look_at, l);
    if (!depth || mixt__folder_scan(folder, &entries, &count) != MIXT_OK)
        return;
    for (int i = 0; i < count && l->count < PICTURES; i++)
        if ((entries[i]->d_type == DT_DIR || entries[i]->d_type == DT_LNK || entries[i]->d_type == DT_UNKNOWN) &&
            snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < MIXT_PATH_SIZE)
            look_into(l, path, depth - 1);
    mixt__folder_free(entries, count);
}

int64_t mixt__pictures_side(const char *folder, bool *grey)
{
    looking l = {.grey = true};
    look_into(&l, folder, 3); // part, class, clip
    *grey = l.count && l.grey;
    qsort(l.sides, (size_t)l.count, sizeof l.sides[0], by_size);
    return l.count ? l.sides[l.count / 2] : 0;
}
