/* The table of configuration keys and typed access to values by key. Making, reading, setting and printing a
 * configuration are public (mixt/config.h).
 */
#ifndef MIXT_CONFIG_CONFIG_H
#define MIXT_CONFIG_CONFIG_H

#include "mixt/config.h"
#include "mixt/policy.h"

#include <stdio.h>

typedef enum mixt__config_key {
#define MIXT_KEY(id, name, type, fallback, range, choices, help) MIXT_KEY_##id,
#include "config/keys.def"

#undef MIXT_KEY
    MIXT_KEY_COUNT
} mixt__config_key;

extern const mixt_config_record mixt__config_table[MIXT_KEY_COUNT];

/** STRING, and the word of a CHOICE. Never NULL; valid until the key is set again or the configuration freed. */
const char *mixt__config_string(const mixt_config *config, mixt__config_key key);
/** INT, and the bytes of a SIZE. */
int64_t mixt__config_int(const mixt_config *config, mixt__config_key key);
/** FLOAT, and the number of a CHOICE_OR_FLOAT (0 when it holds a word). */
double mixt__config_float(const mixt_config *config, mixt__config_key key);
bool mixt__config_bool(const mixt_config *config, mixt__config_key key);
/** Position of a choice in the record's list; -1 when a CHOICE_OR_FLOAT holds a number. */
int mixt__config_choice(const mixt_config *config, mixt__config_key key);
/** Whether a list of words has this one, by its position among the choices. */
bool mixt__config_lists(const mixt_config *config, mixt__config_key key, int choice);
const int64_t *mixt__config_ints(const mixt_config *config, mixt__config_key key, int64_t *count);

/** The policy that `precision` names. It is opened when it is first asked for and stays the configuration's and its
 *  copies', whatever becomes of its file, until `precision` is set again. Borrowed until then. */
mixt_status mixt__config_policy(const mixt_config *config, const mixt_policy **policy);
/** Sets `precision`, which names this policy. @param policy copied; NULL: to be opened */
mixt_status mixt__config_set_policy(mixt_config *config, const char *precision, const char *origin,
                                    const mixt_policy *policy);

/** The value as the written configuration has it; for free(). NULL when memory ends. */
char *mixt__config_text(const mixt_config *config, mixt__config_key key);

/** Bytes of texts: values, and where they were set. */
size_t mixt__config_text_bytes(const mixt_config *config);

/** False while the key has its default. */
bool mixt__config_was_set(const mixt_config *config, mixt__config_key key);
/** Where the value comes from: "default", "FILE:LINE:COLUMN", or the `where` of mixt_config_set. */
const char *mixt__config_origin(const mixt_config *config, mixt__config_key key);
/** The key of a name; MIXT_KEY_COUNT when there is none. */
mixt__config_key mixt__config_find(const char *name);

/** Every key as YAML to a stream: see mixt_config_print. */
mixt_status mixt__config_print(const mixt_config *config, FILE *stream, bool comments);

#endif
