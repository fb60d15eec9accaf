/* NPZ archives: the list of members, deflate, and the arrays in them. */
#include "fuzz.h"

#include <stdio.h>

void fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const splits[] = {"train", "val", "test", "all"};
    char spec[700];
    snprintf(spec, sizeof spec, "npz:%s", fuzz_file("input.npz", data, size));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = splits[size % 4], .test = 0.2));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .labels = "x"));
}
