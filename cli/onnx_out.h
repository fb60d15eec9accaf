/* A model as an ONNX file: the part of mixt export that writes it. */
#ifndef MIXT_CLI_ONNX_OUT_H
#define MIXT_CLI_ONNX_OUT_H

#include "cli/cli.h"

/** Fails on options that belong to the other kinds of file. */
mixt_status cli_onnx_out_check(const cli_args *args);
/** Writes it; the command's status. */
int cli_onnx_out(const cli_args *args);

#endif
