/* One policy a layer, and one without them all. */
#include "steer/fragile.h"

#include "num/num.h"
#include "policy/policy.h"
#include "train/shadow.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 128 }; // layers that are tried one by one

typedef struct listing {
    char (*names)[MIXT_GLANCE_LAYER];
    int64_t count;
    mixt__policy_rule *rules; // the trainer's, and room for one a layer
} listing;

static bool is_low(const mixt__graph *g, const mixt__node *n)
{
    for (int o = 0; o < n->out_count && !n->op->view; o++)
        if (mixt__format_low(g->values[n->out[o]].dtype))
            return true;
    return !n->op->view && mixt__format_low(n->arithmetic);
}

static bool is_listed(const listing *l, const char *name)
{
    for (int64_t i = 0; i < l->count; i++)
        if (!strcmp(l->names[i], name))
            return true;
    return false;
}

/** Layers that compute in a lower format as the trainer is compiled. */
static void list(listing *l, const mixt__graph *g)
{
    for (int64_t i = 0; i < g->node_count && l->count <= MOST; i++) {
        const mixt__node *n = &g->nodes[i];
        if (!n->layer[0] || strlen(n->layer) >= MIXT_GLANCE_LAYER || !is_low(g, n) || is_listed(l, n->layer))
            continue;
        snprintf(l->names[l->count++], MIXT_GLANCE_LAYER, "%s", n->layer);
    }
}

/** The trainer's policy with some layers in FP32. @param alone all but this one; -1: those of `fp32` */
static mixt__policy policy_of(const mixt__glance *glance, listing *l, int64_t alone, const bool *fp32)
{
    mixt__policy policy = mixt__trainer_settings_of(glance->trainer)->policy;
    memcpy(l->rules, policy.rules, (size_t)policy.rule_count * sizeof *l->rules);
    for (int64_t i = 0; i < l->count; i++)
        if (alone >= 0 ? i != alone : fp32[i])
            l->rules[policy.rule_count++] =
                (mixt__policy_rule){.layer = l->names[i], .forward = MIXT_DTYPE_FP32, .backward = MIXT_DTYPE_FP32};
    policy.rules = l->rules;
    return policy;
}

static mixt_status try_policy(mixt__glance *glance, const mixt__policy *policy, bool *lost)
{
    double loss;
    MIXT_TRY(mixt__glance_at(glance, policy, mixt__glance_scale(glance->trainer), &loss));
    *lost = mixt__glance_loses(glance);
    return MIXT_OK;
}

static mixt_status try_all(mixt__glance *glance, listing *l, mixt__fragile *f)
{
    bool fp32[MOST + 1] = {false}, lost = false;
    int64_t count = 0;
    for (int64_t i = 0; i < l->count && count <= MIXT_FRAGILE_LAYERS; i++) {
        mixt__policy policy = policy_of(glance, l, i, NULL);
        MIXT_TRY(try_policy(glance, &policy, &fp32[i]));
        count += fp32[i];
    }
    if (!count || count > MIXT_FRAGILE_LAYERS)
        return MIXT_OK;
    mixt__policy rest = policy_of(glance, l, -1, fp32);
    MIXT_TRY(try_policy(glance, &rest, &lost));
    for (int64_t i = 0; i < l->count && !lost; i++)
        if (fp32[i])
            memcpy(f->layers[f->count++], l->names[i], sizeof f->layers[0]);
    return MIXT_OK;
}

mixt_status mixt__fragile_find(mixt__glance *glance, mixt__fragile *f)
{
    const mixt__policy *policy = &mixt__trainer_settings_of(glance->trainer)->policy;
    listing l = {.names = mixt__alloc((MOST + 1) * sizeof *l.names)};
    l.rules = mixt__alloc((size_t)(policy->rule_count + MOST + 1) * sizeof *l.rules);
    *f = (mixt__fragile){.count = 0};
    mixt_status status =
        l.names && l.rules ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the list of layers");
    if (status == MIXT_OK)
        list(&l, mixt__trainer_compiled(glance->trainer)->graph);
    if (status == MIXT_OK && l.count && l.count <= MOST)
        status = try_all(glance, &l, f);
    mixt__free(l.names);
    mixt__free(l.rules);
    return status;
}
