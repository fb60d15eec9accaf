/* Numbers as text, the same whatever the program's locale is: a host program may have called setlocale, and in half of
 * the world 0.5 is written with a comma. */
#ifndef MIXT_BASE_C_LOCALE_H
#define MIXT_BASE_C_LOCALE_H

#include "mixt/types.h"

#include <locale.h>

/** What leave gives back. */
typedef struct mixt__c_locale {
    locale_t c, before;
} mixt__c_locale;

/** Enters the C locale for this thread alone; not to be left open over a call of the user's. */
mixt_status mixt__c_locale_enter(mixt__c_locale *locale);
void mixt__c_locale_leave(mixt__c_locale *locale);

/** As strtod and strtof, in the C locale. */
double mixt__read_double(const char *text, char **end);
float mixt__read_float(const char *text, char **end);
/** As snprintf, in the C locale. */
int mixt__print_number(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
