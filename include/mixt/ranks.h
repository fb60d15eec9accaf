/* How do I train in several processes? As ranks that a launcher starts: mpirun, srun.
 *
 * A run takes part where mixt_run_options.ranks says so; without a launcher, or with one rank, it is an ordinary run
 * and nothing of this is loaded.
 */
#ifndef MIXT_RANKS_H
#define MIXT_RANKS_H

#include "mixt/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the launcher says of this process. */
typedef struct mixt_ranks {
    int rank, size;             /**< 0 and 1 without a launcher */
    int local_rank, local_size; /**< among the ranks on this machine; local_size 0: the launcher does not say */
    const char *launcher;       /**< "Open MPI", "PMI", "Slurm"; "": none */
} mixt_ranks;

/** Reads the environment that launchers set; loads and begins nothing. */
MIXT_API mixt_ranks mixt_ranks_find(void);

/** Whether what carries bytes between ranks can be loaded here: the library and what it needs.
 *  @param name "mpi" or "nccl"
 *  @param version receives what it is built on in its own words, as "Open MPI v4.1.4"; it belongs to the library
 *  @return a failure's text says what is missing */
MIXT_API mixt_status mixt_ranks_transport(const char *name, const char **version);

/** Whether this process is the one that tells people what happened: rank 0, or the first that is left where rank 0 is
 *  lost. */
MIXT_API bool mixt_ranks_speaks(void);
/** Whether ranks have found each other. Before that no rank knows what fails on another: each speaks for itself. */
MIXT_API bool mixt_ranks_joined(void);

/* ---- a trainer among ranks that the caller has started ---- */

/** Bytes to or from another rank. */
typedef struct mixt_message {
    int peer;     /**< the other rank */
    void *data;   /**< what is sent is only read */
    size_t bytes; /**< may be 0 */
} mixt_message;

/** What carries bytes between ranks, the caller's own: a communicator of MPI, sockets, threads of one process. */
typedef struct mixt_communicator {
    int rank, size; /**< of this process, from 0; of all */
    void *user;     /**< for `exchange` */
    /** Sends all of `out` and receives all of `in`, at once: every rank may send before it receives. All ranks make the
     *  same calls in the same order, one at a time, though not always from the same thread.
     *  @param seconds after which a rank that does not answer is to be taken for lost
     *  @return not MIXT_OK: nothing more will be carried, and the update fails */
    mixt_status (*exchange)(void *user, const mixt_message *out, int outs, const mixt_message *in, int ins,
                            double seconds);
} mixt_communicator;

/** From its first step on the trainer makes its part of each update alone, and adds the others' gradients to its own:
 *  every rank gets the bits of a trainer with the same options that makes all parts (mixt_trainer_options.ranks).
 *  @param trainer made with as many ranks as the communicator has; it is not compiled yet. All ranks give it the same
 *  options, and then the same data and calls
 *  @param communicator copied; its user lives as long as the trainer
 *  @param seconds handed to `exchange`; above 0 */
MIXT_API mixt_status mixt_trainer_join(mixt_trainer *trainer, const mixt_communicator *communicator, double seconds);

/** How gradients went over the ranks, as this one saw it. */
typedef struct mixt_rank_trace {
    int64_t sent;    /**< bytes that this rank has sent since the run was opened */
    int64_t buckets; /**< that the gradients go in; 0: ranks compress: differences of weights go after each update */
    double pass;     /**< seconds of the newest update's last pass, until all gradients were made */
    double seconds;  /**< that sums have taken, in all updates */
    double waited;   /**< of those: what updates waited for */
    double hidden;   /**< share of `seconds` that went by behind the backward pass, 0 to 1 */
} mixt_rank_trace;

/** A bucket of the newest update; times in seconds from the beginning of its last pass. */
typedef struct mixt_rank_bucket {
    int64_t bytes;       /**< of its gradients */
    double ready;        /**< they were made */
    double begun, ended; /**< of their sum */
} mixt_rank_bucket;

/** What went over the ranks of a run that was trained as one of several; fails where it was not.
 *  @param run while it is open
 *  @param trace receives it */
MIXT_API mixt_status mixt_run_rank_trace(const mixt_run *run, mixt_rank_trace *trace);
/** One of its buckets, in the order in which they went.
 *  @param index from 0
 *  @param bucket receives it */
MIXT_API mixt_status mixt_run_rank_bucket(const mixt_run *run, int64_t index, mixt_rank_bucket *bucket);

#ifdef __cplusplus
}
#endif

#endif
