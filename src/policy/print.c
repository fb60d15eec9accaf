/* Policies as YAML: each key once, in a fixed order, so that what is printed, read and printed again is the same text.
 */
#include "policy/inside.h"

#include "store/file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- texts ---- */

/** Next character of a UTF-8 text that is known to be valid. */
static uint32_t next_character(const unsigned char **text)
{
    const unsigned char *t = *text;
    int more = *t < 0xc0 ? 0 : *t < 0xe0 ? 1 : *t < 0xf0 ? 2 : 3;
    uint32_t character = more ? *t & (0x3fu >> more) : *t;
    for (int i = 1; i <= more; i++)
        character = character << 6 | (t[i] & 0x3fu);
    *text = t + more + 1;
    return character;
}

/** Characters that a YAML reader refuses or takes for the end of a line. */
static bool needs_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff || c == 0xfffe ||
           c == 0xffff;
}

static void print_quoted(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const unsigned char *begin = at;
        uint32_t c = next_character(&at);
        if (c == '"' || c == '\\')
            fprintf(stream, "\\%c", (int)c);
        else if (c == '\n')
            fputs("\\n", stream);
        else if (needs_escape(c))
            fprintf(stream, c < 0x100 ? "\\x%02X" : "\\u%04X", (unsigned)c);
        else
            fwrite(begin, 1, (size_t)(at - begin), stream);
    }
    fputc('"', stream);
}

static const char plain_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+";

/** Whether what was read without quotes can be written so. */
static bool plain_again(const char *text)
{
    if (!*text || !strcmp(text, "~"))
        return true;
    return strspn(text, plain_letters) == strlen(text) && strcmp(text, "-") && strncmp(text, "--", 2);
}

/** Whether no reader takes a text for a number, true, nothing or a date. */
static bool is_word(const char *text)
{
    static const char *const taken[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (!strcasecmp(text, taken[i]))
            return false;
    return *text && strspn(text, "0123456789-.+") == 0 && strspn(text, plain_letters) == strlen(text);
}

/** @param plain it was without quotes when it was read */
static void print_text(FILE *stream, const char *text, bool plain)
{
    if (plain ? plain_again(text) : is_word(text))
        fputs(text, stream);
    else
        print_quoted(stream, text);
}

/* ---- evidence ---- */

/** What stands behind a key or a dash, up to the end of the line and the lines that belong to it. */
static void print_value(FILE *stream, const mixt__evidence *value, int indent, bool in_list)
{
    if (value->kind == MIXT_EVIDENCE_TEXT || !value->inside) {
        fputs(value->kind != MIXT_EVIDENCE_TEXT || *value->text || !value->plain ? " " : "", stream);
        if (value->kind == MIXT_EVIDENCE_TEXT)
            print_text(stream, value->text, value->plain);
        else
            fputs(value->kind == MIXT_EVIDENCE_MAP ? "{}" : "[]", stream);
        fputc('\n', stream);
        return;
    }
    fputs(in_list ? " " : "\n", stream);
    mixt__evidence_print(stream, value, in_list ? -(indent + 2) : indent + 2);
}

void mixt__evidence_print(FILE *stream, const mixt__evidence *map, int indent)
{
    bool begun = indent < 0; // the first line stands behind a dash
    int spaces = abs(indent);
    for (const mixt__evidence *value = map->inside; value; value = value->next) {
        fprintf(stream, "%*s", begun ? 0 : spaces, "");
        begun = false;
        if (map->kind == MIXT_EVIDENCE_MAP) {
            print_text(stream, value->key, value->key_plain && *value->key);
            fputc(':', stream);
        } else {
            fputc('-', stream);
        }
        print_value(stream, value, spaces, map->kind == MIXT_EVIDENCE_LIST);
    }
}

/* ---- the policy ---- */

static void print_settings(FILE *stream, const mixt_policy *policy, int indent)
{
    char text[MIXT_POLICY_SETTING_TEXT];
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++)
        if (mixt__policy_setting_text(&policy->settings, i, text))
            fprintf(stream, "%*s%s: %s\n", indent, "", mixt_policy_setting(i), text);
}

static void print_rule(FILE *stream, const mixt__policy_rule *rule, int indent)
{
    const char *before = "  - ";
    const struct {
        const char *key, *text;
    } patterns[] = {{"layer", rule->layer}, {"op", rule->op}};
    for (int i = 0; i < 2; i++) {
        if (!patterns[i].text)
            continue;
        fprintf(stream, "%*s%s%s: ", indent, "", before, patterns[i].key);
        print_text(stream, patterns[i].text, false);
        fputc('\n', stream);
        before = "    ";
    }
    if (rule->forward == rule->backward)
        fprintf(stream, "%*s%sprecision: %s\n", indent, "", before, mixt_dtype_name(rule->forward));
    else
        fprintf(stream, "%*s%sforward: %s\n%*s    backward: %s\n", indent, "", before, mixt_dtype_name(rule->forward),
                indent, "", mixt_dtype_name(rule->backward));
    if (rule->keep != MIXT_DTYPE_NONE)
        fprintf(stream, "%*s    keep: %s\n", indent, "", mixt_dtype_name(rule->keep));
}

/** Formats, rules and what goes with them: of a policy, or of what a phase changes. */
static void print_formats(FILE *stream, const mixt_policy *policy, int indent)
{
    const mixt__policy *f = &policy->formats;
    if (f->forward != MIXT_DTYPE_NONE && f->forward == f->backward)
        fprintf(stream, "%*sdefault: %s\n", indent, "", mixt_dtype_name(f->forward));
    else if (f->forward != MIXT_DTYPE_NONE)
        fprintf(stream, "%*sdefault: {forward: %s, backward: %s}\n", indent, "", mixt_dtype_name(f->forward),
                mixt_dtype_name(f->backward));
    if (f->keep != MIXT_DTYPE_NONE)
        fprintf(stream, "%*skeep: %s\n", indent, "", mixt_dtype_name(f->keep));
    print_settings(stream, policy, indent);
    if (f->rule_count)
        fprintf(stream, "%*srules:\n", indent, "");
    for (int64_t i = 0; i < f->rule_count; i++)
        print_rule(stream, &f->rules[i], indent);
}

static void print_phase(FILE *stream, const mixt__policy_phase *phase)
{
    char until[MIXT_UNTIL_TEXT];
    fputs("  - name: ", stream);
    print_text(stream, phase->name, false);
    fputc('\n', stream);
    if (phase->until > 0)
        fprintf(stream, "    until: %s\n", mixt__phase_until_text(phase->until, phase->unit, until));
    print_formats(stream, phase->changes, 4);
}

void mixt__policy_print(FILE *stream, const mixt_policy *policy)
{
    fputs("version: 1\n", stream);
    if (policy->made_by) {
        fputs("made_by: ", stream);
        print_text(stream, policy->made_by, false);
        fputc('\n', stream);
    }
    print_formats(stream, policy, 0);
    fputs(policy->phase_count ? "phases:\n" : "", stream);
    for (int64_t i = 0; i < policy->phase_count; i++)
        print_phase(stream, &policy->phases[i]);
    if (policy->evidence) {
        fputs(policy->evidence->inside ? "evidence:\n" : "evidence: {}\n", stream);
        mixt__evidence_print(stream, policy->evidence, 2);
    }
}

/* ---- to texts and files ---- */

/** Prints all of a policy, or its evidence alone, in the C locale. */
static mixt_status print(const mixt_policy *policy, bool evidence_alone, char **yaml, size_t *size)
{
    mixt__c_locale locale;
    *yaml = NULL;
    MIXT_TRY(mixt__c_locale_enter(&locale));
    FILE *stream = open_memstream(yaml, size);
    if (stream && !evidence_alone)
        mixt__policy_print(stream, policy);
    else if (stream && policy->evidence)
        mixt__evidence_print(stream, policy->evidence, 0);
    bool good = stream && !ferror(stream);
    good &= stream && !fclose(stream);
    mixt__c_locale_leave(&locale);
    if (good)
        return MIXT_OK;
    free(*yaml);
    *yaml = NULL;
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to print a policy");
}

mixt_status mixt_policy_print(const mixt_policy *policy, char **yaml)
{
    size_t size;
    MIXT_TRY(mixt__need(yaml));
    *yaml = NULL;
    MIXT_TRY(mixt__need_open(policy, "policy"));
    return print(policy, false, yaml, &size);
}

mixt_status mixt_policy_evidence(const mixt_policy *policy, char **yaml)
{
    size_t size;
    MIXT_TRY(mixt__need(yaml));
    *yaml = NULL;
    MIXT_TRY(mixt__need_open(policy, "policy"));
    return print(policy, true, yaml, &size);
}

mixt_status mixt_policy_write(const mixt_policy *policy, const char *path)
{
    char *text;
    size_t size;
    MIXT_TRY(mixt__need_open(policy, "policy"));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(print(policy, false, &text, &size));
    mixt_status status = mixt__file_put(path, text, size, true);
    free(text);
    return status;
}
