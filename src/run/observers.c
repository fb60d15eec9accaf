/* Telling observers what happened, and taking what they ask for. */
#include "run/run.h"

#include "base/threads.h"

#include <stdarg.h>
#include <stdio.h>

mixt_status mixt_run_observe(mixt_run *run, mixt_observer *observer, void *user)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(observer));
    if (run->observer_count == MIXT_OBSERVERS_MAX)
        return mixt__fail(MIXT_ERROR_STATE, "a run takes at most %d observers",
                          MIXT_OBSERVERS_MAX - MIXT_OBSERVERS_OWN);
    run->observers[run->observer_count].hear = observer;
    run->observers[run->observer_count++].user = user;
    return MIXT_OK;
}

double mixt__run_seconds(const mixt_run *run)
{
    return run->started > 0 ? mixt__time_now() - run->started : 0;
}

static mixt_status tell(mixt_run *run, mixt_event event)
{
    mixt_status first = MIXT_OK;
    event.step = &run->last;
    event.result = &run->result;
    event.time = mixt__run_seconds(run);
    event.text = event.text ? event.text : "";
    for (int i = 0; i < run->observer_count; i++) {
        mixt_status status = run->observers[i].hear(run->observers[i].user, run, &event);
        first = first == MIXT_OK ? status : first;
    }
    return first;
}

mixt_status mixt__run_tell(mixt_run *run, mixt_event event)
{
    bool inside = run->telling; // an observer tells something while it hears
    run->telling = true;
    mixt_status first = tell(run, event);
    for (int i = 0; !inside && i < run->alert_count; i++) {
        const mixt_alert *alert = &run->alerts[i];
        mixt_status status = tell(run, (mixt_event){.kind = MIXT_EVENT_ALERT, .alert = alert, .text = alert->text});
        first = first == MIXT_OK ? status : first;
    }
    if (!inside) {
        run->alert_count = 0;
        run->telling = false;
    }
    return first;
}

void mixt__run_raise(mixt_run *run, const mixt_alert *alert)
{
    if (run->alert_count < MIXT_ALERTS_MAX)
        run->alerts[run->alert_count++] = *alert;
}

void mixt__run_note(mixt_run *run, bool warning, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    // a note ends nothing: who wants to end the run does so at the next update
    (void)mixt__run_tell(run, (mixt_event){.kind = MIXT_EVENT_NOTE, .text = text, .warning = warning});
}

/** Nothing is asked of a run that is not open; the error text says so. */
static void ask(const char *function, mixt_run *run, unsigned what)
{
    if (mixt__need_open_at(function, "run", run, "run") == MIXT_OK)
        *(run->group ? &run->asking : &run->asked) |= what;
}

void mixt_run_ask_stop(mixt_run *run)
{
    ask(__func__, run, MIXT_ASKED_STOP);
}

void mixt_run_ask_validation(mixt_run *run)
{
    ask(__func__, run, MIXT_ASKED_VALIDATION);
}

void mixt_run_ask_checkpoint(mixt_run *run)
{
    ask(__func__, run, MIXT_ASKED_CHECKPOINT);
}

mixt_status mixt_run_ask_policy(mixt_run *run, const mixt_policy *policy)
{
    mixt_policy *copy;
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(policy));
    MIXT_TRY(mixt_policy_copy(policy, &copy));
    mixt_policy_free(run->policy);
    run->policy = copy;
    ask(__func__, run, MIXT_ASKED_POLICY);
    return MIXT_OK;
}
