/* How commands show a judgement: the same words, colours and statuses everywhere. */
#ifndef MIXT_CLI_JUDGEMENT_H
#define MIXT_CLI_JUDGEMENT_H

#include <mixt/judge.h>

#include <jansson.h>

/** Exit statuses of commands that judge whether something is safe. */
enum { CLI_NOT_SAFE = 3, CLI_UNDECIDED = 4 };
/** CLI_OK, CLI_NOT_SAFE or CLI_UNDECIDED. */
int cli_judgement_status(mixt_verdict safe);
/** Its sentence on a line of standard output, in the colour of its verdict. */
void cli_judgement_print(const mixt_judgement *judgement);
/** The object of mixt_judgement_json; NULL: no memory. */
json_t *cli_judgement_json(const mixt_judgement *judgement);

#endif
