/* The object behind mixt_run, for the files of this folder. */
#ifndef MIXT_RUN_RUN_H
#define MIXT_RUN_RUN_H

#include "mixt/plan.h"
#include "base/account.h"
#include "run/directory.h"
#include "run/hooks.h"
#include "run/report/events.h"
#include "run/open/experiment.h"
#include "run/report/layers.h"
#include "run/auto/pressure.h"
#include "run/state.h"
#include "run/auto/steer.h"
#include "run/report/tensorboard.h"
#include "store/checkpoint.h"

enum {
    MIXT_OBSERVERS_OWN = 4,  // metrics, TensorBoard, the monitor, the controller
    MIXT_OBSERVERS_MAX = 20, // and 16 of the user's
};

/** What observers may ask for. */
enum {
    MIXT_ASKED_STOP = 1,
    MIXT_ASKED_VALIDATION = 2,
    MIXT_ASKED_CHECKPOINT = 4,
    MIXT_ASKED_POLICY = 8,
    MIXT_ASKED_DECISION = 16, // or there is trouble to decide about
    MIXT_ASKED_MEMORY = 32,   // of several ranks: all look at their memory together
    MIXT_ASKED_PATIENCE = 64, // between ranks: one is still writing its part of a checkpoint
};

/** Where a resumed run goes on. */
typedef struct mixt__resume {
    char run[1024];               // "": the run is a new one
    char out[1024];               // another directory to go on in; "": the run's own
    mixt__checkpoint *checkpoint; // NULL: the run was ended before its first one, and begins anew
    mixt__loop_state state;
    json_t *changes;   // keys that differ from those of the checkpoint: {"key": {"from": …, "to": …}}
    bool device_given; // by a setting
    bool data_allowed; // to be another than the run's
    json_t *inputs;    // inputs.json, then
    bool looking;      // opened before an update of its past: newer checkpoints stay as they are
    char newer[1200];  // the oldest of those; "": there is none
    int64_t below;     // checkpoints of later updates are damaged, another rank says; 0: none is
    char damage[512];  // of the newest one; "": it is whole
    char *choices;     // file of the algorithms that the run chose; NULL: there is none
} mixt__resume;

/** A run that was opened for its weights: what it remembers of its data, which is opened when a part is asked for. */
typedef struct mixt__without_data {
    char *folder;   // of the run; NULL: its data is open
    json_t *inputs; // inputs.json
    bool checked;   // that the data is the one trained on, or said that it is not
    unsigned told;  // of which parts warnings were told: bits
} mixt__without_data;

enum { MIXT_LINE_TEXT = 256 };

struct mixt_run {
    mixt__handle handle;
    mixt_config *config;
    char *precision; // as it was given: the configuration soon names the copy of a policy file in the directory
    mixt__experiment experiment;
    mixt__run_dir dir; // from mixt_run_train on
    mixt__resume resume;
    mixt__without_data known;
    struct {
        mixt_observer *hear;
        void *user;
    } observers[MIXT_OBSERVERS_MAX];
    int observer_count;
    mixt_alert alerts[MIXT_ALERTS_MAX]; // of the event that is being told: observers hear them behind it
    int alert_count;
    bool telling;
    mixt__tensorboard tensorboard;
    mixt__events events;
    const mixt__hooks *hooks; // of who may change its course
    mixt__steer steer;
    mixt__pressure pressure;
    mixt__layers layers;
    unsigned asked;
    unsigned asking;     // the same of one rank of several: asked for once all have heard of it
    mixt__group *group;  // of all ranks of the run; NULL: it is one process
    mixt_policy *policy; // that was asked for; NULL: none
    bool signals;
    bool epochs_from_zero; // in metrics.jsonl, which an earlier version began
    int64_t roles_bytes;   // memory whose roles metrics.jsonl has, and …
    int64_t roles_end;     // … how long the file was with that row
    bool has_weights;      // loaded, restored or begun with: no longer as drawn
    mixt_step last;        // the newest update, and …
    double seconds;        // … what it took
    double started;        // the clock's time at its beginning, less the seconds of earlier parts; 0: not begun
    mixt_run_result result;
    mixt__account *account; // of all that the run holds
    mixt__account *outer;   // that the caller's thread was at work for when the run was opened
    mixt_fit fit;           // how it is planned within train.memory
    char fit_texts[2][MIXT_FIT_LINES][MIXT_LINE_TEXT]; // of its lines, in turns: of `fit`, and of a plan that is tried
    char summary[MIXT_SUMMARY_LINES][MIXT_LINE_TEXT];  // lines of the newest one
    int64_t split;                                     // train.split as it was given: parts at least
    size_t recompute;                                  // train.recompute as it was given
    mixt_dtype kept;                                   // format in which activations wait as it was given
    mixt_run_memory *phase_memory;                     // what it holds in each phase, planned; NULL: it has none
    size_t graphs;                                     // bytes of graphs and all that is small, held before training
};

/** The weights that the configuration begins with, once: a run that has some keeps them. */
mixt_status mixt__run_begin(mixt_run *run);

/** Tells all observers; the first failure is returned, the rest still hear. `event` needs kind and its own fields.
 *  Alerts that were raised meanwhile follow: nobody hears of one before the event that it is about. */
mixt_status mixt__run_tell(mixt_run *run, mixt_event event);
/** Seconds since the run began, going on over a resume; 0 before. */
double mixt__run_seconds(const mixt_run *run);
/** Raises an alert about the event that is being told. */
void mixt__run_raise(mixt_run *run, const mixt_alert *alert);
/** Tells a NOTE; `warning`: it must be seen. */
void mixt__run_note(mixt_run *run, bool warning, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
