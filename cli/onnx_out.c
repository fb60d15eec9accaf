/* mixt export --onnx. */
#include "cli/onnx_out.h"

#include "cli/json.h"
#include "cli/term.h"

#include <mixt/weights.h>

mixt_status cli_onnx_out_check(const cli_args *args)
{
    static const char *const others[] = {"gguf", "merge", "adapter", "not-finite", "vocab"};
    if (!cli_flag(args, "onnx"))
        return MIXT_OK;
    if (cli_given(args, "dtype") && mixt_dtype_parse(cli_text(args, "dtype")) != MIXT_DTYPE_FP32)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--dtype %s: weights of an ONNX file are fp32 so far",
                         cli_text(args, "dtype"));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (cli_given(args, others[i]))
            return mixt_fail(MIXT_ERROR_ARGUMENT, "--%s: does not go together with --onnx", others[i]);
    return MIXT_OK;
}

static int print(const cli_args *args, const mixt_onnx_report *made)
{
    char bytes[32];
    if (!cli_flag(args, "json")) {
        printf("%s: %lld nodes, %lld tensors, %s, opset 20\n", made->file, (long long)made->nodes,
               (long long)made->tensors, cli_format_bytes(bytes, (double)made->bytes));
        return CLI_OK;
    }
    json_t *row = cli_json_pack("{s:s, s:I, s:I, s:I}", "file", made->file, "nodes", (json_int_t)made->nodes, "tensors",
                                (json_int_t)made->tensors, "bytes", (json_int_t)made->bytes);
    if (!row) {
        fputs("mixt export: done, but the file's name is not UTF-8 and cannot be put into JSON\n", stderr);
        return CLI_FAILED;
    }
    cli_json_print(row, stdout, JSON_COMPACT);
    return CLI_OK;
}

int cli_onnx_out(const cli_args *args)
{
    mixt_onnx_report made;
    mixt_onnx_write_options options =
        MIXT_OPTIONS(mixt_onnx_write_options, .weights = cli_text(args, "checkpoint"), .file = cli_text(args, "out"),
                     .overwrite = cli_flag(args, "overwrite"));
    mixt_status status = mixt_onnx_write(cli_word(args, 0), &options, &made);
    if (status == MIXT_ERROR_FILE && made.file)
        (void)cli_output_check(args, made.file); // its text is the newest
    int code = status == MIXT_OK ? print(args, &made) : cli_failed();
    mixt_free(made.file);
    return code;
}
