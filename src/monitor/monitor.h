/* The monitor's memory, to be saved with a run and found again: an alert must come where it would have come without a
 * stop between. */
#ifndef MIXT_WATCH_MONITOR_H
#define MIXT_WATCH_MONITOR_H

#include "mixt/monitor.h"

#include <jansson.h>

/** The texts of an alert; `layer` is the first, so that one leads to the other. */
typedef struct mixt__alert_words {
    char layer[128], text[256];
} mixt__alert_words;

/** NULL when memory ends. */
json_t *mixt__monitor_pack(const mixt_monitor *monitor);
/** Bytes that a monitor holds. */
size_t mixt__monitor_bytes(void);
/** What does not fit is left out: a monitor that begins anew is no reason to refuse a run. */
void mixt__monitor_unpack(mixt_monitor *monitor, const json_t *object);

/** Whether an alert only says that a norm is beyond a fixed limit. It is held against nothing usual, so nobody decides
 *  anything from it. */
bool mixt__alert_of_limit(const mixt_alert *alert);

/** Whether the loss is above where it began, or far above its best: no state to go back to. */
bool mixt__monitor_risen(const mixt_monitor *monitor);
/** The loss at which the run was healthy: its best level, or where it began; NaN: nothing was seen. */
double mixt__monitor_healthy(const mixt_monitor *monitor);
/** The first loss, before anything was learned; NaN: nothing was seen. */
double mixt__monitor_began(const mixt_monitor *monitor);
/** The loss as it is now is how it is to be: it was looked into, and nothing is wrong. */
void mixt__monitor_accept(mixt_monitor *monitor);

#endif
