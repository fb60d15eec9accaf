/* mixt export: the weights of a run for other programs. */
#include "cli/commands.h"

#include "cli/checkpoint_option.h"
#include "cli/gguf.h"
#include "cli/json.h"
#include "cli/onnx_out.h"
#include "cli/tokenize_progress.h"

#include <mixt/weights.h>

#include <math.h>
#include <string.h>

/** Where a file that is there stands in the way, the option that replaces it. */
static void name_overwrite(const cli_args *args, const mixt_export_report *made)
{
    static const char *const names[] = {
        "model.safetensors", "config.json", "inputs.json", "tokenizer_config.json",     "vocab.json",
        "merges.txt",        "vocab.txt",   "policy.yaml", "adapter_model.safetensors", "adapter_config.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/%s", made->folder, names[i]);
        if (strstr(mixt_error_text(), path) && cli_output_check(args, path) != MIXT_OK) // its text is the newest
            return;
    }
}

static int print(const cli_args *args, const mixt_export_report *made)
{
    const char *dtype = cli_text(args, "dtype");
    if (!made->renamed)
        fprintf(stderr, "mixt export: other programs have no model %s: tensors keep mixt's names\n", made->model);
    else if (made->differs)
        fprintf(stderr,
                "mixt export: %s: the tensors have its names and layouts, but none of its own models has this shape\n",
                made->differs);
    if (made->tokens_unknown)
        fputs("mixt export: no tokenizer is written: the run does not know its vocabulary (data.vocab)\n", stderr);
    if (!cli_flag(args, "json")) {
        printf("%s: %lld tensors, %s\n", made->folder, (long long)made->tensors, dtype);
        if (!isnan(made->difference))
            printf("logits: %.3g at most between adapters and merged, of up to %.3g\n", made->difference,
                   made->largest);
        return CLI_OK;
    }
    json_t *row = cli_json_pack("{s:s, s:s, s:I, s:s?}", "folder", made->folder, "dtype", dtype, "tensors",
                                (json_int_t)made->tensors, "differs", made->differs);
    if (row && !isnan(made->difference)) {
        cli_json_set(row, "difference", cli_json_real(made->difference));
        cli_json_set(row, "largest", cli_json_real(made->largest));
    }
    if (!row) {
        fputs("mixt export: done, but the folder's name is not UTF-8 and cannot be put into JSON\n", stderr);
        return CLI_FAILED;
    }
    cli_json_print(row, stdout, JSON_COMPACT);
    return CLI_OK;
}

static int run(const cli_args *args)
{
    mixt_export_report made;
    if (cli_gguf_check(args) != MIXT_OK || cli_onnx_out_check(args) != MIXT_OK)
        return cli_failed();
    if (cli_flag(args, "onnx"))
        return cli_onnx_out(args);
    if (cli_flag(args, "gguf"))
        return cli_gguf(args);
    mixt_export_options options = MIXT_OPTIONS(
        mixt_export_options, .weights = cli_text(args, "checkpoint"), .folder = cli_text(args, "out"),
        .dtype = mixt_dtype_parse(cli_text(args, "dtype")), .vocab = cli_int(args, "vocab"),
        .overwrite = cli_flag(args, "overwrite"), .not_finite = cli_flag(args, "not-finite"),
        .merged = cli_flag(args, "merge"), .adapter = cli_flag(args, "adapter"), .progress = cli_tokenize_progress);
    mixt_status status = mixt_run_export(cli_word(args, 0), &options, &made);
    if (status == MIXT_ERROR_FILE && made.folder)
        name_overwrite(args, &made);
    int code = status == MIXT_OK ? print(args, &made) : cli_failed();
    mixt_free(made.folder);
    mixt_free(made.differs);
    return code;
}

const cli_command cli_export = {
    .name = "export",
    .summary = "write weights for Hugging Face, PyTorch and others",
    .description =
        "Writes model.safetensors, config.json, inputs.json and the tokenizer to a folder (RUN/export). Hugging Face's "
        "from_pretrained and AutoTokenizer, or torchvision's load_state_dict, read them; 'mixt train … init=FOLDER' "
        "does too. The run's data are not needed.\n\n"
        "gpt, llama, bert_mlm and bert_classify have the names and layouts of Hugging Face transformers, resnet and "
        "vgg those of torchvision (config.json has \"torchvision\": false where torchvision's model of that name has "
        "other sizes). Other models keep mixt's names and have no config.json. inputs.json holds shape, mean, std and "
        "class names of the inputs. Padding rows of tables, and positions that the run never trained, are left out.\n\n"
        "--gguf writes one GGUF file instead, for llama.cpp, of a run of gpt or llama, or of a Hugging Face folder "
        "(RUN/export/model-TYPE.gguf, or FOLDER/model-TYPE.gguf). --onnx writes one ONNX file instead "
        "(RUN/export.onnx): opset 20, FP32, any number of samples, images (N, C, H, W).",
    .arguments = {{"RUN", CLI_ARGUMENT_FOLDER,
                   .help = "run directory written by 'mixt train'; with --gguf also a Hugging Face folder"}},
    .options =
        {
            CLI_CHECKPOINT_OPTION,
            {"format", 'f', CLI_CHOICE, "F", "safetensors", "safetensors", .help = "kind of file"},
            {"dtype", 'd', CLI_CHOICE, "D", "fp32|fp16|bf16", "fp32", .help = "number format of the weights"},
            CLI_GGUF_OPTIONS,
            {"onnx", .kind = CLI_FLAG, .help = "write one ONNX file, for onnxruntime"},
            {"out", 'o', CLI_TEXT, "PATH", .help = "folder to write to; --gguf, --onnx: file"},
            {"vocab", .kind = CLI_INT, .metavar = "N", .fallback = "0", .max = 16777216,
             .help = "tokens without padding; 0: as in the data",
             .more = "Of gpt, llama, bert_mlm and bert_classify; rows past N are left out"},
            {"merge", .kind = CLI_FLAG, .help = "write weights with the run's adapters in them",
             .more = "Prints how far logits are from those of the run"},
            {"adapter", .kind = CLI_FLAG, .help = "write the run's adapters alone, as PEFT reads them",
             .more = "adapter_model.safetensors and adapter_config.json"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace files that exist"},
            {"not-finite", .kind = CLI_FLAG, .help = "write weights with NaN or Inf too"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object"},
        },
    .examples =
        {
            {"mixt export runs/gpt --dtype bf16 --out gpt2-mine", "for transformers.GPT2LMHeadModel.from_pretrained"},
            {"mixt train configs/gpt.yaml data.path=FILE init=gpt2-mine", "train on from those weights"},
            {"mixt export runs/gpt --gguf --type q8_0 --out gpt.gguf", "for llama.cpp"},
            {"mixt export runs/digits --onnx --out digits.onnx", "for onnxruntime"},
        },
    .see_also = "train|convert",
    .run = run,
};
