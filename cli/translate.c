/* Translations of files and of a run's own data, through the library's functions. */
#include "cli/translate.h"

#include "cli/json.h"
#include "cli/support.h"
#include "cli/term.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/** The lines of a file. */
typedef struct lines {
    char **text;
    size_t count, room;
} lines;

bool cli_is_translator(const mixt_data_info *info)
{
    return info->array_count == 4 && !strcmp(info->arrays[0].name, "source") && !strcmp(info->arrays[3].name, "target");
}

static bool show_progress(void *user, const mixt_progress *p)
{
    (void)user;
    if (!cli_is_terminal(stderr))
        return true;
    if (p->done < p->total)
        fprintf(stderr, "\r%s: %lld of %lld\033[K", p->task, (long long)p->done, (long long)p->total);
    else
        fputs("\r\033[K", stderr);
    fflush(stderr);
    return true;
}

static mixt_status take_options(const cli_args *args, mixt_translate_options *options)
{
    *options = MIXT_OPTIONS(mixt_translate_options, .progress = show_progress);
    if (cli_given(args, "length-penalty"))
        options->length_penalty = fmax(cli_number(args, "length-penalty"), 0);
    if (cli_given(args, "beams"))
        options->beams = cli_int(args, "beams");
    int64_t beams = options->beams;
    return beams <= MIXT_BEAMS_MAX ? MIXT_OK
                                   : mixt_fail(MIXT_ERROR_ARGUMENT, "--beams %lld: %s translates with at most %d beams",
                                               (long long)beams, cli_word(args, 0), MIXT_BEAMS_MAX);
}

static mixt_status open_tokenizer(mixt_run *run, mixt_tokenizer **tokenizer)
{
    const mixt_config *config = mixt_run_config(run);
    return mixt_tokenizer_open(mixt_config_string(config, "data.tokenizer"), mixt_config_string(config, "data.vocab"),
                               tokenizer);
}

mixt_status cli_translate_score(const cli_args *args, mixt_run *run, const mixt_data *data, mixt_bleu *bleu)
{
    mixt_translate_options options;
    mixt_tokenizer *tokenizer;
    *bleu = (mixt_bleu){0};
    if (!cli_is_translator(mixt_data_describe(data)))
        return MIXT_OK;
    CLI_TRY(take_options(args, &options));
    CLI_TRY(open_tokenizer(run, &tokenizer));
    mixt_status status = mixt_translate_score(mixt_run_trainer(run), tokenizer, data, &options, bleu);
    mixt_tokenizer_close(tokenizer);
    return status;
}

const char *cli_translate_text(const mixt_bleu *bleu, char text[64])
{
    text[0] = 0;
    if (bleu->sentences)
        snprintf(text, 64, ", BLEU %.2f of %lld sentences", bleu->score, (long long)bleu->sentences);
    return text;
}

/* ---- files ---- */

static void free_lines(lines *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->text[i]);
    free(l->text);
}

static mixt_status add_line(lines *l, const char *name, const char *line, size_t size)
{
    if (strlen(line) != size)
        return mixt_fail(MIXT_ERROR_DATA, "%s: line %zu has a zero byte: this is not a text file", name, l->count + 1);
    if (l->count == l->room) {
        l->room = l->room ? 2 * l->room : 1024;
        char **text = realloc(l->text, l->room * sizeof *text);
        if (!text)
            return mixt_fail(MIXT_ERROR_MEMORY, "%s: no memory for its lines", name);
        l->text = text;
    }
    l->text[l->count] = strdup(line);
    return l->text[l->count++] ? MIXT_OK : mixt_fail(MIXT_ERROR_MEMORY, "%s: no memory for its lines", name);
}

static mixt_status read_lines(FILE *file, const char *name, lines *l)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    mixt_status status = MIXT_OK;
    while (status == MIXT_OK && (size = getline(&line, &room, file)) >= 0) {
        while (size && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            line[--size] = '\0';
        status = add_line(l, name, line, (size_t)size);
    }
    if (status == MIXT_OK && ferror(file))
        status = mixt_fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", name, strerror(errno));
    free(line);
    return status;
}

/** Whether an INPUT names a part of the run's own data, as in val or val:0-9. */
static bool is_part(const char *name)
{
    static const char *const parts[] = {"train", "val", "test"};
    size_t size = strcspn(name, ":");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strlen(parts[i]) == size && !strncmp(name, parts[i], size))
            return !cli_path_is_file(name);
    return false;
}

static mixt_status open_lines(const char *name, lines *l)
{
    bool standard = !strcmp(name, "-");
    if (!strncmp(name, "text:", 5) && !cli_path_is_file(name))
        return name[5] ? add_line(l, name, name + 5, strlen(name + 5))
                       : mixt_fail(MIXT_ERROR_ARGUMENT, "text: is empty; expected text:WORDS");
    if (is_part(name))
        return mixt_fail(MIXT_ERROR_ARGUMENT,
                         "%s: use 'mixt eval' for the run's own data; expected a file of sentences, one per line, - "
                         "for standard input, or text:WORDS",
                         name);
    FILE *file = standard ? stdin : cli_is_folder(name) ? NULL : fopen(name, "r");
    if (!file)
        return mixt_fail(MIXT_ERROR_FILE, "%s: %s; expected a file of sentences, one per line, - or text:WORDS", name,
                         cli_is_folder(name) ? "is a folder" : strerror(errno));
    mixt_status status = read_lines(file, name, l);
    if (!standard)
        fclose(file);
    return status;
}

static mixt_status print_json(const char *name, size_t number, const char *line, const mixt_translation *t)
{
    json_t *o = cli_json_pack("{s:s, s:I, s:s, s:s, s:o, s:b}", "input", name, "line", (json_int_t)number, "source",
                              line, "translation", t->text, "score", cli_json_real(t->score), "cut", t->cut);
    if (!o)
        return mixt_fail(MIXT_ERROR_DATA, "%s: line %zu is not UTF-8: --json cannot print it", name, number);
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    return MIXT_OK;
}

static mixt_status print(const cli_args *args, const char *name, const lines *l, const mixt_translation *translations)
{
    size_t cut = 0, first = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (translations[i].cut && !cut++)
            first = i + 1;
        if (cli_flag(args, "json"))
            CLI_TRY(print_json(name, i + 1, l->text[i], &translations[i]));
        else
            puts(translations[i].text);
    }
    if (cut)
        fprintf(stderr,
                "mixt: %s: %zu of %zu sentences or translations are longer than the model's context and are truncated: "
                "line %zu%s\n",
                name, cut, l->count, first, cut > 1 ? " is the first" : "");
    return MIXT_OK;
}

static mixt_status translate_file(const cli_args *args, mixt_run *run, const mixt_tokenizer *tokenizer,
                                  const char *name)
{
    lines l = {0};
    mixt_translate_options options;
    CLI_TRY(take_options(args, &options));
    mixt_status status = open_lines(name, &l);
    mixt_translation *translations = calloc(l.count + 1, sizeof *translations);
    if (status == MIXT_OK && !translations)
        status = mixt_fail(MIXT_ERROR_MEMORY, "%s: no memory for its translations", name);
    if (status == MIXT_OK)
        status = mixt_translate(mixt_run_trainer(run), tokenizer, (const char *const *)l.text, (int64_t)l.count,
                                &options, translations);
    if (status == MIXT_OK)
        status = print(args, name, &l, translations);
    mixt_translations_free(translations, (int64_t)l.count);
    free(translations);
    free_lines(&l);
    return status;
}

mixt_status cli_translate_files(const cli_args *args, mixt_run *run)
{
    mixt_tokenizer *tokenizer;
    CLI_TRY(open_tokenizer(run, &tokenizer));
    mixt_status status = MIXT_OK;
    for (int i = 0; i < args->setting_count && status == MIXT_OK; i++)
        status = translate_file(args, run, tokenizer, args->settings[i]);
    mixt_tokenizer_close(tokenizer);
    return status;
}
