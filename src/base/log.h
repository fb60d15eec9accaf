/* Masked log: MIXT_LOG=plan,memory prints those categories to stderr. Off, a call costs one load and one test. */
#ifndef MIXT_BASE_LOG_H
#define MIXT_BASE_LOG_H

typedef enum mixt__log_category {
    MIXT_LOG_ERROR = 1 << 0,
    MIXT_LOG_PLAN = 1 << 1,
    MIXT_LOG_DISPATCH = 1 << 2,
    MIXT_LOG_MEMORY = 1 << 3,
    MIXT_LOG_DATA = 1 << 4,
    MIXT_LOG_TRAIN = 1 << 5,
} mixt__log_category;

#define MIXT_LOG(category, ...)                                                                                        \
    do {                                                                                                               \
        if (mixt__log_mask() & MIXT_LOG_##category)                                                                    \
            mixt__log_write(#category, __VA_ARGS__);                                                                   \
    } while (0)

/** The categories as MIXT_LOG names them, in the order of their bits, then "all"; as base/words.h has choices. */
extern const char mixt__log_choices[];

int mixt__log_mask(void);
void mixt__log_write(const char *category, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
