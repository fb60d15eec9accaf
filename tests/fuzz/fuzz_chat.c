/* Conversations: lines or an array, every form of row, spans of answers, cut and packed; how by the length of the
 * input. */
#include "fuzz.h"

#include <stdio.h>

void fuzz_input(const uint8_t *data, size_t size)
{
    char spec[700];
    snprintf(spec, sizeof spec, "chat:%s", fuzz_file("rows.jsonl", data, size));
    fuzz_data_set(spec,
                  MIXT_OPTIONS(mixt_data_options, .split = size & 1 ? "all" : "val", .val = 0.3,
                               .seq = 4 + (int64_t)(size % 61), .unpacked = size % 3 == 0, .in_order = size % 5 == 0,
                               .loss_on = (mixt_loss_on)(size % 4 % 3), .vocab = size % 7 ? "" : "tests/data/tokens",
                               .chat_template = size % 11 ? "tests/data/chat/thinks.jinja" : NULL));
}
