/* The configuration of one run: typed values for every key of keys.def, each with where it was set.
 *
 * Later wins: defaults, then files in the order loaded, then `key=value`. Every message names its place,
 * FILE:LINE:COLUMN or the `where` given. After a failed load or set the configuration is still valid to read and free,
 * but may hold a part of the file.
 */
#ifndef MIXT_CONFIG_CONFIG_H
#define MIXT_CONFIG_CONFIG_H

#include "mixt/types.h"

#include <stdio.h>

typedef enum mixt__config_key {
#define MIXT_KEY(id, name, type, fallback, range, choices, help) MIXT_KEY_##id,
#include "config/keys.def"
#undef MIXT_KEY
    MIXT_KEY_COUNT
} mixt__config_key;

typedef enum mixt__config_type {
    MIXT_CONFIG_STRING,
    MIXT_CONFIG_INT,
    MIXT_CONFIG_FLOAT,
    MIXT_CONFIG_BOOL,
    MIXT_CONFIG_CHOICE,          // one of the words of `choices`
    MIXT_CONFIG_CHOICE_OR_FLOAT, // one of the words, or a number in range
    MIXT_CONFIG_INTS,
} mixt__config_type;

/** One row of keys.def. */
typedef struct mixt__config_record {
    const char *name;
    mixt__config_type type;
    const char *fallback, *range, *choices, *help;
} mixt__config_record;

extern const mixt__config_record mixt__config_table[MIXT_KEY_COUNT];

/** "integer", "number", "one of a, b", … : what a key takes, in words. Writes at most `size` bytes to `text`. */
const char *mixt__config_expects(const mixt__config_record *record, char *text, size_t size);

typedef struct mixt__config mixt__config;

mixt_status mixt__config_new(mixt__config **config);
void mixt__config_free(mixt__config *config);

/** Reads a YAML file (at most 1 MiB) of nested maps: `train: {lr: 0.1}` and `train.lr: 0.1` are the same. */
mixt_status mixt__config_load(mixt__config *config, const char *path);
/** Sets one key from "train.lr=0.1"; `where` begins the message of an error ("command line"). */
mixt_status mixt__config_set(mixt__config *config, const char *assignment, const char *where);
/** Rules between keys, once all are set: something to train, scale_floor <= scale_init <= scale_ceiling, … */
mixt_status mixt__config_check(const mixt__config *config);

/** STRING, and the word of a CHOICE. Never NULL; valid until the key is set again or the configuration freed. */
const char *mixt__config_string(const mixt__config *config, mixt__config_key key);
int64_t mixt__config_int(const mixt__config *config, mixt__config_key key);
/** FLOAT, and the number of a CHOICE_OR_FLOAT (0 when it holds a word). */
double mixt__config_float(const mixt__config *config, mixt__config_key key);
bool mixt__config_bool(const mixt__config *config, mixt__config_key key);
/** Position of a choice in the record's list; -1 when a CHOICE_OR_FLOAT holds a number. */
int mixt__config_choice(const mixt__config *config, mixt__config_key key);
const int64_t *mixt__config_ints(const mixt__config *config, mixt__config_key key, int64_t *count);

/** False while the key has its default. */
bool mixt__config_was_set(const mixt__config *config, mixt__config_key key);
/** Where the value comes from: "default", "FILE:LINE:COLUMN", or the `where` of mixt__config_set. */
const char *mixt__config_origin(const mixt__config *config, mixt__config_key key);
/** The key of a name; MIXT_KEY_COUNT when there is none. */
mixt__config_key mixt__config_find(const char *name);

/** Writes every key as YAML that mixt__config_load reads back to the same values. `comments` adds each key's help. */
mixt_status mixt__config_print(const mixt__config *config, FILE *stream, bool comments);
/** The same into a file, replaced as a whole or not at all. */
mixt_status mixt__config_write(const mixt__config *config, const char *path);

#endif
