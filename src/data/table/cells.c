/* What the fields of a column are, and numbers in the forms that files have. */
#include "data/table/cells.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { STRAYS = 20, NUMBER_MAX = 48 }; // one cell in so many may be a word in a column of numbers

const char *const mixt__cells_uses[MIXT_CELLS_USES] = {"out", "number", "date", "one_hot", "embedded", "target"};

void mixt__cells_free(mixt__cells *cells)
{
    for (int64_t c = 0; cells->column && c < cells->columns; c++)
        mixt__names_free(&cells->column[c].words);
    mixt__free(cells->column);
    mixt__free(cells->cell);
    mixt__free(cells->line);
    *cells = (mixt__cells){0};
}

/** Leaves out the marks between groups of three digits, 1 to 3 before the first; false: they are not such. */
static bool ungroup(const mixt__csv_field *field, char group, char point, char plain[NUMBER_MAX])
{
    const char *at = field->text, *end = at + field->length;
    int64_t digits = 0, marks = 0;
    bool behind = false; // the decimal point
    if (field->length >= NUMBER_MAX)
        return false;
    for (; at < end; at++) {
        bool digit = *at >= '0' && *at <= '9';
        if (*at == group && !behind) {
            bool fits = marks ? digits == 3 : digits >= 1 && digits <= 3 && plain[-digits] != '0';
            if (!fits)
                return false;
            marks++;
            digits = 0;
            continue;
        }
        if (*at == point) {
            if (behind || (marks && digits != 3))
                return false;
            behind = true;
        }
        digits += digit && !behind;
        *plain++ = *at == point ? '.' : *at;
    }
    *plain = '\0';
    return behind || !marks || digits == 3;
}

static bool has(const mixt__csv_field *field, char letter)
{
    return memchr(field->text, letter, (size_t)field->length) != NULL;
}

/** Without "$", "€", "£", "¥" in front or behind, "%" behind, and blanks between. */
static mixt__csv_field without_unit(mixt__csv_field field)
{
    static const char *const units[] = {"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "%"};
    mixt__csv_field f = field;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        int64_t length = (int64_t)strlen(units[i]);
        bool front = *units[i] != '%' && f.length > length && !memcmp(f.text, units[i], (size_t)length);
        bool behind = f.length > length && !memcmp(f.text + f.length - length, units[i], (size_t)length);
        if (!front && !behind)
            continue;
        f.text += front ? length : 0;
        for (f.length -= length; f.length > 1 && *f.text == ' '; f.length--)
            f.text++;
        while (f.length > 1 && f.text[f.length - 1] == ' ')
            f.length--;
        return f;
    }
    return field;
}

bool mixt__number_read(const mixt__csv_field *given, mixt__number_form form, double *value)
{
    char plain[NUMBER_MAX];
    mixt__csv_field bare = without_unit(*given), *field = &bare;
    bool comma = form == MIXT_NUMBER_COMMA;
    if (form == MIXT_NUMBER_POINT || (!has(field, ',') && !(comma && has(field, '.'))))
        return mixt__csv_number(field, value);
    if (!ungroup(field, comma ? '.' : ',', comma ? ',' : '.', plain))
        return false;
    mixt__csv_field text = {plain, (int64_t)strlen(plain), false};
    return mixt__csv_number(&text, value);
}

static void add_number(mixt__survey *s, const mixt__csv_field *field, double value)
{
    s->numbers[MIXT_NUMBER_POINT]++;
    s->numbers[MIXT_NUMBER_THOUSANDS]++;
    double other;
    s->numbers[MIXT_NUMBER_COMMA] += mixt__number_read(field, MIXT_NUMBER_COMMA, &other);
    s->counts = s->values == 1 || (s->counts && value == s->next);
    s->next = value + 1;
}

void mixt__survey_add(mixt__survey *s, const mixt__csv_field *field)
{
    double value;
    int32_t minutes;
    if (mixt__csv_missing(field))
        return;
    s->values++;
    if (mixt__number_read(field, MIXT_NUMBER_POINT, &value)) {
        add_number(s, field, value);
        return;
    }
    s->counts = false;
    if (has(field, ',')) {
        bool comma = mixt__number_read(field, MIXT_NUMBER_COMMA, &value);
        bool thousands = mixt__number_read(field, MIXT_NUMBER_THOUSANDS, &value);
        s->numbers[MIXT_NUMBER_COMMA] += comma;
        s->numbers[MIXT_NUMBER_THOUSANDS] += thousands;
        s->decimals += comma && !thousands;
        s->groups += thousands && !comma;
    } else if (mixt__number_read(field, MIXT_NUMBER_COMMA, &value)) { // 1.234.567
        s->numbers[MIXT_NUMBER_COMMA]++;
        s->decimals++;
    } else if (field->length >= 8 && field->text[0] >= '0' && field->text[0] <= '9') {
        for (int order = 0; order < MIXT_DATE_ORDERS; order++)
            s->dates[order] += mixt__date_read(field->text, field->length, (mixt__date_order)order, &minutes);
        s->slash = s->slash || memchr(field->text, '/', (size_t)field->length);
    }
}

/** Nearly all values; a few others are strays. */
static bool most(const mixt__survey *s, int64_t count)
{
    return count > 0 && (s->values - count) * STRAYS <= s->values;
}

static bool judge_numbers(const mixt__survey *s, mixt__comma means, mixt__cells_column *column, const char **doubtful)
{
    bool comma = most(s, s->numbers[MIXT_NUMBER_COMMA]), thousands = most(s, s->numbers[MIXT_NUMBER_THOUSANDS]);
    bool decimal = s->decimals || means == MIXT_COMMA_DECIMAL;
    column->form = comma && decimal ? MIXT_NUMBER_COMMA : MIXT_NUMBER_POINT; // 1.234 is a thousand beside 0,5
    if (column->form == MIXT_NUMBER_COMMA || most(s, s->numbers[MIXT_NUMBER_POINT]))
        return true;
    if (comma && thousands && !s->groups && means == MIXT_COMMA_UNKNOWN)
        *doubtful = "its commas may be decimal or thousands separators: write numbers with a point and without commas";
    column->form = thousands ? MIXT_NUMBER_THOUSANDS : MIXT_NUMBER_COMMA;
    return comma || thousands;
}

static bool judge_dates(const mixt__survey *s, mixt__cells_column *column)
{
    static const mixt__date_order orders[] = {MIXT_DATE_YMD, MIXT_DATE_MDY, MIXT_DATE_DMY};
    int64_t best = 0;
    for (int i = 0; i < MIXT_DATE_ORDERS; i++)
        if (s->dates[orders[i]] > best) {
            best = s->dates[orders[i]];
            column->order = orders[i];
        }
    return most(s, best);
}

void mixt__survey_judge(const mixt__survey *s, mixt__comma comma, mixt__cells_column *column, const char **doubtful)
{
    *doubtful = NULL;
    if (!s->values) {
        column->use = MIXT_CELLS_OUT;
        column->why = "has no value";
    } else if (judge_numbers(s, comma, column, doubtful)) {
        column->use = MIXT_CELLS_NUMBER;
    } else {
        column->use = judge_dates(s, column) ? MIXT_CELLS_DATE : MIXT_CELLS_ONE_HOT;
    }
    bool either = column->use == MIXT_CELLS_DATE && column->order == MIXT_DATE_MDY &&
                  s->dates[MIXT_DATE_MDY] == s->dates[MIXT_DATE_DMY];
    if (either)
        *doubtful = "its dates may be day first or month first: month first is assumed; write them as 2024-12-31";
}
