/* Appending to a run's history, and how it ends. */
#include "base/files.h"
#include "base/status.h"
#include "run/report/history.h"
#include "store/json.h"
#include "store/json_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/** Rows of a history are whole or not there. Returns 0 or what stood in the way. */
static int append(const char *path, const char *text)
{
    size_t length = strlen(text), done = 0;
    int problem = 0, fd = mixt__file_open_write(path, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0)
        return errno;
    off_t end = lseek(fd, 0, SEEK_END);
    while (done < length && !problem) {
        ssize_t got = write(fd, text + done, length - done);
        if (got > 0)
            done += (size_t)got;
        else if (got == 0 || errno != EINTR)
            problem = got ? errno : ENOSPC;
    }
    if (problem && end >= 0 && ftruncate(fd, end)) // else the next row would stand behind a torn one
        problem = errno;
    if (close(fd) && !problem)
        problem = errno;
    return problem;
}

void mixt__history_add(mixt_run *run, json_t *row)
{
    char path[1200], now[32];
    if (run->dir.silent) {
        json_decref(row);
        return;
    }
    time_t seconds = time(NULL);
    struct tm utc;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    mixt__json_set_text(row, "time", now);
    char *text = mixt__json_dumps(row, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(row);
    size_t length = text ? strlen(text) : 0;
    char *line = text ? realloc(text, length + 2) : NULL;
    if (line)
        memcpy(line + length, "\n", 2);
    int problem = line ? append(mixt__run_dir_file(&run->dir, "history.jsonl", path), line) : ENOMEM;
    if (problem)
        mixt__run_note(run, true, "%s/history.jsonl cannot be written: %s", run->dir.path, mixt__file_problem(problem));
    free(line ? line : text);
}

typedef struct unfinished {
    bool is;
    int64_t step;
} unfinished;

static mixt_status take_line(void *user, const char *text, int64_t line)
{
    unfinished *u = user;
    json_t *row;
    (void)line;
    MIXT_TRY(mixt__json_row(text, &row));
    const char *event = json_string_value(json_object_get(row, "event"));
    if (event && !strcmp(event, "resumed"))
        *u = (unfinished){true, json_integer_value(json_object_get(row, "step"))};
    else if (event && !strcmp(event, "finished"))
        u->is = false;
    json_decref(row);
    return MIXT_OK;
}

mixt_status mixt__history_unfinished(const char *run, bool *is, int64_t *step)
{
    char path[4400];
    unfinished found = {false, -1};
    snprintf(path, sizeof path, "%s/history.jsonl", run);
    MIXT_TRY(mixt__json_lines_read(path, take_line, &found));
    *is = found.is;
    *step = found.step;
    return MIXT_OK;
}
