/* mixt generate: text from a trained language model, written as it comes. */
#include "cli/commands.h"

#include "base/threads.h"
#include "base/utf8.h"
#include "run/experiment.h"
#include "run/directory.h"
#include "cli/term.h"
#include "cli/checkpoint_option.h"
#include "cli/tokenize_progress.h"
#include "run/weights.h"
#include "data/tokenizer.h"
#include "store/safetensors.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

/** The text of a sample on its way out: whole characters only. */
typedef struct output {
    FILE *stream;  // NULL: only kept
    bool terminal; // control characters are replaced: text must not steer the terminal
    mixt__utf8 utf8;
    char *kept;
    int64_t length, capacity;
    bool out_of_memory;
} output;

/** Bytes of the control character that begins here, 0 when none does; line ends and tabs steer nothing. U+0080 to
 *  U+009F are some terminals' other names for escape sequences. */
static size_t control_length(const unsigned char *text, size_t length)
{
    if (text[0] < 0x20 || text[0] == 0x7f)
        return text[0] != '\n' && text[0] != '\t';
    return text[0] == 0xc2 && length > 1 && text[1] < 0xa0 ? 2 : 0;
}

/** To a terminal; a replaced byte and the character behind it come as one text. */
static void show(FILE *stream, const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t control = control_length((const unsigned char *)text + i, length - i);
        if (control)
            fputs("\xef\xbf\xbd", stream);
        else
            fputc(text[i], stream);
        i += control ? control : 1;
    }
}

static void emit(output *o, const char *text, size_t length)
{
    if (o->stream && o->terminal)
        show(o->stream, text, length);
    else if (o->stream)
        fwrite(text, 1, length, o->stream); // a text may hold the byte 0
    if (o->stream)
        return;
    for (size_t i = 0; i < length && !o->out_of_memory; i++) {
        o->out_of_memory = !mixt__grow((void **)&o->kept, &o->capacity, o->length, 1);
        if (!o->out_of_memory)
            o->kept[o->length++] = text[i];
    }
}

static void put_byte(output *o, unsigned char byte)
{
    char text[MIXT_UTF8_ROOM];
    size_t length = mixt__utf8_put(&o->utf8, byte, text);
    if (length)
        emit(o, text, length);
}

static void end_text(output *o)
{
    char text[MIXT_UTF8_ROOM];
    size_t length = mixt__utf8_end(&o->utf8, text);
    if (length)
        emit(o, text, length);
    if (o->stream)
        fflush(o->stream);
}

/** Rows of the token table in the weights: the vocabulary, and perhaps padding. */
static mixt_status read_rows(const char *path, int64_t *vocab)
{
    static const char *const tables[] = {"wte.weight", "emb.weight"};
    mixt__safetensors *file;
    MIXT_TRY(mixt__safetensors_open_weights(path, &file));
    const mixt__file_tensor *table = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && !table; i++)
        table = mixt__safetensors_find(file, tables[i]);
    *vocab = table && table->rank == 2 ? table->dims[0] : 0;
    mixt__safetensors_close(file);
    return *vocab ? MIXT_OK
                  : mixt__fail(MIXT_ERROR_FORMAT, "%s: no table of tokens in it: it is no language model", path);
}

/** Tokens of the tokenizer that the model knows; what its table has beyond them is padding. */
static mixt_status count_tokens(const mixt__experiment *e, const mixt_tokenizer *tokenizer, const char *weights,
                                int64_t *tokens)
{
    int64_t rows;
    MIXT_TRY(read_rows(weights, &rows));
    *tokens = rows < tokenizer->size ? rows : tokenizer->size;
    bool bytes = tokenizer->kind == &mixt__tokenizer_bytes;
    bool of_text = strcmp(mixt__config_string(e->config, MIXT_KEY_DATA_KIND), "tokens") &&
                   mixt__config_int(e->config, MIXT_KEY_NET_VOCAB); // bytes, and room for more tokens was asked for
    if (bytes && rows > tokenizer->size && !of_text)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s has %lld tokens, which are no bytes: to write text, name the folder of their vocabulary "
                          "as data.vocab in the run's config.yaml",
                          weights, (long long)rows);
    if (!bytes && rows < tokenizer->size)
        return mixt__fail(MIXT_ERROR_DATA, "%s has %lld tokens, the vocabulary of data.vocab %lld", weights,
                          (long long)rows, (long long)tokenizer->size);
    return MIXT_OK;
}

/** The run's model as its weights say, without its data. */
static mixt_status open_model(mixt__experiment *e, const mixt_tokenizer *tokenizer, const char *weights,
                              mixt__model *model, int64_t *context)
{
    const mixt__zoo_entry *entry;
    const char *name = mixt__config_string(e->config, MIXT_KEY_MODEL);
    MIXT_TRY(mixt__model_find(name, &entry));
    if (entry->input != MIXT_MODEL_TOKENS)
        return mixt__fail(MIXT_ERROR_CONFIG, "the run's model is %s: only language models (gpt, lstm) generate text",
                          name);
    int64_t seq = mixt__config_int(e->config, MIXT_KEY_DATA_SEQ);
    mixt_data_info info = {.kind = "text", .input_dtype = MIXT_DTYPE_INT32, .target_dtype = MIXT_DTYPE_INT32};
    *context = info.input_dims[0] = info.input_elements = info.target_elements = seq ? seq : entry->tokens;
    info.input_rank = 1;
    info.target = MIXT_TARGET_TOKENS;
    MIXT_TRY(count_tokens(e, tokenizer, weights, &info.classes));
    MIXT_TRY(mixt__experiment_sizes(e));
    return mixt__zoo_model(name, &info, &e->sizes, model);
}

static mixt_status open_generator(mixt__experiment *e, const mixt_tokenizer *tokenizer, const cli_args *args,
                                  mixt_generator **generator)
{
    char weights[MIXT_WEIGHTS_PATH];
    mixt__model model;
    mixt_generator_options options =
        MIXT_GENERATOR_OPTIONS(.weights = weights, .precision = mixt__config_string(e->config, MIXT_KEY_PRECISION));
    MIXT_TRY(mixt_run_folder_weights(cli_word(args, 0), cli_text(args, "checkpoint"), weights, sizeof weights));
    mixt_context_options where = {.device = mixt__config_string(e->config, MIXT_KEY_DEVICE),
                                  .threads = (int)mixt__config_int(e->config, MIXT_KEY_THREADS)};
    MIXT_TRY(open_model(e, tokenizer, weights, &model, &options.context));
    e->context = mixt_open_with(&where);
    if (!e->context)
        return MIXT_ERROR_DEVICE;
    *generator = mixt__generator_make(e->context, &model, &options);
    if (!*generator)
        return MIXT_ERROR_STATE;
    mixt__generator *core = &(*generator)->core;
    core->vocab = core->vocab < tokenizer->size ? core->vocab : tokenizer->size; // the rest has no text
    return MIXT_OK;
}

/** The prompt's tokens; without a prompt a text begins as if a line had just ended. */
static mixt_status prompt_tokens(const mixt_tokenizer *tokenizer, const char *prompt, mixt__tokens *tokens)
{
    if (!*prompt)
        prompt = "\n";
    MIXT_TRY(mixt__tokenizer_encode(tokenizer, prompt, (int64_t)strlen(prompt), tokens));
    if (tokens->count)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT, "the prompt has no tokens in the vocabulary %s; give one with --prompt",
                      tokenizer->kind->name);
}

typedef struct sample {
    const cli_args *args;
    const mixt_tokenizer *tokenizer;
    int64_t number, tokens;
    uint64_t seed;
    double seconds; // of the tokens, the prompt left out
    output out;
} sample;

/** A token's text, through the same way as bytes: a character may be spread over several. */
static mixt_status put_token(sample *s, int32_t token)
{
    char *text = NULL;
    size_t size = 0;
    uint32_t id = (uint32_t)token;
    FILE *stream = open_memstream(&text, &size);
    mixt_status status = stream ? mixt__tokenizer_decode(s->tokenizer, &id, 1, true, stream)
                                : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text");
    if (stream)
        fclose(stream);
    for (size_t i = 0; status == MIXT_OK && i < size; i++)
        put_byte(&s->out, (unsigned char)text[i]);
    free(text);
    return status;
}

static mixt_status generate(mixt_generator *g, sample *s, const mixt__tokens *prompt)
{
    mixt_sampling sampling = {.temperature = cli_number(s->args, "temperature"), .seed = s->seed};
    sampling.top_k = cli_int(s->args, "top-k");
    sampling.top_p = cli_number(s->args, "top-p");
    MIXT_TRY(mixt_generator_start(g, (const int32_t *)prompt->ids, prompt->count));
    int64_t limit = cli_int(s->args, "tokens");
    double start = mixt__time_now();
    while (s->tokens < limit && !stop_requested && !ferror(stdout)) {
        int32_t token;
        MIXT_TRY(mixt_generator_next(g, &sampling, &token));
        s->tokens++;
        MIXT_TRY(put_token(s, token));
        if (s->out.terminal)
            fflush(stdout);
    }
    s->seconds = mixt__time_now() - start;
    end_text(&s->out);
    return s->out.out_of_memory ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text") : MIXT_OK;
}

static mixt_status print_json(const sample *s)
{
    json_t *o = json_pack("{s:s, s:I, s:I, s:s}", "run", cli_word(s->args, 0), "sample", (json_int_t)s->number, "seed",
                          (json_int_t)s->seed, "prompt", cli_text(s->args, "prompt"));
    if (!o)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "the run's name or the prompt is not UTF-8: --json cannot give it back");
    json_object_set_new(o, "text", json_stringn(s->out.kept ? s->out.kept : "", (size_t)s->out.length));
    json_object_set_new(o, "tokens", json_integer(s->tokens));
    json_object_set_new(o, "seconds", json_real(s->seconds));
    json_object_set_new(o, "interrupted", json_boolean(stop_requested));
    json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(o);
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
static mixt_status write_sample(const cli_args *args, const mixt_tokenizer *tokenizer, mixt_generator *g,
                                int64_t number, const mixt__tokens *prompt)
{
    bool json = cli_flag(args, "json");
    sample s = {.args = args,
                .tokenizer = tokenizer,
                .number = number,
                .seed = (uint64_t)cli_int(args, "seed") + (uint64_t)number - 1};
    s.out.stream = json ? NULL : stdout;
    s.out.terminal = !json && cli_is_terminal(stdout);
    if (!json && cli_int(args, "count") > 1)
        printf("%s--- %lld of %lld, seed %llu ---%s\n", cli_style_on(stdout, CLI_DIM), (long long)number,
               (long long)cli_int(args, "count"), (unsigned long long)s.seed, cli_style_off(stdout));
    for (const char *p = cli_text(args, "prompt"); !json && *p; p++)
        put_byte(&s.out, (unsigned char)*p);
    if (!json)
        end_text(&s.out); // at once: reading a long prompt takes a moment
    mixt_status status = generate(g, &s, prompt);
    if (!json)
        putchar('\n');
    if (status == MIXT_OK && json)
        status = print_json(&s);
    else if (status == MIXT_OK && !cli_flag(args, "quiet"))
        print_rate(&s);
    mixt__free(s.out.kept);
    return status;
}

static mixt_status write_all(const cli_args *args, const mixt_config *config)
{
    mixt__experiment e = {.config = config};
    mixt_generator *g;
    mixt_tokenizer *tokenizer;
    mixt__tokens prompt = {0};
    MIXT_TRY(mixt__experiment_refuse_masked(config, cli_word(args, 0)));
    MIXT_TRY(mixt_tokenizer_open(mixt__config_string(config, MIXT_KEY_DATA_TOKENIZER),
                                 mixt__config_string(config, MIXT_KEY_DATA_VOCAB), &tokenizer));
    mixt_status status = open_generator(&e, tokenizer, args, &g);
    if (status == MIXT_OK)
        status = prompt_tokens(tokenizer, cli_text(args, "prompt"), &prompt);
    for (int64_t i = 1; status == MIXT_OK && i <= cli_int(args, "count") && !stop_requested && !ferror(stdout); i++)
        status = write_sample(args, tokenizer, g, i, &prompt);
    mixt__tokens_free(&prompt);
    mixt__experiment_close(&e);
    mixt_tokenizer_close(tokenizer);
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND}, old;
    sigaction(SIGINT, &action, &old);
    mixt_status status = mixt_run_folder_config(cli_word(args, 0), &config);
    if (status == MIXT_OK)
        status = cli_config_device(args, config);
    if (status == MIXT_OK)
        status = write_all(args, config);
    mixt_config_free(config);
    sigaction(SIGINT, &old, NULL);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_generate = {
    .name = "generate",
    .summary = "write text with a trained language model",
    .description =
        "Loads the weights of a run of gpt or lstm and goes on from a prompt, token by token, in the run's precision. "
        "Text appears as it is made, whole characters only; bytes that are no UTF-8 show as U+FFFD. The run's data is "
        "not needed, its vocabulary (data.vocab) is.\n\n"
        "The same seed gives the same text. When the context (data.seq of the run) is full, its older half is "
        "forgotten. Ctrl-C ends the text.",
    .arguments = {{"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory written by 'mixt train'"}},
    .options =
        {
            {"prompt", 'p', CLI_TEXT, "TEXT", .fallback = "", .help = "what the text begins with; default: a new line"},
            {"tokens", 'n', CLI_INT, "N", .fallback = "256", .min = 0, .max = 1e9, .help = "tokens to make"},
            {"temperature", 't', CLI_NUMBER, "T", .fallback = "0.8", .min = 0, .max = 1000,
             .help = "below 1 safer, above 1 wilder; 0: always the most probable token"},
            {"top-k", 'k', CLI_INT, "K", .fallback = "0", .min = 0, .max = 1e9,
             .help = "draw among the K most probable tokens; 0: all"},
            {"top-p", .kind = CLI_NUMBER, .metavar = "P", .fallback = "1", .min = 0, .max = 1,
             .help = "draw among the fewest tokens whose probabilities sum to P; 0 or 1: all"},
            {"seed", 's', CLI_INT, "S", .fallback = "1", .min = 0, .max = 9e15, .help = "seed of the first text"},
            {"count", .kind = CLI_INT, .metavar = "N", .fallback = "1", .min = 1, .max = 1e6,
             .help = "texts to write, each with the next seed"},
            CLI_CHECKPOINT_OPTION,
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda",
             .help = "generate on this device, whatever the run was trained on"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object a text instead"},
            {"quiet", 'q', CLI_FLAG, .help = "no figures on standard error"},
        },
    .examples =
        {
            {"mixt generate runs/gpt --prompt 'ROMEO:'", "256 tokens after a prompt"},
            {"mixt generate runs/gpt -n 1000 -t 1 --top-k 40 --seed 7", "longer, among the 40 most probable tokens"},
            {"mixt generate runs/gpt -t 0 --json", "the most probable text, for a script"},
        },
    .see_also = "train|eval",
    .run = run,
};
