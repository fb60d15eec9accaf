/* Which candidates must run: tests/ops/required.txt. */
#ifndef MIXT_TESTS_REQUIRED_H
#define MIXT_TESTS_REQUIRED_H

#include <stdbool.h>

/** Reads the list; says what is wrong with it. */
bool required_read(const char *path);
/** Says so where a candidate has no line, did not run although its line has this processor's set, or ran although it
 *  has not. */
bool required_check(const char *op, const char *candidate, bool ran);

#endif
