/* The map that mixt keeps with a policy and never reads: texts, lists and maps, as deep as anybody needs.
 *
 * Depth and count are bounded: a document whose aliases refer to what they stand in has no end.
 */
#include "policy/inside.h"

#include <string.h>

enum { DEPTH_MAX = 32, VALUES_MAX = 16384, KEY_MAX = 200 }; // longer keys need another notation

typedef struct taker {
    mixt__arena *arena;
    const mixt__yaml *yaml;
    int64_t values;
} taker;

static mixt_status out_of_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the evidence of a policy");
}

static mixt_status take_text(const taker *t, const yaml_node_t *node, const char **text, bool *plain)
{
    if (strlen(mixt__yaml_text(node)) != node->data.scalar.length)
        return mixt__yaml_bad(t->yaml, node, "the text has the control character U+0000");
    *plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    *text = mixt__arena_strdup(t->arena, mixt__yaml_text(node));
    return *text ? MIXT_OK : out_of_memory();
}

static mixt_status take_key(const taker *t, const yaml_node_t *node, mixt__evidence *value)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length > KEY_MAX)
        return mixt__yaml_bad(t->yaml, node, "a key of the evidence must be a text of at most %d bytes", KEY_MAX);
    return take_text(t, node, &value->key, &value->key_plain);
}

/** A tag would be lost: better to say so. */
static mixt_status check_tag(const taker *t, const yaml_node_t *node)
{
    const char *own = node->type == YAML_SCALAR_NODE     ? YAML_STR_TAG
                      : node->type == YAML_SEQUENCE_NODE ? YAML_SEQ_TAG
                                                         : YAML_MAP_TAG;
    return strcmp((const char *)node->tag, own)
               ? mixt__yaml_bad(t->yaml, node, "tags (%s) are not supported", node->tag)
               : MIXT_OK;
}

static mixt_status take(taker *t, const yaml_node_t *node, int depth, mixt__evidence *value);

/** One more value at the end of a list or map. */
static mixt_status take_inside(taker *t, int key, int item, int depth, mixt__evidence ***end)
{
    mixt__evidence *value = mixt__arena_alloc(t->arena, sizeof *value);
    if (!value)
        return out_of_memory();
    if (key)
        MIXT_TRY(take_key(t, mixt__yaml_node(t->yaml, key), value));
    MIXT_TRY(take(t, mixt__yaml_node(t->yaml, item), depth + 1, value));
    **end = value;
    *end = &value->next;
    return MIXT_OK;
}

static mixt_status take(taker *t, const yaml_node_t *node, int depth, mixt__evidence *value)
{
    mixt__evidence **end = &value->inside;
    if (depth > DEPTH_MAX || ++t->values > VALUES_MAX)
        return mixt__yaml_bad(t->yaml, node, "the evidence is too large: depth %d and %d values are the most",
                              DEPTH_MAX, VALUES_MAX);
    MIXT_TRY(check_tag(t, node));
    if (node->type == YAML_SCALAR_NODE)
        return take_text(t, node, &value->text, &value->plain);
    value->kind = node->type == YAML_MAPPING_NODE ? MIXT_EVIDENCE_MAP : MIXT_EVIDENCE_LIST;
    if (value->kind == MIXT_EVIDENCE_MAP) {
        if (node->data.mapping.pairs.top - node->data.mapping.pairs.start <= VALUES_MAX) // else it is refused below
            MIXT_TRY(mixt__yaml_check_twice(t->yaml, node));
        for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++)
            MIXT_TRY(take_inside(t, p->key, p->value, depth, &end));
        return MIXT_OK;
    }
    for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++)
        MIXT_TRY(take_inside(t, 0, *i, depth, &end));
    return MIXT_OK;
}

mixt_status mixt__evidence_take(mixt__arena *arena, const mixt__yaml *yaml, const yaml_node_t *node,
                                const mixt__evidence **map)
{
    taker t = {.arena = arena, .yaml = yaml};
    mixt__evidence *value = mixt__arena_alloc(arena, sizeof *value);
    if (!value)
        return out_of_memory();
    if (node->type != YAML_MAPPING_NODE)
        return mixt__yaml_bad(yaml, node, "evidence must be a map");
    *map = value;
    return take(&t, node, 1, value);
}

/** A text in another arena; false when there is no memory. */
static bool copy_text(mixt__arena *arena, const char **text)
{
    if (*text)
        *text = mixt__arena_strdup(arena, *text);
    return *text;
}

const mixt__evidence *mixt__evidence_copy(mixt__arena *arena, const mixt__evidence *value)
{
    mixt__evidence *copy = mixt__arena_alloc(arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *value;
    copy->inside = copy->next = NULL;
    if ((value->key && !copy_text(arena, &copy->key)) || (value->text && !copy_text(arena, &copy->text)))
        return NULL;
    mixt__evidence **end = &copy->inside;
    for (const mixt__evidence *v = value->inside; v; v = v->next) {
        *end = (mixt__evidence *)(uintptr_t)mixt__evidence_copy(arena, v);
        if (!*end)
            return NULL;
        end = &(*end)->next;
    }
    return copy;
}
