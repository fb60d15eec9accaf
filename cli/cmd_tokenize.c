/* mixt tokenize: text to tokens and back, for the eye, for scripts, or as a token file to train on. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/support.h"
#include "cli/term.h"
#include "cli/tokenize_progress.h"

#include <mixt/tokenizer.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static json_t *describe(const cli_args *args, const mixt_tokenizer *t, int64_t tokens)
{
    mixt_tokenizer_info info = mixt_tokenizer_describe(t);
    return cli_json_pack("{s:s, s:s, s:I, s:I}", "file", args->settings[0], "tokenizer", info.kind, "vocabulary",
                         (json_int_t)info.size, "count", (json_int_t)tokens);
}

static void print_json(json_t *row)
{
    cli_json_print(row, stdout, JSON_COMPACT);
}

static mixt_status write_file(const cli_args *args, const mixt_tokenizer *t)
{
    const char *out = cli_text(args, "out");
    mixt_token_file_info made;
    char size[32];
    CLI_TRY(mixt_token_file_make(t, args->settings[0], out, cli_flag(args, "overwrite"), cli_tokenize_progress, NULL,
                                 &made));
    if (cli_flag(args, "json")) {
        json_t *row = describe(args, t, made.count);
        cli_json_set(row, "out", cli_json_string(out));
        print_json(row);
    } else {
        printf("%s: %lld tokens of a vocabulary of %lld, %s\n", out, (long long)made.count, (long long)made.vocabulary,
               cli_format_bytes(size, (double)made.bytes));
    }
    return MIXT_OK;
}

/** Bytes of the character that begins here, beyond ASCII; 0: these bytes are none, or only a part of one. */
static int64_t character(const unsigned char *at, int64_t size)
{
    int64_t length = *at >= 0xf0 && *at < 0xf5 ? 4 : *at >= 0xe0 ? 3 : *at >= 0xc2 ? 2 : 0;
    if (length < 2 || *at >= 0xf5 || length > size || (*at == 0xc2 && at[1] < 0xa0)) // the last: control codes
        return 0;
    for (int64_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

/** A token's text; what is no character, as a part of one, is escaped. */
static void print_token(const mixt_tokenizer *t, int32_t token)
{
    const char *bytes = "";
    int64_t size = 0;
    printf("%d\t", (int)token);
    (void)mixt_tokenizer_piece(t, token, &bytes, &size); // a token of its own
    for (int64_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        int64_t length = character((const unsigned char *)bytes + i, size - i);
        if (length) {
            fwrite(bytes + i, 1, (size_t)length, stdout);
            i += length - 1;
        } else if (c < 0x20 || c >= 0x7f || c == '\\')
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
    CLI_TRY(mixt_tokenizer_encode_file(t, args->settings[0], &tokens, &count));
    if (cli_flag(args, "json")) {
        json_t *row = describe(args, t, count), *ids = json_array();
        for (int64_t i = 0; i < count; i++)
            cli_json_add(ids, json_integer(tokens[i]));
        cli_json_set(row, "tokens", ids);
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
    CLI_TRY(mixt_token_file_open(args->settings[0], t, &file));
    mixt_status status = cli_given(args, "out")
                             ? mixt_token_file_write_text(file, t, cli_text(args, "out"), cli_flag(args, "overwrite"))
                             : mixt_token_file_print(file, t, STDOUT_FILENO);
    mixt_token_file_close(file);
    return status;
}

/** Learns a vocabulary from all files. */
static mixt_status train(const cli_args *args)
{
    const char *out = cli_text(args, "out");
    int64_t made;
    CLI_TRY(mixt_tokenizer_train(args->settings, args->setting_count, cli_int(args, "size"), out,
                                 cli_flag(args, "overwrite"), cli_tokenize_progress, NULL, &made));
    if (cli_flag(args, "json")) {
        json_t *files = json_array();
        for (int i = 0; i < args->setting_count; i++)
            cli_json_add(files, cli_json_string(args->settings[i]));
        print_json(cli_json_pack("{s:o, s:s, s:I}", "files", files, "out", out, "vocabulary", (json_int_t)made));
    } else {
        printf("%s: a vocabulary of %lld tokens\n", out, (long long)made);
    }
    return MIXT_OK;
}

static mixt_status check_names(const cli_args *args)
{
    if (cli_given(args, "out") && !cli_flag(args, "train"))
        CLI_TRY(cli_output_check(args, cli_text(args, "out")));
    for (int i = 0; cli_flag(args, "json") && i < args->setting_count; i++)
        CLI_TRY(cli_json_name(args->settings[i]));
    if (!cli_flag(args, "json"))
        return MIXT_OK;
    return cli_json_name(cli_text(args, "out"));
}

/** What does not go together. CLI_OK, or the status of misuse. */
static int check_usage(const cli_args *args)
{
    bool train = cli_flag(args, "train");
    if (train && (cli_flag(args, "decode") || cli_given(args, "vocab") || cli_given(args, "tokenizer")))
        return cli_usage(args->command, "--train learns a vocabulary: leave out --decode, --vocab and --tokenizer");
    if (train && !cli_given(args, "out"))
        return cli_usage(args->command, "--train needs --out DIR, the folder of the new vocabulary");
    if (!train && cli_given(args, "size"))
        return cli_usage(args->command, "--size %s needs --train", cli_text(args, "size"));
    if (!train && args->setting_count > 1)
        return cli_usage(args->command, "%s: one FILE at a time; only --train takes several", args->settings[1]);
    if (cli_flag(args, "decode") && cli_flag(args, "json"))
        return cli_usage(args->command, "give either --json or --decode");
    if (cli_given(args, "vocab") && !strcmp(cli_text(args, "tokenizer"), "bytes"))
        return cli_usage(args->command,
                         "--vocab %s: bytes are tokens without a vocabulary: leave it out, or choose "
                         "another --tokenizer",
                         cli_text(args, "vocab"));
    return CLI_OK;
}

static int run(const cli_args *args)
{
    mixt_tokenizer *tokenizer;
    int usage = check_usage(args);
    if (usage != CLI_OK)
        return usage;
    if (cli_flag(args, "train"))
        return check_names(args) == MIXT_OK && train(args) == MIXT_OK ? CLI_OK : cli_failed();
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
    .summary = "turn text into tokens and back, learn a vocabulary",
    .description =
        "Prints the tokens of FILE, one per line with its text, or writes them to a token file (--out) that 'mixt "
        "train … data.kind=tokens' reads. Without a vocabulary, bytes are tokens. Training on text does this by itself "
        "and caches the result.\n\n"
        "The vocabulary is a folder with encoder.json and vocab.bpe or vocab.json and merges.txt (GPT-2), vocab.txt "
        "(BERT's WordPiece), or tokenizer.json. All cores are used; the result does not depend on how many.\n\n"
        "--train learns a vocabulary of byte pairs from one or more texts and writes it as GPT-2's two files to the "
        "folder --out. It depends on the texts only.",
    .arguments = {{"FILE", CLI_ARGUMENT_FILES, .help = "text, plain or gzip; with --decode a token file"}},
    .options =
        {
            {"vocab", 'v', CLI_TEXT, "DIR", .help = "folder of the vocabulary"},
            {"tokenizer", 't', CLI_CHOICE, "T", "auto|bytes|gpt2|wordpiece|wordpiece-cased|json", .fallback = "auto",
             .help = "kind of tokenizer; auto: by the files in DIR"},
            {"out", 'o', CLI_TEXT, "FILE", .help = "write tokens (with --decode text) to FILE",
             .more = "With --train: the folder to write the vocabulary to"},
            {"train", .kind = CLI_FLAG, .help = "learn a vocabulary from the texts"},
            {"size", .kind = CLI_INT, .metavar = "N", .fallback = "8000", .min = 257, .max = 1 << 24,
             .help = "tokens of the vocabulary to learn, bytes included"},
            {"decode", 'd', CLI_FLAG, .help = "FILE holds tokens: print their text"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace the output file if it exists"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object; not with --decode"},
        },
    .examples =
        {
            {"mixt tokenize book.txt --vocab gpt2 --json", "the tokens of a text as JSON"},
            {"mixt tokenize book.txt --vocab gpt2 --out book.tokens", "a file to train on"},
            {"mixt tokenize book.tokens --vocab gpt2 --decode", "and back, byte for byte"},
            {"mixt tokenize train.en train.de --train --size 8000 --out words",
             "learn one vocabulary for two languages"},
        },
    .see_also = "train|config",
    .run = run,
};
