/* Rows of metrics.jsonl, as an observer makes them. */
#include "run/metrics.h"

#include "run/run.h"

#include <math.h>
#include <string.h>

/** Earlier versions counted epochs from 0. A file counts in one way from its first row to its last. */
static bool counts_from_zero(const mixt__rows *rows)
{
    char row[256];
    mixt__rows_first(rows, row, sizeof row);
    return strstr(row, "\"epoch\":0,");
}

static json_t *row_object(const mixt_run_row *row, bool from_zero)
{
    json_t *object = json_object();
    json_object_set_new(object, "step", json_integer(row->step));
    json_object_set_new(object, "epoch", json_integer(row->epoch - from_zero));
    json_object_set_new(object, "loss", mixt__rows_number(row->loss));
    json_object_set_new(object, "accuracy", mixt__rows_number(row->accuracy));
    json_object_set_new(object, "lr", mixt__rows_number(row->lr));
    json_object_set_new(object, "scale", mixt__rows_number(row->scale));
    json_object_set_new(object, "skipped", json_integer(row->skipped));
    json_object_set_new(object, "grad_norm", mixt__rows_number(row->grad_norm));
    json_object_set_new(object, "samples_s", mixt__rows_number(row->samples_s));
    json_object_set_new(object, "memory", json_integer(row->memory));
    json_object_set_new(object, "time", mixt__rows_number(row->time));
    if (!isnan(row->energy))
        json_object_set_new(object, "energy", mixt__rows_number(row->energy));
    if (row->checkpoint_stall > 0)
        json_object_set_new(object, "checkpoint_stall", mixt__rows_number(row->checkpoint_stall));
    if (row->overflow_layer)
        json_object_set_new(object, "overflow_layer", json_string(row->overflow_layer));
    if (!isnan(row->val_loss))
        json_object_set_new(object, "val_loss", mixt__rows_number(row->val_loss));
    if (!isnan(row->val_accuracy))
        json_object_set_new(object, "val_accuracy", mixt__rows_number(row->val_accuracy));
    return object;
}

mixt_status mixt__metrics_observe(void *user, mixt_run *run, const mixt_event *event)
{
    if (event->kind == MIXT_EVENT_START)
        run->epochs_from_zero = counts_from_zero(user);
    if (event->kind != MIXT_EVENT_ROW)
        return MIXT_OK;
    return mixt__rows_add(user, row_object(event->row, run->epochs_from_zero));
}
