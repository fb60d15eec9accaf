/* From keys to adapters; other programs' words for layers turned into ours. */
#include "run/open/lora.h"

#include "base/globs.h"
#include "base/status.h"
#include "run/open/init.h"

#include <stdio.h>
#include <string.h>

enum { LIST = 4096 };

/** Whether a rule's weight there is that of a layer called `word`, as "q_proj" is the end of
 *  "model.layers.#.self_attn.q_proj.weight". */
static bool is_called(const mixt__name_rule *rule, const char *word)
{
    static const char weight[] = ".weight";
    size_t length = strlen(rule->there), own = strlen(word), end = sizeof weight - 1;
    if (length < end + own || strcmp(rule->there + length - end, weight))
        return false;
    const char *at = rule->there + length - end - own;
    return !strncmp(at, word, own) && (at == rule->there || at[-1] == '.');
}

static void append(char list[LIST], const char *text)
{
    size_t used = strlen(list);
    if (used + strlen(text) + 2 < LIST)
        snprintf(list + used, LIST - used, "%s%s", used ? "," : "", text);
}

/** The layer here of a rule, as a glob: "h.*.attn.qkv.0". */
static void append_rule(char list[LIST], const mixt__name_rule *rule)
{
    char glob[256];
    size_t used = 0, length = strlen(rule->here), end = strlen(".weight");
    for (size_t i = 0; i + end < length && used + 16 < sizeof glob; i++)
        glob[used++] = rule->here[i] == '#' ? '*' : rule->here[i];
    glob[used] = '\0';
    if (rule->parts)
        snprintf(glob + used, sizeof glob - used, ".%d", rule->part);
    append(list, glob);
}

/** A list of globs with words of other programs in it, in our names alone. */
static mixt_status translate(const mixt__names *names, const char *given, mixt__arena *arena, const char **layers)
{
    mixt__globs globs;
    char list[LIST] = "";
    MIXT_TRY(mixt__globs_parse(&globs, given, false, "lora.layers"));
    for (int64_t i = 0; i < globs.count; i++) {
        bool found = false;
        for (const mixt__name_rule *rule = names ? names->rules : NULL; rule && rule->here; rule++)
            if (is_called(rule, globs.items[i].pattern)) {
                append_rule(list, rule);
                found = true;
            }
        if (!found)
            append(list, globs.items[i].pattern);
    }
    mixt__globs_free(&globs);
    *layers = mixt__arena_strdup(arena, list);
    return *layers ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of layers");
}

mixt_status mixt__experiment_lora(const mixt_config *config, mixt__arena *arena, mixt__lora *lora)
{
    const mixt__names *names;
    mixt__name_facts facts;
    *lora = (mixt__lora){.rank = mixt__config_int(config, MIXT_KEY_LORA_RANK)};
    lora->alpha = (float)mixt__config_float(config, MIXT_KEY_LORA_ALPHA);
    lora->dropout = (float)mixt__config_float(config, MIXT_KEY_LORA_DROPOUT);
    lora->rslora = mixt__config_bool(config, MIXT_KEY_LORA_RSLORA);
    lora->layers = mixt__config_string(config, MIXT_KEY_LORA_LAYERS);
    lora->also = mixt__config_string(config, MIXT_KEY_LORA_ALSO);
    MIXT_TRY(mixt__lora_check(lora));
    if (!lora->rank)
        return MIXT_OK;
    MIXT_TRY(mixt__experiment_names(config, &names, &facts));
    lora->also = mixt__arena_strdup(arena, lora->also);
    if (!lora->also)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of layers");
    return translate(names, lora->layers, arena, &lora->layers);
}
