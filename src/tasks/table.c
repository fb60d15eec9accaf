/* A table and the predictions of its rows, as one CSV: see mixt/tasks/table.h.
 *
 * The table is read twice: as samples, and as the fields that are written again. Rows meet by the line they begin on.
 */
#include "mixt/tasks/table.h"

#include "api/api.h"
#include "base/c_locale.h"
#include "base/options.h"
#include "data/table/csv_reader.h"
#include "mixt/predict.h"
#include "store/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 1024 };

/** Text that grows; once memory has ended it stays as it is. */
typedef struct text {
    char *at;
    int64_t size, capacity;
    bool failed;
} text;

static void add(text *t, const char *bytes, int64_t size)
{
    int64_t capacity = t->capacity ? t->capacity : 4096;
    while (capacity < t->size + size + 1)
        capacity *= 2;
    if (capacity != t->capacity && !t->failed) {
        char *grown = mixt__realloc(t->at, (size_t)capacity);
        t->failed = !grown;
        t->at = grown ? grown : t->at;
        t->capacity = grown ? capacity : t->capacity;
    }
    if (t->failed)
        return;
    memcpy(t->at + t->size, bytes, (size_t)size);
    t->size += size;
    t->at[t->size] = '\0';
}

/** A field of the file: what stood in quotes does so again. */
static void add_field(text *t, const mixt__csv_field *field)
{
    bool quotes = field->quoted;
    for (int64_t i = 0; i < field->length && !quotes; i++)
        quotes = field->text[i] == ',' || field->text[i] == '"' || field->text[i] == '\n' || field->text[i] == '\r';
    if (quotes)
        add(t, "\"", 1);
    for (int64_t i = 0, from = 0; i < field->length || from < field->length; i++) {
        bool lone = i < field->length && field->text[i] == '"' && !field->quoted; // doubled where it stood in quotes
        if (i < field->length && !lone)
            continue;
        add(t, field->text + from, (i < field->length ? i + 1 : i) - from);
        if (lone)
            add(t, "\"", 1);
        from = i + 1;
    }
    if (quotes)
        add(t, "\"", 1);
}

static void add_word(text *t, const char *word)
{
    const mixt__csv_field field = {word, (int64_t)strlen(word), false};
    add_field(t, &field);
}

/* ---- predictions ---- */

/** What is worked with. */
typedef struct job {
    mixt_trainer *trainer;
    const mixt_data_info *info;
    mixt_inputs *inputs;
    int64_t outputs;
    float *sample, *output; // of a batch
    int64_t first, count;   // rows whose outputs are there
} job;

/** Makes the outputs of the batch that a row is in. */
static mixt_status reach(job *j, int64_t row)
{
    int64_t rows = mixt_inputs_count(j->inputs);
    if (row < j->first + j->count)
        return MIXT_OK;
    j->first = row;
    j->count = rows - row < BATCH ? rows - row : BATCH;
    MIXT_TRY(mixt_inputs_read(j->inputs, j->first, j->count, j->sample));
    return mixt_trainer_predict(j->trainer, j->sample, j->count, j->output);
}

static mixt_status add_prediction(job *j, int64_t row, text *t)
{
    char number[64];
    MIXT_TRY(reach(j, row));
    const float *output = j->output + (row - j->first) * j->outputs;
    MIXT_TRY(mixt_outputs_check(output, j->outputs));
    if (j->info->target != MIXT_TARGET_CLASS) {
        for (int64_t i = 0; i < j->outputs; i++) {
            mixt__print_number(number, sizeof number, ",%.9g", (double)output[i]);
            add(t, number, (int64_t)strlen(number));
        }
        return MIXT_OK;
    }
    mixt_guess best;
    MIXT_TRY(mixt_classes_rank(output, j->outputs, 1, &best));
    add(t, ",", 1);
    snprintf(number, sizeof number, "%lld", (long long)best.label);
    add_word(t, j->info->class_names && best.label < j->info->classes ? j->info->class_names[best.label] : number);
    mixt__print_number(number, sizeof number, ",%.6f", best.probability);
    add(t, number, (int64_t)strlen(number));
    return MIXT_OK;
}

/* ---- the table again ---- */

/** Names of columns, then those of what is predicted: one that is taken gets a line in front. */
static void add_head(const job *j, const mixt__csv_reader *reader, text *t)
{
    bool classes = j->info->target == MIXT_TARGET_CLASS, taken = false;
    char name[64];
    for (int64_t c = 0; c < reader->cells.columns; c++) {
        const mixt__csv_field *field = &reader->cells.column[c].name;
        if (c)
            add(t, ",", 1);
        snprintf(name, sizeof name, "column %lld", (long long)c + 1);
        if (field->text)
            add_field(t, field);
        else
            add_word(t, name);
        taken = taken || (field->length == 10 && !memcmp(field->text, "prediction", 10));
    }
    for (int64_t i = 0; i < (classes ? 1 : j->outputs); i++) {
        add(t, taken ? ",_prediction" : ",prediction", taken ? 12 : 11);
        snprintf(name, sizeof name, "_%lld", (long long)i + 1);
        if (!classes && j->outputs > 1)
            add_word(t, name);
    }
    if (classes)
        add(t, taken ? ",_probability" : ",probability", taken ? 13 : 12);
    add(t, "\n", 1);
}

static mixt_status add_rows(job *j, mixt__csv_reader *reader, text *t, int64_t *predicted)
{
    mixt__csv_field line, field;
    int64_t row = 0;
    reader->text = reader->rows;
    while (mixt__csv_next_line(&reader->text, &line)) {
        for (int64_t c = 0; mixt__csv_next_field(&reader->text, &line, &field); c++) {
            if (c)
                add(t, ",", 1);
            add_field(t, &field);
        }
        if (row < mixt_inputs_count(j->inputs) && mixt_inputs_line(j->inputs, row) == reader->text.line) {
            mixt_status status = add_prediction(j, row++, t);
            if (status != MIXT_OK)
                return mixt__fail_context(status, "%s: line %lld", reader->path, (long long)reader->text.line);
        }
        add(t, "\n", 1);
    }
    *predicted = row;
    return t->failed ? mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its predictions", reader->path) : MIXT_OK;
}

static mixt_status write_all(job *j, const char *path, text *t, int64_t *rows)
{
    mixt_data *scratch = mixt__alloc(sizeof *scratch);
    mixt__csv_reader reader = {.data = scratch, .path = path};
    mixt__bytes file;
    if (!scratch)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", path);
    mixt_status status = mixt__csv_open(&reader, &file);
    if (status == MIXT_OK) {
        add_head(j, &reader, t);
        status = add_rows(j, &reader, t, rows);
    }
    mixt__csv_close(&reader, &file);
    mixt__arena_free(&scratch->arena);
    mixt__free(scratch);
    return status;
}

static mixt_status save(const mixt_table_options *o, const text *t)
{
    mixt__file_writer writer = {.fd = -1};
    mixt_status status = mixt__file_writer_open(&writer, o->out, o->overwrite);
    if (status == MIXT_OK)
        status = mixt__file_writer_append(&writer, t->at, (size_t)t->size);
    if (status == MIXT_OK)
        return mixt__file_writer_commit(&writer);
    mixt__file_writer_abandon(&writer);
    return status;
}

static mixt_status predict(job *j, const mixt_data *like, const char *path, const mixt_table_options *o,
                           mixt_table_predictions *made)
{
    text t = {0};
    MIXT_TRY(mixt_trainer_outputs(j->trainer, &j->outputs));
    MIXT_TRY(mixt_inputs_open(path, like, &j->inputs));
    const char *warnings = mixt_inputs_warnings(j->inputs);
    j->sample = mixt__alloc(mixt_data_input_bytes(like, BATCH));
    j->output = mixt__alloc((size_t)(BATCH * j->outputs) * sizeof *j->output);
    made->warnings = warnings ? mixt__strdup(warnings) : NULL;
    if (!j->sample || !j->output || (warnings && !made->warnings))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for a batch of predictions", path);
    mixt_status status = write_all(j, path, &t, &made->rows);
    if (status == MIXT_OK && o->out)
        status = save(o, &t);
    if (status == MIXT_OK && !o->out)
        made->text = t.at;
    else
        mixt__free(t.at);
    return status;
}

mixt_status mixt_table_predict(mixt_trainer *trainer, const mixt_data *like, const char *path,
                               const mixt_table_options *options, mixt_table_predictions *predictions)
{
    mixt_table_options own = MIXT_OPTIONS(mixt_table_options);
    MIXT_TRY(mixt__need(predictions));
    *predictions = (mixt_table_predictions){0};
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__need_made(like, "data"));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__options(mixt_table_options, &own, options));
    job j = {.trainer = trainer, .info = mixt_data_describe(like)};
    if (!mixt_table_is(path, like))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: is not a table, or the model was not trained on one", path);
    mixt_status status = predict(&j, like, path, &own, predictions);
    mixt_inputs_close(j.inputs);
    mixt__free(j.sample);
    mixt__free(j.output);
    if (status != MIXT_OK)
        mixt_table_predictions_free(predictions);
    return status;
}

void mixt_table_predictions_free(mixt_table_predictions *predictions)
{
    if (!predictions)
        return;
    mixt__free(predictions->text);
    mixt__free(predictions->warnings);
    *predictions = (mixt_table_predictions){0};
}

bool mixt_table_is(const char *path, const mixt_data *like)
{
    return path && mixt__need_open(like, "data") == MIXT_OK && mixt__csv_is_table(path) && like->info.input_rank == 1 &&
           like->info.input_dtype == MIXT_DTYPE_FP32 &&
           (like->info.target == MIXT_TARGET_CLASS || like->info.target == MIXT_TARGET_VALUES);
}
