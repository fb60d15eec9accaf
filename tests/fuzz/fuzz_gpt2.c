/* GPT-2's vocabulary: the input as encoder.json when it begins like one, else as vocab.bpe, beside a file that fits;
 * then the input as text. Whatever the vocabulary, text must come back byte for byte, and pieces of it give the same
 * tokens. */
#include "tokenize.h"

#include <stdio.h>
#include <string.h>

static const char merges[] = "#version: 0.2\nt h\nth e\n\xc4\xa0 the\n";

/** {"!": 0, …}: every byte as GPT-2 prints it, and what the merges make. */
static size_t make_encoder(char *text, size_t room)
{
    size_t used = 0;
    unsigned extra = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        unsigned code = prints ? byte : extra++;
        used += (size_t)snprintf(text + used, room - used, "%s\"\\u%04x\":%u", byte ? "," : "{", code, byte);
    }
    used +=
        (size_t)snprintf(text + used, room - used, ",\"th\":256,\"the\":257,\"\\u0120the\":258,\"<|endoftext|>\":259}");
    return used;
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static char encoder[8192];
    size_t length = make_encoder(encoder, sizeof encoder);
    bool is_encoder = size && *data == '{';
    fuzz_file("encoder.json", is_encoder ? (const void *)data : encoder, is_encoder ? size : length);
    fuzz_file("vocab.bpe", is_encoder ? (const void *)merges : data, is_encoder ? sizeof merges - 1 : size);
    fuzz_tokenizer("gpt2", data, size, true);
    fuzz_file("encoder.json", encoder, length);
    fuzz_file("vocab.bpe", merges, sizeof merges - 1);
    fuzz_tokenizer("gpt2", data, size, true);
}
