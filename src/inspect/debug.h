/* What a look into a step is made of.
 *
 * Passes over the same batch, from the same masters, with the same random numbers and loss scale:
 *   the real step    train/instrument.h: statistics are taken on the device
 *   the same bits    a shadow compiled as the step is, walked node by node (debug_walk.c)
 *   FP32             beside that one, node by node, to hold each value against
 *   each op alone    only where a number is not finite: without fusion, so that no op hides in another
 * Shadows run before the real step: nothing that they do changes a bit of it. Up to fusion all graphs of one policy are
 * one: a value has the same number in each of them.
 */
#ifndef MIXT_INSPECT_DEBUG_H
#define MIXT_INSPECT_DEBUG_H

#include "mixt/debug.h"

#include "base/alloc.h"
#include "base/handles.h"
#include "train/shadow.h"

enum { MIXT_DEBUG_ISSUES_MAX = 128 };

/** One value of the pass that runs each op by itself. */
typedef struct mixt__sight {
    bool made;    // by some node; else it comes from outside, and is counted where the pass has a bad number
    int32_t node; // that made it, of a parameter's gradient the first that made it bad, else the last
    double numbers[MIXT_STATS_NUMBERS];
    int64_t counts[MIXT_STATS_COUNTS]; // without BEYOND and FLUSHED
    bool compared;                     // with FP32: the rest is known
    double noise, signal; // sums of squares of the difference, and of FP32's numbers, where both are finite
    double floor;         // of signal: sums that cancel, a bias's gradient before a norm, count as large as one term
    int64_t flushed;      // 0 here, not 0 in FP32
    int64_t broken;       // not finite here, finite in FP32
    double reference;     // FP32's largest magnitude
} mixt__sight;

static inline bool mixt__sight_bad(const mixt__sight *s)
{
    return s->counts[MIXT_STATS_NAN] + s->counts[MIXT_STATS_INF] > 0;
}

/** What a walk over a pass found beside the sights. */
typedef struct mixt__walk_found {
    int32_t first_bad; // node that made the first number that is not finite; -1: none
    int64_t full_bad;  // values of FP32 that are not finite, among those that were compared
    double full_loss;  // of FP32; NaN: it did not run
} mixt__walk_found;

typedef struct mixt__walk_options {
    const int32_t *partner;  // by value of the pass: FP32's; 0: none. Not read without FP32
    mixt__sight *sights;     // by value, filled in
    mixt__walk_found *found; // filled in
    /** Sees the numbers of each value that a node has made; NULL: nobody does. */
    mixt_status (*see)(void *user, int32_t value, const float *numbers);
    void *user; // for it
} mixt__walk_options;

typedef struct mixt__sights {
    mixt__shadow *low, *full;  // with the bits of the step; FP32. NULL: there is none
    const char **names;        // of low's values; NULL: those that have none
    char why[256];             // why not; "": nobody asked, or they are there
    mixt__sight *by_value;     // of low's graph, by value; NULL with low
    int32_t first_bad;         // node of low's graph that made the first number that is not finite; -1: none
    int64_t full_bad;          // values of FP32 that are not finite
    double full_loss;          // of FP32 in the pass that was looked at; NaN: not known
    int64_t pass;              // that was looked at: the first with a number that is not finite, else the last
    mixt__shadow *plain;       // each op by itself, where a number is not finite; else NULL
    mixt__sight *plain_values; // by value of its graph
    int64_t sample, place;     // of a sample with a number that is not finite: in the set, in the batch; -1: none
    bool target;               // it is the sample's target that holds it
    bool rounded;              // the sample's number is finite, but too large for the format in which it is fed
} mixt__sights;

struct mixt_debug {
    mixt__handle handle;
    mixt__arena arena; // texts, exponents
    mixt_debug_info info;
    mixt_debug_value *values;
    int32_t *ids; // of the values in the graph that they come from
    mixt_debug_origin origin;
    mixt_debug_layer *layers;
    int64_t *blamed; // numbers of layers, the most to blame first
    int64_t layer_count;
    mixt_debug_use uses[MIXT_DTYPE_COUNT];
    mixt_debug_issue issues[MIXT_DEBUG_ISSUES_MAX];
};

/** A text of the debug's own; "" when memory ends, which fails the look. */
const char *mixt__debug_text(mixt_debug *debug, const char *text);
/** A word for what a node does: its op, of a pointwise node what that computes ("exp", "cast"), of a fused one the last
 *  of it. */
const char *mixt__debug_op(const mixt__graph *graph, const mixt__node *node);
/** Fills in the numbers of a value from the results of tensor_stats. */
void mixt__debug_fill(mixt_debug_value *value, mixt_dtype dtype, const double *numbers, const int64_t *counts);

/** Looks at the next step of the trainer from the side. Where there is no memory for that, `why` says so and all is
 *  well. The trainer has its memory. */
mixt_status mixt__sights_take(mixt_debug *debug, const mixt_trainer *trainer, const mixt_data *data,
                              const mixt_debug_options *options, mixt__sights *sights);
void mixt__sights_free(mixt__sights *sights);
/** The names of a graph's values, by value, in memory of the arena; the list itself is for mixt__free. */
mixt_status mixt__debug_name(const mixt__graph *graph, mixt__arena *arena, const char ***names);
enum { MIXT_DEBUG_PATH = 4096 };
/** Before anything is written: whether the values that the options want exist and their files do not; makes the folder.
 */
mixt_status mixt__debug_dump_check(const mixt_trainer *trainer, const mixt__graph *graph, const char *const *names,
                                   const mixt_debug_options *options);
/** Writes one value where it is wanted. */
mixt_status mixt__debug_dump_value(const mixt_debug_options *options, const char *name, const mixt__value *value,
                                   const float *numbers);
/** Writes the parameters that are wanted. */
mixt_status mixt__debug_dump_params(const mixt_trainer *trainer, const mixt_debug_options *options);
/** Runs a shadow node by node, FP32 beside it, and looks at every value. @param full NULL: no FP32 */
mixt_status mixt__debug_walk(mixt__shadow *pass, mixt__shadow *full, const mixt__shadow_batch *batch,
                             const mixt__walk_options *options);
/** FP32's value for each value of `pass`, 0 where there is none, for mixt__free.
 *  @param plain the graph of the same policy without fusion; may be `pass` */
mixt_status mixt__debug_match(const mixt__graph *pass, const mixt__graph *plain, const mixt__graph *full,
                              int32_t **partner);
/** The last node that writes each value; -1: none. For mixt__free. */
mixt_status mixt__debug_writers(const mixt__graph *graph, int32_t **last);
/** Whether a node only changes the format, for others. */
bool mixt__debug_is_cast(const mixt__graph *graph, const mixt__node *node);
/** Reads a value to host memory as FP32. @param raw room for its bytes as they lie on the device */
mixt_status mixt__debug_read(mixt__device *device, const mixt__tensor *tensor, void *raw, float *numbers);
/** Statistics of numbers in the form of tensor_stats. */
void mixt__debug_count(const float *numbers, int64_t count, double *totals, int64_t *counts);

/** Holds numbers against those of FP32. */
void mixt__debug_compare(mixt__sight *sight, mixt_dtype dtype, const float *mine, const float *full, int64_t count);
/** Elements from the first to the last of a tensor as it lies in memory. */
int64_t mixt__debug_span(const mixt__tensor *tensor);

/** Finds what made the first number that is not finite. @param real the graph of the step, of which the
 *  debug's values are */
mixt_status mixt__debug_find_origin(mixt_debug *debug, const mixt__sights *sights, const mixt__graph *real);
/** Counts what is in which format. */
void mixt__debug_count_use(mixt_debug *debug, const mixt__trainer *trainer);
/** Puts values together by layer. */
mixt_status mixt__debug_group(mixt_debug *debug);
/** Finds what is wrong. */
void mixt__debug_judge(mixt_debug *debug);

#endif
