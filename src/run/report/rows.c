/* Rows appended, kept back while the disk is full. */
#include "run/report/rows.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/signal_at.h"
#include "base/status.h"
#include "store/json.h"
#include "store/json_rows.h"

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

static mixt_status cannot_write(const mixt__rows *r)
{
    return mixt__fail(MIXT_ERROR_FILE, "cannot write %s: %s", r->path, strerror(errno));
}

/** The end of the last whole row within the first `limit` bytes. */
static mixt_status whole_rows(const mixt__rows *r, int64_t limit, int64_t *end)
{
    char piece[4096];
    struct stat info;
    if (fstat(r->fd, &info))
        return cannot_write(r);
    *end = info.st_size < limit ? info.st_size : limit;
    while (*end > 0) {
        int64_t from = *end > (int64_t)sizeof piece ? *end - (int64_t)sizeof piece : 0;
        ssize_t got = pread(r->fd, piece, (size_t)(*end - from), from);
        if (got != *end - from)
            return cannot_write(r);
        const char *newline = memrchr(piece, '\n', (size_t)got);
        if (newline) {
            *end = from + (newline - piece) + 1;
            return MIXT_OK;
        }
        *end = from;
    }
    return MIXT_OK;
}

mixt_status mixt__rows_open(mixt__rows *r, const char *path, int64_t keep)
{
    *r = (mixt__rows){0};
    snprintf(r->path, sizeof r->path, "%s", path);
    r->fd = mixt__file_open_write(path, O_RDWR | O_CREAT | (keep < 0 ? O_EXCL : 0));
    if (r->fd < 0)
        return mixt__fail(MIXT_ERROR_FILE, "cannot write %s: %s", r->path, mixt__file_problem(errno));
    mixt_status status = MIXT_OK;
    if (flock(r->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        status = mixt__fail(MIXT_ERROR_FILE, "%s is being written by another process: the run is still training", path);
    if (status == MIXT_OK && keep > 0)
        status = whole_rows(r, keep, &r->bytes);
    if (status == MIXT_OK && ftruncate(r->fd, r->bytes))
        status = cannot_write(r);
    r->open = status == MIXT_OK;
    if (status != MIXT_OK)
        close(r->fd);
    return status;
}

void mixt__rows_first(const mixt__rows *r, char *text, size_t size)
{
    ssize_t got = r->open && r->bytes > 0 ? pread(r->fd, text, size - 1, 0) : 0;
    text[got > 0 ? got : 0] = 0;
    text[strcspn(text, "\n")] = 0;
}

int64_t mixt__rows_length(const mixt__rows *r)
{
    return r->bytes + (int64_t)r->waiting_bytes;
}

/** Writes what waits, all or nothing. A full disk is no failure as long as memory takes the rows. */
static mixt_status write_waiting(mixt__rows *r, bool must)
{
    size_t done = 0;
    while (done < r->waiting_bytes) {
        bool signal_due = mixt__signal_due(MIXT_PLACE_WRITE);
        size_t part = (r->waiting_bytes - done + signal_due) / (1 + signal_due); // in the middle of a row
        ssize_t got = pwrite(r->fd, r->waiting + done, part, r->bytes + (int64_t)done);
        if (signal_due)
            mixt__signal_send();
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            int problem = errno;
            bool full = problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
            if (ftruncate(r->fd, r->bytes) == 0 && full && !must && r->waiting_bytes < WAITING_MAX)
                return MIXT_OK;
            errno = problem;
            return cannot_write(r);
        }
        done += (size_t)got;
    }
    r->bytes += (int64_t)done;
    r->waiting_bytes = 0;
    return MIXT_OK;
}

mixt_status mixt__rows_cut(mixt__rows *r, int64_t keep)
{
    if (!r->open || keep >= mixt__rows_length(r))
        return MIXT_OK;
    r->waiting_bytes = keep > r->bytes ? (size_t)(keep - r->bytes) : 0;
    r->bytes = keep < r->bytes ? keep : r->bytes;
    return ftruncate(r->fd, r->bytes) ? cannot_write(r) : MIXT_OK;
}

mixt_status mixt__rows_flush(mixt__rows *r)
{
    return r->open ? write_waiting(r, true) : MIXT_OK;
}

void mixt__rows_close(mixt__rows *r)
{
    if (r->open) {
        (void)write_waiting(r, true); // those who want to know have flushed
        close(r->fd);
    }
    mixt__free(r->waiting);
    *r = (mixt__rows){0};
}

json_t *mixt__rows_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

mixt_status mixt__rows_add(mixt__rows *r, json_t *row)
{
    if (r->silent) {
        json_decref(row);
        return MIXT_OK;
    }
    char *text = mixt__json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    if (r->sealed)
        text = mixt__json_row_seal(text);
    size_t length = text ? strlen(text) : 0;
    json_decref(row);
    char *all = text ? mixt__realloc(r->waiting, r->waiting_bytes + length + 1) : NULL;
    if (!all) {
        free(text);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a row of %s", r->path);
    }
    memcpy(all + r->waiting_bytes, text, length + 1);
    all[r->waiting_bytes + length] = '\n'; // where its end was
    r->waiting = all;
    r->waiting_bytes += length + 1;
    free(text);
    return write_waiting(r, false);
}
