/* A segment's statistics, and its ratio of LAMB, from those of its chunks, on the host: for segments that are cut
 * between ranks.
 *
 * The additions of gradient_stats.cu's stats_of_segment and optimizer.cu's lamb_ratio in the same order: lane i of a
 * warp adds chunks i, i + 32, …, then lanes are added to those 16, 8, 4, 2 and 1 further on. Sums are of doubles, so
 * the host's bits are the GPU's.
 */
#include "backend/cuda/kernels.h"

#include <math.h>

enum { LANES = 32 };

static double join_lanes(double *lanes)
{
    for (int further = LANES / 2; further; further /= 2)
        for (int i = 0; i < further; i++)
            lanes[i] += lanes[i + further];
    return lanes[0];
}

void mixt__cuda_join_stats(const mixt__segment_stats *chunks, int64_t count, mixt__segment_stats *stats)
{
    double lanes[LANES] = {0};
    *stats = (mixt__segment_stats){0};
    for (int64_t i = 0; i < count; i++) {
        lanes[i % LANES] += chunks[i].sum_squares;
        stats->nonfinite += chunks[i].nonfinite;
        stats->zeros += chunks[i].zeros;
        if (chunks[i].amax > stats->amax)
            stats->amax = chunks[i].amax;
    }
    stats->sum_squares = join_lanes(lanes);
}

float mixt__cuda_lamb_ratio(const double *sums, int64_t count)
{
    double weights[LANES] = {0}, updates[LANES] = {0};
    for (int64_t i = 0; i < count; i++) {
        weights[i % LANES] += sums[2 * i];
        updates[i % LANES] += sums[2 * i + 1];
    }
    double w = join_lanes(weights), u = join_lanes(updates);
    return w > 0 && u > 0 ? (float)sqrt(w / u) : 1.0f;
}
