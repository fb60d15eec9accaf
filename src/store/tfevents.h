/* Event files as TensorBoard reads them: records of protocol-buffer messages, each with checksums of its own.
 *
 * A record is made in memory, one point of time at once, and appended whole. A file that was cut in the middle of a
 * record, by a kill, is read up to there. Nothing in it is ever changed: what a resumed run takes back it says in a new
 * file (mixt__tfevents_restart), whose name sorts behind the old one's.
 */
#ifndef MIXT_STORE_TFEVENTS_H
#define MIXT_STORE_TFEVENTS_H

#include "mixt/types.h"

typedef struct mixt__tfevents {
    int fd;
    bool open;
    char path[1200];
    unsigned char *bytes; // records that are not in the file yet, then the message under way
    size_t count, capacity;
    size_t record, message; // where the record under way and its summary begin
    bool lost;              // memory ended: told when the record ends
} mixt__tfevents;

enum { MIXT_TFEVENTS_BUCKETS = 64 };

/** How numbers are spread. */
typedef struct mixt__histogram {
    double min, max, count, sum, sum_squares;
    double limit[MIXT_TFEVENTS_BUCKETS], bucket[MIXT_TFEVENTS_BUCKETS]; // upper ends, ascending, and counts up to there
    int buckets;
} mixt__histogram;

/** Makes a file in a folder, with a name that no other has and that sorts behind older ones. */
mixt_status mixt__tfevents_open(mixt__tfevents *events, const char *folder);
/** What was said of updates from `step` on, in files before this one, no longer holds. */
mixt_status mixt__tfevents_restart(mixt__tfevents *events, int64_t step);

/** One point of time: begin, any number of values, end. */
void mixt__tfevents_begin(mixt__tfevents *events, int64_t step);
void mixt__tfevents_scalar(mixt__tfevents *events, const char *tag, float value);
void mixt__tfevents_text(mixt__tfevents *events, const char *tag, const char *text);
void mixt__tfevents_histogram(mixt__tfevents *events, const char *tag, const mixt__histogram *histogram);
mixt_status mixt__tfevents_end(mixt__tfevents *events);

/** Brings what was said to the file. On failure it is forgotten: charts are no reason to end a run. */
mixt_status mixt__tfevents_flush(mixt__tfevents *events);
/** Nothing to do on one that is not open. */
void mixt__tfevents_close(mixt__tfevents *events);

/** Counts finite numbers into buckets of equal width between their least and largest; the rest is not counted. */
void mixt__histogram_make(mixt__histogram *histogram, const float *values, int64_t count);

#endif
