/* Decoding outputs and printing the letters, through the library's functions. */
#include "cli/transcripts.h"

#include "cli/cli.h"
#include "cli/json.h"

#include <stdlib.h>
#include <string.h>

mixt_status cli_transcripts_measure(mixt_run *run, const mixt_data *data, int64_t beam, mixt_transcript_rates *rates)
{
    *rates = (mixt_transcript_rates){0};
    if (mixt_data_describe(data)->target != MIXT_TARGET_TEXT)
        return MIXT_OK;
    return mixt_transcript_measure(mixt_run_trainer(run), data, beam, rates);
}

const char *cli_transcripts_text(const mixt_transcript_rates *r, char text[128])
{
    text[0] = 0;
    if (r->samples)
        snprintf(text, 128, ", character error rate %.2f%%, word error rate %.2f%%", 100 * r->character_error,
                 100 * r->word_error);
    return text;
}

void cli_transcripts_json(const mixt_transcript_rates *r, json_t *object)
{
    if (!r->samples)
        return;
    cli_json_set(object, "character_error_rate", cli_json_real(r->character_error));
    cli_json_set(object, "word_error_rate", cli_json_real(r->word_error));
    cli_json_set(object, "letters", json_integer(r->letters));
    cli_json_set(object, "letter_errors", json_integer(r->letter_errors));
    cli_json_set(object, "words", json_integer(r->words));
    cli_json_set(object, "word_errors", json_integer(r->word_errors));
}

/** What the command prints of one sample. */
static void print(const char *name, const char *heard, const char *said, cli_table *table, bool labelled)
{
    if (table) {
        cli_table_cell(table, "%s", name);
        cli_table_cell(table, "%s%s", heard, said && strcmp(heard, said) ? " (wrong)" : "");
        if (labelled)
            cli_table_cell(table, "%s", said ? said : "");
        return;
    }
    json_t *o = cli_json_pack("{s:s, s:s}", "input", name, "text", heard);
    if (said)
        cli_json_set(o, "target", cli_json_string(said));
    cli_json_print(o, stdout, JSON_COMPACT);
}

mixt_status cli_transcript_show(const mixt_data *facts, const char *name, const float *outputs, int64_t count,
                                int64_t beam, const int32_t *target, int64_t length, cli_table *table, bool labelled)
{
    int64_t classes = mixt_data_describe(facts)->classes, frames = count / classes, found = 0;
    int64_t most = frames > length ? frames : length;
    int32_t *letters = calloc((size_t)most + 1, sizeof *letters);
    char *heard = NULL, *said = NULL;
    mixt_status status = letters ? MIXT_OK : mixt_fail(MIXT_ERROR_MEMORY, "no memory for a transcript");
    if (status == MIXT_OK)
        status = mixt_transcript_decode(outputs, frames, classes, beam, letters, &found);
    if (status == MIXT_OK)
        status = mixt_transcript_text(facts, letters, found, &heard);
    if (status == MIXT_OK && target)
        status = mixt_transcript_text(facts, target, length, &said);
    if (status == MIXT_OK)
        print(name, heard, said, table, labelled);
    free(letters);
    mixt_free(heard);
    mixt_free(said);
    return status;
}
