/* Rows of the weights to begin with, found by what they stand for. A file that nobody knows anything of is taken row by
 * row.
 */
#include "run/init_rows.h"

#include "data/facts.h"
#include "data/ids.h"
#include "run/inputs.h"

#include <stdio.h>
#include <string.h>

static mixt_status no_memory(const char *path)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "init=%s: no memory for what its rows stand for", path);
}

/* ---- users and items ---- */

/** An array of ids that have names; NULL: the set has no such. */
static const mixt_data_array *named_ids(const mixt_data *data, const char *name)
{
    int at = mixt_data_array_find(&data->info, name);
    return at >= 0 && data->info.arrays[at].names ? &data->info.arrays[at] : NULL;
}

/** Counts who is known, for people. */
static void tell_known(mixt__init_rows *r, const mixt_data_array *array, const int64_t *from)
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
    const mixt__params *params = e->trainer->core.params;
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
        tell_known(r, mine, from);
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
    json_decref(inputs);
    mixt_data_close(then);
    return status;
}

void mixt__init_rows_close(mixt__init_rows *r)
{
    mixt__arena_free(&r->arena);
    *r = (mixt__init_rows){0};
}
