/* Transcripts for people and scripts: what a model heard, and error rates. */
#ifndef MIXT_CLI_TRANSCRIPTS_H
#define MIXT_CLI_TRANSCRIPTS_H

#include "cli/table.h"

#include <mixt/run.h>
#include <mixt/tasks/transcript.h>

#include <jansson.h>

/** Error rates of a set of recordings with texts; of other sets `samples` is left 0. */
mixt_status cli_transcripts_measure(mixt_run *run, const mixt_data *data, int64_t beam, mixt_transcript_rates *rates);
/** Those as words that go on a line, or "". */
const char *cli_transcripts_text(const mixt_transcript_rates *rates, char text[128]);
void cli_transcripts_json(const mixt_transcript_rates *rates, json_t *object);

/** One transcript: a line of JSON, or where there is a table a row of it.
 *  @param outputs of the sample, `count` numbers
 *  @param target letters of what was said, `length` of them; NULL: not known
 *  @param labelled the table has a column for what was said */
mixt_status cli_transcript_show(const mixt_data *facts, const char *name, const float *outputs, int64_t count,
                                int64_t beam, const int32_t *target, int64_t length, cli_table *table, bool labelled);

#endif
