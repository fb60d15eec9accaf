/* How far is it, and shall it go on? What everything that takes long tells while it runs: one type for all of it.
 *
 *   static bool hear(void *user, const mixt_progress *p)
 *   {
 *       if (p->kind == MIXT_PROGRESS_STEP)
 *           printf("%s %s: %lld of %lld %s\n", p->task, p->what, (long long)p->done, (long long)p->total, p->unit);
 *       else
 *           puts(p->text);
 *       return true; // go on
 *   }
 *
 * Who takes one has `progress` and `user` among its options. A run tells its observers more than this (mixt/run.h).
 */
#ifndef MIXT_PROGRESS_H
#define MIXT_PROGRESS_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mixt_progress_kind {
    MIXT_PROGRESS_STEP,    /**< some more is done: an update, a pass, a batch of sentences */
    MIXT_PROGRESS_DATA,    /**< the same of data that is made ready for it: a text is tokenised, a vocabulary learned */
    MIXT_PROGRESS_PART,    /**< a run, a candidate, a stage has ended: `text` says what came of it */
    MIXT_PROGRESS_NOTE,    /**< something that a user should know: `text` */
    MIXT_PROGRESS_WARNING, /**< something that went wrong, while the call goes on: `text`; to be shown also where little
                              is */
} mixt_progress_kind;

/** How far something is. Pointers are valid during the call only; texts are never NULL. */
typedef struct mixt_progress {
    mixt_progress_kind kind;
    const char *task;       /**< what is being done, in a few words: "tokenising", "training" */
    const char *what;       /**< to what: a file, a precision, a layer; "": to all of it */
    const char *unit;       /**< what is counted: "bytes", "updates"; "": nothing is */
    int64_t done, total;    /**< so many so far, and in all; total 0: not known */
    int64_t part, parts;    /**< of work in parts (runs, pairs, stages): the one under way, from 1, and how many there
                                 are as far as is known; 0: it has none */
    double seconds, budget; /**< since the call began; that it may take. NaN: not told, no limit */
    double loss, accuracy;  /**< STEP: of the newest update; PART: of the part. NaN: none */
    const char *text; /**< for people: PART, NOTE, WARNING: a sentence; STEP, DATA: figures to show beside it, or "" */
} mixt_progress;

/**
 * Hears how far it is, in the thread that called.
 * @param user the options' `user`.
 * @return true: go on; false: end it after the step under way. What has a result so far then gives it, and says that it
 *   was ended; else the call fails with MIXT_ERROR_STATE.
 */
typedef bool mixt_progress_fn(void *user, const mixt_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
