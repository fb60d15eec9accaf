/* Tokens of conversations and which of them are trained, as JSON, a line a sample, for compare_chat.py.
 *
 * Usage: chat DATA FOLDER assistant|all|last SEQ
 */
#include <mixt/chat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mixt_status print_sample(const mixt_data *data, int64_t index)
{
    mixt_chat_sample s;
    mixt_status status = mixt_chat_read(data, index, &s, NULL, NULL);
    int32_t *tokens = status == MIXT_OK ? malloc((size_t)s.count * sizeof *tokens) : NULL;
    bool *trained = status == MIXT_OK ? malloc((size_t)s.count) : NULL;
    if (!tokens || !trained)
        abort();
    status = mixt_chat_read(data, index, &s, tokens, trained);
    printf("{\"line\": %lld, \"tokens\": [", (long long)s.line);
    for (int64_t i = 0; i < s.count; i++)
        printf("%s%d", i ? ", " : "", (int)tokens[i]);
    printf("], \"trained\": [");
    for (int64_t i = 0; i < s.count; i++)
        printf("%s%d", i ? ", " : "", trained[i]);
    puts("]}");
    free(tokens);
    free(trained);
    return status;
}

int main(int count, char **words)
{
    mixt_data_options o = {MIXT_DEFAULTS_mixt_data_options};
    mixt_data *data;
    const mixt_chat_info *info;
    char spec[4200];
    if (count != 5)
        return fprintf(stderr, "usage: chat DATA FOLDER assistant|all|last SEQ\n"), 2;
    snprintf(spec, sizeof spec, "chat:%s", words[1]);
    o.split = "all";
    o.vocab = words[2];
    o.loss_on = !strcmp(words[3], "all")    ? MIXT_LOSS_ON_ALL
                : !strcmp(words[3], "last") ? MIXT_LOSS_ON_LAST
                                            : MIXT_LOSS_ON_ASSISTANT;
    o.seq = atoll(words[4]);
    o.unpacked = true;
    mixt_status status = mixt_data_open_with(spec, &o, &data);
    if (status == MIXT_OK)
        status = mixt_chat_describe(data, &info);
    for (int64_t i = 0; status == MIXT_OK && i < info->samples; i++)
        status = print_sample(data, i);
    if (status != MIXT_OK)
        fprintf(stderr, "%s\n", mixt_error_text());
    mixt_data_close(data);
    return status != MIXT_OK;
}
