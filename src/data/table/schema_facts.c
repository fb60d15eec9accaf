/* A schema as JSON, and back; copies, and one of plain numbers. What comes from a file is checked, never trusted. */
#include "data/table/schema.h"
#include "store/json.h"

#include <string.h>

enum { COLUMNS_MAX = 1 << 24 };

static const char *const forms[MIXT_NUMBER_FORMS] = {"point", "comma", "thousands"};
static const char *const orders[MIXT_DATE_ORDERS] = {"ymd", "dmy", "mdy"};

/* ---- pack ---- */

static json_t *pack_words(const mixt__schema_column *c)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < c->count; i++)
        if (mixt__json_add(list, mixt__json_string(c->words[i])))
            return json_decref(list), NULL;
    return list;
}

json_t *mixt__schema_pack(const mixt__schema *s)
{
    json_t *list = s ? json_array() : NULL;
    if (!s)
        return json_null();
    for (int64_t i = 0; i < s->columns; i++) {
        const mixt__schema_column *c = &s->column[i];
        json_t *name = mixt__json_string(c->name);
        json_t *entry =
            json_pack("{s:o, s:s, s:s, s:s, s:i, s:i, s:b, s:o}", "name", name ? name : json_string(""), "use",
                      mixt__cells_uses[c->use], "form", forms[c->form], "order", orders[c->order], "parts",
                      (int)c->parts, "origin", (int)c->origin, "gaps", c->gaps, "words", pack_words(c));
        if (mixt__json_add(list, entry))
            return json_decref(list), NULL;
    }
    return json_pack("{s:b, s:o}", "named", s->named, "columns", list);
}

/* ---- unpack ---- */

static mixt_status wrong(const char *what)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "\"table\": \"%s\" is missing or wrong", what);
}

static bool choose(const json_t *entry, const char *key, const char *const *names, int count, int *choice)
{
    const char *found = json_string_value(json_object_get(entry, key));
    for (*choice = 0; found && *choice < count; ++*choice)
        if (!strcmp(names[*choice], found))
            return true;
    return false;
}

/** Words by their alphabet, each once: they are looked for by halves. */
static mixt_status unpack_words(mixt__arena *arena, const json_t *list, mixt__schema_column *c)
{
    int64_t count = (int64_t)json_array_size(list);
    bool words = c->use == MIXT_CELLS_ONE_HOT || c->use == MIXT_CELLS_EMBEDDED;
    if (!json_is_array(list) || count > MIXT_EMBEDDED_MAX + 1 || words != (count > 0))
        return wrong("words");
    const char **made = mixt__arena_alloc(arena, (size_t)(count + 1) * sizeof *made);
    if (!made)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the words of a table");
    for (int64_t i = 0; i < count; i++) {
        const char *word = json_string_value(json_array_get(list, (size_t)i));
        if (!word || (i && strcmp(made[i - 1], word) >= 0))
            return wrong("words");
        if (!(made[i] = mixt__arena_strdup(arena, word)))
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the words of a table");
    }
    c->words = made;
    c->count = count;
    return MIXT_OK;
}

static mixt_status unpack_column(mixt__arena *arena, const json_t *entry, mixt__schema_column *c)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    const json_t *parts = json_object_get(entry, "parts"), *origin = json_object_get(entry, "origin");
    int use, form, order;
    if (!name || !choose(entry, "use", mixt__cells_uses, MIXT_CELLS_USES, &use) ||
        !choose(entry, "form", forms, MIXT_NUMBER_FORMS, &form) ||
        !choose(entry, "order", orders, MIXT_DATE_ORDERS, &order) || !json_is_integer(parts) ||
        json_integer_value(parts) < 0 || json_integer_value(parts) > 7 || !json_is_integer(origin) ||
        json_integer_value(origin) < INT32_MIN || json_integer_value(origin) > INT32_MAX ||
        !json_is_boolean(json_object_get(entry, "gaps")))
        return wrong("columns");
    *c = (mixt__schema_column){.use = (mixt__cells_use)use,
                               .form = (mixt__number_form)form,
                               .order = (mixt__date_order)order,
                               .parts = (unsigned)json_integer_value(parts),
                               .origin = (int32_t)json_integer_value(origin),
                               .why = ""};
    c->gaps = json_is_true(json_object_get(entry, "gaps")) && (use == MIXT_CELLS_NUMBER || use == MIXT_CELLS_DATE);
    c->name = mixt__arena_strdup(arena, name);
    return c->name ? unpack_words(arena, json_object_get(entry, "words"), c)
                   : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the columns of a table");
}

static mixt__schema *new_schema(mixt__arena *arena, int64_t columns)
{
    mixt__schema *s = mixt__arena_alloc(arena, sizeof *s);
    if (s)
        s->column = mixt__arena_alloc(arena, (size_t)columns * sizeof *s->column);
    if (!s || !s->column)
        return NULL;
    s->columns = columns;
    s->target = -1;
    return s;
}

mixt_status mixt__schema_unpack(mixt__arena *arena, const json_t *facts, const mixt__schema **schema)
{
    const json_t *list = json_object_get(facts, "columns");
    int64_t count = (int64_t)json_array_size(list);
    *schema = NULL;
    if (!facts || json_is_null(facts))
        return MIXT_OK;
    if (count < 1 || count > COLUMNS_MAX || !json_is_boolean(json_object_get(facts, "named")))
        return wrong("columns");
    mixt__schema *s = new_schema(arena, count);
    if (!s)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the columns of a table");
    s->named = json_is_true(json_object_get(facts, "named"));
    for (int64_t i = 0; i < count; i++) {
        MIXT_TRY(unpack_column(arena, json_array_get(list, (size_t)i), &s->column[i]));
        if (s->column[i].use != MIXT_CELLS_TARGET)
            continue;
        if (s->target >= 0)
            return wrong("columns");
        s->target = i;
    }
    mixt__schema_count(s);
    *schema = s;
    return s->features ? MIXT_OK : wrong("columns");
}

/* ---- in memory ---- */

static bool copy_words(mixt__arena *arena, mixt__schema_column *c)
{
    const char **words = mixt__arena_alloc(arena, (size_t)(c->count + 1) * sizeof *words);
    for (int64_t i = 0; words && i < c->count; i++)
        if (!(words[i] = mixt__arena_strdup(arena, c->words[i])))
            return false;
    c->words = words;
    c->name = mixt__arena_strdup(arena, c->name);
    c->why = "";
    return words && c->name;
}

mixt_status mixt__schema_copy(const mixt__schema *from, mixt__arena *arena, const mixt__schema **schema)
{
    mixt__schema *s = new_schema(arena, from->columns);
    bool good = s != NULL;
    if (good) {
        mixt__schema_column *columns = s->column;
        *s = *from;
        s->column = columns;
    }
    for (int64_t i = 0; good && i < from->columns; i++) {
        s->column[i] = from->column[i];
        good = copy_words(arena, &s->column[i]);
    }
    *schema = s;
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the columns of a table");
}

mixt_status mixt__schema_plain(mixt__arena *arena, int64_t features, const mixt__schema **schema)
{
    mixt__schema *s = new_schema(arena, features + 1);
    if (!s)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld columns", (long long)features);
    for (int64_t i = 0; i <= features; i++)
        s->column[i] =
            (mixt__schema_column){.name = "", .why = "", .use = i < features ? MIXT_CELLS_NUMBER : MIXT_CELLS_TARGET};
    s->target = features;
    mixt__schema_count(s);
    *schema = s;
    return MIXT_OK;
}
