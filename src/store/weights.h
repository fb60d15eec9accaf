/* Weights from a file of mixt or of another program into tensors here, and from here into such a file.
 *
 * Everything is checked when a file is opened: after that, reading cannot find a tensor missing or misshapen.
 */
#ifndef MIXT_STORE_WEIGHTS_H
#define MIXT_STORE_WEIGHTS_H

#include "num/nf4.h"
#include "store/names.h"
#include "store/safetensors.h"

/** What is known of the rows of a tensor here, where names tell more than numbers. */
typedef struct mixt__weights_rows {
    const char *tensor;  // its name
    const char *others;  // why those of the file stand for something else: it is not taken; NULL: they do not
    const int64_t *from; // (rows here) the row of the file that each is; -1: it has none, and the row stays as it is;
                         // NULL: the same row
    int64_t there;       // rows that the file must have
    float add;           // to every number that is taken
} mixt__weights_rows;

typedef struct mixt__weights_request {
    const char *path;                // a .safetensors file, or a folder with model.safetensors and perhaps config.json
    const mixt__names *names;        // of the other program; NULL: only files with the names here
    const mixt__name_facts *facts;   // what config.json is held against; NULL: it is not looked at
    const mixt__file_tensor *wanted; // name, rank, dims; borrowed
    int64_t count, vocab; // vocab: tokens that the file must have at least, where tables here have more; 0: all of them
    int64_t positions;    // the same of places in a text
    const char *skip;     // globs over names here: not taken from the file
    const char *new_head; // the same: taken only where the file has them in the right shape
    const char *tokens;   // folder of the tokenizer that belongs to the file and is not used, for messages; NULL: none
    const mixt__weights_rows *rows; // (row_count) of tensors whose rows have names; borrowed until the file is closed
    int64_t row_count;
} mixt__weights_request;

typedef struct mixt__weights {
    char path[4096];
    mixt__safetensors *file;
    mixt__name_plan plan;
    const mixt__file_tensor **sources; // by entry of the plan; NULL: not taken
    bool *taken;                       // by wanted tensor
    float *buffer;
    int64_t vocab, positions;       // of the request
    const char *tokens;             // the same, while it is opened
    const mixt__weights_rows *rows; // of the request
    int64_t row_count;
    int64_t places;      // rows of the table of positions that were taken; 0: none
    bool foreign;        // in the names and layouts of the other program
    int64_t loaded;      // tensors taken
    int64_t padded;      // rows past the vocabulary of the file, which get the mean of the others
    char skipped[512];   // wanted but not taken: names, for people
    char left_over[512]; // in the file but not wanted
    int64_t left;        // how many of those there are
} mixt__weights;

enum { MIXT_WEIGHTS_WARNING = 4096 + 512 + 128 }; // bytes of a line

/** A file whose metadata says "format": "mixt" has the names here; any other those of request->names. */
mixt_status mixt__weights_open(const mixt__weights_request *request, mixt__weights **weights);
/** Values of wanted tensor `index`, which must be taken. Rows for places or names that the file does not have stay as
 * they are in `values`. */
mixt_status mixt__weights_read(mixt__weights *weights, int64_t index, float *values);
/** The same of a tensor that is NF4 there, as it is there: its codes and scales. False: it is not, or its parts are
 *  others. @param scales (mixt__nf4_words) all zeros */
bool mixt__weights_read_nf4(const mixt__weights *w, int64_t index, const mixt__nf4_matrix *matrix, uint8_t *codes,
                            float *scales);
/** What a person must know who takes the model for that of the file: a line that counts its tensors which the model
 *  here does not have; "": it has all of them. */
void mixt__weights_warning(const mixt__weights *weights, char warning[MIXT_WEIGHTS_WARNING]);
void mixt__weights_close(mixt__weights *weights);

/** Gives the values of tensor `index`. */
typedef mixt_status mixt__export_values(void *user, int64_t index, float *values);

typedef struct mixt__export_request {
    const char *source;       // a file with the names here; in messages where there are `values`
    const char *folder;       // exists
    const mixt__names *names; // NULL: the names stay
    mixt__name_facts facts;   // heads and architecture; the others are read off the tensors
    mixt_dtype dtype;         // FP32, FP16 or BF16
    int64_t vocab, positions; // tokens and places that count; 0: all
    bool overwrite;
    bool not_finite;                  // weights that are not finite are written too
    const mixt__file_tensor *tensors; // (tensor_count) in place of the file's, with `values`
    int64_t tensor_count;
    mixt__export_values *values; // NULL: the file's
    void *user;
} mixt__export_request;

/** Writes folder/model.safetensors and, for a family that has one, folder/config.json; each all or nothing.
 *  @param differs why the other program's own model does not take the tensors */
mixt_status mixt__weights_export(const mixt__export_request *request, int64_t *tensors, mixt__name_differs *differs);

/** Reads sizes off tensors: what heads, architecture and dtype are stays as it is. */
void mixt__name_facts_read(mixt__name_facts *facts, const mixt__file_tensor *here, int64_t count);

#endif
