/* How busy matrix units are in the products alone. A device counts over a span of time, whatever runs in it; the step
 * is run op by op over such a span, with the time of each op. Matrix units have nothing to do outside of products, so
 * that all that was counted was done in the time of those.
 */
#include "verify/verify.h"

#include "backend/device.h"
#include "base/threads.h"
#include "mixt/plan.h"

#include <math.h>

/** Steps of a span: a device's counters want to be read no sooner than after a tenth of a second. */
enum { STEPS_ON_HOST = 2, STEPS_LEAST = 4, STEPS_MOST = 400 };
static const double span_seconds = 0.5;

static int64_t steps_of(mixt__device *device, double step_seconds)
{
    double steps = device->backend->host_memory ? STEPS_ON_HOST : span_seconds / step_seconds;
    return steps > STEPS_MOST                                    ? STEPS_MOST
           : steps > STEPS_LEAST || device->backend->host_memory ? (int64_t)steps
                                                                 : STEPS_LEAST;
}

void mixt__verify_products(mixt_trainer *trainer, const mixt_data *data, mixt_verify_run *r)
{
    mixt__device *device = trainer->context->device;
    int64_t steps = steps_of(device, r->step_seconds);
    mixt__device_activity activity = {0};
    const mixt_profile_row *row;
    mixt_profile *profile;
    double products = 0, flops = 0;
    double begun = mixt__time_now();
    bool counted = device->backend->activity && device->backend->activity(device, NULL);
    if (mixt_profile_new(trainer, data, steps, &profile) != MIXT_OK)
        return; // the memory of a batch more is not there: it stays unknown
    counted = counted && device->backend->activity(device, &activity);
    double span = mixt__time_now() - begun, all = mixt_profile_describe(profile).seconds;
    for (int64_t i = 0; (row = mixt_profile_at(profile, i)); i++) {
        products += row->matrix ? row->seconds : 0;
        flops += row->matrix ? row->flops : 0;
    }
    mixt_profile_free(profile);
    if (!(products > 0))
        return;
    r->products_share = products / all;
    r->products_flops = flops / products;
    if (counted) // in one step more than was timed: the first
        r->products_active = fmin(1, activity.tensor_cores * span / (products * (double)(steps + 1)));
}
