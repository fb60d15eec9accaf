/* What folders above see of a trainer that shares its updates (train/dist/ranks.h): how it joins others, and what it
 * can be asked. */
#ifndef MIXT_TRAIN_JOIN_H
#define MIXT_TRAIN_JOIN_H

#include "dist/compress.h"
#include "dist/overlap.h"
#include "dist/transport.h"

typedef struct mixt__trainer mixt__trainer;

/** With whom, and how. */
typedef struct mixt__joining {
    mixt__group *group;            // borrowed; NULL: this process makes all parts
    bool planned;                  // only to be looked at: as with a group, of which there is none
    int zero;                      // what ranks share out: 1: moments; 2: gradients too; 3: masters too
    mixt_dtype format;             // in which gradients travel
    int64_t check;                 // updates after which weights are compared; 0: never
    int64_t bucket;                // elements that are under way at once
    mixt__compression compression; // what travels of weights that ranks update by themselves …
    int64_t compress_after;        // … after so many updates that they make together
} mixt__joining;

/** Before it is compiled. Every rank saves its part, until it is told otherwise. */
void mixt__ranks_join_with(mixt__trainer *t, const mixt__joining *how);
/** The same with a group that becomes the trainer's own. */
void mixt__ranks_join_take(mixt__trainer *t, mixt__group *group, int64_t bucket);
/** Gradients are summed in the device's memory. @param sums by this, borrowed; NULL: it is only planned */
void mixt__ranks_sum_on_device(mixt__trainer *t, mixt__device_sums *sums);
void mixt__ranks_set_save_parts(mixt__trainer *t, bool parts);

/** NULL: this process makes all parts. */
mixt__group *mixt__ranks_group(const mixt__trainer *t);
/** Whether there are others, or would be. */
bool mixt__ranks_joined(const mixt__trainer *t);
/** Whether ranks compress. *after: updates that they make together before */
bool mixt__ranks_compress(const mixt__trainer *t, int64_t *after);
/** The rank from which the others have a weight; -1: each makes its own. @param element in the flat arenas */
int mixt__ranks_owner_of(const mixt__trainer *t, int64_t segment, int64_t element);

/** Passes of an update that one part has, and the first that this process makes. */
int64_t mixt__ranks_passes(const mixt__trainer *t);
int64_t mixt__ranks_first(const mixt__trainer *t);
/** Parts that this process makes: all, or one. */
int64_t mixt__ranks_parts(const mixt__trainer *t);

/** Passes that this process makes. */
int64_t mixt__ranks_made(const mixt__trainer *t);

/** Bytes of what an update of several parts takes beside a step: where the trainer's own memory lies, and of the host
 *  where that is another. Needs compile. */
size_t mixt__ranks_bytes(const mixt__trainer *t);
size_t mixt__ranks_host_bytes(const mixt__trainer *t);
/** Bytes that this rank, of planned ones the first, sends in an update; with sharded moments a few more than are
 *  sent. Needs compile. Where ranks compress: in one that they make by themselves, but not the last. */
int64_t mixt__ranks_sent(const mixt__trainer *t);
/** The same in the run's last update. */
int64_t mixt__ranks_sent_last(const mixt__trainer *t);
/** Of those, all but gradients and their sums. */
int64_t mixt__ranks_sent_beside(const mixt__trainer *t);
/** The same in one that they make together. */
int64_t mixt__ranks_sent_plain(const mixt__trainer *t);
/** Whether moments are sharded. */
bool mixt__ranks_sharded(const mixt__trainer *t);
/** Whether every rank saves its part. */
bool mixt__ranks_save_parts(const mixt__trainer *t);
/** Whether ranks have state of their own, which must be collected before rank 0 can save it alone. */
bool mixt__ranks_discrete(const mixt__trainer *t);

/** What this rank says to the others with the next update: a signal that it caught, 0 where none, … */
void mixt__ranks_signal(mixt__trainer *t, int signal);
/** … and what it asks for, in bits. */
void mixt__ranks_ask(mixt__trainer *t, uint32_t asked);
/** What any rank has said of both, before the newest update. */
int mixt__ranks_agreed_signal(const mixt__trainer *t);
uint32_t mixt__ranks_agreed_asked(const mixt__trainer *t);

/** How sums and exchanges went: of the last update, or of all that ranks compressed. */
typedef struct mixt__ranks_trace {
    double seconds, waited;      // that they took; that training stood still for them
    double passed;               // when the backward pass was over, from its begin
    int64_t count;               // of …
    const mixt__bucket *buckets; // … the sums, borrowed; of compressed exchanges none
} mixt__ranks_trace;
/** False: it has not trained as one of several. */
bool mixt__ranks_trace_of(const mixt__trainer *t, mixt__ranks_trace *trace);

#endif
