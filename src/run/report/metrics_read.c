/* Rows of metrics.jsonl read back as columns. Invariant: every column has room for `rows` numbers, and NaN stands where
 * a row had none. The file is read, not mapped: a run that goes on may cut it meanwhile.
 */
#include "mixt/metrics.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/handles.h"
#include "run/report/outcome.h"
#include "store/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct column {
    char *name;
    double *values;
    int64_t capacity;
} column;

struct mixt_metrics {
    mixt__handle handle;
    column *columns;
    int64_t column_count, column_capacity, rows, left_out;
    char problem[256];
    char outcome[256];
};

static column *find(const mixt_metrics *m, const char *name)
{
    for (int64_t i = 0; i < m->column_count; i++)
        if (!strcmp(m->columns[i].name, name))
            return &m->columns[i];
    return NULL;
}

/** The column of this name, made where there is none; NULL: no memory. */
static column *need_column(mixt_metrics *m, const char *name)
{
    column *found = find(m, name);
    if (found)
        return found;
    if (!mixt__grow((void **)&m->columns, &m->column_capacity, m->column_count, sizeof *m->columns))
        return NULL;
    found = &m->columns[m->column_count];
    *found = (column){.name = mixt__strdup(name)};
    m->column_count += found->name != NULL;
    return found->name ? found : NULL;
}

/** Room for one more row in each column, with NaN in it; a new column has NaN from the first row on. */
static bool make_room(mixt_metrics *m, column *c, int64_t filled)
{
    for (int64_t row = filled; row <= m->rows; row++) {
        if (!mixt__grow((void **)&c->values, &c->capacity, row, sizeof *c->values))
            return false;
        c->values[row] = NAN;
    }
    return true;
}

static bool is_figure(const json_t *value)
{
    return json_is_number(value) || json_is_null(value);
}

static mixt_status add_row(mixt_metrics *m, json_t *row)
{
    const char *name;
    json_t *value;
    bool good = true;
    for (int64_t i = 0; i < m->column_count; i++)
        good = good && make_room(m, &m->columns[i], m->rows);
    json_object_foreach(row, name, value)
    {
        int64_t before = m->column_count;
        column *c = good && is_figure(value) ? need_column(m, name) : NULL;
        if (!is_figure(value))
            continue;
        good = c && (m->column_count == before || make_room(m, c, 0));
        if (good && json_is_number(value))
            c->values[m->rows] = json_number_value(value);
    }
    m->rows++;
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld rows of metrics", (long long)m->rows);
}

static void leave_out(mixt_metrics *m, int64_t line, const char *why)
{
    if (!m->left_out++)
        snprintf(m->problem, sizeof m->problem, "line %lld: %s", (long long)line, why);
}

static mixt_status take_line(mixt_metrics *m, const char *text, size_t length, int64_t line)
{
    json_error_t error;
    json_t *row = mixt__json_load(text, length, 0, &error);
    mixt_status status = MIXT_OK;
    if (!row && json_error_code(&error) == json_error_out_of_memory)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a row of metrics");
    else if (!row)
        leave_out(m, line, error.text);
    else if (!json_is_integer(json_object_get(row, "step")))
        leave_out(m, line, "not a JSON object with an integer \"step\"");
    else
        status = add_row(m, row);
    json_decref(row);
    return status;
}

static mixt_status read_rows(mixt_metrics *m, FILE *f, const char *path)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    mixt_status status = MIXT_OK;
    for (int64_t line = 1; status == MIXT_OK && (length = getline(&text, &room, f)) > 0; line++)
        if (text[length - 1] == '\n') // else it is being written
            status = take_line(m, text, (size_t)length - 1, line);
    free(text);
    if (status == MIXT_OK && !feof(f)) // getline also ends for want of memory
        status = mixt__fail(errno == ENOMEM ? MIXT_ERROR_MEMORY : MIXT_ERROR_FILE, "cannot read %s: %s", path,
                            strerror(errno));
    if (status == MIXT_OK && !m->rows)
        status =
            mixt__fail(MIXT_ERROR_DATA, "%s has no complete row yet%s%s", path, m->left_out ? "; " : "", m->problem);
    return status;
}

/** Epochs from 1, also of a file of an earlier version, which counts from 0 in all of its rows. */
static void count_epochs(mixt_metrics *m)
{
    column *epoch = find(m, "epoch");
    bool from_zero = epoch && epoch->values[0] == 0;
    for (int64_t i = 0; from_zero && i < m->rows; i++)
        epoch->values[i] += 1;
}

/** The file that a path means: itself, or the one in the run directory that it is. */
static mixt_status file_of(const char *path, char *file, size_t size)
{
    struct stat info;
    if (stat(path, &info))
        return mixt__fail(MIXT_ERROR_FILE, "cannot read %s: %s", path, strerror(errno));
    int length = snprintf(file, size, S_ISDIR(info.st_mode) ? "%s/metrics.jsonl" : "%s", path);
    return length < (int)size ? MIXT_OK : mixt__fail(MIXT_ERROR_ARGUMENT, "%.40s…: the name is too long", path);
}

mixt_status mixt_metrics_read(const char *path, mixt_metrics **metrics)
{
    char file[4200];
    MIXT_TRY(mixt__need(metrics));
    *metrics = NULL;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(file_of(path, file, sizeof file));
    FILE *f = mixt__file_open_stream(file);
    if (!f)
        return mixt__fail(MIXT_ERROR_FILE, "cannot read %s: %s", file, mixt__file_problem(errno));
    mixt_metrics *m = mixt__alloc(sizeof *m);
    if (m)
        mixt__handle_add(&m->handle, m, "metrics", NULL);
    mixt_status status = m ? read_rows(m, f, file) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for %s", file);
    fclose(f);
    if (status != MIXT_OK)
        mixt_metrics_free(m);
    else
        *metrics = m;
    if (status == MIXT_OK) {
        count_epochs(m);
        mixt_metrics_outcome outcome = mixt__outcome_of(m);
        mixt__outcome_text(&outcome, m->outcome, sizeof m->outcome);
    }
    return status;
}

void mixt_metrics_free(mixt_metrics *metrics)
{
    if (!metrics || mixt__need_open(metrics, "metrics") != MIXT_OK)
        return;
    mixt__handle_remove(metrics);
    for (int64_t i = 0; i < metrics->column_count; i++) {
        mixt__free(metrics->columns[i].name);
        mixt__free(metrics->columns[i].values);
    }
    mixt__free(metrics->columns);
    mixt__free(metrics);
}

mixt_metrics_info mixt_metrics_describe(const mixt_metrics *metrics)
{
    if (!metrics || mixt__need_open(metrics, "metrics") != MIXT_OK)
        return (mixt_metrics_info){.problem = ""};
    return (mixt_metrics_info){.rows = metrics->rows, .left_out = metrics->left_out, .problem = metrics->problem};
}

const char *mixt_metrics_name(const mixt_metrics *metrics, int64_t index)
{
    if (!metrics || mixt__need_open(metrics, "metrics") != MIXT_OK)
        return NULL;
    return index >= 0 && index < metrics->column_count ? metrics->columns[index].name : NULL;
}

const double *mixt_metrics_column(const mixt_metrics *metrics, const char *name)
{
    if (!metrics || mixt__need_open(metrics, "metrics") != MIXT_OK)
        return NULL;
    const column *found = name ? find(metrics, name) : NULL;
    return found ? found->values : NULL;
}

mixt_metrics_outcome mixt_metrics_judge(const mixt_metrics *metrics)
{
    if (!metrics || mixt__need_open(metrics, "metrics") != MIXT_OK)
        return mixt__outcome_of(NULL); // whose text is empty
    mixt_metrics_outcome outcome = mixt__outcome_of(metrics);
    outcome.text = metrics->outcome;
    return outcome;
}
