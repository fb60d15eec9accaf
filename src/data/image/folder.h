/* Folders and the pictures in them, in the order of names: what is read does not depend on the file system. */
#ifndef MIXT_DATA_FOLDER_H
#define MIXT_DATA_FOLDER_H

#include "mixt/types.h"

#include "base/alloc.h"
#include "data/image/picture.h"

#include <dirent.h>

enum { MIXT_PATH_SIZE = 4096 };

/** Entries whose names do not begin with a dot, sorted; free them with mixt__folder_free. */
mixt_status mixt__folder_scan(const char *folder, struct dirent ***entries, int *count);
void mixt__folder_free(struct dirent **entries, int count);

/** Calls `each` with the name of every picture that can be read. Files that are no pictures may lie beside them;
 *  pictures that cannot be read may not: one would think that they were trained on. */
typedef mixt_status mixt__folder_fn(void *user, const char *name);
mixt_status mixt__folder_pictures(const char *folder, mixt__folder_fn *each, void *user);
/** Whether there is one, of a kind that can be read or not. */
bool mixt__folder_has_pictures(const char *folder);
/** The kinds of pictures that can be read here, in words. */
const char *mixt__picture_kinds(void);
/** Whether a name leaves it open that the picture is grey: .pgm, .png. */
bool mixt__picture_may_be_grey(const char *name);

/** The usual shorter side of pictures in a folder and in those below it, by a few of them; 0: none can be read.
 *  @param grey whether all of these are */
int64_t mixt__pictures_side(const char *folder, bool *grey);

/** A clip is a folder of pictures of one size: its frames. */
typedef struct mixt__clip {
    const char **names; // (count) in the arena
    int64_t count;
    bool grey; // every name leaves that open
} mixt__clip;

/** Lists the pictures of a clip. Fails where there are fewer than `frames`. */
mixt_status mixt__clip_list(const char *folder, int64_t frames, mixt__arena *arena, mixt__clip *clip);
/** Reads frame `frame` of `frames`, which are spread evenly from the clip's first picture to its last. `first` is the
 *  clip's first frame, whose size the others must have; NULL: this is it. */
mixt_status mixt__clip_read(const char *folder, const mixt__clip *clip, int64_t frame, int64_t frames, int64_t channels,
                            const mixt__picture *first, mixt__picture *picture);
/** Whether the folder has class folders with clips in them. */
bool mixt__clips_are_in(const char *folder);

#endif
