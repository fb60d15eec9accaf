/* Rows of the weights to begin with, found by what they stand for. A file that nobody knows anything of is taken row by
 * row.
 */
#include "run/open/init_rows.h"

#include "data/facts.h"
#include "data/table/ids.h"
#include "run/open/hf_folder.h"
#include "run/open/inputs.h"
#include "run/open/other_tokens.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static mixt_status no_memory(const char *path)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "init=%s: no memory for the names of its rows", path);
}

/* ---- users and items ---- */

/** An array of ids that have names; NULL: the set has no such. */
static const mixt_data_array *named_ids(const mixt_data *data, const char *name)
{
    int at = mixt_data_array_find(&data->info, name);
    return at >= 0 && data->info.arrays[at].names ? &data->info.arrays[at] : NULL;
}

/** Counts who is known, for people. */
static void tell_remembered(mixt__init_rows *r, const mixt_data_array *array, const int64_t *from)
{
    size_t used = strlen(r->known);
    int64_t known = 0;
    for (int64_t i = 0; i < array->ids; i++)
        known += from[i] >= 0;
    snprintf(r->known + used, sizeof r->known - used, "%s%lld of %lld %ss", used ? ", " : "", (long long)known,
             (long long)array->ids, array->name);
}

/** Finds the ids of one array, and the parameters that have a row for each of them.
 *  @param users what was found for users, where the array is of their days; NULL: it is not
 *  @param found (ids) in the arena; NULL: one of both sets has no names */
static mixt_status match_ids(mixt__init_rows *r, const mixt__experiment *e, const mixt_data *then, const char *name,
                             const int64_t *users, const int64_t **found)
{
    const mixt_data_array *mine = named_ids(e->facts, name), *theirs = named_ids(then, name);
    const mixt__params *params = mixt__trainer_params(e->trainer->inner);
    float mean = (float)(then->info.target_mean - e->facts->info.target_mean); // what biases are counted from
    *found = NULL;
    if (!mine || !theirs)
        return MIXT_OK;
    int64_t *from = mixt__arena_alloc(&r->arena, (size_t)(mine->ids + 1) * sizeof *from);
    if (!from)
        return no_memory(mixt__config_string(e->config, MIXT_KEY_INIT));
    MIXT_TRY(mixt__ids_match(mine, theirs, users, from));
    for (int64_t i = 0; i < params->count && r->count < MIXT_INIT_ROWS; i++) {
        const char *table = params->table[i].name, *of = mixt__ratings_rows_of(table);
        float add = strcmp(table, MIXT_RATINGS_BIAS) ? 0 : mean;
        if (of && !strcmp(of, name))
            r->rows[r->count++] = (mixt__weights_rows){.tensor = table, .from = from, .there = theirs->ids, .add = add};
    }
    if (!users)
        tell_remembered(r, mine, from);
    *found = from;
    return MIXT_OK;
}

static mixt_status match_ratings(mixt__init_rows *r, const mixt__experiment *e, const mixt_data *then)
{
    const int64_t *users, *found;
    MIXT_TRY(match_ids(r, e, then, "user", NULL, &users));
    MIXT_TRY(match_ids(r, e, then, "item", NULL, &found));
    return users ? match_ids(r, e, then, "user.day", users, &found) : MIXT_OK;
}

/* ---- classes ---- */

/** Adds the layer that scores classes: the last one. */
static void add_head(mixt__init_rows *r, const mixt__experiment *e, const mixt__weights_rows *like)
{
    const mixt__params *params = mixt__trainer_params(e->trainer->inner);
    for (int64_t i = params->count - 1; i >= 0 && r->count < MIXT_INIT_ROWS; i--) {
        const mixt__param *p = &params->table[i];
        if (!p->shape.rank || p->shape.dims[0] != e->sizes.classes)
            return;
        r->rows[r->count] = *like;
        r->rows[r->count++].tensor = p->name;
    }
}

/** The same classes in another order are found by name: as a folder of another program may have them. */
static mixt_status match_classes(mixt__init_rows *r, const mixt__experiment *e, const mixt_data_array *mine,
                                 const mixt_data_array *theirs, bool *found)
{
    int64_t *from = mixt__arena_alloc(&r->arena, (size_t)(mine->ids + 1) * sizeof *from);
    if (!from)
        return no_memory(mixt__config_string(e->config, MIXT_KEY_INIT));
    MIXT_TRY(mixt__ids_match(mine, theirs, NULL, from));
    *found = mine->ids == theirs->ids && mine->ids == e->sizes.classes;
    for (int64_t i = 0; i < mine->ids; i++)
        *found = *found && from[i] >= 0;
    if (*found)
        add_head(r, e, &(mixt__weights_rows){.from = from, .there = theirs->ids});
    return MIXT_OK;
}

static mixt_status compare_classes(mixt__init_rows *r, const mixt__experiment *e, const char *folder,
                                   const mixt_data *then)
{
    const mixt_data_info *info = &e->facts->info;
    mixt_data_array mine = {.names = info->class_names, .ids = info->classes}, theirs = {.ids = 0};
    bool found = false;
    MIXT_TRY(mixt__hf_folder_labels(folder, then, &r->arena, &theirs.names, &theirs.ids));
    int64_t other = mixt__data_facts_other_class(mine.names, mine.ids, theirs.names, theirs.ids);
    if (other < 0)
        return MIXT_OK;
    if (!then)
        MIXT_TRY(match_classes(r, e, &mine, &theirs, &found));
    if (found)
        return MIXT_OK;
    bool letters = info->target == MIXT_TARGET_TEXT;
    snprintf(r->classes, sizeof r->classes, "%s: %s %lld is '%s' there, '%s' in the data",
             letters ? "letters" : "classes", letters ? "letter" : "class", (long long)other, theirs.names[other],
             mine.names[other]);
    add_head(r, e, &(mixt__weights_rows){.others = r->classes});
    return MIXT_OK;
}

/* ---- tokens ---- */

/** Adds the tables that have a row for each token. */
static void add_tables(mixt__init_rows *r, const mixt__experiment *e)
{
    static const char *const tables[] = {"wte.weight", "emb.weight",  "out.weight",
                                         "out.bias",   "head.weight", "head.bias"};
    const mixt__params *params = mixt__trainer_params(e->trainer->inner);
    for (int64_t i = 0; i < params->count; i++)
        for (size_t k = 0; k < sizeof tables / sizeof tables[0] && r->count < MIXT_INIT_ROWS; k++)
            if (!strcmp(params->table[i].name, tables[k]) && params->table[i].shape.dims[0] == e->sizes.rows)
                r->rows[r->count++] = (mixt__weights_rows){.tensor = params->table[i].name, .others = r->tokens};
}

/** The configuration that names the tokenizer of a folder: a run's own, or one of the files that lie there. NULL: there
 *  is neither. */
static mixt_status tokens_config(const char *folder, bool run, mixt_config **config)
{
    char path[4400 + 16], setting[4400 + 16];
    *config = NULL;
    snprintf(path, sizeof path, "%s/config.yaml", folder);
    if (run && !access(path, F_OK))
        return mixt_run_folder_config(folder, config);
    if (!mixt__hf_folder_has_tokenizer(folder))
        return MIXT_OK;
    MIXT_TRY(mixt_config_new(config));
    snprintf(setting, sizeof setting, "data.vocab=%s", folder);
    return mixt_config_set(*config, setting, folder);
}

/** A tokenizer that cannot be opened is one that nobody knows. */
static mixt_status compare_tokens(mixt__init_rows *r, const mixt__experiment *e, const char *folder,
                                  const mixt_data *then)
{
    mixt_config *config;
    mixt__other_tokens tokens = {.path = folder, .to = "there", .whose = "the file's"};
    char why[MIXT_TOKENS_WHY];
    if (!e->sizes.rows)
        return MIXT_OK;
    mixt_status status = tokens_config(folder, then, &config);
    if (status == MIXT_OK && config)
        status = mixt__other_tokens_open(&tokens, folder, config, then ? then->info.kind : "text");
    if (status != MIXT_ERROR_MEMORY && tokens.theirs)
        status = mixt__other_tokens_of(&tokens, e);
    else if (status != MIXT_ERROR_MEMORY)
        status = MIXT_OK;
    if (status == MIXT_OK && mixt__other_tokens_differ(&tokens, why)) {
        snprintf(r->tokens, sizeof r->tokens, "tokens: %.*s", (int)sizeof r->tokens - 16, why);
        add_tables(r, e);
    }
    mixt__other_tokens_close(&tokens);
    mixt_config_free(config);
    return status;
}

/* ---- open ---- */

mixt_status mixt__init_rows_open(mixt__init_rows *r, const mixt__experiment *e, const char *path)
{
    char folder[4400];
    json_t *inputs;
    mixt_data *then = NULL;
    mixt__run_inputs_folder(path, folder, sizeof folder);
    MIXT_TRY(mixt__run_inputs_read(folder, &inputs));
    mixt_status status = inputs ? mixt__data_facts_unpack(json_object_get(inputs, "data"), &then) : MIXT_OK;
    if (status != MIXT_OK)
        status = mixt__fail_context(status, "%s/%s", folder, MIXT_INPUTS_FILE);
    if (status == MIXT_OK && then)
        status = match_ratings(r, e, then);
    if (status == MIXT_OK)
        status = compare_classes(r, e, folder, then);
    if (status == MIXT_OK)
        status = compare_tokens(r, e, folder, then);
    json_decref(inputs);
    mixt_data_close(then);
    return status;
}

void mixt__init_rows_close(mixt__init_rows *r)
{
    mixt__arena_free(&r->arena);
    *r = (mixt__init_rows){0};
}
