/* Tokenizers against what other implementations make of the same texts (tests/peers/golden_tokens.py), against plain
 * byte-pair encoding, cut anywhere, back to text, and vocabularies that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/threads.h"
#include "data/text/bpe.h"
#include "base/unicode.h"

#define GOLDEN "tests/data/tokens"

/** GPT-2's own vocabulary where there is one; else NULL, and says so. */
static const char *gpt2_folder(void)
{
    static char path[600];
    const char *data = getenv("MIXT_TEST_DATA");
    snprintf(path, sizeof path, "%s/gpt2_bpe", data && *data ? data : "../shared/data");
    if (!access(path, R_OK))
        return path;
    print_message("skipped: no GPT-2 vocabulary in %s (MIXT_TEST_DATA)\n", path);
    return NULL;
}

static mixt_tokenizer *open_kind(const char *name, const char *folder)
{
    mixt_tokenizer *t;
    check_ok(mixt_tokenizer_open(name, folder, &t));
    return t;
}

/* ---- texts of others ---- */

static int64_t parse_hex(const char *hex, size_t length, unsigned char *bytes)
{
    for (size_t i = 0; i + 1 < length; i += 2) {
        unsigned value;
        assert_int_equal(sscanf(hex + i, "%2x", &value), 1);
        bytes[i / 2] = (unsigned char)value;
    }
    return (int64_t)(length / 2);
}

static void check_line(const mixt_tokenizer *t, char *line, bool exact)
{
    unsigned char text[4096];
    size_t length = strcspn(line, " \n");
    int64_t size = *line == '-' ? 0 : parse_hex(line, length, text);
    mixt__tokens found = {0};
    check_ok(mixt__tokenizer_encode(t, text, size, &found));
    char *at = line + length;
    int64_t count = 0;
    for (char *word = strtok(at, " \n"); word; word = strtok(NULL, " \n"), count++)
        if (count >= found.count || found.ids[count] != (uint32_t)strtoul(word, NULL, 10))
            fail_msg("%.*s: token %d is %d, expected %s", (int)length, line, (int)count,
                     count < found.count ? (int)found.ids[count] : -1, word);
    assert_int_equal(count, found.count);
    char *back = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&back, &bytes);
    check_ok(mixt__tokenizer_decode(t, found.ids, found.count, false, stream));
    fclose(stream);
    if (exact) {
        assert_int_equal(bytes, size);
        assert_memory_equal(back, text, bytes);
    }
    free(back);
    mixt__tokens_free(&found);
}

static void check_golden(const char *name, const char *folder, const char *golden, bool exact)
{
    mixt_tokenizer *t = open_kind(name, folder);
    FILE *file = fopen(golden, "r");
    char line[16384];
    int lines = 0;
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); lines++)
        check_line(t, line, exact);
    fclose(file);
    assert_true(lines >= 20);
    mixt_tokenizer_close(t);
}

static void small_vocabulary_as_tiktoken(void **state)
{
    (void)state;
    check_golden("gpt2", GOLDEN, GOLDEN "/small.golden", true);
    check_golden("auto", GOLDEN, GOLDEN "/small.golden", true);
}

static void gpt2_as_tiktoken(void **state)
{
    (void)state;
    if (!gpt2_folder())
        skip();
    check_golden("gpt2", gpt2_folder(), GOLDEN "/gpt2.golden", true);
}

static void wordpiece_as_transformers(void **state)
{
    (void)state;
    check_golden("wordpiece", GOLDEN, GOLDEN "/wordpiece.golden", false);
    check_golden("wordpiece-cased", GOLDEN, GOLDEN "/wordpiece-cased.golden", false);
}

static void wordpiece_joins_words(void **state)
{
    (void)state;
    mixt_tokenizer *t = open_kind("wordpiece", GOLDEN);
    mixt__tokens tokens = {0};
    check_ok(mixt__tokenizer_encode(t, "The  Mills stood.", 17, &tokens));
    char *back = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&back, &bytes);
    check_ok(mixt__tokenizer_decode(t, tokens.ids, tokens.count, false, stream));
    fclose(stream);
    assert_string_equal(back, "the mills stood .");
    free(back);
    uint32_t beyond = (uint32_t)t->size;
    assert_int_equal(mixt__tokenizer_decode(t, &beyond, 1, false, stdout), MIXT_ERROR_DATA);
    mixt__tokens_free(&tokens);
    mixt_tokenizer_close(t);
}

/* ---- one rule, cut anywhere ---- */

enum { SOUP = 6000 };

/** Words, blanks of all kinds and scripts, in random order; with `bytes`, bad UTF-8 near the end. */
static int64_t make_soup(unsigned char *text, uint64_t seed, bool bytes)
{
    static const char *const parts[] = {"the ",         "mill's",   " ",        "  \n",     "\n",
                                        "\t",           "1234",     "天气",     "\xc2\xa0", "é",
                                        "''ll",         "\r\n\r\n", "x",        "!?",       "\xf0\x9f\x98\x80",
                                        "\xe3\x80\x80", "[SEP]",    "e\xcc\x81"};
    mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, 1, 2));
    int64_t size = 0;
    while (size < SOUP - 32) {
        const char *part = parts[mixt__rng_below(&rng, sizeof parts / sizeof parts[0])];
        memcpy(text + size, part, strlen(part));
        size += (int64_t)strlen(part);
        if (bytes && size > SOUP * 3 / 4)
            text[size++] = (unsigned char)mixt__rng_below(&rng, 256);
    }
    return size;
}

static mixt_status gather(void *user, const uint32_t *ids, int64_t count)
{
    mixt__tokens *tokens = user;
    if (!count)
        return MIXT_OK;
    check_ok(mixt__tokens_reserve(tokens, count));
    memcpy(tokens->ids + tokens->count, ids, (size_t)count * sizeof *ids);
    tokens->count += count;
    return MIXT_OK;
}

static void cuts_do_not_show(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "wordpiece", "wordpiece-cased", "bytes"};
    static unsigned char text[SOUP];
    for (int n = 0; n < 8; n++) {
        mixt_tokenizer *t = open_kind(names[n / 2], GOLDEN);
        int64_t size = make_soup(text, (uint64_t)n, n % 2);
        mixt__tokens whole = {0};
        void *worker = NULL;
        if (t->kind->worker_new)
            check_ok(t->kind->worker_new(t, &worker));
        check_ok(t->kind->encode(t, worker, text, size, &whole));
        if (worker)
            t->kind->worker_free(worker);
        for (int64_t chunk = 1; chunk < size; chunk = chunk * 3 + 1) {
            mixt__tokens cut = {0};
            mixt__tokenize_job job = {.tokenizer = t, .text = text, .size = size, .chunk = chunk};
            job.sink = gather;
            job.sink_user = &cut;
            mixt__threads_set(1 + (int)(chunk % 3));
            check_ok(mixt__tokenize(&job));
            assert_int_equal(cut.count, whole.count);
            assert_memory_equal(cut.ids, whole.ids, (size_t)whole.count * sizeof *whole.ids);
            mixt__tokens_free(&cut);
        }
        mixt__tokens_free(&whole);
        mixt_tokenizer_close(t);
    }
    mixt__threads_set(0);
}

/* ---- merging against the definition ---- */

/** The definition: the lowest rank, leftmost, again and again. */
static int merge_plainly(const mixt__bpe *bpe, const unsigned char *piece, int size, uint32_t *ids)
{
    int count = size;
    for (int i = 0; i < size; i++)
        ids[i] = bpe->byte_ids[piece[i]];
    for (;;) {
        const mixt__bpe_merge *best = NULL;
        int at = 0;
        for (int i = 0; i + 1 < count; i++)
            for (uint64_t s = 0; s <= bpe->mask; s++)
                if (bpe->slots[s].pair == ((uint64_t)ids[i] << 32 | ids[i + 1]) + 1 &&
                    (!best || bpe->slots[s].rank < best->rank)) {
                    best = &bpe->slots[s];
                    at = i;
                }
        if (!best)
            return count;
        ids[at] = best->id;
        memmove(ids + at + 1, ids + at + 2, (size_t)(count - at - 2) * sizeof *ids);
        count--;
    }
}

static void merges_follow_the_definition(void **state)
{
    (void)state;
    mixt_tokenizer *t = open_kind("gpt2", GOLDEN);
    mixt__bpe_worker *worker;
    mixt__rng rng = mixt__rng_start(mixt__rng_key(11, 0, 0));
    check_ok(mixt__bpe_worker_new(&worker));
    for (int round = 0; round < 60; round++) {
        unsigned char piece[160];
        uint32_t expected[160];
        int size = 1 + (int)mixt__rng_below(&rng, round % 2 ? 160 : 20);
        for (int i = 0; i < size; i++)
            piece[i] = (unsigned char)"theanrisd e"[mixt__rng_below(&rng, round % 3 ? 8 : 11)];
        int count = merge_plainly(t->state, piece, size, expected);
        for (int again = 0; again < 2; again++) { // the second time from the cache
            mixt__tokens tokens = {0};
            check_ok(mixt__bpe_encode(t->state, worker, piece, size, &tokens));
            assert_int_equal(tokens.count, count);
            assert_memory_equal(tokens.ids, expected, (size_t)count * sizeof *expected);
            mixt__tokens_free(&tokens);
        }
    }
    mixt__bpe_worker_free(worker);
    mixt_tokenizer_close(t);
}

static void random_bytes_come_back(void **state)
{
    (void)state;
    mixt_tokenizer *t = open_kind("gpt2", GOLDEN);
    enum { SIZE = 50000 };
    static unsigned char bytes[SIZE];
    mixt__rng rng = mixt__rng_start(mixt__rng_key(5, 0, 0));
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (unsigned char)(i < SIZE / 2 ? mixt__rng_below(&rng, 256) : 'a');
    mixt__tokens tokens = {0};
    check_ok(mixt__tokenizer_encode(t, bytes, SIZE, &tokens));
    char *back = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&back, &size);
    check_ok(mixt__tokenizer_decode(t, tokens.ids, tokens.count, false, stream));
    fclose(stream);
    assert_int_equal(size, SIZE);
    assert_memory_equal(back, bytes, SIZE);
    free(back);
    mixt__tokens_free(&tokens);
    mixt_tokenizer_close(t);
}

/* ---- Unicode ---- */

static void utf8_is_strict(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xc0\xaf",
                                      "\xc1\xbf",
                                      "\xc3",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe4\xb8",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff"};
    int bytes;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t size = (int64_t)strlen(bad[i]);
        assert_int_equal(mixt__utf8_decode((const unsigned char *)bad[i], size, &bytes), MIXT_CODE_INVALID);
        assert_int_equal(bytes, 1);
        assert_int_equal(mixt__utf8_valid((const unsigned char *)bad[i], size), 0);
    }
    for (uint32_t code = 0; code < MIXT_CODE_INVALID; code += code < 0x3000 ? 1 : 61) {
        unsigned char text[MIXT_UTF8_MAX];
        if (code >= 0xd800 && code < 0xe000)
            continue;
        int written = mixt__utf8_encode(code, text);
        assert_int_equal(mixt__utf8_decode(text, written, &bytes), code);
        assert_int_equal(bytes, written);
    }
}

static void classes_are_unicode(void **state)
{
    (void)state;
    static const struct {
        uint32_t code;
        mixt__code_class kind;
    } known[] = {{'a', MIXT_CODE_LETTER},     {'5', MIXT_CODE_NUMBER},    {' ', MIXT_CODE_SPACE},
                 {0x85, MIXT_CODE_SPACE},     {0xa0, MIXT_CODE_SPACE},    {0x1c, MIXT_CODE_CONTROL},
                 {0xb2, MIXT_CODE_NUMBER},    {0xe9, MIXT_CODE_LETTER},   {0x301, MIXT_CODE_MARK},
                 {0x4e2d, MIXT_CODE_LETTER},  {0x663, MIXT_CODE_NUMBER},  {0x2014, MIXT_CODE_PUNCTUATION},
                 {0x3000, MIXT_CODE_SPACE},   {0x1f600, MIXT_CODE_OTHER}, {'$', MIXT_CODE_OTHER},
                 {0x200b, MIXT_CODE_CONTROL}, {0x378, MIXT_CODE_OTHER},   {0x10ffff, MIXT_CODE_OTHER},
                 {0x16100, MIXT_CODE_LETTER}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(mixt__code_class_of(known[i].code), known[i].kind);
    uint32_t folded[MIXT_FOLD_MAX];
    assert_int_equal(mixt__code_fold(0xc9, folded), 1); // É
    assert_int_equal(folded[0], 'e');
    assert_int_equal(mixt__code_fold(0x301, folded), 0);
    assert_int_equal(mixt__code_fold(0xd55c, folded), 3); // 한
    assert_int_equal(folded[0] == 0x1112 && folded[1] == 0x1161 && folded[2] == 0x11ab, 1);
}

/* ---- vocabularies that are none ---- */

/** The small vocabulary's file with one part replaced, in the folder. */
static void write_changed(const char *name, const char *from, const char *to)
{
    char path[256];
    static char text[20000], changed[20000];
    snprintf(path, sizeof path, GOLDEN "/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    char *at = from ? strstr(text, from) : NULL;
    assert_true(!from || at);
    if (at)
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(name, at ? changed : text);
}

static void expect_refused(const char *kind, mixt_status expected, const char *words)
{
    mixt_tokenizer *t;
    mixt_status status = mixt_tokenizer_open(kind, temp_folder, &t);
    if (status != expected || t || !strstr(mixt_error_text(), words))
        fail_msg("expected \"%s\", got %s: %s", words, mixt_status_text(status), mixt_error_text());
}

static void bad_vocabularies_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *from, *to, *words;
    } cases[] = {
        {"encoder.json", "{", "[", "not valid JSON"},
        {"encoder.json", "\": 300,", "\": 301,", "twice"},
        {"encoder.json", "\": 300,", "\": 100000,", "needs an id from 0 to"},
        {"encoder.json", "\": 300,", "\": -1,", "needs an id from 0 to"},
        {"encoder.json", "\": 300,", "\": \"300\",", "needs an id from 0 to"},
        {"encoder.json", "\": 300,", "\": 3e2,", "needs an id from 0 to"},
        {"encoder.json", "\"A\"", "\"AAAA\"", "no token for byte 0x41"},
        {"encoder.json", "\"A\"", "\"\"", "empty"},
        {"encoder.json", "\"A\"", "\"B\"", "not valid JSON"}, // twice
        {"vocab.bpe", "#version: 0.2\n", "#version: 0.2\nq zz\n", "vocab.bpe:2: 'q zz' names not in the vocabulary"},
        {"vocab.bpe", "#version: 0.2\n", "#version: 0.2\nq z\n", "not in the vocabulary"},
        {"vocab.bpe", "#version: 0.2\n", "#version: 0.2\nabc\n", "vocab.bpe:2: expected two tokens"},
        {"vocab.bpe", "#version: 0.2\n", "#version: 0.2\na b c\n", "vocab.bpe:2: expected two tokens"},
        {"vocab.bpe", "#version: 0.2\n", "#version: 0.2\n a\n", "vocab.bpe:2: expected two tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_changed("encoder.json", NULL, NULL);
        write_changed("vocab.bpe", NULL, NULL);
        write_changed(cases[i].file, cases[i].from, cases[i].to);
        expect_refused("gpt2", MIXT_ERROR_FORMAT, cases[i].words);
    }
    write_text("encoder.json", "[1, 2]");
    expect_refused("gpt2", MIXT_ERROR_FORMAT, "expected an object");
    write_text("encoder.json", "{\"a\": 0}");
    expect_refused("gpt2", MIXT_ERROR_FORMAT, "expected an object of 256");
    unlink(in_folder("%s/vocab.bpe"));
    expect_refused("gpt2", MIXT_ERROR_FILE, "has no vocab.bpe");
    expect_refused("wordpiece", MIXT_ERROR_FILE, "has no vocab.txt");
    expect_refused("auto", MIXT_ERROR_FILE, "no vocabulary here");
    expect_refused("sentencepiece", MIXT_ERROR_CONFIG, "there are bytes, gpt2, wordpiece");
    write_changed("vocab.txt", "[UNK]\n", "");
    expect_refused("wordpiece", MIXT_ERROR_FORMAT, "has no token [UNK]");
    write_changed("vocab.txt", "[CLS]\n", "\n");
    expect_refused("wordpiece", MIXT_ERROR_FORMAT, "vocab.txt:3: an empty line");
    write_changed("vocab.txt", "[CLS]\n", "[PAD]\n");
    expect_refused("wordpiece", MIXT_ERROR_FORMAT, "vocab.txt:3: '[PAD]' is there twice");
    mixt_tokenizer *t;
    assert_int_equal(mixt_tokenizer_open("gpt2", "", &t), MIXT_ERROR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_vocabulary_as_tiktoken, NULL, no_leak),
        cmocka_unit_test_setup_teardown(gpt2_as_tiktoken, NULL, no_leak),
        cmocka_unit_test_setup_teardown(wordpiece_as_transformers, NULL, no_leak),
        cmocka_unit_test_setup_teardown(wordpiece_joins_words, NULL, no_leak),
        cmocka_unit_test_setup_teardown(cuts_do_not_show, NULL, no_leak),
        cmocka_unit_test_setup_teardown(merges_follow_the_definition, NULL, no_leak),
        cmocka_unit_test_setup_teardown(random_bytes_come_back, NULL, no_leak),
        cmocka_unit_test(utf8_is_strict),
        cmocka_unit_test(classes_are_unicode),
        cmocka_unit_test_setup_teardown(bad_vocabularies_are_refused, NULL, no_leak),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
