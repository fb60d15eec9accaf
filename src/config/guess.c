/* What an unknown key was meant to be: another tool's name of one, the last word of one, or one that is spelt alike. */
#include "config/config.h"

#include "base/status.h"
#include "base/words.h"
#include "config/value.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 96, HINT = 256 };

static const mixt_config_alias aliases[] = {
#define MIXT_ALIAS(name, key, note) {name, key, note},
#include "config/aliases.def"
#undef MIXT_ALIAS
};

const mixt_config_alias *mixt_config_alias_at(int64_t index)
{
    return index >= 0 && index < (int64_t)(sizeof aliases / sizeof aliases[0]) ? &aliases[index] : NULL;
}

/** The part of a name behind its last '.', in small letters, '-' as '_'. */
static const char *last_word(const char *name, char word[NAME])
{
    const char *dot = strrchr(name, '.');
    size_t length = 0;
    for (const char *at = dot ? dot + 1 : name; *at && length + 1 < NAME; at++)
        word[length++] = *at == '-' ? '_' : (char)tolower((unsigned char)*at);
    word[length] = 0;
    return word;
}

static const mixt_config_alias *find_alias(const char *word)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (!strcmp(aliases[i].name, word))
            return &aliases[i];
    return NULL;
}

/** The key whose own last word this is: the right word in the wrong section, or in none. */
static const mixt_config_record *find_last(const char *word)
{
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        const char *name = mixt__config_table[key].name, *dot = strrchr(name, '.');
        if (!strcmp(dot ? dot + 1 : name, word))
            return &mixt__config_table[key];
    }
    return NULL;
}

const mixt_config_record *mixt_config_meant(const char *word, const char **note)
{
    char last[NAME];
    *note = "";
    if (!word)
        return NULL;
    const mixt_config_alias *alias = find_alias(last_word(word, last));
    if (!alias)
        return find_last(last);
    *note = alias->note;
    return *alias->key ? &mixt__config_table[mixt__config_find(alias->key)] : NULL;
}

/** " (did you mean train.lr?)", with the note behind it; "" where nothing is known. */
static const char *hint(const char *name, char text[HINT])
{
    const char *note;
    const mixt_config_record *key = mixt_config_meant(name, &note);
    bool setting = key && !strncmp(note, key->name, strlen(key->name)); // the note is the setting itself
    *text = 0;
    if (key)
        snprintf(text, HINT, " (did you mean %s?%s%s)", setting ? note : key->name, setting || !*note ? "" : " ",
                 setting ? "" : note);
    else if (*note)
        snprintf(text, HINT, " (%s)", note);
    return text;
}

/** The key that is spelt most like a name; NULL: none is near. */
static const char *spelt_alike(const char *name)
{
    char word[NAME];
    mixt__nearest whole = {.wanted = name}, last = {.wanted = last_word(name, word)};
    const char *guess = NULL;
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        const char *known = mixt__config_table[key].name, *dot = strrchr(known, '.');
        mixt__nearest_offer(&whole, known);
        const char *before = last.best;
        mixt__nearest_offer(&last, dot ? dot + 1 : known);
        if (last.best != before)
            guess = known;
    }
    return mixt__nearest_get(&whole) ? mixt__nearest_get(&whole) : mixt__nearest_get(&last) ? guess : NULL;
}

mixt_status mixt__config_unknown(const char *name)
{
    char text[HINT];
    const char *guess = *hint(name, text) ? NULL : spelt_alike(name);
    if (guess)
        snprintf(text, sizeof text, " (did you mean %s?)", guess);
    return mixt__fail(MIXT_ERROR_CONFIG, "unknown key '%.80s'%s", name,
                      *text ? text : " ('mixt help config' shows the keys)");
}

mixt_status mixt__config_section_set(const char *name)
{
    char text[HINT];
    const mixt_config_alias *alias = find_alias(name);
    if (alias)
        snprintf(text, sizeof text, "did you mean %s=…?", alias->key);
    else
        snprintf(text, sizeof text, "set one of its keys, as in %s.key=value ('mixt help config %s' lists them)", name,
                 name);
    return mixt__fail(MIXT_ERROR_CONFIG, "%s is a section: %s", name, text);
}
