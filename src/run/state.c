/* The loop's state as JSON and back, by a table of its fields. */
#include "run/state.h"

#include "base/status.h"
#include "store/checkpoint.h"
#include "store/json.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define WHOLE(field)                                                                                                   \
    {                                                                                                                  \
#field, true, offsetof(mixt__loop_state, field)                                                                \
    }
#define REAL(field)                                                                                                    \
    {                                                                                                                  \
#field, false, offsetof(mixt__loop_state, field)                                                               \
    }

static const struct {
    const char *name;
    bool whole;
    size_t offset;
} fields[] = {
    REAL(window.loss),     REAL(window.accuracy), REAL(window.seconds), WHOLE(window.steps),  WHOLE(window.skipped),
    WHOLE(window.samples), WHOLE(steps),          WHOLE(samples),       WHOLE(skipped),       WHOLE(validations),
    WHOLE(since_best),     WHOLE(best_step),      WHOLE(stuck),         WHOLE(metrics_bytes), REAL(loss),
    REAL(accuracy),        REAL(val_loss),        REAL(val_accuracy),   REAL(best_val_loss),  REAL(seconds),
    REAL(step_seconds),    REAL(energy),          WHOLE(pending),       WHOLE(epoch),         REAL(lr),
    REAL(scale),           REAL(grad_norm),       REAL(kept_val_loss),  WHOLE(val_step),      WHOLE(events_bytes),
    WHOLE(layers_bytes),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

mixt__loop_state mixt__loop_state_start(void)
{
    return (mixt__loop_state){.best_step = -1,
                              .val_step = -1,
                              .val_loss = NAN,
                              .val_accuracy = NAN,
                              .best_val_loss = NAN,
                              .kept_val_loss = NAN,
                              .energy = NAN};
}

json_t *mixt__loop_state_pack(const mixt__loop_state *state)
{
    json_t *o = json_object();
    for (int i = 0; i < FIELDS; i++) {
        const char *at = (const char *)state + fields[i].offset;
        int64_t whole;
        double real;
        memcpy(&whole, at, sizeof whole);
        memcpy(&real, at, sizeof real);
        mixt__json_set(o, fields[i].name, fields[i].whole ? json_integer(whole) : mixt__json_double(real));
    }
    mixt__json_set(o, "usual",
                   json_pack("{s:o, s:o, s:I}", "mean", mixt__json_double(state->usual.mean), "variance",
                             mixt__json_double(state->usual.variance), "seen", (json_int_t)state->usual.seen));
    mixt__json_set(o, "course", mixt__course_pack(&state->course));
    mixt__json_set_text(o, "window.overflow_layer", state->window.overflow_layer);
    return o;
}

/** Under which name a field stands: checkpoints of version 0.1.0 say "hopeless" for one of them. */
static const char *name_in(const json_t *object, const char *name)
{
    return !strcmp(name, "stuck") && !json_object_get(object, name) ? "hopeless" : name;
}

/** Checkpoints of earlier versions know nothing of it. */
static mixt_status unpack_usual(const json_t *object, mixt__usual *usual)
{
    if (!object)
        return MIXT_OK;
    MIXT_TRY(mixt__json_get_double(object, "mean", &usual->mean));
    MIXT_TRY(mixt__json_get_double(object, "variance", &usual->variance));
    return mixt__json_get_int(object, "seen", 0, INT64_MAX / 2, &usual->seen);
}

/** Checkpoints of earlier versions do not have these, which may stay as they are at a start. */
static bool newer(const json_t *object, const char *name)
{
    bool can = !strcmp(name, "val_step") || !strcmp(name, "events_bytes") || !strcmp(name, "layers_bytes");
    return can && json_is_object(object) && !json_object_get(object, name);
}

mixt_status mixt__loop_state_unpack(const json_t *object, mixt__loop_state *state)
{
    *state = mixt__loop_state_start();
    for (int i = 0; i < FIELDS; i++) {
        char *at = (char *)state + fields[i].offset;
        int64_t whole;
        double real;
        if (newer(object, fields[i].name))
            continue;
        if (fields[i].whole) {
            MIXT_TRY(mixt__json_get_int(object, name_in(object, fields[i].name), -1, INT64_MAX / 2, &whole));
            memcpy(at, &whole, sizeof whole);
        } else {
            MIXT_TRY(mixt__json_get_double(object, fields[i].name, &real));
            memcpy(at, &real, sizeof real);
        }
    }
    MIXT_TRY(unpack_usual(json_object_get(object, "usual"), &state->usual));
    mixt__course_unpack(&state->course, json_object_get(object, "course"));
    const char *layer = json_string_value(json_object_get(object, "window.overflow_layer"));
    snprintf(state->window.overflow_layer, sizeof state->window.overflow_layer, "%s", layer ? layer : "");
    return MIXT_OK;
}
