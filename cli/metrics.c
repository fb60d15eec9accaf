/* Rows of metrics.jsonl: made, appended, kept back while the disk is full. */
#include "cli/metrics.h"

#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAITING_MAX = 64 << 20 };

static mixt_status cannot_write(const cli_metrics *m)
{
    return mixt__fail(MIXT_ERROR_FILE, "cannot write %s: %s", m->path, strerror(errno));
}

/** The end of the last whole row within the first `limit` bytes. */
static mixt_status whole_rows(const cli_metrics *m, int64_t limit, int64_t *end)
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

mixt_status cli_metrics_open(cli_metrics *m, const char *path, int64_t keep)
{
    *m = (cli_metrics){0};
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

int64_t cli_metrics_length(const cli_metrics *m)
{
    return m->bytes + (int64_t)m->waiting_bytes;
}

/** Writes what waits, all or nothing. A full disk is no failure as long as memory takes the rows. */
static mixt_status write_waiting(cli_metrics *m, bool must)
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

mixt_status cli_metrics_flush(cli_metrics *m)
{
    return m->open ? write_waiting(m, true) : MIXT_OK;
}

void cli_metrics_close(cli_metrics *m)
{
    if (m->open) {
        (void)write_waiting(m, true); // those who want to know have flushed
        close(m->fd);
    }
    mixt__free(m->waiting);
    *m = (cli_metrics){0};
}

static json_t *row_object(const cli_metrics_row *row)
{
    json_t *object = json_object();
    json_object_set_new(object, "step", json_integer(row->step));
    json_object_set_new(object, "epoch", json_integer(row->epoch));
    json_object_set_new(object, "loss", cli_json_real(row->loss));
    json_object_set_new(object, "accuracy", cli_json_real(row->accuracy));
    json_object_set_new(object, "lr", cli_json_real(row->lr));
    json_object_set_new(object, "scale", cli_json_real(row->scale));
    json_object_set_new(object, "skipped", json_integer(row->skipped));
    json_object_set_new(object, "grad_norm", cli_json_real(row->grad_norm));
    json_object_set_new(object, "samples_s", cli_json_real(row->samples_s));
    json_object_set_new(object, "memory", json_integer(row->memory));
    if (!isnan(row->energy))
        json_object_set_new(object, "energy", cli_json_real(row->energy));
    if (row->checkpoint_stall > 0)
        json_object_set_new(object, "checkpoint_stall", cli_json_real(row->checkpoint_stall));
    if (row->overflow_layer)
        json_object_set_new(object, "overflow_layer", json_string(row->overflow_layer));
    if (!isnan(row->val_loss))
        json_object_set_new(object, "val_loss", cli_json_real(row->val_loss));
    if (!isnan(row->val_accuracy))
        json_object_set_new(object, "val_accuracy", cli_json_real(row->val_accuracy));
    return object;
}

mixt_status cli_metrics_log(cli_metrics *m, const cli_metrics_row *row)
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
