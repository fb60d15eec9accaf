/* mixt tokenize: text to tokens and back, for the eye, for scripts, or as a token file to train on. */
#include "cli/commands.h"

#include "base/status.h"
#include "cli/metrics.h"
#include "cli/term.h"
#include "cli/tokenize_progress.h"
#include "data/data.h"
#include "data/token_cache.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

static json_t *describe(const cli_args *args, const mixt__tokenizer *t, int64_t tokens)
{
    return json_pack("{s:s, s:s, s:I, s:I}", "file", cli_word(args, 0), "tokenizer", t->kind->name, "vocabulary",
                     (json_int_t)t->size, "count", (json_int_t)tokens);
}

static void print_json(json_t *row)
{
    json_dumpf(row, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(row);
}

/* ---- to a file ---- */

static mixt_status write_file(const cli_args *args, const mixt__tokenizer *t)
{
    const char *text = cli_word(args, 0), *out = cli_text(args, "out");
    mixt__token_file made;
    uint64_t source;
    char size[32];
    MIXT_TRY(mixt__text_fingerprint(text, &source));
    MIXT_TRY(mixt__text_to_tokens(t, text, source, out, cli_flag(args, "overwrite"), cli_tokenize_progress, NULL));
    MIXT_TRY(mixt__token_file_open(out, 0, true, &made));
    if (cli_flag(args, "json")) {
        json_t *row = describe(args, t, made.count);
        json_object_set_new(row, "out", json_string(out));
        print_json(row);
    } else {
        printf("%s: %lld tokens of a vocabulary of %lld, %s\n", out, (long long)made.count, (long long)t->size,
               cli_format_bytes(size, (double)made.map.bytes));
    }
    mixt__token_file_close(&made);
    return MIXT_OK;
}

/* ---- to the terminal ---- */

/** A token's text with everything but printable ASCII and UTF-8 beyond it escaped. */
static void print_token(const mixt__tokenizer *t, uint32_t id)
{
    unsigned char byte = (unsigned char)id;
    mixt__span token = t->vocabulary.count ? mixt__vocabulary_at(&t->vocabulary, id) : (mixt__span){&byte, 1};
    printf("%u\t", (unsigned)id);
    for (int64_t i = 0; i < token.size; i++) {
        unsigned char c = token.bytes[i];
        if (c < 0x20 || c >= 0x7f || c == '\\')
            printf(c == '\n' ? "\\n" : c == '\\' ? "\\\\" : "\\x%02x", (unsigned)c);
        else
            putchar(c);
    }
    putchar('\n');
}

static mixt_status print_tokens(const cli_args *args, const mixt__tokenizer *t)
{
    mixt__bytes text;
    mixt__tokens tokens = {0};
    MIXT_TRY(mixt__bytes_read(cli_word(args, 0), &text));
    mixt_status status = mixt__tokenizer_encode(t, text.bytes, text.size, &tokens);
    if (status == MIXT_OK && cli_flag(args, "json")) {
        json_t *row = describe(args, t, tokens.count), *ids = json_array();
        for (int64_t i = 0; i < tokens.count; i++)
            json_array_append_new(ids, json_integer(tokens.ids[i]));
        json_object_set_new(row, "tokens", ids);
        print_json(row);
    } else if (status == MIXT_OK) {
        for (int64_t i = 0; i < tokens.count; i++)
            print_token(t, tokens.ids[i]);
    }
    mixt__tokens_free(&tokens);
    mixt__bytes_free(&text);
    return status;
}

/* ---- back to text ---- */

static mixt_status write_text(const mixt__tokenizer *t, const mixt__token_file *file, FILE *stream)
{
    enum { STRETCH = 4096 };
    uint32_t ids[STRETCH];
    for (int64_t first = 0; first < file->count; first += STRETCH) {
        int64_t count = file->count - first < STRETCH ? file->count - first : STRETCH;
        for (int64_t i = 0; i < count; i++)
            ids[i] =
                file->width == 2 ? ((const uint16_t *)file->ids)[first + i] : ((const uint32_t *)file->ids)[first + i];
        MIXT_TRY(mixt__tokenizer_decode(t, ids, count, first > 0, stream));
    }
    return fflush(stream) || ferror(stream)
               ? mixt__fail(MIXT_ERROR_FILE, "the text cannot be written: %s", strerror(errno))
               : MIXT_OK;
}

/** Into a file that is put in its place whole. */
static mixt_status write_text_file(const cli_args *args, const mixt__tokenizer *t, const mixt__token_file *file)
{
    mixt__file_writer writer;
    MIXT_TRY(mixt__file_writer_open(&writer, cli_text(args, "out"), cli_flag(args, "overwrite")));
    int copy = dup(writer.fd);
    FILE *stream = copy < 0 ? NULL : fdopen(copy, "wb");
    mixt_status status =
        stream ? write_text(t, file, stream) : mixt__fail(MIXT_ERROR_FILE, "cannot be written: %s", strerror(errno));
    if (stream)
        fclose(stream);
    else if (copy >= 0)
        close(copy);
    if (status == MIXT_OK)
        return mixt__file_writer_commit(&writer);
    mixt__fail_context(status, "%s", writer.path);
    mixt__file_writer_abandon(&writer);
    return status;
}

static mixt_status decode(const cli_args *args, const mixt__tokenizer *t)
{
    mixt__token_file file;
    MIXT_TRY(mixt__token_file_open(cli_word(args, 0), t->size, false, &file));
    mixt_status status = MIXT_OK;
    if (file.facts.fingerprint && file.facts.fingerprint != t->fingerprint)
        status = mixt__fail(MIXT_ERROR_DATA, "%s: was made with another vocabulary or tokenizer than --vocab names",
                            cli_word(args, 0));
    if (status == MIXT_OK)
        status = cli_given(args, "out") ? write_text_file(args, t, &file) : write_text(t, &file, stdout);
    mixt__token_file_close(&file);
    return status;
}

static mixt_status check_names(const cli_args *args)
{
    if (cli_given(args, "out") && mixt__same_file(cli_word(args, 0), cli_text(args, "out")))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: is the file to read itself, which would be gone: choose another with --out",
                          cli_text(args, "out"));
    if (cli_given(args, "out"))
        MIXT_TRY(cli_output_check(args, cli_text(args, "out")));
    if (!cli_flag(args, "json"))
        return MIXT_OK;
    MIXT_TRY(cli_json_name(cli_word(args, 0)));
    return cli_json_name(cli_text(args, "out"));
}

static int run(const cli_args *args)
{
    mixt__tokenizer *tokenizer;
    if (cli_flag(args, "decode") && cli_flag(args, "json"))
        return cli_usage(args->command, "--json shows tokens, --decode gives text: leave one of them out");
    if (cli_given(args, "vocab") && !strcmp(cli_text(args, "tokenizer"), "bytes"))
        return cli_usage(args->command,
                         "--vocab %s: bytes are tokens without a vocabulary: leave it out, or choose "
                         "another --tokenizer",
                         cli_text(args, "vocab"));
    if (check_names(args) != MIXT_OK ||
        mixt__tokenizer_open(cli_text(args, "tokenizer"), cli_text(args, "vocab"), &tokenizer) != MIXT_OK)
        return cli_failed();
    mixt_status status = cli_flag(args, "decode") ? decode(args, tokenizer)
                         : cli_given(args, "out") ? write_file(args, tokenizer)
                                                  : print_tokens(args, tokenizer);
    mixt__tokenizer_close(tokenizer);
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
            {"tokenizer", 't', CLI_CHOICE, "T", "auto|bytes|gpt2|wordpiece|wordpiece-cased", .fallback = "auto",
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
