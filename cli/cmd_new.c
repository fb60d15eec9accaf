/* mixt new: a configuration for the data that it is shown. */
#include "cli/commands.h"

#include "cli/support.h"

#include <mixt/suggest.h>

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 512 };

/** What the file is called where nobody says: as the data, without folders and endings. */
static void name_file(const char *data, char name[NAME_SIZE])
{
    size_t end = strlen(data);
    while (end > 1 && data[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && data[begin - 1] != '/' && data[begin - 1] != ':')
        begin--;
    size_t length = end - begin;
    const char *dot = memchr(data + begin + 1, '.', length ? length - 1 : 0);
    length = dot ? (size_t)(dot - data) - begin : length;
    bool none = !length || data[begin] == '.';
    snprintf(name, NAME_SIZE, "%.*s.yaml", none ? 4 : (int)length, none ? "data" : data + begin);
}

static mixt_status set_data(mixt_config *config, const char *data)
{
    char setting[4500];
    if (snprintf(setting, sizeof setting, "data.path=%s", data) >= (int)sizeof setting)
        return mixt_fail(MIXT_ERROR_CONFIG, "the path of the data is too long");
    return mixt_config_set(config, setting, "command line");
}

static int write_file(const mixt_suggestion *suggestion, const char *path)
{
    if (!strcmp(path, "-")) {
        char *text;
        if (mixt_suggestion_yaml(suggestion, &text) != MIXT_OK)
            return cli_failed();
        fputs(text, stdout);
        mixt_free(text);
        return CLI_OK;
    }
    if (mixt_suggestion_write(suggestion, path) != MIXT_OK)
        return cli_failed();
    printf("%s\n%s is written; train it with: mixt train %s\n", mixt_suggestion_summary(suggestion), path, path);
    return CLI_OK;
}

static int run(const cli_args *args)
{
    char name[NAME_SIZE];
    const char *data = cli_word(args, 0), *path = cli_word(args, 1);
    mixt_config *config;
    mixt_suggestion *suggestion = NULL;
    int status = cli_config(args, NULL, &config);
    if (status != CLI_OK)
        return status;
    if (!path) {
        name_file(data, name);
        path = name;
    }
    if (set_data(config, data) != MIXT_OK || mixt_suggest(config, &suggestion) != MIXT_OK)
        status = cli_failed();
    else
        status = write_file(suggestion, path);
    mixt_suggestion_free(suggestion);
    mixt_config_free(config);
    return status;
}

const cli_command cli_new = {
    .name = "new",
    .summary = "write a configuration for data",
    .description =
        "Writes a configuration with comments for DATA: the kind of data, a suitable model, its sizes, batch, learning "
        "rate and length of the run. It asks nothing, trains nothing and replaces no file. Settings that you give are "
        "kept.\n\n'mixt train data.path=DATA' makes the same choices and trains at once.",
    .arguments =
        {
            {"DATA", CLI_ARGUMENT_FILE, .help = "file or folder, as data.path takes it"},
            {"FILE", CLI_ARGUMENT_FILE, .optional = true,
             .help = "file to write; default: the data's name with .yaml; -: standard output"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings to keep, as in model=resnet"},
        },
    .examples =
        {
            {"mixt new photos/", "writes photos.yaml for a folder of images in class folders"},
            {"mixt new table.csv my.yaml data.labels=price", "for a table whose column price is to be predicted"},
        },
    .see_also = "train|config",
    .run = run,
};
