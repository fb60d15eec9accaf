/* Inside a suggestion: what is known of the data while keys are chosen, and how a key is chosen. */
#ifndef MIXT_RUN_SUGGEST_H
#define MIXT_RUN_SUGGEST_H

#include "base/alloc.h"
#include "base/handles.h"
#include "mixt/suggest.h"
#include "run/open/experiment.h"

struct mixt_suggestion {
    mixt__handle handle;
    mixt_config *config; // what was given, and the choices so far
    mixt_choice choices[MIXT_KEY_COUNT];
    bool chosen[MIXT_KEY_COUNT];
    const char *kind;    // of the data
    char path[4400];     // of the data, without a kind before it
    bool tuned;          // it begins with weights that were trained
    int64_t longest;     // tokens of a text that those were made for; 0: not known
    const char *summary; // in the arena
    mixt__arena arena;
};

/** Chooses a key unless it is set. @param value of printf */
mixt_status mixt__suggest(mixt_suggestion *s, mixt__config_key key, const char *why, const char *value, ...)
    __attribute__((format(printf, 4, 5)));
/** Chooses kind, model, sizes, batch, learning rate and length for the data at s->path. */
mixt_status mixt__suggest_all(mixt_suggestion *s);

#endif
