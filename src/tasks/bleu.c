/* BLEU of a corpus against one reference a sentence, by the rules of sacrebleu's defaults: words as its tokenizer "13a"
 * cuts them, n-grams of one to four words clipped by the reference, exponential smoothing, brevity penalty.
 *
 * Numbers are added and multiplied as there, so that scores agree to the last digits.
 */
#include "mixt/tasks/translate.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/names.h"
#include "base/unicode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ORDER = 4 };

/** Text that grows. */
typedef struct buffer {
    char *text;
    int64_t size, capacity;
} buffer;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare translations");
}

static bool put(buffer *b, const char *bytes, int64_t count)
{
    if (b->size + count > b->capacity) {
        int64_t capacity = 2 * b->capacity + count + 256;
        char *text = mixt__realloc(b->text, (size_t)capacity);
        if (!text)
            return false;
        b->text = text;
        b->capacity = capacity;
    }
    memcpy(b->text + b->size, bytes, (size_t)count);
    b->size += count;
    return true;
}

/* ---- words ---- */

/** What Python calls white space. */
static bool is_space(uint32_t code)
{
    return (code >= 0x1c && code <= 0x1f) || (code < MIXT_CODE_INVALID && mixt__code_class_of(code) == MIXT_CODE_SPACE);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_point(char c)
{
    return c == '.' || c == ',';
}

/** Signs that are words by themselves wherever they stand; a blank too. */
static bool is_sign(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
           (c >= ':' && c <= '@') || c == '/';
}

/** A copy with every `from` replaced. */
static bool replace(const buffer *in, const char *from, const char *to, buffer *out)
{
    int64_t length = (int64_t)strlen(from), at = 0;
    out->size = 0;
    while (at < in->size) {
        bool found = in->size - at >= length && !memcmp(in->text + at, from, (size_t)length);
        if (!(found ? put(out, to, (int64_t)strlen(to)) : put(out, in->text + at, 1)))
            return false;
        at += found ? length : 1;
    }
    return true;
}

/** The rules about signs, points and dashes, each over the whole text before the next; two characters that fit one are
 *  not looked at again by it. */
static bool space_out(const buffer *in, int rule, buffer *out)
{
    bool good = true;
    out->size = 0;
    for (int64_t at = 0; at < in->size && good;) {
        char a = in->text[at], b = at + 1 < in->size ? in->text[at + 1] : 0;
        bool two = at + 1 < in->size;
        if (rule == 0 && is_sign(a)) {
            good = put(out, (char[]){' ', a, ' '}, 3);
            at++;
        } else if ((rule == 1 && two && !is_digit(a) && is_point(b)) || (rule == 3 && two && is_digit(a) && b == '-')) {
            good = put(out, (char[]){a, ' ', b, ' '}, 4);
            at += 2;
        } else if (rule == 2 && two && is_point(a) && !is_digit(b)) {
            good = put(out, (char[]){' ', a, ' ', b}, 4);
            at += 2;
        } else {
            good = put(out, &a, 1);
            at++;
        }
    }
    return good;
}

/** Without white space at the end. */
static int64_t stripped(const char *text)
{
    int64_t size = (int64_t)strlen(text), end = 0;
    for (int64_t at = 0; at < size;) {
        int bytes;
        uint32_t code = mixt__utf8_decode((const unsigned char *)text + at, size - at, &bytes);
        at += bytes;
        if (!is_space(code))
            end = at;
    }
    return end;
}

/** The text with blanks around what is a word. @return which of the two buffers holds it; NULL: no memory */
static buffer *cut(const char *text, buffer pair[2])
{
    static const char *const words[][2] = {{"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
                                           {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
    buffer *now = &pair[0], *other = &pair[1];
    now->size = 0;
    if (!put(now, text, stripped(text)))
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!replace(now, words[i][0], words[i][1], other))
            return NULL;
        buffer *t = now;
        now = other;
        other = t;
    }
    other->size = 0;
    if (!put(other, " ", 1) || !put(other, now->text, now->size) || !put(other, " ", 1))
        return NULL;
    for (int rule = 0; rule < 4; rule++) {
        buffer *t = now;
        now = other;
        other = t;
        if (!space_out(now, rule, other))
            return NULL;
    }
    return other;
}

/** Words by number. */
typedef struct sentence {
    int32_t *words;
    int64_t count, capacity;
} sentence;

static bool add_word(sentence *s, mixt__names *names, const char *word, int64_t size)
{
    int64_t number = mixt__names_add(names, word, size);
    if (number < 0 || !mixt__grow((void **)&s->words, &s->capacity, s->count, sizeof *s->words))
        return false;
    s->words[s->count++] = (int32_t)number;
    return true;
}

static mixt_status read_words(const char *text, mixt__names *names, buffer pair[2], sentence *s)
{
    const buffer *b = cut(text, pair);
    if (!b)
        return no_memory();
    int64_t begin = 0;
    s->count = 0;
    for (int64_t at = 0; at < b->size;) {
        int bytes;
        uint32_t code = mixt__utf8_decode((const unsigned char *)b->text + at, b->size - at, &bytes);
        if (is_space(code)) {
            if (at > begin && !add_word(s, names, b->text + begin, at - begin))
                return no_memory();
            begin = at + bytes;
        }
        at += bytes;
    }
    return b->size > begin && !add_word(s, names, b->text + begin, b->size - begin) ? no_memory() : MIXT_OK;
}

/* ---- n-grams ---- */

/** Some words in a row. */
typedef struct gram {
    const int32_t *words;
    int64_t order;
} gram;

static int compare_grams(const void *a, const void *b)
{
    const gram *x = a, *y = b;
    for (int64_t i = 0; i < x->order; i++)
        if (x->words[i] != y->words[i])
            return x->words[i] < y->words[i] ? -1 : 1;
    return 0;
}

static int64_t sort_grams(const sentence *s, int64_t order, gram *grams)
{
    int64_t count = s->count - order + 1;
    for (int64_t i = 0; i < count; i++)
        grams[i] = (gram){s->words + i, order};
    if (count > 1)
        qsort(grams, (size_t)count, sizeof *grams, compare_grams);
    return count > 0 ? count : 0;
}

typedef struct tally {
    int64_t correct[ORDER], total[ORDER], words, reference_words;
} tally;

/** n-grams of a text that its reference has, each as often as there at most: what two sorted lists have in common. */
static mixt_status count_grams(const sentence *text, const sentence *reference, tally *t)
{
    gram *a = mixt__alloc_uninit((size_t)(text->count + 1) * sizeof *a);
    gram *b = mixt__alloc_uninit((size_t)(reference->count + 1) * sizeof *b);
    for (int64_t order = 1; a && b && order <= ORDER; order++) {
        int64_t m = sort_grams(text, order, a), n = sort_grams(reference, order, b);
        t->total[order - 1] += m;
        for (int64_t i = 0, k = 0; i < m && k < n;) {
            int side = compare_grams(&a[i], &b[k]);
            t->correct[order - 1] += side == 0;
            i += side <= 0;
            k += side >= 0;
        }
    }
    t->words += text->count;
    t->reference_words += reference->count;
    mixt_status status = a && b ? MIXT_OK : no_memory();
    mixt__free(a);
    mixt__free(b);
    return status;
}

/* ---- the score ---- */

static void score(const tally *t, mixt_bleu *bleu)
{
    double smooth = 1, sum = 0;
    bool any = false;
    bleu->words = t->words;
    bleu->reference_words = t->reference_words;
    bleu->brevity = t->words >= t->reference_words ? 1
                    : t->words                     ? exp(1 - (double)t->reference_words / (double)t->words)
                                                   : 0;
    for (int n = 0; n < ORDER; n++)
        any = any || t->correct[n];
    for (int n = 0; n < ORDER && any && t->total[n]; n++) {
        if (!t->correct[n])
            smooth *= 2;
        bleu->precisions[n] = t->correct[n] ? 100.0 * (double)t->correct[n] / (double)t->total[n]
                                            : 100.0 / (smooth * (double)t->total[n]);
    }
    for (int n = 0; n < ORDER; n++)
        sum += bleu->precisions[n] > 0 ? log(bleu->precisions[n]) : -9999999999.0;
    bleu->score = any ? bleu->brevity * exp(sum / ORDER) : 0;
}

mixt_status mixt_bleu_of(const char *const *texts, const char *const *references, int64_t count, mixt_bleu *bleu)
{
    MIXT_TRY(mixt__need(bleu));
    *bleu = (mixt_bleu){.sentences = count};
    if (count < 0 || (count && (!texts || !references)))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_bleu_of: %lld texts: expected a count from 0 and both lists",
                          (long long)count);
    tally t = {0};
    mixt__names names = {0};
    buffer pair[2] = {{0}};
    sentence text = {0}, reference = {0};
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; i < count && status == MIXT_OK; i++) {
        if (!texts[i] || !references[i])
            status = mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_bleu_of: text %lld must not be NULL", (long long)i);
        if (status == MIXT_OK)
            status = read_words(texts[i], &names, pair, &text);
        if (status == MIXT_OK)
            status = read_words(references[i], &names, pair, &reference);
        if (status == MIXT_OK)
            status = count_grams(&text, &reference, &t);
    }
    if (status == MIXT_OK)
        score(&t, bleu);
    mixt__free(pair[0].text);
    mixt__free(pair[1].text);
    mixt__free(text.words);
    mixt__free(reference.words);
    mixt__names_free(&names);
    return status;
}
