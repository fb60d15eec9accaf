/* From a format for each group of layers to a policy, and the file that the user gets.
 *
 * The default of a policy is the lower format that most groups have; each layer of the others has a rule of its own,
 * by its whole name.
 */
#include "choose/search.h"

#include "base/status.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- levels ---- */

static const mixt__search_level levels[] = {
    {MIXT_SEARCH_FULL, "fp32", MIXT_DTYPE_FP32, MIXT_DTYPE_NONE},
    {'b', "bf16", MIXT_DTYPE_BF16, MIXT_DTYPE_NONE},
    {'h', "fp16", MIXT_DTYPE_FP16, MIXT_DTYPE_NONE},
    {'t', "tf32", MIXT_DTYPE_TF32, MIXT_DTYPE_NONE},
    {'B', "fp32/bf16", MIXT_DTYPE_FP32, MIXT_DTYPE_BF16},
    {'E', "fp32/fp8_e4m3", MIXT_DTYPE_FP32, MIXT_DTYPE_FP8_E4M3},
    {'e', "bf16/fp8_e4m3", MIXT_DTYPE_BF16, MIXT_DTYPE_FP8_E4M3},
    {'q', "fp16/fp8_e4m3", MIXT_DTYPE_FP16, MIXT_DTYPE_FP8_E4M3},
};

enum { LEVELS = sizeof levels / sizeof levels[0] };

const mixt__search_level *mixt__search_level_of(char letter)
{
    for (int i = 0; i < LEVELS; i++)
        if (levels[i].letter == letter)
            return &levels[i];
    return NULL;
}

const mixt__search_level *mixt__search_level_at(int index)
{
    return index >= 0 && index + 1 < LEVELS ? &levels[index + 1] : NULL;
}

/** The level that most groups have, FP32 left out where any has another. */
static const mixt__search_level *commonest(const char *letters)
{
    const mixt__search_level *found = &levels[0];
    int64_t most = 0;
    for (int i = 1; i < LEVELS; i++) {
        int64_t count = 0;
        for (const char *at = letters; *at; at++)
            count += *at == levels[i].letter;
        if (count > most) {
            most = count;
            found = &levels[i];
        }
    }
    return found;
}

/* ---- policies ---- */

/** A layer's name as a glob that matches nothing else. */
static mixt_status exact_glob(const char *layer, char *glob, size_t size)
{
    size_t used = 0;
    for (; *layer && used + 2 < size; layer++) {
        if (strchr("*?[]\\", *layer))
            glob[used++] = '\\';
        glob[used++] = *layer;
    }
    glob[used] = '\0';
    return *layer ? mixt__fail(MIXT_ERROR_CONFIG, "the name of layer '%s' is too long for a rule", glob) : MIXT_OK;
}

static mixt_status add_rules(mixt_policy *policy, const mixt__search_group *group, const mixt__search_level *level)
{
    mixt_policy_rule rule = {.forward = level->format, .keep = level->keep};
    if (!level->keep && mixt_policy_keep(policy))
        rule.keep = MIXT_DTYPE_FP32; // as they are, whatever the others do
    for (int64_t i = 0; i < group->count; i++) {
        char glob[512];
        MIXT_TRY(exact_glob(group->layers[i], glob, sizeof glob));
        rule.layer = glob;
        MIXT_TRY(mixt_policy_add(policy, &rule));
    }
    return MIXT_OK;
}

mixt_status mixt__search_policy(const mixt__search_groups *groups, const char *letters, mixt_policy **policy)
{
    const mixt__search_level *most = commonest(letters);
    MIXT_TRY(mixt_policy_new(most->format, MIXT_DTYPE_NONE, policy));
    mixt_status status = mixt_policy_set_keep(*policy, most->keep);
    for (int64_t g = 0; g < groups->count && status == MIXT_OK; g++)
        if (letters[g] != most->letter)
            status = add_rules(*policy, &groups->items[g], mixt__search_level_of(letters[g]));
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt_policy_free(*policy);
    *policy = NULL;
    return status;
}

char *mixt__search_line(const mixt__search_groups *groups, const char *letters)
{
    const mixt__search_level *most = commonest(letters);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    fputs(most->name, stream);
    for (int i = 0; i < LEVELS; i++) {
        const char *separator = "; ";
        for (int64_t g = 0; g < groups->count && &levels[i] != most; g++)
            for (int64_t k = 0; letters[g] == levels[i].letter && k < groups->items[g].count; k++) {
                fprintf(stream, "%s%s", separator, groups->items[g].layers[k]);
                separator = ", ";
            }
        if (separator[0] == ',')
            fprintf(stream, ": %s", levels[i].name);
    }
    char *line = fclose(stream) ? NULL : mixt__strdup(text);
    free(text);
    return line;
}

/* ---- the file ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *losses_json(const mixt__search_losses *losses, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        mixt__json_add(list, number(losses->at[i]));
    return list;
}

static json_t *pairs_json(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part)
{
    mixt_judgement j = mixt__search_judge_part(s, tried, part);
    json_t *o = json_object();
    mixt__json_set(o, "judgement", mixt__judgement_object(&j));
    mixt__json_set(o, "losses", losses_json(&tried->losses[part], j.pairs));
    mixt__json_set(o, "fp32_losses",
                   losses_json(part == MIXT_SEARCH_SEEN ? &s->fp32->losses[MIXT_SEARCH_SEEN] : &tried->fp32, j.pairs));
    return o;
}

/** What the policy rests on. JSON is YAML too. */
static json_t *evidence(const mixt__search *s, const mixt__search_try *tried)
{
    json_t *o = json_object();
    mixt__json_set_text(o, "goal", s->options.goal == MIXT_SEARCH_TIME ? "time" : "memory");
    mixt__json_set_real(o, "tolerance", s->options.lose);
    mixt__json_set_text(o, "model", mixt__config_string(s->config, MIXT_KEY_MODEL));
    mixt__json_set_text(o, "device", s->device);
    mixt__json_set_text(o, "configuration", s->state.config);
    if (s->from)
        mixt__json_set_text(o, "from", s->from);
    mixt_judgement safe = mixt__search_judge(s, tried), worth = mixt__search_worth(s, tried);
    mixt__json_set(o, "safe", mixt__judgement_object(&safe));
    mixt__json_set(o, mixt_claim_name(worth.claim), mixt__judgement_object(&worth));
    mixt__json_set(o, "memory", json_integer(tried->memory));
    mixt__json_set(o, "fp32_memory", json_integer(s->fp32->memory));
    if (!isnan(tried->ms))
        mixt__json_set_real(o, "ms", tried->ms);
    if (!isnan(s->fp32->ms))
        mixt__json_set_real(o, "fp32_ms", s->fp32->ms);
    if (tried != s->fp32 && tried->losses[MIXT_SEARCH_SEEN].count)
        mixt__json_set(o, "search", pairs_json(s, tried, MIXT_SEARCH_SEEN));
    if (tried->losses[MIXT_SEARCH_FRESH].count)
        mixt__json_set(o, "fresh", pairs_json(s, tried, MIXT_SEARCH_FRESH));
    return o;
}

static mixt_status add_evidence(const mixt__search *s, const mixt__search_try *tried, mixt_policy *policy)
{
    json_t *o = evidence(s, tried);
    char *text = mixt__json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    mixt_status status = text ? mixt_policy_set_evidence(policy, text)
                              : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the evidence of a policy");
    free(text);
    json_decref(o);
    return status;
}

mixt_status mixt__search_write_policy(mixt__search *s, const mixt__search_try *tried)
{
    mixt_policy *policy;
    MIXT_TRY(mixt__search_policy(&s->groups, tried->levels, &policy));
    mixt_status status = mixt_policy_set_made_by(policy, MIXT_SEARCH_MADE_BY);
    if (status == MIXT_OK)
        status = add_evidence(s, tried, policy);
    if (status == MIXT_OK)
        status = mixt_policy_write(policy, s->state.path);
    mixt_policy_free(policy);
    return status;
}
