/* Figures and samples of a set of conversations, for a terminal or for scripts. */
#include "cli/conversations.h"

#include "cli/json.h"
#include "cli/support.h"
#include "cli/term.h"
#include "cli/tokenize_progress.h"

#include <mixt/chat.h>

#include <stdlib.h>
#include <string.h>

enum { BARS = 8 };

/* ---- samples ---- */

/** What marks the trained part. */
typedef struct marks {
    const char *on, *off;
} marks;

static marks marks_of(FILE *stream)
{
    const char *green = cli_style_on(stream, CLI_GREEN);
    return *green ? (marks){green, cli_style_off(stream)} : (marks){"[[", "]]"};
}

/** Text with control characters escaped but for line ends. */
static void print_text(const char *text, int64_t size)
{
    for (int64_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
}

/** The text of tokens [begin, end) of a sample. */
static mixt_status print_tokens(mixt_decoder *decoder, const int32_t *tokens, int64_t begin, int64_t end)
{
    const char *text;
    int64_t size;
    CLI_TRY(mixt_decoder_put(decoder, tokens + begin, end - begin, &text, &size));
    print_text(text, size);
    return MIXT_OK;
}

static mixt_status print_parts(const mixt_data *data, const int32_t *tokens, const bool *trained, int64_t count)
{
    marks m = marks_of(stdout);
    mixt_decoder *decoder;
    mixt_status status = MIXT_OK;
    CLI_TRY(mixt_decoder_new(mixt_data_tokenizer(data), false, &decoder));
    for (int64_t at = 0, next; at < count && status == MIXT_OK; at = next) {
        for (next = at + 1; next < count && trained[next] == trained[at];)
            next++;
        printf("%s", trained[at] ? m.on : "");
        status = print_tokens(decoder, tokens, at, next);
        printf("%s", trained[at] ? m.off : "");
    }
    const char *text = "";
    int64_t size = 0;
    if (status == MIXT_OK)
        status = mixt_decoder_end(decoder, &text, &size);
    print_text(text, size);
    mixt_decoder_free(decoder);
    return status;
}

static mixt_status print_sample(const mixt_data *data, int64_t index, int32_t *tokens, bool *trained)
{
    mixt_chat_sample s;
    int64_t count = 0;
    CLI_TRY(mixt_chat_read(data, index, &s, tokens, trained));
    for (int64_t i = 0; i < s.count; i++)
        count += trained[i];
    printf("%s--- line %lld: %lld tokens, %lld trained", index ? "\n" : "", (long long)s.line, (long long)s.whole,
           (long long)count);
    printf(s.count < s.whole ? ", cut to %lld ---\n" : " ---\n", (long long)s.count);
    CLI_TRY(print_parts(data, tokens, trained, s.count));
    putchar('\n');
    return MIXT_OK;
}

static mixt_status print_samples(const mixt_data *data, const mixt_chat_info *info, int64_t show, int64_t most)
{
    int32_t *tokens = malloc((size_t)most * sizeof *tokens);
    bool *trained = malloc((size_t)most);
    mixt_status status = tokens && trained ? MIXT_OK : mixt_fail(MIXT_ERROR_MEMORY, "no memory for a sample");
    for (int64_t i = 0; i < show && i < info->samples && status == MIXT_OK; i++)
        status = print_sample(data, i, tokens, trained);
    free(tokens);
    free(trained);
    if (show && status == MIXT_OK)
        putchar('\n');
    return status;
}

/* ---- figures ---- */

/** One bar a range of lengths, each as wide as the others. */
static mixt_status print_lengths(const mixt_data *data, const mixt_chat_info *info)
{
    static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int64_t counts[BARS] = {0}, range = info->longest - info->shortest + 1, most = 1;
    for (int64_t i = 0; i < info->samples; i++) {
        mixt_chat_sample s;
        CLI_TRY(mixt_chat_read(data, i, &s, NULL, NULL));
        int64_t *count = &counts[(s.whole - info->shortest) * BARS / range];
        *count += 1;
        most = *count > most ? *count : most;
    }
    printf("lengths    %lld to %lld tokens, median %lld  ", (long long)info->shortest, (long long)info->longest,
           (long long)info->median);
    for (int i = 0; i < BARS; i++)
        fputs(bars[counts[i] ? 1 + counts[i] * 7 / most : 0], stdout);
    putchar('\n');
    return MIXT_OK;
}

static mixt_status print_figures(const mixt_data *data, const mixt_chat_info *info, int64_t seq)
{
    const mixt_data_info *about = mixt_data_describe(data);
    printf("form       %s\n", info->form);
    printf("template   %s\n", info->chat_template ? info->chat_template : "none: texts as they are");
    printf("samples    %lld of %lld rows\n", (long long)info->samples, (long long)info->rows);
    printf("tokens     %lld, of which %lld are trained (%.1f%%)\n", (long long)info->tokens,
           (long long)info->trained_tokens, 100 * (double)info->trained_tokens / (double)info->tokens);
    CLI_TRY(print_lengths(data, info));
    printf("cut        %lld rows, at %lld tokens", (long long)info->cut, (long long)seq + 1);
    printf(info->untrained ? "; %lld left out, with nothing to train\n" : "\n", (long long)info->untrained);
    if (about->notes)
        printf("note       %s\n", about->notes);
    return MIXT_OK;
}

static void print_json(const mixt_chat_info *info)
{
    json_t *row = cli_json_pack("{s:I, s:I, s:I, s:I, s:s, s:o, s:I, s:I, s:{s:I, s:I, s:I}}", "samples",
                                (json_int_t)info->samples, "tokens", (json_int_t)info->tokens, "trained_tokens",
                                (json_int_t)info->trained_tokens, "cut", (json_int_t)info->cut, "form", info->form,
                                "template", cli_json_string(info->chat_template), "rows", (json_int_t)info->rows,
                                "untrained", (json_int_t)info->untrained, "lengths", "min", (json_int_t)info->shortest,
                                "median", (json_int_t)info->median, "max", (json_int_t)info->longest);
    cli_json_print(row, stdout, JSON_COMPACT);
}

static mixt_loss_on loss_on(const cli_args *args)
{
    const char *word = cli_text(args, "loss-on");
    return !strcmp(word, "all")          ? MIXT_LOSS_ON_ALL
           : !strcmp(word, "last")       ? MIXT_LOSS_ON_LAST
           : !strcmp(word, "preference") ? MIXT_LOSS_ON_PREFERENCE
                                         : MIXT_LOSS_ON_ASSISTANT;
}

mixt_status cli_conversations(const cli_args *args)
{
    mixt_data_options options = {MIXT_DEFAULTS_mixt_data_options};
    mixt_data *data;
    const mixt_chat_info *info = NULL;
    char spec[4200];
    bool json = cli_flag(args, "json");
    if (snprintf(spec, sizeof spec, "chat:%s", args->words[0]) >= (int)sizeof spec)
        return mixt_fail(MIXT_ERROR_FILE, "%s: the path is too long", args->words[0]);
    options.split = "all";
    options.vocab = cli_text(args, "model");
    options.chat_template = cli_text(args, "template");
    options.loss_on = loss_on(args);
    options.seq = cli_int(args, "seq");
    options.unpacked = true; // a row of the file is a sample here
    options.progress = json ? NULL : cli_tokenize_progress;
    CLI_TRY(mixt_data_open_with(spec, &options, &data));
    mixt_status status = mixt_chat_describe(data, &info);
    if (status == MIXT_OK && json)
        print_json(info);
    if (status == MIXT_OK && !json)
        status = print_samples(data, info, cli_int(args, "show"), options.seq + 1);
    if (status == MIXT_OK && !json)
        status = print_figures(data, info, options.seq);
    mixt_data_close(data);
    return status;
}
