/* Updates to the monitor, alerts to observers and into the file. */
#include "run/report/events.h"

#include "base/threads.h"
#include "mixt/machine.h"
#include "mixt/plan.h"
#include "base/memory.h"
#include "run/run.h"
#include "train/lengths.h"
#include "monitor/monitor.h"

#include <math.h>

static mixt_monitor_options wanted(const mixt_run *run)
{
    const mixt_config *c = run->config;
    mixt_monitor_options o = MIXT_OPTIONS(mixt_monitor_options, .window = mixt__config_int(c, MIXT_KEY_WATCH_WINDOW));
    o.cooldown = mixt__config_int(c, MIXT_KEY_WATCH_COOLDOWN);
    o.loss_sigma = mixt__config_float(c, MIXT_KEY_WATCH_LOSS_SIGMA);
    o.grad_sigma = mixt__config_float(c, MIXT_KEY_WATCH_GRAD_SIGMA);
    o.grad_norm_max = mixt__config_float(c, MIXT_KEY_WATCH_GRAD_NORM_MAX);
    o.grad_norm_min = mixt__config_float(c, MIXT_KEY_WATCH_GRAD_NORM_MIN);
    o.memory_warn = mixt__config_float(c, MIXT_KEY_WATCH_MEMORY_WARN);
    o.scale_floor = (double)mixt__trainer_settings_of(run->experiment.trainer->inner)->scaling.floor;
    return o;
}

mixt_status mixt__events_open(mixt__events *e, mixt_run *run)
{
    mixt_monitor_options options = wanted(run);
    const mixt__checkpoint *from = run->resume.checkpoint;
    *e = (mixt__events){0};
    if (!mixt__config_bool(run->config, MIXT_KEY_WATCH_MONITOR))
        return MIXT_OK;
    MIXT_TRY(mixt_monitor_new(&options, &e->monitor));
    if (from)
        mixt__monitor_unpack(e->monitor, json_object_get(json_object_get(from->scalars, "run"), "watch"));
    return MIXT_OK;
}

mixt_status mixt__events_return(mixt__events *e, mixt_run *run, const json_t *packed)
{
    mixt_monitor_options options = wanted(run);
    if (!e->monitor)
        return MIXT_OK;
    mixt_monitor_free(e->monitor);
    MIXT_TRY(mixt_monitor_new(&options, &e->monitor));
    mixt__monitor_unpack(e->monitor, packed);
    return MIXT_OK;
}

void mixt__events_close(mixt__events *e)
{
    mixt_monitor_free(e->monitor);
    e->monitor = NULL;
}

json_t *mixt__events_pack(const mixt__events *e)
{
    return e->monitor ? mixt__monitor_pack(e->monitor) : json_null();
}

static json_t *row_of(const mixt_alert *a, double time)
{
    json_t *evidence =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:I}", "text", a->text, "value", mixt__rows_number(a->value), "usual",
                  mixt__rows_number(a->usual), "deviations", mixt__rows_number(a->deviations), "limit",
                  mixt__rows_number(a->limit), "silenced", (json_int_t)a->silenced);
    return json_pack("{s:I, s:o, s:s, s:s, s:s, s:o, s:n, s:n, s:s, s:o}", "step", (json_int_t)a->step, "time",
                     mixt__rows_number(time), "kind", "alert", "severity", mixt_severity_name(a->severity), "cause",
                     mixt_cause_name(a->cause), "layer", a->layer[0] ? json_string(a->layer) : json_null(), "from",
                     "to", "action", "none", "evidence", evidence);
}

mixt_status mixt__events_write(mixt_run *run, const mixt__event_row *row)
{
    return mixt__rows_add(&run->dir.events,
                          json_pack("{s:I, s:o, s:s, s:s, s:s, s:s?, s:s?, s:s?, s:s, s:o}", "step",
                                    (json_int_t)run->last.step, "time",
                                    mixt__rows_number(mixt__time_now() - run->started), "kind", row->kind, "severity",
                                    mixt_severity_name(row->severity), "cause", row->cause, "layer", row->layer, "from",
                                    row->from, "to", row->to, "action", row->action, "evidence", row->evidence));
}

mixt_status mixt__events_tell(mixt_run *run, const mixt_alert *alerts, int count, double time)
{
    for (int i = 0; i < count; i++) {
        MIXT_TRY(mixt__rows_add(&run->dir.events, row_of(&alerts[i], time)));
        mixt__run_raise(run, &alerts[i]);
    }
    return MIXT_OK;
}

mixt_signals mixt__events_signals(const mixt_run *run)
{
    const mixt_step *s = &run->last;
    const mixt__scaling *scaling = &mixt__trainer_settings_of(run->experiment.trainer->inner)->scaling;
    mixt_signals signals = {.step = s->step, .loss = s->loss, .grad_norm = s->grad_norm, .lr = s->lr};
    signals.scale = s->scale;
    signals.seconds = run->seconds / mixt__lengths_share(run->experiment.trainer->inner, s->step); // of the longest
    signals.memory_used = signals.memory_total = NAN;
    signals.skipped = s->skipped;
    signals.scaling = scaling->enabled && scaling->dynamic;
    signals.overflow_layer = s->overflow_layer;
    return signals;
}

/** How much of the memory the run will hold, which is known as soon as it begins. */
static void weigh_memory(const mixt_run *run, mixt_signals *signals)
{
    const mixt_run_memory *memory = &run->result.run_memory;
    double taken = (double)mixt__memory_withheld();
    mixt_plan_info plan;
    mixt_cpu_info cpu;
    if (mixt_plan_describe(run->experiment.trainer, &plan) != MIXT_OK)
        return;
    if (plan.device_bytes) {
        signals->memory_used = (double)(plan.device_bytes - plan.device_free) + taken;
        signals->memory_total = (double)plan.device_bytes;
        return;
    }
    mixt_cpu_describe(&cpu);
    signals->memory_used = (double)memory->total.host + taken;
    signals->memory_total = cpu.memory_total ? (double)cpu.memory_total : (double)NAN;
}

/** The same of the rank that has least left. */
static mixt_status weigh_together(const mixt_run *run, mixt_signals *signals)
{
    mixt__group *g = run->group;
    double mine[2], most = -1;
    weigh_memory(run, signals);
    mine[0] = signals->memory_used;
    mine[1] = signals->memory_total;
    double *all = mixt__alloc((size_t)g->size * sizeof mine);
    mixt_status status = mixt__group_agree(
        g, all ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare the memory of all ranks"));
    if (status == MIXT_OK)
        status = mixt__group_gather(g, mine, sizeof mine, all, 1);
    for (int rank = 0; status == MIXT_OK && rank < g->size; rank++) {
        const double *told = all + 2 * rank;
        if (!(told[0] / told[1] > most))
            continue;
        most = told[0] / told[1];
        signals->memory_used = told[0];
        signals->memory_total = told[1];
    }
    mixt__free(all);
    return status;
}

bool mixt__events_weigh(const mixt_run *run)
{
    return run->events.monitor && run->events.weighed && run->events.weighed < 1 + mixt__memory_withheld();
}

static mixt_status hear_step(mixt__events *e, mixt_run *run, double time)
{
    mixt_alert alerts[MIXT_ALERTS_MAX];
    mixt_signals signals = mixt__events_signals(run);
    if (run->group && (!e->weighed || run->asked & MIXT_ASKED_MEMORY))
        MIXT_TRY(weigh_together(run, &signals));
    else if (!run->group && e->weighed < 1 + mixt__memory_withheld()) // again when somebody has taken some
        weigh_memory(run, &signals);
    if (!run->group || !e->weighed || run->asked & MIXT_ASKED_MEMORY)
        e->weighed = 1 + mixt__memory_withheld();
    int count = mixt_monitor_step(e->monitor, &signals, alerts);
    return mixt__events_tell(run, alerts, count, time);
}

/** What rank 0's monitor says is said on all ranks: values of a step that a test has changed may be others elsewhere.
 */
static mixt_status hear_layers(mixt__events *e, mixt_run *run, const mixt_event *event)
{
    mixt__said *said = &e->said;
    *said = (mixt__said){0};
    said->count = (int32_t)mixt_monitor_layers(e->monitor, event->layers, said->alerts);
    for (int i = 0; i < said->count; i++) {
        snprintf(said->words[i].layer, sizeof said->words[i].layer, "%s", said->alerts[i].layer);
        snprintf(said->words[i].text, sizeof said->words[i].text, "%s", said->alerts[i].text);
    }
    if (run->group)
        MIXT_TRY(mixt__group_broadcast(run->group, said, sizeof *said, 1));
    for (int i = 0; i < said->count; i++) {
        said->alerts[i].layer = said->words[i].layer;
        said->alerts[i].text = said->words[i].text;
    }
    return mixt__events_tell(run, said->alerts, said->count, event->time);
}

mixt_status mixt__events_observe(void *user, mixt_run *run, const mixt_event *event)
{
    mixt__events *e = user;
    if (e->monitor && event->kind == MIXT_EVENT_STEP)
        return hear_step(e, run, event->time);
    if (e->monitor && event->kind == MIXT_EVENT_LAYERS)
        return hear_layers(e, run, event);
    return MIXT_OK;
}
