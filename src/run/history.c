/* Appending to a run's history, and how it ends. */
#include "run/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/** One write: rows of a history are whole or not there. */
static bool append(const char *path, const char *text)
{
    size_t length = strlen(text);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool good = fd >= 0 && write(fd, text, length) == (ssize_t)length;
    if (fd >= 0 && close(fd))
        good = false;
    return good;
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
    json_object_set_new(row, "time", json_string(now));
    char *text = json_dumps(row, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(row);
    size_t length = text ? strlen(text) : 0;
    char *line = text ? realloc(text, length + 2) : NULL;
    if (line)
        memcpy(line + length, "\n", 2);
    if (!line || !append(mixt__run_dir_file(&run->dir, "history.jsonl", path), line))
        mixt__run_note(run, true, "%s/history.jsonl cannot be written: %s", run->dir.path, strerror(errno));
    free(line ? line : text);
}

bool mixt__history_unfinished(const char *run, int64_t *step)
{
    char path[4400], *line = NULL;
    size_t room = 0;
    bool unfinished = false;
    snprintf(path, sizeof path, "%s/history.jsonl", run);
    FILE *f = fopen(path, "r");
    while (f && getline(&line, &room, f) > 0) {
        json_t *row = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(row, "event"));
        if (event && !strcmp(event, "resumed")) {
            unfinished = true;
            *step = json_integer_value(json_object_get(row, "step"));
        } else if (event && !strcmp(event, "finished")) {
            unfinished = false;
        }
        json_decref(row);
    }
    free(line);
    if (f)
        fclose(f);
    return unfinished;
}
