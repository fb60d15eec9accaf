/* Sentence pairs that mixt draws itself: sums of numbers in words ("two and forty-one are forty-three."), from English
 * to German, where tens and ones change places and words grow together. Enough to see that a translator learns, without
 * a download. The English ones, a line each, are also the text that kind text draws. */
#include "data/text/parallel.h"

#include <stdio.h>
#include <string.h>

enum { DRAWN_TRAIN = 20000, DRAWN_VAL = 2000, DRAWN_TEST = 4000, DIGITS = 3, WORDS_ROOM = 512 };

static const char *const english_small[] = {
    "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
    "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const english_tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                           "fifty", "sixty", "seventy", "eighty", "ninety"};
static const char *const german_small[] = {
    "null", "ein", "zwei",  "drei",     "vier",     "fünf",     "sechs",    "sieben",   "acht",     "neun",
    "zehn", "elf", "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
static const char *const german_tens[] = {"",        "",        "zwanzig", "dreißig", "vierzig",
                                          "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

static void append(char *text, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, WORDS_ROOM - used, "%s", word);
}

/** 1 to 999, with a blank in front of every word but the first. */
static void english_below_thousand(char *text, int number)
{
    const char *blank = *text ? " " : "";
    if (number >= 100) {
        append(text, blank);
        append(text, english_small[number / 100]);
        append(text, " hundred");
        number %= 100;
        blank = " ";
    }
    if (number)
        append(text, blank);
    if (number >= 20) {
        append(text, english_tens[number / 10]);
        append(text, number % 10 ? "-" : "");
        number %= 10;
    }
    if (number)
        append(text, english_small[number]);
}

static void english(char *text, int number)
{
    char words[WORDS_ROOM] = "";
    if (!number)
        append(words, english_small[0]);
    if (number >= 1000) {
        english_below_thousand(words, number / 1000);
        append(words, " thousand");
    }
    english_below_thousand(words, number % 1000);
    append(text, words);
}

/** @param last nothing comes behind it: then 1 is "eins" */
static void german_below_thousand(char *text, int number, bool last)
{
    if (number >= 100) {
        append(text, german_small[number / 100]);
        append(text, "hundert");
        number %= 100;
    }
    if (number >= 20) {
        append(text, number % 10 ? german_small[number % 10] : "");
        append(text, number % 10 ? "und" : "");
        append(text, german_tens[number / 10]);
    } else if (number) {
        append(text, german_small[number]);
        append(text, number == 1 && last ? "s" : "");
    }
}

static void german(char *text, int number)
{
    if (!number)
        append(text, german_small[0]);
    if (number >= 1000) {
        german_below_thousand(text, number / 1000, false);
        append(text, "tausend");
    }
    german_below_thousand(text, number % 1000, true);
}

static void write_sum(char *text, int a, int b, void (*write)(char *text, int number), const char *const between[2])
{
    *text = 0;
    write(text, a);
    append(text, between[0]);
    write(text, b);
    append(text, between[1]);
    write(text, a + b);
    append(text, ".");
}

static void write_english(char *text, int a, int b)
{
    write_sum(text, a, b, english, (const char *[]){" and ", " are "});
}

/** As many numbers of each length. */
static int draw_number(uint64_t key)
{
    int limit = 1;
    for (uint64_t digits = 1 + key % DIGITS; digits; digits--)
        limit *= 10;
    return (int)((key >> 8) % (uint64_t)limit);
}

/** Both numbers of sum number `index`. */
static void draw_sum(uint64_t key, uint64_t stream, int64_t index, int *a, int *b)
{
    *a = draw_number(mixt__rng_key(key, stream, (uint64_t)(2 * index)));
    *b = draw_number(mixt__rng_key(key, stream, (uint64_t)(2 * index + 1)));
}

static void write_side(mixt__bytes *text, mixt__span *line, const char *words)
{
    int64_t size = (int64_t)strlen(words);
    memcpy(text->bytes + text->size, words, (size_t)size);
    *line = (mixt__span){text->bytes + text->size, size};
    text->size += size;
}

mixt_status mixt__pairs_draw(mixt_data *data, mixt__part part, mixt__pairs *p)
{
    static const int64_t counts[MIXT_PART_COUNT] = {DRAWN_TRAIN, DRAWN_VAL, DRAWN_TEST, DRAWN_TRAIN};
    int64_t count = data->options.samples ? data->options.samples : counts[part];
    uint64_t key = mixt__rng_key(data->options.seed, MIXT_STREAM_PAIRS, (uint64_t)part);
    if (count > 1 << 24)
        return mixt__fail(MIXT_ERROR_CONFIG, "parallel: data.samples=%lld: at most %d", (long long)count, 1 << 24);
    for (int side = 0; side < MIXT_SIDES; side++)
        p->text[side].bytes = mixt__alloc((size_t)(count + 1) * WORDS_ROOM);
    if (!p->text[0].bytes || !p->text[1].bytes || !mixt__pairs_room(p, count))
        return mixt__fail(MIXT_ERROR_MEMORY, "parallel: no memory for %lld pairs", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        char words[WORDS_ROOM];
        int a, b;
        draw_sum(key, MIXT_STREAM_PAIRS, i, &a, &b);
        write_english(words, a, b);
        write_side(&p->text[0], &p->line[0][i], words);
        write_sum(words, a, b, german, (const char *[]){" und ", " sind "});
        write_side(&p->text[1], &p->line[1][i], words);
    }
    return MIXT_OK;
}

mixt_status mixt__sums_write(uint64_t seed, int64_t least, mixt__bytes *text)
{
    uint64_t key = mixt__rng_key(seed, MIXT_STREAM_SUMS, 0);
    *text = (mixt__bytes){.bytes = mixt__alloc((size_t)least + WORDS_ROOM)};
    if (!text->bytes)
        return mixt__fail(MIXT_ERROR_MEMORY, "text: no memory to write %lld bytes", (long long)least);
    for (int64_t i = 0; text->size < least; i++) {
        char *line = (char *)text->bytes + text->size;
        int a, b;
        draw_sum(key, MIXT_STREAM_SUMS, i, &a, &b);
        write_english(line, a, b);
        append(line, "\n");
        text->size += (int64_t)strlen(line);
    }
    return MIXT_OK;
}
