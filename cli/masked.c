/* What can be done with a masked language model. */
#include "cli/masked.h"

#include "cli/support.h"

#include <mixt/zoo.h>

mixt_status cli_refuse_masked(const mixt_config *config, const char *run)
{
    mixt_zoo_info model;
    CLI_TRY(mixt_zoo_find(mixt_config_string(config, "model"), &model));
    if (!model.bidirectional)
        return MIXT_OK;
    return mixt_fail(MIXT_ERROR_UNSUPPORTED,
                     "%s: %s is a masked language model: it fills gaps and cannot continue a text. 'mixt eval %s' "
                     "evaluates it, 'mixt export %s' exports it, and 'mixt train CONFIG init=%s' trains it further",
                     run, model.name, run, run, run);
}
