/* mixt convert: an array or a weights file from one number format to another. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/term.h"

#include <mixt/weights.h>

#include <sys/stat.h>

static int64_t file_bytes(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 ? (int64_t)facts.st_size : 0;
}

static void say_lost(int64_t count, const char *why, const char *dtype, const char *now)
{
    if (count)
        printf("%s %s, %s: %lld value%s\n", why, dtype, now, (long long)count, count == 1 ? "" : "s");
}

static int run(const cli_args *args)
{
    const char *src = cli_word(args, 0), *dst = cli_word(args, 1), *name = cli_text(args, "dtype");
    if (cli_given(args, "seed") && !cli_flag(args, "stochastic"))
        return cli_usage(args->command,
                         "--seed %s has no effect with rounding to nearest: add --stochastic, or leave it out",
                         cli_text(args, "seed"));
    mixt_convert_options options = MIXT_OPTIONS(
        mixt_convert_options, .stochastic = cli_flag(args, "stochastic"), .seed = (uint64_t)cli_int(args, "seed"),
        .scale = (float)cli_number(args, "scale"), .saturate = cli_flag(args, "saturate"));
    int64_t before = file_bytes(src);
    mixt_convert_report report;
    if (cli_output_check(args, dst) != MIXT_OK ||
        mixt_convert_file(src, dst, mixt_dtype_parse(name), &options, cli_flag(args, "overwrite"), &report) != MIXT_OK)
        return cli_failed();
    int64_t after = file_bytes(dst);
    const mixt_convert_report *r = &report;
    if (cli_flag(args, "json")) {
        json_t *row =
            cli_json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "src", src, "dst", dst, "dtype", name,
                          "src_bytes", (json_int_t)before, "dst_bytes", (json_int_t)after, "kept", (json_int_t)r->kept,
                          "overflowed", (json_int_t)r->overflowed, "clamped", (json_int_t)r->clamped, "vanished",
                          (json_int_t)r->vanished, "nan_lost", (json_int_t)r->nan_lost);
        if (!row) {
            fputs("mixt convert: done, but the file names are not UTF-8 and cannot be put into JSON\n", stderr);
            return CLI_FAILED;
        }
        cli_json_print(row, stdout, 0);
        return CLI_OK;
    }
    char from[32], to[32];
    printf("%s: %s, %s (%s: %s)\n", dst, name, cli_format_bytes(to, (double)after), src,
           cli_format_bytes(from, (double)before));
    if (r->kept)
        printf("%lld tensor%s without floating-point numbers copied unchanged\n", (long long)r->kept,
               r->kept == 1 ? "" : "s");
    say_lost(r->overflowed, "out of the range of", name, "infinite or NaN now");
    say_lost(r->clamped, "out of the range of", name, "clamped to it");
    say_lost(r->vanished, "too small for", name, "0 now");
    say_lost(r->nan_lost, "NaN, which is not in", name, "0 now");
    return CLI_OK;
}

const cli_command cli_convert = {
    .name = "convert",
    .summary = "convert arrays or weights between number formats",
    .description =
        "Reads SRC and writes DST with its floating-point arrays in another number format. The kind of file is known "
        "from the name: .npy or .safetensors. An existing DST is refused without --overwrite.\n\n"
        "Other tensors of a .safetensors file are copied unchanged, and their number is printed. A file with one array "
        "can be converted to either kind. Rounding is to nearest, ties to even; NaN stays NaN (0 in an integer format) "
        "and subnormal numbers are kept. Values that do not fit the format are counted. DST is replaced as a whole or "
        "not at all.",
    .arguments =
        {
            {"SRC", CLI_ARGUMENT_FILE, .help = "file to read"},
            {"DST", CLI_ARGUMENT_FILE, .help = "file to write"},
        },
    .options =
        {
            {"dtype", 'd', CLI_CHOICE, "D", "fp32|tf32|fp16|bf16|fp8_e4m3|fp8_e5m2|int8|uint8|fp64", .required = true,
             .help = "format to convert to"},
            {"stochastic", .kind = CLI_FLAG, .help = "stochastic rounding"},
            {"seed", .kind = CLI_INT, .metavar = "N", .fallback = "0", .max = 9007199254740992.0,
             .help = "seed of --stochastic"},
            {"scale", .kind = CLI_NUMBER, .metavar = "S", .fallback = "1", .min = 1e-30, .max = 1e30,
             .help = "stored value = value / S; only to or from int8, uint8 and fp8"},
            {"saturate", .kind = CLI_FLAG,
             .help = "clamp to the largest finite value instead of overflowing (fp16, fp8)"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace DST if it exists"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object"},
        },
    .examples =
        {
            {"mixt convert weights.safetensors small.safetensors --dtype bf16", "half the size, the range of FP32"},
            {"mixt convert x.npy y.npy --dtype fp16 --stochastic --seed 7", "an array, rounded stochastically"},
        },
    .see_also = "info",
    .run = run,
};
