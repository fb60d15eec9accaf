/* gzip as all readers of data unpack it, then read as text and as CSV. */
#include "fuzz.h"

#include <stdio.h>

void fuzz_input(const uint8_t *data, size_t size)
{
    char spec[700];
    const char *path = fuzz_file("input.gz", data, size);
    snprintf(spec, sizeof spec, "csv:%s", path);
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options));
    snprintf(spec, sizeof spec, "text:%s", path);
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .seq = 4));
}
