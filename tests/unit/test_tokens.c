/* Token files, the cache of them, and samples cut from tokens: what comes out, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"

#include "data/data.h"
#include "data/text/token_cache.h"

#include <glob.h>
#include <sys/stat.h>

#define VOCAB "tests/data/tokens"

static char cache[300];

/* ---- files ---- */

enum { COUNT = 1000 };

static void write_tokens(const char *path, int64_t vocabulary, int64_t count)
{
    mixt__token_writer w;
    mixt__token_facts facts = {.vocabulary = vocabulary, .special = {4, 2, 3, 1, 0}, .fingerprint = 7, .source = 9};
    check_ok(mixt__token_writer_open(&w, path, true, &facts));
    for (int64_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)((i * 31 + 5) % vocabulary);
        check_ok(mixt__token_writer_append(&w, &id, 1));
    }
    check_ok(mixt__token_writer_commit(&w));
}

static void files_come_back(void **state)
{
    (void)state;
    static const int64_t vocabularies[] = {300, 1 << 16, (1 << 16) + 1};
    static const int64_t counts[] = {1, COUNT, MIXT_TOKEN_BLOCK}; // the last: several blocks
    for (int v = 0; v < 3; v++)
        for (int c = 0; c < 3; c++) {
            mixt__token_file file;
            write_tokens(in_folder("%s/a.tokens"), vocabularies[v], counts[c]);
            check_ok(mixt__token_file_open(in_folder("%s/a.tokens"), 0, false, &file));
            assert_int_equal(file.width, v == 2 ? 4 : 2);
            assert_int_equal(file.count, counts[c]);
            assert_int_equal(file.facts.vocabulary, vocabularies[v]);
            assert_int_equal(file.facts.special.mask, 4);
            for (int64_t i = 0; i < file.count; i++)
                assert_int_equal(v == 2 ? ((const uint32_t *)file.ids)[i] : ((const uint16_t *)file.ids)[i],
                                 (i * 31 + 5) % vocabularies[v]);
            mixt__token_file_close(&file);
        }
    mixt__token_writer w;
    mixt__token_facts facts = {.vocabulary = 3};
    assert_int_equal(mixt__token_writer_open(&w, in_folder("%s/a.tokens"), false, &facts), MIXT_ERROR_FILE);
}

static void every_flipped_byte_is_seen(void **state)
{
    (void)state;
    unsigned char bytes[2 * COUNT];
    write_tokens(in_folder("%s/a.tokens"), 300, 200);
    FILE *file = fopen(in_folder("%s/a.tokens"), "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_int_equal(size, 128 + 400);
    mixt__token_file opened;
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= (unsigned char)(1 << i % 8);
        write_file("b.tokens", bytes, size);
        assert_int_not_equal(mixt__token_file_open(in_folder("%s/b.tokens"), 0, false, &opened), MIXT_OK);
        bytes[i] ^= (unsigned char)(1 << i % 8);
    }
    for (size_t cut = 0; cut < size; cut += 7) {
        write_file("b.tokens", bytes, cut);
        assert_int_not_equal(mixt__token_file_open(in_folder("%s/b.tokens"), 0, false, &opened), MIXT_OK);
        assert_non_null(strstr(mixt_error_text(), "b.tokens"));
    }
    write_file("b.tokens", bytes, size);
    check_ok(mixt__token_file_open(in_folder("%s/b.tokens"), 0, false, &opened));
    mixt__token_file_close(&opened);
}

/** What is cut off a file that is mapped: pages of it, where reading raises SIGBUS, or less, where it gives zeros. */
static void a_file_that_is_cut_meanwhile(void **state)
{
    (void)state;
    static const int64_t left[] = {4096, 100000 - 10};
    for (int i = 0; i < 2; i++) {
        mixt_data_options options = MIXT_OPTIONS(mixt_data_options);
        mixt_data *data;
        char spec[400];
        int32_t input[64], target[64];
        write_tokens(temp_path("cut.tokens"), 300, 50000);
        snprintf(spec, sizeof spec, "tokens:%s", temp_path("cut.tokens"));
        options.seq = 64;
        check_ok(mixt_data_open_with(spec, &options, &data));
        int64_t last = mixt_data_describe(data)->samples - 1;
        check_ok(data->kind->sample(data, last, -1, input, target));
        assert_int_equal(truncate(temp_path("cut.tokens"), left[i]), 0);
        assert_int_equal(data->kind->sample(data, last, -1, input, target), MIXT_ERROR_FILE);
        assert_non_null(strstr(mixt_error_text(), "cut.tokens: was truncated while it was read: restore it"));
        mixt_data_close(data);
    }
}

static void raw_tokens_need_a_vocabulary(void **state)
{
    (void)state;
    const uint16_t ids[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 299};
    mixt_data *data;
    write_file("train.bin", ids, sizeof ids);
    assert_int_equal(mixt_data_open(in_folder("tokens:%s/train.bin"), &data, .seq = 2), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "of a model, vocab"));
    assert_int_equal(mixt_data_open(in_folder("tokens:%s"), &data, .seq = 2, .classes = 299), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "token 9 is 299, but the vocabulary has 299"));
    check_ok(mixt_data_open(in_folder("tokens:%s"), &data, .seq = 2, .classes = 300, .val = -1, .in_order = true));
    int32_t input[2], target[2];
    int64_t valid;
    assert_int_equal(mixt_data_describe(data)->samples, 4);
    assert_int_equal(mixt_data_describe(data)->classes, 300);
    check_ok(mixt_data_read(data, 3, 1, input, target, &valid));
    assert_int_equal(input[0] * 100 + input[1] * 10 + target[1], 789);
    mixt_data_close(data);
    write_file("train.bin", ids, 3);
    assert_int_equal(mixt_data_open(in_folder("tokens:%s"), &data, .seq = 1, .classes = 300), MIXT_ERROR_FORMAT);
}

/* ---- text and its cache ---- */

static int calls;

static bool count_calls(void *user, const mixt_progress *p)
{
    (void)user;
    assert_int_equal(p->kind, MIXT_PROGRESS_DATA);
    assert_string_equal(p->task, "tokenising");
    assert_string_equal(p->unit, "bytes");
    assert_non_null(strstr(p->what, "t.txt"));
    assert_true(p->done <= p->total);
    calls++;
    return true;
}

static bool refuse(void *user, const mixt_progress *p)
{
    (void)p;
    ++*(int *)user;
    return false;
}

static mixt_data *open_text(const char *split, double mask, uint64_t seed, const char *tokenizer)
{
    mixt_data *data;
    check_ok(mixt_data_open(in_folder("text:%s/t.txt"), &data, .seq = 16, .vocab = VOCAB, .tokenizer = tokenizer,
                            .split = split, .mask = mask, .seed = seed, .progress = count_calls));
    return data;
}

static void write_story(const char *end)
{
    char text[8192] = "";
    for (int i = 0; i < 60; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "The %d mills stood where two rivers met. ", i);
    strcat(text, end);
    write_text("t.txt", text);
}

static void text_is_tokenised_once(void **state)
{
    (void)state;
    write_story("fin");
    calls = 0;
    mixt_data_close(open_text("train", 0, 1, "gpt2"));
    assert_true(calls > 0);
    calls = 0;
    mixt_data_close(open_text("val", 0, 1, "gpt2"));
    assert_int_equal(calls, 0);
    mixt_data_close(open_text("train", 0, 1, "wordpiece")); // another tokenizer is another file
    assert_true(calls > 0);
    calls = 0;
    write_story("end"); // the same size
    mixt_data_close(open_text("train", 0, 1, "gpt2"));
    assert_true(calls > 0);
}

static void tokenising_ends_when_it_is_told_to(void **state)
{
    int heard = 0;
    mixt_data *data;
    (void)state;
    write_story("ended");
    mixt_status status = mixt_data_open(in_folder("text:%s/t.txt"), &data, .vocab = VOCAB, .tokenizer = "gpt2",
                                        .progress = refuse, .user = &heard);
    assert_int_equal(status, MIXT_ERROR_STATE);
    assert_null(data);
    assert_int_equal(heard, 1);
    assert_non_null(strstr(mixt_error_text(), "t.txt was stopped by the program's progress function"));
    calls = 0;
    mixt_data_close(open_text("train", 0, 1, "gpt2")); // nothing of it was kept
    assert_true(calls > 0);
}

static void a_damaged_cache_is_made_again(void **state)
{
    (void)state;
    glob_t files;
    char pattern[400];
    write_story("damaged");
    mixt_data_close(open_text("train", 0, 1, "gpt2"));
    snprintf(pattern, sizeof pattern, "%s/tokens/*.tokens", cache);
    assert_int_equal(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "r+b");
        fseek(file, 200, SEEK_SET);
        fputs("junk", file);
        fclose(file);
    }
    globfree(&files);
    calls = 0;
    mixt_data_close(open_text("train", 0, 1, "gpt2"));
    assert_true(calls > 0);
    calls = 0;
    mixt_data_close(open_text("train", 0, 1, "gpt2"));
    assert_int_equal(calls, 0);
}

static void windows_are_the_text(void **state)
{
    (void)state;
    write_story("windows");
    mixt_tokenizer *t;
    mixt__tokens all = {0};
    mixt__bytes text;
    check_ok(mixt_tokenizer_open("gpt2", VOCAB, &t));
    check_ok(mixt__bytes_read(in_folder("%s/t.txt"), &text));
    check_ok(mixt__tokenizer_encode(t, text.bytes, text.size, &all));
    mixt_data *train = open_text("train", 0, 3, "gpt2"), *val = open_text("val", 0, 3, "gpt2");
    int64_t held_out = (int64_t)(0.1 * (double)all.count + 0.5), valid;
    int32_t input[16], target[16];
    assert_int_equal(mixt_data_describe(train)->samples, (all.count - held_out - 1) / 16);
    assert_int_equal(mixt_data_describe(train)->classes, t->size);
    check_ok(mixt_data_read(val, 0, 1, input, target, &valid));
    for (int i = 0; i < 16; i++) {
        assert_int_equal(input[i], all.ids[all.count - held_out + i]);
        assert_int_equal(target[i], all.ids[all.count - held_out + i + 1]);
    }
    for (int64_t b = 0; b < 40; b++) { // every crop is a stretch of the training part
        check_ok(mixt_data_batch(train, 1, b, input, target));
        bool found = false;
        for (int64_t at = 0; at + 16 < all.count - held_out && !found; at++) {
            found = true;
            for (int i = 0; i < 16; i++)
                found = found && all.ids[at + i] == (uint32_t)input[i] && all.ids[at + i + 1] == (uint32_t)target[i];
        }
        assert_true(found);
    }
    mixt_data_close(train);
    mixt_data_close(val);
    mixt__tokens_free(&all);
    mixt__bytes_free(&text);
    mixt_tokenizer_close(t);
}

/* ---- masks ---- */

typedef struct mask_counts {
    int64_t hidden, masked, kept, other, body;
} mask_counts;

static void count_masks(const int32_t *input, const int32_t *target, mask_counts *n)
{
    assert_int_equal(input[0], 2);  // [CLS]
    assert_int_equal(input[15], 3); // [SEP]
    assert_int_equal(target[0], -1);
    assert_int_equal(target[15], -1);
    int64_t before = n->hidden;
    for (int i = 1; i < 15; i++) {
        n->body++;
        n->hidden += target[i] >= 0;
        n->masked += target[i] >= 0 && input[i] == 4;
        n->kept += target[i] >= 0 && input[i] == target[i];
        n->other += target[i] >= 0 && input[i] != target[i] && input[i] != 4;
        assert_true(target[i] >= 0 || input[i] != 4); // the text itself has none
    }
    assert_true(n->hidden > before); // every sample has something to learn
}

static mixt_data *open_drawn(const char *split, uint64_t seed, const char *tokenizer)
{
    mixt_data *data;
    bool bytes = !strcmp(tokenizer, "bytes");
    check_ok(mixt_data_open("text:", &data, .seq = 16, .vocab = bytes ? NULL : VOCAB, .tokenizer = tokenizer,
                            .split = split, .seed = seed, .test = 0.1));
    assert_null(mixt_data_describe(data)->warnings);
    return data;
}

/** Without a path mixt writes a text: a function of the seed, with parts as a file has them, by every tokenizer. */
static void a_text_is_drawn(void **state)
{
    (void)state;
    static const char *const tokenizers[] = {"bytes", "gpt2", "wordpiece"};
    static const char *const parts[] = {"train", "val", "test"};
    for (int k = 0; k < 3; k++)
        for (int p = 0; p < 3; p++) {
            mixt_data *one = open_drawn(parts[p], 1, tokenizers[k]), *same = open_drawn(parts[p], 1, tokenizers[k]);
            mixt_data *other = open_drawn(parts[p], 2, tokenizers[k]);
            assert_true(mixt__data_fingerprint(one) == mixt__data_fingerprint(same));
            assert_true(mixt__data_fingerprint(one) != mixt__data_fingerprint(other));
            mixt_data_close(same);
            mixt_data_close(other);
            mixt_data_close(one);
        }
    mixt_data *train = open_drawn("train", 1, "bytes");
    size_t size;
    const char *text = train->kind->raw(train, 0, &size);
    assert_true(size > 300000 && size < 500000);
    assert_non_null(memmem(text, 200, " are ", 5));
    assert_non_null(memmem(text, 400, ".\n", 2));
    mixt_data_close(train);
}

static void masks_are_drawn_anew_and_repeatably(void **state)
{
    (void)state;
    write_story("masks");
    mixt_data *data = open_text("train", 0.25, 1, "wordpiece"), *same = open_text("train", 0.25, 1, "wordpiece"),
              *other = open_text("train", 0.25, 2, "wordpiece");
    mask_counts n = {0};
    int32_t input[16], target[16], input2[16], target2[16];
    int differing = 0;
    for (int64_t b = 0; b < 3000; b++) {
        check_ok(mixt_data_batch(data, 1, b, input, target));
        check_ok(mixt_data_batch(same, 1, b, input2, target2));
        assert_memory_equal(input, input2, sizeof input);
        assert_memory_equal(target, target2, sizeof target);
        check_ok(mixt_data_batch(other, 1, b, input2, target2));
        differing += memcmp(target, target2, sizeof target) != 0;
        count_masks(input, target, &n);
    }
    assert_true(differing > 2900);
    double share = (double)n.hidden / (double)n.body; // 42000 tokens: six deviations are 0.013; one at least adds 0.002
    assert_true(share > 0.237 && share < 0.266);
    assert_true((double)n.masked / (double)n.hidden > 0.775 && (double)n.masked / (double)n.hidden < 0.825);
    assert_true((double)n.kept / (double)n.hidden > 0.08 && (double)n.kept / (double)n.hidden < 0.125);
    assert_true((double)n.other / (double)n.hidden > 0.08 && (double)n.other / (double)n.hidden < 0.12);
    int64_t valid;
    check_ok(mixt_data_read(data, 1, 1, input, target, &valid)); // evaluation: always the same
    check_ok(mixt_data_read(data, 1, 1, input2, target2, &valid));
    assert_memory_equal(input, input2, sizeof input);
    mixt_data_close(data);
    mixt_data_close(same);
    mixt_data_close(other);
}

static void what_cannot_be_masked_is_refused(void **state)
{
    (void)state;
    mixt_data *data;
    write_story("no");
    const char *spec = in_folder("text:%s/t.txt");
    assert_int_equal(mixt_data_open(spec, &data, .vocab = VOCAB, .tokenizer = "gpt2", .mask = 0.15), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "[MASK]"));
    assert_int_equal(mixt_data_open(spec, &data, .mask = 0.15), MIXT_ERROR_CONFIG);
    assert_int_equal(mixt_data_open(spec, &data, .vocab = VOCAB, .tokenizer = "wordpiece", .mask = 0.15, .seq = 2),
                     MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "[CLS]"));
    assert_int_equal(mixt_data_open(spec, &data, .mask = 1), MIXT_ERROR_CONFIG);
    assert_int_equal(mixt_data_open(spec, &data, .vocab = VOCAB, .tokenizer = "gpt2", .seq = 100000), MIXT_ERROR_DATA);
}

static int make_cache(void **state)
{
    temp_folder_setup(state);
    snprintf(cache, sizeof cache, "%s/cache", temp_folder);
    return mkdir(cache, 0700) || setenv("MIXT_CACHE", cache, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_come_back, NULL, no_leak),
        cmocka_unit_test_setup_teardown(every_flipped_byte_is_seen, NULL, no_leak),
        cmocka_unit_test_setup_teardown(a_file_that_is_cut_meanwhile, NULL, no_leak),
        cmocka_unit_test_setup_teardown(raw_tokens_need_a_vocabulary, NULL, no_leak),
        cmocka_unit_test_setup_teardown(text_is_tokenised_once, NULL, no_leak),
        cmocka_unit_test_setup_teardown(a_damaged_cache_is_made_again, NULL, no_leak),
        cmocka_unit_test_setup_teardown(tokenising_ends_when_it_is_told_to, NULL, no_leak),
        cmocka_unit_test_setup_teardown(windows_are_the_text, NULL, no_leak),
        cmocka_unit_test_setup_teardown(a_text_is_drawn, NULL, no_leak),
        cmocka_unit_test_setup_teardown(masks_are_drawn_anew_and_repeatably, NULL, no_leak),
        cmocka_unit_test_setup_teardown(what_cannot_be_masked_is_refused, NULL, no_leak),
    };
    return cmocka_run_group_tests(tests, make_cache, temp_folder_teardown);
}
