/* Reading a policy file. The structure is small and fixed, so the YAML document is walked as a tree of nodes. */
#include "policy/policy.h"

#include "base/status.h"
#include "num/num.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { MAX_RULES = 4096 };

typedef struct reader {
    const char *path;
    yaml_document_t document;
    mixt__policy_file *file;
    mixt__policy_rule *rules;
} reader;

static mixt_dtype policy_dtype(const char *name)
{
    mixt_dtype dtype = mixt_dtype_parse(name);
    return dtype == MIXT_DTYPE_FP32 || dtype == MIXT_DTYPE_TF32 || dtype == MIXT_DTYPE_FP16 || dtype == MIXT_DTYPE_BF16
               ? dtype
               : MIXT_DTYPE_NONE;
}

static mixt_status bad(const reader *r, const yaml_node_t *node, const char *what)
{
    return mixt__fail(MIXT_ERROR_CONFIG, "%s:%zu:%zu: %s", r->path, node->start_mark.line + 1,
                      node->start_mark.column + 1, what);
}

static const char *scalar(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : "";
}

static mixt_status read_dtype(const reader *r, const yaml_node_t *node, mixt_dtype *dtype)
{
    *dtype = policy_dtype(scalar(node));
    return *dtype == MIXT_DTYPE_NONE ? bad(r, node, "a precision must be fp32, tf32, fp16 or bf16") : MIXT_OK;
}

static mixt_status read_pattern(reader *r, const yaml_node_t *node, const char **pattern)
{
    if (node->type != YAML_SCALAR_NODE || !*scalar(node))
        return bad(r, node, "a pattern must be a word, as in layer: \"h.*.attn.*\"");
    *pattern = mixt__arena_strdup(&r->file->arena, scalar(node));
    return *pattern ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for policy %s", r->path);
}

static mixt_status read_rule(reader *r, yaml_node_t *node, mixt__policy_rule *rule)
{
    if (node->type != YAML_MAPPING_NODE)
        return bad(r, node, "a rule must be a map with layer or op, and precision");
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
        const yaml_node_t *value = yaml_document_get_node(&r->document, p->value);
        if (!strcmp(scalar(key), "layer"))
            MIXT_TRY(read_pattern(r, value, &rule->layer));
        else if (!strcmp(scalar(key), "op"))
            MIXT_TRY(read_pattern(r, value, &rule->op));
        else if (!strcmp(scalar(key), "precision"))
            MIXT_TRY(read_dtype(r, value, &rule->forward));
        else
            return bad(r, key, "unknown key of a rule: layer, op and precision are known");
    }
    rule->backward = rule->forward;
    rule->origin = mixt__arena_printf(&r->file->arena, "%s:%zu", r->path, node->start_mark.line + 1);
    return rule->forward == MIXT_DTYPE_NONE ? bad(r, node, "the rule has no precision") : MIXT_OK;
}

static mixt_status read_rules(reader *r, yaml_node_t *node)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return bad(r, node, "rules must be a list");
    int64_t count = node->data.sequence.items.top - node->data.sequence.items.start;
    if (count > MAX_RULES)
        return bad(r, node, "more than 4096 rules");
    r->rules = mixt__arena_alloc(&r->file->arena, (size_t)(count + 1) * sizeof *r->rules);
    if (!r->rules)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for policy %s", r->path);
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY(read_rule(r, yaml_document_get_node(&r->document, node->data.sequence.items.start[i]), &r->rules[i]));
    r->file->policy.rules = r->rules;
    r->file->policy.rule_count = count;
    return MIXT_OK;
}

static mixt_status read_document(reader *r)
{
    yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (!root)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: empty: a policy needs 'default: bf16' (or another format) at least",
                          r->path);
    if (root->type != YAML_MAPPING_NODE)
        return bad(r, root, "a policy must be a map with 'default' and 'rules'");
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&r->document, p->key);
        yaml_node_t *value = yaml_document_get_node(&r->document, p->value);
        if ((!strcmp(scalar(key), "default") && r->file->policy.forward != MIXT_DTYPE_NONE) ||
            (!strcmp(scalar(key), "rules") && r->rules))
            return bad(r, key, "this key is given twice");
        if (!strcmp(scalar(key), "default"))
            MIXT_TRY(read_dtype(r, value, &r->file->policy.forward));
        else if (!strcmp(scalar(key), "rules"))
            MIXT_TRY(read_rules(r, value));
        else
            return bad(r, key, "unknown key of a policy: default and rules are known");
    }
    r->file->policy.backward = r->file->policy.forward;
    return r->file->policy.forward == MIXT_DTYPE_NONE ? bad(r, root, "the policy has no default") : MIXT_OK;
}

/** A second document would be ignored: better to say so. */
static mixt_status check_end(reader *r, yaml_parser_t *parser)
{
    mixt_status status = MIXT_OK;
    if (!yaml_parser_load(parser, &r->document))
        return mixt__fail(MIXT_ERROR_CONFIG, "%s:%zu:%zu: not YAML: %s", r->path, parser->problem_mark.line + 1,
                          parser->problem_mark.column + 1, parser->problem ? parser->problem : "cannot be read");
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    if (root)
        status = bad(r, root, "a second document begins here: a policy is one document");
    yaml_document_delete(&r->document);
    return status;
}

static mixt_status read_file(const char *path, mixt__policy_file *file)
{
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return mixt__fail(MIXT_ERROR_FILE,
                          "precision '%s' is neither fp32, tf32, fp16, bf16 nor a policy file that can be read: %s",
                          path, strerror(errno));
    reader r = {.path = path, .file = file};
    yaml_parser_t parser;
    mixt_status status;
    if (!yaml_parser_initialize(&parser)) {
        fclose(stream);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", path);
    }
    yaml_parser_set_input_file(&parser, stream);
    if (yaml_parser_load(&parser, &r.document)) {
        status = read_document(&r);
        yaml_document_delete(&r.document);
        if (status == MIXT_OK)
            status = check_end(&r, &parser);
    } else if (ferror(stream)) {
        status =
            mixt__fail(MIXT_ERROR_FILE, "precision '%s' is no policy file that can be read: %s", path, strerror(errno));
    } else {
        status = mixt__fail(MIXT_ERROR_CONFIG, "%s:%zu:%zu: not YAML: %s", path, parser.problem_mark.line + 1,
                            parser.problem_mark.column + 1, parser.problem ? parser.problem : "cannot be read");
    }
    yaml_parser_delete(&parser);
    fclose(stream);
    return status;
}

mixt_status mixt__policy_load(const char *name_or_path, mixt__policy_file *file)
{
    mixt_dtype dtype = policy_dtype(name_or_path);
    *file = (mixt__policy_file){.policy = mixt__policy_of(dtype)};
    if (dtype != MIXT_DTYPE_NONE)
        return MIXT_OK;
    mixt_status status = read_file(name_or_path, file);
    if (status != MIXT_OK)
        mixt__policy_free(file);
    return status;
}

void mixt__policy_free(mixt__policy_file *file)
{
    mixt__arena_free(&file->arena);
    file->policy = (mixt__policy){0};
}

mixt__policy mixt__policy_of(mixt_dtype dtype)
{
    return (mixt__policy){.forward = dtype, .backward = dtype, .origin = "default of the policy"};
}

bool mixt__policy_uses(const mixt__policy *policy, mixt_dtype dtype)
{
    bool uses = policy->forward == dtype || policy->backward == dtype;
    for (int64_t i = 0; i < policy->rule_count; i++)
        uses |= policy->rules[i].forward == dtype || policy->rules[i].backward == dtype;
    return uses;
}
