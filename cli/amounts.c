/* Shares, durations and prices, read without mercy for what stands behind them. */
#include "cli/amounts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** A number at the front of a text; false: there is none. */
static bool leading_number(const char *text, double *value, char **end)
{
    errno = 0;
    *value = strtod(text, end);
    return *end != text && !errno && isfinite(*value) && !strchr(" \t\n+", text[0]);
}

bool cli_read_price(const char *text, double *price)
{
    char *end;
    return leading_number(text, price, &end) && (!*end || !strcmp(end, "/h")) && *price > 0 && *price < 1e9;
}

bool cli_read_share(const char *text, double *share)
{
    char *end;
    if (!leading_number(text, share, &end))
        return false;
    if (!strcmp(end, "%"))
        *share /= 100;
    else if (*end)
        return false;
    return *share > 0 && *share <= 1;
}

bool cli_read_duration(const char *text, double *seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
    char *end;
    if (!leading_number(text, seconds, &end))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (!strcmp(end, units[i].unit)) {
            *seconds *= units[i].seconds;
            return *seconds > 0 && *seconds <= 1e9;
        }
    return false;
}
