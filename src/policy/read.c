/* Reading a policy: its structure is small and fixed, so the YAML document is walked as a tree of nodes. */
#include "policy/inside.h"

#include "base/files.h"
#include "base/words.h"
#include "num/format.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum { FILE_MAX = 1 << 20 };

typedef struct reader {
    mixt_policy *policy;
    mixt__yaml yaml;
} reader;

static mixt_status out_of_memory(const reader *r)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for policy %s", r->yaml.name);
}

/** One word for both ways. */
static mixt_status read_word(const reader *r, const yaml_node_t *node, mixt_dtype *forward, mixt_dtype *backward)
{
    char names[MIXT_FORMAT_NAMES];
    return mixt__policy_word(mixt__yaml_text(node), forward, backward)
               ? MIXT_OK
               : mixt__yaml_bad(&r->yaml, node, "a precision must be fp8, %s",
                                mixt__format_names(MIXT_MAY_MULTIPLY, "or", names, sizeof names));
}

static mixt_status read_dtype(const reader *r, const yaml_node_t *node, bool is_backward, mixt_dtype *dtype)
{
    mixt_dtype forward, backward;
    MIXT_TRY(read_word(r, node, &forward, &backward));
    *dtype = is_backward ? backward : forward;
    return MIXT_OK;
}

static mixt_status read_keep_dtype(const reader *r, const yaml_node_t *node, mixt_dtype *dtype)
{
    char names[MIXT_FORMAT_NAMES];
    *dtype = mixt__policy_keep_dtype(mixt__yaml_text(node));
    return *dtype != MIXT_DTYPE_NONE ? MIXT_OK
                                     : mixt__yaml_bad(&r->yaml, node, "keep must be %s",
                                                      mixt__format_names(MIXT_MAY_KEEP, "or", names, sizeof names));
}

/** A text for people or a pattern, in the policy's arena. */
static mixt_status read_text(reader *r, const yaml_node_t *node, const char *expected, const char **text)
{
    if (node->type != YAML_SCALAR_NODE || !*mixt__yaml_text(node))
        return mixt__yaml_bad(&r->yaml, node, "%s", expected);
    if (strlen(mixt__yaml_text(node)) != node->data.scalar.length)
        return mixt__yaml_bad(&r->yaml, node, "the text has the control character U+0000");
    *text = mixt__arena_strdup(&r->policy->arena, mixt__yaml_text(node));
    return *text ? MIXT_OK : out_of_memory(r);
}

/** Both formats of a map: `precision` (where it may stand) for both, or forward and backward. */
static mixt_status read_formats(const reader *r, const yaml_node_t *map, const char *what, mixt_dtype *forward,
                                mixt_dtype *backward)
{
    const yaml_node_t *both = mixt__yaml_find(&r->yaml, map, "precision");
    const yaml_node_t *apart[2] = {mixt__yaml_find(&r->yaml, map, "forward"),
                                   mixt__yaml_find(&r->yaml, map, "backward")};
    if (both && (apart[0] || apart[1]))
        return mixt__yaml_bad(&r->yaml, both, "%s has precision, which is for both, and %s", what,
                              apart[0] ? "forward" : "backward");
    if (!both && !apart[0] != !apart[1])
        return mixt__yaml_bad(&r->yaml, map, "%s has %s but no %s: give both", what, apart[0] ? "forward" : "backward",
                              apart[0] ? "backward" : "forward");
    if (!both && !apart[0])
        return mixt__yaml_bad(&r->yaml, map, "%s has no precision", what);
    MIXT_TRY(read_dtype(r, both ? both : apart[0], false, forward));
    return read_dtype(r, both ? both : apart[1], true, backward);
}

static mixt_status read_version(reader *r, const yaml_node_t *node)
{
    if (strcmp(mixt__yaml_text(node), "1"))
        return mixt__yaml_bad(&r->yaml, node, "version must be 1: this version of mixt supports no other");
    return MIXT_OK;
}

static mixt_status read_made_by(reader *r, const yaml_node_t *node)
{
    return read_text(r, node, "made_by must be a text", &r->policy->made_by);
}

static mixt_status read_default(reader *r, const yaml_node_t *node)
{
    mixt__policy *formats = &r->policy->formats;
    formats->origin = mixt__arena_printf(&r->policy->arena, "default, %s:%zu", r->yaml.name, node->start_mark.line + 1);
    if (!formats->origin)
        return out_of_memory(r);
    if (node->type != YAML_MAPPING_NODE)
        return read_word(r, node, &formats->forward, &formats->backward);
    MIXT_TRY(mixt__yaml_check_map(&r->yaml, node, "the default", "forward|backward"));
    return read_formats(r, node, "the default", &formats->forward, &formats->backward);
}

static mixt_status read_keep(reader *r, const yaml_node_t *node)
{
    mixt__policy *formats = &r->policy->formats;
    MIXT_TRY(read_keep_dtype(r, node, &formats->keep));
    formats->keep_origin = mixt__arena_printf(&r->policy->arena, "%s:%zu", r->yaml.name, node->start_mark.line + 1);
    return formats->keep_origin ? MIXT_OK : out_of_memory(r);
}

static mixt_status read_rule(reader *r, const yaml_node_t *node)
{
    static const char expected[] = "a pattern must be a word, as in layer: \"h.*.attn.*\"";
    mixt__policy_rule rule = {0};
    MIXT_TRY(mixt__yaml_check_map(&r->yaml, node, "a rule", "layer|op|precision|forward|backward|keep"));
    const yaml_node_t *layer = mixt__yaml_find(&r->yaml, node, "layer"), *op = mixt__yaml_find(&r->yaml, node, "op"),
                      *keep = mixt__yaml_find(&r->yaml, node, "keep");
    if (layer)
        MIXT_TRY(read_text(r, layer, expected, &rule.layer));
    if (op)
        MIXT_TRY(read_text(r, op, expected, &rule.op));
    MIXT_TRY(read_formats(r, node, "the rule", &rule.forward, &rule.backward));
    if (keep)
        MIXT_TRY(read_keep_dtype(r, keep, &rule.keep));
    rule.origin = mixt__arena_printf(&r->policy->arena, "%s:%zu", r->yaml.name, node->start_mark.line + 1);
    return rule.origin ? mixt__policy_place(r->policy, r->policy->formats.rule_count, &rule) : out_of_memory(r);
}

static mixt_status read_rules(reader *r, const yaml_node_t *node)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return mixt__yaml_bad(&r->yaml, node, "rules must be a list");
    if (node->data.sequence.items.top - node->data.sequence.items.start > MIXT_POLICY_RULES_MAX)
        return mixt__yaml_bad(&r->yaml, node, "more than %d rules", MIXT_POLICY_RULES_MAX);
    for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++)
        MIXT_TRY(read_rule(r, mixt__yaml_node(&r->yaml, *i)));
    return MIXT_OK;
}

static mixt_status read_evidence(reader *r, const yaml_node_t *node)
{
    return mixt__evidence_take(&r->policy->arena, &r->yaml, node, &r->policy->evidence);
}

static mixt_status read_settings(reader *r, const yaml_node_t *root)
{
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++) {
        const yaml_node_t *node = mixt__yaml_find(&r->yaml, root, mixt_policy_setting(i));
        if (!node)
            continue;
        mixt_status status =
            mixt__policy_setting_parse(&r->policy->settings, i, mixt__yaml_text(node), &r->policy->arena);
        if (status != MIXT_OK)
            return mixt__yaml_at(&r->yaml, node, status);
    }
    return MIXT_OK;
}

static mixt_status read_phases(reader *r, const yaml_node_t *node);

enum { KEYS_TEXT = 256 };

/** What a map may have: what a policy and a phase of one both may, and its own. */
static const char *known_keys(const char *own, char text[KEYS_TEXT])
{
    size_t used = (size_t)snprintf(text, KEYS_TEXT, "%s|default|keep|rules", own);
    for (int i = 0; i < MIXT_POLICY_SETTINGS; i++)
        used += (size_t)snprintf(text + used, KEYS_TEXT - used, "|%s", mixt_policy_setting(i));
    return text;
}

/** Every key of a map that has a reader. */
static mixt_status read_keys(reader *r, const yaml_node_t *map, const char *what, const char *own)
{
    char known[KEYS_TEXT];
    static const struct {
        const char *name;
        mixt_status (*read)(reader *r, const yaml_node_t *node);
    } keys[] = {
        {"version", read_version},   {"made_by", read_made_by}, {"default", read_default}, {"rules", read_rules},
        {"evidence", read_evidence}, {"keep", read_keep},       {"phases", read_phases},
    };
    MIXT_TRY(mixt__yaml_check_map(&r->yaml, map, what, known_keys(own, known)));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const yaml_node_t *node = mixt__yaml_find(&r->yaml, map, keys[i].name);
        if (node)
            MIXT_TRY(keys[i].read(r, node));
    }
    return read_settings(r, map);
}

static mixt_status read_until(const reader *r, const yaml_node_t *node, mixt__policy_phase *phase)
{
    mixt_status status = mixt__phase_until_parse(mixt__yaml_text(node), &phase->until, &phase->unit);
    return status == MIXT_OK ? MIXT_OK : mixt__yaml_at(&r->yaml, node, status);
}

/** A phase whose changes are open: they are the policy's from here on, or freed. */
static mixt_status take_phase(reader *r, const yaml_node_t *node, mixt__policy_phase *phase)
{
    reader inside = {.policy = phase->changes, .yaml = r->yaml};
    const yaml_node_t *name, *until;
    mixt_status status = read_keys(&inside, node, "a phase", "name|until");
    if (status == MIXT_OK && !(name = mixt__yaml_find(&r->yaml, node, "name")))
        status = mixt__yaml_bad(&r->yaml, node, "the phase has no name");
    if (status == MIXT_OK)
        status = read_text(r, name, "a phase's name must be a word", &phase->name);
    if (status == MIXT_OK && (until = mixt__yaml_find(&r->yaml, node, "until")))
        status = read_until(r, until, phase);
    if (status == MIXT_OK)
        phase->origin = mixt__arena_printf(&r->policy->arena, "%s:%zu", r->yaml.name, node->start_mark.line + 1);
    if (status == MIXT_OK && !phase->origin)
        status = out_of_memory(r);
    if (status != MIXT_OK) {
        mixt_policy_free(phase->changes);
        return status;
    }
    status = mixt__policy_take_phase(r->policy, phase);
    return status == MIXT_OK ? MIXT_OK : mixt__yaml_at(&r->yaml, node, status);
}

static mixt_status read_phases(reader *r, const yaml_node_t *node)
{
    if (node->type != YAML_SEQUENCE_NODE || node->data.sequence.items.top == node->data.sequence.items.start)
        return mixt__yaml_bad(&r->yaml, node, "phases must be a list with at least one");
    const yaml_node_item_t *last = node->data.sequence.items.top - 1;
    for (const yaml_node_item_t *i = node->data.sequence.items.start; i <= last; i++) {
        mixt__policy_phase phase = {0};
        MIXT_TRY(mixt__policy_empty(&phase.changes));
        MIXT_TRY(take_phase(r, mixt__yaml_node(&r->yaml, *i), &phase));
    }
    mixt_status status = mixt__policy_check_last(r->policy);
    return status == MIXT_OK ? MIXT_OK : mixt__yaml_at(&r->yaml, mixt__yaml_node(&r->yaml, *last), status);
}

static mixt_status read_root(reader *r)
{
    const yaml_node_t *root = mixt__yaml_node(&r->yaml, 1);
    MIXT_TRY(read_keys(r, root, "a policy", "version|made_by|phases|evidence"));
    return r->policy->formats.forward == MIXT_DTYPE_NONE ? mixt__yaml_bad(&r->yaml, root, "the policy has no default")
                                                         : MIXT_OK;
}

mixt_status mixt__policy_read(mixt_policy *policy, const char *text, size_t size, const char *name)
{
    reader r = {.policy = policy};
    mixt__c_locale locale;
    MIXT_TRY(mixt__yaml_open(&r.yaml, text, size, name, "a policy needs 'default: bf16' (or another format) at least"));
    mixt_status status = mixt__c_locale_enter(&locale);
    if (status == MIXT_OK) {
        status = read_root(&r);
        mixt__c_locale_leave(&locale);
    }
    mixt__yaml_close(&r.yaml);
    return status;
}

/** The whole file; its text is for mixt__free. *opened says how far it came. */
static mixt_status read_file(const char *path, char **text, size_t *size, bool *opened)
{
    FILE *stream = mixt__file_open_stream(path);
    *opened = stream;
    if (!stream)
        return mixt__fail(MIXT_ERROR_FILE, "%s", mixt__file_problem(errno));
    *text = mixt__alloc_uninit(FILE_MAX + 1);
    *size = *text ? fread(*text, 1, FILE_MAX + 1, stream) : 0;
    mixt_status status = MIXT_OK;
    if (!*text)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for it");
    else if (ferror(stream))
        status = mixt__fail(MIXT_ERROR_FILE, "%s", mixt__file_problem(errno));
    else if (*size > FILE_MAX)
        status = mixt__fail(MIXT_ERROR_FILE, "more than 1 MiB");
    fclose(stream);
    if (status != MIXT_OK)
        mixt__free(*text);
    return status;
}

/** Gives *policy what was read, or NULL. */
static mixt_status make(const char *text, size_t size, const char *name, mixt_policy **policy)
{
    mixt_policy *made;
    MIXT_TRY(mixt__policy_empty(&made));
    mixt_status status = mixt__policy_read(made, text, size, name);
    if (status == MIXT_OK)
        *policy = made;
    else
        mixt_policy_free(made);
    return status;
}

/** @param named the file was given where the name of a format could be */
static mixt_status load(const char *path, bool named, mixt_policy **policy)
{
    char *text = NULL;
    size_t size = 0;
    bool opened;
    mixt_status status = read_file(path, &text, &size, &opened);
    if (status != MIXT_OK && !named)
        return mixt__fail_context(status, "policy file '%s' cannot be read", path);
    if (status != MIXT_OK && opened)
        return mixt__fail_context(status, "precision '%s' is not a policy file that can be read", path);
    char hint[64];
    if (status != MIXT_OK && *mixt__choice_hint("fp32|tf32|fp16|bf16|fp8|auto", path, hint, sizeof hint))
        return mixt__fail(status, "precision '%s' is unknown%s", path, hint);
    if (status != MIXT_OK)
        return mixt__fail_context(
            status, "precision '%s' is neither fp32, tf32, fp16, bf16, fp8, auto nor a policy file", path);
    status = make(text, size, path, policy);
    mixt__free(text);
    return status;
}

mixt_status mixt_policy_load(const char *path, mixt_policy **policy)
{
    MIXT_TRY(mixt__need(policy));
    *policy = NULL;
    MIXT_TRY(mixt__need(path));
    return load(path, false, policy);
}

mixt_status mixt_policy_open(const char *name_or_path, mixt_policy **policy)
{
    MIXT_TRY(mixt__need(policy));
    *policy = NULL;
    MIXT_TRY(mixt__need(name_or_path));
    mixt_dtype forward, backward;
    if (mixt__policy_word(name_or_path, &forward, &backward))
        return mixt_policy_named(name_or_path, policy);
    return load(name_or_path, true, policy);
}

mixt_status mixt_policy_parse(const char *yaml, const char *name, mixt_policy **policy)
{
    MIXT_TRY(mixt__need(policy));
    *policy = NULL;
    MIXT_TRY(mixt__need(yaml));
    MIXT_TRY(mixt__need(name));
    return make(yaml, strlen(yaml), name, policy);
}
