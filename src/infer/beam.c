/* Beam search. Of each beam the 2 · beams most probable next tokens are looked at: even if half of them end their text,
 * enough are left to go on. A text is done when as many of its beams have ended as there are, or at its longest. */
#include "infer/beam.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

/** A way to go on. */
typedef struct candidate {
    double score; // sum of log-probabilities
    int32_t beam, token;
} candidate;

typedef struct text {
    int64_t ended, longest;
    double best; // score of the best that ended
    int64_t best_length;
    bool done, whole;
} text;

struct mixt__beams {
    mixt__beam_options o;
    int64_t length; // tokens written
    text *texts;
    double *scores;  // (texts, beams); minus infinity: no such beam
    int32_t *tokens; // (texts, beams, longest)
    int32_t *moved;  // (beams, longest) while beams change places; one such room a text
    int32_t *best;   // (texts, longest)
    int32_t *from;   // (texts, beams) where the last step has come from
    candidate *next; // (texts · beams, 2 · beams) of each beam, best first
};

mixt_status mixt__beams_new(const mixt__beam_options *o, mixt__beams **beams)
{
    mixt__beams *b = *beams = mixt__alloc(sizeof *b);
    size_t rows = (size_t)(o->texts * o->beams), longest = (size_t)o->longest;
    if (b) {
        b->o = *o;
        b->texts = mixt__alloc((size_t)o->texts * sizeof *b->texts);
        b->scores = mixt__alloc(rows * sizeof *b->scores);
        b->tokens = mixt__alloc(rows * longest * sizeof *b->tokens);
        b->moved = mixt__alloc(rows * longest * sizeof *b->moved);
        b->best = mixt__alloc((size_t)o->texts * longest * sizeof *b->best);
        b->from = mixt__alloc(rows * sizeof *b->from);
        b->next = mixt__alloc(rows * 2 * (size_t)o->beams * sizeof *b->next);
    }
    if (b && b->texts && b->scores && b->tokens && b->moved && b->best && b->from && b->next)
        return MIXT_OK;
    mixt__beams_free(b);
    *beams = NULL;
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld beams of %lld texts", (long long)o->beams,
                      (long long)o->texts);
}

void mixt__beams_free(mixt__beams *b)
{
    if (!b)
        return;
    mixt__free(b->texts);
    mixt__free(b->scores);
    mixt__free(b->tokens);
    mixt__free(b->moved);
    mixt__free(b->best);
    mixt__free(b->from);
    mixt__free(b->next);
    mixt__free(b);
}

void mixt__beams_start(mixt__beams *b, const int64_t *longest)
{
    b->length = 0;
    for (int64_t t = 0; t < b->o.texts; t++) {
        int64_t most = longest[t] < b->o.longest ? longest[t] : b->o.longest;
        b->texts[t] = (text){.longest = most, .best = -INFINITY, .done = most < 1};
        for (int64_t i = 0; i < b->o.beams; i++) // all would write the same: one begins
            b->scores[t * b->o.beams + i] = i ? -INFINITY : 0;
    }
}

bool mixt__beams_done(const mixt__beams *b)
{
    for (int64_t t = 0; t < b->o.texts; t++)
        if (!b->texts[t].done)
            return false;
    return true;
}

int64_t mixt__beams_length(const mixt__beams *b)
{
    return b->length;
}

void mixt__beams_newest(const mixt__beams *b, int32_t *tokens)
{
    for (int64_t r = 0; r < b->o.texts * b->o.beams; r++)
        tokens[r] =
            b->length && !b->texts[r / b->o.beams].done ? b->tokens[r * b->o.longest + b->length - 1] : b->o.end;
}

const int32_t *mixt__beams_from(const mixt__beams *b)
{
    return b->from;
}

/* ---- a step ---- */

/** Puts a candidate into a list that is sorted, best first, and at most `room` long; an equal one goes behind. */
static void offer(candidate *list, int64_t *count, int64_t room, candidate c)
{
    int64_t at = *count;
    if (at == room && !(c.score > list[room - 1].score))
        return;
    if (at == room)
        at--;
    else
        ++*count;
    for (; at > 0 && list[at - 1].score < c.score; at--)
        list[at] = list[at - 1];
    list[at] = c;
}

/** The most probable tokens of one beam. */
static void rank_row(const mixt__beams *b, int64_t row, const float *logits, candidate *list)
{
    float most = -INFINITY;
    double total = 0, score = b->scores[row];
    int64_t count = 0, room = 2 * b->o.beams;
    for (int64_t v = 0; v < b->o.vocab; v++)
        most = logits[v] > most ? logits[v] : most;
    for (int64_t v = 0; v < b->o.vocab; v++)
        total += (double)expf(logits[v] - most);
    double less = score - (double)most - log(total);
    for (int64_t v = 0; v < b->o.vocab; v++)
        if (count < room || (double)logits[v] + less > list[room - 1].score)
            offer(list, &count, room, (candidate){(double)logits[v] + less, (int32_t)(row % b->o.beams), (int32_t)v});
    for (; count < room; count++)
        list[count] = (candidate){-INFINITY, 0, b->o.end};
}

/** A text that ends here, or is cut off here. */
static void finish(mixt__beams *b, int64_t t, const candidate *c, bool whole)
{
    text *x = &b->texts[t];
    double score = c->score / pow((double)(b->length + 1), b->o.penalty);
    if (!(score > x->best))
        return;
    x->best = score;
    x->whole = whole;
    x->best_length = b->length + !whole;
    int32_t *to = b->best + t * b->o.longest;
    memcpy(to, b->tokens + (t * b->o.beams + c->beam) * b->o.longest, (size_t)b->length * sizeof *to);
    if (!whole)
        to[b->length] = c->token;
}

/** Lets the chosen candidates be the beams. */
static void go_on(mixt__beams *b, int64_t t, const candidate *chosen, int64_t count)
{
    int64_t beams = b->o.beams, longest = b->o.longest;
    int32_t *tokens = b->tokens + t * beams * longest, *moved = b->moved + t * beams * longest;
    memcpy(moved, tokens, (size_t)(beams * longest) * sizeof *moved);
    for (int64_t i = 0; i < beams; i++) {
        bool there = i < count;
        b->scores[t * beams + i] = there ? chosen[i].score : -INFINITY;
        if (!there)
            continue;
        b->from[t * beams + i] = chosen[i].beam;
        memcpy(tokens + i * longest, moved + chosen[i].beam * longest, (size_t)b->length * sizeof *tokens);
        tokens[i * longest + b->length] = chosen[i].token;
    }
}

static void step_text(mixt__beams *b, int64_t t)
{
    text *x = &b->texts[t];
    int64_t beams = b->o.beams, room = 2 * beams, count = 0, going = 0;
    candidate all[2 * MIXT_BEAMS_MAX], chosen[MIXT_BEAMS_MAX];
    for (int64_t i = 0; i < beams * room; i++)
        if (b->next[t * beams * room + i].score > -INFINITY)
            offer(all, &count, room, b->next[t * beams * room + i]);
    bool last = b->length + 1 >= x->longest;
    for (int64_t i = 0; i < count && going < beams && x->ended < beams; i++) {
        bool ends = all[i].token == b->o.end;
        if (ends && i < beams) { // one that ends must be among the best itself
            finish(b, t, &all[i], true);
            x->ended++;
        } else if (!ends) {
            chosen[going++] = all[i];
        }
    }
    if (last && x->best == -INFINITY && going)
        finish(b, t, &chosen[0], false);
    x->done = last || x->ended >= beams || !going;
    if (!x->done)
        go_on(b, t, chosen, going);
}

typedef struct step {
    mixt__beams *beams;
    const float *logits;
    int64_t width;
} step;

static void step_range(void *argument, int64_t begin, int64_t end, int thread)
{
    step *s = argument;
    mixt__beams *b = s->beams;
    (void)thread;
    for (int64_t t = begin; t < end; t++) {
        for (int64_t i = 0; i < b->o.beams; i++)
            b->from[t * b->o.beams + i] = (int32_t)i;
        if (b->texts[t].done)
            continue;
        for (int64_t i = 0; i < b->o.beams; i++) {
            int64_t row = t * b->o.beams + i;
            candidate *list = b->next + row * 2 * b->o.beams;
            for (int64_t k = 0; k < 2 * b->o.beams; k++)
                list[k].score = -INFINITY;
            if (b->scores[row] > -INFINITY)
                rank_row(b, row, s->logits + row * s->width, list);
        }
        step_text(b, t);
    }
}

void mixt__beams_step(mixt__beams *b, const float *logits, int64_t width)
{
    step s = {b, logits, width};
    mixt__parallel(b->o.texts, 1, step_range, &s);
    b->length++;
}

const int32_t *mixt__beams_best(const mixt__beams *b, int64_t t, int64_t *length, double *score, bool *whole)
{
    *length = b->texts[t].best > -INFINITY ? b->texts[t].best_length : 0;
    *score = b->texts[t].best;
    *whole = b->texts[t].whole;
    return b->best + t * b->o.longest;
}
