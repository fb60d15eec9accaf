/* Reading dates by hand: no locale, no time zone, no library's idea of what a year is. */
#include "data/table/dates.h"

#include <math.h>

typedef struct reader {
    const char *at, *end;
} reader;

/** Digits, at most `most` of them; -1: there is none. */
static int64_t number(reader *r, int most)
{
    int64_t value = 0;
    int digits = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && digits < most; r->at++, digits++)
        value = value * 10 + (*r->at - '0');
    return digits ? value : -1;
}

static bool take(reader *r, const char *one_of, char *which)
{
    for (const char *c = one_of; r->at < r->end && *c; c++)
        if (*r->at == *c) {
            *which = *r->at++;
            return true;
        }
    return false;
}

/** Days since 1970 of a day of the Gregorian calendar (Howard Hinnant's days_from_civil). */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t month_length(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/** "14:30", "14:30:15.5", "T14:30Z", or nothing: minutes. */
static bool read_clock(reader *r, int64_t *minutes)
{
    char mark;
    *minutes = 0;
    if (r->at == r->end)
        return true;
    if (!take(r, "T ", &mark))
        return false;
    int64_t hour = number(r, 2), minute = take(r, ":", &mark) ? number(r, 2) : -1, second = 0;
    if (take(r, ":", &mark))
        second = number(r, 2);
    if (take(r, ".,", &mark) && number(r, 9) < 0)
        return false;
    take(r, "Z", &mark);
    *minutes = hour * 60 + minute;
    return r->at == r->end && hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 61;
}

bool mixt__date_read(const char *text, int64_t length, mixt__date_order order, int32_t *minutes)
{
    reader r = {text, text + length};
    char first, second;
    int64_t part[3], clock;
    const char *begin = r.at;
    for (int i = 0; i < 3; i++) {
        bool year = order == MIXT_DATE_YMD ? i == 0 : i == 2;
        begin = r.at;
        part[i] = number(&r, year ? 4 : 2);
        if (part[i] < 0 || (year && r.at - begin != 4))
            return false;
        if (i < 2 && !take(&r, "-/.", i ? &second : &first))
            return false;
    }
    int64_t year = part[order == MIXT_DATE_YMD ? 0 : 2], month = part[order == MIXT_DATE_MDY ? 0 : 1];
    int64_t day = part[order == MIXT_DATE_YMD ? 2 : order == MIXT_DATE_DMY ? 0 : 1];
    if (first != second || (order == MIXT_DATE_MDY && first == '.') || !read_clock(&r, &clock))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > month_length(year, month))
        return false;
    *minutes = (int32_t)(days_of(year, month, day) * MIXT_DATE_DAY + clock);
    return true;
}

int64_t mixt__date_numbers(unsigned parts)
{
    return 1 + (parts & MIXT_DATE_YEAR ? 2 : 0) + (parts & MIXT_DATE_WEEK ? 7 : 0) + (parts & MIXT_DATE_CLOCK ? 2 : 0);
}

void mixt__date_write(int32_t minutes, int32_t origin, unsigned parts, float *to)
{
    const double turn = 2 * 3.14159265358979323846;
    if (minutes == MIXT_DATE_NONE) {
        for (int64_t i = 0; i < mixt__date_numbers(parts); i++)
            to[i] = NAN;
        return;
    }
    int64_t day = minutes / MIXT_DATE_DAY - (minutes % MIXT_DATE_DAY < 0), clock = minutes - day * MIXT_DATE_DAY;
    *to++ = (float)(((double)minutes - origin) / MIXT_DATE_DAY);
    if (parts & MIXT_DATE_YEAR) { // of the mean year: where in it exactly matters less than that its ends meet
        double angle = turn * fmod((double)day / 365.2425, 1);
        *to++ = (float)sin(angle);
        *to++ = (float)cos(angle);
    }
    if (parts & MIXT_DATE_WEEK)
        for (int64_t i = 0; i < 7; i++)
            *to++ = (((day % 7) + 7 + 3) % 7 == i) ? 1.0f : 0.0f; // 1970 began on a Thursday, a week begins on Monday
    if (parts & MIXT_DATE_CLOCK) {
        double angle = turn * (double)clock / MIXT_DATE_DAY;
        *to++ = (float)sin(angle);
        *to++ = (float)cos(angle);
    }
}
