/* All parameters of a model in flat arenas, one per role (roles.h), cut alike: weights, gradients, moments, and the
 * low-precision working copies. Running statistics, which have neither gradient nor moments, stand in an arena of their
 * own. A forward pass moves those before anyone knows whether its step counts: in training they are also kept as they
 * were after the last update that was applied. Frozen parameters (frozen.c) have no FP32 weight unless something reads
 * it: each is kept once, in the format in which it is read. A teacher's parameters (fixed.c) stand in a block of their
 * own, each in the formats in which it is read and no other.
 */
#ifndef MIXT_RUNTIME_PARAMS_H
#define MIXT_RUNTIME_PARAMS_H

#include "runtime/roles.h"

/** The low-precision working copy of a parameter. */
typedef struct mixt__param_copy {
    mixt_dtype dtype; // NONE: it has none
    int64_t offset;   // in the arena of that format
} mixt__param_copy;

/** Frozen parameters: where each is kept. */
typedef struct mixt__params_frozen {
    mixt_dtype *home; // by parameter: the format that it is kept in; NONE: it is not frozen
    int64_t *offset;  // (formats, parameters): its first element; -1: it is not kept in that format
    int64_t *scale;   // by parameter: its first scale, where its format has any
    int64_t version;  // changes with their values
    int64_t followed; // the owner's, when its values were taken over
} mixt__params_frozen;

/** Where a teacher's parameter lies. */
typedef struct mixt__param_fixed {
    int64_t offset[MIXT_DTYPE_COUNT]; // in the block, in bytes, by format; -1: nobody reads it in that one
} mixt__param_fixed;

/** Elements of the flat arenas that this rank has of those that are sharded. */
typedef struct mixt__param_slice {
    int64_t begin, count; // in the flat arenas
    int64_t at;           // in the arenas of its own
} mixt__param_slice;

/** Moments in codes of blocks (num/blocks.h) take three arenas in place of one: codes, FP32 moments of parameters that
 *  stay in that, scales. Each has its own place for each segment. */
enum { MIXT_SPACE_CODES, MIXT_SPACE_WIDE, MIXT_SPACE_SCALES, MIXT_SPACES };
typedef struct mixt__params_codes {
    int64_t *offset[MIXT_SPACES]; // by parameter: its first element; -1: none. NULL: no moment is in codes
    int64_t *begin[MIXT_SPACES];  // (segments + 1): where the elements of a segment, or of what follows, begin
    mixt__param_slice *slices[MIXT_SPACES]; // of this rank, where moments are sharded
} mixt__params_codes;

/** What is kept of this rank's slices alone. */
typedef struct mixt__params_shard {
    bool moments, gradients, masters;
    int64_t room;                    // elements of such an arena
    int64_t space_room[MIXT_SPACES]; // of one of moments in codes
    mixt__param_slice *slices;
    int64_t slice_count;
    int64_t window;     // elements in which gradients are made, before they are summed into the rank's own
    int64_t *window_at; // by segment: where
    size_t gathered;    // bytes in which parameters are gathered before they are read
    /** Where a node finds such a parameter. */
    void *(*place)(const void *user, const mixt__value *value, int64_t node);
    const void *user;
} mixt__params_shard;

typedef struct mixt__params {
    mixt__device *device;
    mixt__arena names;
    mixt__param *table; // copy of the graph's table, names included
    int64_t count;      // of the model's own; a teacher's stand behind them
    int64_t fixed_count;
    mixt__param_fixed *fixed; // by those
    size_t fixed_bytes;
    char *fixed_block;       // the owner's where the masters are another's
    mixt__segment *segments; // one per parameter that is trained, in table order
    int64_t segment_count;
    int32_t *segment_of;   // by parameter; -1: a running statistic, or frozen
    int64_t *offset;       // by parameter: its segment's; -1: it has none
    int64_t *state_offset; // by parameter; -1: it is no running statistic
    mixt__params_frozen frozen;
    mixt__param_copy *copies;   // by parameter
    int64_t total, state_total; // elements
    mixt_dtype moment_format;   // of all; INT8 and FP8: of those that are in codes
    mixt__params_codes codes;
    int moments;     // per parameter; -1: there is no training
    bool shared;     // the weights are another's: see mixt__params_share
    bool taken;      // weights have memory
    int64_t written; // times that something else than an update wrote values
    mixt__param_role roles[MIXT_PARAM_ROLES];
    float *whole;             // borrowed: all weights, where someone has collected them; else NULL
    mixt__params_shard shard; // see mixt__params_share_out
} mixt__params;

/** Lays out the arenas for a compiled graph; takes no device memory yet.
 *  @param training whether there are gradients
 *  @param moments optimizer moments per parameter: 0, 1 or 2
 *  @param moment_format FP32 or BF16; INT8 or FP8_E4M3: in codes of blocks, but for parameters that are small, and
 * tables that are only looked up */
mixt_status mixt__params_new(const mixt__graph *graph, mixt__device *device, bool training, int moments,
                             mixt_dtype moment_format, mixt__params **params);
/** Lays out working copies anew: after parameters were sharded, or no longer are. */
void mixt__params_place_copies(mixt__params *params, const mixt__graph *graph);
/** Elements that a parameter takes among others of a format, of which each begins at a multiple of 64 bytes; of a
 * format whose elements share bytes, those. */
int64_t mixt__params_copy_room(int64_t count, mixt_dtype format);
/** Arenas are kept of these slices alone, as `shard` says, whose lists are copied. Before their memory is taken; again
 *  for another graph, with the same slices: gradients are given back then. */
mixt_status mixt__params_share_out(mixt__params *params, const mixt__params_shard *shard);
/** Where an element of the flat arenas, at which a chunk or a segment begins, has its place in a space of moments in
 * codes; of what has none there: where the next one's is. */
int64_t mixt__params_in_space(const mixt__params *params, int space, int64_t at);
/** The space of a role; -1: the flat arenas. */
int mixt__params_space_of(int role);
/** Whether moments of this parameter are in codes. */
bool mixt__params_coded(const mixt__params *params, int64_t param);
/** Takes what computing an output needs: masters, statistics, working copies; all zeros. */
mixt_status mixt__params_allocate(mixt__params *params);
/** Takes the memory of gradients where there is none. */
mixt_status mixt__params_allocate_gradients(mixt__params *params);
/** Takes what training needs beside that: gradients, moments, kept statistics, which get their values. */
mixt_status mixt__params_allocate_training(mixt__params *params);
/** In place of allocate: gradients, running statistics and working copies of its own beside the masters of `owner`,
 *  which must outlive it. Both were laid out for the same model with the same parameters frozen. */
mixt_status mixt__params_share(mixt__params *params, const mixt__params *owner);
/** Takes over the running statistics and frozen parameters of the owner as they are now. */
mixt_status mixt__params_follow(mixt__params *params, const mixt__params *owner);
/** Gives back what allocate or share took, also half of it, and what training took. */
void mixt__params_release(mixt__params *params);
/** Gives back what training took, also half of it. */
void mixt__params_release_training(mixt__params *params);
void mixt__params_free(mixt__params *params);

/** Adds a role that trained parameters have beside those that every table has, before memory is taken: `name`,
 *  `prefix`, `format`, … as the caller says, places and bytes as the table finds them. @return its place in the table,
 *  -1: it is full */
int mixt__params_add_role(mixt__params *params, const mixt__param_role *role);
/** Finds places and bytes of all roles anew: after sizes, or what ranks have of them, changed. */
void mixt__params_lay_out_roles(mixt__params *params);
/** Roles of a life take their memory where they have none, all zeros. */
mixt_status mixt__params_take_roles(mixt__params *params, mixt__role_life life);
void mixt__params_drop_roles(mixt__params *params, mixt__role_life life);
/** Where weights come together that are sharded; NULL: nowhere. */
char *mixt__params_gathered(const mixt__params *params);
/** Trained weights and their gradients, which are FP32. */
float *mixt__params_weights(const mixt__params *params);
float *mixt__params_gradients(const mixt__params *params);
/** Sums of this rank's slices of gradients, where those are sharded. */
float *mixt__params_own_gradients(const mixt__params *params);
/** Running statistics. */
float *mixt__params_state(const mixt__params *params);
/** What an update reads and writes, of all parameters. @param seed of stochastic rounding */
void mixt__params_fill_update(const mixt__params *params, uint64_t seed, mixt__update *update);
/** Where a parameter lies in a role; -1: it is not there. */
int64_t mixt__params_offset(const mixt__params *params, int role, int64_t param);
/** A moment of all parameters that lies here, as FP32, on the host, in the order of the flat arenas.
 *  @param which 0 or 1 @param values as many as the weights' role has here */
mixt_status mixt__params_read_moment(const mixt__params *params, int which, float *values);

/** Bytes of each row of a memory table, as they will be or are allocated; of state a teacher's too. */
typedef struct mixt__params_bytes {
    size_t masters, copies, gradients, moments, state;
} mixt__params_bytes;
mixt__params_bytes mixt__params_bytes_of(const mixt__params *params);
/** Bytes that the weights take, with all that computing an output needs. */
size_t mixt__params_weight_bytes(const mixt__params *params);

/** Draws the initial values: a pure function of seed and parameter name. */
mixt_status mixt__params_initialise(mixt__params *params, uint64_t seed);
/** Rounds the masters into the working copies: after loading weights. */
mixt_status mixt__params_refresh_copies(mixt__params *params);

/** Index of a parameter or running statistic by name; -1: none. */
int32_t mixt__params_find(const mixt__params *params, const char *name);
mixt_status mixt__params_get(const mixt__params *params, int32_t index, float *values);
mixt_status mixt__params_set(mixt__params *params, int32_t index, const float *values);
/** Of elements [offset, offset + count) of a role that is sharded, this rank's. @param values in the role's format */
mixt_status mixt__params_set_slices(const mixt__params *params, const mixt__param_role *role, int64_t offset,
                                    int64_t count, const void *values);
/** Where a parameter, or its gradient, lies in the device's memory, and in which format: FP32, unless it is frozen and
 *  kept in another. An error where it does not lie there whole (ranks share it out), or needs scales beside it. */
mixt_status mixt__params_place(const mixt__params *params, int32_t index, bool gradient, void **place,
                               mixt_dtype *format);
mixt_status mixt__params_get_grad(const mixt__params *params, int32_t index, float *values);

/** Whether a parameter is kept as frozen. */
bool mixt__params_is_frozen(const mixt__params *params, int32_t index);
/** Whether any is. */
bool mixt__params_have_frozen(const mixt__params *params);
/** Finds a home for each frozen parameter: FP32 where the graph reads that, or reads nothing of it; else the low format
 *  that it reads, which has scales where the parameter says so (frozen_in). */
void mixt__frozen_lay_out(mixt__params *params, const mixt__graph *graph);
/** Device address of one. @param dtype receives its format; NULL: nobody asks */
void *mixt__frozen_place(const mixt__params *params, int32_t index, mixt_dtype *dtype);
/** Its scales, in the device's memory. @param count receives how many; NULL: nobody asks. @return NULL: none */
float *mixt__frozen_scales(const mixt__params *params, int32_t index, int64_t *count);
/** Widened to FP32. */
mixt_status mixt__frozen_get(const mixt__params *params, int32_t index, float *values);
/** Rounded to its home; where that has scales, values that are not finite are refused. */
mixt_status mixt__frozen_set(mixt__params *params, int32_t index, const float *values);
/** As it is kept: numbers and scales of its home, as mixt__frozen_place and mixt__frozen_scales have them. */
mixt_status mixt__frozen_set_kept(mixt__params *params, int32_t index, const void *numbers, const float *scales);
/** Takes over the values of another table of the same model, where those have changed since. */
mixt_status mixt__frozen_follow(mixt__params *params, const mixt__params *owner);
/** Moves them to the formats in which another graph reads them. What was rounded stays rounded. */
mixt_status mixt__frozen_retype(mixt__params *params, const mixt__graph *graph);
/** Says in another graph of the model, which is to be bound to these parameters and is not compiled yet, in which one
 *  format each of those is kept that has no FP32. */
void mixt__frozen_mark(const mixt__params *params, mixt__graph *graph);
/** Fails, naming it, where a graph reads a frozen parameter in a format in which it is not kept. */
mixt_status mixt__frozen_check(const mixt__params *params, const mixt__graph *graph);

/** Lays out the parameters of a graph's teacher, which stand behind the others in the table. */
mixt_status mixt__params_lay_out_fixed(mixt__params *params, const mixt__graph *graph);
/** Gives a teacher's parameter its values, rounded to the formats in which it is read. @param index from 0 */
mixt_status mixt__params_give(mixt__params *params, int64_t index, const float *values);
/** Device address of a teacher's parameter in one format. */
void *mixt__params_fixed_address(const mixt__params *params, int32_t param, mixt_dtype dtype);

/** Keeps the running statistics as they are now: after they were set by hand. */
mixt_status mixt__params_keep_statistics(mixt__params *params);
/** Gives the running statistics the values that are kept: passes that led to no update have moved them. */
mixt_status mixt__params_restore_statistics(mixt__params *params);

/** Device address of a PARAM, SCALE, GRAD or STATE value for a node. */
void *mixt__params_address(const mixt__params *params, const mixt__value *value, int64_t node);

/** Fails with the names when a graph's parameters are not the ones of this store. */
mixt_status mixt__params_match(const mixt__params *params, const mixt__graph *graph);

/** Moves to another graph of the same model whose policy wants other working copies. Masters, moments and
 *  statistics keep their values; frozen parameters are rounded where they were kept in a wider format. */
mixt_status mixt__params_retype(mixt__params *params, const mixt__graph *graph);

#endif
