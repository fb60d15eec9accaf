/* Token files: the input as it is, as raw 16-bit tokens and, where it begins like a token file, with checksums that
 * fit, so that what lies behind them is reached too. */
#include "fuzz.h"

#include "data/hash.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 128, CHECKSUM = 112, OWN = 120, VERSION = 1 };

static void read_tokens(const char *path, size_t size)
{
    static const char *const splits[] = {"train", "val", "test", "all"};
    static const int64_t lengths[] = {1, 5, 64};
    char spec[700];
    snprintf(spec, sizeof spec, "tokens:%s", path);
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = splits[size % 4], .seq = lengths[size % 3],
                                     .test = 0.2, .classes = size % 5 ? 300 : 0));
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static uint8_t copy[FUZZ_INPUT_MAX];
    read_tokens(fuzz_file("input.tokens", data, size), size);
    if (size < HEADER || memcmp(data, "mixttok", 8))
        return;
    memcpy(copy, data, size);
    uint64_t tokens = mixt__hash_word(0, mixt__hash_bytes(0, copy + HEADER, (int64_t)size - HEADER));
    tokens = size == HEADER ? 0 : tokens;
    memcpy(copy + CHECKSUM, &tokens, sizeof tokens);
    uint64_t own = mixt__hash_bytes(VERSION, copy, OWN);
    memcpy(copy + OWN, &own, sizeof own);
    read_tokens(fuzz_file("sealed.tokens", copy, size), size);
}
