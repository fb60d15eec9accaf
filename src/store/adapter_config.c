/* adapter_config.json: written as PEFT has it, and read: what would compute something else here is refused by name. */
#include "store/adapter.h"

#include "base/globs.h"
#include "base/status.h"
#include "store/file.h"
#include "store/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "base_model.model."

enum { NAME = 512 };

/* ---- which modules ---- */

static const char *last_word(const char *module)
{
    const char *dot = strrchr(module, '.');
    return dot ? dot + 1 : module;
}

static bool is_adapted(const mixt__adapter_plan *plan, const char *module, size_t length)
{
    for (int64_t i = 0; i < plan->module_count; i++)
        if (strlen(plan->modules[i]) == length && !strncmp(plan->modules[i], module, length))
            return true;
    return false;
}

/** Whether every module that ends in a word has an adapter: PEFT takes such a word for all of them. */
static bool has_all(const mixt__adapter_plan *plan, const char *word)
{
    static const char weight[] = ".weight";
    for (int64_t i = 0; i < plan->base.count; i++) {
        const char *name = plan->base.entries[i].there.name;
        size_t length = strlen(name);
        if (length < sizeof weight || strcmp(name + length - (sizeof weight - 1), weight))
            continue;
        length -= sizeof weight - 1;
        char module[NAME];
        snprintf(module, sizeof module, "%.*s", (int)length, name);
        if (!strcmp(last_word(module), word) && !is_adapted(plan, name, length))
            return false;
    }
    return true;
}

static bool has_text(const json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (!strcmp(json_string_value(json_array_get(array, i)), text))
            return true;
    return false;
}

static json_t *target_modules(const mixt__adapter_plan *plan)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < plan->module_count; i++) {
        const char *word = last_word(plan->modules[i]);
        const char *target = has_all(plan, word) ? word : plan->modules[i];
        if (!has_text(list, target))
            mixt__json_add(list, mixt__json_string(target));
    }
    return list;
}

/** Modules that are saved whole: those of the parameters that are trained beside. NULL in *list: one of them has an
 *  adapter, which PEFT cannot have. */
static mixt_status modules_to_save(const mixt__adapter_plan *plan, json_t **list)
{
    *list = NULL;
    for (int64_t i = 0; i < plan->count; i++) {
        const mixt__adapter_entry *e = &plan->entries[i];
        if (e->whole < 0)
            continue;
        char module[NAME];
        snprintf(module, sizeof module, "%s", e->there.name + strlen(PREFIX));
        char *dot = strrchr(module, '.');
        if (dot)
            *dot = '\0';
        if (is_adapted(plan, module, strlen(module))) {
            json_decref(*list);
            *list = NULL;
            return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                              "'%s' is trained beside the adapter of its own layer, which PEFT's files cannot hold",
                              plan->here[e->here].name);
        }
        if (!*list)
            *list = json_array();
        if (!has_text(*list, module))
            mixt__json_add(*list, mixt__json_string(module));
    }
    if (!*list)
        *list = json_null();
    return MIXT_OK;
}

/* ---- writing ---- */

static json_t *number(double value)
{
    return value == (double)(int64_t)value ? json_integer((json_int_t)value) : json_real(value);
}

static mixt_status config_text(const mixt__adapter_plan *plan, const mixt__adapter_facts *f, char **text)
{
    json_t *o = json_object(), *saved;
    mixt_status status = modules_to_save(plan, &saved);
    const char *task = f->task && *f->task ? f->task : NULL, *base = f->base && *f->base ? f->base : NULL;
    mixt__json_set(o, "peft_type", mixt__json_string("LORA"));
    mixt__json_set(o, "task_type", task ? mixt__json_string(task) : json_null());
    mixt__json_set(o, "base_model_name_or_path", base ? mixt__json_string(base) : json_null());
    mixt__json_set(o, "inference_mode", json_true());
    mixt__json_set(o, "r", json_integer((json_int_t)f->rank));
    mixt__json_set(o, "lora_alpha", number(f->alpha));
    mixt__json_set(o, "lora_dropout", json_real(f->dropout));
    mixt__json_set(o, "use_rslora", json_boolean(f->rslora));
    mixt__json_set(o, "target_modules", target_modules(plan));
    mixt__json_set(o, "modules_to_save", status == MIXT_OK ? saved : json_null());
    mixt__json_set(o, "bias", mixt__json_string("none"));
    mixt__json_set(o, "fan_in_fan_out", json_boolean(plan->transposed));
    mixt__json_set(o, "init_lora_weights", json_true());
    mixt__json_set(o, "use_dora", json_false());
    mixt__json_set(o, "rank_pattern", json_object());
    mixt__json_set(o, "alpha_pattern", json_object());
    *text =
        status == MIXT_OK ? mixt__json_dumps(o, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(o);
    if (status == MIXT_OK && !*text)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %s", MIXT_ADAPTER_CONFIG);
    return status;
}

mixt_status mixt__adapter_write(const mixt__adapter_plan *plan, const mixt__adapter_facts *facts, const char *folder,
                                bool overwrite, mixt__adapter_values *values, void *user)
{
    char path[4200], *text;
    if (snprintf(path, sizeof path, "%s/%s", folder, MIXT_ADAPTER_FILE) >= (int)sizeof path - 16)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    MIXT_TRY(config_text(plan, facts, &text));
    mixt_status status = mixt__adapter_write_tensors(plan, path, overwrite, values, user);
    snprintf(path, sizeof path, "%s/%s", folder, MIXT_ADAPTER_CONFIG);
    if (status == MIXT_OK)
        status = mixt__file_put(path, text, strlen(text), overwrite);
    free(text);
    return status;
}

/* ---- reading ---- */

/** Fields that say nothing of what is computed, beside those that are read. */
static const char *const free_fields[] = {"peft_type",
                                          "task_type",
                                          "base_model_name_or_path",
                                          "inference_mode",
                                          "r",
                                          "lora_alpha",
                                          "lora_dropout",
                                          "use_rslora",
                                          "target_modules",
                                          "modules_to_save",
                                          "auto_mapping",
                                          "peft_version",
                                          "revision",
                                          "exclude_modules",
                                          "fan_in_fan_out",
                                          "bias",
                                          "megatron_core",
                                          "qalora_group_size",
                                          "init_lora_weights",
                                          "layers_to_transform",
                                          "layers_pattern",
                                          "ensure_weight_tying",
                                          "runtime_config",
                                          NULL};

static bool says_nothing(const json_t *value)
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && !json_object_size(value)) || (json_is_array(value) && !json_array_size(value)) ||
           (json_is_string(value) && !*json_string_value(value));
}

static mixt_status refuse(const char *path, const char *field, const char *why)
{
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: its %s %s", path, field, why);
}

/** Ways of beginning that leave the base as it was. */
static bool begins_plainly(const json_t *init)
{
    const char *word = json_string_value(init);
    return !word || !strcmp(word, "gaussian") || !strcmp(word, "eva") || !strcmp(word, "orthogonal");
}

static mixt_status check_fields(const char *path, const json_t *config)
{
    const char *field, *type = json_string_value(json_object_get(config, "peft_type")),
                       *bias = json_string_value(json_object_get(config, "bias"));
    json_t *value;
    if (!type || strcmp(type, "LORA"))
        return refuse(path, "peft_type", "is not LORA: mixt reads adapters of LoRA");
    if (bias && strcmp(bias, "none"))
        return refuse(path, "bias", "is not none: biases are trained there, which mixt does not read");
    if (!begins_plainly(json_object_get(config, "init_lora_weights")))
        return refuse(path, "init_lora_weights", "changes the base's own weights, which the file does not hold");
    json_object_foreach((json_t *)(uintptr_t)config, field, value)
    {
        bool known = false;
        for (int i = 0; free_fields[i] && !known; i++)
            known = !strcmp(free_fields[i], field);
        if (!known && !says_nothing(value))
            return refuse(path, field, "is set, and computes something that mixt does not");
    }
    return MIXT_OK;
}

static mixt_status take(const char *path, const json_t *config, mixt__arena *arena, mixt__adapter_facts *f)
{
    const json_t *rank = json_object_get(config, "r"), *alpha = json_object_get(config, "lora_alpha"),
                 *base = json_object_get(config, "base_model_name_or_path");
    if (!json_is_integer(rank) || json_integer_value(rank) < 1 || !json_is_number(alpha) ||
        !(json_number_value(alpha) > 0))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: r and lora_alpha must be numbers above 0", path);
    f->rank = json_integer_value(rank);
    f->alpha = json_number_value(alpha);
    f->dropout = json_number_value(json_object_get(config, "lora_dropout"));
    f->rslora = json_is_true(json_object_get(config, "use_rslora"));
    f->base = mixt__arena_strdup(arena, json_is_string(base) ? json_string_value(base) : "");
    return f->base ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
}

mixt_status mixt__adapter_read_config(const char *folder, mixt__arena *arena, mixt__adapter_facts *facts)
{
    char path[4200];
    mixt__file_map map;
    json_t *config;
    *facts = (mixt__adapter_facts){.rank = 0};
    if (snprintf(path, sizeof path, "%s/%s", folder, MIXT_ADAPTER_CONFIG) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    MIXT_TRY(mixt__file_map_open(path, &map));
    mixt_status status = mixt__json_parse(path, map.data, map.bytes, JSON_REJECT_DUPLICATES, &config);
    mixt__file_map_close(&map);
    MIXT_TRY(status);
    status = json_is_object(config) ? check_fields(path, config)
                                    : mixt__fail(MIXT_ERROR_FORMAT, "%s: is not a JSON object", path);
    if (status == MIXT_OK)
        status = take(path, config, arena, facts);
    json_decref(config);
    return status;
}

/* ---- layers of a file ---- */

/** Names with a number in common but for that: "h.*.attn.proj", and how many there are. */
typedef struct group {
    char glob[NAME];
    int64_t count;
} group;

/** A name with its first number as '*'. */
static void generalise(const char *name, char glob[NAME])
{
    const char *at = name;
    while (*at && !(isdigit((unsigned char)*at) && (at == name || at[-1] == '.')))
        at++;
    const char *behind = at + strspn(at, "0123456789");
    snprintf(glob, NAME, *at && *behind ? "%.*s*%s" : "%.*s%s", (int)(at - name), name, *behind ? behind : at);
}

/** What a tensor there is of here: a layer, or one of its parts, or, trained beside, a parameter. NULL in *name: of the
 *  second tensor of an adapter. */
static mixt_status name_here(const char *path, const mixt__names *names, const char *there, mixt__arena *arena,
                             const char **name, bool *beside)
{
    static const char a[] = ".lora_A.weight", b[] = ".lora_B.weight";
    const size_t prefix = strlen(PREFIX), end = sizeof a - 1;
    size_t length = strlen(there);
    char module[NAME];
    const mixt__name_rule *rule = NULL;
    *name = NULL;
    *beside = false;
    if (strncmp(there, PREFIX, prefix) || length > NAME - 16 || length < prefix + end)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s' is none of an adapter", path, there);
    if (!strcmp(there + length - end, b))
        return MIXT_OK;
    *beside = strcmp(there + length - end, a) != 0;
    if (*beside)
        snprintf(module, sizeof module, "%s", there + prefix);
    else
        snprintf(module, sizeof module, "%.*s.weight", (int)(length - end - prefix), there + prefix);
    const char *here = names ? mixt__names_here(names, module, arena, &rule) : mixt__arena_strdup(arena, module);
    if (!here)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: tensor '%s' is of a module that the model here has not: it is an "
                          "adapter of another model",
                          path, there);
    int stem = (int)(strlen(here) - (*beside ? 0 : strlen(".weight")));
    *name = !*beside && rule && rule->parts ? mixt__arena_printf(arena, "%.*s.%d", stem, here, rule->part)
                                            : mixt__arena_printf(arena, "%.*s", stem, here);
    return *name ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
}

typedef struct lists {
    group *groups[2]; // of layers, of parameters beside
    int64_t count[2], capacity[2];
    const char **names[2];
    int64_t name_count[2], name_capacity[2];
} lists;

static mixt_status note(lists *l, int which, const char *name)
{
    char glob[NAME];
    int64_t i = 0;
    generalise(name, glob);
    while (i < l->count[which] && strcmp(l->groups[which][i].glob, glob))
        i++;
    if (!mixt__grow((void **)&l->groups[which], &l->capacity[which], l->count[which], sizeof(group)) ||
        !mixt__grow((void **)&l->names[which], &l->name_capacity[which], l->name_count[which], sizeof(char *)))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the layers of an adapter");
    if (i == l->count[which]) {
        memcpy(l->groups[which][i].glob, glob, sizeof glob);
        l->groups[which][i].count = 0;
        l->count[which]++;
    }
    l->groups[which][i].count++;
    l->names[which][l->name_count[which]++] = name;
    return MIXT_OK;
}

/** Globs where all layers of a kind are there, names where not. */
static const char *print(const lists *l, int which, int64_t layers, mixt__arena *arena)
{
    const char *list = "";
    for (int64_t i = 0; list && i < l->name_count[which]; i++) {
        char glob[NAME];
        generalise(l->names[which][i], glob);
        int64_t g = 0;
        while (strcmp(l->groups[which][g].glob, glob))
            g++;
        bool whole = strchr(glob, '*') && l->groups[which][g].count == layers;
        bool first = !whole;
        for (int64_t k = 0; whole && k <= i; k++) { // the first of its group speaks for all
            char other[NAME];
            generalise(l->names[which][k], other);
            if (!strcmp(other, glob)) {
                first = k == i;
                break;
            }
        }
        if (first)
            list = mixt__arena_printf(arena, "%s%s%s", list, *list ? "," : "", whole ? glob : l->names[which][i]);
    }
    return list;
}

mixt_status mixt__adapter_read_layers(const char *folder, const mixt__names *names, int64_t layers, mixt__arena *arena,
                                      const char **globs, const char **also)
{
    char path[4200];
    mixt__safetensors *file;
    lists l = {.count = {0}};
    if (snprintf(path, sizeof path, "%s/%s", folder, MIXT_ADAPTER_FILE) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    MIXT_TRY(mixt__safetensors_open(path, &file));
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; status == MIXT_OK && i < file->count; i++) {
        const char *name;
        bool beside;
        status = name_here(path, names, file->tensors[i].name, arena, &name, &beside);
        if (status == MIXT_OK && name)
            status = note(&l, beside, name);
    }
    mixt__safetensors_close(file);
    *globs = status == MIXT_OK ? print(&l, 0, layers, arena) : NULL;
    *also = status == MIXT_OK ? print(&l, 1, layers, arena) : NULL;
    for (int which = 0; which < 2; which++) {
        mixt__free(l.groups[which]);
        mixt__free(l.names[which]);
    }
    if (status == MIXT_OK && (!*globs || !*also))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
    return status;
}
