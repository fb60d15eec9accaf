/* What a program asks about the library: the version, the environment table and the values in it, word guesses. */
#include "mixt/program.h"

#include "base/env.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/status.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *mixt_version(void)
{
    return MIXT_VERSION;
}

int mixt_version_number(void)
{
    return MIXT_VERSION_NUMBER;
}

int mixt_env_count(void)
{
    return MIXT_ENV_COUNT;
}

const mixt_env_info *mixt_env_at(int position)
{
    return position >= 0 && position < MIXT_ENV_COUNT ? &mixt__env_table[position] : NULL;
}

const char *mixt_word_nearest(const char *wanted, const char *const *words, int64_t count)
{
    mixt__nearest nearest = {.wanted = wanted};
    for (int64_t i = 0; i < count; i++)
        if (words[i])
            mixt__nearest_offer(&nearest, words[i]);
    return mixt__nearest_get(&nearest);
}

/* ---- values ---- */

static mixt_status check_threads(void)
{
    const char *threads = mixt__env_get(MIXT_ENV_THREADS);
    char *end;
    long count = strtol(threads, &end, 10);
    if (!*threads || (end != threads && !*end && count >= 0 && count <= 1024))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "MIXT_THREADS: expected an integer from 0 to 1024, found '%s'", threads);
}

static mixt_status check_device(void)
{
    const char *device = mixt__env_get(MIXT_ENV_DEVICE), *devices = "auto|cpu|cuda|cuda:N";
    char hint[96];
    if (!*device || mixt__choice_find(devices, device) >= 0)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "MIXT_DEVICE: expected auto, cpu, cuda or cuda:N, found '%s'%s", device,
                      mixt__choice_hint(devices, device, hint, sizeof hint));
}

static mixt_status check_log(void)
{
    for (const char *text = mixt__env_get(MIXT_ENV_LOG); *text;) {
        char word[64], hint[96], list[128];
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), text);
        if (mixt__choice_find(mixt__log_choices, word) < 0)
            return mixt__fail(MIXT_ERROR_CONFIG, "MIXT_LOG: no category '%s'%s: it takes %s, separated by commas", word,
                              mixt__choice_hint(mixt__log_choices, word, hint, sizeof hint),
                              mixt__choice_list(mixt__log_choices, list, sizeof list));
        text += length + (text[length] == ',');
    }
    return MIXT_OK;
}

static mixt_status check_isa(void)
{
    const char *isa = mixt__env_get(MIXT_ENV_ISA), *names[MIXT_ISA_COUNT];
    char list[128] = "";
    size_t used = 0;
    for (int i = 0; i < MIXT_ISA_COUNT; i++) {
        names[i] = mixt__isa_name((mixt__isa)i);
        if (!*isa || !strcmp(isa, names[i]))
            return MIXT_OK;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *guess = mixt_word_nearest(isa, names, MIXT_ISA_COUNT);
    return mixt__fail(MIXT_ERROR_CONFIG, "MIXT_ISA: no instruction set '%s'%s%s%s: it takes %s", isa,
                      guess ? " (did you mean " : "", guess ? guess : "", guess ? "?)" : "", list);
}

mixt_status mixt_env_check(void)
{
    MIXT_TRY(check_threads());
    MIXT_TRY(check_device());
    MIXT_TRY(check_log());
    return check_isa();
}
