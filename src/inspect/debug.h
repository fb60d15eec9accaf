/* What a look into a step is made of.
 *
 * Three passes over the same batch, from the same masters, with the same random numbers and loss scale:
 *   the real step        (train/watch.h): the kernels and bits of training, fused as they are; statistics on the device
 *   each op by itself    (debug_walk.c): the same policy without fusion, node by node, so that no op hides in another
 *   FP32                 (debug_walk.c): beside that one, node by node, to hold each value against
 * The last two are shadows and run before the real step: nothing that they do changes a bit of it. Up to fusion the
 * first two graphs are one: a value has the same number in both.
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

typedef struct mixt__sights {
    mixt__shadow *low, *full; // each op by itself, FP32; NULL: there is none
    char why[256];            // why not; "": nobody asked, or they are there
    mixt__sight *by_value;    // of low's graph, by value; NULL with low
    int32_t first_bad;        // node of low's graph that made the first number that is not finite; -1: none
    int64_t full_bad;         // values of FP32 that are not finite
    int64_t pass;             // that was looked at: the first with a number that is not finite, else the last
    int64_t sample, place;    // of a sample with a number that is not finite: in the set, in the batch; -1: none
    bool target;              // it is the sample's target that holds it
    bool rounded;             // the sample's number is finite, but too large for the format in which it is fed
    float seed;               // the loss's gradient in that pass
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

/** A text of the debug's own; "" when memory ends. */
const char *mixt__debug_text(mixt_debug *debug, const char *text);
/** A word for what a node does: its op, of a pointwise node what that computes ("exp", "cast"), of a fused one the last
 *  of it. */
const char *mixt__debug_op(const mixt__graph *graph, const mixt__node *node);
/** Fills in the numbers of a value from the results of tensor_stats. */
void mixt__debug_fill(mixt_debug_value *value, mixt_dtype dtype, const double *numbers, const int64_t *counts);

/** Looks at the next step of the trainer from the side. Where there is no memory for that, `why` says so and all is
 *  well. The trainer has its memory. */
mixt_status mixt__sights_take(mixt__trainer *trainer, const mixt_data *data, mixt__sights *sights);
void mixt__sights_free(mixt__sights *sights);
/** FP32's node that computes what each node of `low` does, by node of low; -1: none. */
mixt_status mixt__debug_match(const mixt__graph *low, const mixt__graph *full, int32_t **matches);
/** Whether a node only changes the format, for others. */
bool mixt__debug_is_cast(const mixt__graph *graph, const mixt__node *node);
/** Reads a value to host memory as FP32. @param raw room for its bytes as they lie on the device */
mixt_status mixt__debug_read(const mixt__backend *backend, const mixt__tensor *tensor, void *raw, float *numbers);
/** Statistics of numbers in the form of tensor_stats. */
void mixt__debug_count(const float *numbers, int64_t count, double *totals, int64_t *counts);

/** Finds what made the first number that is not finite. @param real the graph of the real step; NULL: none was made */
mixt_status mixt__debug_find_origin(mixt_debug *debug, const mixt__sights *sights, const mixt__graph *real);
/** Counts what is in which format. */
void mixt__debug_count_use(mixt_debug *debug, const mixt__trainer *trainer);
/** Puts values together by layer. */
mixt_status mixt__debug_group(mixt_debug *debug);
/** Finds what is wrong. */
void mixt__debug_judge(mixt_debug *debug);

#endif
