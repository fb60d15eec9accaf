/* mixt generate: text from a trained language model, written as it comes. */
#include "cli/commands.h"

#include "cli/checkpoint_option.h"
#include "cli/generate_chat.h"
#include "cli/json.h"
#include "cli/masked.h"
#include "cli/shown.h"
#include "cli/support.h"
#include "cli/term.h"

#include <mixt/generate.h>
#include <mixt/run.h>

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

/** A text on its way out: shown as it comes, or kept for JSON. */
typedef struct output {
    FILE *stream;  // NULL: only kept
    bool terminal; // control characters are replaced: text must not steer the terminal
    char *kept;
    int64_t length, capacity;
} output;

/** Whole characters; a text may hold the byte 0. */
static mixt_status put(output *o, const char *text, int64_t length)
{
    if (o->stream && o->terminal)
        cli_show(o->stream, text, length);
    else if (o->stream)
        fwrite(text, 1, (size_t)length, o->stream);
    for (int64_t i = 0; i < length && !o->stream; i++) {
        if (!cli_grow((void **)&o->kept, &o->capacity, o->length, 1))
            return mixt_fail(MIXT_ERROR_MEMORY, "no memory for the text");
        o->kept[o->length++] = text[i];
    }
    return MIXT_OK;
}

/** What the command works with. */
typedef struct writer {
    const cli_args *args;
    mixt_context *context;
    mixt_generator *generator;
    mixt_tokenizer *tokenizer;
    int32_t *prompt;
    int64_t prompt_count;
} writer;

typedef struct sample {
    int64_t number, tokens;
    int32_t *ids; // that were made, where they are wanted
    int64_t id_capacity;
    uint64_t seed;
    double seconds; // of the tokens, the prompt left out
    mixt_decoder *decoder;
    mixt_stops *stops; // NULL: nothing ends it
    bool stopped;      // by one
    output out;
} sample;

/** Text that the model made, up to where it stops. */
static mixt_status put_made(sample *s, const char *text, int64_t size)
{
    if (s->stopped)
        return MIXT_OK;
    if (s->stops)
        CLI_TRY(mixt_stops_put(s->stops, text, size, &text, &size, &s->stopped));
    return put(&s->out, text, size);
}

static mixt_status end_text(sample *s)
{
    const char *text;
    int64_t size;
    CLI_TRY(mixt_decoder_end(s->decoder, &text, &size));
    CLI_TRY(put_made(s, text, size));
    if (s->stops && !s->stopped) {
        CLI_TRY(mixt_stops_end(s->stops, &text, &size));
        CLI_TRY(put(&s->out, text, size));
    }
    if (s->out.stream)
        fflush(s->out.stream);
    return MIXT_OK;
}

/** At once: reading a long prompt takes the model a moment. */
static mixt_status show_prompt(sample *s, const char *prompt)
{
    const char *text;
    int64_t size;
    CLI_TRY(mixt_decoder_put_bytes(s->decoder, prompt, (int64_t)strlen(prompt), &text, &size));
    CLI_TRY(put(&s->out, text, size));
    return end_text(s);
}

/** A token, as a number, as text, or kept for JSON. */
static mixt_status put_token(writer *w, sample *s, int32_t token)
{
    const char *text;
    int64_t size;
    if (cli_flag(w->args, "json")) {
        if (!cli_grow((void **)&s->ids, &s->id_capacity, s->tokens, sizeof *s->ids))
            return mixt_fail(MIXT_ERROR_MEMORY, "no memory for the tokens");
        s->ids[s->tokens] = token;
    }
    if (s->out.stream && cli_flag(w->args, "ids"))
        fprintf(s->out.stream, "%s%d", s->tokens ? "," : "", (int)token);
    s->tokens++;
    if (cli_flag(w->args, "ids") || !s->decoder)
        return MIXT_OK;
    CLI_TRY(mixt_decoder_put(s->decoder, &token, 1, &text, &size));
    return put_made(s, text, size);
}

static mixt_status generate(writer *w, sample *s)
{
    mixt_sampling sampling = {.temperature = cli_number(w->args, "temperature"), .seed = s->seed};
    sampling.top_k = cli_int(w->args, "top-k");
    sampling.top_p = cli_number(w->args, "top-p");
    int64_t limit = cli_int(w->args, "tokens");
    double start = cli_time_now();
    while (s->tokens < limit && !s->stopped && !stop_requested && !ferror(stdout)) {
        int32_t token;
        CLI_TRY(mixt_generator_next(w->generator, &sampling, &token));
        CLI_TRY(put_token(w, s, token));
        if (s->out.terminal)
            fflush(stdout);
    }
    s->seconds = cli_time_now() - start;
    return s->decoder ? end_text(s) : MIXT_OK;
}

static json_t *json_ids(const int32_t *ids, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; list && i < count; i++)
        cli_json_add(list, json_integer(ids[i]));
    return list;
}

static mixt_status print_json(const writer *w, const sample *s)
{
    const cli_args *args = w->args;
    json_t *o = cli_json_pack("{s:s, s:I, s:I, s:s}", "run", cli_word(args, 0), "sample", (json_int_t)s->number, "seed",
                              (json_int_t)s->seed, "prompt", cli_text(args, "prompt"));
    if (!o)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "the run's name or the prompt is not UTF-8: --json cannot print it");
    if (s->decoder && !cli_flag(args, "ids"))
        cli_json_set(o, "text", json_stringn(s->out.kept ? s->out.kept : "", (size_t)s->out.length));
    cli_json_set(o, "prompt_ids", json_ids(w->prompt, w->prompt_count));
    cli_json_set(o, "ids", json_ids(s->ids, s->tokens));
    cli_json_set(o, "tokens", json_integer(s->tokens));
    cli_json_set(o, "seconds", cli_json_real(s->seconds));
    cli_json_set(o, "interrupted", json_boolean(stop_requested));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    return MIXT_OK;
}

static void print_rate(const sample *s)
{
    char rate[32];
    if (s->tokens && s->seconds > 0)
        fprintf(stderr, "%s%lld tokens, %s tokens/s%s\n", cli_style_on(stderr, CLI_DIM), (long long)s->tokens,
                cli_format_count(rate, (double)s->tokens / s->seconds), cli_style_off(stderr));
}

/** One text: its head where there are several, the prompt, what the model makes of it. */
static mixt_status write_sample(writer *w, sample *s)
{
    const cli_args *args = w->args;
    bool json = cli_flag(args, "json");
    CLI_TRY(mixt_generator_start(w->generator, w->prompt, w->prompt_count)); // before anything is printed
    s->out.stream = json ? NULL : stdout;
    s->out.terminal = !json && cli_is_terminal(stdout);
    if (!json && cli_int(args, "count") > 1)
        printf("%s--- %lld of %lld, seed %llu ---%s\n", cli_style_on(stdout, CLI_DIM), (long long)s->number,
               (long long)cli_int(args, "count"), (unsigned long long)s->seed, cli_style_off(stdout));
    if (w->tokenizer)
        CLI_TRY(mixt_decoder_new(w->tokenizer, true, &s->decoder));
    if (!json && s->decoder && !cli_flag(args, "ids"))
        CLI_TRY(show_prompt(s, cli_text(args, "prompt")));
    const char *stop = cli_text(args, "stop");
    if (s->decoder && *stop)
        CLI_TRY(mixt_stops_new(&stop, 1, &s->stops));
    mixt_status status = generate(w, s);
    if (!json)
        putchar('\n');
    if (status == MIXT_OK && json)
        status = print_json(w, s);
    else if (status == MIXT_OK && !cli_flag(args, "quiet"))
        print_rate(s);
    return status;
}

/** Whole numbers, separated by commas, into the prompt. */
static mixt_status read_ids(writer *w, const char *text)
{
    const char *at = text;
    int64_t most = 1, count = 0;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    w->prompt = calloc((size_t)most, sizeof *w->prompt);
    if (!w->prompt)
        return mixt_fail(MIXT_ERROR_MEMORY, "no memory for the prompt");
    for (;; at++) {
        char *end;
        errno = 0;
        long long id = isdigit((unsigned char)*at) ? strtoll(at, &end, 10) : -1;
        if (id < 0 || errno || id > INT32_MAX || (*end && *end != ','))
            return mixt_fail(MIXT_ERROR_ARGUMENT, "--prompt-ids '%s': expected token ids, as in 1,403,12", text);
        w->prompt[count++] = (int32_t)id;
        at = end;
        if (!*at)
            break;
    }
    w->prompt_count = count;
    return MIXT_OK;
}

/** Takes over the tokens of a text. Where the tokenizer says that texts begin with a token, that one goes first. */
static mixt_status take_tokens(writer *w, const int32_t *tokens, int64_t count)
{
    mixt_tokenizer_info info = mixt_tokenizer_describe(w->tokenizer);
    int64_t start = !strcmp(info.kind, "json") && info.start >= 0;
    w->prompt = calloc((size_t)(count + start + 1), sizeof *w->prompt);
    if (!w->prompt)
        return mixt_fail(MIXT_ERROR_MEMORY, "no memory for the prompt");
    if (start)
        w->prompt[0] = (int32_t)info.start;
    for (int64_t i = 0; i < count; i++)
        w->prompt[start + i] = tokens[i];
    w->prompt_count = start + count;
    return MIXT_OK;
}

/** The prompt's tokens; without a prompt a text begins as if a line had just ended. */
static mixt_status read_prompt(writer *w)
{
    const char *given = cli_text(w->args, "prompt"), *prompt = *given ? given : "\n";
    if (cli_given(w->args, "prompt-ids") && cli_given(w->args, "prompt"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "give either --prompt or --prompt-ids");
    if (cli_given(w->args, "prompt-ids"))
        return read_ids(w, cli_text(w->args, "prompt-ids"));
    if (!w->tokenizer)
        return mixt_fail(MIXT_ERROR_ARGUMENT,
                         "%s: has no tokenizer: use token ids (--prompt-ids, --ids), or, for a run on token files, set "
                         "data.vocab in its config.yaml",
                         cli_word(w->args, 0));
    int32_t *tokens;
    int64_t count;
    CLI_TRY(mixt_tokenizer_encode(w->tokenizer, prompt, (int64_t)strlen(prompt), &tokens, &count));
    mixt_status status = take_tokens(w, tokens, count);
    mixt_tokens_free(tokens);
    CLI_TRY(status);
    if (w->prompt_count)
        return MIXT_OK;
    return mixt_fail(MIXT_ERROR_ARGUMENT, "the prompt has no token in the vocabulary %s: choose another --prompt",
                     mixt_tokenizer_describe(w->tokenizer).kind);
}

static mixt_status write_all(writer *w, const mixt_config *config)
{
    const char *run = cli_word(w->args, 0);
    CLI_TRY(cli_refuse_masked(config, run));
    w->context =
        mixt_open(.device = mixt_config_string(config, "device"), .threads = (int)mixt_config_int(config, "threads"));
    if (!w->context)
        return MIXT_ERROR_DEVICE;
    if (cli_given(w->args, "system"))
        return cli_generate_chat(w->args, w->context, &stop_requested);
    if (cli_given(w->args, "stop") && cli_flag(w->args, "ids"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--stop: is a text, which --ids does not make");
    CLI_TRY(mixt_generator_load(w->context, run, cli_text(w->args, "checkpoint"), &w->generator, &w->tokenizer));
    if (*mixt_generator_warning(w->generator))
        fprintf(stderr, "mixt: warning: %s\n", mixt_generator_warning(w->generator));
    CLI_TRY(read_prompt(w));
    if (!w->tokenizer && !cli_flag(w->args, "ids") && !cli_flag(w->args, "json"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "%s: has no tokenizer to turn tokens into text: --ids prints their ids",
                         run);
    mixt_status status = MIXT_OK;
    int64_t count = cli_int(w->args, "count");
    for (int64_t i = 1; status == MIXT_OK && i <= count && !stop_requested && !ferror(stdout); i++) {
        sample s = {.number = i, .seed = (uint64_t)(cli_int(w->args, "seed") + i - 1)};
        status = write_sample(w, &s);
        mixt_decoder_free(s.decoder);
        mixt_stops_free(s.stops);
        free(s.out.kept);
        free(s.ids);
    }
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    writer w = {.args = args};
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND}, old;
    sigaction(SIGINT, &action, &old);
    mixt_status status = mixt_run_folder_config(cli_word(args, 0), &config);
    if (status == MIXT_OK)
        status = cli_config_device(args, config);
    if (status == MIXT_OK)
        status = write_all(&w, config);
    int result = status == MIXT_OK ? CLI_OK : cli_failed();
    free(w.prompt);
    mixt_tokenizer_close(w.tokenizer);
    mixt_close(w.context);
    mixt_config_free(config);
    sigaction(SIGINT, &old, NULL);
    return result;
}

const cli_command cli_generate = {
    .name = "generate",
    .summary = "write text with a trained language model",
    .description =
        "Continues a prompt, token by token, with the weights and in the precision of a run of gpt, llama, lstm, gru "
        "or rnn, or of a Hugging Face folder. The same seed gives the same text. Ctrl-C ends the text.\n\n"
        "Text is printed as it is made, whole characters only; bytes that are not UTF-8 are shown as U+FFFD. The run's "
        "data and vocabulary folder are not needed: the run has a copy (RUN/vocab). When the context (data.seq of the "
        "run) is full, its older half is dropped.\n\n"
        "A Hugging Face folder of GPT-2 or Llama has config.json, model.safetensors (or several files with an index) "
        "and tokenizer.json or the older files. It generates in FP32 with a context of at most 2048 tokens.\n\n"
        "--system makes a conversation of one question and its answer, by the chat template; 'mixt chat' continues.",
    .arguments = {{"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory, or a Hugging Face folder"}},
    .options =
        {
            {"prompt", 'p', CLI_TEXT, "TEXT", .fallback = "", .help = "how the text begins; default: a new line"},
            {"prompt-ids", .kind = CLI_TEXT, .metavar = "IDS", .help = "the prompt as token ids: 82,79"},
            {"ids", .kind = CLI_FLAG, .help = "print token ids instead of text"},
            {"system", .kind = CLI_TEXT, .metavar = "TEXT",
             .help = "answer the prompt as a message, by the chat template, after this system message"},
            {"stop", .kind = CLI_TEXT, .metavar = "TEXT", .help = "end before this text"},
            {"tokens", 'n', CLI_INT, "N", .fallback = "256", .min = 0, .max = 1e9, .help = "tokens to generate"},
            {"temperature", 't', CLI_NUMBER, "T", .fallback = "0.8", .min = 0, .max = 1000,
             .help = "sampling temperature; 0: greedy"},
            {"top-k", 'k', CLI_INT, "K", .fallback = "0", .min = 0, .max = 1e9,
             .help = "sample among the K most probable; 0: all"},
            {"top-p", .kind = CLI_NUMBER, .metavar = "P", .fallback = "1", .min = 0, .max = 1,
             .help = "nucleus sampling; 1: all tokens",
             .more = "Sample among the fewest tokens whose probabilities sum to P"},
            {"seed", 's', CLI_INT, "S", .fallback = "1", .min = 0, .max = 9e15, .help = "seed of the first text"},
            {"count", .kind = CLI_INT, .metavar = "N", .fallback = "1", .min = 1, .max = 1e6,
             .help = "texts, each with the next seed"},
            CLI_CHECKPOINT_OPTION,
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda|cuda:N",
             .help = "generate on this device, not the run's"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object per text"},
            {"quiet", 'q', CLI_FLAG, .help = "no figures on standard error"},
        },
    .examples =
        {
            {"mixt generate runs/gpt --prompt 'ROMEO:'", "256 tokens after a prompt"},
            {"mixt generate runs/gpt -n 1000 -t 1 --top-k 40 --seed 7", "longer, among the 40 most probable tokens"},
            {"mixt generate runs/gpt --prompt-ids 82,79 --ids -n 20", "token ids in, token ids out"},
            {"mixt generate runs/gpt -t 0 --json", "greedy, for a script"},
        },
    .see_also = "chat|train|eval",
    .run = run,
};
