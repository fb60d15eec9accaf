/* Lists of choices and hints. How near two words are is the library's rule. */
#include "cli/words.h"

#include <mixt/program.h>

#include <stdio.h>
#include <string.h>

/** A choice that ends in ":N" is that word with a number of one or two digits in place of N. */
static bool is_choice(const char *choice, size_t span, const char *word, size_t length)
{
    bool numbered = span > 2 && !strncmp(choice + span - 2, ":N", 2);
    size_t stem = numbered ? span - 1 : span, digits = length - stem;
    if (length < stem || strncmp(choice, word, stem))
        return false;
    return numbered ? digits >= 1 && digits <= 2 && strspn(word + stem, "0123456789") == digits : !digits;
}

bool cli_choice_has(const char *choices, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = choices; *at;) {
        size_t span = strcspn(at, "|");
        if (is_choice(at, span, word, length))
            return true;
        at += span + (at[span] == '|');
    }
    return false;
}

const char *cli_choice_list(const char *choices, char *text, size_t size)
{
    size_t used = 0;
    for (; *choices && used + 3 < size; choices++) {
        text[used++] = *choices == '|' ? ',' : *choices;
        if (*choices == '|')
            text[used++] = ' ';
    }
    text[used] = 0;
    return text;
}

const char *cli_guess_hint(const char *guess, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", guess ? " (did you mean " : "", guess ? guess : "", guess ? "?)" : "");
    return text;
}

const char *cli_choice_hint(const char *choices, const char *word, char *text, size_t size)
{
    enum { WORDS = 32, LETTERS = 512 };
    char copy[LETTERS];
    const char *words[WORDS];
    int64_t count = 0;
    snprintf(copy, sizeof copy, "%s", choices);
    for (char *rest = copy, *next; count < WORDS && (next = strsep(&rest, "|"));)
        words[count++] = next;
    return cli_guess_hint(*word ? mixt_word_nearest(word, words, count) : NULL, text, size);
}
