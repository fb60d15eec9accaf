/* NumPy arrays that lie together, in an archive or a folder: which hold samples, which their labels, and of which part.
 */
#ifndef MIXT_DATA_ARRAY_FILES_H
#define MIXT_DATA_ARRAY_FILES_H

#include "data/data.h"
#include "store/tensor.h"

/** What the name of an array says it holds. */
typedef enum mixt__array_role { MIXT_ARRAY_ANY, MIXT_ARRAY_INPUTS, MIXT_ARRAY_LABELS } mixt__array_role;

/** One array of an archive, or of a file of its own. Texts live with the data set. */
typedef struct mixt__array_file {
    const char *file;
    const char *member; // its name in the archive; NULL: the file is an .npy
    const char *name;   // as data.inputs and data.labels name it: the member, or of a folder the file
    const char *path;   // for messages
    const char *rest;   // its name without words for a part or a role: equal in those that belong together
    mixt__part part;    // MIXT_PART_ALL: its name says none
    mixt__array_role role;
    int word; // of those for its role: the lower, the surer
    int rank; // 0: its header could not be read
    int64_t dims[MIXT__FILE_RANK];
} mixt__array_file;

typedef struct mixt__array_files {
    mixt__array_file *arrays; // (count) in the data set's memory
    int64_t count;
    bool beside; // the first ones are of one file, the others of files beside it
} mixt__array_files;

/** Lists the arrays of an .npz archive, an .npy file, or a folder of such files, whose order is that of their names.
 *  @param beside with those of the files beside a file */
mixt_status mixt__array_files_list(mixt__arena *arena, const char *path, bool beside, mixt__array_files *files);

/** The samples and labels of a part; false: none are known by their names or shapes. `inputs` and `labels` are names
 *  that were given, or NULL. */
bool mixt__array_files_pair(const mixt__array_files *files, mixt__part part, const char *inputs, const char *labels,
                            const mixt__array_file **x, const mixt__array_file **y);
/** The array that is called so; NULL: there is none. */
const mixt__array_file *mixt__array_files_find(const mixt__array_files *files, const char *name);
/** Lists those of one more file. */
mixt_status mixt__array_files_add(mixt__arena *arena, const char *file, mixt__array_files *files);
/** Samples alone, of any part; NULL: not known. */
const mixt__array_file *mixt__array_files_inputs(const mixt__array_files *files);

/** "x [60000, 28, 28], y [60000]", for a message: in the arena. */
const char *mixt__array_files_text(mixt__arena *arena, const mixt__array_files *files);

/** What a file's name says: of which part it is (MIXT_PART_ALL: none), and what it holds. */
void mixt__array_name(const char *name, mixt__part *part, mixt__array_role *role);

/** Whether a folder holds .npy or .npz files. */
bool mixt__array_files_are_in(const char *folder);

#endif
