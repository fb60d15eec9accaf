/* mixt export --gguf. */
#include "cli/gguf.h"

#include "cli/term.h"
#include "cli/json.h"
#include "cli/tokenize_progress.h"

#include <mixt/weights.h>

mixt_status cli_gguf_check(const cli_args *args)
{
    bool gguf = cli_flag(args, "gguf");
    if (gguf && cli_given(args, "dtype"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--dtype: is for safetensors; the format of a GGUF file is --type");
    if (gguf && cli_flag(args, "not-finite"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--not-finite: GGUF files are of finite weights only");
    if (!gguf && cli_given(args, "type"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--type: is for --gguf; the format of safetensors is --dtype");
    return MIXT_OK;
}

static int print(const cli_args *args, const mixt_gguf_report *made)
{
    const char *type = cli_text(args, "type");
    char bytes[32];
    if (made->note)
        fprintf(stderr, "mixt export: %s\n", made->note);
    if (!cli_flag(args, "json")) {
        printf("%s: %lld tensors, %s, %s, architecture %s\n", made->file, (long long)made->tensors, type,
               cli_format_bytes(bytes, (double)made->bytes), made->architecture);
        return CLI_OK;
    }
    json_t *row = cli_json_pack("{s:s, s:s, s:s, s:I, s:I, s:s?}", "file", made->file, "type", type, "architecture",
                                made->architecture, "tensors", (json_int_t)made->tensors, "bytes",
                                (json_int_t)made->bytes, "note", made->note);
    if (!row) {
        fputs("mixt export: done, but the file's name is not UTF-8 and cannot be put into JSON\n", stderr);
        return CLI_FAILED;
    }
    cli_json_print(row, stdout, JSON_COMPACT);
    return CLI_OK;
}

int cli_gguf(const cli_args *args)
{
    mixt_gguf_report made;
    mixt_gguf_options options =
        MIXT_OPTIONS(mixt_gguf_options, .type = cli_text(args, "type"), .weights = cli_text(args, "checkpoint"),
                     .file = cli_text(args, "out"), .vocab = cli_int(args, "vocab"),
                     .overwrite = cli_flag(args, "overwrite"), .progress = cli_tokenize_progress);
    mixt_status status = mixt_gguf_write(cli_word(args, 0), &options, &made);
    if (status == MIXT_ERROR_FILE && made.file)
        (void)cli_output_check(args, made.file); // its text is the newest
    int code = status == MIXT_OK ? print(args, &made) : cli_failed();
    mixt_free(made.file);
    mixt_free(made.note);
    return code;
}
