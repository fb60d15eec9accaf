/* A table of remedies, tried in order until one may and can be taken; around it what bounds them. */
#include "steer/controller.h"

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/handles.h"
#include "base/options.h"
#include "store/json.h"
#include "monitor/monitor.h"
#include "steer/decision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RAISED_MAX = 64,  // layers that it raises one by one; beyond that the whole model
    SKIPS_MAX = 2,    // batches left out for one trouble, ...
    SKIPS_DATA = 32,  // ... and where a replay has found them to be bad
    SAMPLES_MAX = 64, // samples left out in a run
    SKIPS_RUN = 2,    // skipped updates in a row that are trouble: a single one has changed nothing
    SLOWER_MAX = 3,   // times that the learning rate is lowered for one
    PLACES_MAX = 16,  // numbers that a machine has got wrong, counted one by one
    FLIPS_MAX = 3,    // times that one of them was: the machine is broken
    GOOD_UPDATES = 8, // that must lie between something odd and a state to go back to
};

/** What became of a layer that it raised. */
typedef enum standing {
    RAISED,  // may be lowered again after a long calm, unless that is certain to do harm
    LOWERED, // was; stays raised the next time
    PINNED,  // stays raised
} standing;

struct mixt_controller {
    mixt__handle handle;
    mixt_controller_options options;
    mixt_trouble trouble;
    char trouble_layer[128], trouble_text[256]; // its own
    struct {
        char layer[128], key[48], from[64], to[64], text[896];
    } said;           // of the newest decision
    bool waiting;     // for mixt_controller_decide about it
    int64_t attempts; // at the trouble under way
    int64_t quiet;    // updates without trouble since the last decision
    int64_t skipped;  // batches left out for the trouble under way
    int64_t slower;   // times that the learning rate was lowered for it
    bool clipped;     // for it
    bool scaled;      // for it
    int64_t skips;    // skipped updates in a row
    uint32_t odd;     // of the newest updates, a bit each, the last one lowest
    int64_t samples;  // left out in the run
    int64_t deaf;     // updates in which a loss that stands out is no trouble: nothing helps against it
    int64_t decisions, rollbacks;
    int64_t raised_count;
    struct {
        char layer[128], format[16]; // "": the whole model; what it had
        standing standing;
    } raised[RAISED_MAX];
    struct {
        char name[192]; // "": free
        int64_t times;
    } places[PLACES_MAX];
};

mixt_status mixt_controller_new(const mixt_controller_options *options, mixt_controller **controller)
{
    mixt_controller_options o = MIXT_OPTIONS(mixt_controller_options);
    MIXT_TRY(mixt__need(controller));
    *controller = NULL;
    MIXT_TRY(mixt__options(mixt_controller_options, &o, options));
    if (o.retries < 1 || o.retries > 100 || o.cooldown < 1 || o.calm < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "a controller takes 1 to 100 retries, a cooldown of at least 1 and a calm of at least 0, not "
                          "%lld, %lld and %lld",
                          (long long)o.retries, (long long)o.cooldown, (long long)o.calm);
    mixt_controller *c = mixt__alloc(sizeof *c);
    if (!c)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a controller");
    c->options = o;
    c->trouble = (mixt_trouble){.layer = c->trouble_layer, .text = c->trouble_text};
    mixt__handle_add(&c->handle, c, "controller", NULL);
    *controller = c;
    return MIXT_OK;
}

void mixt_controller_free(mixt_controller *c)
{
    if (!c || mixt__need_open(c, "controller") != MIXT_OK)
        return;
    mixt__handle_remove(c);
    mixt__free(c);
}

/* ---- whether there is trouble ---- */

/** Causes that are about the numbers of training: times and memory decide nothing here. */
static bool about_numbers(mixt_cause cause)
{
    return cause == MIXT_CAUSE_LOSS_ANOMALY || cause == MIXT_CAUSE_GRADIENT_ANOMALY || cause == MIXT_CAUSE_OVERFLOW ||
           cause == MIXT_CAUSE_UNDERFLOW || cause == MIXT_CAUSE_SCALE_COLLAPSE;
}

static bool is_odd(const mixt_signals *s, const mixt_alert *alerts, int count)
{
    bool odd = s->skipped || !isfinite(s->loss);
    for (int i = 0; i < count; i++)
        odd = odd || (alerts[i].severity >= MIXT_SEVERITY_WARNING && about_numbers(alerts[i].cause) &&
                      !mixt__alert_of_limit(&alerts[i]));
    return odd;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/** The text may be the one that is there. */
static void take_text(char *to, size_t size, const char *text)
{
    if (text != to)
        snprintf(to, size, "%s", or_empty(text));
}

static void describe(mixt_controller *c, const mixt_signals *s, mixt_cause cause, const char *text)
{
    c->trouble.step = s->step;
    c->trouble.cause = cause;
    c->trouble.forward = !isfinite(s->loss);
    snprintf(c->trouble_layer, sizeof c->trouble_layer, "%s", s->skipped ? or_empty(s->overflow_layer) : "");
    snprintf(c->trouble_text, sizeof c->trouble_text, "%s", text);
}

/** An alert after which waiting would lose more: a loss that stays off, updates that are skipped for good. */
static const mixt_alert *worst(const mixt_signals *s, const mixt_alert *alerts, int count)
{
    for (int i = 0; i < count; i++) {
        const mixt_alert *a = &alerts[i];
        bool lost = a->severity == MIXT_SEVERITY_CRITICAL && about_numbers(a->cause);
        bool many = a->severity == MIXT_SEVERITY_WARNING && a->cause == MIXT_CAUSE_OVERFLOW && s->scaling;
        if (lost || many)
            return a;
    }
    return NULL;
}

static bool find_trouble(mixt_controller *c, const mixt_signals *s, const mixt_alert *alerts, int count)
{
    char text[256];
    const char *layer = s->overflow_layer ? s->overflow_layer : "a layer";
    const mixt_alert *alert = worst(s, alerts, count);
    if (!isfinite(s->loss)) {
        describe(c, s, MIXT_CAUSE_LOSS_ANOMALY, "the loss is not finite");
    } else if (c->skips >= SKIPS_RUN && s->scaling && s->scale <= c->options.scale_floor) {
        mixt__print_number(text, sizeof text, "gradients overflow at the lowest loss scale, %g", s->scale);
        describe(c, s, MIXT_CAUSE_SCALE_COLLAPSE, text);
    } else if (c->skips >= SKIPS_RUN && !s->scaling) {
        snprintf(text, sizeof text, "the gradient of %s is NaN or Inf, and there is no loss scale to lower", layer);
        describe(c, s, MIXT_CAUSE_OVERFLOW, text);
    } else if (alert && !c->deaf) {
        describe(c, s, alert->cause, or_empty(alert->text));
    } else {
        return false;
    }
    return true;
}

static void end_episode(mixt_controller *c)
{
    c->attempts = c->skipped = c->slower = 0;
    c->clipped = c->scaled = false;
}

bool mixt_controller_step(mixt_controller *c, const mixt_signals *signals, const mixt_alert *alerts, int count,
                          mixt_trouble *trouble)
{
    if (mixt__need_open(c, "controller") != MIXT_OK || mixt__need(signals) != MIXT_OK || mixt__need(trouble) != MIXT_OK)
        return false;
    count = alerts ? count : 0;
    c->odd = c->odd << 1 | is_odd(signals, alerts, count);
    c->skips = signals->skipped ? c->skips + 1 : 0;
    if (c->waiting)
        return false;
    c->deaf -= c->deaf > 0;
    c->waiting = find_trouble(c, signals, alerts, count);
    if (c->waiting) {
        *trouble = c->trouble;
        return true;
    }
    if (++c->quiet == c->options.cooldown)
        end_episode(c);
    return false;
}

bool mixt_controller_report(mixt_controller *c, const mixt_trouble *trouble)
{
    if (mixt__need_open(c, "controller") != MIXT_OK || mixt__need(trouble) != MIXT_OK || c->waiting)
        return false;
    c->trouble.step = trouble->step;
    c->trouble.cause = trouble->cause;
    c->trouble.forward = trouble->forward;
    take_text(c->trouble_layer, sizeof c->trouble_layer, trouble->layer);
    take_text(c->trouble_text, sizeof c->trouble_text, trouble->text);
    c->waiting = true;
    return true;
}

bool mixt_controller_calm(const mixt_controller *c)
{
    return mixt__need_open(c, "controller") == MIXT_OK && !c->waiting && !(c->odd & ((1u << GOOD_UPDATES) - 1));
}

void mixt_controller_counts(const mixt_controller *c, int64_t *decisions, int64_t *rollbacks)
{
    bool open = mixt__need_open(c, "controller") == MIXT_OK;
    if (decisions)
        *decisions = open ? c->decisions : 0;
    if (rollbacks)
        *rollbacks = open ? c->rollbacks : 0;
}

/* ---- remedies ---- */

/** What is decided about. */
typedef struct deciding {
    mixt_controller *c;
    const mixt_finding *f;
    mixt_decision *d;
    int64_t times; // that a machine has got this number wrong
} deciding;

static bool may(const deciding *q, mixt_action action)
{
    return q->c->options.may & 1u << action;
}

static bool can_go_back(const deciding *q)
{
    return may(q, MIXT_ACTION_ROLLBACK) && q->f->good >= 0;
}

#define SET(field, ...) snprintf(field, sizeof field, __VA_ARGS__)

/** The place of a layer among those that it ever raised; -1: never. */
static int64_t find_raised(const mixt_controller *c, const char *layer)
{
    for (int64_t i = 0; i < c->raised_count; i++)
        if (!strcmp(c->raised[i].layer, layer))
            return i;
    return -1;
}

static bool is_raised(const mixt_controller *c, const char *layer)
{
    int64_t at = find_raised(c, layer), all = find_raised(c, "");
    return (at >= 0 && c->raised[at].standing != LOWERED) || (all >= 0 && c->raised[all].standing != LOWERED);
}

static bool raise(deciding *q, const char *layer, bool certain)
{
    mixt_controller *c = q->c;
    int64_t at = find_raised(c, layer);
    if (!may(q, MIXT_ACTION_PRECISION) || !q->f->low || is_raised(c, layer) ||
        (at < 0 && c->raised_count == RAISED_MAX))
        return false;
    bool again = at >= 0;
    at = again ? at : c->raised_count++;
    SET(c->raised[at].layer, "%s", layer);
    SET(c->raised[at].format, "%s", q->f->format);
    c->raised[at].standing = again || certain || !*layer ? PINNED : RAISED;
    q->d->action = MIXT_ACTION_PRECISION;
    SET(q->c->said.layer, "%s", layer);
    SET(q->c->said.from, "%s", q->f->format);
    SET(q->c->said.to, "fp32");
    return true;
}

/** Takes in what a machine has got wrong. @return how often that number was */
static int64_t count_fault(mixt_controller *c, const mixt_finding *f)
{
    if (!f->certain || f->cause != MIXT_CAUSE_HARDWARE || !*f->place)
        return 0;
    for (int i = 0; i < PLACES_MAX; i++) {
        if (*c->places[i].name && strcmp(c->places[i].name, f->place))
            continue;
        SET(c->places[i].name, "%s", f->place);
        return ++c->places[i].times;
    }
    return 1;
}

/** The same bits must come out of the same batches: once more from the good state, where the fault went away. */
static bool go_again(deciding *q)
{
    if (q->f->cause != MIXT_CAUSE_HARDWARE || q->f->persists || q->times >= FLIPS_MAX || !can_go_back(q))
        return false;
    q->d->action = MIXT_ACTION_ROLLBACK;
    SET(q->c->said.from, "%lld", (long long)q->c->trouble.step);
    SET(q->c->said.to, "%lld", (long long)q->f->good);
    return true;
}

/** Whether formats may be to blame. */
static bool suspects_precision(const deciding *q)
{
    if (q->f->certain)
        return q->f->cause == MIXT_CAUSE_PRECISION;
    return q->f->low &&
           (q->c->trouble.forward || q->c->trouble.cause == MIXT_CAUSE_OVERFLOW ||
            q->c->trouble.cause == MIXT_CAUSE_UNDERFLOW || q->c->trouble.cause == MIXT_CAUSE_SCALE_COLLAPSE);
}

/** A scale that can move: helps where gradients became 0, and where a fixed one was too large. */
static bool scale(deciding *q)
{
    bool fixed = strcmp(q->f->scaling, "none") && strcmp(q->f->scaling, "dynamic");
    bool none = !strcmp(q->f->scaling, "none") && q->c->trouble.cause == MIXT_CAUSE_UNDERFLOW;
    if (!may(q, MIXT_ACTION_SCALE) || q->c->scaled || q->c->trouble.forward || !suspects_precision(q) ||
        !(fixed || none) || !*q->f->scaling)
        return false;
    q->c->scaled = true;
    q->d->action = MIXT_ACTION_SCALE;
    SET(q->c->said.key, "train.loss_scale");
    SET(q->c->said.from, "%s", q->f->scaling);
    SET(q->c->said.to, "dynamic");
    return true;
}

/** Layer by layer during the first half of the attempts; after that all at once. */
static bool raise_blamed(deciding *q)
{
    bool early = q->c->attempts <= (q->c->options.retries + 1) / 2;
    for (int i = 0; early && suspects_precision(q) && i < q->f->layer_count && i < MIXT_FINDING_LAYERS; i++)
        if (raise(q, q->f->layers[i], q->f->certain))
            return true;
    return false;
}

static bool raise_all(deciding *q)
{
    bool innocent = q->f->certain && q->f->cause != MIXT_CAUSE_PRECISION;
    return !innocent && raise(q, "", true);
}

static bool raise_suspected(deciding *q)
{
    return suspects_precision(q) && raise_all(q);
}

static bool blames_data(const deciding *q)
{
    return q->f->certain && q->f->cause == MIXT_CAUSE_DATA;
}

/** What was found to be bad is no attempt: as many as there are may go. */
static bool leave_out(deciding *q)
{
    mixt_controller *c = q->c;
    if (!may(q, MIXT_ACTION_SKIP) || !can_go_back(q) || !blames_data(q) || !q->f->has_sample ||
        c->samples == SAMPLES_MAX)
        return false;
    c->samples++;
    c->attempts--;
    q->d->action = MIXT_ACTION_SKIP;
    SET(q->c->said.key, MIXT_SKIP_SAMPLE);
    SET(q->c->said.to, "%lld", (long long)q->f->sample);
    return true;
}

static bool skip(deciding *q)
{
    bool bad = blames_data(q);
    if (!may(q, MIXT_ACTION_SKIP) || !can_go_back(q) || q->f->batch < 0 ||
        q->c->skipped >= (bad ? SKIPS_DATA : SKIPS_MAX))
        return false;
    q->c->skipped++;
    q->c->attempts -= bad;
    q->d->action = MIXT_ACTION_SKIP;
    SET(q->c->said.to, "%lld", (long long)q->f->batch);
    return true;
}

static bool clip(deciding *q)
{
    if (!may(q, MIXT_ACTION_CLIP) || q->c->clipped || q->f->adaptive)
        return false;
    q->c->clipped = true;
    q->d->action = MIXT_ACTION_CLIP;
    SET(q->c->said.key, "train.clip");
    mixt__print_number(q->c->said.from, sizeof q->c->said.from, "%.9g", q->f->clip);
    mixt__print_number(q->c->said.to, sizeof q->c->said.to, "%.9g", q->f->clip > 0 ? q->f->clip / 4 : 1);
    return true;
}

/** To the rate that a replay was calm with, where there is one; else to half of what it is. */
static bool slow_down(deciding *q)
{
    if (!may(q, MIXT_ACTION_LR) || q->c->slower == SLOWER_MAX || !(q->f->lr > 0))
        return false;
    q->c->slower++;
    q->d->action = MIXT_ACTION_LR;
    SET(q->c->said.key, "train.lr");
    mixt__print_number(q->c->said.from, sizeof q->c->said.from, "%.9g", q->f->lr);
    mixt__print_number(q->c->said.to, sizeof q->c->said.to, "%.9g",
                       q->f->calm_lr > 0 && q->f->calm_lr < q->f->lr ? q->f->calm_lr : q->f->lr / 2);
    return true;
}

typedef bool remedy(deciding *);
enum { REMEDIES = 8 };

/** What is tried, in this order: nothing else cures a fault of the hardware, or a learning rate that is too high. */
static remedy *const against_hardware[REMEDIES] = {go_again};
static remedy *const against_optimizer[REMEDIES] = {slow_down, clip};
static remedy *const against_data[REMEDIES] = {leave_out, skip};
static remedy *const against_unknown[REMEDIES] = {skip, clip};
static remedy *const against_others[REMEDIES] = {scale, raise_blamed, raise_suspected, skip,
                                                 clip,  raise_all,    slow_down};

static remedy *const *remedies_of(const deciding *q)
{
    const mixt_finding *f = q->f;
    if (f->certain && f->cause == MIXT_CAUSE_HARDWARE)
        return against_hardware;
    if (f->certain && f->cause == MIXT_CAUSE_DATA)
        return against_data;
    if (f->certain && f->cause == MIXT_CAUSE_OPTIMIZER)
        return against_optimizer;
    return f->replayed && !q->c->trouble.forward ? against_unknown : against_others;
}

static bool find_remedy(deciding *q)
{
    remedy *const *remedies = remedies_of(q);
    for (int i = 0; i < REMEDIES && remedies[i] && q->c->attempts <= q->c->options.retries; i++)
        if (remedies[i](q))
            return true;
    return false;
}

static void explain(deciding *q, bool stop)
{
    const mixt_controller *c = q->c;
    const char *found = q->f->text;
    if (stop && q->times >= FLIPS_MAX)
        SET(q->c->said.text,
            "%s; %.380s; %.120s was wrong %lld times in this run: this machine is broken, resume from the last good "
            "state on another one",
            c->trouble.text, found, q->f->place, (long long)q->times);
    else if (stop && q->f->certain && q->f->cause == MIXT_CAUSE_HARDWARE)
        SET(q->c->said.text, "%s; %s: resume from the last good state on another machine", c->trouble.text, found);
    else if (stop)
        SET(q->c->said.text, "%s%s%s: auto.may and auto.retries allow nothing more after %lld attempt%s",
            c->trouble.text, *found ? "; " : "", found, (long long)c->attempts - 1, c->attempts == 2 ? "" : "s");
    else
        SET(q->c->said.text, "%s%s%s", c->trouble.text, *found ? "; " : "", found);
}

/** A decision with empty texts of the controller's. */
static mixt_decision start_decision(mixt_controller *c)
{
    memset(&c->said, 0, sizeof c->said);
    return (mixt_decision){.back = -1,
                           .layer = c->said.layer,
                           .key = c->said.key,
                           .from = c->said.from,
                           .to = c->said.to,
                           .text = c->said.text};
}

/** Where losses only stand out, and no machine, format or rate is to blame, a run without a controller goes on and may
 *  come right: stopping is not shown to be better. */
static bool goes_on(deciding *q)
{
    mixt_controller *c = q->c;
    bool blamed = q->f->certain && q->f->cause != MIXT_CAUSE_DATA;
    if (blamed || c->trouble.forward ||
        (c->trouble.cause != MIXT_CAUSE_LOSS_ANOMALY && c->trouble.cause != MIXT_CAUSE_GRADIENT_ANOMALY))
        return false;
    c->deaf = c->options.cooldown;
    q->d->action = MIXT_ACTION_NONE;
    SET(q->c->said.text, "%s; %.500s: nothing that auto.may allows helps, and stopping would not be better",
        c->trouble.text, *q->f->text ? q->f->text : "nothing was found");
    end_episode(c);
    return true;
}

bool mixt_controller_decide(mixt_controller *c, const mixt_finding *finding, mixt_decision *decision)
{
    if (mixt__need_open(c, "controller") != MIXT_OK || mixt__need(finding) != MIXT_OK ||
        mixt__need(decision) != MIXT_OK || !c->waiting)
        return false;
    mixt_finding known = *finding;
    deciding q = {.c = c, .f = &known, .d = decision};
    known.format = or_empty(known.format);
    known.scaling = or_empty(known.scaling);
    known.text = or_empty(known.text);
    for (int i = 0; i < MIXT_FINDING_LAYERS; i++)
        known.layers[i] = or_empty(known.layers[i]);
    known.place = or_empty(known.place);
    q.times = count_fault(c, &known);
    *decision = start_decision(c);
    decision->step = c->trouble.step;
    decision->severity = MIXT_SEVERITY_WARNING;
    decision->cause = finding->certain ? finding->cause : c->trouble.cause;
    c->waiting = false;
    c->attempts++;
    c->quiet = 0;
    bool found = find_remedy(&q);
    explain(&q, !found);
    if (found) {
        c->decisions++;
        decision->back = can_go_back(&q) ? finding->good : -1;
        c->rollbacks += decision->back >= 0;
        return true;
    }
    if (goes_on(&q)) {
        decision->back = can_go_back(&q) ? finding->good : -1;
        return true;
    }
    decision->action = MIXT_ACTION_STOP;
    decision->severity = MIXT_SEVERITY_CRITICAL;
    decision->back = can_go_back(&q) ? finding->good : -1;
    end_episode(c); // who resumes has changed something
    return true;
}

bool mixt_controller_lower(mixt_controller *c, mixt_decision *decision)
{
    if (mixt__need_open(c, "controller") != MIXT_OK || mixt__need(decision) != MIXT_OK || c->waiting ||
        !c->options.calm || c->quiet < c->options.calm || !(c->options.may & 1u << MIXT_ACTION_PRECISION))
        return false;
    for (int64_t i = c->raised_count - 1; i >= 0; i--) {
        if (c->raised[i].standing != RAISED)
            continue;
        *decision = start_decision(c);
        decision->action = MIXT_ACTION_PRECISION;
        decision->cause = MIXT_CAUSE_COUNT;
        SET(c->said.layer, "%s", c->raised[i].layer);
        SET(c->said.from, "fp32");
        SET(c->said.to, "%s", c->raised[i].format);
        SET(c->said.text, "no problem for %lld updates since it was raised as a precaution", (long long)c->quiet);
        c->raised[i].standing = LOWERED;
        c->quiet = 0;
        return true;
    }
    return false;
}

/* ---- memory of its own, saved and found again ---- */

/** All that is a number, in the order in which it is saved. */
#define NUMBERS(X)                                                                                                     \
    X(attempts)                                                                                                        \
    X(quiet) X(skips) X(skipped) X(slower) X(clipped) X(scaled) X(samples) X(deaf) X(odd) X(decisions) X(rollbacks)

json_t *mixt__controller_pack(const mixt_controller *c)
{
    json_t *o = json_object(), *raised = json_array();
#define PACK(name) mixt__json_set(o, #name, json_integer((json_int_t)c->name));
    NUMBERS(PACK)
#undef PACK
    for (int64_t i = 0; i < c->raised_count; i++)
        mixt__json_add(raised,
                       json_pack("[s,s,i]", c->raised[i].layer, c->raised[i].format, (int)c->raised[i].standing));
    mixt__json_set(o, "raised", raised);
    json_t *places = json_array();
    for (int i = 0; i < PLACES_MAX && *c->places[i].name; i++)
        mixt__json_add(places, json_pack("[s,I]", c->places[i].name, (json_int_t)c->places[i].times));
    mixt__json_set(o, "places", places);
    return o;
}

void mixt__controller_unpack(mixt_controller *c, const json_t *object)
{
    const char *layer, *format;
    int standing;
#define UNPACK(name) c->name = (__typeof__(c->name))json_integer_value(json_object_get(object, #name));
    NUMBERS(UNPACK)
#undef UNPACK
    const json_t *raised = json_object_get(object, "raised"), *places = json_object_get(object, "places");
    json_int_t times;
    memset(c->places, 0, sizeof c->places);
    for (size_t i = 0; i < json_array_size(places) && i < PLACES_MAX; i++)
        if (!json_unpack(json_array_get(places, i), "[s,I]", &layer, &times)) {
            SET(c->places[i].name, "%s", layer);
            c->places[i].times = times;
        }
    c->raised_count = 0;
    for (size_t i = 0; i < json_array_size(raised) && c->raised_count < RAISED_MAX; i++) {
        if (json_unpack(json_array_get(raised, i), "[s,s,i]", &layer, &format, &standing))
            continue;
        SET(c->raised[c->raised_count].layer, "%s", layer);
        SET(c->raised[c->raised_count].format, "%s", format);
        c->raised[c->raised_count++].standing = standing == RAISED ? RAISED : standing == LOWERED ? LOWERED : PINNED;
    }
}
