/* Roles: what is stored of each parameter, as one table.
 *
 * A parameter is a row. A column is a role: the weight that is trained, its moments, its gradient, the copies that
 * kernels read. A role is one record that says in which format its numbers stand, where, and which rank has which of
 * them. Planning, memory, checkpoints, snapshots and ranks go over the records and know none of them by name, so that
 * another format, or another role, is a change of the table and of the kernels that read and write it.
 */
#ifndef MIXT_RUNTIME_ROLES_H
#define MIXT_RUNTIME_ROLES_H

#include "backend/backend.h"

/** Places in the table. Checkpoints and snapshots have roles in this order. */
enum {
    MIXT_PARAM_WEIGHT, // that is trained
    MIXT_PARAM_MOMENT1,
    MIXT_PARAM_MOMENT2,
    MIXT_PARAM_STATE,                       // running statistics
    MIXT_PARAM_ADDED,                       // by mixt__params_add_role
    MIXT_PARAM_WIDE = MIXT_PARAM_ADDED + 2, // + 0, 1: FP32 moments beside those in codes
    MIXT_PARAM_SCALE = MIXT_PARAM_WIDE + 2, // + 0, 1: scales of moments in codes
    MIXT_PARAM_GRADIENT = MIXT_PARAM_SCALE + 2,
    MIXT_PARAM_OWN_GRADIENT,                                // sums of this rank's slices, where gradients are sharded
    MIXT_PARAM_KEPT,                                        // statistics as they were after the last update
    MIXT_PARAM_GATHERED,                                    // where weights come together that are sharded
    MIXT_PARAM_COPY,                                        // + format: what kernels read of a weight in a low format
    MIXT_PARAM_FROZEN = MIXT_PARAM_COPY + MIXT_DTYPE_COUNT, // + format: frozen parameters that are kept in it
    MIXT_PARAM_ROLES = MIXT_PARAM_FROZEN + MIXT_DTYPE_COUNT,
};

typedef enum mixt__role_layout { MIXT_ROLE_AS_IS, MIXT_ROLE_TRANSPOSED } mixt__role_layout;
typedef enum mixt__role_place { MIXT_PLACE_DEVICE, MIXT_PLACE_HOST } mixt__role_place;

/** Which of its numbers a rank has. */
typedef enum mixt__role_owner {
    MIXT_OWNER_ALL,   // all of them
    MIXT_OWNER_SHARD, // its slices, which no other has: see mixt__params_shard
} mixt__role_owner;

/** The row of a memory table that it counts for: see mixt_memory. */
typedef enum mixt__role_counts {
    MIXT_COUNTS_MASTERS,
    MIXT_COUNTS_COPIES,
    MIXT_COUNTS_GRADIENTS,
    MIXT_COUNTS_MOMENTS,
    MIXT_COUNTS_STATE,
    MIXT_COUNTS
} mixt__role_counts;

/** When its memory is taken. */
typedef enum mixt__role_life {
    MIXT_LIFE_WEIGHTS, // with the weights: computing an output needs it
    MIXT_LIFE_COPIES,  // the same; given back when the policy changes
    MIXT_LIFE_TRAINING,
    MIXT_LIFE_GRADIENTS, // with training, or before it
} mixt__role_life;

typedef struct mixt__param_role {
    const char *name;   // in messages: "first moments"; NULL: there is no such role
    const char *prefix; // of its tensors' names in a checkpoint; NULL: it is not saved
    mixt_dtype format;
    bool stochastic; // whoever writes it rounds so; else to the nearest, ties to even
    mixt__scale_kind scales;
    int64_t block; // of MIXT_SCALE_BLOCK
    mixt__role_layout layout;
    mixt__role_place place;
    mixt__role_owner owner;
    mixt__role_counts counts;
    mixt__role_life life;
    int64_t per;                            // elements of a parameter that share one of this role; 0: each has its own
    const struct mixt__param_slice *slices; // of this rank, of what is sharded, in this role's own elements
    const int64_t *offset; // by parameter: its first element; -1: it has no such role. NULL: no parameter has a place
    int64_t elements;      // of all ranks
    int64_t here;          // of this rank's memory
    int64_t scale_count;   // they stand behind the elements, at a multiple of 64 bytes
    size_t bytes;          // of this rank's memory, scales included
    bool borrowed;         // another table's memory
    char *data;            // NULL: not taken yet
} mixt__param_role;

/** What an update needs to know of a role. */
mixt__update_role mixt__role_for_update(const mixt__param_role *role, uint64_t key);
/** A role whose format is FP32, by that type. */
float *mixt__role_fp32(const mixt__param_role *role);
/** Address of an element. */
void *mixt__role_at(const mixt__param_role *role, int64_t element);
/** How many elements of it a parameter with so many has. */
int64_t mixt__role_elements(const mixt__param_role *role, int64_t count);
/** Bytes of so many elements, without scales. */
size_t mixt__role_size(const mixt__param_role *role, int64_t elements);
/** How many scales a parameter has there. */
int64_t mixt__role_scales(const mixt__param_role *role, const mixt__param *param);
/** Address of a scale: they stand parameter after parameter. */
float *mixt__role_scales_at(const mixt__param_role *role, int64_t scale);
/** The shape in which a parameter of this shape stands there: of a transposed matrix, columns first. */
mixt__shape mixt__role_shape(const mixt__param_role *role, const mixt__shape *shape);
/** Whether checkpoints have it. */
bool mixt__role_saved(const mixt__param_role *role);

#endif
