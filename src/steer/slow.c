/* Pairs first, layers where it pays. */
#include "steer/slow.h"

#include "policy/policy.h"
#include "steer/consensus.h"
#include "steer/inquiry.h"
#include "steer/pairs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double flushed = 0.05; // of the gradient that is left: the rest is below the format's range

static double kept_by(const mixt__looks *looks, const char *name)
{
    for (int64_t i = 0; i < looks->count; i++)
        if (!strcmp(looks->layers[i].name, name))
            return looks->layers[i].kept;
    return NAN;
}

/** Rank 0 looks, the others take over what it finds. */
static mixt_status find_layers(const mixt__slow_request *r)
{
    mixt__trainer *t = r->ring->trainer;
    const mixt__group *group = mixt__ranks_group(t);
    mixt__glance look = {0};
    mixt_status status = MIXT_OK;
    *r->fragile = (mixt__fragile){.count = 0};
    if (!group || group->rank == 0) {
        status = mixt__glance_open(&look, t, r->data, 0);
        if (status == MIXT_OK)
            status = mixt__fragile_find(&look, r->fragile);
        mixt__glance_close(&look);
    }
    MIXT_TRY(mixt__consensus_agree(t, status));
    return mixt__consensus_take(t, 0, r->fragile, sizeof *r->fragile);
}

static void name_layers(const mixt__slow_request *r, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < r->fragile->count; i++) {
        if (i < MIXT_DIAGNOSIS_LAYERS)
            memcpy(r->words->layers[i], r->fragile->layers[i], sizeof r->words->layers[i]);
        at += (size_t)snprintf(text + at, at < size ? size - at : 0, "%s%s", i ? ", " : "", r->fragile->layers[i]);
        at = at < size ? at : size;
    }
    if (!r->fragile->count)
        snprintf(text, size, "more than a few layers");
}

static mixt_status describe(const mixt__slow_request *r, const mixt__pairs *p, const char *suspect, mixt_diagnosis *d)
{
    char layers[200], seen[96] = "the loss rises slowly", *judged;
    double kept = kept_by(r->looks, suspect); // NaN: no layer is suspected
    bool low = mixt__policy_needs_scaling(&mixt__trainer_settings_of(r->ring->trainer)->policy);
    d->kind = MIXT_DIAGNOSIS_PRECISION;
    d->cause = MIXT_CAUSE_PRECISION;
    d->symptom = low && fabs(kept) < flushed ? MIXT_CAUSE_UNDERFLOW : MIXT_CAUSE_PRECISION;
    MIXT_TRY(find_layers(r));
    name_layers(r, layers, sizeof layers);
    MIXT_TRY(mixt_judgement_text(&p->judgement, &judged));
    if (*suspect)
        snprintf(seen, sizeof seen, "%.40s has %.0f%% left of FP32's gradient", suspect, 100 * fmax(kept, 0));
    snprintf(
        r->words->text, sizeof r->words->text,
        "precision: %s, and in FP32 the updates from %lld on do better (loss %.4g, not %.4g): %.150s; lost in %.110s",
        seen, (long long)p->from, p->fp32, p->low, judged, layers);
    mixt_free(judged);
    return MIXT_OK;
}

mixt_status mixt__slow_diagnose(const mixt__slow_request *r, mixt_diagnosis *d)
{
    mixt__trainer *t = r->ring->trainer;
    const char *suspects[1] = {""};
    mixt__pairs p;
    *r->words = (mixt__diagnosis_words){0};
    *r->fragile = (mixt__fragile){.count = 0};
    *d = (mixt_diagnosis){.kind = MIXT_DIAGNOSIS_UNKNOWN, .symptom = MIXT_CAUSE_PRECISION, .rank = -1, .element = -1};
    d->cause = MIXT_CAUSE_PRECISION;
    d->step = mixt__trainer_steps(t);
    d->place = d->sample = -1;
    d->value = d->usual = d->fp32 = NAN;
    mixt__diagnosis_point(d, r->words);
    bool seen = mixt__looks_suspects(r->looks, suspects, 1) > 0;
    double margin = seen ? MIXT_PAIRS_MARGIN_SUSPECTED : MIXT_PAIRS_MARGIN;
    MIXT_TRY(mixt__pairs_measure(r->ring, r->data, r->began, margin, &p));
    d->good = p.from;
    d->replayed = p.replayed;
    d->judged = p.judgement;
    if (p.judgement.verdict != MIXT_VERDICT_NO)
        return MIXT_OK;
    d->value = p.low;
    d->fp32 = p.fp32;
    return describe(r, &p, suspects[0], d);
}
