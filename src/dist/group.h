/* All ranks of a run together: what they tell each other, what they agree on, sums over all of them.
 *
 * Every function here is called by all ranks, in the same order, and fails on all of them where one is lost: the text
 * names the rank. After that the group carries nothing any more.
 *
 * Sums are added in the order of ranks, each element by one rank: ((g0 + g1) + g2) + g3, whatever the number of
 * buckets, and every rank gets the same bits.
 */
#ifndef MIXT_DIST_GROUP_H
#define MIXT_DIST_GROUP_H

#include "base/threads.h"
#include "dist/transport.h"

enum {
    MIXT_HOST_SIZE = 64,
    MIXT_PATIENCE = 10, // times the timeout, where one rank may read for much longer than the others
};

/** What is known of a rank. */
typedef struct mixt__peer {
    int number; // its rank in the group that was opened, by which people know it
    char host[MIXT_HOST_SIZE];
    uint64_t space; // in which its process has its number; of the same host, and the same: it can be looked at
    int64_t process;
} mixt__peer;

/** What ranks tell each other of how they are. */
typedef struct mixt__word {
    int32_t busy;   // it has more to do
    int32_t status; // how that went
    int64_t count;  // of whatever it is about
    char text[512]; // where it failed: why
} mixt__word;

typedef struct mixt__group mixt__group;

struct mixt__group {
    mixt__transport *transport; // NULL: `own` carries
    mixt_communicator own;      // the caller's
    int rank, size;
    double timeout;      // seconds
    mixt__peer *peers;   // (size)
    mixt__group *whole;  // that this is a part of; NULL: none
    int *members;        // (size) ranks of `whole`, where `own` carries
    int *handles;        // (size) of processes on this machine; -1: another machine, or it cannot be told
    mixt__message *out;  // (size)
    mixt__message *in;   // (size)
    mixt__range *ranges; // (size) slices of a sum under way
    int64_t *cuts;       // (size + 1) for who needs some
    mixt__word *words;   // (size) what ranks agree on
    bool *late;          // (size) who has not answered, where one is lost
    bool broken;         // a rank is lost: `why`
    char why[MIXT_NOTICE_SIZE];
    bool settled;  // the newest failure is one that all ranks know of
    int64_t bytes; // sent by this rank so far
};

/** Bytes that a group of so many ranks takes on each. */
size_t mixt__group_memory(int64_t ranks);
/** Loads the transport, and waits for the others.
 *  @param transport "mpi", or "nccl" where there is no MPI
 *  @param timeout seconds after which a rank that does not answer is lost */
mixt_status mixt__group_open(const char *transport, double timeout, mixt__group **group);
/** The same over what a caller has: nothing is loaded. A rank that is lost is noticed by it alone. */
mixt_status mixt__group_open_own(const mixt_communicator *own, double timeout, mixt__group **group);
/** Parts a group: ranks with the same colour become a group of their own, which is used as this one is, beside it. It
 *  is closed before this one. A rank that is lost in a part is noticed there; who fails by that gives up this one.
 *  @param colour 0 or more
 *  @param key orders the ranks of a part; where it is the same their rank does */
mixt_status mixt__group_split(mixt__group *group, int colour, int key, mixt__group **part);
/** Tells the others that this rank has failed, with its error text, unless they know of it: they fail too. */
void mixt__group_give_up(mixt__group *group);
/** "rank 1 (process 4711 on host)". */
void mixt__group_describe(const mixt__group *group, int rank, char *text, size_t size);
/** Waits for all others where it is whole. NULL is allowed. */
void mixt__group_close(mixt__group *group);

/** Everyone's bytes to everyone. @param all (size × bytes), by rank. @param patience times the timeout: for what may
 *  take one rank much longer than another, as reading data */
mixt_status mixt__group_gather(mixt__group *group, const void *mine, size_t bytes, void *all, double patience);
/** Rank 0's bytes to all. @param patience the same */
mixt_status mixt__group_broadcast(mixt__group *group, void *data, size_t bytes, double patience);
/** Whether all are well: the failure of the first rank that is not becomes everyone's, with its rank named.
 *  @param mine how this rank is; where it failed, its error text */
mixt_status mixt__group_agree(mixt__group *group, mixt_status mine);
/** The same of what stands in `words`, which all ranks have. */
mixt_status mixt__group_judge(mixt__group *group);
/** As agree, where no rank has anything to do before that takes as long as the timeout. */
mixt_status mixt__group_agree_soon(mixt__group *group, mixt_status mine);
/** Whether all ranks have the same text; else a failure says who has what. @param what that is, as "configuration" */
mixt_status mixt__group_same(mixt__group *group, const char *what, const char *text);

/** Until a device has run what was issued, sums with the other ranks too. */
mixt_status mixt__group_await(mixt__group *group, mixt__device_sums *sums);

/** Takes the memory that `size` ranks need. */
mixt_status mixt__group_prepare(mixt__group *group);
/** Handles of the processes that can be looked at. */
void mixt__group_watch(mixt__group *group);

/** Sends and receives what stands in `out` and `in`, so many of each. */
mixt_status mixt__group_exchange(mixt__group *group, int outs, int ins, double patience);

/** Bytes of workspace of mixt__group_sum. @param size ranks */
size_t mixt__group_sum_bytes(int size, int64_t bucket, mixt_dtype format);
/** data[i] = the sum over ranks, to all.
 *  @param bucket elements that are under way at once
 *  @param format in which numbers travel: FP32, or BF16 or FP16, to which each part and the sum are rounded */
mixt_status mixt__group_sum(mixt__group *group, float *data, int64_t count, int64_t bucket, mixt_dtype format,
                            void *workspace);
/** Bytes that rank `rank` sends for such a sum. */
int64_t mixt__group_sum_sent(int rank, int size, int64_t count, int64_t bucket, mixt_dtype format);

/** Bytes of workspace of mixt__group_reduce. */
size_t mixt__group_reduce_bytes(int size, int64_t bucket, mixt_dtype format);
/** The same sum, of which each rank keeps its own slice alone. `data` keeps its values.
 *  @param cuts (size + 1) where slices begin and end; `data` begins at the first of them
 *  @param mine of this rank's slice; may be that slice of `data` itself */
mixt_status mixt__group_reduce(mixt__group *group, float *data, const int64_t *cuts, int64_t bucket, mixt_dtype format,
                               void *workspace, float *mine);

/** Everyone's part of `data` to everyone. @param cuts (size + 1) where parts begin and end; `data` begins at the first
 *  @param size bytes of an element */
mixt_status mixt__group_gather_parts(mixt__group *group, void *data, const int64_t *cuts, size_t size);
/** Everyone's part to rank 0. @param all of rank 0; else NULL */
mixt_status mixt__group_collect_parts(mixt__group *group, const void *mine, void *all, const int64_t *cuts,
                                      size_t size);

/** The same sum in one process, for parts that come one after the other: bit for bit what as many ranks get.
 *  @param index of the part, from 0; `sum` needs no value before the first
 *  @param last the sum itself is rounded as it would travel */
void mixt__sum_part(float *sum, const float *part, int64_t count, mixt_dtype format, int64_t index, bool last);

#endif
