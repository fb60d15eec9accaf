/* Rows read forgivingly, and put together where there are too many. */
#include "page/layers_data.h"
#include "store/json.h"

#include <stdbool.h>
#include <string.h>

static const char *const tensors[] = {"activations", "gradients", "parameters"};

/** Of a margin the least is the worst; of all else the most. */
static bool worse(const char *column, const json_t *a, const json_t *b)
{
    if (!json_is_number(a) || !json_is_number(b))
        return json_is_number(a);
    double x = json_number_value(a), y = json_number_value(b);
    return strcmp(column, "margin") ? x > y : x < y;
}

/** Into `row`, what is worse in `next`. */
static void join(json_t *row, const json_t *next)
{
    for (size_t t = 0; t < sizeof tensors / sizeof tensors[0]; t++) {
        json_t *columns = json_object_get(row, tensors[t]), *mine;
        const char *name;
        json_object_foreach(columns, name, mine)
        {
            const json_t *others = json_object_get(json_object_get(next, tensors[t]), name);
            for (size_t i = 0; i < json_array_size(mine) && i < json_array_size(others); i++)
                if (worse(name, json_array_get(others, i), json_array_get(mine, i)))
                    mixt__json_replace(mine, i, json_array_get(others, i));
        }
    }
}

static bool is_names(const json_t *row)
{
    return json_is_object(json_object_get(row, "names"));
}

/** Puts every two rows under the same names together. */
static json_t *halve(json_t *rows)
{
    json_t *fewer = json_array();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i), *next = json_array_get(rows, i + 1);
        if (next && !is_names(row) && !is_names(next)) {
            join(row, next);
            i++;
        }
        mixt__json_add(fewer, json_incref(row));
    }
    json_decref(rows);
    return fewer;
}

static bool is_row(const json_t *row)
{
    bool columns = true;
    for (size_t t = 0; t < sizeof tensors / sizeof tensors[0]; t++)
        columns = columns && json_is_object(json_object_get(row, tensors[t]));
    return json_is_integer(json_object_get(row, "step")) && (columns || is_names(row));
}

/** The rows so far, and how many there may be before they are put together. */
typedef struct gathered {
    json_t *rows;
    size_t most;
} gathered;

static bool take(void *user, json_t *row)
{
    gathered *g = user;
    if (!is_row(row))
        return false;
    mixt__json_add(g->rows, row);
    if (json_array_size(g->rows) > g->most) {
        g->rows = halve(g->rows);
        g->most = json_array_size(g->rows) > g->most / 4 * 3 ? 2 * g->most : g->most; // names stay apart
    }
    return true;
}

mixt_status mixt__page_layers(const char *folder, json_t **rows, mixt__page_damage *damage)
{
    gathered g = {json_array(), 2 * MIXT_PAGE_LAYER_ROWS};
    mixt_status status = mixt__page_rows(folder, "layers.jsonl", take, &g, damage);
    *rows = g.rows;
    return status;
}
