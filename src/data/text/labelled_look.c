/* Whether a table is one of texts: looked at, not read.
 *
 * Of at most four columns one holds sentences: many words in almost every row. A header that calls a column so needs
 * fewer of them.
 */
#include "data/table/json_lines.h"
#include "data/text/records.h"

#include <string.h>
#include <strings.h>

enum { LOOKED_AT = 1 << 18, ROWS = 64, FEW = 4, WORDS = 6, NAMED_WORDS = 3 };

static int count_words(mixt__span field)
{
    int words = 0;
    bool inside = false;
    for (int64_t i = 0; i < field.size; i++) {
        bool letter = field.bytes[i] != ' ' && field.bytes[i] != '\n';
        words += letter && !inside;
        inside = letter;
    }
    return words;
}

static bool is_text_name(mixt__span field)
{
    static const char *const names[] = {"sentence", "text",    "review", "phrase", "comment",
                                        "content",  "message", "body",   "tweet",  "prompt"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((size_t)field.size == strlen(names[i]) &&
            !strncasecmp((const char *)field.bytes, names[i], strlen(names[i])))
            return true;
    return false;
}

/** Looks at whole records of the beginning of a file. */
static bool look(const char *path, mixt__bytes *file)
{
    mixt__records records = mixt__records_of(path, file);
    mixt__record record;
    int64_t words[FEW] = {0};
    bool named[FEW] = {false};
    int rows = 0, columns = 0;
    while (rows < ROWS && mixt__records_next(&records, &record) == MIXT_OK) {
        if (record.count < 2 || record.count > FEW || (rows && record.count != columns))
            return false;
        for (int c = 0; c < record.count; c++) {
            named[c] = rows ? named[c] : is_text_name(record.field[c]);
            words[c] += rows ? count_words(record.field[c]) : 0;
        }
        columns = record.count;
        rows++;
    }
    for (int c = 0; c < columns && rows > 1; c++)
        if (words[c] >= (rows - 1) * (int64_t)(named[c] ? NAMED_WORDS : WORDS))
            return true;
    return false;
}

bool mixt__labelled_looks(const char *path)
{
    mixt__bytes file;
    if (!mixt__path_is_file(path) || mixt__bytes_read_most(path, LOOKED_AT, &file) != MIXT_OK)
        return false;
    if (file.size >= LOOKED_AT) { // what is cut off is no record
        while (file.size > 0 && file.bytes[file.size - 1] != '\n')
            file.size--;
        file.bytes[file.size] = 0;
    }
    int64_t first;
    bool texts = mixt__json_table_convert(path, &file, &first) == MIXT_OK && look(path, &file);
    mixt__bytes_free(&file);
    return texts;
}
