/* What a run tells, on the terminal. */
#include "cli/watch.h"

#include <math.h>
#include <string.h>

static void show_step(cli_watch *w, const mixt_run *run, const mixt_event *event)
{
    const mixt_run_info info = mixt_run_describe(run);
    const mixt_step *step = event->step;
    w->shown =
        (cli_progress_info){.step = step->step, .steps = info.total_steps, .epoch = step->epoch, .epochs = info.epochs};
    w->shown.loss = step->loss;
    w->shown.accuracy = step->accuracy;
    w->shown.items_s = (double)(event->result->samples * info.items_per_sample) / event->result->step_seconds;
    w->shown.item = info.item;
    w->shown.scale = info.scaling ? step->scale : (double)NAN;
    cli_progress_update(&w->progress, &w->shown);
}

static void show_validation(cli_watch *w, const mixt_event *event)
{
    const mixt_evaluation *found = event->validation;
    char loss[32];
    cli_format_loss(loss, found->loss);
    if (isnan(found->accuracy))
        cli_progress_note(&w->progress, "step %lld: validation loss %s", (long long)event->step->step, loss);
    else
        cli_progress_note(&w->progress, "step %lld: validation loss %s, accuracy %.2f%%", (long long)event->step->step,
                          loss, 100 * found->accuracy);
}

static void note_said(cli_watch *w, const char *text)
{
    snprintf(w->said[w->next], sizeof w->said[0], "%s", text);
    w->next = (w->next + 1) % CLI_WATCH_SAID;
}

static bool is_separator(const char *at)
{
    return (at[0] == ':' || at[0] == ';') && at[1] == ' ';
}

void cli_watch_trim(const cli_watch *w, char *text)
{
    for (int i = 0; i < CLI_WATCH_SAID; i++) {
        const char *said = w->said[(w->next + i) % CLI_WATCH_SAID];
        char *at = *said ? strstr(text, said) : NULL;
        if (!at)
            continue;
        char *after = at + strlen(said);
        if (is_separator(after))
            after += 2;
        else if (!*after && at - text >= 2 && is_separator(at - 2))
            at -= 2;
        memmove(at, after, strlen(after) + 1);
    }
}

/** What is only worth a row in the record is not worth a line here; where little is to be shown, only what is worst. */
static void show_alert(cli_watch *w, const mixt_event *event)
{
    if (event->alert->severity < (w->quiet ? MIXT_SEVERITY_CRITICAL : MIXT_SEVERITY_WARNING))
        return;
    if (w->started)
        cli_progress_warn(&w->progress, "step %lld: %s", (long long)event->alert->step, event->text);
    else
        fprintf(stderr, "mixt: %s\n", event->text);
    note_said(w, event->text);
}

/** Always: the run does something else than it was told to. That it stops is what it fails with. */
static void show_decision(const cli_watch *w, cli_progress *progress, const mixt_event *event)
{
    char text[2048];
    if (event->decision->action == MIXT_ACTION_STOP)
        return;
    snprintf(text, sizeof text, "%s", event->text);
    cli_watch_trim(w, text);
    if (w->started)
        cli_progress_warn(progress, "step %lld: %s", (long long)event->decision->step, text);
    else
        fprintf(stderr, "mixt: %s\n", text);
}

/** What was found about an alert; that nothing was is not worth a line. */
static void show_diagnosis(cli_watch *w, const mixt_event *event)
{
    if (event->diagnosis->kind == MIXT_DIAGNOSIS_UNKNOWN || w->quiet)
        return;
    cli_progress_warn(&w->progress, "step %lld: %s", (long long)event->step->step, event->text);
    note_said(w, event->text);
}

/** Before training begins there is no progress line to stand above. */
static void show_note(const cli_watch *w, cli_progress *progress, const mixt_event *event)
{
    if (event->warning && w->started)
        cli_progress_warn(progress, "%s", event->text);
    else if (event->warning)
        fprintf(stderr, "mixt: %s\n", event->text);
    else if (w->started)
        cli_progress_note(progress, "%s", event->text);
    else if (!w->quiet)
        fprintf(stderr, "%s\n", event->text);
}

mixt_status cli_watch_observe(void *user, mixt_run *run, const mixt_event *event)
{
    cli_watch *w = user;
    switch (event->kind) {
    case MIXT_EVENT_START:
        cli_progress_start(&w->progress, stderr, w->quiet, event->result->steps);
        w->started = true;
        break;
    case MIXT_EVENT_STEP:
        show_step(w, run, event);
        break;
    case MIXT_EVENT_VALIDATION:
        show_validation(w, event);
        break;
    case MIXT_EVENT_ALERT:
        show_alert(w, event);
        break;
    case MIXT_EVENT_DECISION:
        show_decision(w, &w->progress, event);
        break;
    case MIXT_EVENT_DIAGNOSIS:
        show_diagnosis(w, event);
        break;
    case MIXT_EVENT_NOTE:
        show_note(w, &w->progress, event);
        break;
    case MIXT_EVENT_END:
        if (event->result->steps && w->shown.step)
            cli_progress_finish(&w->progress, &w->shown);
        break;
    case MIXT_EVENT_LAYERS:
    case MIXT_EVENT_ROW:
    case MIXT_EVENT_CHECKPOINT:
        break;
    }
    return MIXT_OK;
}

mixt_status cli_warn(void *user, mixt_run *run, const mixt_event *event)
{
    (void)user;
    (void)run;
    if (event->kind == MIXT_EVENT_NOTE && event->warning)
        fprintf(stderr, "mixt: %s\n", event->text);
    return MIXT_OK;
}
