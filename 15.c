#line 413 "docs/c-api.md"
#include <mixt/generate.h>
#include <stdio.h>
#include <string.h>

mixt_status write_on(mixt_context *context, const char *run, const char *prompt)
{
    mixt_sampling sampling = {.temperature = 0.8, .seed = 1};
    mixt_generator *generator;
    mixt_tokenizer *tokenizer;
    int32_t *tokens = NULL, token;
    int64_t count, size;
    const char *text;
    mixt_status status = mixt_generator_load(context, run, "final", &generator, &tokenizer);
    if (status == MIXT_OK)
        status = mixt_tokenizer_encode(tokenizer, prompt, (int64_t)strlen(prompt), &tokens, &count);
    if (status == MIXT_OK)
        status = mixt_generator_start(generator, tokens, count);
    for (int i = 0; i < 100 && status == MIXT_OK; i++)
        if ((status = mixt_generator_next(generator, &sampling, &token)) == MIXT_OK &&
            (status = mixt_tokenizer_piece(tokenizer, token, &text, &size)) == MIXT_OK)
            fwrite(text, 1, (size_t)size, stdout);
    mixt_tokens_free(tokens);
    mixt_tokenizer_close(tokenizer);
    return status;
}
