/* Numbers in the C locale, units by their first letter. */
#include "base/sizes.h"

#include "base/c_locale.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/** How many bytes a unit has; 0: it is none. */
static double unit_bytes(const char *unit)
{
    static const char letters[] = "KMGT";
    const char *at = *unit ? strchr(letters, *unit & ~0x20) : NULL;
    if (!*unit || !strcasecmp(unit, "B"))
        return 1;
    if (!at || (unit[1] && strcasecmp(unit + 1, "iB") && strcasecmp(unit + 1, "B")))
        return 0;
    double bytes = 1, step = unit[1] && !unit[2] ? 1000 : 1024;
    for (const char *l = letters; l <= at; l++)
        bytes *= step;
    return bytes;
}

bool mixt__size_parse(const char *text, int64_t *bytes)
{
    size_t digits = strspn(text, "0123456789.");
    char *end;
    if (!digits || *text == '.')
        return false;
    double number = mixt__read_double(text, &end);
    if (end != text + digits) // an exponent, a second point
        return false;
    double unit = unit_bytes(end + (*end == ' ')), value = number * unit;
    if (unit == 0 || value >= 0x1p63)
        return false;
    *bytes = (int64_t)value;
    return true;
}

const char *mixt__size_text(size_t bytes, char text[MIXT_SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    int digits = unit == 0 ? 0 : value >= 100 ? 0 : value >= 10 ? 1 : 2;
    mixt__print_number(text, MIXT_SIZE_TEXT, "%.*f %s", digits, value, units[unit]);
    return text;
}
