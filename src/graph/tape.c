/* The list of calls: what is copied when one is kept, and values of one graph turned into those of another. */
#include "graph/tape.h"

#include "graph/builder.h"

#include <string.h>

enum { ABSENT = -1 }; // a value that the graph built now does not have: what depends on it is left out

bool mixt__tape_on(const mixt_builder *b)
{
    return b->tape && !b->tape->inside;
}

/** A copy of a call in the tape's memory; NULL where that ends. */
static mixt__kept_call *keep(mixt__tape *tape, const mixt__kept_call *call)
{
    mixt__kept_call *kept = mixt__arena_alloc(tape->arena, sizeof *kept);
    if (!kept)
        return NULL;
    *kept = *call;
    kept->out_count = call->out_count ? call->out_count : 1;
    if (call->name && !(kept->name = mixt__arena_strdup(tape->arena, call->name)))
        return NULL;
    if (call->options) {
        void *options = mixt__arena_alloc(tape->arena, call->options_size);
        if (!options)
            return NULL;
        memcpy(options, call->options, call->options_size);
        kept->options = options;
    }
    return kept;
}

mixt_value mixt__tape_call(mixt_builder *b, const mixt__kept_call *call, mixt_value *out)
{
    mixt__kept_call *kept = b->status == MIXT_OK ? keep(b->tape, call) : NULL;
    if (kept && kept->options_size > MIXT_CALL_OPTIONS) {
        mixt__builder_error(b, MIXT_ERROR_STATE, call->name, "options of %zu bytes, more than a call can keep",
                            kept->options_size);
        kept = NULL;
    }
    if (!kept) {
        if (b->status == MIXT_OK)
            mixt__builder_error(b, MIXT_ERROR_MEMORY, call->name, "no memory to keep a call");
        return (mixt_value){0};
    }
    b->tape->inside = true;
    kept->play(b, kept, kept->in, kept->options, kept->out);
    b->tape->inside = false;
    if (b->tape->last)
        b->tape->last->next = kept;
    else
        b->tape->first = kept;
    b->tape->last = kept;
    if (out)
        memcpy(out, kept->out, (size_t)kept->out_count * sizeof *out);
    return kept->out[0];
}

/** The values of a call in the graph that is built now; false where one is absent. */
static bool find_values(const mixt__kept_call *c, const int32_t *now, mixt_value in[MIXT_CALL_VALUES], void *options)
{
    bool here = true;
    for (int i = 0; i < c->in_count; i++) {
        in[i].id = now[c->in[i].id];
        here &= in[i].id != ABSENT;
    }
    if (c->options)
        memcpy(options, c->options, c->options_size);
    if (c->inside) {
        mixt_value value;
        memcpy(&value, (const char *)c->options + c->inside, sizeof value);
        value.id = now[value.id];
        here &= value.id != ABSENT;
        memcpy((char *)options + c->inside, &value, sizeof value);
    }
    return here;
}

static void play_one(const mixt__kept_call *c, mixt_builder *b, int32_t *now)
{
    mixt_value in[MIXT_CALL_VALUES], out[MIXT_CALL_RESULTS] = {{0}};
    _Alignas(16) char options[MIXT_CALL_OPTIONS];
    bool here = !(c->of_target && !b->has_loss) && find_values(c, now, in, options);
    if (here)
        c->play(b, c, in, c->options ? options : NULL, out);
    for (int i = 0; i < c->out_count; i++)
        if (c->out[i].id)
            now[c->out[i].id] = here ? out[i].id : ABSENT;
}

mixt_value mixt__tape_play(const mixt__tape *tape, mixt_builder *b, int64_t values, mixt_value output)
{
    mixt_value found = {0};
    int32_t *now = mixt__alloc((size_t)values * sizeof *now); // by the number of a value then
    if (!now)
        return mixt__builder_error(b, MIXT_ERROR_MEMORY, NULL, "no memory to rebuild a model");
    for (const mixt__kept_call *c = tape->first; c && b->status == MIXT_OK; c = c->next)
        play_one(c, b, now);
    if (now[output.id] != ABSENT)
        found.id = now[output.id];
    else
        mixt__builder_error(b, MIXT_ERROR_STATE, NULL, "the model's output depends on a target");
    mixt__free(now);
    return found;
}
