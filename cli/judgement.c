/* How commands show a judgement. */
#include "cli/judgement.h"

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/term.h"

#include <string.h>

int cli_judgement_status(mixt_verdict safe)
{
    return safe == MIXT_VERDICT_YES ? CLI_OK : safe == MIXT_VERDICT_NO ? CLI_NOT_SAFE : CLI_UNDECIDED;
}

/** What is not worth it is no fault: only what is not safe is red. */
static cli_style style_of(const mixt_judgement *j)
{
    if (j->verdict == MIXT_VERDICT_YES)
        return CLI_GREEN;
    return j->verdict == MIXT_VERDICT_NO && j->claim == MIXT_CLAIM_SAFE ? CLI_RED : CLI_YELLOW;
}

void cli_judgement_print(const mixt_judgement *judgement)
{
    char *text;
    if (mixt_judgement_text(judgement, &text) != MIXT_OK)
        return;
    size_t verdict = strcspn(text, ";"); // "safe: yes; …"
    printf("%s%.*s%s%s\n", cli_style_on(stdout, style_of(judgement)), (int)verdict, text, cli_style_off(stdout),
           text + verdict);
    mixt_free(text);
}

json_t *cli_judgement_json(const mixt_judgement *judgement)
{
    char *text;
    if (mixt_judgement_json(judgement, &text) != MIXT_OK)
        return NULL;
    json_t *o = cli_json_read(text);
    mixt_free(text);
    return o;
}
