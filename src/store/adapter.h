/* Adapters as PEFT's files: adapter_model.safetensors and adapter_config.json in a folder.
 *
 * A plan pairs the tensors of adapters here with those there. Here a layer "L" has "L.lora_a" and "L.lora_b", or, where
 * it is several side by side, "L.lora_b.0", "L.lora_b.1", … and rows of all of them in "L.lora_a"; there each of these
 * is a module of its own, under the name that the family of the model has for it (names.h). Writing and reading both
 * follow the plan. Parameters that are trained beside are whole tensors on both sides.
 */
#ifndef MIXT_STORE_ADAPTER_H
#define MIXT_STORE_ADAPTER_H

#include "store/names.h"
#include "store/safetensors.h"

#define MIXT_ADAPTER_FILE "adapter_model.safetensors"
#define MIXT_ADAPTER_CONFIG "adapter_config.json"

/** What tensors do not tell. */
typedef struct mixt__adapter_facts {
    int64_t rank;
    double alpha, dropout;
    bool rslora;
    const char *base; // the model that it is of: a path or a name; NULL, "": unknown
    const char *task; // "CAUSAL_LM"; NULL: none
} mixt__adapter_facts;

typedef struct mixt__adapter_entry {
    int64_t here;        // index of the tensor here
    int64_t first, rows; // its rows
    int64_t whole;       // place in the names' plan, of a tensor that is trained beside; -1: it is an adapter's
    mixt__file_tensor there;
} mixt__adapter_entry;

typedef struct mixt__adapter_plan {
    const mixt__names *names;
    const mixt__name_facts *facts; // while the plan is made
    const mixt__file_tensor *here; // borrowed
    int64_t here_count;
    mixt__name_plan base; // of all tensors that are no adapters'
    mixt__file_tensor *own;
    int64_t *own_here; // by tensor of that plan: its index here
    mixt__adapter_entry *entries;
    int64_t count, capacity;
    const char **modules; // (module_count) there, that have adapters
    int64_t module_count, module_capacity;
    bool transposed; // modules there keep their weights so
    mixt__arena arena;
} mixt__adapter_plan;

/** Pairs what is trained. @param names NULL: the same names on both sides
 *  @param facts of the model: its heads
 *  @param here all of the model's tensors, adapters among them
 *  @param beside by tensor: whether it is trained beside adapters */
mixt_status mixt__adapter_plan_make(mixt__adapter_plan *plan, const mixt__names *names, const mixt__name_facts *facts,
                                    const mixt__file_tensor *here, const bool *beside, int64_t count);
void mixt__adapter_plan_free(mixt__adapter_plan *plan);

/** Gives the values of a tensor here. */
typedef mixt_status mixt__adapter_values(void *user, int64_t here, float *values);
/** Writes the tensors. */
mixt_status mixt__adapter_write_tensors(const mixt__adapter_plan *plan, const char *path, bool overwrite,
                                        mixt__adapter_values *values, void *user);
/** Writes both files into a folder that is there; each all or nothing. */
mixt_status mixt__adapter_write(const mixt__adapter_plan *plan, const mixt__adapter_facts *facts, const char *folder,
                                bool overwrite, mixt__adapter_values *values, void *user);

/** Whether a folder has the files of an adapter. */
bool mixt__adapter_is(const char *folder);
/** Reads adapter_config.json; fails, naming the field, on what would compute something else here.
 *  @param facts texts are in the arena */
mixt_status mixt__adapter_read_config(const char *folder, mixt__arena *arena, mixt__adapter_facts *facts);
/** The layers that an adapter is of, as a list of globs of layers here, and what is trained beside, both in the arena.
 *  @param layers of the model */
mixt_status mixt__adapter_read_layers(const char *folder, const mixt__names *names, int64_t layers, mixt__arena *arena,
                                      const char **globs, const char **also);
/** Opens the tensors, each of which is one of the plan, and none is missing. */
mixt_status mixt__adapter_open(const mixt__adapter_plan *plan, const char *folder, mixt__safetensors **file);
/** Puts what the file has of a tensor here into its values. @param found receives whether it has anything of it */
mixt_status mixt__adapter_read(const mixt__adapter_plan *plan, const mixt__safetensors *file, int64_t here,
                               float *values, bool *found);

#endif
