/* Calls on a builder, kept to be made again: how a model is built once and compiled for any batch.
 *
 * What is kept is the call as the user made it, not the node that came of it: a node knows the sizes of one batch, and
 * a call makes the right node for another. Calls that functions of the library make on their own are not kept, since
 * the call around them makes them again.
 */
#ifndef MIXT_GRAPH_TAPE_H
#define MIXT_GRAPH_TAPE_H

#include "base/alloc.h"
#include "mixt/graph.h"

typedef struct mixt__kept_call mixt__kept_call;

/** Makes a call again.
 *  @param in its values in the graph that is built now
 *  @param options its own, with such values in them
 *  @param out receives what it returns */
typedef void mixt__play(mixt_builder *b, const mixt__kept_call *c, const mixt_value *in, const void *options,
                        mixt_value *out);

enum {
    MIXT_CALL_VALUES = 64,
    MIXT_CALL_NUMBERS = 8,
    MIXT_CALL_RESULTS = 8,
    MIXT_CALL_OPTIONS = 2048
}; // the last: bytes

struct mixt__kept_call {
    mixt__play *play;
    const char *name; // copied
    mixt_value in[MIXT_CALL_VALUES];
    int in_count, number_count;
    int64_t numbers[MIXT_CALL_NUMBERS];
    float reals[2];
    const void *options; // copied
    size_t options_size;
    size_t inside;  // of a value in the options; 0: they have none
    bool of_target; // there is no such value where a graph has no loss
    int out_count;  // 0: one
    mixt_value out[MIXT_CALL_RESULTS];
    mixt__kept_call *next;
};

typedef struct mixt__tape {
    mixt__arena *arena; // borrowed: of what is copied
    mixt__kept_call *first, *last;
    bool inside; // a call that is kept is being made
} mixt__tape;

/** Whether the next call is to be kept. */
bool mixt__tape_on(const mixt_builder *b);
/** Makes a call and keeps it. @param out receives all of its results; NULL: only the first is wanted
 *  @return the first result */
mixt_value mixt__tape_call(mixt_builder *b, const mixt__kept_call *call, mixt_value *out);
/** Makes all calls again, on a builder that has no tape.
 *  @param values how many values the graph had in which they were made
 *  @param output a value of that graph; its counterpart is returned */
mixt_value mixt__tape_play(const mixt__tape *tape, mixt_builder *b, int64_t values, mixt_value output);

/** How a function is called again: `call` reads c, in and options and sets out[0]. */
#define MIXT_PLAY(function, ...)                                                                                       \
    static void play_##function(mixt_builder *b, const mixt__kept_call *c, const mixt_value *in, const void *options,  \
                                mixt_value *out)                                                                       \
    {                                                                                                                  \
        (void)c, (void)in, (void)options, (void)out;                                                                   \
        __VA_ARGS__;                                                                                                   \
    }
/** At the beginning of that function: keeps the call where calls are kept. */
#define MIXT_RECORD(b, function, ...)                                                                                  \
    do {                                                                                                               \
        if (mixt__tape_on(b))                                                                                          \
            return mixt__tape_call((b), &(mixt__kept_call){.play = play_##function, __VA_ARGS__}, NULL);               \
    } while (0)
#define MIXT_RECORD_VOID(b, function, results, ...)                                                                    \
    do {                                                                                                               \
        if (mixt__tape_on(b)) {                                                                                        \
            mixt__tape_call((b), &(mixt__kept_call){.play = play_##function, __VA_ARGS__}, (results));                 \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

#endif
