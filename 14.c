#line 388 "docs/c-api.md"
#include <mixt/tokenizer.h>
#include <string.h>

mixt_status count_tokens(const char *folder, const char *text, int64_t *count)
{
    mixt_tokenizer *tokenizer;
    int32_t *tokens = NULL;
    mixt_status status = mixt_tokenizer_open("gpt2", folder, &tokenizer);
    if (status == MIXT_OK)
        status = mixt_tokenizer_encode(tokenizer, text, (int64_t)strlen(text), &tokens, count);
    mixt_tokens_free(tokens);
    mixt_tokenizer_close(tokenizer);
    return status;
}
