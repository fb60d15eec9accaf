/* YAML configurations and key=value settings: whatever is read must print as a file that reads back the same. */
#include "fuzz.h"

#include "config/config.h"

#include <stdio.h>
#include <string.h>

/** The configuration as text in malloc'ed memory. */
static char *print(const mixt_config *config, bool comments, size_t *size)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, size);
    fuzz_require(stream);
    fuzz_require(mixt__config_print(config, stream, comments) == MIXT_OK);
    fuzz_require(!fclose(stream));
    return text;
}

static void read_back(const mixt_config *config)
{
    size_t size, again_size, comment_size;
    char *text = print(config, false, &size), *commented = print(config, true, &comment_size);
    mixt_config *again;
    fuzz_require(mixt_config_new(&again) == MIXT_OK);
    fuzz_require(mixt_config_load(again, fuzz_file("again.yaml", commented, comment_size)) == MIXT_OK);
    char *again_text = print(again, false, &again_size);
    fuzz_require(size == again_size && !memcmp(text, again_text, size));
    mixt_config_free(again);
    free(text);
    free(commented);
    free(again_text);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    mixt_config *config;
    fuzz_require(mixt_config_new(&config) == MIXT_OK);
    char setting[256];
    size_t length = size < sizeof setting - 1 ? size : sizeof setting - 1;
    memcpy(setting, data, length);
    setting[length] = '\0';
    bool taken = fuzz_taken(mixt_config_load(config, fuzz_file("input.yaml", data, size)));
    taken |= fuzz_taken(mixt_config_set(config, setting, "input"));
    fuzz_taken(mixt_config_check(config));
    if (taken)
        read_back(config);
    mixt_config_free(config);
}
