/* Ranks as launchers tell them, in the environment. */
#include "dist/launcher.h"

#include <stdlib.h>

/** The largest number of ranks that is believed. */
enum { RANKS_MAX = 1 << 20 };

static const struct {
    const char *name;
    const char *rank, *size, *local_rank, *local_size;
} launchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    // Of a step: a batch script has SLURM_PROCID and SLURM_NTASKS too, but is one process.
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

/** A number from 0, which stands alone or before "(x3)"; -1: there is none. */
static long number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return -1;
    long value = strtol(text, &end, 10);
    return (*end == '\0' || *end == '(') && value <= RANKS_MAX ? value : -1;
}

mixt_ranks mixt_ranks_find(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        long rank = number(launchers[i].rank), size = number(launchers[i].size);
        if (rank < 0 || size < 1 || rank >= size)
            continue;
        long local = number(launchers[i].local_rank), locals = number(launchers[i].local_size);
        mixt_ranks r = {.rank = (int)rank, .size = (int)size, .launcher = launchers[i].name};
        r.local_rank = local > 0 ? (int)local : 0;
        r.local_size = locals > r.local_rank ? (int)locals : 0;
        return r;
    }
    return (mixt_ranks){.size = 1, .local_size = 1, .launcher = ""};
}

static int speaker; // the rank that tells people

void mixt__ranks_speaker(int rank)
{
    speaker = rank;
}

static bool joined;

void mixt__ranks_have_joined(void)
{
    joined = true;
}

bool mixt_ranks_joined(void)
{
    return joined;
}

bool mixt_ranks_speaks(void)
{
    return mixt_ranks_find().rank == speaker;
}
