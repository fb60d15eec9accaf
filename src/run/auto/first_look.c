/* A run whose precision was chosen for its device looks at its own model and data before it begins: is this format
 * faster than FP32 there at all, does it lose what FP32 keeps, and in which layers? Measured on weights as they are;
 * looks while it trains go on from there (looks.c). That it is slower is the only thing here that time decides; it is
 * written down as any decision, so that a resumed run and a replay have it too.
 */
#include "run/auto/steer.h"

#include "policy/policy.h"
#include "run/run.h"
#include "steer/consensus.h"
#include "steer/faster.h"
#include "steer/fragile.h"

#include <stdio.h>

enum { BATCHES = 3 };                  // that are looked at; most of them decide
static const double most = 4e11;       // operations that it may take on the host: seconds; ...
static const double most_apart = 1e14; // ... on a device of its own

/** What was seen. */
typedef struct seen {
    int64_t batches, samples; // that were looked at; of the samples with the largest inputs; 0: there are no such
    int64_t losing;           // batches
    bool extremes;            // the format loses or breaks them
    bool timed, slower;       // next to FP32: whether that was measured, and shown
    double speed, low, high;  // next to FP32
    mixt__fragile fragile;    // where something is lost
} seen;

static double operations(const mixt__trainer *t)
{
    const mixt__executable *step = mixt__trainer_compiled(t);
    return mixt__executable_flops(step, true) * (2 * (BATCHES + 1) + 1);
}

/** On a GPU the units decide. */
static bool is_to_be_timed(const mixt_run *run)
{
    const mixt__trainer *t = run->experiment.trainer->inner;
    double flops = mixt__executable_flops(mixt__trainer_compiled(t), true) * MIXT_FASTER_PASSES;
    bool memory = mixt__config_int(run->config, MIXT_KEY_TRAIN_MEMORY) > 0; // a lower format saves some, which counts
    return mixt__trainer_device(t)->backend->host_memory && flops <= most && !memory;
}

static mixt_status look_at_time(const mixt_run *run, seen *s)
{
    mixt_judgement j;
    MIXT_TRY(mixt__faster_measure(run->experiment.trainer->inner, run->experiment.train, &j));
    s->timed = true;
    s->slower = j.verdict == MIXT_VERDICT_NO;
    s->speed = j.value;
    s->low = j.low;
    s->high = j.high;
    return MIXT_OK;
}

static mixt_status try_format(mixt__glance *glance, const mixt__trainer *t, bool *loses)
{
    double loss;
    MIXT_TRY(mixt__glance_at(glance, &mixt__trainer_settings_of(t)->policy, mixt__glance_scale(t), &loss));
    *loses = mixt__glance_loses(glance);
    return MIXT_OK;
}

static mixt_status look_at(mixt__glance *glance, const mixt__trainer *t, seen *s, bool extreme)
{
    bool loses;
    MIXT_TRY(try_format(glance, t, &loses));
    s->extremes |= extreme && loses;
    s->losing += !extreme && loses;
    bool decides = loses && (extreme || s->losing == BATCHES / 2 + 1);
    return decides && !s->fragile.count ? mixt__fragile_find(glance, &s->fragile) : MIXT_OK;
}

static mixt_status look_at_batches(const mixt_run *run, const mixt__trainer *t, seen *s)
{
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; i < BATCHES && status == MIXT_OK; i++) {
        mixt__glance glance;
        status = mixt__glance_open(&glance, t, run->experiment.train, i);
        if (status == MIXT_OK)
            status = look_at(&glance, t, s, false);
        s->batches += status == MIXT_OK;
        mixt__glance_close(&glance);
    }
    return status;
}

static mixt_status look_at_extremes(const mixt_run *run, const mixt__trainer *t, seen *s)
{
    mixt__glance glance;
    bool found;
    mixt_status status = mixt__glance_open_extreme(&glance, t, run->experiment.train, &found);
    if (status == MIXT_OK && found) {
        s->samples = glance.samples;
        status = look_at(&glance, t, s, true);
    }
    mixt__glance_close(&glance);
    return status;
}

/** Rank 0 looks. */
static mixt_status look(mixt_run *run, seen *s)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    *s = (seen){0};
    MIXT_TRY(mixt__consensus_agree(t, mixt__trainer_ready(t, run->experiment.train)));
    mixt_status status = MIXT_OK;
    if (!run->group || run->group->rank == 0) {
        status = is_to_be_timed(run) ? look_at_time(run, s) : MIXT_OK;
        if (status == MIXT_OK && !s->slower)
            status = look_at_batches(run, t, s);
        if (status == MIXT_OK && !s->slower)
            status = look_at_extremes(run, t, s);
    }
    MIXT_TRY(mixt__consensus_agree(t, status));
    return mixt__consensus_take(t, 0, s, sizeof *s);
}

static void ask(mixt_run *run, const seen *s)
{
    char text[256], on[96] = "";
    const char *format = run->steer.chosen.to;
    mixt_decision d = {.back = -1, .action = MIXT_ACTION_PRECISION, .severity = MIXT_SEVERITY_WARNING};
    d.cause = MIXT_CAUSE_PRECISION;
    d.layer = "";
    d.from = format;
    d.to = "fp32";
    d.text = text;
    if (s->extremes)
        snprintf(on, sizeof on, " and on the %lld samples with the largest inputs", (long long)s->samples);
    snprintf(
        text, sizeof text,
        "before the first update, %s loses half of FP32's gradient or more on %lld of %lld batches%s (measured once)",
        format, (long long)s->losing, (long long)s->batches, on);
    if (!s->fragile.count)
        (void)mixt_run_ask_decision(run, &d);
    for (int i = 0; i < s->fragile.count; i++) {
        d.layer = s->fragile.layers[i];
        (void)mixt_run_ask_decision(run, &d); // there is room: nobody else has asked yet
    }
}

static void ask_fp32(mixt_run *run, const seen *s)
{
    char text[256];
    const char *format = run->steer.chosen.to;
    mixt_decision d = {.back = -1, .action = MIXT_ACTION_PRECISION, .severity = MIXT_SEVERITY_INFO};
    d.cause = MIXT_CAUSE_COUNT;
    d.layer = "";
    d.from = format;
    d.to = "fp32";
    d.text = text;
    snprintf(text, sizeof text,
             "before the first update, %s is %.2f times as fast as FP32 for this model here (%.2f to %.2f, %d pairs of "
             "passes): FP32 is no slower and loses nothing; for less memory set precision=%s",
             format, s->speed, s->low, s->high, MIXT_FASTER_PAIRS, format);
    (void)mixt_run_ask_decision(run, &d);
}

mixt_status mixt__run_look_first(mixt_run *run)
{
    const mixt__trainer *t = run->experiment.trainer->inner;
    const char *format = run->steer.chosen.to;
    char evidence[160], times[96] = "";
    seen s;
    run->steer.look_first = false;
    if (!mixt__policy_lowers(&mixt__trainer_settings_of(t)->policy))
        return MIXT_OK;
    if (operations(t) > (mixt__trainer_device(t)->backend->host_memory ? most : most_apart)) {
        mixt__run_note(run, false,
                       "%-8s not looked at before the first update, for that would take long: mixt sensitivity",
                       "auto");
        return MIXT_OK;
    }
    if (look(run, &s) != MIXT_OK) {
        mixt__run_note(run, false, "%-8s not looked at before the first update: %s", "auto", mixt_error_text());
        return mixt__trainer_is_broken(t) ? mixt__fail(MIXT_ERROR_STATE, "the trainer cannot go on") : MIXT_OK;
    }
    if (s.slower) {
        ask_fp32(run, &s);
        return MIXT_OK;
    }
    if (s.timed)
        snprintf(times, sizeof times, ", and its passes are %.2f times as fast (%.2f to %.2f)", s.speed, s.low, s.high);
    int used = snprintf(evidence, sizeof evidence, "%lld batches", (long long)s.batches);
    if (s.samples)
        snprintf(evidence + used, sizeof evidence - (size_t)used, " and the %lld samples with the largest inputs",
                 (long long)s.samples);
    if (s.losing > BATCHES / 2 || s.extremes)
        ask(run, &s);
    else
        mixt__run_note(run, false, "%-8s %s keeps FP32's gradients on %s (measured once)%s", "auto", format, evidence,
                       times);
    return MIXT_OK;
}
