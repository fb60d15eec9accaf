/* Amounts of memory that people type, "900M" or "1.5GiB", and that they read. */
#ifndef MIXT_BASE_SIZES_H
#define MIXT_BASE_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A number, then nothing (bytes), B, K, M, G or T (powers of 1024, as with iB behind them) or KB, MB, GB, TB (powers
 *  of 1000), in any case; part of a byte is dropped. False, and *bytes as it was: it is no such text, is below 0 or
 *  does not fit 63 bits. */
bool mixt__size_parse(const char *text, int64_t *bytes);

enum { MIXT_SIZE_TEXT = 32 };
/** "1.5 GiB", with three or four digits. Returns `text`. */
const char *mixt__size_text(size_t bytes, char text[MIXT_SIZE_TEXT]);

#endif
