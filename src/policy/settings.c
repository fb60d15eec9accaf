/* The numbers that go with a policy's formats: one table says what each may be, for texts and for C alike. */
#include "policy/inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETTING(name, kind, least, below, words)                                                                       \
    {                                                                                                                  \
#name, MIXT_SETTING_##kind, offsetof(mixt_policy_settings, name), (least), (below), (words)                    \
    }

// Whole numbers end where a double no longer holds each of them.
const mixt__policy_setting mixt__policy_setting_table[MIXT_POLICY_SETTINGS] = {
    SETTING(scale_init, FLOAT, 0, INFINITY, "a number above 0"),
    SETTING(scale_growth, FLOAT, 1, INFINITY, "a number of at least 1"),
    SETTING(scale_backoff, FLOAT, 0, 1, "a number above 0 and below 1"),
    SETTING(scale_interval, INT64, 1, 0x1p53, "a whole number of at least 1"),
    SETTING(scale_floor, FLOAT, 0, INFINITY, "a number above 0"),
    SETTING(scale_ceiling, FLOAT, 0, INFINITY, "a number above 0"),
    SETTING(scale_hysteresis, INT, 1, 0x1p31, "a whole number of at least 1"),
    SETTING(clip, FLOAT, 0, INFINITY, "a number above 0"),
    SETTING(clip_value, FLOAT, 0, INFINITY, "a number above 0"),
};

double mixt__policy_setting_get(const mixt_policy_settings *settings, const mixt__policy_setting *setting)
{
    const char *at = (const char *)settings + setting->offset;
    switch (setting->kind) {
    case MIXT_SETTING_FLOAT:
        return (double)*(const float *)at;
    case MIXT_SETTING_INT:
        return *(const int *)at;
    case MIXT_SETTING_INT64:
        return (double)*(const int64_t *)at;
    }
    return 0;
}

static void store(mixt_policy_settings *settings, const mixt__policy_setting *setting, double number)
{
    char *at = (char *)settings + setting->offset;
    switch (setting->kind) {
    case MIXT_SETTING_FLOAT:
        *(float *)at = (float)number;
        break;
    case MIXT_SETTING_INT:
        *(int *)at = (int)number;
        break;
    case MIXT_SETTING_INT64:
        *(int64_t *)at = (int64_t)number;
        break;
    }
}

static bool in_range(const mixt__policy_setting *setting, double number)
{
    return number > 0 && number >= setting->least && number < setting->below;
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

mixt_status mixt__policy_setting_parse(mixt_policy_settings *settings, const mixt__policy_setting *setting,
                                       const char *text)
{
    bool real = setting->kind == MIXT_SETTING_FLOAT;
    double number;
    bool good = parse_number(text, real ? "+-.0123456789eE" : "0123456789", &number);
    number = good && real ? (double)mixt__read_float(text, NULL) : number; // rounded once
    if (!good || !in_range(setting, number))
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: '%.80s' is not %s", setting->name, text, setting->words);
    store(settings, setting, number);
    return MIXT_OK;
}

void mixt__policy_settings_take(mixt_policy_settings *settings, const mixt_policy_settings *from)
{
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++) {
        double number = mixt__policy_setting_get(from, &mixt__policy_setting_table[i]);
        if (number != 0)
            store(settings, &mixt__policy_setting_table[i], number);
    }
    if (from->loss_scale)
        settings->loss_scale = from->loss_scale;
}

mixt_status mixt__policy_settings_check(const mixt_policy_settings *settings)
{
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++) {
        const mixt__policy_setting *setting = &mixt__policy_setting_table[i];
        double number = mixt__policy_setting_get(settings, setting);
        if (number != 0 && !in_range(setting, number))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %g is not %s", setting->name, number, setting->words);
    }
    return MIXT_OK;
}

mixt_status mixt__policy_loss_scale(mixt__arena *arena, const char *text, const char **word)
{
    char digits[40];
    double number;
    if (strcmp(text, "auto") && strcmp(text, "dynamic") && strcmp(text, "none")) {
        bool good = parse_number(text, "+-.0123456789eE", &number);
        float scale = good ? mixt__read_float(text, NULL) : 0;
        if (!(scale >= 0x1p-24f && scale <= 0x1p126f)) // outside, scaled losses or what unscales are no normal numbers
            return mixt__fail(MIXT_ERROR_CONFIG,
                              "loss_scale: '%.80s' is not auto, dynamic, none or a number from 2^-24 (6e-8) to 2^126 "
                              "(8.5e37)",
                              text);
        text = mixt__float_text(scale, digits, sizeof digits);
    }
    *word = mixt__arena_strdup(arena, text);
    return *word ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a policy");
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

const char *mixt__policy_setting_name(int index)
{
    return index ? mixt__policy_setting_table[index - 1].name : "loss_scale";
}

bool mixt__policy_setting_text(const mixt_policy *policy, int index, char text[MIXT_POLICY_SETTING_TEXT])
{
    const mixt_policy_settings *s = &policy->settings;
    const mixt__policy_setting *setting = index ? &mixt__policy_setting_table[index - 1] : NULL;
    double number = setting ? mixt__policy_setting_get(s, setting) : 0;
    mixt__c_locale locale;
    bool entered = mixt__c_locale_enter(&locale) == MIXT_OK;
    if (!setting && s->loss_scale)
        snprintf(text, MIXT_POLICY_SETTING_TEXT, "%s", s->loss_scale);
    else if (setting && setting->kind == MIXT_SETTING_FLOAT)
        mixt__float_text((float)number, text, MIXT_POLICY_SETTING_TEXT);
    else
        snprintf(text, MIXT_POLICY_SETTING_TEXT, "%.0f", number);
    if (entered)
        mixt__c_locale_leave(&locale);
    return setting ? number != 0 : s->loss_scale != NULL;
}
