/* Labelled texts: records of TSV and CSV, columns found and named, words learned; which by the length of the input. */
#include "fuzz.h"

#include <stdio.h>

void fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"input.tsv", "input.csv", "input.txt"};
    static const char *const columns[] = {NULL, "2", "text"};
    char spec[700];
    size_t way = size % 9;
    snprintf(spec, sizeof spec, "labelled:%s", fuzz_file(names[way % 3], data, size));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .text = columns[way / 3], .split = size & 1 ? "all" : "val",
                                     .val = 0.3, .seq = 16, .tokenizer = size % 5 ? NULL : "bytes"));
}
