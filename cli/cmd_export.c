/* mixt export: the weights of a run for other programs. */
#include "cli/commands.h"

#include "run/init.h"
#include "run/directory.h"
#include "cli/term.h"
#include "cli/checkpoint_option.h"
#include "run/weights.h"
#include "cli/tokenize_progress.h"
#include "mixt/num.h"
#include "store/file.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Tokens that are not padding: chosen, or as many as the data has. */
static mixt_status real_vocab(const cli_args *args, const mixt_config *config, int64_t *vocab)
{
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry));
    bool padded = entry->names && entry->uses & MIXT_USES_VOCAB;
    if (cli_int(args, "vocab") && !padded)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "--vocab is for gpt and bert_mlm, whose padding is left out: of %s, every row is written",
                          entry->name);
    int64_t chosen = mixt__config_int(config, MIXT_KEY_NET_VOCAB);
    *vocab = cli_int(args, "vocab") ? cli_int(args, "vocab") : chosen;
    if (*vocab || !padded)
        return MIXT_OK;
    mixt__experiment e = {.progress = cli_tokenize_progress};
    mixt_status status = mixt__experiment_open(&e, config);
    if (status == MIXT_OK)
        *vocab = e.sizes.vocab;
    mixt__experiment_close(&e);
    return status == MIXT_OK ? status
                             : mixt__fail_context(status, "how many tokens are real, and not padding, only the data "
                                                          "knows: give --vocab N instead");
}

static mixt_status make_folder(const char *path, bool *made)
{
    struct stat facts;
    *made = !mkdir(path, 0777);
    if (*made || (errno == EEXIST && !stat(path, &facts) && S_ISDIR(facts.st_mode)))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FILE, "cannot make folder %s: %s", path, strerror(errno));
}

/** What is exported has other names and maybe fewer bits: in the place of the run's own weights it would be their end.
 */
static mixt_status keep_run(const char *run, const char *folder)
{
    if (!mixt__same_file(run, folder))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FILE,
                      "%s: is the run itself, whose weights would be replaced: choose another folder with --out",
                      folder);
}

/** Both or none: new weights beside an old config.json would be of another model. */
static mixt_status keep_files(const cli_args *args, const char *folder, bool described)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    MIXT_TRY(cli_output_check(args, path));
    snprintf(path, sizeof path, "%s/config.json", folder);
    return described ? cli_output_check(args, path) : MIXT_OK;
}

static mixt_status export_run(const cli_args *args, const mixt_config *config, int64_t *tensors, char folder[4096])
{
    const char *run = cli_word(args, 0), *out = cli_text(args, "out");
    char source[MIXT_WEIGHTS_PATH];
    mixt__export_request r = {.source = source, .folder = folder, .overwrite = cli_flag(args, "overwrite")};
    MIXT_TRY(mixt_run_folder_weights(run, cli_text(args, "checkpoint"), source, sizeof source));
    if (snprintf(folder, 4096, *out ? "%.0s%s" : "%s/export", run, out) >= 4096)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", run);
    MIXT_TRY(mixt__experiment_names(config, &r.names, &r.facts));
    r.dtype = mixt_dtype_parse(cli_text(args, "dtype"));
    MIXT_TRY(real_vocab(args, config, &r.vocab));
    MIXT_TRY(keep_run(run, folder));
    MIXT_TRY(keep_files(args, folder, r.names != NULL));
    bool made;
    MIXT_TRY(make_folder(folder, &made));
    mixt_status status = mixt__weights_export(&r, tensors);
    if (status != MIXT_OK && made)
        (void)rmdir(folder); // where nothing is in it
    if (status == MIXT_OK && !r.names)
        fprintf(stderr, "mixt export: other programs have no model %s: the tensors keep mixt's names\n",
                mixt__config_string(config, MIXT_KEY_MODEL));
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    char folder[4096];
    int64_t tensors = 0;
    mixt_status status = mixt_run_folder_config(cli_word(args, 0), &config);
    if (status == MIXT_OK)
        status = export_run(args, config, &tensors, folder);
    mixt_config_free(config);
    if (status != MIXT_OK)
        return cli_failed();
    if (!cli_flag(args, "json")) {
        printf("%s: %lld tensors, %s\n", folder, (long long)tensors, cli_text(args, "dtype"));
        return CLI_OK;
    }
    json_t *row = json_pack("{s:s, s:s, s:I}", "folder", folder, "dtype", cli_text(args, "dtype"), "tensors",
                            (json_int_t)tensors);
    if (!row) {
        fputs("mixt export: done, but the folder's name is not UTF-8 and cannot be put into JSON\n", stderr);
        return CLI_FAILED;
    }
    json_dumpf(row, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(row);
    return CLI_OK;
}

const cli_command cli_export = {
    .name = "export",
    .summary = "write the weights of a run for other programs",
    .description =
        "Writes model.safetensors, and config.json where there is one, into a folder (RUN/export): gpt and bert_mlm "
        "in the names and layouts of Hugging Face transformers (from_pretrained takes the folder), resnet and vgg in "
        "torchvision's (load_state_dict takes its tensors). Other models keep mixt's own names.\n\n"
        "Rows of tables that are only padding are left out. 'mixt train … init=FOLDER' is the way "
        "back. Existing files are not touched without --overwrite.",
    .arguments = {{"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory written by 'mixt train'"}},
    .options =
        {
            CLI_CHECKPOINT_OPTION,
            {"format", 'f', CLI_CHOICE, "F", "safetensors", "safetensors", .help = "kind of file"},
            {"dtype", 'd', CLI_CHOICE, "D", "fp32|fp16|bf16", "fp32", .help = "number format of the weights"},
            {"out", 'o', CLI_TEXT, "DIR", .help = "folder to write to; made if it is not there"},
            {"vocab", .kind = CLI_INT, .metavar = "N", .fallback = "0", .max = 16777216,
             .help = "tokens of gpt or bert_mlm that are real, the rest is padding; 0: as the data says"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace files that exist"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text"},
        },
    .examples =
        {
            {"mixt export runs/gpt --dtype bf16 --out gpt2-mine", "for transformers.GPT2LMHeadModel.from_pretrained"},
            {"mixt train configs/gpt.yaml data.path=FILE init=gpt2-mine", "and on with those weights"},
        },
    .see_also = "train|convert",
    .run = run,
};
