/* Weights that are sharded (dist.zero=3): each group of parameters (train/dist/owners.h) is gathered from all ranks
 * before the first node that reads one of them, in the formats in which they are read, and dropped behind the last.
 *
 * Which groups are there when, and where, is planned from the list of nodes before anything runs: a group that is read
 * again after others have been read stays away in between. It is gathered one group ahead of its use, by the thread
 * that sums gradients (dist/overlap.h), in one order with them: all ranks send and receive the same things one after
 * the other. Where a device's own library sums, it gathers too (train/dist/device_gather.h).
 */
#ifndef MIXT_TRAIN_GATHER_H
#define MIXT_TRAIN_GATHER_H

#include "dist/overlap.h"
#include "train/dist/owners.h"

/** Nodes during which a group is there. */
typedef struct mixt__stay {
    int64_t group;
    int64_t begin, first, last; // its memory is taken, it is read first and last
    size_t at;                  // in the window
} mixt__stay;

typedef struct mixt__gather {
    mixt__stay *stays; // in the order of their first nodes
    int64_t count;
    int64_t *full, *low; // by segment: where it stands among those of its group that are read in FP32, in its low
                         // format, in elements; -1: it is not read so
    size_t bytes;        // of the window
    char *window;        // borrowed: where nodes read groups
    char *host;          // borrowed: where groups are gathered; the window itself where the host has it
    uint32_t *landed;    // borrowed: (stays) of a device with memory of its own: not 0: it is in the window
    const float *own;    // borrowed: this rank's masters, on the host, or where the device gathers them
    mixt__bucket *jobs;  // of a pass: fetches of groups, and sums of gradients where it makes those
    int64_t job_count;
    int64_t *fetch_job, *sum_job; // by stay, by sum: how many jobs are done with it
    int64_t next;                 // stay that the pass comes to
    int64_t asked;                // stays that the device's own library has been asked for: train/dist/device_gather.h
    const mixt__params *params;   // borrowed
    const mixt__owners *owners;
} mixt__gather;

mixt_status mixt__gather_make(mixt__gather *gather, const mixt__graph *graph, const mixt__params *params,
                              const mixt__owners *owners);
void mixt__gather_free(mixt__gather *gather);

/** Bytes of the host's, beside a device with memory of its own: `host`, then `landed`. */
size_t mixt__gather_host_bytes(const mixt__gather *gather);
/** Says where they are. @param host of those bytes; NULL: the window itself */
void mixt__gather_place(mixt__gather *gather, char *window, char *host);
/** Whether two stays have memory in common. */
bool mixt__gather_shared(const mixt__gather *gather, int64_t one, int64_t other);
/** Bytes of a stay in the window. */
size_t mixt__gather_stay_bytes(const mixt__gather *gather, int64_t stay);

/** Where a node finds a parameter that it reads. @param user the gather */
void *mixt__gather_address(const void *user, const mixt__value *value, int64_t node);
/** How a group comes together. */
typedef struct mixt__gather_means {
    /** This rank's own elements to their place, in the format in which they are read. */
    mixt_status (*put)(void *user, void *to, const float *from, int64_t count, mixt_dtype format);
    /** Everyone's part to everyone. @param cuts (ranks + 1) of parts; `data` begins at the first
     *  @param size bytes of an element */
    mixt_status (*spread)(void *user, void *data, const int64_t *cuts, size_t size);
    void *user;
} mixt__gather_means;

/** In host memory, by messages. */
mixt__gather_means mixt__gather_over_hosts(mixt__group *group);
/** Fetches a group from all ranks. @param cuts (ranks + 1) for the time of the call */
mixt_status mixt__gather_fetch(const mixt__gather *gather, int64_t stay, int64_t *cuts,
                               const mixt__gather_means *means);
/** Bytes that this rank sends for all stays. */
int64_t mixt__gather_sent(const mixt__gather *gather, int64_t rank);

/** Lists the jobs of a pass, by the node behind which they can be done. @param sums of gradients, in their order; NULL:
 *  the pass makes none */
void mixt__gather_list(mixt__gather *gather, const mixt__bucket *sums, int64_t count);

#endif
