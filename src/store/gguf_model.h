/* What a model is in GGUF: its architecture there, names and layouts of its tensors, and the keys that describe it.
 *
 * It starts from config.json and tensors as Hugging Face has them. A family is a row of a table (gguf_model.c); what
 * the architecture there would compute otherwise is refused by name.
 */
#ifndef MIXT_STORE_GGUF_MODEL_H
#define MIXT_STORE_GGUF_MODEL_H

#include "base/alloc.h"
#include "store/gguf.h"
#include "store/view.h"

#include <jansson.h>

/** How a tensor gets there. */
typedef enum mixt__gguf_move {
    MIXT_GGUF_AS_IS,
    MIXT_GGUF_QUERIES, // rows of a head whose halves are rotated together: pairs are neighbours there
    MIXT_GGUF_KEYS,    // the same of keys
    MIXT_GGUF_NORM,    // a norm's weight, to which 1 is added where the family does that
    MIXT_GGUF_TURNED,  // (in, out) → (out, in)
} mixt__gguf_move;

typedef struct mixt__gguf_name {
    const char *there, *name; // '#' stands for a layer's number; Hugging Face's, and GGUF's
    mixt__gguf_move move;
} mixt__gguf_name;

typedef struct mixt__gguf_family {
    const char *type; // model_type of config.json
    const char *architecture;
    const mixt__gguf_name *names;
    bool pairs;      // rotates neighbours, not halves
    bool plus_one;   // norms multiply by 1 + their weight
    bool own_output; // must have an output head of its own
    bool tied;       // never has one
    bool smooth;     // knows rotary scaling of kind llama3
    int windows;     // layers of which the last looks at everything, the others at a window; 0: no layer has a window
    int64_t widest;  // of these layers the scale of attention is that of a width, of all others that of a head
} mixt__gguf_family;

/** Where a tensor of the file comes from. */
typedef struct mixt__gguf_source {
    int64_t there; // index of the tensor there; -1: `values`
    float *values; // made, not read
    int64_t heads; // that its rows are of, where they change places
    bool add;      // 1 to each
    mixt__gguf_move move;
} mixt__gguf_source;

typedef struct mixt__gguf_model {
    const mixt__gguf_family *family;
    const char *path; // of config.json, for messages
    const json_t *config;
    mixt__view *view;
    mixt__gguf_type type;
    mixt__gguf_tensor *tensors;
    mixt__gguf_source *sources; // (count)
    int64_t count, capacity, source_capacity;
    int64_t width, heads, kv_heads, head, layers, positions, vocab;
    char note[256]; // what a user must know of the file; ""
    mixt__arena arena;
} mixt__gguf_model;

/** The architecture of a config.json; MIXT_ERROR_UNSUPPORTED names it where GGUF has none for it here. */
mixt_status mixt__gguf_model_open(mixt__gguf_model *model, const char *path, const json_t *config, mixt__view *view,
                                  mixt__gguf_type type);
/** The family and sizes alone. */
mixt_status mixt__gguf_model_begin(mixt__gguf_model *model, const char *path, const json_t *config, mixt__view *view,
                                   mixt__gguf_type type);
/** An adapter of PEFT's (LoRA) as a file of its own, for the model of a config.json (gguf_adapter.c).
 *  @param about adapter_config.json */
mixt_status mixt__gguf_adapter_open(mixt__gguf_model *model, const char *path, const json_t *config, mixt__view *view,
                                    mixt__gguf_type type);
mixt_status mixt__gguf_adapter_fields(const mixt__gguf_model *model, const json_t *about, mixt__gguf_fields *fields,
                                      const char *name);
void mixt__gguf_model_close(mixt__gguf_model *model);
/** Keys of the model, general.architecture first. */
mixt_status mixt__gguf_model_fields(mixt__gguf_model *model, mixt__gguf_fields *fields, const char *name);
/** For mixt__gguf_write, the model as its argument. */
mixt_status mixt__gguf_model_rows(void *model, int64_t index, int64_t first, int64_t rows, float *values);

/** A number of config.json; `otherwise` where it does not say. */
double mixt__gguf_number(const mixt__gguf_model *model, const char *key, double otherwise);
/** Puts a key of the architecture ("llama.block_count"). */
void mixt__gguf_model_put(const mixt__gguf_model *model, mixt__gguf_fields *fields, const char *key, int64_t value);
void mixt__gguf_model_put_real(const mixt__gguf_model *model, mixt__gguf_fields *fields, const char *key, double value);
/** Rotary positions: their keys, and tensors of factors (gguf_rope.c). */
mixt_status mixt__gguf_rope_fields(mixt__gguf_model *model, mixt__gguf_fields *fields);
mixt_status mixt__gguf_rope_tensors(mixt__gguf_model *model);
/** Adds a tensor of the file. */
mixt_status mixt__gguf_model_push(mixt__gguf_model *model, const mixt__gguf_tensor *tensor,
                                  const mixt__gguf_source *source);
/** The row for a tensor there, whose name may leave its beginning ("model.") away; NULL: there is none. */
const mixt__gguf_name *mixt__gguf_row_of(const mixt__gguf_family *family, const char *name, int64_t *layer);
/** A row's name with the layer's number in it; NULL: no memory. */
const char *mixt__gguf_name_of(mixt__gguf_model *model, const mixt__gguf_name *row, int64_t layer);
/** Adds a tensor that is made. `values` in the model's arena. */
mixt_status mixt__gguf_model_add(mixt__gguf_model *model, const char *name, float *values, int64_t count);

#endif
