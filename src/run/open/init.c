/* From a configuration to names in other programs' files; loading the weights that a run begins with. */
#include "run/open/init.h"

#include "api/weights.h"
#include "data/data.h"
#include "data/text/inputs_text.h"
#include "run/open/adapter.h"
#include "run/open/hf_folder.h"
#include "run/open/init_rows.h"
#include "run/open/inputs.h"
#include "run/open/net_sizes.h"
#include "run/open/weights.h"
#include "store/file.h"

#include <stdio.h>
#include <string.h>

mixt_status mixt__experiment_names(const mixt_config *config, const mixt__names **names, mixt__name_facts *facts)
{
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry));
    int64_t width = mixt__config_int(config, MIXT_KEY_NET_WIDTH), heads = mixt__config_int(config, MIXT_KEY_NET_HEADS);
    int64_t depth = mixt__config_int(config, MIXT_KEY_NET_DEPTH);
    *names = mixt__names_find(entry->names);
    *facts = (mixt__name_facts){.heads = heads, .first_token = -1, .last_token = -1};
    if (!heads && entry->uses & MIXT_USES_HEADS)
        facts->heads = mixt__model_default_heads(width ? width : entry->sizes.width);
    if (entry->uses & MIXT_USES_ROPE)
        MIXT_TRY(mixt__net_sizes_facts(config, entry, facts));
    if (entry->input == MIXT_MODEL_TEXTS) {
        bool mean = mixt__config_choice(config, MIXT_KEY_NET_POOL) == MIXT_POOL_MEAN;
        snprintf(facts->architecture, sizeof facts->architecture, "%s", mean ? "mean" : "first");
        return MIXT_OK;
    }
    bool norms = entry->uses & MIXT_USES_NORM && mixt__config_choice(config, MIXT_KEY_NET_NORM) == MIXT_NORM_BATCH;
    snprintf(facts->architecture, sizeof facts->architecture, "%s%lld%s", entry->name,
             (long long)(depth ? depth : entry->sizes.depth), norms ? "_bn" : ""); // as torchvision names them
    return MIXT_OK;
}

static void report(const mixt__weights *w, const mixt__init_rows *rows, mixt__note *note, void *user)
{
    note(user, "init: %lld tensors of %s", (long long)w->loaded, w->path);
    if (rows->known[0])
        note(user, "init: rows matched by name: %s; all others are random", rows->known);
    if (w->skipped[0])
        note(user, "init: random, not loaded: %s", w->skipped);
    if (w->left_over[0])
        note(user, "init: in the file, but not in the model: %s", w->left_over);
}

mixt_status mixt__experiment_load(mixt__experiment *e, const char *folder, mixt__note *warn, void *user)
{
    char warning[MIXT_WEIGHTS_WARNING];
    mixt__name_facts facts;
    mixt__weights_request request = {.path = folder, .facts = &facts, .vocab = e->sizes.vocab};
    mixt__weights *weights;
    MIXT_TRY(mixt__experiment_names(e->config, &request.names, &facts));
    request.positions = e->facts->info.input_dims[0];
    MIXT_TRY(mixt__trainer_init(e->trainer, &request, true, &weights));
    mixt__weights_warning(weights, warning);
    if (*warning)
        warn(user, "warning: %s", warning);
    mixt__weights_close(weights);
    return MIXT_OK;
}

/** The folder of the tokenizer that weights were trained with, where the data is text that is read with another; NULL:
 *  none. */
static const char *other_tokens(const mixt__experiment *e, const char *init, char *room, size_t size)
{
    const char *used = mixt__config_string(e->config, MIXT_KEY_DATA_VOCAB);
    if (!strcmp(e->facts->info.kind, "tokens"))
        return NULL;
    mixt__run_inputs_folder(init, room, size);
    if (!mixt__hf_folder_has_tokenizer(room))
        snprintf(room + strlen(room), size - strlen(room), "/" MIXT_VOCAB_FOLDER);
    return mixt__hf_folder_has_tokenizer(room) && !(*used && mixt__same_file(room, used)) ? room : NULL;
}

/** What the file is asked for. */
static void fill_request(const mixt__experiment *e, const mixt__init_rows *rows, mixt__weights_request *request)
{
    request->vocab = e->sizes.vocab;
    if (e->facts->info.target == MIXT_TARGET_TOKENS || mixt__are_texts(&e->facts->info))
        request->positions = e->facts->info.input_dims[0];
    request->skip = mixt__config_string(e->config, MIXT_KEY_INIT_SKIP);
    request->new_head = mixt__config_string(e->config, MIXT_KEY_INIT_NEW_HEAD);
    request->rows = rows->rows;
    request->row_count = rows->count;
}

static mixt_status init_base(mixt__experiment *e, bool load, mixt__note *note, void *user)
{
    const char *path = mixt__config_string(e->config, MIXT_KEY_INIT);
    mixt__name_facts facts;
    mixt__weights_request request = {.path = path, .facts = &facts};
    mixt__init_rows rows = {.count = 0};
    mixt__weights *weights = NULL;
    char tokens[4200];
    if (!*path)
        return MIXT_OK;
    MIXT_TRY(mixt__run_weights_final(path, "init=RUN/checkpoints/step-NNNNNNNN takes those of a checkpoint"));
    MIXT_TRY(mixt__experiment_names(e->config, &request.names, &facts));
    mixt_status status = mixt__init_rows_open(&rows, e, path);
    fill_request(e, &rows, &request);
    request.tokens = other_tokens(e, path, tokens, sizeof tokens);
    if (status == MIXT_OK)
        status = mixt__trainer_init(e->trainer, &request, load, &weights);
    if (status == MIXT_OK)
        e->positions = mixt__run_inputs_positions(weights->path, weights->places);
    if (status == MIXT_OK && note)
        report(weights, &rows, note, user);
    mixt__weights_close(weights);
    mixt__init_rows_close(&rows);
    return status;
}

mixt_status mixt__experiment_base(mixt__experiment *e)
{
    return init_base(e, true, NULL, NULL);
}

mixt_status mixt__experiment_init(mixt__experiment *e, bool load, mixt__note *note, void *user)
{
    MIXT_TRY(init_base(e, load, note, user));
    return mixt__experiment_adapter_init(e, load, note, user);
}
