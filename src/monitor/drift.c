/* Blocks against their best level. */
#include "monitor/drift.h"

#include "base/statistics.h"
#include "store/json.h"

#include <math.h>

static const double rise = 0.00995;                  // logarithm of 1.01: half of what is to be noticed
static const double deviations = 3;                  // of blocks
static const double by_chance = 0.5, by_drift = 0.9; // that a block lies above

static double level_of(const mixt__drift *d)
{
    double values[MIXT_DRIFT_BLOCKS];
    for (int i = 0; i < MIXT_DRIFT_BLOCKS; i++)
        values[i] = d->last[i];
    return mixt__median(values, MIXT_DRIFT_BLOCKS);
}

/** What blocks scatter by, from one to the next: a trend adds little to that. */
static double scatter_of(const mixt__drift *d)
{
    double steps[MIXT_DRIFT_BLOCKS - 1];
    for (int64_t i = 0; i < MIXT_DRIFT_BLOCKS - 1; i++)
        steps[i] =
            fabs(d->last[(d->blocks + i + 1) % MIXT_DRIFT_BLOCKS] - d->last[(d->blocks + i) % MIXT_DRIFT_BLOCKS]);
    return 1.4826 * mixt__median(steps, MIXT_DRIFT_BLOCKS - 1) / sqrt(2);
}

static bool take_block(mixt__drift *d, double value)
{
    if (d->blocks >= MIXT_DRIFT_BLOCKS) {
        bool above = value > d->best + fmax(rise, deviations * scatter_of(d));
        double begins = 1 / ((double)d->blocks * (double)(d->blocks + 1)); // adds up to less than 1
        d->odds = fmin((d->odds + begins) * (above ? by_drift / by_chance : (1 - by_drift) / (1 - by_chance)), 1e12);
    }
    d->last[d->blocks++ % MIXT_DRIFT_BLOCKS] = value;
    if (d->blocks >= MIXT_DRIFT_BLOCKS)
        d->best = d->blocks == MIXT_DRIFT_BLOCKS ? level_of(d) : fmin(d->best, level_of(d));
    return d->odds >= 1 / MIXT_DRIFT_ERROR;
}

bool mixt__drift_take(mixt__drift *d, double loss)
{
    if (!isfinite(loss) || !(loss > 0))
        return false;
    d->sum += log(loss);
    if (++d->in_block < MIXT_DRIFT_BLOCK)
        return false;
    double value = d->sum / MIXT_DRIFT_BLOCK;
    d->sum = 0;
    d->in_block = 0;
    return take_block(d, value);
}

void mixt__drift_restart(mixt__drift *d)
{
    *d = (mixt__drift){0};
}

json_t *mixt__drift_pack(const mixt__drift *d)
{
    json_t *last = json_array();
    for (int64_t i = 0; i < MIXT_DRIFT_BLOCKS; i++)
        mixt__json_add_real(last, d->last[i]);
    return json_pack("{s:f, s:I, s:I, s:f, s:f, s:o}", "sum", d->sum, "in_block", (json_int_t)d->in_block, "blocks",
                     (json_int_t)d->blocks, "best", d->best, "odds", d->odds, "last", last);
}

void mixt__drift_unpack(mixt__drift *d, const json_t *object)
{
    const json_t *last = json_object_get(object, "last");
    json_int_t in_block = json_integer_value(json_object_get(object, "in_block"));
    json_int_t blocks = json_integer_value(json_object_get(object, "blocks"));
    *d = (mixt__drift){0};
    if (json_array_size(last) != MIXT_DRIFT_BLOCKS || in_block < 0 || in_block >= MIXT_DRIFT_BLOCK || blocks < 0)
        return;
    d->in_block = in_block;
    d->blocks = blocks;
    d->sum = json_number_value(json_object_get(object, "sum"));
    d->best = json_number_value(json_object_get(object, "best"));
    d->odds = json_number_value(json_object_get(object, "odds"));
    for (size_t i = 0; i < MIXT_DRIFT_BLOCKS; i++)
        d->last[i] = json_number_value(json_array_get(last, i));
}
