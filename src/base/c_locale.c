/* The C locale is a constant of the C library: asking for it takes no memory there. Should it be refused all the same,
 * numbers are read and written as the program's locale has them, which is the C locale in most. */
#include "base/c_locale.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

mixt_status mixt__c_locale_enter(mixt__c_locale *locale)
{
    locale->before = (locale_t)0;
    locale->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale->c)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the C locale");
    locale->before = uselocale(locale->c);
    return MIXT_OK;
}

void mixt__c_locale_leave(mixt__c_locale *locale)
{
    uselocale(locale->before);
    freelocale(locale->c);
}

double mixt__read_double(const char *text, char **end)
{
    mixt__c_locale locale;
    bool entered = mixt__c_locale_enter(&locale) == MIXT_OK;
    double number = strtod(text, end);
    if (entered)
        mixt__c_locale_leave(&locale);
    return number;
}

float mixt__read_float(const char *text, char **end)
{
    mixt__c_locale locale;
    bool entered = mixt__c_locale_enter(&locale) == MIXT_OK;
    float number = strtof(text, end);
    if (entered)
        mixt__c_locale_leave(&locale);
    return number;
}

int mixt__print_number(char *text, size_t size, const char *format, ...)
{
    mixt__c_locale locale;
    va_list arguments;
    bool entered = mixt__c_locale_enter(&locale) == MIXT_OK;
    va_start(arguments, format);
    int length = vsnprintf(text, size, format, arguments);
    va_end(arguments);
    if (entered)
        mixt__c_locale_leave(&locale);
    return length;
}
