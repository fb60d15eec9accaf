/* CSV: one sample a line, the last column is the target, or the one that the option 'labels' gives by name or number.
 *
 * The separator comes from the first line (; tab , or space, in this order). A header names every column (csv_head.c).
 * A field in quotes may hold separators, line ends and doubled quotes (RFC 4180); a quote without its other is a letter
 * like any. Columns are numbers, dates or words (csv_columns.c), and become features as the training part says
 * (schema.h). Blank lines and lines that begin with # are skipped. Numbers are decimal. A non-finite value is an error,
 * a missing one is what the option 'missing' says.
 */
#include "data/table/csv_reader.h"
#include "data/table/json_lines.h"

#include <math.h>
#include <string.h>

/** Which rows of a file are trained on: its share, or all. NULL in *rows: all. */
static mixt_status training_rows(mixt__csv_reader *reader, int64_t **rows, int64_t *count)
{
    mixt_data *data = reader->data;
    const char *train = mixt__path_of_part(data, MIXT_PART_TRAIN, ".csv");
    mixt__shares shares;
    *rows = NULL;
    *count = reader->cells.rows;
    if (data->part == MIXT_PART_ALL || !train || strcmp(train, reader->path))
        return MIXT_OK;
    MIXT_TRY(mixt__shares_of(data, *count, mixt__path_of_part(data, MIXT_PART_VAL, ".csv") != NULL,
                             mixt__path_of_part(data, MIXT_PART_TEST, ".csv") != NULL, &shares));
    if (shares.train == *count)
        return MIXT_OK;
    *rows = mixt__alloc_uninit((size_t)shares.train * sizeof **rows);
    if (!*rows)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for an index of %lld rows", reader->path,
                          (long long)shares.train);
    int64_t filled = 0;
    for (int64_t row = 0; row < *count; row++)
        if (mixt__part_of_row(&shares, row) == MIXT_PART_TRAIN)
            (*rows)[filled++] = row;
    *count = filled;
    return MIXT_OK;
}

static mixt_status learn(mixt__csv_reader *reader)
{
    int64_t *rows, count;
    mixt_status status = training_rows(reader, &rows, &count);
    if (status == MIXT_OK)
        status = mixt__schema_learn(reader->data, &reader->cells, rows, count, &reader->schema);
    mixt__free(rows);
    MIXT_TRY(status);
    reader->from = mixt__alloc((size_t)reader->schema->columns * sizeof *reader->from);
    for (int64_t c = 0; reader->from && c < reader->schema->columns; c++)
        reader->from[c] = c;
    return reader->from ? mixt__schema_tell(reader->data, reader->schema)
                        : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its columns", reader->path);
}

/** Gives words their numbers, in the order of the names. */
static mixt_status name_classes(mixt__csv_reader *reader, float *targets, mixt__table *table)
{
    int64_t numbers[MIXT_CLASS_WORDS];
    const char **names = mixt__arena_alloc(&reader->data->arena, (size_t)reader->words.count * sizeof *names);
    if (!names)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its classes", reader->path);
    mixt__class_words_sort(&reader->words, numbers);
    for (int64_t i = 0; i < table->rows; i++)
        targets[i] = (float)numbers[(int64_t)targets[i]];
    memcpy(names, reader->words.names, (size_t)reader->words.count * sizeof *names);
    table->class_names = names;
    table->classes = reader->words.count;
    return MIXT_OK;
}

static mixt_status take_targets(mixt__csv_reader *reader, mixt__table *table)
{
    const mixt__cells *cells = &reader->cells;
    float *targets = mixt__alloc_uninit((size_t)cells->rows * sizeof(float));
    if (!targets)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld targets", reader->path, (long long)cells->rows);
    for (int64_t i = 0; i < cells->rows; i++)
        targets[i] = cells->cell[i * cells->columns + cells->target].number;
    mixt_status status = reader->worded ? name_classes(reader, targets, table) : MIXT_OK;
    if (status != MIXT_OK) {
        mixt__free(targets);
        return status;
    }
    mixt_target_kind kind = reader->worded ? MIXT_TARGET_CLASS : reader->data->options.target;
    return mixt__table_take_targets(reader->data, table, targets, kind, cells->line);
}

/** Cells that are numbers all, and features in the same order: the target's column goes, in place. */
static void keep_cells(mixt__csv_reader *reader, mixt__table *table)
{
    mixt__cells *cells = &reader->cells;
    int64_t features = reader->schema->features;
    float *values = &cells->cell->number;
    for (int64_t i = 0; i < cells->rows && features < cells->columns; i++) {
        const float *row = values + i * cells->columns;
        float *to = values + i * features;
        int64_t before = cells->target < 0 ? features : cells->target;
        memmove(to, row, (size_t)before * sizeof(float));
        memmove(to + before, row + before + 1, (size_t)(features - before) * sizeof(float));
    }
    table->block = values;
    cells->cell = NULL;
}

/** Words that training did not know, and words among numbers. */
static mixt_status tell_misfits(const mixt__csv_reader *reader, const mixt__schema_misfits *misfits)
{
    const mixt__cells *cells = &reader->cells;
    for (int64_t c = 0; c < cells->columns; c++) {
        const mixt__cells_column *column = &cells->column[c];
        if (column->strays)
            MIXT_TRY(mixt__data_warn(
                reader->data,
                "%s: column %lld%s: %lld cell%s not a %s and taken as missing; the first is '%s' in line %lld",
                reader->path, (long long)c + 1, mixt__csv_called(column), (long long)column->strays,
                column->strays == 1 ? " is" : "s are", column->use == MIXT_CELLS_DATE ? "date" : "number",
                column->stray, (long long)column->first_stray));
    }
    if (cells->untargeted)
        MIXT_TRY(mixt__data_warn(reader->data, "%s: %lld of %lld rows have no target and are dropped", reader->path,
                                 (long long)cells->untargeted, (long long)(cells->rows + cells->untargeted)));
    const mixt_data *like = reader->data->options.like;
    if (!misfits->unknown || !like || !strcmp(like->path, reader->path))
        return MIXT_OK; // in a file that training has a share of, rare words are such
    return mixt__data_warn(reader->data,
                           "%s: %lld cell%s a word that the training part does not have; the first is '%s' in line "
                           "%lld, column %lld",
                           reader->path, (long long)misfits->unknown, misfits->unknown == 1 ? " has" : "s have",
                           misfits->first, (long long)misfits->first_line, (long long)misfits->first_column + 1);
}

/** Counts cells without a value: of numbers and dates, which get one, and of words. */
static mixt_status count_missing(mixt__csv_reader *reader, mixt__table *table)
{
    const mixt__cells *cells = &reader->cells;
    int64_t words = 0;
    for (int64_t i = 0; i < cells->cell_count; i++) {
        const mixt__cell *cell = &cells->cell[i];
        mixt__cells_use use = cells->column[i % cells->columns].use;
        table->missing += use == MIXT_CELLS_NUMBER ? isnan(cell->number) : 0;
        table->missing += use == MIXT_CELLS_DATE ? cell->whole == MIXT_DATE_NONE : 0;
        words += (use == MIXT_CELLS_ONE_HOT || use == MIXT_CELLS_EMBEDDED) && cell->whole < 0;
    }
    for (int64_t c = 0; c < cells->columns; c++)
        table->cells += cells->column[c].use == MIXT_CELLS_NUMBER || cells->column[c].use == MIXT_CELLS_DATE;
    table->cells *= cells->rows;
    return words ? mixt__data_note(reader->data, "%lld cells of words are missing: missing is one more word",
                                   (long long)words)
                 : MIXT_OK;
}

/** Encodes all rows. */
static mixt_status encode(mixt__csv_reader *reader, mixt__table *table)
{
    const mixt__schema *s = reader->schema;
    mixt__schema_misfits misfits = {0};
    int64_t elements;
    if (s->plain) {
        keep_cells(reader, table);
    } else {
        if (!mixt__shape_elements(2, (int64_t[]){table->rows, s->features}, &elements))
            return mixt__fail(MIXT_ERROR_DATA, "%s: %lld rows of %lld features are too many", reader->path,
                              (long long)table->rows, (long long)s->features);
        table->block = mixt__alloc_uninit((size_t)elements * sizeof(float));
        table->ids = s->embedded ? mixt__alloc_uninit((size_t)(table->rows * s->embedded) * sizeof(int32_t)) : NULL;
        if (!table->block || (s->embedded && !table->ids))
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld rows of %lld features", reader->path,
                              (long long)table->rows, (long long)s->features);
        for (int64_t i = 0; i < table->rows; i++)
            mixt__schema_encode(s, &reader->cells, reader->from, i, (float *)table->block + i * s->features,
                                table->ids ? table->ids + i * s->embedded : NULL, &misfits);
    }
    table->input = table->block;
    return tell_misfits(reader, &misfits);
}

static mixt_status fill_table(mixt__csv_reader *reader, mixt__table *table)
{
    const mixt__schema *s = reader->schema;
    table->path = reader->path;
    table->dtype = MIXT_DTYPE_FP32;
    table->rows = reader->cells.rows;
    table->rank = 1;
    table->dims[0] = s->features;
    table->classes = reader->stated_classes;
    table->dropped = reader->cells.dropped;
    table->schema = s;
    if (!reader->untargeted)
        MIXT_TRY(take_targets(reader, table));
    MIXT_TRY(count_missing(reader, table));
    return encode(reader, table);
}

bool mixt__csv_is_table(const char *path)
{
    static const char *const endings[] = {".csv", ".tsv", ".csv.gz", ".tsv.gz"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (length > strlen(endings[i]) && !strcmp(path + length - strlen(endings[i]), endings[i]))
            return true;
    return mixt__json_table_is(path);
}

mixt_status mixt__csv_open(mixt__csv_reader *reader, mixt__bytes *file)
{
    *file = (mixt__bytes){0};
    int64_t first;
    MIXT_TRY(mixt__json_table_read(reader->path, file, &first));
    reader->text = (mixt__csv_text){.at = (const char *)file->bytes, .end = (const char *)file->bytes + file->size};
    reader->text.line = first - 1;
    reader->text.at += mixt__bytes_mark(file);
    return mixt__csv_read_head(reader);
}

void mixt__csv_close(mixt__csv_reader *reader, mixt__bytes *file)
{
    mixt__cells_free(&reader->cells);
    mixt__free(reader->from);
    mixt__bytes_free(file);
}

/** From the head on. */
static mixt_status read_rest(mixt__csv_reader *reader, mixt__table *table)
{
    MIXT_TRY(mixt__csv_judge_columns(reader));
    MIXT_TRY(mixt__csv_read_rows(reader));
    if (!reader->schema)
        MIXT_TRY(learn(reader));
    return fill_table(reader, table);
}

/** Reads a file as what `reader` is set up for. */
static mixt_status read_path(mixt__csv_reader *reader, mixt__table *table)
{
    mixt__bytes file;
    mixt_status status = mixt__csv_open(reader, &file);
    if (status == MIXT_OK)
        status = read_rest(reader, table);
    if (status == MIXT_OK && reader->lines) {
        *reader->lines = reader->cells.line;
        reader->cells.line = NULL;
    }
    mixt__csv_close(reader, &file);
    return status;
}

static mixt_status load(mixt_data *data, const char *path, mixt__table *table)
{
    mixt__csv_reader reader = {.data = data, .path = path};
    const mixt_data *like = data->options.like;
    if (like && like->schema)
        MIXT_TRY(mixt__schema_copy(like->schema, &data->arena, &reader.schema));
    else if (table->train)
        reader.schema = table->train->schema;
    MIXT_TRY(mixt__class_words_start(data, table, &reader.words));
    MIXT_TRY(read_path(&reader, table));
    data->schema = table->schema;
    MIXT_LOG(DATA, "%s: %lld rows, %lld features, %s", path, (long long)table->rows, (long long)table->dims[0],
             table->labels ? "the target is a class" : "the target is a value to regress on");
    return MIXT_OK;
}

mixt_status mixt__csv_read_inputs(mixt_data *data, const mixt_data *like, const char *path, mixt__table *table,
                                  int64_t **lines)
{
    mixt__csv_reader reader = {.data = data, .path = path, .untargeted = true};
    if (like->schema)
        MIXT_TRY(mixt__schema_copy(like->schema, &data->arena, &reader.schema));
    else
        MIXT_TRY(mixt__schema_plain(&data->arena, like->info.arrays[0].elements, &reader.schema));
    reader.lines = lines;
    return read_path(&reader, table);
}

static const char *find(mixt_data *data, mixt__part part)
{
    return mixt__path_of_part(data, part, ".csv");
}

static mixt_status open_csv(mixt_data *data)
{
    static const mixt__table_reader reader = {find, load};
    return mixt__table_open(data, &reader);
}

const mixt__data_kind mixt__data_csv = {
    .name = "csv",
    .what = "table, one sample per line",
    .uses = MIXT_DATA_LABELS | MIXT_DATA_IMAGES | MIXT_DATA_CELLS | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES |
            MIXT_DATA_SHAPE | MIXT_DATA_COLUMNS | MIXT_DATA_VALUES,
    .open = open_csv,
    .sample = mixt__table_sample,
    .arrays = mixt__table_arrays,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};
