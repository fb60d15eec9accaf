/* The table, the values of one configuration, overrides, and the rules between keys. */
#include "config/config.h"

#include "base/alloc.h"
#include "base/handles.h"
#include "base/status.h"
#include "config/value.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct mixt_config {
    mixt__handle handle;
    mixt__config_value values[MIXT_KEY_COUNT];
    char *origins[MIXT_KEY_COUNT]; // NULL: default
    mixt_policy *policy;           // that `precision` names; NULL: nobody has asked for it yet
};

const mixt_config_record mixt__config_table[MIXT_KEY_COUNT] = {
#define MIXT_KEY(id, name, type, fallback, range, choices, help)                                                       \
    {name, MIXT_CONFIG_##type, fallback, range, choices, help, false},
#define MIXT_TEST_KEY(id, name, type, fallback, range, choices, help)                                                  \
    {name, MIXT_CONFIG_##type, fallback, range, choices, help, true},
#include "config/keys.def"
#undef MIXT_KEY
};

const mixt_config_record *mixt_config_key(int64_t index)
{
    return index >= 0 && index < MIXT_KEY_COUNT ? &mixt__config_table[index] : NULL;
}

mixt_status mixt_config_new(mixt_config **config)
{
    MIXT_TRY(mixt__need(config));
    *config = NULL;
    mixt_config *made = mixt__alloc(sizeof *made);
    if (!made)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a configuration");
    mixt__handle_add(&made->handle, made, "configuration", NULL);
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        const mixt_config_record *record = &mixt__config_table[key];
        bool empty_list = record->type == MIXT_CONFIG_INTS && !*record->fallback;
        mixt_status status = mixt__value_parse(&made->values[key], record, empty_list ? "[]" : record->fallback, false);
        if (status != MIXT_OK) {
            mixt_config_free(made);
            return status;
        }
    }
    *config = made;
    return MIXT_OK;
}

mixt_status mixt_config_copy(const mixt_config *config, mixt_config **copy)
{
    MIXT_TRY(mixt__need(copy));
    *copy = NULL;
    MIXT_TRY(mixt__need_open(config, "configuration"));
    mixt_config *made;
    MIXT_TRY(mixt_config_new(&made));
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        mixt__config_value value = config->values[key];
        mixt_status status = MIXT_OK;
        if (!config->origins[key])
            continue;
        if (value.text && !(value.text = mixt__strdup(value.text)))
            status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a configuration");
        if (status == MIXT_OK)
            status = mixt__config_assign_take(made, (mixt__config_key)key, &value, config->origins[key]);
        if (status != MIXT_OK) {
            mixt_config_free(made);
            return status;
        }
    }
    mixt_status status = config->policy ? mixt_policy_copy(config->policy, &made->policy) : MIXT_OK;
    if (status != MIXT_OK) {
        mixt_config_free(made);
        return status;
    }
    *copy = made;
    return MIXT_OK;
}

void mixt_config_free(mixt_config *config)
{
    if (!config || mixt__need_open(config, "configuration") != MIXT_OK)
        return;
    mixt__handle_remove(config);
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        mixt__free(config->values[key].text);
        mixt__free(config->origins[key]);
    }
    mixt_policy_free(config->policy);
    mixt__free(config);
}

mixt__config_key mixt__config_find(const char *name)
{
    int key = 0;
    while (key < MIXT_KEY_COUNT && strcmp(mixt__config_table[key].name, name))
        key++;
    return (mixt__config_key)key;
}

bool mixt__config_is_section(const char *name)
{
    size_t length = strlen(name);
    for (int key = 0; key < MIXT_KEY_COUNT; key++)
        if (!strncmp(mixt__config_table[key].name, name, length) && mixt__config_table[key].name[length] == '.')
            return true;
    return false;
}

mixt_status mixt__config_assign_take(mixt_config *config, mixt__config_key key, mixt__config_value *value,
                                     const char *origin)
{
    char *copy = mixt__strdup(origin);
    if (!copy) {
        mixt__free(value->text);
        value->text = NULL;
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to set it", mixt__config_table[key].name);
    }
    mixt__free(config->values[key].text);
    mixt__free(config->origins[key]);
    config->values[key] = *value;
    config->origins[key] = copy;
    if (key == MIXT_KEY_PRECISION) {
        mixt_policy_free(config->policy);
        config->policy = NULL;
    }
    return MIXT_OK;
}

static mixt_status set_one(mixt_config *config, const char *assignment, const char *where)
{
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment)
        return mixt__fail(MIXT_ERROR_CONFIG, "'%.80s' is not of the form key=value", assignment);
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)(equals - assignment < 95 ? equals - assignment : 95), assignment);
    mixt__config_key key = mixt__config_find(name);
    if (key == MIXT_KEY_COUNT) {
        if (mixt__config_is_section(name))
            return mixt__config_section_set(name);
        return mixt__config_unknown(name);
    }
    const mixt_config_record *record = &mixt__config_table[key];
    mixt__config_value value;
    const char *text = equals + 1;
    MIXT_TRY(mixt__value_parse(&value, record, text, false));
    return mixt__config_assign_take(config, key, &value, where);
}

mixt_status mixt_config_set(mixt_config *config, const char *assignment, const char *where)
{
    MIXT_TRY(mixt__need_open(config, "configuration"));
    MIXT_TRY(mixt__need(assignment));
    MIXT_TRY(mixt__need(where));
    mixt_status status = set_one(config, assignment, where);
    return status == MIXT_OK ? status : mixt__fail_context(status, "%s", where);
}

/** Fails for a rule between two keys, at the place of the one that was set. */
static mixt_status fail_rule(const mixt_config *config, mixt__config_key first, mixt__config_key second,
                             const char *rule)
{
    mixt__config_key key = mixt__config_was_set(config, first) ? first : second;
    return mixt__fail(MIXT_ERROR_CONFIG, "%s: %s %s", mixt__config_origin(config, key), mixt__config_table[first].name,
                      rule);
}

mixt_status mixt_config_check(const mixt_config *config)
{
    MIXT_TRY(mixt__need_open(config, "configuration"));
    if (!mixt__config_int(config, MIXT_KEY_TRAIN_EPOCHS) && !mixt__config_int(config, MIXT_KEY_TRAIN_STEPS))
        return fail_rule(config, MIXT_KEY_TRAIN_EPOCHS, MIXT_KEY_TRAIN_STEPS,
                         "and train.steps are both 0: set one of them, to say when to stop");
    if (mixt__config_float(config, MIXT_KEY_TRAIN_MIN_LR) > mixt__config_float(config, MIXT_KEY_TRAIN_LR))
        return fail_rule(config, MIXT_KEY_TRAIN_MIN_LR, MIXT_KEY_TRAIN_LR, "must not be greater than train.lr");
    double init = mixt__config_float(config, MIXT_KEY_TRAIN_SCALE_INIT);
    if (init < mixt__config_float(config, MIXT_KEY_TRAIN_SCALE_FLOOR))
        return fail_rule(config, MIXT_KEY_TRAIN_SCALE_INIT, MIXT_KEY_TRAIN_SCALE_FLOOR,
                         "must not be less than train.scale_floor");
    if (init > mixt__config_float(config, MIXT_KEY_TRAIN_SCALE_CEILING))
        return fail_rule(config, MIXT_KEY_TRAIN_SCALE_INIT, MIXT_KEY_TRAIN_SCALE_CEILING,
                         "must not be greater than train.scale_ceiling");
    for (int i = 0; i < 2; i++) {
        mixt__config_key key = i ? MIXT_KEY_INIT_NEW_HEAD : MIXT_KEY_INIT_SKIP;
        if (*mixt__config_string(config, key) && !*mixt__config_string(config, MIXT_KEY_INIT))
            return fail_rule(config, key, MIXT_KEY_INIT,
                             "is set, but init is empty: it names the weights to start from");
    }
    int64_t width = mixt__config_int(config, MIXT_KEY_NET_WIDTH), heads = mixt__config_int(config, MIXT_KEY_NET_HEADS);
    if (width && heads && width % heads)
        return fail_rule(config, MIXT_KEY_NET_HEADS, MIXT_KEY_NET_WIDTH, "must divide net.width");
    return MIXT_OK;
}

const mixt__config_value *mixt__config_value_of(const mixt_config *config, mixt__config_key key)
{
    return &config->values[key];
}

const char *mixt__config_string(const mixt_config *config, mixt__config_key key)
{
    assert(mixt__config_table[key].type != MIXT_CONFIG_INT && mixt__config_table[key].type != MIXT_CONFIG_FLOAT);
    return config->values[key].text ? config->values[key].text : "";
}

int64_t mixt__config_int(const mixt_config *config, mixt__config_key key)
{
    assert(mixt__config_table[key].type == MIXT_CONFIG_INT || mixt__config_table[key].type == MIXT_CONFIG_SIZE);
    return config->values[key].integer;
}

double mixt__config_float(const mixt_config *config, mixt__config_key key)
{
    assert(mixt__config_table[key].type == MIXT_CONFIG_FLOAT ||
           mixt__config_table[key].type == MIXT_CONFIG_CHOICE_OR_FLOAT);
    return config->values[key].number;
}

bool mixt__config_bool(const mixt_config *config, mixt__config_key key)
{
    assert(mixt__config_table[key].type == MIXT_CONFIG_BOOL);
    return config->values[key].boolean;
}

int mixt__config_choice(const mixt_config *config, mixt__config_key key)
{
    assert(*mixt__config_table[key].choices);
    return config->values[key].choice;
}

const int64_t *mixt__config_ints(const mixt_config *config, mixt__config_key key, int64_t *count)
{
    assert(mixt__config_table[key].type == MIXT_CONFIG_INTS);
    *count = config->values[key].count;
    return config->values[key].list;
}

bool mixt__config_lists(const mixt_config *config, mixt__config_key key, int choice)
{
    assert(mixt__config_table[key].type == MIXT_CONFIG_WORDS);
    const mixt__config_value *value = &config->values[key];
    for (int64_t i = 0; i < value->count; i++)
        if (value->list[i] == choice)
            return true;
    return false;
}

size_t mixt__config_text_bytes(const mixt_config *config)
{
    size_t bytes = 0;
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        bytes += config->values[key].text ? strlen(config->values[key].text) + 1 : 0;
        bytes += config->origins[key] ? strlen(config->origins[key]) + 1 : 0;
    }
    return bytes;
}

bool mixt__config_was_set(const mixt_config *config, mixt__config_key key)
{
    return config->origins[key] != NULL;
}

const char *mixt__config_origin(const mixt_config *config, mixt__config_key key)
{
    return config->origins[key] ? config->origins[key] : "default";
}

mixt_status mixt__config_policy(const mixt_config *config, const mixt_policy **policy)
{
    mixt_config *own = (mixt_config *)(uintptr_t)config; // it says the same afterwards
    *policy = NULL;
    if (!own->policy)
        MIXT_TRY(mixt_policy_open(mixt__config_string(config, MIXT_KEY_PRECISION), &own->policy));
    *policy = own->policy;
    return MIXT_OK;
}

mixt_status mixt__config_set_policy(mixt_config *config, const char *precision, const char *origin,
                                    const mixt_policy *policy)
{
    mixt_policy *copy = NULL;
    mixt__config_value value;
    mixt_status status = policy ? mixt_policy_copy(policy, &copy) : MIXT_OK; // first: it may be this one's own
    if (status == MIXT_OK)
        status = mixt__value_parse(&value, &mixt__config_table[MIXT_KEY_PRECISION], precision, false);
    if (status == MIXT_OK)
        status = mixt__config_assign_take(config, MIXT_KEY_PRECISION, &value, origin);
    if (status == MIXT_OK)
        config->policy = copy;
    else
        mixt_policy_free(copy);
    return status;
}
