/* Ratings: lines of users, items, ratings and times, shared out at random and by time. */
#include "fuzz.h"

#include <stdio.h>

void fuzz_input(const uint8_t *data, size_t size)
{
    char spec[700];
    snprintf(spec, sizeof spec, "ratings:%s", fuzz_file("ratings", data, size));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "all"));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.3, .by_time = true));
}
