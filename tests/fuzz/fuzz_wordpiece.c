/* WordPiece: the input as vocab.txt and as the text, then as text for a fixed vocabulary, cased and not. */
#include "tokenize.h"

void fuzz_input(const uint8_t *data, size_t size)
{
    static const char vocabulary[] =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nqu\n##ick\n##s\n,\n.\ne\n##e\n\xe4\xb8\xad\n";
    fuzz_file("vocab.txt", data, size);
    fuzz_tokenizer(size % 2 ? "wordpiece" : "wordpiece-cased", data, size, false);
    fuzz_file("vocab.txt", vocabulary, sizeof vocabulary - 1);
    fuzz_tokenizer(size % 2 ? "wordpiece" : "wordpiece-cased", data, size, false);
}
