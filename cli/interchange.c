/* From a configuration to names in other programs' files; loading the weights that a run begins with. */
#include "cli/interchange.h"

#include "api/weights.h"
#include "cli/weights.h"

#include <stdio.h>

mixt_status cli_names(const mixt_config *config, const mixt__names **names, mixt__name_facts *facts)
{
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry));
    int64_t width = mixt__config_int(config, MIXT_KEY_NET_WIDTH), heads = mixt__config_int(config, MIXT_KEY_NET_HEADS);
    int64_t depth = mixt__config_int(config, MIXT_KEY_NET_DEPTH);
    *names = mixt__names_find(entry->names);
    *facts = (mixt__name_facts){.heads = heads};
    if (!heads && entry->uses & MIXT_USES_HEADS)
        facts->heads = mixt__model_default_heads(width ? width : entry->sizes.width);
    snprintf(facts->architecture, sizeof facts->architecture, "%s%lld", entry->name,
             (long long)(depth ? depth : entry->sizes.depth));
    return MIXT_OK;
}

static void report(const mixt__weights *w)
{
    fprintf(stderr, "init: %lld tensors of %s\n", (long long)w->loaded, w->path);
    if (w->skipped[0])
        fprintf(stderr, "init: drawn, not loaded: %s\n", w->skipped);
    if (w->left_over[0])
        fprintf(stderr, "init: in the file, but not in the model: %s\n", w->left_over);
}

static mixt_status init(cli_experiment *e, bool load, bool quiet)
{
    const char *path = mixt__config_string(e->config, MIXT_KEY_INIT);
    mixt__name_facts facts;
    mixt__weights_request request = {.path = path, .facts = &facts};
    mixt__weights *weights;
    if (!*path)
        return MIXT_OK;
    MIXT_TRY(cli_weights_final(path, "init=RUN/checkpoints/step-NNNNNNNN begins with those of a checkpoint"));
    MIXT_TRY(cli_names(e->config, &request.names, &facts));
    request.vocab = e->sizes.vocab;
    request.skip = mixt__config_string(e->config, MIXT_KEY_INIT_SKIP);
    request.new_head = mixt__config_string(e->config, MIXT_KEY_INIT_NEW_HEAD);
    MIXT_TRY(mixt__trainer_init(e->trainer, &request, load, &weights));
    if (!quiet)
        report(weights);
    mixt__weights_close(weights);
    return MIXT_OK;
}

mixt_status cli_init(cli_experiment *e, bool quiet)
{
    return init(e, true, quiet);
}

mixt_status cli_init_check(cli_experiment *e)
{
    return init(e, false, true);
}
