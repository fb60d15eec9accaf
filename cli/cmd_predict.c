/* mixt predict: what a trained model says about pictures, arrays and samples of its own data. */
#include "cli/commands.h"

#include "cli/beams_option.h"
#include "cli/checkpoint_option.h"
#include "cli/json.h"
#include "cli/masked.h"
#include "cli/pairs.h"
#include "cli/ratings.h"
#include "cli/report.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"
#include "cli/transcripts.h"
#include "cli/translate.h"
#include "cli/watch.h"

#include <mixt/predict.h>
#include <mixt/tasks/table.h>
#include <mixt/run.h>
#include <mixt/zoo.h>

#include <stdlib.h>
#include <string.h>

enum { TOP_MAX = 1000 };

/** Where the samples of one INPUT come from. */
typedef struct source {
    char name[4096];           // the file, or the part of the run's data
    const mixt_data *data;     // a part of the run's data, or
    mixt_inputs *inputs;       // a file
    int64_t first, end, total; // samples asked for, and that there are
} source;

/** What the command works with. */
typedef struct predictor {
    mixt_run *run;
    const mixt_data *facts; // shapes, classes and statistics are its
    const mixt_data_info *info;
    int64_t outputs, top, beam;
    bool json, labelled; // labelled: some INPUT is a part of the run's data
    bool best;           // some INPUT is a user, whose best items are asked for
    bool lines;          // some INPUT is a file of texts
    int64_t line;        // of the text that is shown; 0: it is from no file
    bool cut;            // its end was not read
    mixt_report *report; // where one was asked for
    cli_table table;
    float *input, *output; // one batch
    int32_t *target;       // of values, FP32 numbers of the same size
    mixt_guess *guesses;   // of one sample
    int64_t batch;
} predictor;

/** Reads the number of a sample; false when it is none. */
static bool parse_index(const char *text, char **end, int64_t *index)
{
    *index = strtoll(text, end, 10);
    return *end > text && *index >= 0 && *index < INT64_MAX - 1; // the end of a range is one more, INT64_MAX means all
}

/** A text that is given as it is: "text:WORDS". */
static bool is_words(const char *text)
{
    return !strncmp(text, "text:", 5) && !cli_path_is_file(text);
}

/** Splits NAME:FIRST-LAST; without numbers, or when a file has that whole name, all samples. */
static mixt_status parse_range(const char *text, source *s)
{
    const char *colon = strrchr(text, ':');
    char *end;
    if (snprintf(s->name, sizeof s->name, "%s", text) >= (int)sizeof s->name)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "%.40s…: the name is too long", text);
    s->end = INT64_MAX;
    if (!colon || cli_path_is_file(text) || is_words(text))
        return MIXT_OK;
    bool good = parse_index(colon + 1, &end, &s->first);
    int64_t last = s->first;
    if (good && *end == '-')
        good = parse_index(end + 1, &end, &last);
    if (!good || *end || last < s->first)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "%s: expected NAME:INDEX or NAME:FIRST-LAST with numbers from 0", text);
    s->end = last + 1;
    s->name[colon - text] = '\0';
    return MIXT_OK;
}

/** Whether a source is a part of the run's own data, whose labels are known. */
static bool is_part(const source *s)
{
    bool part = !strcmp(s->name, "train") || !strcmp(s->name, "val") || !strcmp(s->name, "test");
    return part && !cli_path_is_file(s->name);
}

static mixt_status open_source(predictor *p, const char *text, source *s)
{
    *s = (source){0};
    CLI_TRY(parse_range(text, s));
    if (is_part(s)) {
        mixt_data *data;
        mixt_status status = mixt_run_data(p->run, s->name, &data);
        if (status == MIXT_ERROR_FILE && !cli_is_ratings(p->info) && !cli_is_pairs(p->info)) // those take no files
            return mixt_fail(status, "%s (predicting your own files does not need them)", mixt_error_text());
        CLI_TRY(status);
        s->data = data;
        s->total = mixt_data_describe(data)->samples;
    } else {
        CLI_TRY(mixt_inputs_open(s->name, p->facts, &s->inputs));
        s->total = mixt_inputs_count(s->inputs);
    }
    if (s->end == INT64_MAX)
        s->end = s->total;
    if (s->end > s->total)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "%s: sample %lld, but there are %lld, counted from 0", text,
                         (long long)s->end - 1, (long long)s->total);
    return MIXT_OK;
}

/* ---- output ---- */

static json_t *json_guess(const predictor *p, const mixt_guess *g)
{
    json_t *o =
        cli_json_pack("{s:I, s:o}", "class", (json_int_t)g->label, "probability", cli_json_real(g->probability));
    if (p->info->class_names && g->label < p->info->classes)
        cli_json_set(o, "name", cli_json_string(p->info->class_names[g->label]));
    return o;
}

static const char *class_text(const predictor *p, int64_t label, char text[64])
{
    if (p->info->class_names && label < p->info->classes)
        return p->info->class_names[label];
    snprintf(text, 64, "%lld", (long long)label);
    return text;
}

static void show_classes(predictor *p, const char *name, const int32_t *label)
{
    const mixt_guess *guesses = p->guesses;
    char text[64], rest[512] = "";
    if (p->json) {
        json_t *o = json_guess(p, guesses), *top = json_array();
        cli_json_set(o, "input", cli_json_string(name));
        if (p->line)
            cli_json_set(o, "line", json_integer(p->line));
        if (p->cut)
            cli_json_set(o, "cut", json_true());
        if (label)
            cli_json_set(o, "label", json_integer(*label));
        if (label && p->info->class_names && *label < p->info->classes)
            cli_json_set(o, "label_name", cli_json_string(p->info->class_names[*label]));
        for (int64_t i = 0; i < p->top; i++)
            cli_json_add(top, json_guess(p, &guesses[i]));
        cli_json_set(o, "top", top);
        cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        return;
    }
    size_t used = 0;
    for (int64_t i = 1; i < p->top && used < sizeof rest; i++)
        used += (size_t)snprintf(rest + used, sizeof rest - used, "%s%s %.2f%%", i > 1 ? ", " : "",
                                 class_text(p, guesses[i].label, text), 100 * guesses[i].probability);
    cli_table_cell(&p->table, "%s", name);
    if (p->lines)
        cli_table_cell(&p->table, p->line ? "%lld" : "", (long long)p->line);
    cli_table_cell(&p->table, "%s%s", class_text(p, guesses[0].label, text),
                   label && *label != guesses[0].label ? " (wrong)" : "");
    if (p->labelled)
        cli_table_cell(&p->table, "%s", label ? class_text(p, *label, text) : "");
    cli_table_cell(&p->table, "%.2f%%", 100 * guesses[0].probability);
    cli_table_cell(&p->table, "%s", rest);
}

/** Numbers as a JSON list, and into `text` as far as they fit. */
static json_t *list_values(const float *values, int64_t count, char text[512])
{
    json_t *list = json_array();
    size_t used = 0;
    text[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        cli_json_add(list, cli_json_real((double)values[i]));
        if (used < 512)
            used += (size_t)snprintf(text + used, 512 - used, "%s%.6g", i ? " " : "", (double)values[i]);
    }
    return list;
}

/** @param place of the sample in its batch */
static void show_values(predictor *p, const source *s, const char *name, const float *values, const float *target,
                        int64_t place, int64_t count)
{
    char text[512], wanted[512] = "";
    json_t *list = list_values(values, p->outputs, text);
    json_t *goal = target ? list_values(target, p->info->target_elements, wanted) : NULL;
    if (p->json) {
        json_t *o = cli_json_pack("{s:s, s:O}", "input", name, "values", list);
        if (s->data)
            cli_ratings_names(s->data, count, p->input, place, o);
        if (goal)
            cli_json_set(o, "target", json_incref(goal));
        cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    } else {
        cli_table_cell(&p->table, "%s", name);
        cli_table_cell(&p->table, "%s", text);
        if (p->labelled || p->best)
            cli_table_cell(&p->table, "%s", wanted);
    }
    json_decref(list);
    json_decref(goal);
}

/** What eval says of a whole part, of the samples that were shown and have labels. */
static mixt_status show_report(const predictor *p)
{
    const mixt_report_info *report = mixt_report_describe(p->report);
    char text[128];
    if (!report->samples)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--report: no INPUT has labels: give parts of the run's data");
    if (p->json) {
        json_t *o = cli_json_pack("{s:I}", "samples", (json_int_t)report->samples);
        if (report->classes)
            cli_json_set(o, "accuracy", cli_json_real(report->accuracy));
        cli_report_json(report, p->info, o);
        json_t *line = cli_json_pack("{s:o}", "report", o);
        cli_json_print(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        return MIXT_OK;
    }
    printf("\n%lld samples with labels", (long long)report->samples);
    if (report->classes)
        printf(": accuracy %.2f%%", 100 * report->accuracy);
    printf("%s\n", cli_report_values(report, text));
    cli_report_print(report, p->info);
    return MIXT_OK;
}

/* ---- the work ---- */

static mixt_status read_samples(predictor *p, const source *s, int64_t first, int64_t count)
{
    int64_t valid;
    if (s->data)
        return mixt_data_read(s->data, first, count, p->input, p->target, &valid);
    return mixt_inputs_read(s->inputs, first, count, p->input);
}

static mixt_status show_text(predictor *p, const source *s, const char *name, int64_t place, int64_t count)
{
    const char *block = (const char *)p->target;
    const int32_t *letters = NULL;
    int64_t length = 0;
    if (s->data) {
        const mixt_data_info *info = mixt_data_describe(s->data);
        int target = mixt_data_array_find(info, "target"), lengths = mixt_data_array_find(info, "target.length");
        letters = (const int32_t *)(const void *)(block + mixt_data_array_at(s->data, count, target)) +
                  place * info->arrays[target].elements;
        length = ((const int32_t *)(const void *)(block + mixt_data_array_at(s->data, count, lengths)))[place];
    }
    return cli_transcript_show(p->facts, name, p->output + place * p->outputs, p->outputs, p->beam, letters, length,
                               p->json ? NULL : &p->table, p->labelled);
}

/** Sample `place` of the `count` that were read. */
static mixt_status show_sample(predictor *p, const source *s, const char *name, int64_t place, int64_t count)
{
    const float *output = p->output + place * p->outputs;
    const int32_t *target = s->data ? &p->target[place * p->info->target_elements] : NULL;
    mixt_status status = mixt_outputs_check(output, p->outputs);
    if (status != MIXT_OK)
        return mixt_fail(status, "%s: %s", name, mixt_error_text());
    if (p->info->target == MIXT_TARGET_TEXT)
        return show_text(p, s, name, place, count);
    if (p->info->target != MIXT_TARGET_CLASS) {
        show_values(p, s, name, output, (const float *)(const void *)target, place, count);
        return MIXT_OK;
    }
    CLI_TRY(mixt_classes_rank(output, p->outputs, p->top, p->guesses));
    show_classes(p, name, target);
    return MIXT_OK;
}

static mixt_status predict_source(predictor *p, const source *s)
{
    if (cli_is_pairs(p->info) && !s->data)
        return mixt_fail(MIXT_ERROR_ARGUMENT,
                         "%s: images are matched with the captions of a part: give train, val or test, as in val:0-9",
                         s->name);
    if (cli_is_pairs(p->info))
        return cli_pairs_show(p->run, s->name, s->data, s->first, s->end, p->top, p->json ? NULL : &p->table);
    for (int64_t first = s->first; first < s->end; first += p->batch) {
        int64_t count = s->end - first < p->batch ? s->end - first : p->batch;
        CLI_TRY(read_samples(p, s, first, count));
        CLI_TRY(mixt_trainer_predict(mixt_run_trainer(p->run), p->input, count, p->output));
        for (int64_t i = 0; i < count; i++) {
            char name[4200];
            snprintf(name, sizeof name, s->data || s->total > 1 ? "%s:%lld" : "%s", s->name, (long long)first + i);
            if (p->json)
                CLI_TRY(cli_json_name(name));
            p->line = s->inputs ? mixt_inputs_line(s->inputs, first + i) : 0;
            p->cut = s->inputs && mixt_inputs_cut(s->inputs, first + i);
            CLI_TRY(show_sample(p, s, name, i, count));
        }
        if (s->data && p->report)
            CLI_TRY(mixt_report_add(p->report, p->output, p->target, count));
    }
    return MIXT_OK;
}

/** Of texts that are judged by their beginning. */
static void tell_cut(const source *s)
{
    int64_t cut = 0, first = 0;
    for (int64_t i = s->first; s->inputs && i < s->end; i++)
        if (mixt_inputs_cut(s->inputs, i) && !cut++)
            first = mixt_inputs_line(s->inputs, i);
    if (cut && !first)
        fprintf(stderr, "mixt: %.40s%s: is longer than the model's context and is truncated\n", s->name,
                strlen(s->name) > 40 ? "…" : "");
    else if (cut)
        fprintf(
            stderr, "mixt: %s: %lld of %lld texts are longer than the model's context and are truncated: line %lld%s\n",
            s->name, (long long)cut, (long long)(s->end - s->first), (long long)first, cut > 1 ? " is the first" : "");
}

/** A language model judges no samples, and need not be opened to know that. */
static mixt_status refuse_language(const char *run)
{
    mixt_config *config;
    mixt_zoo_info model;
    CLI_TRY(mixt_run_folder_config(run, &config));
    mixt_status status = cli_refuse_masked(config, run);
    if (status == MIXT_OK)
        status = mixt_zoo_find(mixt_config_string(config, "model"), &model);
    mixt_config_free(config);
    CLI_TRY(status);
    return model.input == MIXT_ZOO_TOKENS
               ? mixt_fail(MIXT_ERROR_UNSUPPORTED, "%s: is a language model: use 'mixt generate %s'", run, run)
               : MIXT_OK;
}

static mixt_status open_model(predictor *p, const cli_args *args)
{
    char device[64];
    const char *settings[] = {device, NULL};
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .progress = cli_tokenize_progress, .observer = cli_warn);
    snprintf(device, sizeof device, "device=%s", cli_text(args, "device"));
    if (cli_given(args, "device"))
        options.settings = settings;
    CLI_TRY(refuse_language(cli_word(args, 0)));
    CLI_TRY(mixt_run_load_with(cli_word(args, 0), cli_text(args, "checkpoint"), &options, &p->run));
    p->facts = mixt_run_facts(p->run);
    p->info = mixt_data_describe(p->facts);
    return cli_is_translator(p->info) ? MIXT_OK : mixt_trainer_outputs(mixt_run_trainer(p->run), &p->outputs);
}

static void add_columns(predictor *p)
{
    bool classes = p->info->target == MIXT_TARGET_CLASS, text = p->info->target == MIXT_TARGET_TEXT;
    cli_table_column(&p->table, "input", CLI_LEFT);
    if (p->lines)
        cli_table_column(&p->table, "line", CLI_RIGHT);
    bool pairs = cli_is_pairs(p->info);
    cli_table_column(&p->table, pairs ? "caption" : classes ? "class" : text ? "text" : "values", CLI_LEFT);
    if (p->labelled || p->best)
        cli_table_column(&p->table, p->best ? "item, or target" : classes ? "label" : "target", CLI_LEFT);
    if (classes) {
        cli_table_column(&p->table, pairs ? "cosine" : "probability", CLI_RIGHT);
        cli_table_column(&p->table, p->top > 1 ? "next" : "", CLI_LEFT);
    }
}

/** Room for the batches that validation is made in, or for parts of very large ones. */
static mixt_status take_memory(predictor *p, const cli_args *args)
{
    enum { MOST = 4096 };
    const mixt_config *config = mixt_run_config(p->run);
    int64_t own = mixt_config_int(config, "train.eval_batch");
    p->batch = own ? own : mixt_config_int(config, "train.batch");
    p->batch = p->batch < MOST ? p->batch : MOST;
    p->top = cli_int(args, "top") < p->outputs ? cli_int(args, "top") : p->outputs;
    p->input = calloc(1, mixt_data_input_bytes(p->facts, p->batch));
    p->target = calloc(1, mixt_data_target_bytes(p->facts, p->batch));
    p->output = calloc((size_t)(p->batch * p->outputs), sizeof *p->output);
    p->guesses = calloc((size_t)p->top, sizeof *p->guesses);
    return p->input && p->target && p->output && p->guesses
               ? MIXT_OK
               : mixt_fail(MIXT_ERROR_MEMORY, "no memory for a batch of predictions");
}

/** Warnings of the library, a line each. */
static void tell_lines(const char *lines)
{
    while (lines && *lines) {
        int length = (int)strcspn(lines, "\n");
        fprintf(stderr, "mixt: %.*s\n", length, lines);
        lines += length + (lines[length] == '\n');
    }
}

/** Of many files the first few are enough: pictures of a folder have one size. */
static void tell_once(const char *lines, int *told)
{
    enum { FILES = 3 };
    if (lines && *lines && (*told)++ < FILES)
        tell_lines(lines);
}

/** One whole table, which comes back with predictions; --json and --report have another form. */
static bool is_one_table(const predictor *p, const cli_args *args)
{
    return args->setting_count == 1 && !p->json && !cli_flag(args, "report") && !cli_given(args, "top") &&
           mixt_table_is(args->settings[0], p->facts);
}

/** Options that this model has no answer to. */
static mixt_status refuse_options(const predictor *p, const cli_args *args)
{
    bool translates = cli_is_translator(p->info), texts = translates || p->info->target == MIXT_TARGET_TEXT;
    bool ranks = !texts && (p->info->target == MIXT_TARGET_CLASS || cli_is_pairs(p->info) || cli_is_ratings(p->info));
    const char *run = cli_word(args, 0);
    if (cli_given(args, "beams") && !texts)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--beams: %s does not transcribe or translate", run);
    if (cli_given(args, "length-penalty") && !translates)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--length-penalty: %s does not translate", run);
    if (cli_given(args, "top") && !ranks)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--top: %s predicts %s, not classes or items to rank", run,
                         texts ? "texts" : "values");
    if (cli_flag(args, "report") && (texts || cli_is_pairs(p->info)))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--report: %s is a %s", run,
                         translates ? "translator: use 'mixt eval' for BLEU"
                         : texts    ? "speech model: use 'mixt eval' for error rates"
                                    : "model of images with captions: use 'mixt eval' for recall");
    return MIXT_OK;
}

/** Writes a whole table again, with a prediction beside each row. */
static mixt_status predict_table(const predictor *p, const cli_args *args)
{
    const char *path = args->settings[0], *out = cli_text(args, "out");
    mixt_table_predictions made;
    mixt_table_options options = MIXT_OPTIONS(mixt_table_options, .overwrite = cli_flag(args, "overwrite"));
    options.out = cli_given(args, "out") ? out : NULL;
    if (options.out)
        CLI_TRY(cli_output_check(args, out));
    CLI_TRY(mixt_table_predict(mixt_run_trainer(p->run), p->facts, path, &options, &made));
    if (made.text)
        fputs(made.text, stdout);
    else
        printf("%s: %lld row%s with predictions\n", out, (long long)made.rows, made.rows == 1 ? "" : "s");
    tell_lines(made.warnings);
    mixt_table_predictions_free(&made);
    return MIXT_OK;
}

static mixt_status predict(predictor *p, const cli_args *args)
{
    CLI_TRY(open_model(p, args));
    CLI_TRY(refuse_options(p, args));
    if (cli_is_translator(p->info))
        return cli_translate_files(args, p->run);
    if (is_one_table(p, args))
        return predict_table(p, args);
    if (cli_given(args, "out"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--out is for a table (.csv, .tsv): use > FILE for other predictions");
    CLI_TRY(take_memory(p, args));
    mixt_status status = MIXT_OK;
    bool texts = p->info->target == MIXT_TARGET_CLASS && mixt_data_array_find(p->info, "text") >= 0;
    int told = 0;
    p->beam = cli_beams(args, 1);
    if (cli_flag(args, "report"))
        CLI_TRY(mixt_report_new(p->info->target, p->outputs, &p->report));
    for (int i = 0; i < args->setting_count; i++) {
        source s = {0};
        p->best |= cli_is_ratings(p->info) && cli_ratings_user(args->settings[i]);
        bool part = parse_range(args->settings[i], &s) == MIXT_OK && is_part(&s);
        p->labelled |= part;
        p->lines |= texts && !part && !is_words(args->settings[i]);
    }
    add_columns(p);
    for (int i = 0; i < args->setting_count && status == MIXT_OK; i++) {
        source s;
        const char *user = cli_is_ratings(p->info) ? cli_ratings_user(args->settings[i]) : NULL;
        if (user) {
            status = cli_ratings_show_top(p->run, user, cli_int(args, "top"), p->json ? NULL : &p->table);
            continue;
        }
        status = open_source(p, args->settings[i], &s);
        if (status == MIXT_OK)
            status = predict_source(p, &s);
        if (status == MIXT_OK)
            tell_cut(&s);
        if (status == MIXT_OK && s.inputs)
            tell_once(mixt_inputs_warnings(s.inputs), &told);
        mixt_inputs_close(s.inputs);
    }
    if (!p->json && p->table.count) // what was found before a failure is shown all the same
        cli_table_print(&p->table, stdout, 0);
    return status == MIXT_OK && p->report ? show_report(p) : status;
}

static int run(const cli_args *args)
{
    predictor p = {.json = cli_flag(args, "json")};
    int result = predict(&p, args) == MIXT_OK ? CLI_OK : cli_failed();
    cli_table_free(&p.table);
    mixt_report_free(p.report);
    free(p.input);
    free(p.target);
    free(p.output);
    free(p.guesses);
    mixt_run_close(p.run);
    return result;
}

const cli_command cli_predict = {
    .name = "predict",
    .summary = "predict classes, values or texts with a trained model",
    .description =
        "Prints the most probable classes of each input with their probabilities, or the predicted values, and the "
        "label where it is known. INPUT is a file of the kind that the run was trained on, or a part of the run's own "
        "data: train, val or test.\n\n"
        "Inputs by kind of model. Images: PPM, PGM, PNG, and JPEG where mixt was built with it. Clips: a folder of "
        "frames. Arrays: a .npy file with one or several samples, an .npz archive of such an array, a file of IDX "
        "images. Sound: a WAV file. Texts, tables, ratings and translations: see below.\n\n"
        "NAME:7 takes sample 7 of a file or part with several, NAME:0-9 the first ten. Images are cropped, resized and "
        "normalised as in the run's validation; FP32 arrays are expected in [0, 1] already. The run's directory holds "
        "what is needed for that (inputs.json): the training data is read only where a part of it is asked for, and a "
        "warning says so where it has changed since.\n\n"
        "A table (.csv, .tsv), with or without its target column, is written back as CSV to standard output or to "
        "--out FILE: its columns unchanged, then the prediction, and the probability of a class.\n\n"
        "Labelled texts: a file with one text per line, a .tsv or .csv file with a column of texts (data.text of the "
        "run, or a column named sentence or text), a part of the data, or text:WORDS, the text itself. Texts of a file "
        "are numbered from 0, empty lines are skipped, and the line number of each text is shown.\n\n"
        "Speech: the recognised text. --beams 8 uses beam search over 8 hypotheses instead of the most probable letter "
        "at each frame.\n\n"
        "Translations: a file of sentences, one per line, - for standard input, or text:WORDS, the sentence itself. "
        "The translations are printed in the same order, one per line, found by beam search.\n\n"
        "Images with captions: INPUT is a part of the data; the closest captions of that part are shown for each "
        "image.\n\n"
        "Ratings: a part of the data, or user:NAME: the --top items that this user is predicted to rate highest and "
        "has not rated in the training part.",
    .arguments =
        {
            {"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory written by 'mixt train'"},
            {"INPUT", CLI_ARGUMENT_FILES,
             .help = "file, or train, val, test; with :INDEX or :FIRST-LAST; text:WORDS; user:NAME",
             .more =
                 "Files: an image, a folder of frames, a WAV file, .npy, .npz, IDX images, a table, a file of texts "
                 "or sentences; - is standard input (translations)"},
        },
    .options =
        {
            {"top", 'k', CLI_INT, "K", .fallback = "3", .min = 1, .max = TOP_MAX,
             .help = "classes (or items of a user) to show"},
            CLI_BEAMS_OPTION,
            CLI_CHECKPOINT_OPTION,
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda|cuda:N",
             .help = "predict on this device, not the run's"},
            CLI_LENGTH_PENALTY_OPTION,
            {"report", 'r', CLI_FLAG, .help = "accuracy by class, or errors of values"},
            {"out", 'o', CLI_TEXT, "FILE", .help = "write a table with its predictions to this file"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace FILE if it exists"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object per line and input"},
        },
    .examples =
        {
            {"mixt predict runs/resnet cat.png dog.png --top 5", "images"},
            {"mixt predict runs/prices new.csv --out priced.csv", "a table, with a prediction in each row"},
            {"mixt predict runs/sst2 reviews.txt 'text:a joy to watch'", "the class of each line, and of a text"},
            {"mixt predict runs/fp16 test:0-999 --report", "the first 1000 test samples, and accuracy by class"},
            {"mixt predict runs/en-de letter.en > letter.de", "translate a file"},
            {"mixt predict runs/mf user:1 --top 10", "ten items for a user"},
            {"mixt predict runs/ctc hello.wav --beams 8", "speech to text"},
        },
    .see_also = "eval|train",
    .run = run,
};
