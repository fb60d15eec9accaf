/* Chat templates render as Jinja renders them: small ones with tests/data/templates.json, real ones where the shared
 * data is there. What would not end, or grow without end, is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/files.h"
#include "mixt/mixt.h"
#include "store/json.h"
#include "template/template.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *value = json_load_file(path, JSON_ALLOW_NUL, &error);
    if (!value)
        fail_msg("%s:%d: %s", path, error.line, error.text);
    return value;
}

/** What a template makes of variables, freed with mixt__free; NULL: it failed. */
static char *render(const char *text, size_t size, const json_t *variables)
{
    mixt__template *read;
    char *out = NULL;
    size_t bytes;
    if (mixt__template_read("t", text, size, &read) != MIXT_OK)
        return NULL;
    if (mixt__template_render(read, variables, &out, &bytes) == MIXT_OK)
        assert_int_equal(strlen(out), bytes);
    mixt__template_free(read);
    return out;
}

/** Compares with a row's "rendered", or its "error": true, or the template's own message. */
static bool agrees(const char *text, const json_t *variables, const json_t *row, const char *name)
{
    const char *wanted = json_string_value(json_object_get(row, "rendered"));
    const char *message = json_string_value(json_object_get(row, "error"));
    char *out = render(text, strlen(text), variables);
    bool same = out ? wanted && !strcmp(out, wanted) : !wanted && (!message || !strcmp(mixt_error_text(), message));
    if (!same)
        print_message("%s: %s\n  wanted %s\n", name, out ? out : mixt_error_text(), wanted ? wanted : message);
    mixt__free(out);
    return same;
}

static void test_small(void **state)
{
    (void)state;
    json_t *all = load("tests/data/templates.json"), *cases = json_object_get(all, "cases");
    size_t wrong = 0, index;
    const json_t *row;
    json_array_foreach(cases, index, row)
    {
        const char *text = json_string_value(json_object_get(row, "template"));
        wrong += !agrees(text, json_object_get(all, "variables"), row, text);
    }
    assert_true(json_array_size(cases) > 170);
    assert_int_equal(wrong, 0);
    json_decref(all);
}

static json_t *variables_of(const json_t *row)
{
    static const char *const names[] = {"messages", "add_generation_prompt", "bos_token", "eos_token"};
    json_t *variables = json_pack("{s:n, s:n}", "tools", "documents");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!json_is_null(json_object_get(row, names[i])))
            json_object_set(variables, names[i], json_object_get(row, names[i]));
    return variables;
}

static char *text_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 64 << 10);
    assert_true(fread(text, 1, (64 << 10) - 1, file) > 0);
    fclose(file);
    return text;
}

static void test_real(void **state)
{
    const char *base = getenv("MIXT_TEST_DATA");
    char folder[512], path[1024];
    int files = 0, wrong = 0;
    (void)state;
    snprintf(folder, sizeof folder, "%s/chat_templates", base && *base ? base : "../shared/data");
    DIR *listing = opendir(folder);
    if (!listing)
        skip();
    for (const struct dirent *entry; (entry = readdir(listing));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".jinja") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        char *text = text_of(path);
        snprintf(path + strlen(path) - 6, 8, ".json");
        json_t *rows = load(path), *row;
        size_t index;
        json_array_foreach(rows, index, row)
        {
            json_t *variables = variables_of(row);
            wrong += !agrees(text, variables, row, path);
            json_decref(variables);
        }
        assert_int_equal(json_array_size(rows), 19);
        json_decref(rows);
        free(text);
        files++;
    }
    closedir(listing);
    assert_true(files > 0);
    assert_int_equal(wrong, 0);
}

/** Templates that a hostile model could come with: each is refused within its bounds. */
static void test_bounds(void **state)
{
    static const char *const hostile[][2] = {
        // and a part of what is said of it
        {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "MiB"},
        {"{% set ns = namespace(a='x') %}{% for i in range(99) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}", "MiB"},
        {"{% set ns = namespace(a=['x']) %}{% for i in range(99) %}{% set ns.a = ns.a + ns.a %}{% endfor %}", "MiB"},
        {"{{ 'x' * 999999999999 }}", "steps"},
        {"{{ [1] * 999999999999 }}", "MiB"},
        {"{{ range(999999999) | list }}", "a range of more"},
        {"{% for i in range(99999) %}{{ text }}{% endfor %}", "writes more"},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "inside one another"},
        {"{% macro f() %}{{ f() ~ f() }}{% endmacro %}{{ f() }}", "inside one another"},
        {"{{ (text ~ text).replace('x', text) }}", "MiB"},
        {"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns.a | tojson }}", "not JSON"},
        {"{% set ns = namespace(a=[]) %}{% for i in range(9999) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}",
         "inside one another"},
        {"{% set ns = namespace(a=[]) %}{% for i in range(9999) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a == ns.a "
         "}}",
         "inside one another"},
        {"{{ 9223372036854775807 + 1 }}", "64 bits"},
        {"{{ (-9223372036854775807 - 1) // -1 }}", "64 bits"},
        {"{{ 2 ** 200 }}", "64 bits"},
    };
    char *text = calloc(1, 10001);
    json_t *variables = json_pack("{s:s}", "text", memset(text, 'x', 10000));
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        char *out = render(hostile[i][0], strlen(hostile[i][0]), variables);
        if (out || !strstr(mixt_error_text(), hostile[i][1]))
            fail_msg("%s: %s", hostile[i][0], out ? "was rendered" : mixt_error_text());
    }
    free(text);
    json_decref(variables);
}

/** Nesting of any kind is bounded while a template is read. */
static void test_nesting(void **state)
{
    static const char *const parts[][3] = {{"{{ ", "(", "1"},     {"{{ ", "[", "1"},     {"{{ ", "not ", "1"},
                                           {"{{ ", "-", "1"},     {"{{ 1", "+1", ""},    {"{{ x", ".a", ""},
                                           {"{{ x", "|trim", ""}, {"{{ x", "()", ""},    {"", "{% if 1 %}", ""},
                                           {"{{ ", "{1:", "1"},   {"{{ 1", " and 1", ""}};
    enum { TIMES = 5000 };
    json_t *variables = json_object();
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char *text = calloc(TIMES + 2, 16), *to = text;
        to += sprintf(to, "%s", parts[i][0]);
        for (int j = 0; j < TIMES; j++)
            to += sprintf(to, "%s", parts[i][1]);
        sprintf(to, "%s }}", parts[i][2]);
        assert_null(render(text, strlen(text), variables));
        free(text);
    }
    json_decref(variables);
}

/** Every allocation that fails ends in that error, and nothing is left behind. */
static void test_memory(void **state)
{
    static const char text[] = "{% macro f(a) %}{{ a | upper }}{% endmacro %}{% for m in messages %}{{ f(m.role) ~ m }}"
                               "{% endfor %}";
    json_t *variables = json_pack("{s:[{s:s, s:s}]}", "messages", "role", "user", "content", "Hi");
    size_t before = mixt__alloc_bytes();
    (void)state;
    char *out = render(text, strlen(text), variables);
    assert_string_equal(out, "USER{'role': 'user', 'content': 'Hi'}");
    mixt__free(out);
    assert_int_equal(mixt__alloc_bytes(), before);
    json_decref(variables);
}

static void test_names_line(void **state)
{
    static const char text[] = "{% if a %}\n\n{{ a | nosuch(1) }}{% endif %}";
    static const char wrong[] = "a\nb{{ a.b.c }}";
    json_t *variables = json_object();
    (void)state;
    assert_null(render(text, strlen(text), variables));
    assert_string_equal(mixt_error_text(), "t:3: filter 'nosuch' is not known here");
    assert_null(render(wrong, strlen(wrong), variables));
    assert_string_equal(mixt_error_text(), "t:2: 'a' is undefined");
    assert_null(render("\xff", 1, variables));
    json_decref(variables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),   cmocka_unit_test(test_real),   cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_nesting), cmocka_unit_test(test_memory), cmocka_unit_test(test_names_line),
    };
    setenv("MIXT_NOW", "2026-11-18T12:00:00", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
