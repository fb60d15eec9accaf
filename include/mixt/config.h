/* How is a run configured? By a typed value for every key ("train.lr"), each with where it was set.
 *
 * Later wins: defaults, then files and texts in the order loaded, then "key=value". Every message names its place,
 * FILE:LINE:COLUMN or the `where` given. After a failed load or set the configuration is still valid to read and free,
 * but may hold a part of the file. `mixt help config --all` prints the table of keys.
 */
#ifndef MIXT_CONFIG_H
#define MIXT_CONFIG_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_config mixt_config;

/** What a key takes. */
typedef enum mixt_config_type {
    MIXT_CONFIG_STRING,
    MIXT_CONFIG_INT,
    MIXT_CONFIG_FLOAT,
    MIXT_CONFIG_BOOL,
    MIXT_CONFIG_CHOICE,          /**< one of the words of `choices` */
    MIXT_CONFIG_CHOICE_OR_FLOAT, /**< one of the words, or a number in range */
    MIXT_CONFIG_INTS,            /**< a list */
    MIXT_CONFIG_WORDS,           /**< a list of words of `choices`, as [recompute, split] */
    MIXT_CONFIG_SIZE,            /**< an amount of memory, as 12G or 900MiB */
} mixt_config_type;

/** One row of the table of keys. */
typedef struct mixt_config_record {
    const char *name; /**< "train.lr" */
    mixt_config_type type;
    const char *fallback; /**< the default, as text */
    const char *range;    /**< an interval, "[0,1)"; "": no limit */
    const char *choices;  /**< "a|b|c"; "": none */
    const char *help;     /**< one sentence */
    bool test;            /**< only tests set it: left out of lists, and of what is written unless it is set */
} mixt_config_record;

/** The keys in the order of the table: index from 0; NULL at its end. */
MIXT_API const mixt_config_record *mixt_config_key(int64_t index);
/** What a key takes, in words: "an integer", "one of a, b", … @param text receives it, for mixt_free. */
MIXT_API mixt_status mixt_config_expects(const mixt_config_record *record, char **text);

/** A name that users of another tool know a key by, as learning_rate for train.lr. */
typedef struct mixt_config_alias {
    const char *name; /**< small letters and '_' */
    const char *key;  /**< a row of the table of keys; "": it is no key, the note says what to do */
    const char *note; /**< where the two differ, or the whole setting, as "precision=fp16"; "": nothing to add */
} mixt_config_alias;

/** The names in the order of their table: index from 0; NULL at its end. None of them is taken for its key: messages
 *  about unknown keys say what is meant. */
MIXT_API const mixt_config_alias *mixt_config_alias_at(int64_t index);
/** The key that a word means: the last word of its name ("lr"), or another tool's name of it ("learning_rate").
 *  @param note receives the note of that name, valid for ever. @return NULL: not known, or no key, as the note says */
MIXT_API const mixt_config_record *mixt_config_meant(const char *word, const char **note);

/** All defaults. */
MIXT_API mixt_status mixt_config_new(mixt_config **config);
/** The same values, set at the same places. */
MIXT_API mixt_status mixt_config_copy(const mixt_config *config, mixt_config **copy);
/** NULL is allowed. */
MIXT_API void mixt_config_free(mixt_config *config);

/** Reads a YAML file (at most 1 MiB) of nested maps: `train: {lr: 0.1}` and `train.lr: 0.1` are the same. */
MIXT_API mixt_status mixt_config_load(mixt_config *config, const char *path);
/** The same from a text; `name` stands for the file in messages. */
MIXT_API mixt_status mixt_config_parse(mixt_config *config, const char *yaml, const char *name);
/** Sets one key from "train.lr=0.1"; `where` begins the message of an error ("command line"). */
MIXT_API mixt_status mixt_config_set(mixt_config *config, const char *assignment, const char *where);
/** Rules between keys, once all are set: something to train, scale_floor <= scale_init <= scale_ceiling, … Opening a
 *  run does this. */
MIXT_API mixt_status mixt_config_check(const mixt_config *config);

/** Values by the name of their key. A name that is none, or of another type: "", 0 or false. Texts are valid until the
 *  key is set again or the configuration freed. */
MIXT_API const char *mixt_config_string(const mixt_config *config,
                                        const char *key);                     /**< STRING, and the word of a CHOICE */
MIXT_API int64_t mixt_config_int(const mixt_config *config, const char *key); /**< INT; the bytes of a SIZE */
MIXT_API double mixt_config_float(const mixt_config *config,
                                  const char *key); /**< FLOAT; the number of a CHOICE_OR_FLOAT */
MIXT_API bool mixt_config_bool(const mixt_config *config, const char *key);
/** False while the key has its default. */
MIXT_API bool mixt_config_was_set(const mixt_config *config, const char *key);
/** Where the value comes from: "default", "FILE:LINE:COLUMN", or the `where` of mixt_config_set. */
MIXT_API const char *mixt_config_origin(const mixt_config *config, const char *key);

/** Every key as YAML that reads back to the same values. `comments` adds each key's help.
 *  @param text receives it, for mixt_free; NULL on failure */
MIXT_API mixt_status mixt_config_print(const mixt_config *config, bool comments, char **text);
/** The same, with comments, into a file, replaced as a whole or not at all. */
MIXT_API mixt_status mixt_config_write(const mixt_config *config, const char *path);

#ifdef __cplusplus
}
#endif
#endif
