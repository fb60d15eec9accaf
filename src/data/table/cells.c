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

bool mixt__number_read(const mixt__csv_field *field, mixt__number_form form, double *value)
{
    char plain[NUMBER_MAX];
    if (form == MIXT_NUMBER_POINT || !memchr(field->text, ',', (size_t)field->length))
        return mixt__csv_number(field, value) &&
               (form != MIXT_NUMBER_COMMA || !memchr(field->text, '.', (size_t)field->length));
    bool comma = form == MIXT_NUMBER_COMMA;
    if (!ungroup(field, comma ? '.' : ',', comma ? ',' : '.', plain))
        return false;
    mixt__csv_field text = {plain, (int64_t)strlen(plain), false};
    return mixt__csv_number(&text, value);
}

static void add_number(mixt__survey *s, const mixt__csv_field *field, double value)
{
    s->numbers[MIXT_NUMBER_POINT]++;
    s->numbers[MIXT_NUMBER_THOUSANDS]++;
    s->numbers[MIXT_NUMBER_COMMA] += !memchr(field->text, '.', (size_t)field->length);
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
    if (mixt__csv_number(field, &value)) {
        add_number(s, field, value);
        return;
    }
    s->counts = false;
    if (memchr(field->text, ',', (size_t)field->length)) {
        bool comma = mixt__number_read(field, MIXT_NUMBER_COMMA, &value);
        bool thousands = mixt__number_read(field, MIXT_NUMBER_THOUSANDS, &value);
        s->numbers[MIXT_NUMBER_COMMA] += comma;
        s->numbers[MIXT_NUMBER_THOUSANDS] += thousands;
        s->decimals += comma && !thousands;
        s->groups += thousands && !comma;
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

static bool judge_numbers(const mixt__survey *s, mixt__cells_column *column, const char **doubtful)
{
    bool comma = most(s, s->numbers[MIXT_NUMBER_COMMA]), thousands = most(s, s->numbers[MIXT_NUMBER_THOUSANDS]);
    column->form = MIXT_NUMBER_POINT;
    if (most(s, s->numbers[MIXT_NUMBER_POINT]))
        return true;
    if (comma && thousands && !s->decimals && !s->groups)
        *doubtful = "its commas may be decimal or thousands separators: write numbers with a point and without commas";
    column->form = comma && (s->decimals || !thousands) ? MIXT_NUMBER_COMMA : MIXT_NUMBER_THOUSANDS;
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

void mixt__survey_judge(const mixt__survey *s, mixt__cells_column *column, const char **doubtful)
{
    *doubtful = NULL;
    if (!s->values) {
        column->use = MIXT_CELLS_OUT;
        column->why = "has no value";
    } else if (judge_numbers(s, column, doubtful)) {
        column->use = MIXT_CELLS_NUMBER;
    } else {
        column->use = judge_dates(s, column) ? MIXT_CELLS_DATE : MIXT_CELLS_ONE_HOT;
    }
    bool either = column->use == MIXT_CELLS_DATE && column->order == MIXT_DATE_MDY &&
                  s->dates[MIXT_DATE_MDY] == s->dates[MIXT_DATE_DMY];
    if (either)
        *doubtful = "its dates may be day first or month first: month first is assumed; write them as 2024-12-31";
}
