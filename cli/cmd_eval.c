/* mixt eval: how good a trained run is. */
#include "cli/commands.h"

#include "cli/beams_option.h"
#include "cli/checkpoint_option.h"
#include "cli/json.h"
#include "cli/pairs.h"
#include "cli/ratings.h"
#include "cli/report.h"
#include "cli/support.h"
#include "cli/term.h"
#include "cli/tokenize_progress.h"
#include "cli/transcripts.h"
#include "cli/translate.h"
#include "cli/watch.h"
#include "mixt/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** What was found. */
typedef struct findings {
    const char *split;
    mixt_evaluation loss;
    const mixt_data_info *data;
    mixt_report *report;         // NULL: none was made
    mixt_ranking ranking;        // of ratings
    mixt_recall recall;          // of pictures with captions
    mixt_transcript_rates rates; // of recordings with texts
    mixt_bleu bleu;              // of translations
} findings;

/** The part asked for; of data that was given, without a word the one that models are judged by. */
static mixt_status choose_split(const cli_args *args, const mixt_run *run, const char **split)
{
    bool given = false;
    for (int i = 0; i < args->setting_count; i++)
        given |= !strncmp(args->settings[i], "data.path=", 10) && args->settings[i][10];
    *split = cli_text(args, "split");
    if (!given || cli_given(args, "split"))
        return MIXT_OK;
    mixt_status status = mixt_run_part(run, split);
    return status == MIXT_ERROR_DATA
               ? mixt_fail(status, "%s (in the %s part: --split names another)", mixt_error_text(), *split)
               : status;
}

static mixt_status print_json(const cli_args *args, const findings *found)
{
    const mixt_evaluation *e = &found->loss;
    json_t *o = cli_json_pack("{s:s, s:s, s:I}", "run", cli_word(args, 0), "split", found->split, "count",
                              (json_int_t)e->count);
    if (!o)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "the run's name is not UTF-8: --json cannot print it");
    cli_json_set(o, "loss", cli_json_real(e->loss));
    cli_json_set(o, "accuracy", cli_json_real(e->accuracy));
    cli_json_set(o, "error_rate", cli_json_real(1 - e->accuracy));
    if (found->data->target == MIXT_TARGET_TOKENS)
        cli_json_set(o, "perplexity", cli_json_real(exp(e->loss)));
    if (found->report)
        cli_report_json(mixt_report_describe(found->report), found->data, o);
    if (found->ranking.count) {
        cli_json_set(o, "ranked", json_integer(found->ranking.count));
        cli_json_set(o, "hit_rate", cli_json_real(found->ranking.hit_rate));
        cli_json_set(o, "ndcg", cli_json_real(found->ranking.ndcg));
        cli_json_set(o, "ranked_among", cli_json_real(found->ranking.among));
    }
    cli_transcripts_json(&found->rates, o);
    if (found->bleu.sentences) {
        cli_json_set(o, "sentences", json_integer(found->bleu.sentences));
        cli_json_set(o, "bleu", cli_json_real(found->bleu.score));
        cli_json_set(o, "brevity", cli_json_real(found->bleu.brevity));
    }
    cli_pairs_json(&found->recall, o);
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    return MIXT_OK;
}

static void print_text(const cli_args *args, const findings *found)
{
    const mixt_evaluation *e = &found->loss;
    const mixt_report_info *report = mixt_report_describe(found->report);
    char loss[32], values[128], ranks[128], rates[128], recall[192], bleu[64], more[128] = "";
    if (!isnan(e->accuracy))
        snprintf(more, sizeof more, ", accuracy %.2f%%, error rate %.2f%%", 100 * e->accuracy, 100 - 100 * e->accuracy);
    size_t used = strlen(more);
    if (found->data->target == MIXT_TARGET_TOKENS)
        snprintf(more + used, sizeof more - used, ", perplexity %.2f", exp(e->loss));
    cli_line(stdout, "", "%s on %s: loss %s%s%s%s%s%s%s over %lld targets", cli_word(args, 0), found->split,
             cli_format_loss(loss, e->loss), more, cli_report_values(report, values),
             cli_ratings_text(&found->ranking, ranks), cli_transcripts_text(&found->rates, rates),
             cli_pairs_text(&found->recall, recall), cli_translate_text(&found->bleu, bleu), (long long)e->count);
    if (found->report)
        cli_report_print(report, found->data);
}

/** A loss that is no number is shown, and is a failure: scripts compare figures. */
static mixt_status print(const cli_args *args, const findings *found)
{
    mixt_status status = MIXT_OK;
    if (cli_flag(args, "json"))
        status = print_json(args, found);
    else
        print_text(args, found);
    if (status != MIXT_OK)
        return status;
    return isfinite(found->loss.loss) ? MIXT_OK
                                      : mixt_fail(MIXT_ERROR_DATA,
                                                  "%s: the loss is not finite: its weights are damaged or "
                                                  "diverged",
                                                  cli_word(args, 0));
}

/** It costs a second pass over the data: where there are many classes, only when someone will see it. */
static bool wants_report(const cli_args *args, const findings *found)
{
    bool asked = cli_flag(args, "json") || cli_flag(args, "classes");
    return isfinite(found->loss.loss) && found->data->target != MIXT_TARGET_TOKENS &&
           found->data->target != MIXT_TARGET_TEXT && !cli_is_pairs(found->data) &&
           (asked || found->data->classes <= CLI_REPORT_CLASSES);
}

static mixt_status evaluate(const cli_args *args, mixt_run *run)
{
    findings found = {0};
    mixt_data *data;
    CLI_TRY(choose_split(args, run, &found.split));
    CLI_TRY(mixt_run_evaluate(run, found.split, &found.loss));
    CLI_TRY(mixt_run_data(run, found.split, &data));
    found.data = mixt_data_describe(data);
    if (cli_given(args, "beams") && found.data->target != MIXT_TARGET_TEXT && !cli_is_translator(found.data))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--beams: %s does not transcribe or translate", cli_word(args, 0));
    if (cli_given(args, "length-penalty") && !cli_is_translator(found.data))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--length-penalty: %s does not translate", cli_word(args, 0));
    if (wants_report(args, &found))
        CLI_TRY(mixt_report_of(mixt_run_trainer(run), data, &found.report));
    mixt_status status = cli_ratings_rank(run, found.split, data, &found.ranking);
    if (status == MIXT_OK && isfinite(found.loss.loss))
        status = cli_pairs_measure(run, data, &found.recall);
    if (status == MIXT_OK && isfinite(found.loss.loss))
        status = cli_transcripts_measure(run, data, cli_beams(args, 1), &found.rates);
    if (status == MIXT_OK && isfinite(found.loss.loss))
        status = cli_translate_score(args, run, data, &found.bleu);
    if (status == MIXT_OK)
        status = print(args, &found);
    mixt_report_free(found.report);
    return status;
}

/** Keys of the data alone: the rest is the trained model's. */
static mixt_status check_settings(const cli_args *args)
{
    for (int i = 0; i < args->setting_count; i++)
        if (strncmp(args->settings[i], "data.", 5))
            return mixt_fail(MIXT_ERROR_CONFIG, "%s: only keys data.* can be set here; the others are the run's",
                             args->settings[i]);
    return MIXT_OK;
}

static mixt_status load(const cli_args *args, mixt_run **run)
{
    char device[64];
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .progress = cli_tokenize_progress, .observer = cli_warn);
    const char **settings = calloc((size_t)args->setting_count + 2, sizeof *settings);
    *run = NULL;
    if (!settings)
        return mixt_fail(MIXT_ERROR_MEMORY, "no memory for settings");
    for (int i = 0; i < args->setting_count; i++)
        settings[i] = args->settings[i];
    snprintf(device, sizeof device, "device=%s", cli_text(args, "device"));
    if (cli_given(args, "device"))
        settings[args->setting_count] = device;
    options.settings = settings;
    mixt_status status = check_settings(args);
    if (status == MIXT_OK)
        status = mixt_run_load_with(cli_word(args, 0), cli_text(args, "checkpoint"), &options, run);
    free(settings);
    return status;
}

/** A row that the data does not use shows in no loss. */
static mixt_status check_weights(const cli_args *args, mixt_run *run)
{
    mixt_status status = mixt_trainer_check_finite(mixt_run_trainer(run));
    return status == MIXT_OK
               ? MIXT_OK
               : mixt_fail(status, "%s: %s (--not-finite evaluates them)", cli_word(args, 0), mixt_error_text());
}

static int run(const cli_args *args)
{
    mixt_run *run;
    mixt_status status = load(args, &run);
    if (status == MIXT_OK && !cli_flag(args, "not-finite"))
        status = check_weights(args, run);
    if (status == MIXT_OK)
        status = evaluate(args, run);
    mixt_run_close(run);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_eval = {
    .name = "eval",
    .summary = "measure loss and accuracy of a trained model",
    .description =
        "Evaluates the weights of a run on one part of its data and prints loss, accuracy and the figures that belong "
        "to the kind of model: perplexity of language models, precision, recall, F1 and the confusion matrix of "
        "classifiers, MAE, RMSE and R2 of regression, BLEU of translations, word error rate of speech.\n\n"
        "Classifiers: accuracy and error rate; up to 20 classes also precision, recall and F1 of each class and the "
        "confusion matrix. --classes shows the figures of more classes, with the most frequent mistakes in place of "
        "the matrix. Two classes: F1 of the second one, as GLUE has it, and the mean of both. Language models: "
        "perplexity, the exponential of the loss. Regression: MAE, RMSE and R2. Translations: BLEU, as sacrebleu "
        "computes it. Speech: character and word error rate, the number of edits per character or word of the "
        "reference; accuracy is the share of texts without a mistake at --beams 1.\n\n"
        "Images with captions: how often the matching one is ranked first, or among the first five, in both "
        "directions. Ratings: also hit rate and NDCG at 10, where a held-out item that the user liked is ranked among "
        "100 items, the others drawn from those that the user has not rated.\n\n"
        "Samples are normalised as in training; a warning says so where the data are not those that the run was "
        "trained on.\n\n"
        "data.path=FILE and other keys data.* evaluate on other data. Without --split that is the test part of a "
        "folder or archive that has parts, else its validation part; all samples of anything else. --split all takes "
        "all samples of the training file, held-out ones included.",
    .arguments =
        {
            {"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory written by 'mixt train', or a Hugging Face folder"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "other data, as in data.path=FILE data.labels=price"},
        },
    .options =
        {
            {"split", 's', CLI_CHOICE, "S", "train|val|test|all", "val", .help = "part of the data",
             .more = "With data.path: test or val, where the data have them, or all"},
            CLI_BEAMS_OPTION,
            CLI_CHECKPOINT_OPTION,
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda|cuda:N",
             .help = "evaluate on this device, not the run's"},
            CLI_LENGTH_PENALTY_OPTION,
            {"classes", .kind = CLI_FLAG, .help = "figures of each class, also with more than 20 classes"},
            {"not-finite", .kind = CLI_FLAG, .help = "evaluate weights with NaN or Inf too"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object with all figures and the matrix"},
        },
    .examples =
        {
            {"mixt eval runs/fp16", "on the validation part"},
            {"mixt eval runs/fp16 --split test --json", "on the test part, for a script"},
            {"mixt eval runs/fp16 data.path=FILE", "on other data"},
        },
    .see_also = "train|predict|generate",
    .run = run,
};
