/* Policies as text: what is printed reads back to the same, in one form, whatever the locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy_text.h"

#include <glob.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Printed, read and printed again it is the same text and an equal policy; so is a copy. */
static void expect_identity(const mixt_policy *policy)
{
    char *first = print(policy);
    mixt_policy *read, *copy;
    if (mixt_policy_parse(first, "printed", &read) != MIXT_OK)
        fail_msg("%s\n%s", mixt_error_text(), first);
    ok(mixt_policy_copy(policy, &copy));
    char *second = print(read), *third = print(copy);
    assert_string_equal(first, second);
    assert_string_equal(first, third);
    assert_true(mixt_policy_equal(policy, read));
    assert_true(mixt_policy_equal(copy, policy));
    free(first);
    free(second);
    free(third);
    mixt_policy_free(read);
    mixt_policy_free(copy);
}

/* ---- random policies ---- */

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/** Texts that a careless printer or reader gets wrong. */
static const char *const texts[] = {
    "h.*.attn*", "*",           "*.weight", "a: b",  "a#b",      " # c",  "# all",        "\"quoted\"",
    "it's",      "back\\slash", "true",     "No",    "null",     "~",     "1.5",          "0x1f",
    "-3",        "1e5",         "[a-z]",    "{b,c}", "- x",      "? key", "!tag",         "&anchor",
    "%percent",  "@at",         "`tick`",   "|",     ">",        "a\nb",  "tab\there",    " lead",
    "trail ",    "übung",       "日本*",    "😀",     "\xc2\x85", "---",   "...",          "<<",
    "=",         "2024-01-02",  "12:30",    "a,b",   "\x01",     "\x7f",  "\xe2\x80\xa8", "\xef\xbb\xbf",
    "\xc2\xa0",  "yes",
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static const char *draw_text(void)
{
    static char joined[4][256];
    static int next;
    char *text = joined[next++ % 4];
    if (draw(3))
        return texts[draw(TEXTS)];
    snprintf(text, 256, "%s%s%s", texts[draw(TEXTS)], texts[draw(TEXTS)], texts[draw(TEXTS)]);
    return text;
}

static mixt_dtype draw_format(void)
{
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_TF32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    return formats[draw(4)];
}

static mixt_dtype draw_keep(void)
{
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16, MIXT_DTYPE_FP8_E4M3};
    return formats[draw(4)];
}

static float draw_number(double least, double most)
{
    return (float)(least + (most - least) * (double)draw(1000001) / 1e6);
}

static mixt_policy_settings draw_settings(void)
{
    static const char *const words[] = {"auto", "dynamic", "none", "1024", "0.1", "1e-5", "3.4e37", "+7"};
    mixt_policy_settings s = {.loss_scale = draw(2) ? words[draw(8)] : NULL};
    s.scale_init = draw(2) ? draw_number(1e-3, 1e6) : 0;
    s.scale_growth = draw(2) ? draw_number(1, 4) : 0;
    s.scale_backoff = draw(2) ? draw_number(0.001, 0.999) : 0;
    s.scale_floor = draw(2) ? draw_number(1e-6, 1) : 0;
    s.scale_ceiling = draw(2) ? draw_number(1, 1e30) : 0;
    s.scale_interval = draw(2) ? (int64_t)(1 + draw(1u << 30)) << draw(20) : 0;
    s.scale_hysteresis = draw(2) ? (int)(1 + draw(1000)) : 0;
    s.clip = draw(2) ? draw_number(1e-4, 10) : 0;
    s.clip_value = draw(2) ? draw_number(1e-4, 10) : 0;
    return s;
}

/** A value of JSON, which is YAML too, of a random shape; unquoted where YAML gives such a word a type. */
static void draw_value(FILE *stream, int depth)
{
    static const char *const plain[] = {"1",    "-2.5e-3", "true", "null", "~",
                                        "0x10", ".inf",    "word", "no",   "2024-01-02"};
    uint64_t kind = draw(depth > 5 ? 2 : 4), count = draw(4);
    if (kind == 0) {
        fputs(plain[draw(10)], stream);
    } else if (kind == 1) {
        fputc('\'', stream);
        for (const char *t = texts[draw(TEXTS - 10)]; *t; t++) // those that single quotes can hold
            if (*t > ' ' && *t < 0x7f)
                fprintf(stream, *t == '\'' ? "''" : "%c", *t);
        fputc('\'', stream);
    } else {
        fputs(kind == 2 ? "[" : "{", stream);
        for (uint64_t i = 0; i < count; i++) {
            fputs(i ? ", " : "", stream);
            if (kind == 3)
                fprintf(stream, "%s%llu: ", draw(2) ? "k" : "", (unsigned long long)i);
            draw_value(stream, depth + 1);
        }
        fputs(kind == 2 ? "]" : "}", stream);
    }
}

static void draw_evidence(mixt_policy *policy)
{
    char *yaml;
    size_t size;
    FILE *stream = open_memstream(&yaml, &size);
    fputs("{first: ", stream);
    draw_value(stream, 0);
    fputs(", 'second, 2': ", stream);
    draw_value(stream, 0);
    fputs("}", stream);
    fclose(stream);
    if (mixt_policy_set_evidence(policy, yaml) != MIXT_OK)
        fail_msg("%s\n%s", mixt_error_text(), yaml);
    free(yaml);
}

static mixt_policy *draw_policy(void)
{
    mixt_policy *policy;
    ok(mixt_policy_new(draw_format(), draw(2) ? draw_format() : MIXT_DTYPE_NONE, &policy));
    for (uint64_t i = draw(6); i > 0; i--) {
        mixt_policy_rule rule = {.layer = draw(3) ? draw_text() : NULL, .op = draw(2) ? draw_text() : NULL};
        rule.forward = draw_format();
        rule.backward = draw(2) ? draw_format() : MIXT_DTYPE_NONE;
        rule.keep = draw(2) ? draw_keep() : MIXT_DTYPE_NONE;
        ok(mixt_policy_insert(policy, (int64_t)draw((uint64_t)mixt_policy_count(policy) + 1), &rule));
    }
    if (draw(2))
        ok(mixt_policy_set_keep(policy, draw_keep()));
    mixt_policy_settings settings = draw_settings();
    if (draw(2))
        ok(mixt_policy_set_settings(policy, &settings));
    if (draw(2))
        ok(mixt_policy_set_made_by(policy, draw_text()));
    if (draw(2))
        draw_evidence(policy);
    return policy;
}

static void random_policies_read_back(void **unused)
{
    (void)unused;
    const char *given = getenv("MIXT_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 20240613;
    print_message("seed %llu (MIXT_TEST_SEED sets another)\n", (unsigned long long)seed);
    state = seed;
    for (int i = 0; i < 1000; i++) {
        mixt_policy *policy = draw_policy();
        expect_identity(policy);
        mixt_policy_free(policy);
    }
}

static void shipped_policies_read_back(void **unused)
{
    (void)unused;
    static const char *const written[] = {
        "default: bf16\n",
        "\xef\xbb\xbf"
        "default: bf16\n",
        "default: bf16\nrules:\n  - {layer: \"fc.1\", precision: fp32}\n",
        "default: fp16\nrules: []\n",
        "default: bf16\nrules:\n  - layer: \"head*\"   # alone\n    precision: fp32\n",
        "evidence: {}\ndefault: {backward: fp32, forward: bf16}\n",
    };
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        mixt_policy *policy = parse(written[i]);
        expect_identity(policy);
        mixt_policy_free(policy);
    }
    glob_t found = {0};
    int taken = 0;
    assert_int_equal(glob("tests/fuzz/corpus/policy/*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        mixt_policy *policy;
        if (mixt_policy_load(found.gl_pathv[i], &policy) != MIXT_OK)
            continue;
        taken++;
        expect_identity(policy);
        mixt_policy_free(policy);
    }
    globfree(&found);
    assert_true(taken >= 4);
}

/** The text that a policy prints is fixed: files that programs wrote stay as they are. */
static void prints_in_one_form(void **unused)
{
    (void)unused;
    mixt_policy *policy;
    ok(mixt_policy_load("tests/fuzz/corpus/policy/whole.yaml", &policy));
    char *yaml = print(policy);
    assert_string_equal(yaml, "version: 1\n"
                              "made_by: \"search: 3rd round # of 5\"\n"
                              "default: {forward: bf16, backward: fp32}\n"
                              "loss_scale: dynamic\n"
                              "scale_init: 1024\n"
                              "scale_growth: 1.5\n"
                              "scale_backoff: 0.25\n"
                              "scale_interval: 100\n"
                              "scale_floor: 0.5\n"
                              "scale_ceiling: 65536\n"
                              "scale_hysteresis: 2\n"
                              "clip: 1\n"
                              "clip_value: 0.001\n"
                              "rules:\n"
                              "  - layer: \"*.norm\"\n"
                              "    op: layer_norm\n"
                              "    forward: fp32\n"
                              "    backward: tf32\n"
                              "  - op: \"conv*\"\n"
                              "    precision: fp16\n"
                              "evidence:\n"
                              "  runs:\n"
                              "    - a\n"
                              "    - b\n"
                              "    - 3\n"
                              "    - true\n"
                              "    - \"true\"\n"
                              "    - ~\n"
                              "    - 2024-05-06\n"
                              "    - -.inf\n"
                              "  figures:\n"
                              "    loss: 0.25\n"
                              "    steps: 1000\n"
                              "    nested:\n"
                              "      - - 1\n"
                              "        - 2\n"
                              "      - []\n"
                              "      - {}\n"
                              "      - x:\n"
                              "          y:\n"
                              "            - z\n"
                              "  note: \"two\\nlines\\n\"\n"
                              "  \"quoted key: yes\": \"it's\"\n");
    free(yaml);
    ok(mixt_policy_evidence(policy, &yaml));
    assert_memory_equal(yaml, "runs:\n  - a\n", 12);
    free(yaml);
    mixt_policy_free(policy);
}

/** Numbers are the same text where the program's locale writes a comma. */
static void locale_does_not_matter(void **unused)
{
    (void)unused;
    const char *had = setlocale(LC_NUMERIC, NULL);
    bool comma = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL;
    mixt_policy *policy = parse("default: fp16\nloss_scale: 0.5\nclip: 0.25\n");
    char *yaml = print(policy);
    setlocale(LC_NUMERIC, had);
    assert_string_equal(yaml, "version: 1\ndefault: fp16\nloss_scale: 0.5\nclip: 0.25\n");
    if (!comma)
        print_message("no locale de_DE.UTF-8 here: seen in the C locale alone\n");
    free(yaml);
    mixt_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_policies_read_back),
        cmocka_unit_test(shipped_policies_read_back),
        cmocka_unit_test(prints_in_one_form),
        cmocka_unit_test(locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
