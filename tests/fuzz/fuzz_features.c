/* Features of items and of users: lines of names, numbers, categories and titles, beside a few ratings. */
#include "fuzz.h"

#include <stdio.h>

static const char ratings[] = "1::a::1::1\n2::b::2::2\n1::b::3::3\n3::c::4::4\n2::d::5::5\n";

void fuzz_input(const uint8_t *data, size_t size)
{
    char spec[700];
    snprintf(spec, sizeof spec, "ratings:%s", fuzz_file("ratings", ratings, sizeof ratings - 1));
    const char *features = fuzz_file("features", data, size);
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "all", .items = features));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.4, .by_time = true, .users = features,
                                     .items = "features", .counts = true, .user_numbers = true, .times = true));
}
