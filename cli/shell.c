/* Quoting. */
#include "cli/shell.h"

#include <stdbool.h>
#include <string.h>

void cli_shell_word(FILE *stream, const char *word)
{
    bool plain = *word && !strpbrk(word, " \t\n'\"\\$`*?[]{}()<>|&;#~!=^%");
    if (!plain)
        putc('\'', stream);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", stream);
        else
            putc(*word, stream);
    if (!plain)
        putc('\'', stream);
}
