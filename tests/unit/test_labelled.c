/* Labelled texts: records and quotes, columns, classes, learned words, padding, and what is wrong with a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"
#include "mixt/mixt.h"

#include <string.h>

enum { LONGEST = 64 };

/** Text `index` with its label, as arrays. */
typedef struct sample {
    int32_t tokens[LONGEST], length, label;
    float mask[LONGEST];
} sample;

static sample read_sample(const mixt_data *data, int64_t index)
{
    const mixt_data_info *info = mixt_data_describe(data);
    static char input[4096];
    sample s = {0};
    int64_t valid;
    assert_true(info->arrays[0].elements <= LONGEST && mixt_data_input_bytes(data, 1) <= sizeof input);
    check_ok(mixt_data_read(data, index, 1, input, &s.label, &valid));
    memcpy(s.tokens, input, (size_t)info->arrays[0].elements * 4);
    memcpy(&s.length, input + mixt_data_array_at(data, 1, 1), 4);
    memcpy(s.mask, input + mixt_data_array_at(data, 1, 2), (size_t)info->arrays[0].elements * 4);
    return s;
}

/** What a text of bytes says; of other vocabularies nothing is known here. */
static void expect(const mixt_data *data, int64_t index, const char *text, int32_t label)
{
    sample s = read_sample(data, index);
    char has[LONGEST + 1] = "";
    for (int32_t i = 0; i < s.length; i++)
        has[i] = (char)s.tokens[i];
    assert_string_equal(has, text);
    assert_int_equal(s.label, label);
}

#define BYTES(...) MIXT_OPTIONS(mixt_data_options, .tokenizer = "bytes", .seq = LONGEST, .split = "all", __VA_ARGS__)

static void all_forms_are_read(void **state)
{
    static const struct {
        const char *name, *text, *column, *labels;
    } forms[] = {
        {"a.tsv", "sentence\tlabel\na \"fine\" film\t1\n\"bad\t0\n", NULL, NULL},
        {"a.tsv",
         "\xef\xbb\xbf"
         "a \"fine\" film\t1\r\n\r\n\"bad\t0\r\n",
         NULL, NULL},
        {"a.csv", "label,text\n1,\"a \"\"fine\"\" film\"\n0,\"\"\"bad\"\n", NULL, NULL},
        {"a.csv", "id;what;kind\n7;a \"fine\" film;1\n8;\"\"\"bad\";0", "what", "kind"},
        {"a.csv", "1,x,a \"fine\" film\n0,y,\"\"\"bad\"\n", "3", "1"},
        {"a.txt", "a \"fine\" film\t1\n\"bad\t0\n", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char spec[64];
        write_text(forms[i].name, forms[i].text);
        snprintf(spec, sizeof spec, "labelled:%%s/%s", forms[i].name);
        mixt_data *data = open_ok(spec, BYTES(.text = forms[i].column, .labels = forms[i].labels));
        assert_int_equal(mixt_data_describe(data)->samples, 2);
        assert_int_equal(mixt_data_describe(data)->classes, 2);
        expect(data, 0, "a \"fine\" film", 1);
        expect(data, 1, "\"bad", 0);
        mixt_data_close(data);
    }
}

static void fields_in_quotes_hold_anything(void **state)
{
    (void)state;
    write_text("q.csv", "text,label\n\"one, two\nand # three\",yes\n#no comment,no\n");
    mixt_data *data = open_ok("labelled:%s/q.csv", BYTES());
    const mixt_data_info *info = mixt_data_describe(data);
    expect(data, 0, "one, two\nand # three", 1);
    expect(data, 1, "#no comment", 0);
    assert_string_equal(info->class_names[0], "no");
    assert_string_equal(info->class_names[1], "yes");
    mixt_data_close(data);
}

static void words_are_learned_from_the_training_part(void **state)
{
    (void)state;
    write_text("train.tsv", "sentence\tlabel\nA film , a FILM\t0\nthe end of a film\t1\nthe end\t1\nodd\t0\n");
    write_text("dev.tsv", "sentence\tlabel\na film odd unheard\t1\n");
    mixt_data *train = open_ok("%s", MIXT_OPTIONS(mixt_data_options, .split = "train", .seq = LONGEST));
    mixt_data *alone = open_ok("labelled:%s", MIXT_OPTIONS(mixt_data_options, .split = "val", .seq = LONGEST));
    mixt_data *val =
        open_ok("labelled:%s", MIXT_OPTIONS(mixt_data_options, .split = "val", .like = train, .seq = LONGEST));
    const mixt_data_info *info = mixt_data_describe(train);
    assert_string_equal(info->kind, "labelled");
    assert_int_equal(info->samples, 4);           // dev.tsv: nothing is held out
    assert_int_equal(info->arrays[0].ids, 5 + 4); // [PAD] [UNK] [CLS] [SEP] [MASK]; a film end the, each twice at least
    assert_int_equal(info->arrays[0].dims[0], 7); // the longest of training, with [CLS] and [SEP]
    const int32_t wanted[] = {2, 5, 6, 1, 5, 6, 3}, odd[] = {2, 5, 6, 1, 1, 3, 0};
    sample s = read_sample(train, 0);
    assert_memory_equal(s.tokens, wanted, sizeof wanted);
    const mixt_data *sets[] = {alone, val};
    for (int i = 0; i < 2; i++) {
        s = read_sample(sets[i], 0);
        assert_memory_equal(s.tokens, odd, sizeof odd);
        assert_int_equal(s.length, 6);
        for (int k = 0; k < 7; k++)
            assert_true(s.mask[k] == (k < 6 ? 1.0f : 0.0f));
        assert_int_equal(mixt_data_describe(sets[i])->arrays[0].dims[0], 7);
    }
    mixt_data_close(train); // whose tokenizer the other one goes on using
    s = read_sample(val, 0);
    assert_memory_equal(s.tokens, odd, sizeof odd);
    mixt_data_close(val);
    mixt_data_close(alone);
}

static void parts_of_one_file_are_apart(void **state)
{
    static const char *const parts[] = {"train", "val", "test"};
    char text[4000];
    size_t used = 0;
    int64_t count = 0, sum = 0;
    (void)state;
    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "number %d\t%d\n", i, i % 4);
    write_text("one.tsv", text);
    for (int p = 0; p < 3; p++) {
        mixt_data *data = open_ok("labelled:%s/one.tsv", MIXT_OPTIONS(mixt_data_options, .split = parts[p], .test = 0.2,
                                                                      .tokenizer = "bytes"));
        const mixt_data_info *info = mixt_data_describe(data);
        assert_int_equal(info->classes, 4);
        for (int64_t i = 0; i < info->samples; i++) {
            sample s = read_sample(data, i);
            for (int32_t k = 7; k < s.length; k++)
                s.tokens[7] = k == 7 ? s.tokens[7] - '0' : s.tokens[7] * 10 + s.tokens[k] - '0';
            assert_int_equal(s.tokens[7] % 4, s.label);
            sum += s.tokens[7];
        }
        count += info->samples;
        mixt_data_close(data);
    }
    assert_int_equal(count, 100);
    assert_int_equal(sum, 4950);
}

static void long_texts_are_cut_and_told(void **state)
{
    (void)state;
    write_text("l.tsv", "one two three four five\t0\none two\t1\n");
    mixt_data *data = open_ok("labelled:%s/l.tsv", MIXT_OPTIONS(mixt_data_options, .split = "all", .seq = 4));
    sample s = read_sample(data, 0);
    assert_int_equal(s.length, 4);
    assert_int_equal(s.tokens[0], 2); // [CLS] and [SEP] stay
    assert_int_equal(s.tokens[3], 3);
    assert_non_null(strstr(mixt_data_describe(data)->warnings, "1 of 2 texts have more than 4 tokens"));
    mixt_data_close(data);
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *name, *text, *words;
        mixt_status status;
    } cases[] = {
        {"w.tsv", "", "the file is empty", MIXT_ERROR_FORMAT},
        {"w.tsv", "\n\r\n", "no line with text", MIXT_ERROR_FORMAT},
        {"w.tsv", "sentence\tlabel\n", "only a header line", MIXT_ERROR_FORMAT},
        {"w.tsv", "a\t0\nb\n", "line 2 has 1 field, those before 2", MIXT_ERROR_DATA},
        {"w.tsv", "alone\n", "line 1 has 1 field: expected a text and its label", MIXT_ERROR_DATA},
        {"w.tsv", "a\t0\n\t1\n", "line 2, column 1: no text", MIXT_ERROR_DATA},
        {"w.tsv", "a\t0\nb\t\n", "line 2, column 2: '': the label is missing", MIXT_ERROR_DATA},
        {"w.tsv", "a\t0\nb\tNaN\n", "line 2, column 2: 'NaN': the label is missing", MIXT_ERROR_DATA},
        {"w.csv", "a,0\n\"b,1\n", "line 2, column 1: the quote that opens the field is never closed", MIXT_ERROR_DATA},
        {"w.csv", "a,0\n\"b\" c,1\n", "line 2, column 1: text after the closing quote", MIXT_ERROR_DATA},
        {"w.csv", "a,0\nb,1,2\n", "line 2 has 3 fields, those before 2", MIXT_ERROR_DATA},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char spec[64];
        write_text(cases[i].name, cases[i].text);
        snprintf(spec, sizeof spec, "labelled:%%s/%s", cases[i].name);
        expect_failure(spec, MIXT_OPTIONS(mixt_data_options, .split = "all"), cases[i].status, cases[i].words);
    }
    write_text("c.tsv", "sentence\tlabel\na\t0\nb\t1\n");
    expect_failure("labelled:%s/c.tsv", MIXT_OPTIONS(mixt_data_options, .text = "words"), MIXT_ERROR_CONFIG,
                   "no column 'words' for the text (data.text)");
    expect_failure("labelled:%s/c.tsv", MIXT_OPTIONS(mixt_data_options, .labels = "3"), MIXT_ERROR_CONFIG,
                   "no column '3' for the label (data.labels)");
    expect_failure("labelled:%s/c.tsv", MIXT_OPTIONS(mixt_data_options, .labels = "1", .text = "sentence"),
                   MIXT_ERROR_CONFIG, "column 1 cannot be both text and label");
    expect_failure("labelled:%s/c.tsv", MIXT_OPTIONS(mixt_data_options, .mask = 0.15), MIXT_ERROR_CONFIG, "data.mask");
    expect_failure("labelled:%s/c.tsv", MIXT_OPTIONS(mixt_data_options, .target = MIXT_TARGET_VALUES),
                   MIXT_ERROR_CONFIG, "targets are classes");
    expect_failure("csv:%s/c.tsv", MIXT_OPTIONS(mixt_data_options, .text = "sentence"), MIXT_ERROR_CONFIG,
                   "'text' is not for csv");
    write_text("train.tsv", "a b\tx\nc d\ty\n");
    write_text("val.tsv", "a b\tz\n");
    expect_failure("labelled:%s", MIXT_OPTIONS(mixt_data_options, .split = "val"), MIXT_ERROR_DATA,
                   "val.tsv: line 1, column 2: label 'z' is not a class of the training part");
    write_text("val.tsv", "a b\t7\n");
    write_text("train.tsv", "a b\t0\nc d\t1\n");
    expect_failure("labelled:%s", MIXT_OPTIONS(mixt_data_options, .split = "val"), MIXT_ERROR_DATA,
                   "label '7' is past the classes that there are");
    expect_failure("labelled:%s", MIXT_OPTIONS(mixt_data_options, .split = "test"), MIXT_ERROR_UNSUPPORTED,
                   "has no test part");
}

static void opinions_are_drawn(void **state)
{
    mixt_data *first, *again, *val;
    (void)state;
    check_ok(mixt_data_open("labelled:", &first, .samples = 200, .seed = 3));
    check_ok(mixt_data_open("labelled:", &again, .samples = 200, .seed = 3));
    check_ok(mixt_data_open("labelled:", &val, .samples = 200, .seed = 3, .split = "val", .like = first));
    int good = 0, same = 0;
    for (int64_t i = 0; i < 200; i++) {
        sample a = read_sample(first, i), b = read_sample(again, i), c = read_sample(val, i);
        assert_memory_equal(&a, &b, sizeof a);
        same += !memcmp(&a, &c, sizeof a);
        good += a.label;
    }
    assert_true(good > 60 && good < 140 && same < 20);
    mixt_data_close(first);
    mixt_data_close(again);
    mixt_data_close(val);
}

/** tokenizer.json of WordPiece gives the tokens of vocab.txt. */
static void a_json_of_pieces_is_read(void **state)
{
    static const char text[] = "Hello worlds ! [MASK] \xc3\x89t\xc3\xa9 hellos unheard";
    static const char *const wrong[][2] = {{"\"##\"", "\"@@\""},
                                           {"BertNormalizer", "NFC"},
                                           {"BertPreTokenizer", "Whitespace"},
                                           {"\"strip_accents\": null", "\"strip_accents\": false"}};
    const char *json =
        "{\"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true,"
        " \"strip_accents\": null, \"lowercase\": true}, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"},"
        " \"added_tokens\": [{\"id\": 2, \"content\": \"[CLS]\"}, {\"id\": 4, \"content\": \"[MASK]\"}],"
        " \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"continuing_subword_prefix\": \"##\","
        " \"max_input_chars_per_word\": 100, \"vocab\": {\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3,"
        " \"[MASK]\": 4, \"hello\": 5, \"##s\": 6, \"world\": 7, \"!\": 8, \"ete\": 9}}}";
    const int32_t wanted[] = {5, 7, 6, 8, 4, 9, 5, 6, 1};
    (void)state;
    write_text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n##s\nworld\n!\nete\n");
    write_text("tokenizer.json", json);
    for (int i = 0; i < 2; i++) {
        mixt_tokenizer *tokenizer;
        int32_t *tokens;
        int64_t count;
        check_ok(mixt_tokenizer_open(i ? "json" : "wordpiece", temp_folder, &tokenizer));
        assert_string_equal(mixt_tokenizer_describe(tokenizer).kind, "wordpiece");
        assert_int_equal(mixt_tokenizer_describe(tokenizer).start, 2);
        check_ok(mixt_tokenizer_encode(tokenizer, text, (int64_t)strlen(text), &tokens, &count));
        assert_int_equal(count, 9);
        assert_memory_equal(tokens, wanted, sizeof wanted);
        mixt_tokens_free(tokens);
        mixt_tokenizer_close(tokenizer);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char other[1200];
        const char *at = strstr(json, wrong[i][0]);
        mixt_tokenizer *tokenizer;
        assert_non_null(at);
        snprintf(other, sizeof other, "%.*s%s%s", (int)(at - json), json, wrong[i][1], at + strlen(wrong[i][0]));
        write_text("tokenizer.json", other);
        assert_int_equal(mixt_tokenizer_open("json", temp_folder, &tokenizer), MIXT_ERROR_UNSUPPORTED);
        assert_null(tokenizer);
    }
}

/** All gradients one behind the other. */
static int64_t read_gradients(mixt_trainer *t, float *to)
{
    int64_t count = 0;
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        mixt_param_info info;
        check_ok(mixt_trainer_param(t, i, &info));
        check_ok(mixt_trainer_grad_get(t, i, to + count));
        count += info.count;
    }
    return count;
}

/** What lies in the padding changes neither loss nor gradient, to the bit. */
static void padding_changes_nothing(void **state)
{
    enum { BATCH = 16, ROOM = 1 << 16 };
    static const char *const precisions[] = {"fp32", "bf16", "fp16"}, *const pools[] = {"first", "mean"};
    static float clean[ROOM], dirty[ROOM];
    (void)state;
    for (int i = 0; i < 6; i++) {
        mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
        mixt_data *data;
        check_ok(mixt_data_open("labelled:", &data, .samples = 64, .seq = 40));
        mixt_model *model =
            mixt_zoo_model(context, "bert_classify", data, .layers = 2, .width = 16, .heads = 2, .pool = pools[i % 2]);
        mixt_trainer *t = mixt_trainer_new(model, .batch = BATCH, .precision = precisions[i / 2]);
        check_ok(mixt_trainer_compile(t, data));
        char *input = calloc(1, mixt_data_input_bytes(data, BATCH));
        int32_t target[BATCH], *tokens = (int32_t *)(void *)input;
        int64_t places = mixt_data_describe(data)->input_dims[0], count = 0, padded = 0;
        double losses[2];
        check_ok(mixt_data_batch(data, BATCH, 0, input, target));
        const int32_t *lengths = (const int32_t *)(void *)(input + mixt_data_array_at(data, BATCH, 1));
        for (int round = 0; round < 2; round++) {
            for (int64_t k = 0; round && k < BATCH * places; k++)
                if (k % places >= lengths[k / places]) {
                    tokens[k] = (int32_t)(5 + k % 20);
                    padded++;
                }
            check_ok(mixt_trainer_backward(t, input, target, 1, &losses[round]));
            count = read_gradients(t, round ? dirty : clean);
            check_ok(mixt_trainer_discard(t));
        }
        assert_true(padded > BATCH && count > 1000 && count <= ROOM);
        assert_true(losses[0] == losses[1]);
        assert_memory_equal(clean, dirty, (size_t)count * sizeof *clean);
        free(input);
        mixt_close(context);
        mixt_data_close(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_forms_are_read, no_leak),
        cmocka_unit_test_teardown(fields_in_quotes_hold_anything, no_leak),
        cmocka_unit_test_teardown(words_are_learned_from_the_training_part, no_leak),
        cmocka_unit_test_teardown(parts_of_one_file_are_apart, no_leak),
        cmocka_unit_test_teardown(long_texts_are_cut_and_told, no_leak),
        cmocka_unit_test_teardown(what_is_wrong_is_named, no_leak),
        cmocka_unit_test_teardown(opinions_are_drawn, no_leak),
        cmocka_unit_test_teardown(a_json_of_pieces_is_read, no_leak),
        cmocka_unit_test_teardown(padding_changes_nothing, no_leak),
    };
    return cmocka_run_group_tests_name("labelled", tests, temp_folder_setup, temp_folder_teardown);
}
