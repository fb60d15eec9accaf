/* CTC and its gradient: threads take samples, each goes through its frames one after the other.
 *
 * States, tables and what counts: ops/ctc.c. A frame's row of the table is taken less its largest entry; what is taken
 * off is added up in double for the loss. The gradient needs no such sum: the shares of a frame's states add up to 1.
 */
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

/** What both directions look at. */
typedef struct job {
    const mixt__call *call;
    int64_t batch, frames, classes, labels, states; // B, T, C, S, 2S + 1
    const int32_t *own_labels, *own_frames;         // (B); own_frames NULL: all have all
    int64_t stride, window;
    int32_t blank;
} job;

/** One sample. */
typedef struct sample {
    const int32_t *label;   // (length)
    int64_t frames, length; // those of its own
    int64_t states;         // 2 length + 1
    bool counts;
} sample;

/** What a sample gives; in the workspace. */
typedef struct result {
    double loss;
    bool counts, correct;
} result;

static job job_of(const mixt__call *call)
{
    const mixt__shape *x = &call->in[0].shape;
    job j = {.call = call, .batch = x->dims[0], .frames = x->dims[1], .classes = x->dims[2]};
    j.labels = call->in[1].shape.dims[1];
    j.states = 2 * j.labels + 1;
    const mixt__ctc_attrs *at = call->attrs;
    int last = call->in_count > 4 ? 6 : 3; // of the gradient, or forward
    j.own_labels = call->in[2].data;
    j.own_frames = call->in_count > last ? call->in[last].data : NULL;
    j.stride = at->stride > 1 ? at->stride : 1;
    j.window = at->window > 1 ? at->window : 1;
    j.blank = (int32_t)at->blank;
    return j;
}

/** Frames that the labels need at least; more than any sample has where one is no class, or the blank. */
static int64_t frames_needed(const job *j, const sample *s)
{
    int64_t needed = s->length;
    for (int64_t i = 0; i < s->length; i++) {
        if (s->label[i] < 0 || s->label[i] >= j->classes || s->label[i] == j->blank)
            return INT64_MAX;
        needed += i > 0 && s->label[i] == s->label[i - 1];
    }
    return needed;
}

static sample sample_at(const job *j, int64_t b)
{
    int32_t length = j->own_labels[b];
    int64_t frames = j->own_frames ? ((int64_t)j->own_frames[b] - j->window + j->stride) / j->stride : j->frames;
    sample s = {.label = (const int32_t *)j->call->in[1].data + b * j->labels};
    s.frames = frames < 0 ? 0 : frames < j->frames ? frames : j->frames;
    s.length = length < 0 ? 0 : length < j->labels ? length : j->labels;
    s.states = 2 * s.length + 1;
    s.counts = length >= 0 && length <= j->labels && frames_needed(j, &s) <= s.frames;
    return s;
}

static int32_t class_of(const job *j, const sample *s, int64_t state)
{
    return state % 2 ? s->label[state / 2] : j->blank;
}

/** Whether a state may be entered from the one before the last: a label that differs from the last label. */
static bool may_skip(const sample *s, int64_t state)
{
    return state % 2 && state >= 3 && s->label[state / 2] != s->label[state / 2 - 1];
}

static float load(const job *j, int64_t row, int64_t k)
{
    return mixt__load(j->call->in[0].data, j->call->in[0].dtype, row * j->classes + k);
}

/** log of the sum of a row's exponentials; the first of its largest in *best. */
static float log_sum(const job *j, int64_t row, int32_t *best)
{
    float most = load(j, row, 0), sum = 0;
    *best = 0;
    for (int64_t k = 1; k < j->classes; k++) {
        float x = load(j, row, k);
        if (x > most) {
            most = x;
            *best = (int32_t)k;
        }
    }
    for (int64_t k = 0; k < j->classes; k++)
        sum += expf(load(j, row, k) - most);
    return most + logf(sum);
}

/** log(e^a + e^b + e^c). */
static float log_add(float a, float b, float c)
{
    float most = fmaxf(a, fmaxf(b, c));
    return most + logf(expf(a - most) + expf(b - most) + expf(c - most));
}

/* ---- forward ---- */

/** The row of the first frame: a blank, or the first label. */
static void begin(const sample *s, float *alpha)
{
    for (int64_t state = 0; state < s->states; state++)
        alpha[state] = state < 2 ? 0 : MIXT_CTC_NEVER;
}

static void advance(const sample *s, const float *before, float *alpha)
{
    for (int64_t state = 0; state < s->states; state++)
        alpha[state] = log_add(before[state], state >= 1 ? before[state - 1] : MIXT_CTC_NEVER,
                               may_skip(s, state) ? before[state - 2] : MIXT_CTC_NEVER);
}

/** Adds the frame's logarithms and takes the largest entry off, which is returned. */
static float emit(const job *j, const sample *s, int64_t row, float lse, float *alpha)
{
    float most = -INFINITY;
    for (int64_t state = 0; state < s->states; state++) {
        alpha[state] += load(j, row, class_of(j, s, state)) - lse;
        most = fmaxf(most, alpha[state]);
    }
    for (int64_t state = 0; state < s->states; state++)
        alpha[state] -= most;
    return most;
}

/** The next letter of what the frames spell: whether it is the one that the labels have there. */
static void spell(const job *j, const sample *s, int32_t best, int32_t before, int64_t *spelled, bool *right)
{
    if (best == before || best == j->blank)
        return;
    *right = *right && *spelled < s->length && s->label[*spelled] == best;
    ++*spelled;
}

static result run_sample(const job *j, const sample *s, int64_t b, float *alpha)
{
    result r = {.counts = s->counts, .correct = true};
    int32_t best = -1, before = -1;
    int64_t spelled = 0;
    float *row = alpha;
    for (int64_t t = 0; t < s->frames; t++, row += j->states) {
        float lse = log_sum(j, b * j->frames + t, &best);
        spell(j, s, best, before, &spelled, &r.correct);
        before = best;
        if (t)
            advance(s, row - j->states, row);
        else
            begin(s, row);
        r.loss -= (double)emit(j, s, b * j->frames + t, lse, row);
    }
    r.correct = r.correct && spelled == s->length;
    if (s->frames) { // else nothing is spelled by nothing, for certain
        row -= j->states;
        float other = s->length ? row[s->states - 2] : MIXT_CTC_NEVER;
        r.loss -= (double)log_add(row[s->states - 1], other, MIXT_CTC_NEVER);
    }
    return r;
}

static void run_samples(void *argument, int64_t first, int64_t end, int thread)
{
    const job *j = argument;
    (void)thread;
    for (int64_t b = first; b < end; b++) {
        sample s = sample_at(j, b);
        float *alpha = (float *)j->call->out[2].data + b * j->frames * j->states;
        for (int64_t i = 0; i < j->frames * j->states; i++)
            alpha[i] = MIXT_CTC_NEVER;
        result *r = (result *)j->call->workspace + b;
        *r = s.counts ? run_sample(j, &s, b, alpha) : (result){0};
    }
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)call->in[0].shape.dims[0] * sizeof(result);
    return MIXT_OK;
}

static mixt_status run(const mixt__call *call)
{
    job j = job_of(call);
    const result *results = call->workspace;
    double sum = 0;
    int64_t counted = 0, correct = 0;
    mixt__parallel(j.batch, 1, run_samples, &j);
    for (int64_t b = 0; b < j.batch; b++) {
        sum += results[b].loss;
        counted += results[b].counts;
        correct += results[b].correct;
    }
    float *loss = call->out[0].data, *metrics = call->out[1].data;
    *loss = counted ? (float)(sum / (double)counted) : 0.0f;
    metrics[0] = (float)sum;
    metrics[1] = (float)correct;
    metrics[2] = (float)counted;
    return MIXT_OK;
}

/* ---- gradient ---- */

/** Room for one sample: how likely the rest is from each state (beta), the same with the next frame's logarithm
 *  (`next`), and each class's share of a frame. */
typedef struct scratch {
    float *beta, *next, *share;
} scratch;

static scratch scratch_of(const job *j, int64_t b)
{
    float *at = (float *)j->call->workspace + b * (2 * j->states + j->classes);
    return (scratch){at, at + j->states, at + 2 * j->states};
}

/** beta from the frame behind; in the last frame only the last label and the blank behind it end well. */
static void retreat(const sample *s, bool last, const scratch *w)
{
    for (int64_t state = 0; state < s->states; state++) {
        float stay = last ? (state >= s->states - 2 ? 0 : MIXT_CTC_NEVER) : w->next[state];
        float step = !last && state + 1 < s->states ? w->next[state + 1] : MIXT_CTC_NEVER;
        float skip = !last && state + 2 < s->states && may_skip(s, state + 2) ? w->next[state + 2] : MIXT_CTC_NEVER;
        w->beta[state] = log_add(stay, step, skip);
    }
}

/** Each class's share of a frame: that of its states among all ways. */
static void weigh(const job *j, const sample *s, const float *alpha, const scratch *w)
{
    float most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < j->classes; k++)
        w->share[k] = 0;
    for (int64_t state = 0; state < s->states; state++)
        most = fmaxf(most, alpha[state] + w->beta[state]);
    for (int64_t state = 0; state < s->states; state++) {
        float way = expf(alpha[state] + w->beta[state] - most);
        w->share[class_of(j, s, state)] += way;
        sum += way;
    }
    for (int64_t k = 0; k < j->classes; k++)
        w->share[k] /= sum;
}

/** `next` for the frame before: with this frame's logarithms, less the largest so that long rows keep their bits. */
static void carry(const job *j, const sample *s, int64_t row, float lse, const scratch *w)
{
    float most = -INFINITY;
    for (int64_t state = 0; state < s->states; state++) {
        w->next[state] = w->beta[state] + load(j, row, class_of(j, s, state)) - lse;
        most = fmaxf(most, w->next[state]);
    }
    for (int64_t state = 0; state < s->states; state++)
        w->next[state] -= most;
}

/** The gradient may lie where the logits do: a frame's are read before it is written. */
static void grad_sample(const job *j, const sample *s, int64_t b, float factor)
{
    const mixt__tensor *dst = &j->call->out[0];
    const float *alpha = (const float *)j->call->in[3].data + b * j->frames * j->states;
    scratch w = scratch_of(j, b);
    int32_t best;
    for (int64_t t = s->frames - 1; t >= 0; t--) {
        int64_t row = b * j->frames + t;
        float lse = log_sum(j, row, &best);
        retreat(s, t == s->frames - 1, &w);
        weigh(j, s, alpha + t * j->states, &w);
        carry(j, s, row, lse, &w);
        for (int64_t k = 0; k < j->classes; k++)
            mixt__store(dst->data, dst->dtype, row * j->classes + k,
                        factor * (expf(load(j, row, k) - lse) - w.share[k]));
    }
}

static void grad_samples(void *argument, int64_t first, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__tensor *dst = &j->call->out[0];
    const float *metrics = j->call->in[4].data, *seed = j->call->in[5].data;
    float factor = metrics[2] > 0 ? *seed / metrics[2] : 0;
    (void)thread;
    for (int64_t b = first; b < end; b++) {
        sample s = sample_at(j, b);
        int64_t own = s.counts ? s.frames : 0;
        if (own)
            grad_sample(j, &s, b, factor);
        for (int64_t i = (b * j->frames + own) * j->classes; i < (b + 1) * j->frames * j->classes; i++)
            mixt__store(dst->data, dst->dtype, i, 0);
    }
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    job j = job_of(call);
    (void)arena;
    call->workspace_bytes = (size_t)(j.batch * (2 * j.states + j.classes)) * sizeof(float);
    return MIXT_OK;
}

static mixt_status grad_run(const mixt__call *call)
{
    job j = job_of(call);
    mixt__parallel(j.batch, 1, grad_samples, &j);
    return MIXT_OK;
}

static const mixt__kernel ctc = {.name = "plain", .prepare = prepare, .run = run},
                          ctc_grad = {.name = "plain", .prepare = grad_prepare, .run = grad_run};

const mixt__kernel *const mixt__cpu_ctc_kernels[] = {&ctc, NULL};
const mixt__kernel *const mixt__cpu_ctc_grad_kernels[] = {&ctc_grad, NULL};
