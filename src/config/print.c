/* The resolved configuration as YAML: each key once, in table order, in a form that reads back to the same value. */
#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/files.h"
#include "base/handles.h"
#include "base/signal_at.h"
#include "base/status.h"
#include "base/words.h"
#include "config/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The shortest decimal that reads back to the same double. */
static void print_number(double number, FILE *stream)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        mixt__print_number(text, sizeof text, "%.*g", digits, number);
        if (mixt__read_double(text, NULL) == number)
            break;
    }
    fputs(text, stream);
}

/** Plain where no YAML reader can take it for something else, else in double quotes. */
static void print_string(const char *text, FILE *stream)
{
    static const char *const taken[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    bool quote = strspn(text, plain) != strlen(text) || !strchr(plain, *text) || strspn(text, "0123456789-.") > 0;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        quote |= !strcasecmp(text, taken[i]);
    quote |= !*text;
    if (!quote) {
        fputs(text, stream);
        return;
    }
    fputc('"', stream);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

void mixt__value_print(const mixt__config_value *value, const mixt_config_record *record, FILE *stream)
{
    char word[64];
    switch (record->type) {
    case MIXT_CONFIG_INT:
        fprintf(stream, "%lld", (long long)value->integer);
        break;
    case MIXT_CONFIG_FLOAT:
        print_number(value->number, stream);
        break;
    case MIXT_CONFIG_BOOL:
        fputs(value->boolean ? "true" : "false", stream);
        break;
    case MIXT_CONFIG_INTS:
        for (int64_t i = 0; i < value->count; i++)
            fprintf(stream, "%s%lld", i ? ", " : "[", (long long)value->list[i]);
        fputs(value->count ? "]" : "[]", stream);
        break;
    case MIXT_CONFIG_WORDS:
        for (int64_t i = 0; i < value->count; i++)
            fprintf(stream, "%s%s", i ? ", " : "[",
                    mixt__choice_name(record->choices, (int)value->list[i], word, sizeof word));
        fputs(value->count ? "]" : "[]", stream);
        break;
    case MIXT_CONFIG_SIZE:
        fputs(value->text, stream); // no other scalar of YAML looks so, and quotes mean nothing here
        break;
    case MIXT_CONFIG_STRING:
    case MIXT_CONFIG_CHOICE:
    case MIXT_CONFIG_CHOICE_OR_FLOAT:
        if (value->text)
            print_string(value->text, stream);
        else
            print_number(value->number, stream);
        break;
    }
}

/** Whether what stands before the dot of a name is a key itself. */
static bool is_key(const char *name, const char *dot)
{
    char section[64];
    snprintf(section, sizeof section, "%.*s", (int)(dot - name), name);
    return mixt__config_find(section) != MIXT_KEY_COUNT;
}

static void print_all(const mixt_config *config, FILE *stream, bool comments)
{
    char section[64] = "";
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        const mixt_config_record *record = &mixt__config_table[key];
        if (record->test && !mixt__config_was_set(config, (mixt__config_key)key))
            continue;
        const char *dot = strchr(record->name, '.');
        if (dot && is_key(record->name, dot))
            dot = NULL; // a map of that name would be a second value of the key
        int width = dot ? (int)(dot - record->name) : 0;
        if (dot && strncmp(section, record->name, (size_t)width + 1)) {
            snprintf(section, sizeof section, "%.*s", width + 1, record->name);
            fprintf(stream, "%s%.*s:\n", comments ? "\n" : "", width, record->name);
        }
        if (comments)
            fprintf(stream, "%s# %s\n", dot ? "  " : "", record->help);
        fprintf(stream, "%s%s: ", dot ? "  " : "", dot ? dot + 1 : record->name);
        mixt__value_print(mixt__config_value_of(config, (mixt__config_key)key), record, stream);
        fputc('\n', stream);
    }
}

char *mixt__config_text(const mixt_config *config, mixt__config_key key)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    mixt__value_print(mixt__config_value_of(config, key), &mixt__config_table[key], stream);
    return fclose(stream) ? NULL : text;
}

mixt_status mixt__config_print(const mixt_config *config, FILE *stream, bool comments)
{
    mixt__c_locale locale;
    MIXT_TRY(mixt__need_open(config, "configuration"));
    MIXT_TRY(mixt__need(stream));
    MIXT_TRY(mixt__c_locale_enter(&locale));
    print_all(config, stream, comments);
    mixt__c_locale_leave(&locale);
    if (fflush(stream) || ferror(stream))
        return mixt__fail(MIXT_ERROR_FILE, "configuration cannot be written: %s", strerror(errno));
    return MIXT_OK;
}

mixt_status mixt_config_print(const mixt_config *config, bool comments, char **text)
{
    size_t size;
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    MIXT_TRY(mixt__need_open(config, "configuration"));
    FILE *stream = open_memstream(text, &size);
    mixt_status status = stream ? mixt__config_print(config, stream, comments) : MIXT_ERROR_MEMORY;
    if ((!stream || fclose(stream)) && status != MIXT_ERROR_FILE)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text of a configuration");
    if (status != MIXT_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

mixt_status mixt_config_write(const mixt_config *config, const char *path)
{
    MIXT_TRY(mixt__need_open(config, "configuration"));
    MIXT_TRY(mixt__need(path));
    mixt__arena names = {0};
    char *partial = mixt__arena_printf(&names, "%s.partial", path);
    if (!partial)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write it", path);
    (void)unlink(partial); // of a process that was killed, or a link, which is not followed
    int fd = mixt__file_open_write(partial, O_WRONLY | O_CREAT | O_EXCL);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
    mixt_status status = MIXT_OK;
    if (!stream) {
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", partial, strerror(errno));
        if (fd >= 0)
            close(fd);
        goto cleanup;
    }
    status = mixt__config_print(config, stream, true);
    if (status == MIXT_OK && fsync(fd)) // before it takes the place of one that is whole
        status = mixt__fail(MIXT_ERROR_FILE, "configuration cannot be flushed to disk: %s", strerror(errno));
    if (fclose(stream) && status == MIXT_OK)
        status = mixt__fail(MIXT_ERROR_FILE, "configuration cannot be written: %s", strerror(errno));
    mixt__signal_at(MIXT_PLACE_WRITE);
    if (status == MIXT_OK && rename(partial, path))
        status = mixt__fail(MIXT_ERROR_FILE, "cannot be renamed: %s", strerror(errno));
    if (status != MIXT_OK) {
        unlink(partial);
        mixt__fail_context(status, "%s", path);
    }
cleanup:
    mixt__arena_free(&names);
    return status;
}
