/* The list of faults as people write it: "nan_data@120, flip_weight@200:fc.1, flip_weight@300:fc.1:always". */
#include "train/faults.h"

#include "base/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** Whether a kind is of a layer. */
typedef enum needs { NEVER, MAY, MUST } needs;

static const struct {
    const char *name;
    needs layer;
} kinds[MIXT_FAULT_COUNT] = {
#define MIXT_FAULT_RECORD(name, text, layer) {text, layer},
    MIXT_FAULT_LIST(MIXT_FAULT_RECORD)
#undef MIXT_FAULT_RECORD
};

static const char KINDS[] = ""
#define MIXT_FAULT_WORD(name, text, layer) text "|"
    MIXT_FAULT_LIST(MIXT_FAULT_WORD)
#undef MIXT_FAULT_WORD
    ;

const char *mixt__fault_name(mixt__fault_kind kind)
{
    return (unsigned)kind < MIXT_FAULT_COUNT ? kinds[kind].name : NULL;
}

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t end = strlen(text); end && isspace((unsigned char)text[end - 1]); end--)
        text[end - 1] = '\0';
    return text;
}

static mixt_status read_kind(const char *word, const char *name, mixt__fault *f)
{
    char choices[sizeof KINDS], hint[128], list[sizeof KINDS + 32];
    memcpy(choices, KINDS, sizeof KINDS);
    choices[sizeof KINDS - 2] = '\0'; // the last bar
    int kind = mixt__choice_find(choices, name);
    if (kind < 0)
        return mixt__fail(MIXT_ERROR_CONFIG, "faults: '%s': no kind '%s'%s: %s", word, name,
                          mixt__choice_hint(choices, name, hint, sizeof hint),
                          mixt__choice_list(choices, list, sizeof list));
    f->kind = (mixt__fault_kind)kind;
    return MIXT_OK;
}

static mixt_status read_step(const char *word, const char *text, mixt__fault *f)
{
    char *end;
    errno = 0;
    long long step = strtoll(text, &end, 10);
    if (end == text || *end || errno || step < 1 || !isdigit((unsigned char)*text))
        return mixt__fail(MIXT_ERROR_CONFIG, "faults: '%s': the update '%s' is not a number of at least 1", word, text);
    f->step = step;
    return MIXT_OK;
}

static mixt_status read_layer(const char *word, const char *layer, mixt__fault *f)
{
    if (!layer && kinds[f->kind].layer == MUST)
        return mixt__fail(MIXT_ERROR_CONFIG, "faults: '%s': name the layer, as in %s@%lld:fc.1", word,
                          kinds[f->kind].name, (long long)f->step);
    if (layer && kinds[f->kind].layer == NEVER)
        return mixt__fail(MIXT_ERROR_CONFIG, "faults: '%s': %s is not of a layer: leave out ':%s'", word,
                          kinds[f->kind].name, layer);
    if (layer && (!*layer || strlen(layer) >= sizeof f->layer))
        return mixt__fail(MIXT_ERROR_CONFIG, "faults: '%s': a layer's name has 1 to %d bytes", word,
                          MIXT_FAULT_LAYER - 1);
    if (layer)
        memcpy(f->layer, layer, strlen(layer) + 1);
    return MIXT_OK;
}

/** How a bit flips, where that is said. */
static mixt_status read_manner(const char *word, const char *manner, mixt__fault *f)
{
    bool weight = f->kind == MIXT_FAULT_FLIP_WEIGHT || f->kind == MIXT_FAULT_FLIP_MEMORY,
         flips = weight || f->kind == MIXT_FAULT_FLIP_ACTIVATION;
    if (!manner)
        return MIXT_OK;
    f->always = flips && !strcmp(manner, "always");
    f->same = weight && !strcmp(manner, "same");
    f->stuck = weight && !strcmp(manner, "stuck");
    if (f->always || f->same || f->stuck)
        return MIXT_OK;
    return mixt__fail(
        MIXT_ERROR_CONFIG,
        "faults: '%s': ':%s' is not an option; ':always' is for flips, ':same' and ':stuck' for flips of weights", word,
        manner);
}

/** @param word one fault, which is taken apart @param whole the same for messages */
static mixt_status read_fault(char *word, const char *whole, mixt__fault *f)
{
    char *at = strchr(word, '@'), *layer = NULL, *manner = NULL;
    if (!at)
        return mixt__fail(MIXT_ERROR_CONFIG, "faults: '%s': write kind@step or kind@step:layer, as in nan_data@120",
                          whole);
    *at++ = '\0';
    if ((layer = strchr(at, ':')))
        *layer++ = '\0';
    if (layer && (manner = strchr(layer, ':')))
        *manner++ = '\0';
    MIXT_TRY(read_kind(whole, trimmed(word), f));
    MIXT_TRY(read_step(whole, trimmed(at), f));
    MIXT_TRY(read_layer(whole, layer ? trimmed(layer) : NULL, f));
    return read_manner(whole, manner ? trimmed(manner) : NULL, f);
}

static mixt_status read_all(char *text, mixt__faults *faults)
{
    char *next = NULL, word[256];
    for (char *part = strtok_r(text, ",", &next); part; part = strtok_r(NULL, ",", &next)) {
        part = trimmed(part);
        if (faults->count == MIXT_FAULTS_MAX)
            return mixt__fail(MIXT_ERROR_CONFIG, "faults: more than %d at '%s'", MIXT_FAULTS_MAX, part);
        size_t length = strnlen(part, sizeof word - 1);
        memcpy(word, part, length);
        word[length] = '\0';
        MIXT_TRY(read_fault(part, word, &faults->items[faults->count]));
        faults->count++;
    }
    return MIXT_OK;
}

mixt_status mixt__faults_parse(const char *text, mixt__faults *faults)
{
    *faults = (mixt__faults){.count = 0};
    if (!text || !*text)
        return MIXT_OK;
    char *copy = mixt__strdup(text);
    if (!copy)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for faults");
    mixt_status status = read_all(copy, faults);
    mixt__free(copy);
    return status;
}

int64_t mixt__faults_last(const char *text)
{
    mixt__faults faults;
    int64_t last = 0;
    if (mixt__faults_parse(text, &faults) != MIXT_OK)
        return 0;
    for (int i = 0; i < faults.count; i++)
        last = faults.items[i].step > last ? faults.items[i].step : last;
    return last;
}
