/* Values of a configuration by the names of their keys: what programs outside the library read. */
#include "config/config.h"

#include "base/handles.h"
#include "config/value.h"

/** A key by its name; MIXT_KEY_COUNT: there is none, or no configuration is open there. */
static mixt__config_key key_of(const mixt_config *config, const char *name)
{
    return name && mixt__need_open(config, "configuration") == MIXT_OK ? mixt__config_find(name) : MIXT_KEY_COUNT;
}

/** The value of a key that has one of two types; NULL where there is none. */
static const mixt__config_value *find(const mixt_config *config, const char *name, mixt_config_type type,
                                      mixt_config_type other)
{
    mixt__config_key key = key_of(config, name);
    if (key == MIXT_KEY_COUNT || (mixt__config_table[key].type != type && mixt__config_table[key].type != other))
        return NULL;
    return mixt__config_value_of(config, key);
}

const char *mixt_config_string(const mixt_config *config, const char *key)
{
    const mixt__config_value *value = find(config, key, MIXT_CONFIG_STRING, MIXT_CONFIG_CHOICE);
    if (!value)
        value = find(config, key, MIXT_CONFIG_CHOICE_OR_FLOAT, MIXT_CONFIG_CHOICE_OR_FLOAT);
    return value && value->text ? value->text : "";
}

int64_t mixt_config_int(const mixt_config *config, const char *key)
{
    const mixt__config_value *value = find(config, key, MIXT_CONFIG_INT, MIXT_CONFIG_SIZE);
    return value ? value->integer : 0;
}

double mixt_config_float(const mixt_config *config, const char *key)
{
    const mixt__config_value *value = find(config, key, MIXT_CONFIG_FLOAT, MIXT_CONFIG_CHOICE_OR_FLOAT);
    return value ? value->number : 0;
}

bool mixt_config_bool(const mixt_config *config, const char *key)
{
    const mixt__config_value *value = find(config, key, MIXT_CONFIG_BOOL, MIXT_CONFIG_BOOL);
    return value && value->boolean;
}

bool mixt_config_was_set(const mixt_config *config, const char *key)
{
    mixt__config_key found = key_of(config, key);
    return found != MIXT_KEY_COUNT && mixt__config_was_set(config, found);
}

const char *mixt_config_origin(const mixt_config *config, const char *key)
{
    mixt__config_key found = key_of(config, key);
    return found != MIXT_KEY_COUNT ? mixt__config_origin(config, found) : "default";
}
