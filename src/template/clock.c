/* The time that a rendering has: now, or what MIXT_NOW says; strftime in English whatever the locale is. */
#include "template/run.h"

#include "base/env.h"

#include <stdio.h>
#include <string.h>

static mixt_status read_clock(mixt__tpl_run *run)
{
    const char *fixed = mixt__env_get(MIXT_ENV_NOW);
    time_t now = time(NULL);
    int used = 0;
    if (run->has_now)
        return MIXT_OK;
    run->has_now = true;
    if (!*fixed)
        return localtime_r(&now, &run->now) ? MIXT_OK : mixt__fail(MIXT_ERROR_INTERNAL, "no local time");
    struct tm *at = &run->now;
    if (sscanf(fixed, "%4d-%2d-%2dT%2d:%2d:%2d%n", &at->tm_year, &at->tm_mon, &at->tm_mday, &at->tm_hour, &at->tm_min,
               &at->tm_sec, &used) != 6 ||
        fixed[used] || at->tm_mon < 1 || at->tm_mon > 12 || at->tm_mday < 1 || at->tm_mday > 31 || at->tm_hour > 23 ||
        at->tm_min > 59 || at->tm_sec > 59)
        return mixt__fail(MIXT_ERROR_CONFIG, "MIXT_NOW=%s: not a time such as 2026-11-18T12:00:00", fixed);
    at->tm_year -= 1900;
    at->tm_mon -= 1;
    struct tm known = *at;
    (void)timegm(&known); // finds the day of the week and of the year
    at->tm_wday = known.tm_wday;
    at->tm_yday = known.tm_yday;
    return MIXT_OK;
}

static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};

/** Writes one conversion; false: it is not known. */
static bool convert(const struct tm *now, char what, bool plain, char text[32])
{
    int twelve = now->tm_hour % 12 ? now->tm_hour % 12 : 12;
    const struct {
        char what;
        int width, value;
    } numbers[] = {{'d', 2, now->tm_mday},
                   {'m', 2, now->tm_mon + 1},
                   {'H', 2, now->tm_hour},
                   {'I', 2, twelve},
                   {'M', 2, now->tm_min},
                   {'S', 2, now->tm_sec},
                   {'Y', 1, now->tm_year + 1900},
                   {'y', 2, now->tm_year % 100},
                   {'j', 3, now->tm_yday + 1},
                   {'w', 1, now->tm_wday},
                   {'u', 1, now->tm_wday ? now->tm_wday : 7}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].what == what)
            return snprintf(text, 32, "%0*d", plain ? 1 : numbers[i].width, numbers[i].value) > 0;
    switch (plain ? 0 : what) {
    case 'A':
    case 'a':
        return snprintf(text, 32, "%.*s", what == 'a' ? 3 : 9, days[now->tm_wday]) > 0;
    case 'B':
    case 'b':
    case 'h':
        return snprintf(text, 32, "%.*s", what == 'B' ? 9 : 3, months[now->tm_mon]) > 0;
    case 'p':
        return snprintf(text, 32, "%s", now->tm_hour < 12 ? "AM" : "PM") > 0;
    case 'e':
        return snprintf(text, 32, "%2d", now->tm_mday) > 0;
    case 'F':
        return snprintf(text, 32, "%d-%02d-%02d", now->tm_year + 1900, now->tm_mon + 1, now->tm_mday) > 0;
    case 'T':
        return snprintf(text, 32, "%02d:%02d:%02d", now->tm_hour, now->tm_min, now->tm_sec) > 0;
    case 'f':
        return snprintf(text, 32, "000000") > 0;
    case '%':
        return snprintf(text, 32, "%%") > 0;
    default:
        return false;
    }
}

mixt_status mixt__tpl_strftime(mixt__tpl_run *run, const mixt__tpl_value *format, mixt__tpl_value *text)
{
    size_t mark = run->size;
    MIXT_TRY(read_clock(run));
    for (size_t i = 0; i < format->size; i++) {
        char made[32];
        if (format->text[i] != '%') {
            MIXT_TRY(mixt__tpl_write(run, &format->text[i], 1));
            continue;
        }
        bool plain = i + 1 < format->size && format->text[i + 1] == '-'; // without zeros in front
        i += 1 + (size_t)plain;
        if (i >= format->size || !convert(&run->now, format->text[i], plain, made))
            return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "strftime_now: conversion '%%%c' is not known here",
                                     i < format->size && format->text[i] > ' ' ? format->text[i] : '?');
        MIXT_TRY(mixt__tpl_write_word(run, made));
    }
    return mixt__tpl_capture(run, mark, text);
}
