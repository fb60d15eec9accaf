/* Facts about this machine for `mixt info`: cores, caches, memory, and what each number format will do here. */
#ifndef MIXT_CLI_MACHINE_H
#define MIXT_CLI_MACHINE_H

#include "mixt/types.h"

enum { CLI_CACHES_MAX = 8 };

typedef struct cli_cache {
    int level;
    char type[16]; // "Data", "Instruction", "Unified"
    int64_t bytes;
} cli_cache;

typedef struct cli_machine {
    int cores_online, cores_usable;
    cli_cache caches[CLI_CACHES_MAX]; // of the first core
    int cache_count;
    int64_t memory_total, memory_available; // bytes, 0 when not readable; a control group's limit counts
} cli_machine;

cli_machine cli_machine_read(void);

/** How a format is served on this CPU at the instruction-set level in use. */
typedef struct cli_format {
    const char *name;
    const char *support;  // "native", "widened", "emulated"
    const char *how;      // which instructions do the work
    const char *training; // what a training run does with it
} cli_format;

enum { CLI_FORMATS = 6 };

void cli_formats_read(cli_format formats[CLI_FORMATS]);

#endif
