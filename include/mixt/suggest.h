/* Which configuration suits this data? Kind, model, sizes, batch, learning rate and length of a run, chosen by looking
 * at the data that a configuration names. What is set there stays as it is; nothing is trained.
 *
 *     mixt_config_set(config, "data.path=photos", "me");
 *     mixt_suggest(config, &suggestion);              // looks at photos/
 *     mixt_suggestion_apply(suggestion, config);      // and now it can be trained: mixt_run_open_config
 */
#ifndef MIXT_SUGGEST_H
#define MIXT_SUGGEST_H

#include "mixt/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_suggestion mixt_suggestion;

/** One key that was left open, and what was chosen for it. */
typedef struct mixt_choice {
    const char *key;   /**< "train.batch" */
    const char *value; /**< as mixt_config_set takes it: "64" */
    const char *why;   /**< a few words; "" where the key says it */
} mixt_choice;

/**
 * Looks at the data that a configuration names (data.kind, data.path) and chooses the keys that are not set there.
 * Opens the data's training part; nothing is written but what opening may keep in the cache folder.
 * @param config must name data, or a kind that mixt draws; `init` may name weights to begin with.
 * @param suggestion set to NULL on failure; free it with mixt_suggestion_free.
 */
MIXT_API mixt_status mixt_suggest(const mixt_config *config, mixt_suggestion **suggestion);
/** NULL is allowed. */
MIXT_API void mixt_suggestion_free(mixt_suggestion *suggestion);

/** The choices in the order of the table of keys: index from 0; NULL at their end. Belongs to the suggestion. */
MIXT_API const mixt_choice *mixt_suggestion_choice(const mixt_suggestion *suggestion, int64_t index);
/** What the data is and what was chosen, one line of text. Belongs to the suggestion. */
MIXT_API const char *mixt_suggestion_summary(const mixt_suggestion *suggestion);
/** Sets the chosen keys in a configuration. */
MIXT_API mixt_status mixt_suggestion_apply(const mixt_suggestion *suggestion, mixt_config *config);
/** The keys that were set and those that were chosen, as YAML with comments. @param text receives it, for mixt_free */
MIXT_API mixt_status mixt_suggestion_yaml(const mixt_suggestion *suggestion, char **text);
/** The same as a new file; one that exists is refused. */
MIXT_API mixt_status mixt_suggestion_write(const mixt_suggestion *suggestion, const char *path);

#ifdef __cplusplus
}
#endif
#endif
