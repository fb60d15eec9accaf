/* What does a program around the library need? Environment variables, a guess at a misspelt word.
 *
 * Nothing here opens a device or takes memory.
 */
#ifndef MIXT_PROGRAM_H
#define MIXT_PROGRAM_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An environment variable that the library reads. */
typedef struct mixt_env_info {
    const char *name;     /**< "MIXT_THREADS" */
    const char *fallback; /**< what counts where it is not set; "" where the help says what happens then */
    const char *help;     /**< what it does, one sentence */
} mixt_env_info;

/** How many variables there are. */
MIXT_API int mixt_env_count(void);
/** The variable at a position from 0; NULL past the last. */
MIXT_API const mixt_env_info *mixt_env_at(int position);
/**
 * Whether the variables hold values that the library understands. It passes over what it does not: a program that
 * asks first can say so instead of computing otherwise than its user meant.
 * @return MIXT_ERROR_CONFIG with the variable, its value and what it takes.
 */
MIXT_API mixt_status mixt_env_check(void);

/**
 * The word that a misspelt one was probably meant to be; case is ignored.
 * @param wanted what was typed.
 * @param words those that there are; pointers that are NULL are passed over.
 * @param count of words.
 * @return one of `words`; NULL when none is near enough to be worth saying.
 */
MIXT_API const char *mixt_word_nearest(const char *wanted, const char *const *words, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
