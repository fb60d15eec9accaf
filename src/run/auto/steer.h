/* The controller of a run: hears its updates and alerts, finds out what it can, decides; and decisions that others
 * ask for or that a record holds. The loop acts on them at one place (mixt__steer_next).
 *
 * What is decided depends on the numbers of training alone, never on time, and all that it depends on is in the run's
 * checkpoints: a run that was killed decides the same. Memory is the exception: see run/auto/pressure.h.
 *
 * Of several ranks each has a controller, and all come to the same decision at the same update: numbers of training are
 * those of all ranks, and what one rank alone sees is told to the others before it counts. They compare what they are
 * about to look into, and each decision before it is acted on.
 */
#ifndef MIXT_RUN_STEER_H
#define MIXT_RUN_STEER_H

#include "data/data.h"
#include "mixt/run.h"
#include "monitor/drift.h"
#include "monitor/monitor.h"
#include "run/auto/good_states.h"
#include "steer/diagnosis.h"
#include "steer/looks.h"

#include <jansson.h>

enum { MIXT_DECISIONS_ASKED = 8, MIXT_BATCHES_SKIPPED = 64 };

/** Texts of what is known about a trouble. */
typedef struct mixt__finding_words {
    char layer[128], scaling[32], place[192], text[512];
} mixt__finding_words;

typedef struct mixt__steer {
    mixt_controller *controller; // NULL: nobody decides
    mixt__good_states good;
    mixt_alert alerts[MIXT_ALERTS_MAX]; // of the newest update
    int alert_count;
    mixt_trouble trouble;   // that waits for a decision
    bool troubled;          // there is one
    mixt_trouble suspicion; // an alert that needs no decision by itself: a diagnosis may say otherwise
    bool suspected;         // there is one
    mixt__alert_words suspicion_words;
    mixt__finding_words found;       // of the newest finding
    mixt__diagnosis_words diagnosed; // of the newest diagnosis
    mixt__looks looks;               // without being asked
    bool look_due, look_off;         // one follows the newest update; none are possible
    mixt__drift drift;               // of the loss
    bool drifts;                     // it has risen slowly: to be measured
    bool look_first;                 // one comes before the first update: the precision was chosen
    int64_t looked;                  // the update of the last one that was looked into
    int64_t spent;                   // updates that were computed again to look into suspicions
    char dead[128];                  // the parameter without gradient that was looked into last
    mixt_decision asked[MIXT_DECISIONS_ASKED];
    int asked_count;
    int64_t skips[MIXT_BATCHES_SKIPPED]; // numbers of batches that are left out
    int64_t skip_count;
    int64_t left_out[MIXT_LEFT_OUT_MAX]; // samples
    int left_out_count;
    mixt_decision *recorded; // those of auto.replay, in the order in which they are taken
    int64_t recorded_count, replayed;
    mixt_decision chosen; // what precision=auto has become; `to` NULL: it was not asked for
    int64_t decisions, rollbacks;
} mixt__steer;

/** The looks without being asked (run/auto/looks.c): whether one follows update `step`, and what is decided after it.
 */
bool mixt__run_look_due(const mixt_run *run, int64_t step);
/** Whether the run looks at all: it computes in lower formats, and updates can be made again. */
bool mixt__run_looks(const mixt_run *run);
mixt_status mixt__run_look(mixt_run *run, mixt_decision *decision, bool *found);
/** Before the first update of a run whose precision was chosen: asks for the layers that lose gradients in it to be in
 *  FP32, and says what it looked at (run/auto/first_look.c). */
mixt_status mixt__run_look_first(mixt_run *run);
/** What is known without looking further. Texts are the run's. */
mixt_finding mixt__steer_signs(mixt_run *run);

/** Reads the decisions of auto.replay, where that is set: before anything is written. */
mixt_status mixt__steer_read(mixt_run *run);
/** Whether the configuration wants a controller. */
bool mixt__steer_wanted(const mixt_run *run);
/** Makes the controller as the checkpoint left it, and takes the memory of the good state. The trainer must have its
 *  memory, the directory must be open. */
mixt_status mixt__steer_open(mixt_run *run);
void mixt__steer_close(mixt_run *run);
/** What the checkpoint that the run goes on from has of it: batches that are left out, and the controller's memory
 * where there is one. */
void mixt__steer_remember(mixt_run *run);
/** What a checkpoint keeps of it. */
json_t *mixt__steer_pack(mixt_run *run);
/** `user` is not used: it is the run's own. */
mixt_observer mixt__steer_observe;

/** Whether the run is about to go back: what follows the newest update is of no use. */
bool mixt__steer_returns(const mixt_run *run);
/** Whether the state after update number `step` is to be kept to go back to, if it is good. */
bool mixt__steer_due(const mixt_run *run, int64_t step);
/** Keeps it, if it is good. */
void mixt__steer_keep(mixt_run *run, const mixt__loop_state *state);
/** Keeps it under another policy than before: what comes cannot be computed again from an earlier state. */
void mixt__steer_renew(mixt_run *run, const mixt__loop_state *state);
/** Whether recorded decisions follow update number `step`, and asks for them. */
bool mixt__steer_recorded(const mixt_run *run, int64_t step);
bool mixt__steer_replay(mixt_run *run, int64_t step);

/** The next decision to act on, for mixt__decision_free. All results are in. Fails where ranks come to different ones.
 *  @param found false: there is none */
mixt_status mixt__steer_next(mixt_run *run, mixt_decision *decision, bool *found);
/** Does what it says, but for going back: configuration, policy, trainer; writes its row and tells observers. What the
 *  trainer does not take is told as a warning, and the run goes on as it was. */
mixt_status mixt__steer_apply(mixt_run *run, const mixt_decision *decision);
/** Before an update: passes over batches that are left out. */
void mixt__steer_skip(mixt_run *run);

#endif
