/* Conversations as data: forms of rows, which tokens are trained, what a template does to earlier answers, cuts, and
 * what is wrong with a file. Bytes are tokens here, so that what is trained can be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"
#include "mixt/mixt.h"

#include <string.h>

enum { ROOM = 4096 };

/** Marks of a template: <u>, <a>, and <e> behind each message. */
#define PLAIN                                                                                                          \
    "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}<e>{% endfor %}"                                           \
    "{% if add_generation_prompt %}<a>{% endif %}"

/** Of a model that thinks: earlier thoughts are dropped, and the last answer gets an empty block where it has none. */
#define THINKS                                                                                                         \
    "{% set ns = namespace(last=0) %}"                                                                                 \
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"           \
    "{% for m in messages %}<{{ m.role[0] }}>"                                                                         \
    "{% if m.role == 'assistant' and loop.index0 > ns.last %}<t>{{ m.thinking or '' }}</t>{% endif %}"                 \
    "{{ m.content }}<e>{% endfor %}"                                                                                   \
    "{% if add_generation_prompt %}<a>{% if enable_thinking is defined and not enable_thinking %}<t></t>{% endif %}"   \
    "{% endif %}"

/** Another end behind the last answer, and a generation prompt that the rendering of an answer does not have. */
#define ENDS                                                                                                           \
    "{% for m in messages %}<{{ m.role[0] }}>{{ m.content | trim }}"                                                   \
    "{% if loop.last and not add_generation_prompt %}</s>{% else %}<e>{% endif %}{% endfor %}"                         \
    "{% if add_generation_prompt %}<a><t>{% endif %}"

/** One that refuses. */
#define STRICT                                                                                                         \
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"                                     \
    "{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}" PLAIN

#define OPTIONS(...)                                                                                                   \
    MIXT_OPTIONS(mixt_data_options, .split = "all", .seq = 1000, .tokenizer = "bytes", .unpacked = true, __VA_ARGS__)

static const char *rows_file(const char *rows)
{
    write_text("rows.jsonl", rows);
    return in_folder("chat:%s/rows.jsonl");
}

/** A sample's text, what is trained of it between brackets. */
static const char *marked(const mixt_data *data, int64_t index)
{
    static char text[3 * ROOM];
    int32_t tokens[ROOM];
    bool trained[ROOM];
    mixt_chat_sample s;
    char *at = text;
    check_ok(mixt_chat_read(data, index, &s, NULL, NULL));
    assert_true(s.count <= ROOM);
    check_ok(mixt_chat_read(data, index, &s, tokens, trained));
    for (int64_t i = 0; i < s.count; i++) {
        if (trained[i] != (i > 0 && trained[i - 1]))
            *at++ = trained[i] ? '[' : ']';
        *at++ = (char)tokens[i];
    }
    if (trained[s.count - 1])
        *at++ = ']';
    *at = 0;
    return text;
}

static void expect(const char *chat_template, mixt_loss_on loss_on, const char *rows, const char *wanted)
{
    mixt_data *data;
    write_text("t.jinja", chat_template ? chat_template : PLAIN);
    mixt_data_options o = OPTIONS(.loss_on = loss_on);
    o.chat_template = chat_template ? in_folder("%s/t.jinja") : NULL;
    check_ok(mixt_data_open_with(rows_file(rows), &o, &data));
    assert_string_equal(marked(data, 0), wanted);
    mixt_data_close(data);
}

#define CHAT(turns) "{\"messages\": [" turns "]}\n"
#define U(text) "{\"role\": \"user\", \"content\": \"" text "\"}"
#define A(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"

static void answers_are_trained(void **state)
{
    const char *two = CHAT(U("hi") "," A("yes") "," U("so") "," A("no"));
    (void)state;
    expect(PLAIN, MIXT_LOSS_ON_ASSISTANT, two, "<u>hi<e><a>[yes<e>]<u>so<e><a>[no<e>]");
    expect(PLAIN, MIXT_LOSS_ON_LAST, two, "<u>hi<e><a>yes<e><u>so<e><a>[no<e>]");
    expect(PLAIN, MIXT_LOSS_ON_ALL, two,
           "<[u>hi<e><a>yes<e><u>so<e><a>no<e>]"); // but the first, which nothing predicts
    expect(PLAIN, MIXT_LOSS_ON_LAST, CHAT(U("hi") "," A("yes") "," U("so")), "<u>hi<e><a>[yes<e>]<u>so<e>");
}

static void all_forms_are_read(void **state)
{
    static const struct {
        const char *form, *rows, *wanted;
        bool plain; // without a template
    } forms[] = {
        {"messages", CHAT(U("q") "," A("r")), "<u>q<e><a>[r<e>]", false},
        {"messages", "{\"conversations\": [" U("q") ", " A("r") "]}", "<u>q<e><a>[r<e>]", false},
        {"prompt_completion", "{\"prompt\": \"1 + 1 =\", \"completion\": \" 2\"}", "1 + 1 =[ 2]", true},
        {"conversational_prompt_completion",
         "{\"prompt\": [" U("q") "], \"completion\": [" A("r") ", " U("s") ", " A("t") "]}",
         "<u>q<e><a>[r<e><u>s<e><a>t<e>]", false},
        {"text", "{\"text\": \"all of it\"}", "a[ll of it]", true},
        {"alpaca", "{\"instruction\": \"add\", \"input\": \"1 2\", \"output\": \"3\", \"text\": \"add 1 2 3\"}",
         "<u>add\n\n1 2<e><a>[3<e>]", false},
        {"alpaca", "{\"instruction\": \"add\", \"input\": \"\", \"output\": \"3\", \"system\": \"be short\"}",
         "<s>be short<e><u>add<e><a>[3<e>]", false},
        {"sharegpt",
         "{\"conversations\": [{\"from\": \"human\", \"value\": \"q\"}, {\"from\": \"gpt\", \"value\": \"r\"}]}",
         "<u>q<e><a>[r<e>]", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        mixt_data *data;
        const mixt_chat_info *info;
        expect(forms[i].plain ? NULL : PLAIN, MIXT_LOSS_ON_ASSISTANT, forms[i].rows, forms[i].wanted);
        char array[1000];
        snprintf(array, sizeof array, "\xef\xbb\xbf [\n %s ,\n%s\n ]\n", forms[i].rows, forms[i].rows);
        write_text("rows.json", array);
        mixt_data_options o = OPTIONS(.chat_template = in_folder("%s/t.jinja"));
        check_ok(mixt_data_open_with(in_folder("%s/rows.json"), &o, &data)); // the kind by the name
        check_ok(mixt_chat_describe(data, &info));
        assert_string_equal(info->form, forms[i].form);
        assert_int_equal(info->samples, 2);
        assert_string_equal(marked(data, 1), forms[i].wanted);
        mixt_data_close(data);
    }
}

static void thoughts_are_not_trained_by_accident(void **state)
{
    (void)state;
    // Without thoughts: the block that the template writes by itself is not the answer's.
    expect(THINKS, MIXT_LOSS_ON_ASSISTANT, CHAT(U("hi") "," A("yes")), "<u>hi<e><a><t></t>[yes<e>]");
    // Of an earlier answer the template drops it: what stands there is trained, and not a letter more.
    expect(THINKS, MIXT_LOSS_ON_ASSISTANT, CHAT(U("hi") "," A("yes") "," U("so") "," A("no")),
           "<u>hi<e><a>[yes<e>]<u>so<e><a><t></t>[no<e>]");
    // Thoughts that the row has are trained where the template keeps them.
    expect(THINKS, MIXT_LOSS_ON_ASSISTANT,
           CHAT(U("hi") ","
                        "{\"role\": \"assistant\", \"content\": \"yes\", \"thinking\": \"hm\"}"
                        "," U("so") ","
                                    "{\"role\": \"assistant\", \"content\": \"no\", \"thinking\": \"well\"}"),
           "<u>hi<e><a>[yes<e>]<u>so<e><a>[<t>well</t>no<e>]");
}

static void ends_that_differ_are_found(void **state)
{
    (void)state;
    expect(ENDS, MIXT_LOSS_ON_ASSISTANT, CHAT(U("hi") "," A(" yes ") "," U("so") "," A("no")),
           "<u>hi<e><a>[yes<]e><u>so<e><a>[no</s>]"); // bytes are tokens: the < of both ends is the same
    expect(ENDS, MIXT_LOSS_ON_LAST, CHAT(U("hi") "," A("\\u0100") "," U("so") "," A("\\u00e9")),
           "<u>hi<e><a>\xc4\x80<e><u>so<e><a>[\xc3\xa9</s>]");
}

/** Opening fails, and says this. */
static void expect_refused(const char *chat_template, const char *rows, const char *says)
{
    mixt_data *data;
    write_text("t.jinja", chat_template ? chat_template : PLAIN);
    mixt_data_options o = OPTIONS(.chat_template = chat_template ? in_folder("%s/t.jinja") : NULL);
    mixt_status status = mixt_data_open_with(rows_file(rows), &o, &data);
    assert_null(data);
    assert_true(status == MIXT_ERROR_DATA || status == MIXT_ERROR_FORMAT || status == MIXT_ERROR_CONFIG);
    if (!strstr(mixt_error_text(), says))
        fail_msg("'%s' does not say '%s'", mixt_error_text(), says);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    const char *good = CHAT(U("q") "," A("r"));
    char rows[2000];
    static const struct {
        const char *second, *says;
    } bad[] = {
        {CHAT(U("q")), "rows.jsonl: line 2: no message of the assistant: there is no answer to learn"},
        {CHAT(A("r") "," U("q")), "rows.jsonl: line 2: roles must alternate"},
        {"{\"prompt\": \"p\", \"completion\": \"c\"}",
         "rows.jsonl: line 2: is of the form prompt_completion, but line 1 of messages"},
        {"{\"prompt\": \"p\"}", "line 2: \"prompt\" without \"completion\""},
        {"{\"prompt\": \"p\", \"chosen\": \"a\", \"rejected\": \"b\"}",
         "line 2: is of the form preference, but line 1 of messages"},
        {"{\"prompt\": \"p\", \"chosen\": \"a\"}", "line 2: \"chosen\" without \"rejected\""},
        {"{\"messages\": 7}", "line 2: \"messages\" must be a list"},
        {"{\"messages\": []}", "line 2: a conversation without messages"},
        {"{\"messages\": [{\"content\": \"x\"}]}", "line 2: message 1 has no \"role\""},
        {"{\"messages\": [{\"role\": \"user\"}]}", "line 2: message 1, of role 'user', has no \"content\""},
        {"{\"messages\": [", "line 2: not JSON"},
        {"[1, 2]", "line 2: a row must be a JSON object"},
        {"{\"speech\": \"x\"}", "line 2: no form that is known"},
        {"{\"messages\": \"\\u0000\"}", "line 2: not JSON: \\u0000"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(rows, sizeof rows, "%s%s\n%s", good, bad[i].second, good);
        expect_refused(STRICT, rows, bad[i].says);
    }
    expect_refused(PLAIN, "\n\n", "rows.jsonl: no rows in it");
    expect_refused(PLAIN, "[{\"text\": \"a\"}, ]", "a comma, and no row behind it");
    expect_refused(PLAIN, "[{\"text\": \"a\"}", "the file ends before its array does");
    expect_refused(PLAIN, "[{\"text\": \"a\"}}, {\"text\": \"b\"}]", "line 1: a '}' that closes nothing");
    expect_refused(PLAIN, "[{\"text\": \"a\"}] x", "there is more behind the array's ']'");
    expect_refused(PLAIN, "[{\"text\": \"a\"},\n\n{\"text\": \"b\" \"c\"}]", "line 3: not JSON");
    expect_refused(NULL, good, "conversations become text by a model's chat template");
    expect_refused(NULL, "{\"text\": \"a\"}", "not one of 1 rows has a token to train");
    expect_refused(PLAIN, "{\"conversations\": [{\"from\": \"me\", \"value\": \"q\"}]}", "turn 1 is from 'me'");
    char *deep = malloc(20000);
    assert_non_null(deep);
    memset(deep, '[', 10000);
    memset(deep + 10000, '{', 9998);
    memcpy(deep + 19998, "\n", 2);
    expect_refused(PLAIN, deep, "rows.jsonl: line 2: the file ends before its array does");
    deep[0] = '{';
    expect_refused(PLAIN, deep, "rows.jsonl: line 1: not JSON");
    free(deep);
    write_file("rows.jsonl", "{\"text\": \"a\0b\"}", 15);
    mixt_data *data;
    mixt_data_options o = OPTIONS(.limit = 0);
    assert_int_equal(mixt_data_open_with(in_folder("chat:%s/rows.jsonl"), &o, &data), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "rows.jsonl"));
    o.vocab = temp_folder;
    o.tokenizer = NULL;
    write_text("rows.jsonl", "{\"text\": \"ab\"}");
    assert_int_equal(mixt_data_open_with(in_folder("chat:%s/rows.jsonl"), &o, &data), MIXT_ERROR_FILE);
    assert_non_null(strstr(mixt_error_text(), "no vocabulary here"));
}

static void long_rows_are_cut(void **state)
{
    mixt_data *data;
    const mixt_chat_info *info;
    int32_t input[8], target[8];
    int64_t valid;
    (void)state;
    mixt_data_options o = OPTIONS(.seq = 7);
    check_ok(mixt_data_open_with(rows_file("{\"prompt\": \"abc\", \"completion\": \"def\"}\n"
                                           "{\"prompt\": \"abcd\", \"completion\": \"efghijk\"}\n"
                                           "{\"prompt\": \"abcdefgh\", \"completion\": \"i\"}\n"
                                           "{\"prompt\": \"a\", \"completion\": \"\"}\n"),
                                 &o, &data));
    check_ok(mixt_chat_describe(data, &info));
    assert_int_equal(info->rows, 4);
    assert_int_equal(info->samples, 2);
    assert_int_equal(info->cut, 2);
    assert_int_equal(info->untrained, 2);
    assert_int_equal(info->lost, 1);
    assert_int_equal(info->tokens, 6 + 8);
    assert_int_equal(info->trained_tokens, 3 + 4);
    assert_int_equal(info->longest, 11);
    assert_string_equal(marked(data, 1), "abcd[efgh]");
    assert_non_null(strstr(mixt_data_describe(data)->warnings, "2 of 4 rows have more than 8 tokens and are cut"));
    check_ok(mixt_data_read(data, 0, 1, input, target, &valid));
    const int32_t wanted[7] = {'a', 'b', 'c', 'd', 'e', 0, 0}, next[7] = {-1, -1, 'd', 'e', 'f', -1, -1};
    assert_memory_equal(input, wanted, sizeof wanted);
    assert_memory_equal(target, next, sizeof next);
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(answers_are_trained, no_leak),
        cmocka_unit_test_teardown(all_forms_are_read, no_leak),
        cmocka_unit_test_teardown(thoughts_are_not_trained_by_accident, no_leak),
        cmocka_unit_test_teardown(ends_that_differ_are_found, no_leak),
        cmocka_unit_test_teardown(what_is_wrong_is_named, no_leak),
        cmocka_unit_test_teardown(long_rows_are_cut, no_leak),
    };
    return cmocka_run_group_tests_name("chat", tests, temp_folder_setup, temp_folder_teardown);
}
