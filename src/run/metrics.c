/* Rows of metrics.jsonl, as an observer makes them. */
#include "run/metrics.h"

#include "run/rows.h"

#include <math.h>

/** JSON has no NaN and no infinity: null for those. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *row_object(const mixt_run_row *row)
{
    json_t *object = json_object();
    json_object_set_new(object, "step", json_integer(row->step));
    json_object_set_new(object, "epoch", json_integer(row->epoch));
    json_object_set_new(object, "loss", number(row->loss));
    json_object_set_new(object, "accuracy", number(row->accuracy));
    json_object_set_new(object, "lr", number(row->lr));
    json_object_set_new(object, "scale", number(row->scale));
    json_object_set_new(object, "skipped", json_integer(row->skipped));
    json_object_set_new(object, "grad_norm", number(row->grad_norm));
    json_object_set_new(object, "samples_s", number(row->samples_s));
    json_object_set_new(object, "memory", json_integer(row->memory));
    json_object_set_new(object, "time", number(row->time));
    if (!isnan(row->energy))
        json_object_set_new(object, "energy", number(row->energy));
    if (row->checkpoint_stall > 0)
        json_object_set_new(object, "checkpoint_stall", number(row->checkpoint_stall));
    if (row->overflow_layer)
        json_object_set_new(object, "overflow_layer", json_string(row->overflow_layer));
    if (!isnan(row->val_loss))
        json_object_set_new(object, "val_loss", number(row->val_loss));
    if (!isnan(row->val_accuracy))
        json_object_set_new(object, "val_accuracy", number(row->val_accuracy));
    return object;
}

mixt_status mixt__metrics_observe(void *user, mixt_run *run, const mixt_event *event)
{
    (void)run;
    return event->kind == MIXT_EVENT_ROW ? mixt__rows_add(user, row_object(event->row)) : MIXT_OK;
}
