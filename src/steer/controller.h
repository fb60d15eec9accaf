/* The controller's memory, to be saved with a run and found again: a decision must come where it would have come
 * without a stop between. */
#ifndef MIXT_STEER_CONTROLLER_H
#define MIXT_STEER_CONTROLLER_H

#include "mixt/monitor.h"

#include <jansson.h>

/** NULL when memory ends. */
json_t *mixt__controller_pack(const mixt_controller *controller);
/** What does not fit is left out: a controller that begins anew is no reason to refuse a run. */
void mixt__controller_unpack(mixt_controller *controller, const json_t *object);

#endif
