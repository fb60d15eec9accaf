/* From updates to decisions. */
#include "run/auto/steer.h"

#include "base/c_locale.h"
#include "run/auto/blame.h"
#include "run/auto/diagnose.h"
#include "run/auto/pressure.h"
#include "run/bits.h"
#include "run/ranks.h"
#include "run/run.h"
#include "steer/consensus.h"
#include "steer/controller.h"
#include "steer/decision.h"
#include "steer/inquiry.h"
#include "store/checksum.h"
#include "store/json.h"
#include "train/integrity.h"
#include "monitor/monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    SUSPICIONS_APART = 20, // updates
    SPOILT = 3,            // times the usual loss
    LOOKS_FREE = 1000,     // updates that looks at suspicions may compute again, and …
    LOOKS_SHARE = 10,      // … one for so many that the run has made: a noisy run must not spend its time on them
};

bool mixt__steer_wanted(const mixt_run *run)
{
    return mixt__config_bool(run->config, MIXT_KEY_AUTO_STEER) &&
           !*mixt__config_string(run->config, MIXT_KEY_AUTO_REPLAY);
}

/* ---- opening, saving ---- */

static mixt_controller_options wanted(const mixt_run *run)
{
    mixt_controller_options o =
        MIXT_OPTIONS(mixt_controller_options, .retries = mixt__config_int(run->config, MIXT_KEY_AUTO_RETRIES));
    o.cooldown = mixt__config_int(run->config, MIXT_KEY_AUTO_COOLDOWN);
    o.calm = mixt__config_int(run->config, MIXT_KEY_AUTO_CALM);
    o.scale_floor = (double)mixt__trainer_settings_of(run->experiment.trainer->inner)->scaling.floor;
    o.may = 0;
    for (int word = 0; word <= MIXT_ACTION_LR - MIXT_ACTION_PRECISION; word++) // the words in this order
        if (mixt__config_lists(run->config, MIXT_KEY_AUTO_MAY, word))
            o.may |= 1u << (MIXT_ACTION_PRECISION + word);
    return o;
}

/** Decisions that wait: of several made at once, a checkpoint follows each. */
static json_t *pack_asked(const mixt__steer *s)
{
    json_t *asked = json_array();
    for (int i = 0; i < s->asked_count; i++) {
        mixt_decision d = s->asked[i];
        d.step = 0; // it gets its own when it is taken, and so does where it goes back to
        d.back = d.back >= 0 ? 0 : -1;
        mixt__json_add(asked, mixt__decision_row(&d, NAN));
    }
    return asked;
}

/** Makes room for others. */
static void forget_asked(mixt__steer *s)
{
    for (int i = 0; i < s->asked_count; i++)
        mixt__decision_free(&s->asked[i]);
    s->asked_count = 0;
}

static void unpack_asked(mixt__steer *s, const json_t *asked)
{
    forget_asked(s);
    for (size_t i = 0; i < json_array_size(asked) && s->asked_count < MIXT_DECISIONS_ASKED; i++) {
        bool found = false;
        mixt_status status = mixt__decision_read(json_array_get(asked, i), &s->asked[s->asked_count], &found);
        s->asked_count += status == MIXT_OK && found;
    }
}

json_t *mixt__steer_pack(mixt_run *run)
{
    const mixt__steer *s = &run->steer;
    json_t *skips = json_array();
    char bits[MIXT_BITS_TEXT];
    mixt__run_bits(run, bits);
    json_t *left_out = json_array();
    for (int i = 0; i < s->left_out_count; i++)
        mixt__json_add(left_out, json_integer(s->left_out[i]));
    for (int64_t i = 0; i < s->skip_count; i++)
        mixt__json_add(skips, json_integer(s->skips[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "asked",
                     pack_asked(s), "drift", mixt__drift_pack(&s->drift), "looks", mixt__looks_pack(&s->looks), "former",
                     mixt__snapshots_pack_former(&s->good.ring), "left_out", left_out, "controller",
                     s->controller ? mixt__controller_pack(s->controller) : json_null(), "skips", skips, "bits", bits,
                     "dead", s->dead, "looked", (json_int_t)s->looked, "spent", (json_int_t)s->spent, "good",
                     (json_int_t)(s->good.open ? s->good.step : -1), "older",
                     (json_int_t)(s->good.open ? s->good.older.step : -1), "replayed", (json_int_t)s->replayed,
                     "decisions", (json_int_t)s->decisions, "rollbacks", (json_int_t)s->rollbacks);
}

static void unpack(mixt__steer *s, const json_t *object)
{
    const json_t *skips = json_object_get(object, "skips");
    if (s->controller)
        mixt__controller_unpack(s->controller, json_object_get(object, "controller"));
    s->skip_count = 0;
    for (size_t i = 0; i < json_array_size(skips) && s->skip_count < MIXT_BATCHES_SKIPPED; i++)
        s->skips[s->skip_count++] = json_integer_value(json_array_get(skips, i));
    const json_t *left_out = json_object_get(object, "left_out");
    s->left_out_count = 0;
    for (size_t i = 0; i < json_array_size(left_out) && s->left_out_count < MIXT_LEFT_OUT_MAX; i++)
        s->left_out[s->left_out_count++] = json_integer_value(json_array_get(left_out, i));
    const char *dead = json_string_value(json_object_get(object, "dead"));
    snprintf(s->dead, sizeof s->dead, "%s", dead ? dead : "");
    mixt__snapshots_unpack_former(&s->good.ring, json_object_get(object, "former"));
    unpack_asked(s, json_object_get(object, "asked"));
    mixt__drift_unpack(&s->drift, json_object_get(object, "drift"));
    mixt__looks_unpack(&s->looks, json_object_get(object, "looks"));
    s->looked = json_integer_value(json_object_get(object, "looked"));
    s->spent = json_integer_value(json_object_get(object, "spent"));
    s->replayed = json_integer_value(json_object_get(object, "replayed"));
    s->decisions = json_integer_value(json_object_get(object, "decisions"));
    s->rollbacks = json_integer_value(json_object_get(object, "rollbacks"));
}

void mixt__steer_remember(mixt_run *run)
{
    const mixt__checkpoint *from = run->resume.checkpoint;
    if (!from)
        return;
    unpack(&run->steer, json_object_get(json_object_get(from->scalars, "run"), "auto"));
    mixt__trainer_stop_batches(run->experiment.trainer->inner);
    mixt__data_leave_out(run->experiment.train, run->steer.left_out, run->steer.left_out_count);
}

mixt_status mixt__steer_open(mixt_run *run)
{
    mixt__steer *s = &run->steer;
    const mixt__checkpoint *from = run->resume.checkpoint;
    if (mixt__steer_wanted(run)) {
        mixt_controller_options options = wanted(run);
        MIXT_TRY(mixt_controller_new(&options, &s->controller));
        mixt__good_states_open(&s->good, run);
        s->look_first = s->chosen.to && !run->resume.run[0];
    }
    mixt__steer_remember(run);
    if (from && s->controller)
        mixt__good_states_resume(run);
    run->result.decisions = s->decisions;
    run->result.rollbacks = s->rollbacks;
    return mixt__run_agree(run, MIXT_OK); // all have read what rank 0 may soon remove
}

void mixt__steer_close(mixt_run *run)
{
    mixt__steer *s = &run->steer;
    mixt_controller_free(s->controller);
    mixt__looks_free(&s->looks);
    mixt__good_states_close(&s->good);
    forget_asked(s);
    for (int64_t i = 0; i < s->recorded_count; i++)
        mixt__decision_free(&s->recorded[i]);
    mixt__free(s->recorded);
    mixt__decision_free(&s->chosen);
    *s = (mixt__steer){0};
}

/* ---- asking ---- */

mixt_status mixt_run_ask_decision(mixt_run *run, const mixt_decision *decision)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(decision));
    mixt__steer *s = &run->steer;
    if (s->asked_count == MIXT_DECISIONS_ASKED)
        return mixt__fail(MIXT_ERROR_STATE, "%d decisions wait already", MIXT_DECISIONS_ASKED);
    if ((unsigned)decision->action >= MIXT_ACTION_COUNT)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a decision needs an action, not %d", (int)decision->action);
    MIXT_TRY(mixt__decision_copy(decision, &s->asked[s->asked_count]));
    s->asked_count++;
    run->asked |= MIXT_ASKED_DECISION;
    return MIXT_OK;
}

/* ---- hearing ---- */

/** What was looked into a moment ago is not looked into again. */
static void suspect(mixt__steer *s, int64_t step, mixt_cause cause, const char *layer, const char *text)
{
    bool apart = !s->looked || step < s->looked || step - s->looked > SUSPICIONS_APART;
    s->suspected = apart && s->spent <= LOOKS_FREE + step / LOOKS_SHARE;
    mixt__alert_words *words = &s->suspicion_words;
    s->suspicion = (mixt_trouble){.step = step, .cause = cause, .layer = words->layer, .text = words->text};
    snprintf(words->layer, sizeof words->layer, "%s", layer);
    snprintf(words->text, sizeof words->text, "%s", text);
}

/** A single spike decides nothing, but a replay may show that a machine erred or a format was too small. */
static void find_suspicion(mixt_run *run)
{
    mixt__steer *s = &run->steer;
    char text[160];
    for (int i = 0; i < s->alert_count && !s->suspected; i++)
        if (s->alerts[i].severity >= MIXT_SEVERITY_WARNING && s->alerts[i].cause != MIXT_CAUSE_STALL &&
            !mixt__alert_of_limit(&s->alerts[i]))
            suspect(s, s->alerts[i].step, s->alerts[i].cause, s->alerts[i].layer, s->alerts[i].text);
    const char *dead = s->good.open ? mixt__snapshots_dead(&s->good.ring) : NULL;
    if (dead && strcmp(dead, s->dead) && !s->suspected) {
        snprintf(text, sizeof text, "the gradient of %.100s is 0 everywhere", dead);
        suspect(s, run->last.step, MIXT_CAUSE_GRADIENT_ANOMALY, dead, text);
    }
    snprintf(s->dead, sizeof s->dead, "%s", dead ? dead : "");
}

/** State that has changed in memory is trouble whatever the loss is. */
static bool find_damage(mixt_run *run)
{
    mixt__steer *s = &run->steer;
    const mixt__integrity_finding *found = mixt__trainer_damage(run->experiment.trainer->inner);
    if (!found)
        return false;
    s->trouble = (mixt_trouble){
        .step = run->last.step, .cause = MIXT_CAUSE_HARDWARE, .layer = "", .text = "state has changed in memory"};
    return mixt_controller_report(s->controller, &s->trouble);
}

static void judge(mixt_run *run)
{
    mixt__steer *s = &run->steer;
    mixt_decision lower;
    mixt_signals signals = mixt__events_signals(run);
    mixt__good_states_add(run);
    s->troubled |=
        find_damage(run) || mixt_controller_step(s->controller, &signals, s->alerts, s->alert_count, &s->trouble);
    if (!s->troubled)
        find_suspicion(run);
    s->alert_count = 0;
    s->look_due = mixt__run_look_due(run, run->last.step);
    s->drifts |= mixt__drift_take(&s->drift, run->last.loss) && mixt__run_looks(run);
    if (s->troubled || s->suspected || s->look_due || s->drifts)
        run->asked |= MIXT_ASKED_DECISION;
    else if (mixt_controller_lower(s->controller, &lower))
        (void)mixt_run_ask_decision(run, &lower); // it needs no memory
}

mixt_status mixt__steer_observe(void *user, mixt_run *run, const mixt_event *event)
{
    mixt__steer *s = &run->steer;
    (void)user;
    if (!s->controller)
        return MIXT_OK;
    bool watched = event->kind == MIXT_EVENT_STEP || event->kind == MIXT_EVENT_LAYERS;
    for (int i = 0; watched && i < run->alert_count && s->alert_count < MIXT_ALERTS_MAX; i++)
        s->alerts[s->alert_count++] = run->alerts[i]; // of the monitor, which hears events before
    if (event->kind != MIXT_EVENT_STEP)
        return MIXT_OK;
    judge(run);
    if (!mixt__config_bool(run->config, MIXT_KEY_AUTO_MEMORY))
        return MIXT_OK;
    if (run->group && run->asked & MIXT_ASKED_MEMORY)
        MIXT_TRY(mixt__pressure_consensus(run));
    return mixt__pressure_look(run);
}

static bool may_go_back(const mixt_run *run)
{
    return run->steer.controller && mixt__config_lists(run->config, MIXT_KEY_AUTO_MAY, MIXT_ACTION_ROLLBACK - 1) &&
           mixt__good_states_step(run) >= 0;
}

bool mixt__steer_returns(const mixt_run *run)
{
    return run->steer.troubled && may_go_back(run);
}

bool mixt__steer_due(const mixt_run *run, int64_t step)
{
    return run->steer.controller && step % mixt__config_int(run->config, MIXT_KEY_AUTO_SNAPSHOT_EVERY) == 0;
}

void mixt__steer_keep(mixt_run *run, const mixt__loop_state *state)
{
    bool risen = run->events.monitor && mixt__monitor_risen(run->events.monitor);
    if (run->steer.controller && !run->steer.troubled && !risen && mixt_controller_calm(run->steer.controller))
        mixt__good_states_take(run, state);
}

void mixt__steer_renew(mixt_run *run, const mixt__loop_state *state)
{
    if (run->steer.controller && !run->steer.troubled)
        mixt__good_states_take(run, state);
}

/* ---- deciding ---- */

/** What is known without looking further. */
mixt_finding mixt__steer_signs(mixt_run *run)
{
    mixt__finding_words *words = &run->steer.found;
    const mixt__trainer *t = run->experiment.trainer->inner;
    const mixt__scaling *scaling = &mixt__trainer_settings_of(t)->scaling;
    mixt_finding f = {.cause = MIXT_CAUSE_COUNT, .good = may_go_back(run) ? mixt__good_states_step(run) : -1};
    f.low = mixt__policy_lowers(&mixt__trainer_settings_of(t)->policy);
    *words = (mixt__finding_words){0};
    f.text = words->text;
    f.format = mixt_dtype_name(mixt__trainer_settings_of(t)->policy.forward);
    f.scaling = !scaling->enabled ? "none" : scaling->dynamic ? "dynamic" : words->scaling;
    if (f.scaling == words->scaling)
        mixt__print_number(words->scaling, sizeof words->scaling, "%.9g", (double)scaling->initial);
    f.clip = (double)mixt__trainer_settings_of(t)->decided.clip;
    f.lr = mixt__config_float(run->config, MIXT_KEY_TRAIN_LR);
    f.adaptive = mixt__optimizer_moments(&mixt__trainer_settings_of(t)->optimizer) > 1;
    int64_t back = mixt__trainer_steps(t) - run->steer.trouble.step; // updates that were issued since
    f.batch = mixt__trainer_position(t) / mixt__trainer_settings_of(t)->accumulate - 1 - back;
    return f;
}

static mixt_status decide(mixt_run *run, mixt_decision *decision)
{
    mixt__steer *s = &run->steer;
    mixt_finding f = mixt__steer_signs(run);
    mixt_decision said;
    if (s->trouble.layer[0]) {
        mixt__layer_of(s->trouble.layer, s->found.layer);
        f.layers[0] = s->found.layer;
        f.layer_count = 1;
    }
    mixt_diagnosis d;
    if (mixt__run_diagnose(run, s->trouble.step, s->trouble.cause, &d))
        mixt__run_finding(run, &d, &f);
    else if (s->trouble.forward && f.low && f.good >= 0)
        mixt__blame(run, s->trouble.step, &f);
    mixt_controller_decide(s->controller, &f, &said);
    s->troubled = s->suspected = false;
    return mixt__decision_copy(&said, decision);
}

/** Whether a single sample has made the loss of its batch several times what it should be: more than hard ones do. */
static bool is_spoilt(const mixt_diagnosis *d)
{
    return d->kind == MIXT_DIAGNOSIS_BATCH && d->sample >= 0 && !(d->fp32 <= SPOILT * d->usual);
}

/** Looks into a suspicion: what a machine, a format, a sample that is spoilt or updates that were too large did must be
 *  undone; the rest is only told. */
static mixt_status look_into(mixt_run *run, mixt_decision *decision, bool *found)
{
    mixt__steer *s = &run->steer;
    mixt_diagnosis d;
    mixt_decision said;
    s->suspected = false;
    s->looked = s->suspicion.step;
    if (!mixt__run_diagnose(run, s->suspicion.step, s->suspicion.cause, &d))
        return MIXT_OK;
    s->spent += d.replayed;
    if (d.kind == MIXT_DIAGNOSIS_UNKNOWN && run->events.monitor)
        mixt__monitor_accept(run->events.monitor);
    if (d.kind != MIXT_DIAGNOSIS_HARDWARE && d.kind != MIXT_DIAGNOSIS_PRECISION && d.kind != MIXT_DIAGNOSIS_OPTIMIZER &&
        !is_spoilt(&d))
        return MIXT_OK;
    s->trouble = s->suspicion;
    s->looked = 0; // whether what is done about it helps is looked at too
    mixt_finding f = mixt__steer_signs(run);
    mixt__run_finding(run, &d, &f);
    mixt_controller_report(s->controller, &s->trouble);
    *found = mixt_controller_decide(s->controller, &f, &said);
    return *found ? mixt__decision_copy(&said, decision) : MIXT_OK;
}

/** The next decision, without asking the other ranks. */
static mixt_status find_next(mixt_run *run, mixt_decision *decision, bool *found)
{
    mixt__steer *s = &run->steer;
    if (s->look_first)
        MIXT_TRY(mixt__run_look_first(run));
    *found = s->troubled;
    if (s->troubled)
        MIXT_TRY(decide(run, decision));
    else if (s->suspected)
        MIXT_TRY(look_into(run, decision, found));
    if (*found)
        s->look_due = s->drifts = false; // of an update that is undone, or of formats that were
    if (s->look_due || s->drifts)
        MIXT_TRY(mixt__run_look(run, decision, found));
    if (*found || !s->asked_count)
        return MIXT_OK;
    *found = true;
    *decision = s->asked[0];
    memmove(s->asked, s->asked + 1, (size_t)--s->asked_count * sizeof *s->asked);
    decision->step = run->last.step;
    decision->back = decision->back >= 0 ? mixt__good_states_step(run) : -1;
    return MIXT_OK;
}

/** What has changed in one rank's memory explains whatever trouble all of them see, and the others have not heard of it
 *  yet. */
static mixt_status share_damage(mixt_run *run)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    mixt__integrity_word mine = mixt__integrity_tell(t), *all;
    int count;
    if (!run->group || (!run->steer.troubled && !run->steer.suspected))
        return MIXT_OK;
    MIXT_TRY(mixt__consensus_gather(t, &mine, sizeof mine, (void **)&all, &count));
    mixt__integrity_hear(t, all, sizeof *all, count, true);
    mixt__free(all);
    run->steer.troubled = find_damage(run) || run->steer.troubled;
    return MIXT_OK;
}

/** Ranks look into the same trouble: what they do about it they do together. */
static mixt_status agree_on_trouble(mixt_run *run)
{
    const mixt__steer *s = &run->steer;
    const mixt_trouble *t = s->troubled ? &s->trouble : &s->suspicion;
    char text[320];
    if (!s->troubled && !s->suspected)
        return MIXT_OK;
    snprintf(text, sizeof text, "%s of update %lld, %s%s%.100s", s->troubled ? "trouble" : "a suspicion",
             (long long)t->step, mixt_cause_name(t->cause), t->layer[0] ? " of " : "", t->layer);
    return mixt__run_agree_on(run, "view of the run", text);
}

static mixt_status agree_on_decision(mixt_run *run, const mixt_decision *d)
{
    char all[MIXT_DECISION_TEXT], text[400];
    mixt__decision_text(d, all);
    snprintf(text, sizeof text, "%s after update %lld, back to %lld, %s from %.48s to %.48s (%016llx)",
             mixt_action_name(d->action), (long long)d->step, (long long)d->back, d->key[0] ? d->key : d->layer,
             d->from, d->to, (unsigned long long)mixt__checksum(all, strlen(all)));
    return mixt__run_agree_on(run, "decision", text);
}

mixt_status mixt__steer_next(mixt_run *run, mixt_decision *decision, bool *found)
{
    run->asked &= ~(unsigned)MIXT_ASKED_DECISION;
    *found = false;
    MIXT_TRY(agree_on_trouble(run));
    MIXT_TRY(share_damage(run));
    bool any, looks = run->steer.troubled || run->steer.suspected || run->steer.look_due || run->steer.drifts ||
                      run->steer.look_first; // on all ranks
    mixt_status said = find_next(run, decision, &any);
    MIXT_TRY(looks ? mixt__run_agree(run, said) : said);
    if (!any)
        return MIXT_OK;
    mixt_status status = agree_on_decision(run, decision);
    *found = status == MIXT_OK;
    if (!*found)
        mixt__decision_free(decision);
    return status;
}

void mixt__steer_skip(mixt_run *run)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    const mixt__steer *s = &run->steer;
    for (int64_t i = 0; i < s->skip_count; i++)
        if (s->skips[i] == mixt__trainer_position(t) / mixt__trainer_settings_of(t)->accumulate) {
            mixt__trainer_seek(t, mixt__trainer_position(t) + mixt__trainer_settings_of(t)->accumulate);
            i = -1; // the next one may be left out too
        }
}
