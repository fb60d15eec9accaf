/* Edit distance over short names, the rule for when a guess helps, and lists of choices. */
#include "base/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_LENGTH = 63 };

static int min3(int a, int b, int c)
{
    int least = a < b ? a : b;
    return least < c ? least : c;
}

int mixt__edit_distance(const char *a, const char *b)
{
    int rows[3][NAME_MAX_LENGTH + 1];
    int length_a = (int)strnlen(a, NAME_MAX_LENGTH), length_b = (int)strnlen(b, NAME_MAX_LENGTH);
    for (int j = 0; j <= length_b; j++)
        rows[0][j] = j;
    for (int i = 1; i <= length_a; i++) {
        int *row = rows[i % 3], *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= length_b; j++) {
            int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (ca != cb));
            if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) && cb == tolower((unsigned char)a[i - 2]) &&
                above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[length_a % 3][length_b];
}

void mixt__nearest_offer(mixt__nearest *nearest, const char *candidate)
{
    int distance = mixt__edit_distance(nearest->wanted, candidate);
    if (nearest->best && distance >= nearest->distance)
        return;
    nearest->best = candidate;
    nearest->distance = distance;
}

const char *mixt__nearest_get(const mixt__nearest *nearest)
{
    // One edit in three letters: more is another word, not a slip.
    int limit = 1 + (int)strnlen(nearest->wanted, NAME_MAX_LENGTH) / 3;
    return nearest->best && nearest->distance <= limit ? nearest->best : NULL;
}

/** A choice that ends in ":N" is that word with a number of one or two digits in place of N. */
static bool choice_has(const char *choice, size_t span, const char *word, size_t length)
{
    bool numbered = span > 2 && !strncmp(choice + span - 2, ":N", 2);
    size_t stem = numbered ? span - 1 : span, digits = length - stem;
    if (length < stem || strncmp(choice, word, stem))
        return false;
    return numbered ? digits >= 1 && digits <= 2 && strspn(word + stem, "0123456789") == digits : !digits;
}

int mixt__choice_find(const char *choices, const char *word)
{
    size_t length = strlen(word);
    int position = 0;
    for (const char *at = choices; *at; position++) {
        size_t span = strcspn(at, "|");
        if (choice_has(at, span, word, length))
            return position;
        at += span + (at[span] == '|');
    }
    return -1;
}

const char *mixt__choice_name(const char *choices, int position, char *word, size_t size)
{
    const char *at = choices;
    for (int i = 0; i < position && *at; i++) {
        at += strcspn(at, "|");
        at += *at == '|';
    }
    snprintf(word, size, "%.*s", (int)strcspn(at, "|"), at);
    return word;
}

const char *mixt__choice_list(const char *choices, char *text, size_t size)
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

/** What other tools call a choice, where its spelling says nothing or something else. */
static const char *const meant[][2] = {
    {"gpu", "cuda"},
    {"float32", "fp32"},
    {"float", "fp32"},
    {"single", "fp32"},
    {"full", "fp32"},
    {"32", "fp32"},
    {"32-true", "fp32"},
    {"no", "fp32"},
    {"tensorfloat32", "tf32"},
    {"tensorfloat-32", "tf32"},
    {"float16", "fp16"},
    {"half", "fp16"},
    {"16", "fp16"},
    {"16-mixed", "fp16"},
    {"16-true", "fp16"},
    {"mixed_float16", "fp16"},
    {"bfloat16", "bf16"},
    {"bf16-mixed", "bf16"},
    {"bf16-true", "bf16"},
    {"mixed_bfloat16", "bf16"},
    {"amp", "bf16"},
    {"mixed", "bf16"},
    {"adamw_torch", "adamw"},
    {"adamw_hf", "adamw"},
    {"cosineannealinglr", "cosine"},
    {"cosineannealing", "cosine"},
    {"cosine_with_warmup", "cosine"},
    {"linear_with_warmup", "linear"},
    {"constant_with_warmup", "constant"},
    {"steplr", "step"},
    {"onecyclelr", "onecycle"},
    {"batchnorm", "batch"},
    {"batch_norm", "batch"},
    {"layernorm", "layer"},
    {"layer_norm", "layer"},
    {"imagefolder", "images"},
    {"image_folder", "images"},
    {"table", "csv"},
    {"tabular", "csv"},
    {"translation", "parallel"},
    {"text_classification", "labelled"},
    {"regression", "values"},
    {"classification", "classes"},
    {"softmax", "classes"},
};

/** The choice that a word is another one for; -1: none of them. */
static int find_meant(const char *choices, const char *word)
{
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++) {
        int choice = strcasecmp(word, meant[i][0]) ? -1 : mixt__choice_find(choices, meant[i][1]);
        if (choice >= 0)
            return choice;
    }
    return -1;
}

const char *mixt__choice_hint(const char *choices, const char *word, char *text, size_t size)
{
    char known[64];
    int best = find_meant(choices, word), distance = 0;
    for (int i = 0; *mixt__choice_name(choices, i, known, sizeof known); i++) {
        mixt__nearest nearest = {.wanted = word};
        mixt__nearest_offer(&nearest, known);
        if (!mixt__nearest_get(&nearest) || (best >= 0 && nearest.distance >= distance))
            continue;
        best = i;
        distance = nearest.distance;
    }
    snprintf(text, size, "%s", "");
    if (best >= 0 && *word)
        snprintf(text, size, " (did you mean %s?)", mixt__choice_name(choices, best, known, sizeof known));
    return text;
}
