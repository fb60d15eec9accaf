/* Parallel text, the vocabulary learned from it, beam search and BLEU: each against something written the plain way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api_fixture.h"
#include "data_files.h"

#include "base/rng.h"
#include "data/text/tokenizer.h"
#include "infer/beam.h"
#include "mixt/mixt.h"

#include <math.h>
#include <sys/stat.h>

/* ---- learning ---- */

enum { WORDS = 400, MERGES = 60, LETTERS = 12 };

/** Words of a text in pieces: what they are cut into so far, and what a token spells. */
typedef struct plain {
    int word[WORDS][LETTERS], length[WORDS];
    char spelling[256 + MERGES][64];
    int count; // of tokens
} plain;

static int how_often(const plain *p, int left, int right)
{
    int sum = 0;
    for (int w = 0; w < WORDS; w++)
        for (int i = 0; i + 1 < p->length[w]; i++)
            sum += p->word[w][i] == left && p->word[w][i + 1] == right;
    return sum;
}

static bool is_spelled(const plain *p, const char *text)
{
    for (int i = 0; i < p->count; i++)
        if (!strcmp(p->spelling[i], text))
            return true;
    return false;
}

/** The most frequent pair whose spelling is new, of the lowest ids; false: none comes up twice. */
static bool best_pair(const plain *p, int best[2])
{
    int most = 1;
    for (int left = 0; left < p->count; left++)
        for (int right = 0; right < p->count; right++) {
            char both[128];
            int count = how_often(p, left, right);
            snprintf(both, sizeof both, "%s%s", p->spelling[left], p->spelling[right]);
            if (count <= most || is_spelled(p, both))
                continue;
            most = count;
            best[0] = left;
            best[1] = right;
        }
    return most > 1;
}

static void join(plain *p, const int pair[2])
{
    char both[64];
    snprintf(both, sizeof both, "%.31s%.31s", p->spelling[pair[0]], p->spelling[pair[1]]);
    memcpy(p->spelling[p->count], both, sizeof both);
    for (int w = 0; w < WORDS; w++) {
        int n = 0;
        for (int i = 0; i < p->length[w]; i++) {
            bool here = i + 1 < p->length[w] && p->word[w][i] == pair[0] && p->word[w][i + 1] == pair[1];
            p->word[w][n++] = here ? p->count : p->word[w][i];
            i += here;
        }
        p->length[w] = n;
    }
    p->count++;
}

/** Words of few letters, so that pairs overlap: "aaab". */
static void draw_words(plain *p, char *text)
{
    p->count = 256;
    for (int i = 1; i < 256; i++)
        p->spelling[i][0] = (char)i;
    for (int w = 0; w < WORDS; w++) {
        uint64_t key = mixt__rng_key(5, 6, (uint64_t)w);
        int letters = 1 + (int)(key % 6);
        p->length[w] = 0;
        if (w)
            p->word[w][p->length[w]++] = ' '; // a blank belongs to the word behind it
        for (int i = 0; i < letters; i++)
            p->word[w][p->length[w]++] = 'a' + (int)(key >> (8 + 4 * i) & 1);
        for (int i = 0; i < p->length[w]; i++)
            *text++ = (char)p->word[w][i];
    }
    *text = 0;
}

static void a_vocabulary_is_the_plain_one(void **state)
{
    static plain p;
    static char text[WORDS * LETTERS + 1], expected[1 << 14], found[1 << 14];
    (void)state;
    temp_folder_make();
    draw_words(&p, text);
    write_text("text", text);
    int64_t made;
    const char *files[] = {temp_path("text")};
    check_ok(mixt_tokenizer_train(files, 1, 257 + MERGES, temp_path("words"), false, NULL, NULL, &made));
    assert_int_equal(made, 257 + MERGES);
    strcpy(expected, "#version: 0.2\n");
    for (int best[2]; p.count < 256 + MERGES;) {
        assert_true(best_pair(&p, best));
        for (int side = 0; side < 2; side++) {
            for (const char *at = p.spelling[best[side]]; *at; at++)
                strcat(expected, *at == ' ' ? "Ġ" : (char[]){*at, 0});
            strcat(expected, side ? "\n" : " ");
        }
        join(&p, best);
    }
    FILE *file = fopen(temp_path("words/vocab.bpe"), "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = 0;
    fclose(file);
    assert_string_equal(found, expected);
    temp_folder_remove();
}

static void a_learned_vocabulary_gives_text_back(void **state)
{
    const char *text = "Zwei Männer \"sehen\" \\ das.\nZwei Männer sehen das nicht: 3,5 % …\n";
    mixt_tokenizer *tokenizer;
    int32_t *tokens;
    int64_t count, size, made;
    mixt_decoder *decoder;
    const char *back;
    (void)state;
    temp_folder_make();
    write_gzip("text.gz", text, strlen(text));
    const char *files[] = {temp_path("text.gz")};
    check_ok(mixt_tokenizer_train(files, 1, 300, temp_path("words"), false, NULL, NULL, &made));
    assert_int_equal(mixt_tokenizer_train(files, 1, 300, temp_path("words"), false, NULL, NULL, NULL), MIXT_ERROR_FILE);
    assert_int_equal(mixt_tokenizer_train(files, 1, 256, temp_path("w"), false, NULL, NULL, NULL), MIXT_ERROR_CONFIG);
    assert_int_equal(mixt_tokenizer_train(files, 0, 300, temp_path("w"), false, NULL, NULL, NULL), MIXT_ERROR_ARGUMENT);
    check_ok(mixt_tokenizer_open(NULL, temp_path("words"), &tokenizer));
    assert_int_equal(mixt_tokenizer_describe(tokenizer).size, made);
    assert_int_equal(mixt_tokenizer_describe(tokenizer).end, made - 1);
    check_ok(mixt_tokenizer_encode(tokenizer, text, (int64_t)strlen(text), &tokens, &count));
    assert_true(count < (int64_t)strlen(text) / 2 + 20);
    check_ok(mixt_decoder_new(tokenizer, false, &decoder));
    check_ok(mixt_decoder_put(decoder, tokens, count, &back, &size));
    assert_string_equal(back, text);
    mixt_decoder_free(decoder);
    mixt_tokens_free(tokens);
    mixt_tokenizer_close(tokenizer);
    temp_folder_remove();
}

/* ---- pairs ---- */

static mixt_data *open_pairs(const char *spec, mixt_data_options options)
{
    mixt_data *data;
    options.source_name = options.source_name ? options.source_name : "en";
    options.target_name = options.target_name ? options.target_name : "de";
    options.vocab_size = 280;
    return mixt_data_open_with(spec, &options, &data) == MIXT_OK ? data : NULL;
}

static void pairs_are_padded_and_shifted(void **state)
{
    int32_t input[64], target[16];
    int64_t valid;
    (void)state;
    temp_folder_make();
    setenv("MIXT_CACHE", temp_path("cache"), 1);
    write_text("train.en", "ab\nx\n\nabcdefgh\n");
    write_gzip("train.de.gz", "c\ny z\nw\nc\n", 10);
    write_text("test_it.en", "ab\n");
    write_text("test_it.de", "c\r\n");
    mixt_data *data =
        open_pairs(in_folder("parallel:%s"), MIXT_OPTIONS(mixt_data_options, .split = "train", .seq = 5, .val = 0));
    if (!data)
        fail_msg("%s", mixt_error_text());
    const mixt_data_info *info = mixt_data_describe(data);
    assert_int_equal(info->samples, 2);
    assert_non_null(strstr(info->warnings, "2 of 4 pairs of the train part are left out"));
    assert_int_equal(info->array_count, 4);
    int32_t end = (int32_t)info->classes - 1;
    check_ok(mixt_data_read(data, 1, 1, input, target, &valid));
    const int32_t *source = input, *length = input + mixt_data_array_at(data, 1, 1) / 4;
    const int32_t *previous = input + mixt_data_array_at(data, 1, 2) / 4;
    assert_memory_equal(source, ((int32_t[]){'x', 0, 0, 0, 0}), 20);
    assert_int_equal(*length, 1);
    assert_memory_equal(previous, ((int32_t[]){end, 'y', ' ', 'z', 0}), 20);
    assert_memory_equal(target, ((int32_t[]){'y', ' ', 'z', end, -1}), 20);
    mixt_data *test =
        open_pairs(in_folder("parallel:%s"), MIXT_OPTIONS(mixt_data_options, .split = "test", .seq = 5, .like = data));
    assert_non_null(test);
    check_ok(mixt_data_read(test, 0, 1, input, target, &valid));
    assert_memory_equal(target, ((int32_t[]){'c', end, -1, -1, -1}), 20);
    mixt_data_close(test);
    mixt_data_close(data);
    temp_folder_remove();
}

static void one_file_has_both_languages(void **state)
{
    int32_t input[64], target[16];
    int64_t valid;
    (void)state;
    temp_folder_make();
    setenv("MIXT_CACHE", temp_path("cache"), 1);
    write_text("pairs.tsv", "1\tab\tc\n2\tx\ty\n3\tq\tr\n4\ts\tt\n");
    mixt_data_options o =
        MIXT_OPTIONS(mixt_data_options, .split = "all", .seq = 4, .source_name = "3", .target_name = "2");
    mixt_data *data = open_pairs(in_folder("parallel:%s/pairs.tsv"), o);
    if (!data)
        fail_msg("%s", mixt_error_text());
    check_ok(mixt_data_read(data, 0, 1, input, target, &valid));
    assert_int_equal(input[0], 'c');
    assert_int_equal(target[1], 'b');
    mixt_data_close(data);
    o.split = "val";
    o.val = 0.25;
    data = open_pairs(in_folder("parallel:%s/pairs.tsv"), o);
    assert_non_null(data);
    assert_int_equal(mixt_data_describe(data)->samples, 1);
    mixt_data_close(data);
    o.source_name = "5";
    assert_null(open_pairs(in_folder("parallel:%s/pairs.tsv"), o));
    assert_non_null(strstr(mixt_error_text(), "line 1 has no field 5"));
    temp_folder_remove();
}

static void what_is_no_pair_of_files_is_named(void **state)
{
    static const struct {
        const char *names[4], *says;
    } cases[] = {
        {{"train.en"}, "has a file for .en but none for .de"},
        {{"train.de"}, "has a file for .de but none for .en"},
        {{"other.en"}, "has no train.en and train.de"},
        {{"train_a.en", "train_b.en", "train.de"}, ": has several train parts: train_a.en, train_b.en;"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        temp_folder_make();
        setenv("MIXT_CACHE", temp_path("cache"), 1);
        for (int k = 0; cases[i].names[k]; k++)
            write_text(cases[i].names[k], "a\n");
        assert_null(open_pairs(in_folder("parallel:%s"), MIXT_OPTIONS(mixt_data_options, .seq = 4)));
        if (!strstr(mixt_error_text(), cases[i].says))
            fail_msg("case %zu: %s", i, mixt_error_text());
        temp_folder_remove();
    }
}

/* ---- beams ---- */

enum { VOCAB = 5, END = 4, STEPS = 4 };

/** What follows a token at a place, as logits. */
static void next_logits(int32_t before, int64_t place, int seed, float *logits)
{
    for (int v = 0; v < VOCAB; v++) {
        uint64_t key = mixt__rng_key((uint64_t)seed, (uint64_t)(before * 31 + place), (uint64_t)v);
        logits[v] = (float)(key % 1000) / 250.0f;
    }
}

static double log_probability(const float *logits, int token)
{
    double total = 0;
    for (int v = 0; v < VOCAB; v++)
        total += exp((double)logits[v]);
    return (double)logits[token] - log(total);
}

/** The best score of all texts that end, by trying each. */
static double best_of_all(int32_t before, int64_t place, double sum, double penalty, int seed)
{
    float logits[VOCAB];
    double best = -INFINITY;
    if (place == STEPS)
        return best;
    next_logits(before, place, seed, logits);
    for (int v = 0; v < VOCAB; v++) {
        double here = sum + log_probability(logits, v);
        double score =
            v == END ? here / pow((double)(place + 1), penalty) : best_of_all(v, place + 1, here, penalty, seed);
        best = score > best ? score : best;
    }
    return best;
}

static void follow(mixt__beams *beams, int64_t rows, int64_t each, int first_seed)
{
    float logits[8 * MIXT_BEAMS_MAX * VOCAB];
    int32_t newest[8 * MIXT_BEAMS_MAX];
    while (!mixt__beams_done(beams)) {
        int64_t place = mixt__beams_length(beams);
        mixt__beams_newest(beams, newest);
        for (int64_t r = 0; r < rows; r++)
            next_logits(newest[r], place, first_seed + (int)(r / each), logits + r * VOCAB);
        mixt__beams_step(beams, logits, VOCAB);
    }
}

/** With a beam for every text that there is nothing is missed; with fewer nothing better can come out. */
static void beams_find_the_best_text(void **state)
{
    (void)state;
    for (int seed = 0; seed < 40; seed += 4)
        for (int wide = 0; wide < 2; wide++) {
            mixt__beam_options o = {4, wide ? MIXT_BEAMS_MAX : 2, 1 - 0.5 * (seed % 3), END, STEPS, VOCAB};
            int64_t longest[] = {STEPS, STEPS, STEPS, 0};
            mixt__beams *beams;
            check_ok(mixt__beams_new(&o, &beams));
            mixt__beams_start(beams, longest);
            follow(beams, 4 * o.beams, o.beams, seed);
            for (int t = 0; t < 3; t++) {
                int64_t length;
                double score, best = best_of_all(END, 0, 0, o.penalty, seed + t);
                bool whole;
                mixt__beams_best(beams, t, &length, &score, &whole);
                if (wide)
                    assert_true(whole && length < STEPS && fabs(score - best) < 1e-5);
                else
                    assert_true(!whole || score < best + 1e-5);
            }
            int64_t none;
            double score;
            bool whole;
            mixt__beams_best(beams, 3, &none, &score, &whole);
            assert_int_equal(none, 0);
            mixt__beams_free(beams);
        }
}

static void one_beam_takes_the_most_probable(void **state)
{
    mixt__beam_options o = {1, 1, 1, END, STEPS, VOCAB};
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        mixt__beams *beams;
        check_ok(mixt__beams_new(&o, &beams));
        mixt__beams_start(beams, (int64_t[]){STEPS});
        follow(beams, 1, 1, seed);
        int64_t length;
        double score;
        bool whole;
        const int32_t *tokens = mixt__beams_best(beams, 0, &length, &score, &whole);
        int32_t before = END;
        for (int64_t i = 0; i < length + whole; i++) {
            float logits[VOCAB];
            int best = 0;
            next_logits(before, i, seed, logits);
            for (int v = 1; v < VOCAB; v++)
                best = logits[v] > logits[best] ? v : best;
            assert_int_equal(best, i < length ? tokens[i] : END);
            before = best;
        }
        assert_true(whole || length == STEPS);
        mixt__beams_free(beams);
    }
}

/* ---- BLEU ---- */

/** Figures of sacrebleu 2.6.0; tests/peers/compare_bleu.py has thousands more. */
static void bleu_is_sacrebleus(void **state)
{
    static const struct {
        const char *texts[2], *references[2];
        double score, brevity;
    } cases[] = {
        {{"the cat sat on the mat."}, {"the cat sat on a mat."}, 48.892302243490086, 1},
        {{"A man, 3.5 m tall - wow!", "Zwei Männer"},
         {"A man, 3.5 m tall, wow!", "Zwei junge Männer sind im Freien."},
         40.94542847604727,
         0.6347364189402819},
        {{"x"}, {"y"}, 0, 1},
        {{"&quot;Hi&quot; 5-6 a/b", "<skipped>."}, {"\"Hi\" 5-6 a / b", "."}, 100, 1},
    };
    mixt_bleu b;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_ok(mixt_bleu_of(cases[i].texts, cases[i].references, cases[i].texts[1] ? 2 : 1, &b));
        assert_true(fabs(b.score - cases[i].score) < 1e-9);
        assert_true(fabs(b.brevity - cases[i].brevity) < 1e-9);
    }
    check_ok(mixt_bleu_of(NULL, NULL, 0, &b));
    assert_true(b.score == 0);
    assert_int_equal(mixt_bleu_of(NULL, NULL, 1, &b), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_bleu_of((const char *[]){NULL}, (const char *[]){"a"}, 1, &b), MIXT_ERROR_ARGUMENT);
}

/* ---- how far it is ---- */

static bool hear(void *user, const mixt_progress *p)
{
    int64_t *most = user;
    assert_int_equal(p->kind, MIXT_PROGRESS_STEP);
    assert_string_equal(p->task, "translating");
    assert_string_equal(p->unit, "sentences");
    assert_int_equal(p->total, 4);
    assert_int_equal(p->done, most[1] + 1);
    return ++most[1] < most[0];
}

static void progress_is_told_and_may_end_it(void **state)
{
    (void)state;
    temp_folder_make();
    write_text("train.en", "ab\ncd\nef\ngh\n");
    write_text("train.de", "c\nd\ne\nf\n");
    const char *const files[] = {temp_path("train.en"), temp_path("train.de")};
    check_ok(mixt_tokenizer_train(files, 2, 257, temp_path("words"), false, NULL, NULL, NULL));
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data;
    mixt_tokenizer *tokenizer;
    mixt_bleu bleu;
    check_ok(mixt_data_open(in_folder("parallel:%s"), &data, .split = "all", .seq = 8, .source_name = "en",
                            .target_name = "de", .vocab = temp_path("words")));
    check_ok(mixt_tokenizer_open(NULL, temp_path("words"), &tokenizer));
    mixt_model *model = mixt_zoo_model(context, "seq2seq", data, .layers = 1, .width = 8, .heads = 1);
    mixt_trainer *trainer = mixt_trainer_new(model, .batch = 4);
    check_ok(mixt_trainer_compile(trainer, data));
    int64_t heard[2] = {9, 0};
    mixt_translate_options o =
        MIXT_OPTIONS(mixt_translate_options, .beams = 1, .batch = 1, .progress = hear, .user = heard);
    check_ok(mixt_translate_score(trainer, tokenizer, data, &o, &bleu));
    assert_int_equal(heard[1], 4);
    heard[0] = 2;
    heard[1] = 0;
    assert_int_equal(mixt_translate_score(trainer, tokenizer, data, &o, &bleu), MIXT_ERROR_STATE);
    assert_int_equal(heard[1], 2);
    mixt_close(context);
    mixt_data_close(data);
    mixt_tokenizer_close(tokenizer);
    temp_folder_remove();
}

/* ---- misuse ---- */

static mixt_value no_reader(mixt_builder *b, mixt_value x)
{
    (void)b;
    return x;
}

/** Options of a model of one's own that do not belong together. @param says part of the message */
static void own_model_is_refused(fixture *f, const mixt_tokenizer *tokenizer, const mixt_translate_options *o,
                                 mixt_status status, const char *says)
{
    mixt_translation t[1];
    mixt_status got = mixt_translate(f->trainer, tokenizer, (const char *const[]){"a"}, 1, o, t);
    if (!strstr(mixt_error_text(), says))
        fail_msg("%s: expected %s", mixt_error_text(), says);
    expect_noted(f, got, status);
}

static void what_is_no_translator_is_refused(void **state)
{
    fixture f = start();
    mixt_tokenizer *bytes;
    mixt_translation t[1];
    mixt_bleu bleu;
    const char *const sentences[] = {"a"};
    (void)state;
    check_ok(mixt_tokenizer_open("bytes", NULL, &bytes));
    assert_int_equal(mixt_translate(NULL, bytes, sentences, 1, NULL, t), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_translate_score(f.trainer, bytes, f.data, NULL, NULL), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_translate(f.trainer, bytes, NULL, 1, NULL, t), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_translate(f.trainer, bytes, sentences, -1, NULL, t), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_translate(f.trainer, bytes, sentences, 1, NULL, t), MIXT_ERROR_UNSUPPORTED);
    expect_noted(
        &f, mixt_translate(f.trainer, bytes, sentences, 1, MIXT_OPTIONS_AT(mixt_translate_options, .beams = 65), t),
        MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_translate_score(f.trainer, bytes, f.data, NULL, &bleu), MIXT_ERROR_UNSUPPORTED);
    own_model_is_refused(&f, bytes, MIXT_OPTIONS_AT(mixt_translate_options, .read = no_reader), MIXT_ERROR_ARGUMENT,
                         "0 positions");
    own_model_is_refused(&f, bytes, MIXT_OPTIONS_AT(mixt_translate_options, .write = no_reader), MIXT_ERROR_ARGUMENT,
                         "set read too");
    own_model_is_refused(&f, bytes, MIXT_OPTIONS_AT(mixt_translate_options, .positions = 8), MIXT_ERROR_ARGUMENT,
                         "set read too");
    own_model_is_refused(&f, bytes, MIXT_OPTIONS_AT(mixt_translate_options, .read = no_reader, .positions = 8),
                         MIXT_ERROR_DATA, "no token that ends a text");
    mixt_translations_free(NULL, 1);
    mixt_tokenizer_close(bytes);
    mixt_close(f.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vocabulary_is_the_plain_one),     cmocka_unit_test(a_learned_vocabulary_gives_text_back),
        cmocka_unit_test(pairs_are_padded_and_shifted),      cmocka_unit_test(one_file_has_both_languages),
        cmocka_unit_test(what_is_no_pair_of_files_is_named), cmocka_unit_test(beams_find_the_best_text),
        cmocka_unit_test(one_beam_takes_the_most_probable),  cmocka_unit_test(bleu_is_sacrebleus),
        cmocka_unit_test(what_is_no_translator_is_refused),  cmocka_unit_test(progress_is_told_and_may_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
