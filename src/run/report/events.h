/* The monitor of a run, and events.jsonl: a row of JSON for each alert and each decision. Kept like metrics.jsonl: a
 * resumed run cuts it back to its checkpoint, from which the monitor's memory comes too.
 */
#ifndef MIXT_RUN_EVENTS_H
#define MIXT_RUN_EVENTS_H

#include "mixt/run.h"
#include "monitor/monitor.h"

#include <jansson.h>

/** What rank 0's monitor found in layers, as ranks tell each other: of the alerts but their texts. */
typedef struct mixt__said {
    int32_t count;
    mixt_alert alerts[MIXT_ALERTS_MAX];
    mixt__alert_words words[MIXT_ALERTS_MAX];
} mixt__said;

typedef struct mixt__events {
    mixt_monitor *monitor; // NULL: not wanted
    size_t weighed;        // memory was looked at, which does not change after the first update: 1, and what was taken
                           // away by then
    mixt__said said;       // by the newest look into layers
    char end[256];         // the text of an alert at the end
} mixt__events;

/** Makes the monitor that the configuration describes, as the checkpoint left it. The directory must be open. */
mixt_status mixt__events_open(mixt__events *events, mixt_run *run);
/** `user` is a mixt__events. */
mixt_observer mixt__events_observe;
/** A row that is no alert: something that the run does from here on. */
typedef struct mixt__event_row {
    const char *kind; // "decision" or "diagnosis"
    mixt_severity severity;
    const char *cause, *action;    // words that scripts rely on
    const char *layer, *from, *to; // NULL: none
    json_t *evidence;              // taken over; an object with "text" for people
} mixt__event_row;
/** Writes one, of the newest update whose result is there. */
mixt_status mixt__events_write(mixt_run *run, const mixt__event_row *row);
/** Writes alerts and tells observers. @param time seconds since the run began */
mixt_status mixt__events_tell(mixt_run *run, const mixt_alert *alerts, int count, double time);
/** Whether this rank's memory is to be looked at by all: somebody has taken some of it. */
bool mixt__events_weigh(const mixt_run *run);
/** The figures of the newest update. */
mixt_signals mixt__events_signals(const mixt_run *run);
/** Puts the monitor back to what a checkpoint kept of it. */
mixt_status mixt__events_return(mixt__events *events, mixt_run *run, const json_t *packed);
/** What a checkpoint keeps of it. */
json_t *mixt__events_pack(const mixt__events *events);
void mixt__events_close(mixt__events *events);

#endif
