/* Names of experiments: what --name may be, and what it is where it is not given. */
#ifndef MIXT_CLI_NAMES_H
#define MIXT_CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/** Letters, digits, '.', '_' and '-', 1 to `longest` of them. */
bool cli_name_good(const char *name, size_t longest);
/** Appends the name of a file without folder and ending; what a name may not hold becomes '-'. */
void cli_name_add_stem(char *name, size_t size, const char *path);

#endif
