/* Ranges: reading, and saying them. */
#include "base/range.h"

#include "base/c_locale.h"

#include <stdio.h>
#include <string.h>

bool mixt__range_has(const char *range, double number)
{
    const char *comma = strchr(range, ',');
    if (!comma)
        return true;
    double low = mixt__read_double(range + 1, NULL);
    if (*range == '(' ? number <= low : number < low)
        return false;
    if (comma[1] == ')')
        return true;
    double high = mixt__read_double(comma + 1, NULL);
    return strchr(comma, ')') ? number < high : number <= high;
}

void mixt__range_words(const char *range, char *text, size_t size)
{
    const char *comma = strchr(range, ',');
    if (!comma)
        snprintf(text, size, "%s", "");
    else if (comma[1] == ')')
        snprintf(text, size, "%s %.*s", *range == '(' ? "greater than" : "at least", (int)(comma - range - 1),
                 range + 1);
    else
        snprintf(text, size, "from %.*s%s to %.*s%s", (int)(comma - range - 1), range + 1,
                 *range == '(' ? " (not included)" : "", (int)strcspn(comma + 1, ")]"), comma + 1,
                 strchr(comma, ')') ? " (not included)" : "");
}
