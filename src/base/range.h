/* Ranges of numbers as tables write them: "[0,1)", "(0,)"; "" is no limit. */
#ifndef MIXT_BASE_RANGE_H
#define MIXT_BASE_RANGE_H

#include <stdbool.h>
#include <stddef.h>

bool mixt__range_has(const char *range, double number);
/** "at least 0", "from 0 to 1 (not included)"; "" where there is no limit. */
void mixt__range_words(const char *range, char *text, size_t size);

#endif
