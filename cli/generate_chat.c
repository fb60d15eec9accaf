/* One question with a system's message, answered. */
#include "cli/generate_chat.h"

#include "cli/json.h"
#include "cli/shown.h"
#include "cli/support.h"
#include "cli/term.h"

#include <mixt/chat.h>

#include <stdlib.h>
#include <string.h>

typedef struct kept {
    char *text;
    int64_t size, room;
} kept;

static mixt_status give(const cli_args *args, kept *k, const char *text, int64_t size)
{
    for (int64_t i = 0; cli_flag(args, "json") && i < size; i++) {
        if (!cli_grow((void **)&k->text, &k->room, k->size, 1))
            return mixt_fail(MIXT_ERROR_MEMORY, "no memory for an answer");
        k->text[k->size++] = text[i];
    }
    if (cli_flag(args, "json"))
        return MIXT_OK;
    if (cli_is_terminal(stdout))
        cli_show(stdout, text, size);
    else
        fwrite(text, 1, (size_t)size, stdout);
    fflush(stdout);
    return MIXT_OK;
}

static mixt_status answer(const cli_args *args, mixt_chat *chat, kept *k, volatile const int *stop)
{
    const char *prompt = cli_text(args, "prompt");
    bool more = true;
    CLI_TRY(mixt_chat_ask(chat, prompt, (int64_t)strlen(prompt)));
    while (more && !ferror(stdout)) {
        const char *text;
        int64_t size;
        if (*stop)
            return mixt_chat_cut(chat);
        CLI_TRY(mixt_chat_next(chat, &text, &size, &more));
        CLI_TRY(give(args, k, text, size));
    }
    return MIXT_OK;
}

static mixt_status print_json(const cli_args *args, const mixt_chat *chat, const kept *k, int64_t number)
{
    mixt_chat_state s = mixt_chat_state_get(chat);
    json_t *o =
        cli_json_pack("{s:s, s:I, s:s, s:s, s:I, s:I, s:s}", "run", cli_word(args, 0), "sample", (json_int_t)number,
                      "system", cli_text(args, "system"), "prompt", cli_text(args, "prompt"), "prompt_tokens",
                      (json_int_t)s.prompt, "tokens", (json_int_t)s.tokens, "end", s.end ? s.end : "cut");
    if (!o)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "the run's name or the prompt is not UTF-8: --json cannot print it");
    cli_json_set(o, "text", json_stringn(k->text ? k->text : "", (size_t)k->size));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return MIXT_OK;
}

static mixt_status answer_all(const cli_args *args, mixt_chat *chat, volatile const int *stop)
{
    if (*mixt_chat_warning(chat))
        fprintf(stderr, "mixt: warning: %s\n", mixt_chat_warning(chat));
    for (int64_t i = 1; i <= cli_int(args, "count") && !*stop && !ferror(stdout); i++) {
        kept k = {0};
        CLI_TRY(mixt_chat_reset(chat)); // each answers alone, with the next seed
        if (!cli_flag(args, "json") && cli_int(args, "count") > 1)
            printf("%s--- %lld of %lld ---%s\n", cli_style_on(stdout, CLI_DIM), (long long)i,
                   (long long)cli_int(args, "count"), cli_style_off(stdout));
        mixt_status status = answer(args, chat, &k, stop);
        if (status == MIXT_OK && cli_flag(args, "json"))
            status = print_json(args, chat, &k, i);
        else if (status == MIXT_OK)
            putchar('\n');
        free(k.text);
        CLI_TRY(status);
    }
    return MIXT_OK;
}

mixt_status cli_generate_chat(const cli_args *args, mixt_context *context, volatile const int *stop)
{
    mixt_chat *chat;
    mixt_chat_options options =
        MIXT_OPTIONS(mixt_chat_options, .weights = cli_text(args, "checkpoint"), .system = cli_text(args, "system"),
                     .stop = cli_text(args, "stop"), .most = cli_int(args, "tokens"));
    options.sampling = (mixt_sampling){.temperature = cli_number(args, "temperature"),
                                       .top_k = cli_int(args, "top-k"),
                                       .top_p = cli_number(args, "top-p"),
                                       .seed = (uint64_t)cli_int(args, "seed")};
    if (cli_given(args, "prompt-ids") || cli_flag(args, "ids"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--system: a conversation is of texts, not of token ids");
    CLI_TRY(mixt_chat_open(context, cli_word(args, 0), &options, &chat));
    mixt_status status = answer_all(args, chat, stop);
    mixt_chat_close(chat);
    return status;
}
