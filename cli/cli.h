/* Commands, options and arguments as records, and what a run function reads.
 *
 * Arrays inside a record end at the first entry without a name.
 */
#ifndef MIXT_CLI_CLI_H
#define MIXT_CLI_CLI_H

#include <mixt/config.h>

#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };
enum { CLI_SIGNAL = 128 }; // as shells count: the status after a signal is this and its number

/* Room in a record, the end mark included. */
enum { CLI_ARGUMENTS_MAX = 4, CLI_OPTIONS_MAX = 16, CLI_EXAMPLES_MAX = 10 };

typedef enum cli_kind {
    CLI_FLAG,
    CLI_TEXT,
    CLI_INT,             // in [min, max]
    CLI_NUMBER,          // a finite float in [min, max]
    CLI_CHOICE,          // one of `choices`
    CLI_CHOICE_OR_COUNT, // or an integer from 0 on
} cli_kind;

typedef struct cli_option {
    const char *name; // without "--"
    char letter;      // short form, 0 for none
    cli_kind kind;
    const char *metavar; // what stands for the value in help; NULL for flags
    const char *choices; // "a|b|c"
    const char *fallback;
    double min, max;
    bool required;
    const char *help;
    const char *more; // what `mixt help COMMAND --all` and the man page add to it
} cli_option;

typedef enum cli_argument_kind {
    CLI_ARGUMENT_FILE,
    CLI_ARGUMENT_FOLDER,
    CLI_ARGUMENT_CHOICE,  // one of `choices`
    CLI_ARGUMENT_COMMAND, // a command's name or one of `choices`
    CLI_ARGUMENT_KEY,     // a key of the configuration, or a section
    CLI_ARGUMENT_FILES,   // one or more, the last argument; a command takes these or settings
    CLI_ARGUMENT_SETTING, // key=value of the configuration; any number, anywhere after the command
} cli_argument_kind;

typedef struct cli_argument {
    const char *name;
    cli_argument_kind kind;
    const char *choices;
    bool optional;
    const char *help;
    const char *more; // as of an option
} cli_argument;

typedef struct cli_example {
    const char *line, *text;
} cli_example;

typedef struct cli_args cli_args;

typedef struct cli_command {
    const char *name, *summary;
    const char *description; // paragraphs separated by blank lines; --help shows the first, --all and the man page all
    cli_argument arguments[CLI_ARGUMENTS_MAX];
    cli_option options[CLI_OPTIONS_MAX];
    cli_example examples[CLI_EXAMPLES_MAX];
    const char *see_also; // commands, separated by '|'
    int (*run)(const cli_args *args);
} cli_command;

/** The commands of mixt in the order of the help; ends with NULL. */
extern const cli_command *const cli_commands[];
const cli_command *cli_command_find(const char *name);

/** A parsed command line. */
struct cli_args {
    const cli_command *command;
    const char *values[CLI_OPTIONS_MAX]; // NULL: not given
    const char *words[CLI_ARGUMENTS_MAX];
    const char **settings; // key=value, or the words of a CLI_ARGUMENT_FILES, in order
    int word_count, setting_count;
    bool help;
};

/** Parses what follows the command's name. CLI_OK, or CLI_USAGE after a message on stderr. `settings` needs room for
 *  `count` pointers. */
int cli_parse(cli_args *args, const cli_command *command, int count, char **words, const char **settings);

/** Values of options by name (without "--"): what was given, else the default. The name must be in the record. */
bool cli_flag(const cli_args *args, const char *name);
const char *cli_text(const cli_args *args, const char *name);
int64_t cli_int(const cli_args *args, const char *name);
double cli_number(const cli_args *args, const char *name);
bool cli_given(const cli_args *args, const char *name);
/** The argument at a position, NULL when it was left out. */
const char *cli_word(const cli_args *args, int position);

/** Prints "mixt COMMAND: message" and where help is; returns CLI_USAGE. `command` may be NULL. */
int cli_usage(const cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Prints "mixt: " and the library's message of the newest failure; returns CLI_FAILED. */
int cli_failed(void);

/** The configuration of a command line: defaults, the file `path` (NULL: none), then the settings, checked as a whole.
 *  CLI_OK, or the exit status after a message. */
int cli_config(const cli_args *args, const char *path, mixt_config **config);
/** Whether a path leads to a folder: a run directory where a command takes a configuration or a run. */
bool cli_is_folder(const char *path);
/** Whether a name is that of an ONNX file, which stands in a configuration's place. */
bool cli_is_onnx(const char *path);
/** The same from the first word, which may also be a run's directory: then the run's configuration, with the settings.
 */
int cli_config_or_run(const cli_args *args, mixt_config **config);
/** Refuses out= on the command line of a command that would ignore it. @param instead what to do, a sentence
 *  @return CLI_OK, or CLI_USAGE after a message */
int cli_refuse_out(const cli_args *args, const char *instead);
/** Puts the option --device, where it was given, into the configuration. */
mixt_status cli_config_device(const cli_args *args, mixt_config *config);
/** Refuses a file to write that exists, unless --overwrite was given, which the message names. */
mixt_status cli_output_check(const cli_args *args, const char *path);

#endif
