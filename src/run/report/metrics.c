/* Rows of metrics.jsonl, as an observer makes them. */
#include "run/report/metrics.h"

#include "mixt/metrics.h"
#include "run/run.h"
#include "store/file.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Earlier versions counted epochs from 0. A file counts in one way from its first row to its last. */
static bool counts_from_zero(const mixt__rows *rows)
{
    char row[256];
    mixt__rows_first(rows, row, sizeof row);
    return strstr(row, "\"epoch\":0,");
}

/* ---- memory by role ---- */

/** Bytes by role stand in the first row, and again where another plan takes other memory: a rollback may have taken the
 * row with them back. */
static bool roles_due(const mixt_run *run, const mixt__rows *rows, const mixt_run_row *row)
{
    int64_t length = mixt__rows_length(rows);
    return !length || row->memory != run->roles_bytes || length < run->roles_end;
}

/** The end of the newest row with roles: the run may go back to before it. */
static int64_t find_roles_end(const mixt__rows *rows)
{
    static const char key[] = "\"memory_by_role\"";
    mixt__file_map map;
    int64_t end = 0;
    if (mixt__file_map_open(rows->path, &map) != MIXT_OK)
        return 0;
    const char *begin = (const char *)map.data, *at = begin, *stop = begin + map.bytes;
    while ((at = memmem(at, (size_t)(stop - at), key, sizeof key - 1)) && (at = memchr(at, '\n', (size_t)(stop - at))))
        end = ++at - begin;
    mixt__file_map_close(&map);
    return end;
}

/** What the rows say that are there already: of a run that goes on. */
static void find_roles(mixt_run *run, const mixt__rows *rows)
{
    mixt_metrics *m = NULL;
    run->roles_end = 0;
    if (!mixt__rows_length(rows) || mixt_metrics_read(rows->path, &m) != MIXT_OK)
        return;
    const double *memory = mixt_metrics_column(m, "memory");
    double last = memory ? memory[mixt_metrics_describe(m).rows - 1] : 0;
    run->roles_bytes = isfinite(last) ? (int64_t)last : 0;
    run->roles_end = find_roles_end(rows);
    mixt_metrics_free(m);
}

json_t *mixt__metrics_roles(const mixt_memory *m)
{
    const struct {
        const char *name;
        size_t bytes;
    } roles[] = {{"masters", m->masters},     {"copies", m->copies},   {"gradients", m->gradients},
                 {"moments", m->moments},     {"state", m->state},     {"activations", m->activations},
                 {"workspace", m->workspace}, {"batches", m->batches}, {"control", m->control}};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        mixt__json_set(object, roles[i].name, json_integer((json_int_t)roles[i].bytes));
    return object;
}

/* ---- rows ---- */

/** Of the formats that the step has. */
static void put_shares(json_t *object, const char *prefix, const double *shares)
{
    char name[64];
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        snprintf(name, sizeof name, "%s%s", prefix, mixt_dtype_name((mixt_dtype)d));
        if (shares[d] > 0)
            mixt__json_set(object, name, mixt__rows_number(shares[d]));
    }
}

static json_t *row_object(const mixt_run_row *row, bool from_zero)
{
    json_t *object = json_object();
    mixt__json_set(object, "step", json_integer(row->step));
    mixt__json_set(object, "epoch", json_integer(row->epoch - from_zero));
    mixt__json_set(object, "loss", mixt__rows_number(row->loss));
    mixt__json_set(object, "accuracy", mixt__rows_number(row->accuracy));
    mixt__json_set(object, "lr", mixt__rows_number(row->lr));
    mixt__json_set(object, "scale", mixt__rows_number(row->scale));
    mixt__json_set(object, "skipped", json_integer(row->skipped));
    mixt__json_set(object, "grad_norm", mixt__rows_number(row->grad_norm));
    mixt__json_set(object, "samples_s", mixt__rows_number(row->samples_s));
    mixt__json_set(object, "memory", json_integer(row->memory));
    mixt__json_set(object, "time", mixt__rows_number(row->time));
    if (!isnan(row->energy))
        mixt__json_set(object, "energy", mixt__rows_number(row->energy));
    if (row->checkpoint_stall > 0)
        mixt__json_set(object, "checkpoint_stall", mixt__rows_number(row->checkpoint_stall));
    put_shares(object, "share_values_", row->share_values);
    put_shares(object, "share_bytes_", row->share_bytes);
    if (row->overflow_layer)
        mixt__json_set_text(object, "overflow_layer", row->overflow_layer);
    if (!isnan(row->val_loss))
        mixt__json_set(object, "val_loss", mixt__rows_number(row->val_loss));
    if (!isnan(row->val_accuracy))
        mixt__json_set(object, "val_accuracy", mixt__rows_number(row->val_accuracy));
    if (!isnan(row->margin))
        mixt__json_set(object, "margin", mixt__rows_number(row->margin));
    if (!isnan(row->val_margin))
        mixt__json_set(object, "val_margin", mixt__rows_number(row->val_margin));
    return object;
}

mixt_status mixt__metrics_observe(void *user, mixt_run *run, const mixt_event *event)
{
    mixt__rows *rows = user;
    if (event->kind == MIXT_EVENT_START) {
        run->epochs_from_zero = counts_from_zero(rows);
        find_roles(run, rows);
    }
    if (event->kind != MIXT_EVENT_ROW)
        return MIXT_OK;
    json_t *object = row_object(event->row, run->epochs_from_zero);
    bool roles = roles_due(run, rows, event->row);
    if (roles)
        mixt__json_set(object, "memory_by_role", mixt__metrics_roles(&run->result.memory));
    MIXT_TRY(mixt__rows_add(rows, object));
    if (roles) {
        run->roles_bytes = event->row->memory;
        run->roles_end = mixt__rows_length(rows);
    }
    return MIXT_OK;
}
