/* mixt chat: a conversation with a model, in the terminal or through a pipe. */
#include "cli/commands.h"

#include "cli/checkpoint_option.h"
#include "cli/json.h"
#include "cli/masked.h"
#include "cli/shown.h"
#include "cli/support.h"
#include "cli/term.h"

#include <mixt/chat.h>
#include <mixt/run.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t interrupted;

/** Ctrl-C ends an answer, not the program. */
static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

typedef struct talk {
    const cli_args *args;
    mixt_context *context;
    mixt_chat *chat;
    bool asks; // somebody types: a prompt is shown
    char *line;
    size_t capacity;
    char *answer; // kept for --json
    int64_t size, room;
} talk;

/* ---- answers ---- */

static mixt_status keep(talk *t, const char *text, int64_t size)
{
    for (int64_t i = 0; i < size; i++) {
        if (!cli_grow((void **)&t->answer, &t->room, t->size, 1))
            return mixt_fail(MIXT_ERROR_MEMORY, "no memory for an answer");
        t->answer[t->size++] = text[i];
    }
    return MIXT_OK;
}

static mixt_status show(talk *t, const char *text, int64_t size)
{
    if (cli_flag(t->args, "json"))
        return keep(t, text, size);
    if (cli_is_terminal(stdout))
        cli_show(stdout, text, size);
    else
        fwrite(text, 1, (size_t)size, stdout);
    fflush(stdout);
    return MIXT_OK;
}

static mixt_status answer(talk *t)
{
    bool more = true;
    t->size = 0;
    while (more && !ferror(stdout)) {
        const char *text;
        int64_t size;
        if (interrupted) {
            CLI_TRY(mixt_chat_cut(t->chat));
            break;
        }
        CLI_TRY(mixt_chat_next(t->chat, &text, &size, &more));
        CLI_TRY(show(t, text, size));
    }
    if (!cli_flag(t->args, "json"))
        putchar('\n');
    return MIXT_OK;
}

static mixt_status print_json(const talk *t, const char *message)
{
    mixt_chat_state s = mixt_chat_state_get(t->chat);
    json_t *o = cli_json_pack("{s:s, s:I, s:I, s:I, s:s}", "message", message, "prompt_tokens", (json_int_t)s.prompt,
                              "tokens", (json_int_t)s.tokens, "dropped", (json_int_t)s.dropped, "end", s.end);
    if (!o)
        return mixt_fail(MIXT_ERROR_MEMORY, "no memory for an answer");
    cli_json_set(o, "answer", json_stringn(t->answer ? t->answer : "", (size_t)t->size));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    fflush(stdout);
    return MIXT_OK;
}

/** What a reader of the answer must know of it. */
static void tell(const talk *t)
{
    mixt_chat_state s = mixt_chat_state_get(t->chat);
    const char *on = cli_style_on(stderr, CLI_DIM), *off = cli_style_off(stderr);
    if (s.end && !strcmp(s.end, "length"))
        fprintf(stderr, "%s(cut after %lld tokens: --tokens)%s\n", on, (long long)s.tokens, off);
    if (s.end && !strcmp(s.end, "context"))
        fprintf(stderr, "%s(cut: the context of %lld tokens is full)%s\n", on, (long long)s.context, off);
}

/* ---- questions ---- */

/** Reads a line. 0: the input has ended. */
static ssize_t read_line(talk *t)
{
    for (;;) {
        if (t->asks) {
            interrupted = 0;
            fprintf(stderr, "%s>%s ", cli_style_on(stderr, CLI_BOLD), cli_style_off(stderr));
        }
        errno = 0;
        ssize_t bytes = getline(&t->line, &t->capacity, stdin);
        if (bytes < 0 && errno == EINTR && t->asks) { // Ctrl-C in front of an empty line
            clearerr(stdin);
            fputc('\n', stderr);
            continue;
        }
        while (bytes > 0 && (t->line[bytes - 1] == '\n' || t->line[bytes - 1] == '\r'))
            t->line[--bytes] = '\0';
        if (bytes)
            return bytes < 0 ? 0 : bytes;
    }
}

/** One question and its answer. What the template refuses ends a pipe, but not a conversation. */
static mixt_status turn(talk *t, ssize_t bytes)
{
    mixt_status status = mixt_chat_ask(t->chat, t->line, bytes);
    if (status == MIXT_ERROR_DATA && t->asks) {
        fprintf(stderr, "mixt: %s\n", mixt_error_text());
        return MIXT_OK;
    }
    CLI_TRY(status);
    mixt_chat_state s = mixt_chat_state_get(t->chat);
    if (s.dropped)
        fprintf(stderr, "%s(the %lld oldest messages are forgotten: the context has %lld tokens)%s\n",
                cli_style_on(stderr, CLI_DIM), (long long)s.dropped, (long long)s.context, cli_style_off(stderr));
    CLI_TRY(answer(t));
    if (cli_flag(t->args, "json"))
        return print_json(t, t->line);
    tell(t);
    return MIXT_OK;
}

static mixt_status converse(talk *t)
{
    if (t->asks)
        fprintf(stderr, "%sCtrl-C stops an answer, Ctrl-D ends the conversation, /new begins another%s\n",
                cli_style_on(stderr, CLI_DIM), cli_style_off(stderr));
    for (ssize_t bytes; !ferror(stdout) && (t->asks || !interrupted) && (bytes = read_line(t)) > 0;) {
        if (t->asks && !strcmp(t->line, "/new"))
            CLI_TRY(mixt_chat_reset(t->chat));
        else
            CLI_TRY(turn(t, bytes));
    }
    if (t->asks)
        fputc('\n', stderr);
    return MIXT_OK;
}

/* ---- the command ---- */

static mixt_status open_chat(talk *t, const mixt_config *config)
{
    const cli_args *args = t->args;
    mixt_chat_options options = MIXT_OPTIONS(
        mixt_chat_options, .weights = cli_text(args, "checkpoint"), .adapter = cli_text(args, "adapter"),
        .chat_template = cli_text(args, "template"), .system = cli_text(args, "system"), .stop = cli_text(args, "stop"),
        .variables = cli_text(args, "variables"), .most = cli_int(args, "tokens"), .context = cli_int(args, "context"));
    options.sampling = (mixt_sampling){.temperature = cli_number(args, "temperature"),
                                       .top_k = cli_int(args, "top-k"),
                                       .top_p = cli_number(args, "top-p"),
                                       .seed = (uint64_t)cli_int(args, "seed")};
    CLI_TRY(cli_refuse_masked(config, cli_word(args, 0)));
    t->context =
        mixt_open(.device = mixt_config_string(config, "device"), .threads = (int)mixt_config_int(config, "threads"));
    if (!t->context)
        return MIXT_ERROR_DEVICE;
    CLI_TRY(mixt_chat_open(t->context, cli_word(args, 0), &options, &t->chat));
    if (*mixt_chat_warning(t->chat))
        fprintf(stderr, "mixt: warning: %s\n", mixt_chat_warning(t->chat));
    return MIXT_OK;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    talk t = {.args = args, .asks = cli_is_terminal(stdin)};
    struct sigaction action = {.sa_handler = interrupt}, old;
    mixt_status status = mixt_run_folder_config(cli_word(args, 0), &config);
    if (status == MIXT_OK)
        status = cli_config_device(args, config);
    if (status == MIXT_OK)
        status = open_chat(&t, config);
    sigaction(SIGINT, &action, &old);
    if (status == MIXT_OK)
        status = converse(&t);
    sigaction(SIGINT, &old, NULL);
    int result = status != MIXT_OK ? cli_failed() : interrupted && !t.asks ? CLI_SIGNAL + SIGINT : CLI_OK;
    mixt_chat_close(t.chat);
    mixt_close(t.context);
    mixt_config_free(config);
    free(t.line);
    free(t.answer);
    return result;
}

const cli_command cli_chat = {
    .name = "chat",
    .summary = "chat with an instruction model",
    .description =
        "A conversation with a run that was fine-tuned from an instruction model, or with a Hugging Face folder that "
        "has a chat template (chat_template.jinja, or in tokenizer_config.json). Each line is a message; Ctrl-C stops "
        "the answer, Ctrl-D ends the conversation.\n\nAnswers are printed as they are made, whole characters only, and "
        "end where the template or generation_config.json says.\n\nAn answer that Ctrl-C stopped is kept as far as it "
        "came. When the conversation is longer than the model's context, its oldest messages are dropped, with a note. "
        "From a pipe each line is answered in turn, and Ctrl-C ends everything.",
    .arguments = {{"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory, or a Hugging Face folder"}},
    .options =
        {
            {"adapter", 'a', CLI_TEXT, "DIR",
             .help = "adapter for a Hugging Face folder: adapter_model.safetensors and adapter_config.json"},
            {"system", .kind = CLI_TEXT, .metavar = "TEXT", .help = "the system message"},
            {"context", .kind = CLI_INT, .metavar = "N", .min = 1, .max = 1048576,
             .help = "tokens to look back at; default: all that the model has positions for",
             .more = "At most 2048 by default; of a run as many as its data.seq"},
            {"stop", .kind = CLI_TEXT, .metavar = "TEXT", .help = "also end an answer before this text"},
            {"template", .kind = CLI_TEXT, .metavar = "FILE", .help = "chat template to use instead of the folder's"},
            {"variables", .kind = CLI_TEXT, .metavar = "JSON",
             .help = "variables of the template: {\"enable_thinking\": false}"},
            {"tokens", 'n', CLI_INT, "N", .fallback = "1024", .min = 1, .max = 1e9, .help = "tokens of an answer"},
            {"temperature", 't', CLI_NUMBER, "T", .fallback = "0.7", .min = 0, .max = 1000,
             .help = "sampling temperature; 0: greedy"},
            {"top-k", 'k', CLI_INT, "K", .fallback = "0", .min = 0, .max = 1e9,
             .help = "sample among the K most probable; 0: all"},
            {"top-p", .kind = CLI_NUMBER, .metavar = "P", .fallback = "0.95", .min = 0, .max = 1,
             .help = "nucleus sampling; 1: all tokens"},
            {"seed", 's', CLI_INT, "S", .fallback = "1", .min = 0, .max = 9e15,
             .help = "the same seed gives the same answers"},
            CLI_CHECKPOINT_OPTION,
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda|cuda:N",
             .help = "answer on this device, not the run's"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object per answer"},
        },
    .examples =
        {
            {"mixt chat runs/tuned", "a conversation"},
            {"mixt chat Qwen3-0.6B --system 'Answer in one sentence.' -t 0", "with a system message, greedy"},
            {"mixt chat Qwen3-0.6B --adapter runs/tuned/adapter", "with an adapter of mixt or PEFT"},
            {"mixt chat runs/tuned --json <questions.txt", "one answer per line, as JSON"},
        },
    .see_also = "generate|finetune",
    .run = run,
};
