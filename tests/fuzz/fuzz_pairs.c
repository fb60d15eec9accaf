/* captions.tsv: the input as the captions of two pictures in its folder. */
#include "fuzz.h"

#include <stdio.h>
#include <sys/stat.h>

static const char PICTURE[] = "P6 3 2 255\n0123456789abcdefgh";

void fuzz_input(const uint8_t *data, size_t size)
{
    char spec[700];
    mkdir(fuzz_path("set"), 0700);
    fuzz_file("set/a.ppm", PICTURE, sizeof PICTURE - 1);
    fuzz_file("set/b.ppm", PICTURE, sizeof PICTURE - 1);
    fuzz_file("set/captions.tsv", data, size);
    snprintf(spec, sizeof spec, "pairs:%s", fuzz_path("set"));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "all", .crop = 4));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.3, .crop = 4, .seq = 5));
}
