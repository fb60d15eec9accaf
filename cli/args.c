/* The command-line parser: driven by a command's record, with messages that say what was expected. */
#include "cli/cli.h"

#include "cli/words.h"

#include <mixt/onnx.h>
#include <mixt/program.h>
#include <mixt/run.h>

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/** Messages quote files and arguments, which may hold anything: control characters must not reach the terminal. */
static void print_message(const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, stderr);
}

int cli_usage(const cli_command *command, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "mixt%s%s: ", command ? " " : "", command ? command->name : "");
    print_message(text);
    fprintf(stderr, "\nTry 'mixt%s%s --help'.\n", command ? " " : "", command ? command->name : "");
    return CLI_USAGE;
}

int cli_failed(void)
{
    fputs("mixt: ", stderr);
    print_message(mixt_error_text());
    fputc('\n', stderr);
    return CLI_FAILED;
}

static int option_index(const cli_command *command, const char *name, size_t length)
{
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++)
        if (strlen(command->options[i].name) == length && !strncmp(command->options[i].name, name, length))
            return i;
    return -1;
}

static int letter_index(const cli_command *command, char letter)
{
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++)
        if (command->options[i].letter == letter)
            return i;
    return -1;
}

static bool takes_settings(const cli_command *command)
{
    for (int i = 0; i < CLI_ARGUMENTS_MAX && command->arguments[i].name; i++)
        if (command->arguments[i].kind == CLI_ARGUMENT_SETTING)
            return true;
    return false;
}

/** Names of options that other programs have, or that mixt had, and this command's own. */
static const char *const option_aliases[][2] = {
    {"write", "out"},
    {"output", "out"},
    {"save", "out"},
    {"output-dir", "out"},
    {"force", "overwrite"},
    {"model", "checkpoint"},
    {"ckpt", "checkpoint"},
    {"max-new-tokens", "tokens"},
    {"max-tokens", "tokens"},
    {"num-return-sequences", "count"},
    {"num-beams", "beams"},
    {"silent", "quiet"},
    {"resume-from-checkpoint", "resume"},
    {"ckpt-path", "resume"},
};

/** The option of this command that another name stands for; NULL: none. */
static const char *option_alias(const cli_command *command, const char *name)
{
    for (size_t i = 0; i < sizeof option_aliases / sizeof option_aliases[0]; i++) {
        const char *own = option_aliases[i][1];
        if (!strcmp(option_aliases[i][0], name) && option_index(command, own, strlen(own)) >= 0)
            return own;
    }
    return NULL;
}

/** An option that is a key of the configuration: "--lr 0.1", "--train.lr=0.1", "--learning_rate". */
static int setting_as_option(const cli_command *command, const char *name)
{
    const char *note;
    const mixt_config_record *key = mixt_config_meant(name, &note);
    if (key && !strncmp(note, key->name, strlen(key->name))) // the note is the setting
        return cli_usage(command, "unknown option '--%s' (did you mean %s, without --?)", name, note);
    if (key)
        return cli_usage(command, "unknown option '--%s' (did you mean %s=VALUE, without --?)", name, key->name);
    return *note ? cli_usage(command, "unknown option '--%s' (%s)", name, note) : CLI_OK;
}

static int unknown_option(const cli_command *command, const char *word)
{
    char name[64];
    const char *names[CLI_OPTIONS_MAX + 1] = {"help"};
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++)
        names[1 + i] = command->options[i].name;
    const char *guess = option_alias(command, name);
    int status = !guess && takes_settings(command) ? setting_as_option(command, name) : CLI_OK;
    if (status != CLI_OK)
        return status;
    if (!guess)
        guess = mixt_word_nearest(name, names, CLI_OPTIONS_MAX + 1);
    return guess ? cli_usage(command, "unknown option '--%s' (did you mean --%s?)", name, guess)
                 : cli_usage(command, "unknown option '--%s'", name);
}

/** Prints why a word is none of the choices, with the nearest one. */
static int bad_choice(const cli_command *command, const char *what, const char *choices, const char *more,
                      const char *word)
{
    char list[256], hint[96];
    return cli_usage(command, "%s: expected one of %s%s, found '%s'%s", what,
                     cli_choice_list(choices, list, sizeof list), more, word,
                     cli_choice_hint(choices, word, hint, sizeof hint));
}

static int check_number(const cli_command *command, const cli_option *option, const char *value)
{
    char *end;
    errno = 0;
    double number = option->kind == CLI_INT ? (double)strtoll(value, &end, 10) : strtod(value, &end);
    if (end == value || *end || errno == ERANGE || !isfinite(number))
        return cli_usage(command, "--%s: expected %s, found '%s'", option->name,
                         option->kind == CLI_INT ? "an integer" : "a number", value);
    if (number < option->min || number > option->max)
        return cli_usage(command, "--%s: %s is out of range: must be from %.16g to %.16g", option->name, value,
                         option->min, option->max);
    return CLI_OK;
}

static bool is_count(const char *value)
{
    enum { DIGITS = 18 }; // fit an int64_t
    size_t length = strlen(value);
    return length && length <= DIGITS && strspn(value, "0123456789") == length;
}

static int set_option(cli_args *args, int index, const char *value)
{
    const cli_option *option = &args->command->options[index];
    char what[64];
    snprintf(what, sizeof what, "--%s", option->name);
    args->values[index] = value;
    if (option->kind == CLI_INT || option->kind == CLI_NUMBER)
        return check_number(args->command, option, value);
    bool count = option->kind == CLI_CHOICE_OR_COUNT;
    if ((count || option->kind == CLI_CHOICE) && !(count && is_count(value)) && !cli_choice_has(option->choices, value))
        return bad_choice(args->command, what, option->choices, count ? " or a number" : "", value);
    return CLI_OK;
}

/** One word that begins with '-'. `next` is the word after it (NULL at the end); *used says whether it was taken. */
static int parse_option(cli_args *args, const char *word, const char *next, bool *used)
{
    const char *value = NULL;
    int index;
    if (word[1] == '-') {
        size_t length = strcspn(word + 2, "=");
        value = word[2 + length] ? word + 3 + length : NULL;
        if (length == 4 && !strncmp(word + 2, "help", 4)) {
            args->help = true;
            return CLI_OK;
        }
        index = option_index(args->command, word + 2, length);
        if (index < 0)
            return unknown_option(args->command, word);
    } else {
        value = word[2] ? word + 2 : NULL;
        if (word[1] == 'h' && !value) {
            args->help = true;
            return CLI_OK;
        }
        index = letter_index(args->command, word[1]);
        if (index < 0)
            return cli_usage(args->command, "unknown option '-%c'", word[1]);
    }
    const cli_option *option = &args->command->options[index];
    if (option->kind == CLI_FLAG) {
        if (value)
            return cli_usage(args->command, "--%s takes no value, found '%s'", option->name, value);
        args->values[index] = "";
        return CLI_OK;
    }
    if (!value && next && strncmp(next, "--", 2)) {
        value = next;
        *used = true;
    }
    if (!value)
        return cli_usage(args->command, "--%s needs a value: --%s %s", option->name, option->name, option->metavar);
    return set_option(args, index, value);
}

/** The record of the argument at a position; settings have none. */
static const cli_argument *argument_at(const cli_command *command, int position)
{
    const cli_argument *argument = position < CLI_ARGUMENTS_MAX ? &command->arguments[position] : NULL;
    return argument && argument->name && argument->kind != CLI_ARGUMENT_SETTING ? argument : NULL;
}

static int parse_word(cli_args *args, const char *word)
{
    const cli_command *command = args->command;
    const cli_argument *argument = argument_at(command, args->word_count);
    // A setting is told from a path by the shape of its key: letters, digits, '_' and '.', then '='.
    size_t key = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    if (takes_settings(command) && (word[key] == '=' || !argument)) {
        if (word[key] != '=')
            return cli_usage(command, "unexpected argument '%s': settings are of the form key=value", word);
        args->settings[args->setting_count++] = word;
        return CLI_OK;
    }
    if (!argument)
        return cli_usage(command, "unexpected argument '%s'", word);
    if (argument->kind == CLI_ARGUMENT_CHOICE && !cli_choice_has(argument->choices, word))
        return bad_choice(command, argument->name, argument->choices, "", word);
    if (!*word)
        return cli_usage(command, "%s is empty: expected %s", argument->name, argument->help);
    if (argument->kind == CLI_ARGUMENT_FILES)
        args->settings[args->setting_count++] = word;
    else
        args->words[args->word_count++] = word;
    return CLI_OK;
}

static int check_complete(const cli_args *args)
{
    const cli_command *command = args->command;
    const cli_argument *missing = argument_at(command, args->word_count);
    bool several = missing && missing->kind == CLI_ARGUMENT_FILES && args->setting_count;
    if (missing && !missing->optional && !several)
        return cli_usage(command, "missing argument %s: %s", missing->name, missing->help);
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++)
        if (command->options[i].required && !args->values[i])
            return cli_usage(command, "missing option --%s %s: %s", command->options[i].name,
                             command->options[i].metavar, command->options[i].help);
    return CLI_OK;
}

int cli_parse(cli_args *args, const cli_command *command, int count, char **words, const char **settings)
{
    *args = (cli_args){.command = command, .settings = settings};
    bool options = true;
    for (int i = 0; i < count; i++) {
        int status;
        bool used = false;
        if (options && !strcmp(words[i], "--")) {
            options = false;
            continue;
        }
        if (options && words[i][0] == '-' && words[i][1])
            status = parse_option(args, words[i], i + 1 < count ? words[i + 1] : NULL, &used);
        else
            status = parse_word(args, words[i]);
        if (status != CLI_OK)
            return status;
        i += used;
    }
    return args->help ? CLI_OK : check_complete(args);
}

static int index_of(const cli_args *args, const char *name)
{
    int index = option_index(args->command, name, strlen(name));
    assert(index >= 0 && "the command's record lacks this option");
    return index;
}

bool cli_given(const cli_args *args, const char *name)
{
    return args->values[index_of(args, name)] != NULL;
}

bool cli_flag(const cli_args *args, const char *name)
{
    return cli_given(args, name);
}

const char *cli_text(const cli_args *args, const char *name)
{
    int index = index_of(args, name);
    const char *fallback = args->command->options[index].fallback;
    return args->values[index] ? args->values[index] : fallback ? fallback : "";
}

int64_t cli_int(const cli_args *args, const char *name)
{
    return strtoll(cli_text(args, name), NULL, 10);
}

double cli_number(const cli_args *args, const char *name)
{
    return strtod(cli_text(args, name), NULL);
}

const char *cli_word(const cli_args *args, int position)
{
    return position < args->word_count ? args->words[position] : NULL;
}

bool cli_is_onnx(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && !strcmp(path + length - 5, ".onnx");
}

/** A model in a configuration's place. */
static mixt_status set_model(mixt_config *config, const char *path)
{
    char setting[4200];
    if (snprintf(setting, sizeof setting, "model=%s", path) >= (int)sizeof setting)
        return mixt_fail(MIXT_ERROR_FILE, "%s: the path is too long", path);
    return mixt_config_set(config, setting, "command line");
}

int cli_config(const cli_args *args, const char *path, mixt_config **config)
{
    *config = NULL;
    mixt_config *made;
    if (mixt_config_new(&made) != MIXT_OK)
        return cli_failed();
    int status = CLI_OK;
    if (path && (cli_is_onnx(path) ? set_model : mixt_config_load)(made, path) != MIXT_OK)
        status = cli_failed();
    for (int i = 0; i < args->setting_count && status == CLI_OK; i++) {
        mixt_status set = mixt_config_set(made, args->settings[i], "command line");
        if (set != MIXT_OK)
            status = set == MIXT_ERROR_MEMORY ? cli_failed() : cli_usage(args->command, "%s", mixt_error_text());
    }
    if (status == CLI_OK && path && cli_is_onnx(path) && mixt_onnx_config(made) != MIXT_OK)
        status = cli_failed();
    if (status == CLI_OK && mixt_config_check(made) != MIXT_OK)
        status = cli_failed();
    if (status == CLI_OK)
        *config = made;
    else
        mixt_config_free(made);
    return status;
}

bool cli_is_folder(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

int cli_config_or_run(const cli_args *args, mixt_config **config)
{
    const char *path = cli_word(args, 0);
    *config = NULL;
    if (!cli_is_folder(path))
        return cli_config(args, path, config);
    mixt_status status = mixt_run_folder_config(path, config);
    for (int i = 0; status == MIXT_OK && i < args->setting_count; i++)
        status = mixt_config_set(*config, args->settings[i], "command line");
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

int cli_refuse_out(const cli_args *args, const char *instead)
{
    for (int i = 0; i < args->setting_count; i++)
        if (!strncmp(args->settings[i], "out=", 4))
            return cli_usage(args->command, "out: %s", instead);
    return CLI_OK;
}

mixt_status cli_config_device(const cli_args *args, mixt_config *config)
{
    char setting[64];
    if (!cli_given(args, "device"))
        return MIXT_OK;
    snprintf(setting, sizeof setting, "device=%s", cli_text(args, "device"));
    return mixt_config_set(config, setting, "--device");
}

mixt_status cli_output_check(const cli_args *args, const char *path)
{
    struct stat info;
    if (cli_flag(args, "overwrite") || lstat(path, &info) || S_ISDIR(info.st_mode)) // a folder is never replaced
        return MIXT_OK;
    return mixt_fail(MIXT_ERROR_FILE, "%s: exists already: choose another name, or replace it with --overwrite", path);
}
