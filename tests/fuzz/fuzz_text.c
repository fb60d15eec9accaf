/* Text as bytes: windows of several lengths over every part, which ones by the length of the input. */
#include "fuzz.h"

#include <stdio.h>

void fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const splits[] = {"train", "val", "test", "all"};
    static const int64_t lengths[] = {1, 7, 256};
    char spec[700];
    snprintf(spec, sizeof spec, "text:%s", fuzz_file("input.txt", data, size));
    fuzz_data_set(spec,
                  MIXT_OPTIONS(mixt_data_options, .split = splits[size % 4], .seq = lengths[size % 3], .test = 0.2));
}
