/* BLEU of corpora from standard input, for compare_bleu.py.
 *
 * In: COUNT on a line, then COUNT translations and COUNT references, a line each; again and again. Out, for each
 * corpus: score, brevity, four precisions, words and reference words, on a line.
 */
#include <mixt/tasks/translate.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_line(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size = getline(&line, &room, stdin);
    if (size <= 0) {
        free(line);
        return NULL;
    }
    line[size - 1] = '\0';
    return line;
}

static int score_corpus(long count)
{
    char **lines = calloc((size_t)(2 * count) + 1, sizeof *lines);
    mixt_bleu b;
    for (long i = 0; lines && i < 2 * count; i++)
        lines[i] = read_line();
    int failed = !lines || mixt_bleu_of((const char *const *)lines, (const char *const *)lines + count, count, &b);
    if (failed)
        fprintf(stderr, "bleu: %s\n", mixt_error_text());
    else
        printf("%.17g %.17g %.17g %.17g %.17g %.17g %lld %lld\n", b.score, b.brevity, b.precisions[0], b.precisions[1],
               b.precisions[2], b.precisions[3], (long long)b.words, (long long)b.reference_words);
    for (long i = 0; lines && i < 2 * count; i++)
        free(lines[i]);
    free(lines);
    return failed;
}

int main(void)
{
    for (char *line; (line = read_line());) {
        long count = strtol(line, NULL, 10);
        free(line);
        if (count < 0 || count > 1 << 24 || score_corpus(count))
            return 1;
    }
    return 0;
}
