/* Tables of pictures. A picture is looked for beside the table and in folders of usual names there, with and without an
 * ending; where the first one lies, all do. The label is the column that is asked for, else one that is called so, else
 * the last one beside the names.
 */
#include "data/image/listed.h"

#include "data/image/folder.h"
#include "data/table/class_words.h"
#include "data/table/csv_text.h"
#include "data/table/json_lines.h"
#include "data/text/records.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LOOKED_AT = 1 << 16, ROWS = 8 };

/** Where the pictures lie, seen from the table: FOLDER/NAME and an ending. */
typedef struct place {
    char folder[MIXT_PATH_SIZE];
    const char *ending;
} place;

/** What is known of a table's columns. */
typedef struct columns {
    int file, label;
    bool header;
    place place;
} columns;

static bool is_there(const char *folder, mixt__span name, const char *ending)
{
    char path[MIXT_PATH_SIZE];
    bool fits = name.size > 0 && name.size < 1024 && !memchr(name.bytes, '\n', (size_t)name.size) &&
                snprintf(path, sizeof path, "%s/%.*s%s", folder, (int)name.size, (const char *)name.bytes, ending) <
                    MIXT_PATH_SIZE;
    return fits && (mixt__picture_is(path) || mixt__picture_is_unread(path)) && mixt__path_is_file(path);
}

/** Looks for a picture of this name beside the table. */
static bool find_place(const char *table, mixt__span name, place *place)
{
    static const char *const folders[] = {"",       "images",       "imgs",        "img",  "pictures",
                                          "photos", "train_images", "test_images", "jpg",  "train",
                                          "val",    "test",         "data",        "files"};
    static const char *const endings[] = {"", ".jpg", ".png", ".jpeg", ".ppm", ".pgm", ".JPG"};
    const char *slash = strrchr(table, '/'), *begin = slash ? slash + 1 : table;
    int base = slash ? (int)(slash - table) : 1;
    for (size_t f = 0; f <= sizeof folders / sizeof folders[0]; f++)
        for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++) {
            bool named = f == sizeof folders / sizeof folders[0]; // as the table itself
            int length = named ? (int)strcspn(begin, ".") : (int)strlen(folders[f]);
            snprintf(place->folder, sizeof place->folder, "%.*s%s%.*s", base, slash ? table : ".", length ? "/" : "",
                     length, named ? begin : folders[f]);
            place->ending = endings[e];
            if (is_there(place->folder, name, endings[e]))
                return true;
        }
    snprintf(place->folder, sizeof place->folder, "%s", "");
    return *name.bytes == '/' && is_there("", name, place->ending = "");
}

static bool says(mixt__span field, const char *name)
{
    return (size_t)field.size == strlen(name) && !strncasecmp((const char *)field.bytes, name, strlen(name));
}

/** A column by its name in the header, or its number from 1; -1: there is none. */
static int find_column(const mixt__record *header, const char *name)
{
    for (int c = 0; c < header->count; c++)
        if (says(header->field[c], name))
            return c;
    mixt__csv_field field = {.text = name, .length = (int64_t)strlen(name)};
    double number;
    bool counts = mixt__csv_plain_number(&field, &number) && number == floor(number);
    return counts && number >= 1 && number <= header->count ? (int)number - 1 : -1;
}

/** The column of pictures by the first two records, of which the first may be a header. */
static bool find_files(const char *path, const mixt__record *first, const mixt__record *second, columns *c)
{
    for (int row = 0; row < 2; row++) {
        const mixt__record *r = row ? first : second;
        for (c->file = 0; c->file < r->count; c->file++)
            if (find_place(path, r->field[c->file], &c->place)) {
                c->header =
                    c->file >= first->count || !is_there(c->place.folder, first->field[c->file], c->place.ending);
                return true;
            }
    }
    return false;
}

static int find_label(const mixt__record *header, int file)
{
    static const char *const names[] = {"label", "labels", "class", "category", "target", "y", "species", "breed"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int c = 0; c < header->count; c++)
            if (c != file && says(header->field[c], names[i]))
                return c;
    return file == header->count - 1 ? file - 1 : header->count - 1;
}

static mixt_status find_columns(const mixt_data_options *o, const char *path, const mixt__record *first,
                                const mixt__record *second, columns *c)
{
    const struct {
        const char *key, *name;
    } asked[] = {{"data.inputs", o->inputs}, {"data.labels", o->labels}};
    for (int i = 0; i < 2; i++)
        if (asked[i].name && find_column(first, asked[i].name) < 0)
            return mixt__fail(MIXT_ERROR_CONFIG, "%s: line 1 has no column '%s' (%s)", path, asked[i].name,
                              asked[i].key);
    if (!find_files(path, first, second, c))
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: no column names pictures that are there (%s), beside the table or in a "
                          "folder images or train",
                          path, mixt__picture_kinds());
    c->file = o->inputs ? find_column(first, o->inputs) : c->file;
    c->label = o->labels ? find_column(first, o->labels) : find_label(first, c->file);
    c->header = c->header || o->labels;
    if (c->label < 0 || c->label == c->file)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: the column of labels must be another than that of pictures: name it "
                          "with data.labels=COLUMN",
                          path);
    return MIXT_OK;
}

bool mixt__listed_looks(const char *path)
{
    mixt__bytes file;
    mixt__record first, second;
    columns c;
    if (!mixt__path_is_file(path) || mixt__bytes_read_most(path, LOOKED_AT, &file) != MIXT_OK)
        return false;
    int64_t line;
    if (file.size >= LOOKED_AT)
        while (file.size > 0 && file.bytes[file.size - 1] != '\n')
            file.bytes[--file.size] = 0;
    bool whole = mixt__json_table_convert(path, &file, &line) == MIXT_OK;
    mixt__records records = mixt__records_of(path, &file);
    bool pictures = whole && mixt__records_next(&records, &first) == MIXT_OK &&
                    mixt__records_next(&records, &second) == MIXT_OK && first.count > 1 &&
                    find_files(path, &first, &second, &c);
    mixt__bytes_free(&file);
    return pictures;
}

/** The only table of a folder; NULL: there is none, or there are several. */
static const char *only_table(mixt_data *data, const char *folder)
{
    struct dirent **entries;
    int count, found = 0;
    const char *path = NULL;
    if (mixt__folder_scan(folder, &entries, &count) != MIXT_OK)
        return NULL;
    for (int i = 0; i < count; i++)
        if (mixt__records_are(entries[i]->d_name)) {
            found++;
            path = mixt__arena_printf(&data->arena, "%s/%s", folder, entries[i]->d_name);
        }
    mixt__folder_free(entries, count);
    return found == 1 ? path : NULL;
}

const char *mixt__listed_table(mixt_data *data, const char *where, mixt__part part)
{
    static const char *const names[MIXT_PART_ALL][4] = {{"train.csv", "train.tsv", "labels.csv", "labels.tsv"},
                                                        {"val.csv", "val.tsv", "valid.csv"},
                                                        {"test.csv", "test.tsv"}};
    const char *path = NULL;
    if (!mixt__path_is_directory(where))
        return part == MIXT_PART_TRAIN && mixt__listed_looks(where) ? where : NULL;
    for (int i = 0; i < 4 && names[part][i] && !path; i++)
        path = mixt__path_find(data, where, names[part][i]);
    if (!path && part == MIXT_PART_TRAIN)
        path = only_table(data, where);
    return path && mixt__listed_looks(path) ? path : NULL;
}

/* ---- reading ---- */

/** A table on its way. */
typedef struct reading {
    mixt_data *data;
    const char *path;
    columns columns;
    const char **paths, **labels; // (count) in the data set's memory
    int64_t *lines;               // owned
    int64_t count, capacity[3];
} reading;

static mixt_status no_memory(const char *path)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its rows", path);
}

static mixt_status add_row(reading *r, const mixt__record *record)
{
    const columns *c = &r->columns;
    int most = c->file > c->label ? c->file : c->label;
    if (record->count <= most)
        return mixt__fail(
            MIXT_ERROR_DATA, "%s: line %lld has %d field%s, of which the picture and its label are %d and %d", r->path,
            (long long)record->line, record->count, record->count == 1 ? "" : "s", c->file + 1, c->label + 1);
    mixt__span name = record->field[c->file], label = record->field[c->label];
    if (!is_there(c->place.folder, name, c->place.ending))
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: '%.*s%s': no such picture in %s", r->path,
                          (long long)record->line, (int)(name.size < 200 ? name.size : 200), (const char *)name.bytes,
                          c->place.ending, c->place.folder);
    mixt__csv_field field = {.text = (const char *)label.bytes, .length = label.size};
    if (mixt__csv_missing(&field))
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: the label is missing", r->path, (long long)record->line);
    if (!mixt__grow((void **)&r->paths, &r->capacity[0], r->count, sizeof *r->paths) ||
        !mixt__grow((void **)&r->labels, &r->capacity[1], r->count, sizeof *r->labels) ||
        !mixt__grow((void **)&r->lines, &r->capacity[2], r->count, sizeof *r->lines))
        return no_memory(r->path);
    mixt__arena *arena = &r->data->arena;
    r->paths[r->count] = mixt__arena_printf(arena, "%s/%.*s%s", c->place.folder, (int)name.size,
                                            (const char *)name.bytes, c->place.ending);
    r->labels[r->count] = mixt__arena_printf(arena, "%.*s", (int)label.size, (const char *)label.bytes);
    r->lines[r->count] = record->line;
    bool good = r->paths[r->count] && r->labels[r->count];
    r->count++;
    return good ? MIXT_OK : no_memory(r->path);
}

static mixt_status read_rows(reading *r, mixt__bytes *file)
{
    mixt__records records = mixt__records_of(r->path, file);
    mixt__record first, next;
    mixt_status status = mixt__records_next(&records, &first);
    if (status == MIXT_OK)
        status = mixt__records_next(&records, &next);
    if (status == MIXT_END)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: fewer than two lines: expected pictures and their labels", r->path);
    MIXT_TRY(status);
    MIXT_TRY(find_columns(&r->data->options, r->path, &first, &next, &r->columns));
    if (!r->columns.header)
        MIXT_TRY(add_row(r, &first));
    for (; status == MIXT_OK; status = mixt__records_next(&records, &next))
        MIXT_TRY(add_row(r, &next));
    return status == MIXT_END ? MIXT_OK : status;
}

/** Labels that are all numbers; NULL: they are not, or there is no memory. */
static float *as_numbers(const reading *r)
{
    float *values = mixt__alloc_uninit((size_t)r->count * sizeof *values + 1);
    for (int64_t i = 0; values && i < r->count; i++) {
        mixt__csv_field field = {.text = r->labels[i], .length = (int64_t)strlen(r->labels[i])};
        double number;
        if (!mixt__csv_number(&field, &number) || !isfinite((float)number)) {
            mixt__free(values);
            return NULL;
        }
        values[i] = (float)number;
    }
    return values;
}

/** Words are classes, numbered by their alphabet. */
static mixt_status take_words(const reading *r, mixt__table *table)
{
    mixt__class_words words = {0};
    int64_t numbers[MIXT_CLASS_WORDS];
    MIXT_TRY(mixt__class_words_start(r->data, table, &words));
    table->labels = mixt__alloc_uninit((size_t)r->count * sizeof *table->labels);
    if (!table->labels)
        return no_memory(r->path);
    for (int64_t i = 0; i < r->count; i++) {
        int64_t number = mixt__class_words_number(r->data, &words, r->labels[i], (int64_t)strlen(r->labels[i]));
        if (number < 0)
            return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: label '%.60s': %s", r->path, (long long)r->lines[i],
                              r->labels[i], words.given ? "no class of the training part" : "too many classes");
        table->labels[i] = (int32_t)number;
    }
    mixt__class_words_sort(&words, numbers);
    for (int64_t i = 0; i < r->count; i++)
        table->labels[i] = (int32_t)numbers[table->labels[i]];
    const char **names = mixt__arena_alloc(&r->data->arena, (size_t)(words.count + 1) * sizeof *names);
    if (!names)
        return no_memory(r->path);
    memcpy(names, words.names, (size_t)words.count * sizeof *names);
    table->class_names = names;
    table->classes = words.count;
    return MIXT_OK;
}

mixt_status mixt__listed_read(mixt_data *data, const char *path, mixt__table *table, const char ***paths)
{
    mixt__bytes file;
    reading r = {.data = data, .path = path};
    int64_t line;
    MIXT_TRY(mixt__json_table_read(path, &file, &line));
    mixt_status status = mixt__text_check(path, file.bytes, file.size);
    if (status == MIXT_OK)
        status = read_rows(&r, &file);
    mixt__bytes_free(&file);
    table->path = path;
    table->rows = r.count;
    float *values = status == MIXT_OK ? as_numbers(&r) : NULL;
    if (values)
        status = mixt__table_take_targets(data, table, values, data->options.target, r.lines);
    else if (status == MIXT_OK)
        status = take_words(&r, table);
    *paths = status == MIXT_OK ? mixt__arena_alloc(&data->arena, (size_t)(r.count + 1) * sizeof **paths) : NULL;
    if (*paths)
        memcpy(*paths, r.paths, (size_t)r.count * sizeof **paths);
    else if (status == MIXT_OK)
        status = no_memory(path);
    mixt__free(r.paths);
    mixt__free(r.labels);
    mixt__free(r.lines);
    return status;
}
