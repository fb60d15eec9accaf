/* CSV: targets guessed, as classes and as values; the last column, one by number, one by name; missing cells refused,
 * filled and left out; which by the length of the input. */
#include "fuzz.h"

#include <stdio.h>

void fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const columns[] = {NULL, "1", "class"};
    static const char *const splits[] = {"train", "val", "all"};
    static const mixt_target_kind targets[] = {MIXT_TARGET_AUTO, MIXT_TARGET_CLASS, MIXT_TARGET_VALUES};
    char spec[700];
    snprintf(spec, sizeof spec, "csv:%s", fuzz_file("input.csv", data, size));
    size_t way = size % 9;
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .labels = columns[way % 3], .split = splits[way / 3],
                                     .target = targets[(way + way / 3) % 3], .missing = (mixt_missing)(size / 9 % 4)));
}
