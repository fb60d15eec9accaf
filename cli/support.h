/* Small things that every command may need and that are not about mixt: control flow, memory, time. */
#ifndef MIXT_CLI_SUPPORT_H
#define MIXT_CLI_SUPPORT_H

#include <mixt/types.h>

/** Hands a failure of the library, or of mixt_fail, on to the caller. */
#define CLI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        mixt_status cli_try_status = (call);                                                                           \
        if (cli_try_status != MIXT_OK)                                                                                 \
            return cli_try_status;                                                                                     \
    } while (0)

/** Makes room for one more element in a growing array of malloc; false when out of memory. */
bool cli_grow(void **array, int64_t *capacity, int64_t count, size_t element_size);

/** Notes that some of what was to be printed is missing for want of memory: the command then fails, with words. */
void cli_output_lose(void);
bool cli_output_lost(void);

/** Seconds of a clock that nobody sets. */
double cli_time_now(void);

/** Whether there is a regular file of this name. */
bool cli_path_is_file(const char *path);

/** Whether both names are of one file or folder that is there. */
bool cli_same_file(const char *a, const char *b);

#endif
