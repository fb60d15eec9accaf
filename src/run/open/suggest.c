/* A suggestion as an object: what was chosen, applied to a configuration, written as one. Choosing itself is in
 * suggest_choose.c.
 */
#include "run/open/suggest.h"

#include "base/files.h"
#include "base/options.h"
#include "run/open/hf_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to choose a configuration");
}

mixt_status mixt__suggest(mixt_suggestion *s, mixt__config_key key, const char *why, const char *value, ...)
{
    char text[4500], setting[4600];
    va_list args;
    if (mixt__config_was_set(s->config, key))
        return MIXT_OK;
    va_start(args, value);
    vsnprintf(text, sizeof text, value, args);
    va_end(args);
    snprintf(setting, sizeof setting, "%s=%s", mixt__config_table[key].name, text);
    MIXT_TRY(mixt_config_set(s->config, setting, "chosen"));
    s->choices[key] = (mixt_choice){mixt__config_table[key].name, mixt__arena_strdup(&s->arena, text),
                                    mixt__arena_strdup(&s->arena, why)};
    s->chosen[key] = true;
    return s->choices[key].value && s->choices[key].why ? MIXT_OK : no_memory();
}

/** Finds out what the data is. */
static mixt_status look(mixt_suggestion *s)
{
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options);
    const char *kind = mixt__config_string(s->config, MIXT_KEY_DATA_KIND),
               *path = mixt__config_string(s->config, MIXT_KEY_DATA_PATH),
               *text = mixt__config_string(s->config, MIXT_KEY_DATA_TEXT);
    char spec[4500];
    bool automatic = !strcmp(kind, "auto");
    if (automatic && !*path)
        return mixt__fail(MIXT_ERROR_CONFIG, "no data is named: data.path=FILE or data.path=FOLDER");
    if (!automatic && !*path && !mixt__data_can_draw(kind))
        return mixt__fail(MIXT_ERROR_CONFIG, "data.kind is %s: set data.path=… to its file or folder", kind);
    o.text = *text ? text : NULL;
    snprintf(spec, sizeof spec, "%s%s%s", automatic ? "" : kind, automatic ? "" : ":", path);
    return mixt__data_look(spec, &o, &s->kind, s->path, sizeof s->path);
}

mixt_status mixt_suggest(const mixt_config *config, mixt_suggestion **suggestion)
{
    MIXT_TRY(mixt__need(suggestion));
    *suggestion = NULL;
    MIXT_TRY(mixt__need_open(config, "configuration"));
    mixt_suggestion *s = mixt__alloc(sizeof *s);
    if (!s)
        return no_memory();
    mixt__handle_add(&s->handle, s, "suggestion", NULL);
    mixt_status status = mixt_config_copy(config, &s->config);
    if (status == MIXT_OK)
        status = look(s);
    if (status == MIXT_OK)
        status = mixt__suggest_all(s);
    if (status == MIXT_OK)
        *suggestion = s;
    else
        mixt_suggestion_free(s);
    return status;
}

void mixt_suggestion_free(mixt_suggestion *s)
{
    if (!s || mixt__need_open(s, "suggestion") != MIXT_OK)
        return;
    mixt__handle_remove(s);
    mixt_config_free(s->config);
    mixt__arena_free(&s->arena);
    mixt__free(s);
}

const mixt_choice *mixt_suggestion_choice(const mixt_suggestion *s, int64_t index)
{
    if (mixt__need_open(s, "suggestion") != MIXT_OK || index < 0)
        return NULL;
    for (int key = 0; key < MIXT_KEY_COUNT; key++)
        if (s->chosen[key] && index-- == 0)
            return &s->choices[key];
    return NULL;
}

const char *mixt_suggestion_summary(const mixt_suggestion *s)
{
    return mixt__need_open(s, "suggestion") == MIXT_OK ? s->summary : "";
}

mixt_status mixt_suggestion_apply(const mixt_suggestion *s, mixt_config *config)
{
    char setting[4600];
    MIXT_TRY(mixt__need_open(s, "suggestion"));
    MIXT_TRY(mixt__need_open(config, "configuration"));
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        if (!s->chosen[key])
            continue;
        snprintf(setting, sizeof setting, "%s=%s", s->choices[key].key, s->choices[key].value);
        MIXT_TRY(mixt_config_set(config, setting, "chosen by the data"));
    }
    return MIXT_OK;
}

/* ---- as a file ---- */

/** One key and its comment; those of a section are indented below its name. */
static void print_key(const mixt_suggestion *s, mixt__config_key key, char section[64], FILE *stream)
{
    enum { COMMENT_AT = 28 };
    const char *name = mixt__config_table[key].name, *dot = strchr(name, '.');
    int width = dot ? (int)(dot - name) : 0;
    char *value = mixt__config_text(s->config, key);
    if (dot && strncmp(section, name, (size_t)width + 1)) {
        snprintf(section, 64, "%.*s", width + 1, name);
        fprintf(stream, "\n%.*s:\n", width, name);
    }
    bool plain = s->chosen[key] && mixt__config_table[key].type == MIXT_CONFIG_FLOAT; // "10", not "1e+01"
    int used = fprintf(stream, "%s%s: %s", dot ? "  " : "", dot ? dot + 1 : name,
                       plain   ? s->choices[key].value
                       : value ? value
                               : "");
    const char *why = s->chosen[key] ? s->choices[key].why : "";
    if (*why)
        fprintf(stream, "%*s # %s", used < COMMENT_AT ? COMMENT_AT - used : 0, "", why);
    fputc('\n', stream);
    free(value);
}

mixt_status mixt_suggestion_yaml(const mixt_suggestion *s, char **text)
{
    size_t size;
    char section[64] = "";
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    MIXT_TRY(mixt__need_open(s, "suggestion"));
    FILE *stream = open_memstream(text, &size);
    if (!stream)
        return no_memory();
    fprintf(stream,
            "# %s\n# Chosen by looking at the data: change what you know better; 'mixt help config' lists all keys.\n",
            s->summary);
    for (int key = 0; key < MIXT_KEY_COUNT; key++)
        if (mixt__config_was_set(s->config, (mixt__config_key)key))
            print_key(s, (mixt__config_key)key, section, stream);
    if (!fclose(stream))
        return MIXT_OK;
    free(*text);
    *text = NULL;
    return no_memory();
}

mixt_status mixt_suggestion_write(const mixt_suggestion *s, const char *path)
{
    char *text;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt_suggestion_yaml(s, &text));
    int fd = mixt__file_open_write(path, O_WRONLY | O_CREAT | O_EXCL);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");
    mixt_status status = MIXT_OK;
    if (fd < 0 && errno == EEXIST)
        status = mixt__fail(MIXT_ERROR_FILE, "%s: exists already: choose another name (nothing was changed)", path);
    else if (!stream)
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", path, mixt__file_problem(errno));
    bool written = stream && fputs(text, stream) >= 0;
    if (stream && (fclose(stream) || !written)) {
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno));
        unlink(path);
    }
    mixt_free(text);
    return status;
}
