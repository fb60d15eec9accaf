/* Scanning folders for pictures and clips, and reading a clip's frames. Only names are kept. */
#include "data/image/folder.h"

#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

mixt_status mixt__folder_scan(const char *folder, struct dirent ***entries, int *count)
{
    *count = scandir(folder, entries, visible, by_name);
    return *count >= 0 ? MIXT_OK : mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", folder, strerror(errno));
}

void mixt__folder_free(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

/* ---- pictures ---- */

const char *mixt__picture_kinds(void)
{
    return mixt__picture_is("x.jpg") ? "PPM, PGM, PNG, JPEG" : "PPM, PGM, PNG; JPEG needs libjpeg when mixt is built";
}

bool mixt__picture_may_be_grey(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (!strcasecmp(dot, ".pgm") || !strcasecmp(dot, ".png"));
}

mixt_status mixt__folder_pictures(const char *folder, mixt__folder_fn *each, void *user)
{
    struct dirent **entries;
    int count;
    MIXT_TRY(mixt__folder_scan(folder, &entries, &count));
    mixt_status status = MIXT_OK;
    for (int i = 0; i < count && status == MIXT_OK; i++) {
        const char *name = entries[i]->d_name;
        if (mixt__picture_is_unread(name))
            status = mixt__fail(MIXT_ERROR_DATA, "%s/%s: not an image that mixt reads: convert it (%s), or remove it",
                                folder, name, mixt__picture_kinds());
        else if (mixt__picture_is(name))
            status = each(user, name);
    }
    mixt__folder_free(entries, count);
    return status;
}

bool mixt__folder_has_pictures(const char *folder)
{
    bool found = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));)
        found = visible(entry) && (mixt__picture_is(entry->d_name) || mixt__picture_is_unread(entry->d_name));
    if (entries)
        closedir(entries);
    return found;
}

/* ---- clips ---- */

typedef struct naming {
    mixt__arena *arena;
    mixt__clip *clip;
    const char *folder;
} naming;

static mixt_status count_name(void *user, const char *name)
{
    (void)name;
    ((naming *)user)->clip->count++;
    return MIXT_OK;
}

static mixt_status take_name(void *user, const char *name)
{
    naming *n = user;
    const char *copy = mixt__arena_strdup(n->arena, name);
    if (!copy)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its images", n->folder);
    n->clip->names[n->clip->count++] = copy;
    n->clip->grey = n->clip->grey && mixt__picture_may_be_grey(name);
    return MIXT_OK;
}

mixt_status mixt__clip_list(const char *folder, int64_t frames, mixt__arena *arena, mixt__clip *clip)
{
    *clip = (mixt__clip){.grey = true};
    naming n = {.arena = arena, .clip = clip, .folder = folder};
    MIXT_TRY(mixt__folder_pictures(folder, count_name, &n));
    if (!clip->count)
        return mixt__fail(MIXT_ERROR_DATA, "%s: a clip without frames (%s): add them, or remove the folder", folder,
                          mixt__picture_kinds());
    if (clip->count < frames)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: a clip of %lld frames, but a sample has %lld: lower data.frames, or remove the clip",
                          folder, (long long)clip->count, (long long)frames);
    clip->names = mixt__arena_alloc(arena, (size_t)clip->count * sizeof *clip->names);
    if (!clip->names)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its images", folder);
    int64_t room = clip->count;
    clip->count = 0;
    MIXT_TRY(mixt__folder_pictures(folder, take_name, &n));
    return clip->count == room ? MIXT_OK : mixt__fail(MIXT_ERROR_FILE, "%s: is changing while it is read", folder);
}

mixt_status mixt__clip_read(const char *folder, const mixt__clip *clip, int64_t frame, int64_t frames, int64_t channels,
                            const mixt__picture *first, mixt__picture *picture)
{
    char path[MIXT_PATH_SIZE];
    int64_t at = frames > 1 ? frame * (clip->count - 1) / (frames - 1) : 0;
    if (snprintf(path, sizeof path, "%s/%s", folder, clip->names[at]) >= MIXT_PATH_SIZE)
        return mixt__fail(MIXT_ERROR_FILE, "%s/%s: the path is too long", folder, clip->names[at]);
    MIXT_TRY(mixt__picture_read(path, channels, picture));
    if (!first || (picture->height == first->height && picture->width == first->width))
        return MIXT_OK;
    mixt_status status = mixt__fail(
        MIXT_ERROR_DATA, "%s: %lld x %lld pixels, but the clip's first frame has %lld x %lld: a clip has one size",
        path, (long long)picture->height, (long long)picture->width, (long long)first->height, (long long)first->width);
    mixt__picture_free(picture);
    return status;
}

bool mixt__clips_are_in(const char *folder)
{
    char path[MIXT_PATH_SIZE];
    struct dirent **classes, **clips;
    int class_count, clip_count;
    bool found = false;
    if (mixt__folder_scan(folder, &classes, &class_count) != MIXT_OK)
        return false;
    for (int i = 0; i < class_count && !found; i++) {
        int used = snprintf(path, sizeof path, "%s/%s", folder, classes[i]->d_name);
        if (used >= MIXT_PATH_SIZE ||
            (classes[i]->d_type != DT_DIR && classes[i]->d_type != DT_UNKNOWN && classes[i]->d_type != DT_LNK))
            continue;
        if (mixt__folder_scan(path, &clips, &clip_count) != MIXT_OK)
            continue;
        for (int k = 0; k < clip_count && !found; k++)
            found =
                snprintf(path + used, sizeof path - (size_t)used, "/%s", clips[k]->d_name) < MIXT_PATH_SIZE - used &&
                mixt__folder_has_pictures(path);
        mixt__folder_free(clips, clip_count);
    }
    mixt__folder_free(classes, class_count);
    return found;
}
