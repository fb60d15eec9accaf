#line 165 "docs/c-api.md"
#include <mixt/config.h>

mixt_status small(mixt_config **config)
{
    mixt_status status = mixt_config_new(config);
    if (status == MIXT_OK)
        status = mixt_config_parse(*config, "model: mlp\nnet: {hidden: [64]}", "example");
    if (status == MIXT_OK)
        status = mixt_config_set(*config, "train.lr=0.01", "command line");
    return status == MIXT_OK ? mixt_config_print(*config, stdout, false) : status;
}
