/* Outputs of a model trained with CTC to letters: frame by frame, or by following several rows of letters at once
 * (prefix beam search: Hannun et al., 2014).
 *
 * A row is a node of a tree, so that rows that come to the same letters are one. What ends in a blank and what does not
 * is counted apart: only behind a blank does the same letter count again. Logarithms in FP64; of equally likely rows
 * the older one goes first, so that the same outputs give the same letters.
 */
#include "mixt/tasks/transcript.h"

#include "base/alloc.h"
#include "base/handles.h"
#include "base/status.h"
#include "mixt/predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BEAM_MAX = 1000 };

/** A row of letters: that of its parent and one more. The first node is the empty row. */
typedef struct node {
    int64_t parent, child, sibling; // -1: none
    int32_t letter;                 // 0 of the empty row
    int64_t place;                  // among the rows that are followed; -1: not among them
} node;

/** A row that is followed, or may be. */
typedef struct row {
    int64_t node;        // of a row that may be begun: its parent
    int32_t letter;      // of such a one; 0: it is there already
    double blank, other; // logarithms: how likely it is so far, ending in a blank or not
    double total;        // of both
} row;

typedef struct search {
    int64_t frames, classes, beam;
    node *nodes;
    int64_t node_count, node_capacity;
    row *rows, *next; // (beam) followed; (beam × classes) that may be
    int64_t row_count, next_count;
    double *logs; // (classes) of one frame
} search;

static double log_add(double a, double b)
{
    double most = fmax(a, b);
    return most == -INFINITY ? most : most + log1p(exp(fmin(a, b) - most));
}

static void add_row(search *s, row r)
{
    r.total = log_add(r.blank, r.other);
    s->next[s->next_count++] = r;
}

/** log softmax of a frame. */
static void take_logs(search *s, const float *outputs)
{
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < s->classes; k++)
        most = fmax(most, (double)outputs[k]);
    for (int64_t k = 0; k < s->classes; k++)
        sum += exp((double)outputs[k] - most);
    for (int64_t k = 0; k < s->classes; k++)
        s->logs[k] = (double)outputs[k] - most - log(sum);
}

static int64_t find_child(const search *s, int64_t parent, int32_t letter)
{
    int64_t at = s->nodes[parent].child;
    while (at >= 0 && s->nodes[at].letter != letter)
        at = s->nodes[at].sibling;
    return at;
}

/** How likely a row is that goes on with `letter`: the same letter again needs a blank between. */
static double going_on(const search *s, const row *r, int32_t letter)
{
    return (s->nodes[r->node].letter == letter ? r->blank : r->total) + s->logs[letter];
}

/** A row that stays, and that its parent comes to as well. */
static void stay(search *s, const row *r)
{
    const node *n = &s->nodes[r->node];
    row made = {.node = r->node, .blank = r->total + s->logs[0], .other = -INFINITY};
    if (n->letter)
        made.other = r->other + s->logs[n->letter];
    if (n->parent >= 0 && s->nodes[n->parent].place >= 0)
        made.other = log_add(made.other, going_on(s, &s->rows[s->nodes[n->parent].place], n->letter));
    add_row(s, made);
}

/** All that may come next. */
static void step(search *s)
{
    s->next_count = 0;
    for (int64_t i = 0; i < s->row_count; i++) {
        const row *r = &s->rows[i];
        stay(s, r);
        for (int32_t k = 1; k < s->classes; k++) {
            int64_t child = find_child(s, r->node, k);
            if (child < 0 || s->nodes[child].place < 0)
                add_row(s, (row){.node = r->node, .letter = k, .blank = -INFINITY, .other = going_on(s, r, k)});
        }
    }
}

/** The likelier first; of equal ones the older, then the lower letter, so that the order is one. */
static int by_likelihood(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->letter > y->letter) - (x->letter < y->letter);
}

/** The node of a row that goes on; -1: no memory. */
static int64_t add_node(search *s, int64_t parent, int32_t letter)
{
    int64_t at = find_child(s, parent, letter);
    if (at >= 0)
        return at;
    if (!mixt__grow((void **)&s->nodes, &s->node_capacity, s->node_count, sizeof *s->nodes))
        return -1;
    s->nodes[s->node_count] = (node){parent, -1, s->nodes[parent].child, letter, -1};
    s->nodes[parent].child = s->node_count;
    return s->node_count++;
}

/** Keeps the likeliest of what may come. */
static mixt_status choose(search *s)
{
    qsort(s->next, (size_t)s->next_count, sizeof *s->next, by_likelihood);
    for (int64_t i = 0; i < s->row_count; i++)
        s->nodes[s->rows[i].node].place = -1;
    s->row_count = s->next_count < s->beam ? s->next_count : s->beam;
    for (int64_t i = 0; i < s->row_count; i++) {
        row *r = &s->rows[i];
        *r = s->next[i];
        if (r->letter)
            r->node = add_node(s, r->node, r->letter);
        if (r->node < 0)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to follow %lld rows of letters", (long long)s->beam);
        r->letter = 0;
        s->nodes[r->node].place = i;
    }
    return MIXT_OK;
}

static mixt_status follow(search *s, const float *outputs)
{
    s->rows = mixt__alloc((size_t)s->beam * sizeof *s->rows);
    s->next = mixt__alloc((size_t)(s->beam * s->classes) * sizeof *s->next);
    s->logs = mixt__alloc((size_t)s->classes * sizeof *s->logs);
    if (!s->rows || !s->next || !s->logs || !mixt__grow((void **)&s->nodes, &s->node_capacity, 0, sizeof *s->nodes))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to follow %lld rows of letters", (long long)s->beam);
    s->nodes[s->node_count++] = (node){-1, -1, -1, 0, 0};
    s->rows[s->row_count++] = (row){.blank = 0, .other = -INFINITY};
    for (int64_t t = 0; t < s->frames; t++) {
        take_logs(s, outputs + t * s->classes);
        step(s);
        MIXT_TRY(choose(s));
    }
    return MIXT_OK;
}

/** The letters of a node, from the last to the first. */
static int64_t spell(const search *s, int64_t at, int32_t *letters)
{
    int64_t count = 0;
    for (int64_t n = at; s->nodes[n].letter; n = s->nodes[n].parent)
        count++;
    int64_t place = count;
    for (int64_t n = at; s->nodes[n].letter; n = s->nodes[n].parent)
        letters[--place] = s->nodes[n].letter;
    return count;
}

static int64_t decode_frames(const float *outputs, int64_t frames, int64_t classes, int32_t *letters)
{
    int64_t count = 0, before = -1;
    for (int64_t t = 0; t < frames; t++) {
        const float *row = outputs + t * classes;
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            best = row[k] > row[best] ? k : best;
        if (best && best != before)
            letters[count++] = (int32_t)best;
        before = best;
    }
    return count;
}

mixt_status mixt_transcript_decode(const float *outputs, int64_t frames, int64_t classes, int64_t beam,
                                   int32_t *letters, int64_t *count)
{
    MIXT_TRY(mixt__need(outputs));
    MIXT_TRY(mixt__need(letters));
    MIXT_TRY(mixt__need(count));
    *count = 0;
    if (frames < 1 || classes < 2 || classes > INT32_MAX || beam < 1 || beam > BEAM_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%lld frames of %lld classes, %lld rows of letters: expected at least 1, "
                          "2, and 1 to %d",
                          (long long)frames, (long long)classes, (long long)beam, BEAM_MAX);
    if (classes > INT64_MAX / 8 / (int64_t)sizeof(row) / beam || frames > INT64_MAX / classes)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld frames of %lld classes are too many", (long long)frames,
                          (long long)classes);
    MIXT_TRY(mixt_outputs_check(outputs, frames * classes));
    if (beam == 1) {
        *count = decode_frames(outputs, frames, classes, letters);
        return MIXT_OK;
    }
    search s = {.frames = frames, .classes = classes, .beam = beam};
    mixt_status status = follow(&s, outputs);
    if (status == MIXT_OK)
        *count = spell(&s, s.rows[0].node, letters);
    mixt__free(s.rows);
    mixt__free(s.next);
    mixt__free(s.logs);
    mixt__free(s.nodes);
    return status;
}

mixt_status mixt_edit_distance(const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count, int64_t *distance)
{
    MIXT_TRY(mixt__need(distance));
    *distance = 0;
    if (a_count < 0 || b_count < 0 || (a_count && !a) || (b_count && !b))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a distance between %lld and %lld letters: expected both rows",
                          (long long)a_count, (long long)b_count);
    int64_t *row = mixt__alloc_uninit((size_t)(b_count + 1) * sizeof *row); // to the first so many of b
    if (!row)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a distance between rows of letters");
    for (int64_t k = 0; k <= b_count; k++)
        row[k] = k;
    for (int64_t i = 0; i < a_count; i++) {
        int64_t corner = row[0];
        row[0] = i + 1;
        for (int64_t k = 0; k < b_count; k++) {
            int64_t replaced = corner + (a[i] != b[k]), less = row[k] < row[k + 1] ? row[k] : row[k + 1];
            corner = row[k + 1];
            row[k + 1] = replaced < less + 1 ? replaced : less + 1;
        }
    }
    *distance = row[b_count];
    mixt__free(row);
    return MIXT_OK;
}

/** "?" where it is none. */
static const char *letter_of(const mixt_data_info *info, int32_t letter)
{
    return letter > 0 && letter < info->classes ? info->class_names[letter] : "?";
}

mixt_status mixt_transcript_text(const mixt_data *data, const int32_t *letters, int64_t count, char **text)
{
    MIXT_TRY(mixt__need_open(data, "data"));
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    const mixt_data_info *info = mixt_data_describe(data);
    if (count < 0 || (count && !letters))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld letters as a text: expected letters", (long long)count);
    if (info->target != MIXT_TARGET_TEXT || !info->class_names)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s:%s: its targets are not texts", info->kind, info->path);
    size_t used = 0, room = 1;
    for (int64_t i = 0; i < count; i++)
        room += strlen(letter_of(info, letters[i]));
    char *all = malloc(room);
    if (!all)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a text of %zu bytes", room);
    for (int64_t i = 0; i < count; i++)
        used += (size_t)snprintf(all + used, room - used, "%s", letter_of(info, letters[i]));
    all[used] = 0;
    *text = all;
    return MIXT_OK;
}
