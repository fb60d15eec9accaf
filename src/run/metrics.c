/* Rows of metrics.jsonl: made, appended, kept back while the disk is full. */
#include "run/metrics.h"

#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAITING_MAX = 64 << 20 };

static mixt_status cannot_write(const mixt__metrics *m)
{
    return mixt__fail(MIXT_ERROR_FILE, "cannot write %s: %s", m->path, strerror(errno));
}

/** The end of the last whole row within the first `limit` bytes. */
static mixt_status whole_rows(const mixt__metrics *m, int64_t limit, int64_t *end)
{
    char piece[4096];
    struct stat info;
    if (fstat(m->fd, &info))
        return cannot_write(m);
    *end = info.st_size < limit ? info.st_size : limit;
    while (*end > 0) {
        int64_t from = *end > (int64_t)sizeof piece ? *end - (int64_t)sizeof piece : 0;
        ssize_t got = pread(m->fd, piece, (size_t)(*end - from), from);
        if (got != *end - from)
            return cannot_write(m);
        const char *newline = memrchr(piece, '\n', (size_t)got);
        if (newline) {
            *end = from + (newline - piece) + 1;
            return MIXT_OK;
        }
        *end = from;
    }
    return MIXT_OK;
}

mixt_status mixt__metrics_open(mixt__metrics *m, const char *path, int64_t keep)
{
    *m = (mixt__metrics){0};
    snprintf(m->path, sizeof m->path, "%s", path);
    m->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | (keep < 0 ? O_EXCL : 0), 0666);
    if (m->fd < 0)
        return cannot_write(m);
    mixt_status status = MIXT_OK;
    if (flock(m->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        status = mixt__fail(MIXT_ERROR_FILE, "%s is being written by another process: the run is still going on", path);
    if (status == MIXT_OK && keep > 0)
        status = whole_rows(m, keep, &m->bytes);
    if (status == MIXT_OK && ftruncate(m->fd, m->bytes))
        status = cannot_write(m);
    m->open = status == MIXT_OK;
    if (status != MIXT_OK)
        close(m->fd);
    return status;
}

int64_t mixt__metrics_length(const mixt__metrics *m)
{
    return m->bytes + (int64_t)m->waiting_bytes;
}

/** Writes what waits, all or nothing. A full disk is no failure as long as memory takes the rows. */
static mixt_status write_waiting(mixt__metrics *m, bool must)
{
    size_t done = 0;
    while (done < m->waiting_bytes) {
        ssize_t got = pwrite(m->fd, m->waiting + done, m->waiting_bytes - done, m->bytes + (int64_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            int problem = errno;
            bool full = problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
            if (ftruncate(m->fd, m->bytes) == 0 && full && !must && m->waiting_bytes < WAITING_MAX)
                return MIXT_OK;
            errno = problem;
            return cannot_write(m);
        }
        done += (size_t)got;
    }
    m->bytes += (int64_t)done;
    m->waiting_bytes = 0;
    return MIXT_OK;
}

mixt_status mixt__metrics_flush(mixt__metrics *m)
{
    return m->open ? write_waiting(m, true) : MIXT_OK;
}

void mixt__metrics_close(mixt__metrics *m)
{
    if (m->open) {
        (void)write_waiting(m, true); // those who want to know have flushed
        close(m->fd);
    }
    mixt__free(m->waiting);
    *m = (mixt__metrics){0};
}

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

mixt_status mixt__metrics_log(mixt__metrics *m, const mixt_run_row *row)
{
    json_t *object = row_object(row);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    size_t length = text ? strlen(text) : 0;
    json_decref(object);
    char *rows = text ? mixt__realloc(m->waiting, m->waiting_bytes + length + 1) : NULL;
    if (!rows) {
        free(text);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a row of %s", m->path);
    }
    memcpy(rows + m->waiting_bytes, text, length + 1);
    rows[m->waiting_bytes + length] = '\n'; // where its end was
    m->waiting = rows;
    m->waiting_bytes += length + 1;
    free(text);
    return write_waiting(m, false);
}

mixt_status mixt__metrics_observe(void *user, mixt_run *run, const mixt_event *event)
{
    (void)run;
    return event->kind == MIXT_EVENT_ROW ? mixt__metrics_log(user, event->row) : MIXT_OK;
}
