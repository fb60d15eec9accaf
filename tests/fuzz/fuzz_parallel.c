/* Parallel text: one file with both languages, shared out; and a vocabulary learned from it. */
#include "fuzz.h"

#include "data/text/bpe_learn.h"
#include "data/data.h"

#include <stdio.h>

static void learn(const char *path, const uint8_t *data, size_t size)
{
    mixt__bpe_learned learned;
    mixt__span text = {data, (int64_t)size};
    if (!fuzz_taken(mixt__text_check(path, data, (int64_t)size)))
        return;
    if (!fuzz_taken(mixt__bpe_learn(&text, 1, 300, (mixt__teller){0}, &learned)))
        return;
    fuzz_require(learned.count >= 0 && learned.count <= 300 - MIXT_BPE_LEAST);
    for (int64_t i = 0; i < learned.count; i++)
        fuzz_require(learned.merges[i][0] < 256 + i && learned.merges[i][1] < 256 + i);
    mixt__bpe_learned_free(&learned);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    char spec[700];
    const char *path = fuzz_file("parallel", data, size);
    snprintf(spec, sizeof spec, "parallel:%s", path);
    learn(path, data, size);
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "all", .seq = 16, .vocab = "tests/data/tokens"));
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "val", .val = 0.3, .seq = 4,
                                     .vocab = "tests/data/tokens", .source_name = "2", .target_name = "1"));
}
