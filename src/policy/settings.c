/* Loss scaling and clipping: what each setting may be, for texts and for C alike, is said in settings.def. */
#include "base/range.h"
#include "mixt/config.h"
#include "policy/inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct setting {
    const char *name;
    mixt_config_type type;
    size_t offset, size; // in mixt_policy_settings
    const char *fallback, *range, *choices;
} setting;

static const setting table[] = {
#define MIXT_SETTING(id, field, name, type, fallback, range, choices, help)                                            \
    {#field,                                                                                                           \
     MIXT_CONFIG_##type,                                                                                               \
     offsetof(mixt_policy_settings, field),                                                                            \
     sizeof(((mixt_policy_settings *)0)->field),                                                                       \
     fallback,                                                                                                         \
     range,                                                                                                            \
     choices},
#include "policy/settings.def"
#undef MIXT_SETTING
};
_Static_assert(sizeof table / sizeof table[0] == MIXT_POLICY_SETTINGS, "all settings are counted");

static bool is_text(int index)
{
    return table[index].type == MIXT_CONFIG_CHOICE_OR_FLOAT; // the loss scale
}

const char *mixt_policy_setting(int64_t index)
{
    return index >= 0 && index < MIXT_POLICY_SETTINGS ? table[index].name : NULL;
}

static double get(const mixt_policy_settings *settings, int index)
{
    const char *at = (const char *)settings + table[index].offset;
    if (is_text(index))
        return NAN;
    if (table[index].type == MIXT_CONFIG_FLOAT)
        return (double)*(const float *)(const void *)at;
    return table[index].size == sizeof(int) ? *(const int *)(const void *)at
                                            : (double)*(const int64_t *)(const void *)at;
}

double mixt__policy_setting_get(const mixt_policy_settings *settings, int index, bool *whole)
{
    *whole = table[index].type == MIXT_CONFIG_INT;
    return get(settings, index);
}

static void store(mixt_policy_settings *settings, int index, double number)
{
    char *at = (char *)settings + table[index].offset;
    if (table[index].type == MIXT_CONFIG_FLOAT)
        *(float *)(void *)at = (float)number;
    else if (table[index].size == sizeof(int))
        *(int *)(void *)at = (int)number;
    else
        *(int64_t *)(void *)at = (int64_t)number;
}

bool mixt__policy_setting_said(const mixt_policy_settings *settings, int index)
{
    return is_text(index) ? settings->loss_scale != NULL : get(settings, index) != 0;
}

void mixt__policy_setting_set(mixt_policy_settings *settings, int index, double number)
{
    store(settings, index, number != 0 ? number : INFINITY);
}

/** What is off is said by no limit. */
static bool may_be(int index, double number)
{
    bool off = mixt__range_has(table[index].range, 0);
    return isfinite(number) ? mixt__range_has(table[index].range, number) : off && number > 0;
}

static mixt_status fail_range(mixt_status status, int index, const char *text)
{
    char words[96];
    mixt__range_words(table[index].range, words, sizeof words);
    return mixt__fail(status, "%s: '%.80s' must be %s, %s", table[index].name, text,
                      table[index].type == MIXT_CONFIG_FLOAT ? "a number" : "a whole number", words);
}

/** Decimal notation alone: strtod would also take hexadecimal, "nan" and "infinity". */
static bool parse_number(const char *text, const char *letters, double *number)
{
    char *end;
    if (!*text || strspn(text, letters) != strlen(text))
        return false;
    *number = mixt__read_double(text, &end);
    return end != text && !*end;
}

/** Checks "auto", "dynamic", "none" or a number; *word receives it as it is printed, in the arena. */
static mixt_status parse_loss_scale(mixt__arena *arena, const char *text, const char **word)
{
    char digits[40];
    double number;
    float scale;
    if (strcmp(text, "auto") && strcmp(text, "dynamic") && strcmp(text, "none")) {
        if (!parse_number(text, "+-.0123456789eE", &number) || !mixt__policy_fixed_scale(text, &scale))
            return mixt__fail(MIXT_ERROR_CONFIG,
                              "loss_scale: '%.80s' is not auto, dynamic, none or a number from 2^-24 (6e-8) to 2^126 "
                              "(8.5e37)",
                              text);
        text = mixt__float_text(scale, digits, sizeof digits);
    }
    *word = mixt__arena_strdup(arena, text);
    return *word ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a policy");
}

bool mixt__policy_fixed_scale(const char *text, float *scale)
{
    char *end;
    *scale = mixt__read_float(text, &end);
    return end != text && !*end && *scale >= 0x1p-24f && *scale <= 0x1p126f;
}

mixt_status mixt__policy_setting_parse(mixt_policy_settings *settings, int index, const char *text, mixt__arena *arena)
{
    if (is_text(index))
        return parse_loss_scale(arena, text, &settings->loss_scale);
    bool real = table[index].type == MIXT_CONFIG_FLOAT;
    double number;
    bool good = parse_number(text, real ? "+-.0123456789eE" : "0123456789", &number);
    number = good && real ? (double)mixt__read_float(text, NULL) : number; // rounded once
    if (!good || !isfinite(number) || !may_be(index, number))
        return fail_range(MIXT_ERROR_CONFIG, index, text);
    mixt__policy_setting_set(settings, index, number);
    return MIXT_OK;
}

void mixt__policy_settings_take(mixt_policy_settings *settings, const mixt_policy_settings *from)
{
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++)
        if (!is_text(i) && mixt__policy_setting_said(from, i))
            store(settings, i, get(from, i));
    settings->loss_scale = from->loss_scale ? from->loss_scale : settings->loss_scale;
}

void mixt__policy_settings_fill(mixt_policy_settings *settings)
{
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++)
        if (!is_text(i) && !mixt__policy_setting_said(settings, i))
            mixt__policy_setting_set(settings, i, mixt__read_double(table[i].fallback, NULL));
        else if (is_text(i) && !settings->loss_scale)
            settings->loss_scale = table[i].fallback;
}

mixt_status mixt__policy_settings_check(const mixt_policy_settings *settings)
{
    char text[40];
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++) {
        double number = get(settings, i);
        if (is_text(i) || number == 0 || may_be(i, number))
            continue;
        mixt__print_number(text, sizeof text, "%g", number);
        return fail_range(MIXT_ERROR_ARGUMENT, i, text);
    }
    return MIXT_OK;
}

const char *mixt__float_text(float number, char *text, size_t size)
{
    for (int digits = 1; digits <= 9; digits++) {
        mixt__print_number(text, size, "%.*g", digits, (double)number);
        if (mixt__read_float(text, NULL) == number)
            break;
    }
    return text;
}

bool mixt__policy_setting_text(const mixt_policy_settings *settings, int index, char text[MIXT_POLICY_SETTING_TEXT])
{
    double number = get(settings, index);
    if (!mixt__policy_setting_said(settings, index))
        return false;
    if (is_text(index))
        snprintf(text, MIXT_POLICY_SETTING_TEXT, "%s", settings->loss_scale);
    else if (table[index].type == MIXT_CONFIG_FLOAT)
        mixt__float_text(isinf(number) ? 0 : (float)number, text, MIXT_POLICY_SETTING_TEXT);
    else
        mixt__print_number(text, MIXT_POLICY_SETTING_TEXT, "%.0f", number);
    return true;
}
