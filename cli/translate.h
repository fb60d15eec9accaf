/* What eval and predict do with translators. */
#ifndef MIXT_CLI_TRANSLATE_H
#define MIXT_CLI_TRANSLATE_H

#include "cli/cli.h"

#include <mixt/run.h>
#include <mixt/tasks/translate.h>

/** An option of both commands. */
#define CLI_LENGTH_PENALTY_OPTION                                                                                      \
    {                                                                                                                  \
        "length-penalty", .kind = CLI_NUMBER, .metavar = "P", .fallback = "1", .min = 0, .max = 10,                    \
                          .help = "translations: above 1 favours longer texts",                                        \
                          .more = "Scores are divided by length^P"                                                     \
    }

/** Whether samples are sentences and their translations. */
bool cli_is_translator(const mixt_data_info *info);
/** BLEU of a run's translations of a part; sentences is 0 where its model is no translator. */
mixt_status cli_translate_score(const cli_args *args, mixt_run *run, const mixt_data *data, mixt_bleu *bleu);
/** ", BLEU 34.12"; "" where there is none. */
const char *cli_translate_text(const mixt_bleu *bleu, char text[64]);
/** Translates the lines of the files that were named, "-": of the standard input; a line each. */
mixt_status cli_translate_files(const cli_args *args, mixt_run *run);

#endif
