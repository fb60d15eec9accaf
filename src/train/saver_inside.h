/* What the saver and its saves of parts share; nobody else includes this. */
#ifndef MIXT_TRAIN_SAVER_INSIDE_H
#define MIXT_TRAIN_SAVER_INSIDE_H

#include "train/checkpoint.h"

#include <pthread.h>

typedef enum mixt__saver_job {
    MIXT_SAVER_WHOLE,  // a checkpoint from begin to end
    MIXT_SAVER_PART,   // this rank's part of one
    MIXT_SAVER_FINISH, // rank 0: puts one in place of which all parts are written
} mixt__saver_job;

/** Where a save of parts is, the same on all ranks. */
typedef enum mixt__saver_stage {
    MIXT_SAVER_IDLE,
    MIXT_SAVER_WRITING,   // ranks write, or have written
    MIXT_SAVER_FINISHING, // rank 0 puts it in place, or has done so
} mixt__saver_stage;

struct mixt__saver {
    mixt__trainer *trainer;
    mixt__snapshot snapshot;
    pthread_t thread;
    bool threaded; // else saves are written by the caller
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mixt__save_request request; // valid while busy
    json_t *scalars;
    mixt__saver_job job;
    mixt__save_report report; // of the newest job
    bool busy, reported, stop;
    /* of parts */
    mixt__saver_stage stage;
    mixt__checkpoint_draft draft;
    json_t *files;              // rank 0: what the manifest says of small files
    mixt__checkpoint_sum *sums; // rank 0: of all ranks
    int64_t sum_count;
};

mixt_status mixt__save_folder(const mixt__save_request *request);
mixt__checkpoint_content mixt__save_content(const mixt__save_request *request, const mixt__snapshot *snapshot,
                                            const json_t *scalars);
mixt_status mixt__save_prune(const mixt__save_request *request);

/** Notes what is to be written; the saver is idle. @param trainer the scalars of the state */
mixt_status mixt__saver_ask(mixt__saver *saver, const mixt__save_request *request, json_t *trainer);
/** The same of the state of this moment, which it takes. */
mixt_status mixt__saver_take(mixt__saver *saver, const mixt__save_request *request);
/** Lets the thread do something; without one, does it. The saver is idle. */
void mixt__saver_go(mixt__saver *saver, mixt__saver_job job);
/** What was taken for a save that is over. */
void mixt__saver_forget(mixt__saver *saver);

mixt_status mixt__saver_write_part(mixt__saver *saver);
mixt_status mixt__saver_finish_parts(mixt__saver *saver);
/** One that was never settled leaves nothing. The thread has ended. */
void mixt__saver_abandon(mixt__saver *saver);

#endif
