/* One value of the configuration: text to typed value and back, checked against its record. Used inside config/ only.
 */
#ifndef MIXT_CONFIG_VALUE_H
#define MIXT_CONFIG_VALUE_H

#include "config/config.h"

enum { MIXT_CONFIG_LIST_MAX = 64, MIXT_CONFIG_TEXT_MAX = 4096 };

typedef struct mixt__config_value {
    char *text; // STRING, SIZE, the word of a CHOICE: owned
    int64_t integer;
    double number;
    bool boolean;
    int choice;
    int64_t count, list[MIXT_CONFIG_LIST_MAX];
} mixt__config_value;

/** Turns the text of a scalar into `value` (lists: "1,2" or "[1, 2]"). A quoted text is a string, never a number.
 *  Messages begin with the key's name. `value` must not own memory yet. */
enum { MIXT_EXPECTS_TEXT = 320 };
/** What mixt_config_expects says, cut to `size` bytes. Returns `text`. */
const char *mixt__config_expects(const mixt_config_record *record, char *text, size_t size);

mixt_status mixt__value_parse(mixt__config_value *value, const mixt_config_record *record, const char *text,
                              bool quoted);
/** Adds one element to a list. */
mixt_status mixt__value_append(mixt__config_value *value, const mixt_config_record *record, const char *text,
                               bool quoted);
/** Writes the value as YAML. */
void mixt__value_print(const mixt__config_value *value, const mixt_config_record *record, FILE *stream);

const mixt__config_value *mixt__config_value_of(const mixt_config *config, mixt__config_key key);
/** Sets a key to a value whose memory it takes. */
mixt_status mixt__config_assign_take(mixt_config *config, mixt__config_key key, mixt__config_value *value,
                                     const char *origin);
/** MIXT_ERROR_CONFIG: "unknown key 'x' (did you mean y?)". */
mixt_status mixt__config_unknown(const char *name);
/** MIXT_ERROR_CONFIG: a value was given to a section. */
mixt_status mixt__config_section_set(const char *name);
/** True when some key begins with "name.". */
bool mixt__config_is_section(const char *name);

#endif
