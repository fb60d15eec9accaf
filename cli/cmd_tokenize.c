/* mixt tokenize: text to tokens and back, for the eye, for scripts, or as a token file to train on. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/support.h"
#include "cli/term.h"
#include "cli/tokenize_progress.h"

#include <mixt/tokenizer.h>

#include <string.h>

static json_t *describe(const cli_args *args, const mixt_tokenizer *t, int64_t tokens)
{
    mixt_tokenizer_info info = mixt_tokenizer_describe(t);
    return json_pack("{s:s, s:s, s:I, s:I}", "file", cli_word(args, 0), "tokenizer", info.kind, "vocabulary",
                     (json_int_t)info.size, "count", (json_int_t)tokens);
}

static void print_json(json_t *row)
{
    json_dumpf(row, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(row);
}

static mixt_status write_file(const cli_args *args, const mixt_tokenizer *t)
{
    const char *out = cli_text(args, "out");
    mixt_token_file_info made;
    char size[32];
    CLI_TRY(mixt_token_file_make(t, cli_word(args, 0), out, cli_flag(args, "overwrite"), cli_tokenize_progress, NULL,
                                 &made));
    if (cli_flag(args, "json")) {
        json_t *row = describe(args, t, made.count);
        json_object_set_new(row, "out", json_string(out));
        print_json(row);
    } else {
        printf("%s: %lld tokens of a vocabulary of %lld, %s\n", out, (long long)made.count, (long long)made.vocabulary,
               cli_format_bytes(size, (double)made.bytes));
    }
    return MIXT_OK;
}

/** A token's text with everything but printable ASCII escaped. */
static void print_token(const mixt_tokenizer *t, int32_t token)
{
    const char *bytes = "";
    int64_t size = 0;
    printf("%d\t", (int)token);
    (void)mixt_tokenizer_piece(t, token, &bytes, &size); // a token of its own
    for (int64_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < 0x20 || c >= 0x7f || c == '\\')
            printf(c == '\n' ? "\\n" : c == '\\' ? "\\\\" : "\\x%02x", (unsigned)c);
        else
            putchar(c);
    }
    putchar('\n');
}

static mixt_status print_tokens(const cli_args *args, const mixt_tokenizer *t)
{
    int32_t *tokens;
    int64_t count;
    CLI_TRY(mixt_tokenizer_encode_file(t, cli_word(args, 0), &tokens, &count));
    if (cli_flag(args, "json")) {
        json_t *row = describe(args, t, count), *ids = json_array();
        for (int64_t i = 0; i < count; i++)
            json_array_append_new(ids, json_integer(tokens[i]));
        json_object_set_new(row, "tokens", ids);
        print_json(row);
    } else {
        for (int64_t i = 0; i < count; i++)
            print_token(t, tokens[i]);
    }
    mixt_tokens_free(tokens);
    return MIXT_OK;
}

static mixt_status decode(const cli_args *args, const mixt_tokenizer *t)
{
    mixt_token_file *file;
    CLI_TRY(mixt_token_file_open(cli_word(args, 0), t, &file));
    mixt_status status = cli_given(args, "out")
                             ? mixt_token_file_write_text(file, t, cli_text(args, "out"), cli_flag(args, "overwrite"))
                             : mixt_token_file_print(file, t, stdout);
    mixt_token_file_close(file);
    return status;
}

static mixt_status check_names(const cli_args *args)
{
    if (cli_given(args, "out"))
        CLI_TRY(cli_output_check(args, cli_text(args, "out")));
    if (!cli_flag(args, "json"))
        return MIXT_OK;
    CLI_TRY(cli_json_name(cli_word(args, 0)));
    return cli_json_name(cli_text(args, "out"));
}

static int run(const cli_args *args)
{
    mixt_tokenizer *tokenizer;
    if (cli_flag(args, "decode") && cli_flag(args, "json"))
        return cli_usage(args->command, "--json shows tokens, --decode gives text: leave one of them out");
    if (cli_given(args, "vocab") && !strcmp(cli_text(args, "tokenizer"), "bytes"))
        return cli_usage(args->command,
                         "--vocab %s: bytes are tokens without a vocabulary: leave it out, or choose "
                         "another --tokenizer",
                         cli_text(args, "vocab"));
    if (check_names(args) != MIXT_OK ||
        mixt_tokenizer_open(cli_text(args, "tokenizer"), cli_text(args, "vocab"), &tokenizer) != MIXT_OK)
        return cli_failed();
    mixt_status status = cli_flag(args, "decode") ? decode(args, tokenizer)
                         : cli_given(args, "out") ? write_file(args, tokenizer)
                                                  : print_tokens(args, tokenizer);
    mixt_tokenizer_close(tokenizer);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_tokenize = {
    .name = "tokenize",
    .summary = "turn text into tokens, or tokens into text",
    .description =
        "Prints the tokens of FILE, one a line with the text it stands for, or writes them to a token file (--out) "
        "that "
        "'mixt train … data.kind=tokens' reads. All cores work; the result does not depend on how many.\n\n"
        "The vocabulary is a folder with encoder.json and vocab.bpe (GPT-2; also vocab.json and merges.txt) or "
        "vocab.txt "
        "(BERT's WordPiece). Without one, bytes are tokens. Training on text does this by itself and keeps the result.",
    .arguments = {{"FILE", CLI_ARGUMENT_FILE, .help = "text, plain or gzip; with --decode a token file"}},
    .options =
        {
            {"vocab", 'v', CLI_TEXT, "DIR", .help = "folder of the vocabulary"},
            {"tokenizer", 't', CLI_CHOICE, "T", "auto|bytes|gpt2|wordpiece|wordpiece-cased|json", .fallback = "auto",
             .help = "how to cut text; auto goes by the files in DIR"},
            {"out", 'o', CLI_TEXT, "FILE", .help = "write a token file (with --decode: text) instead of printing"},
            {"decode", 'd', CLI_FLAG, .help = "the other way: FILE holds tokens, print their text"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace the output file if it exists"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text; not with --decode"},
        },
    .examples =
        {
            {"mixt tokenize book.txt --vocab gpt2 --json", "all tokens of a text as JSON"},
            {"mixt tokenize book.txt --vocab gpt2 --out book.tokens", "a file to train on"},
            {"mixt tokenize book.tokens --vocab gpt2 --decode", "and back, byte for byte"},
        },
    .see_also = "train|config",
    .run = run,
};
