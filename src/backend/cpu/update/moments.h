/* A segment's moments as its update reads and writes them: FP32 where they stand, else a block at a time in FP32. */
#ifndef MIXT_BACKEND_CPU_UPDATE_MOMENTS_H
#define MIXT_BACKEND_CPU_UPDATE_MOMENTS_H

#include "backend/training.h"

/** One moment from an element of a segment on. */
typedef struct mixt__moment {
    char *data; // NULL: there is none
    mixt_dtype format;
    float *scales; // from that element's block on; NULL: it has none
    bool stochastic;
    uint64_t key;  // of this update's random numbers
    int64_t first; // number of the element among all ranks'
} mixt__moment;

/** @param which 0 or 1 @param inside element of the segment, of moments in codes the first of a block */
mixt__moment mixt__moment_at(const mixt__update *update, int which, const mixt__segment *segment, int64_t inside);
bool mixt__moment_is_narrow(const mixt__moment *moment);
/** As FP32: where it stands, or widened. @param room for as many */
float *mixt__moment_open(const mixt__moment *moment, int64_t count, float *room);
/** What was computed, back to where it stands. */
void mixt__moment_close(const mixt__moment *moment, int64_t count, const float *values);
/** Sum of its memory's words, scales included. */
uint64_t mixt__moment_sum(const mixt__moment *moment, int64_t count);

#endif
