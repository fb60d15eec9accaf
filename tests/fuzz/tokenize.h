/* A tokenizer opened from the program's folder and put to work on a text. */
#ifndef MIXT_TESTS_FUZZ_TOKENIZE_H
#define MIXT_TESTS_FUZZ_TOKENIZE_H

#include "fuzz.h"

/** Opens a tokenizer; when that succeeds, encodes the text whole and in small chunks, compares, and decodes.
 *  @param exact whether decoding must give the text back. */
void fuzz_tokenizer(const char *kind, const uint8_t *text, size_t size, bool exact);

#endif
