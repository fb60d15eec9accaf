/* Dates as people write them, and the numbers that a model gets of one. */
#ifndef MIXT_DATA_DATES_H
#define MIXT_DATA_DATES_H

#include "mixt/types.h"

/** What comes first in a date of digits. */
typedef enum mixt__date_order { MIXT_DATE_YMD, MIXT_DATE_DMY, MIXT_DATE_MDY, MIXT_DATE_ORDERS } mixt__date_order;

/** Which numbers a date becomes, beside the days since the column's first one. */
typedef enum mixt__date_parts {
    MIXT_DATE_YEAR = 1 << 0,  // sine and cosine of the day of the year
    MIXT_DATE_WEEK = 1 << 1,  // seven numbers, 1 for the day of the week
    MIXT_DATE_CLOCK = 1 << 2, // sine and cosine of the time of day
} mixt__date_parts;

enum { MIXT_DATE_NONE = INT32_MIN, MIXT_DATE_NUMBERS = 12, MIXT_DATE_DAY = 24 * 60 };

/** Minutes since 1970 of a date with digits for the month, "2024-02-29", "29.2.2024", "2/29/2024", a time behind it or
 *  none ("14:30", "T14:30:15Z"); false: it is none, or not in this order. Years have four digits. */
bool mixt__date_read(const char *text, int64_t length, mixt__date_order order, int32_t *minutes);
/** How many numbers a date becomes. */
int64_t mixt__date_numbers(unsigned parts);
/** Writes them; NaN where there is no date. @param origin minutes of the day that is 0 */
void mixt__date_write(int32_t minutes, int32_t origin, unsigned parts, float *to);

#endif
