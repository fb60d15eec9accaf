/* Words that people type: lists of choices, "sgd|adam|lamb", and "did you mean …?". */
#ifndef MIXT_CLI_WORDS_H
#define MIXT_CLI_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/** Whether `word` is one of the choices. */
bool cli_choice_has(const char *choices, const char *word);
/** "sgd, adam, lamb". Returns `text`. */
const char *cli_choice_list(const char *choices, char *text, size_t size);
/** " (did you mean adam?)", or "" when no choice is close to `word`. Returns `text`. */
const char *cli_choice_hint(const char *choices, const char *word, char *text, size_t size);
/** " (did you mean WORD?)"; "" where `guess` is NULL. Returns `text`. */
const char *cli_guess_hint(const char *guess, char *text, size_t size);

#endif
