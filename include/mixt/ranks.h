/* Training in several processes, ranks, that a launcher starts: mpirun, srun.
 *
 * A run takes part where mixt_run_options.ranks says so; without a launcher, or with one rank, it is an ordinary run
 * and nothing of this is loaded.
 */
#ifndef MIXT_RANKS_H
#define MIXT_RANKS_H

#include "mixt/types.h"

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
mixt_ranks mixt_ranks_find(void);

/** Whether what carries bytes between ranks can be loaded here: the library and what it needs.
 *  @param name "mpi" or "nccl"
 *  @param version receives what it is built on in its own words, as "Open MPI v4.1.4"
 *  @param size of `version`, in bytes
 *  @return a failure's text says what is missing */
mixt_status mixt_ranks_transport(const char *name, char *version, size_t size);

/** Whether this process is the one that tells people what happened: rank 0, or the first that is left where rank 0 is
 *  lost. */
bool mixt_ranks_speaks(void);

#ifdef __cplusplus
}
#endif

#endif
