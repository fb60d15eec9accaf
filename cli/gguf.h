/* A model as one GGUF file: the part of mixt export that writes it. */
#ifndef MIXT_CLI_GGUF_H
#define MIXT_CLI_GGUF_H

#include "cli/cli.h"

/** The options of it. */
#define CLI_GGUF_OPTIONS                                                                                               \
    {"gguf", .kind = CLI_FLAG, .help = "write one GGUF file, for llama.cpp: weights, tokenizer and chat template"},    \
    {                                                                                                                  \
        "type", .kind = CLI_CHOICE, .metavar = "T", .choices = "f32|f16|bf16|q8_0|q4_0", .fallback = "bf16",           \
                .help = "with --gguf: format of the matrices"                                                          \
    }

/** Fails on options that belong to the other kind of file. */
mixt_status cli_gguf_check(const cli_args *args);
/** Writes it; the command's status. */
int cli_gguf(const cli_args *args);

#endif
