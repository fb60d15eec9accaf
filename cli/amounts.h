/* Amounts as people write them on a command line. */
#ifndef MIXT_CLI_AMOUNTS_H
#define MIXT_CLI_AMOUNTS_H

#include <stdbool.h>

/** "0.1%" or "0.001": above 0 and at most 1. */
bool cli_read_share(const char *text, double *share);
/** "90", "90s", "10m" or "2h", in seconds, above 0. */
bool cli_read_duration(const char *text, double *seconds);
/** "2.50/h" or "2.50": the price of an hour, above 0. */
bool cli_read_price(const char *text, double *price);

#endif
