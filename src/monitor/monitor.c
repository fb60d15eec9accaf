/* One check a kind of figure; each sees the update, then takes it into what is usual. */
#include "monitor/monitor.h"

#include "base/alloc.h"
#include "base/handles.h"
#include "base/options.h"
#include "store/json.h"
#include "monitor/detector.h"
#include "monitor/layer_rules.h"
#include "monitor/level.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    FIRST_UPDATES = 40,  // in which a loss scale may still be finding its place
    RECENT = 20,         // updates whose skips are counted together
    RECENT_SKIPS = 10,   // that are too many of those
    RECENT_OUTLIERS = 4, // losses of the last eight that stand out: no single bad batch
    LASTING = 24,        // of the last 32: what was learned does not come back by itself
    RAISED = 6,          // losses in a row, of which …
    RAISED_MOST = 5,     // … so many half as far off: a level that has jumped
    BEGINNING = 10,      // updates that tell the loss of a net that has learned nothing
    STALL_FACTOR = 10,   // times as long as usual: one update
    SLOW_FACTOR = 2,     // the same, of many in a row
};
#define SMALLEST 1e-30    // stands for 0 where a logarithm is taken
#define LOSS_RISE 1.05    // a loss that stands out is at least this much above the usual one
#define NORM_RISE 3.0     // so is a norm
#define LOSS_LEVEL 1.25   // a level that has risen for good
#define LOSS_WORSE 5.0    // times the usual loss: with a loss above that of the beginning
#define STALL_SECONDS 1.0 // an update below this is no stall
#define SLOW_SECONDS 0.01 // updates below this vary by more than twice on any machine that does something else

struct mixt_monitor {
    mixt__handle handle;
    mixt_monitor_options options;
    mixt__detector loss, norm, time; // of logarithms
    mixt__level level;               // of the loss: where it began and was at its best
    double lowest;                   // median of the logarithm of the loss so far; NaN: not known yet
    double beginning;                // median of the first updates, of the logarithm; NaN: not known yet
    uint32_t outliers, skips;        // of the newest updates, a bit each, the last one lowest
    uint32_t raised;                 // the same: losses that are half as far off as outliers
    int64_t updates;                 // heard of
    int64_t low, slow;               // updates in a row with a small norm, that took long
    bool above;                      // a norm above the limit was told
    mixt__layer_memory layers;
    struct {
        int64_t step; // of the last alert; -1: none yet
        int64_t silenced;
        int64_t severity;
        int64_t wait; // updates until the next
    } told[MIXT_CAUSE_COUNT];
    mixt__alert_words words[MIXT_ALERTS_MAX], layer_words[MIXT_ALERTS_MAX]; // of the newest update, of the newest look
};

const char *mixt_cause_name(mixt_cause cause)
{
    static const char *const names[] = {
#define MIXT_CAUSE_NAME(name, text) text,
        MIXT_CAUSE_LIST(MIXT_CAUSE_NAME)
#undef MIXT_CAUSE_NAME
    };
    return (unsigned)cause < MIXT_CAUSE_COUNT ? names[cause] : "none";
}

const char *mixt_cause_remedy(mixt_cause cause)
{
    static const char *const remedies[] = {
        [MIXT_CAUSE_LOSS_ANOMALY] = "check the batch of that update; a lower train.lr, a longer train.warmup or "
                                    "train.clip=1 limit the effect of single batches",
        [MIXT_CAUSE_GRADIENT_ANOMALY] = "train.clip limits large norms; norms that stay small mean a dead layer, a "
                                        "learning rate that is too low, or finished training",
        [MIXT_CAUSE_MEMORY_WARNING] = "a smaller train.batch with a larger train.accumulate gives the same updates",
        [MIXT_CAUSE_OVERFLOW] = "keep the layer in fp32 or bf16 with a policy, or train in bf16",
        [MIXT_CAUSE_UNDERFLOW] = "a larger loss scale, or bf16, keeps small gradients from becoming 0",
        [MIXT_CAUSE_SCALE_COLLAPSE] =
            "gradients overflow at any loss scale: lower train.lr, set train.clip, or train in bf16",
        [MIXT_CAUSE_HARDWARE] =
            "test the machine's memory and GPU; do not trust results since the last good checkpoint",
        [MIXT_CAUSE_PRECISION] = "raise the named layers with a policy",
        [MIXT_CAUSE_DATA] = "check the samples of that batch, and the learning rate",
        [MIXT_CAUSE_OPTIMIZER] = "lower train.lr, or lengthen train.warmup",
        [MIXT_CAUSE_STALL] = "check for other work on the machine, a slow disk, or too few data.threads",
    };
    return (unsigned)cause < MIXT_CAUSE_COUNT ? remedies[cause] : "";
}

const char *mixt_severity_name(mixt_severity severity)
{
    return severity == MIXT_SEVERITY_CRITICAL ? "critical" : severity == MIXT_SEVERITY_WARNING ? "warning" : "info";
}

size_t mixt__monitor_bytes(void)
{
    return sizeof(mixt_monitor);
}

mixt_status mixt_monitor_new(const mixt_monitor_options *options, mixt_monitor **monitor)
{
    mixt_monitor_options o = MIXT_OPTIONS(mixt_monitor_options);
    MIXT_TRY(mixt__need(monitor));
    *monitor = NULL;
    MIXT_TRY(mixt__options(mixt_monitor_options, &o, options));
    if (o.window < 10 || o.window > MIXT_DETECTOR_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a monitor's window is 10 to %d updates, not %lld", MIXT_DETECTOR_MAX,
                          (long long)o.window);
    mixt_monitor *m = mixt__alloc(sizeof *m);
    if (!m)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a monitor");
    m->options = o;
    mixt__detector_start(&m->loss, o.window);
    mixt__detector_start(&m->norm, o.window);
    mixt__detector_start(&m->time, o.window);
    m->lowest = m->beginning = NAN;
    for (int c = 0; c < MIXT_CAUSE_COUNT; c++)
        m->told[c].step = -1;
    mixt__handle_add(&m->handle, m, "monitor", NULL);
    *monitor = m;
    return MIXT_OK;
}

void mixt_monitor_free(mixt_monitor *m)
{
    if (!m || mixt__need_open(m, "monitor") != MIXT_OK)
        return;
    mixt__handle_remove(m);
    mixt__layer_memory_free(&m->layers);
    mixt__free(m);
}

/* ---- raising an alert ---- */

typedef struct watching {
    mixt_monitor *monitor;
    const mixt_signals *signals;
    mixt__alert_words *words; // for the alerts
    mixt_alert *alerts;
    int count;
} watching;

/** How a value stands to what is usual. */
typedef struct standing {
    double usual, deviations; // the usual value itself, not its logarithm
    double ratio;             // to that
    bool known;               // enough updates were seen
} standing;

static standing stand(const mixt__detector *d, double value)
{
    double median, deviation, logarithm = log(fmax(value, SMALLEST));
    int64_t enough = d->window / 4 > 10 ? d->window / 4 : 10;
    mixt__detector_usual(d, &median, &deviation);
    double away = logarithm - median;
    standing s = {.usual = exp(median), .ratio = exp(away), .known = mixt__detector_count(d) >= enough};
    s.deviations = deviation > 0 ? away / deviation : away > 0 ? (double)INFINITY : 0;
    return s;
}

/** One more, with empty texts. There is room for it. */
static mixt_alert *add_alert(watching *w, int64_t step, mixt_cause cause, double value)
{
    mixt__alert_words *words = &w->words[w->count];
    mixt_alert *a = &w->alerts[w->count++];
    *words = (mixt__alert_words){0};
    *a = (mixt_alert){.step = step, .cause = cause, .value = value, .layer = words->layer, .text = words->text};
    return a;
}

/** The alert to fill in; NULL where one of its cause was raised not long ago and was no milder. What stays wrong is
 *  repeated ever more rarely. */
static mixt_alert *raise_alert(watching *w, mixt_cause cause, mixt_severity severity, double value)
{
    mixt_monitor *m = w->monitor;
    int64_t step = w->signals->step;
    int64_t since = step - m->told[cause].step, wait = m->told[cause].wait;
    bool before = m->told[cause].step >= 0, soon = before && since < wait;
    if ((soon && (int64_t)severity <= m->told[cause].severity) || w->count == MIXT_ALERTS_MAX) {
        m->told[cause].silenced++;
        return NULL;
    }
    mixt_alert *a = add_alert(w, step, cause, value);
    a->severity = severity;
    a->usual = a->deviations = a->limit = NAN;
    a->silenced = m->told[cause].silenced;
    m->told[cause].step = step;
    m->told[cause].severity = (int64_t)severity;
    m->told[cause].silenced = 0;
    m->told[cause].wait = before && since / 2 < wait && wait <= INT64_MAX / 2 ? 2 * wait : m->options.cooldown;
    return a;
}

/** Its texts, to write to: those that the monitor has for it. */
static mixt__alert_words *words_of(const mixt_alert *a)
{
    return (mixt__alert_words *)(uintptr_t)a->layer; // the first of them
}

#define SAY(alert, ...) snprintf(words_of(alert)->text, sizeof words_of(alert)->text, __VA_ARGS__)

static void unusual(mixt_alert *a, const standing *s, const char *what)
{
    a->usual = s->usual;
    a->deviations = s->deviations;
    SAY(a, "%s %.4g is %.3g times the usual %.4g", what, a->value, s->ratio, s->usual);
}

/* ---- the checks ---- */

/** Whether the level itself has risen: more than chance moves a median of so many values. */
static void check_level(watching *w, double value)
{
    mixt_monitor *m = w->monitor;
    double median, deviation, count = (double)mixt__detector_count(&m->loss);
    if (mixt__detector_count(&m->loss) < m->loss.window)
        return;
    mixt__detector_usual(&m->loss, &median, &deviation);
    if (!(median >= m->lowest)) // it is NaN at first
        m->lowest = median;
    double chance = m->options.loss_sigma * 1.2533 * deviation / sqrt(count), rise = median - m->lowest;
    if (!(m->options.loss_sigma > 0) || rise < log(LOSS_LEVEL) || rise < chance)
        return;
    mixt_alert *a = raise_alert(w, MIXT_CAUSE_LOSS_ANOMALY, MIXT_SEVERITY_WARNING, value);
    if (!a)
        return;
    a->usual = exp(m->lowest);
    SAY(a, "the loss has risen: %.4g over the last %lld updates, %.4g at its best", exp(median),
        (long long)m->loss.window, a->usual);
}

/** Whether a loss stands out: by far; or by half of that where the net does worse than before it had learned anything,
 *  which small losses, whose logarithms scatter widely, do not do by chance. */
static bool is_outlier(const mixt_monitor *m, const standing *now, double loss)
{
    double sigma = m->options.loss_sigma;
    bool worse = now->deviations > sigma / 2 && now->ratio > LOSS_WORSE && log(fmax(loss, SMALLEST)) > m->beginning;
    return now->known && sigma > 0 && (worse || (now->deviations > sigma && now->ratio > LOSS_RISE));
}

/** Whether training is being lost: losses far above the usual, and most of what was learned is gone or does not come
 *  back. A net that overfits its data has spikes of many times its tiny loss, and recovers. */
static bool is_lost(const mixt_monitor *m, double loss)
{
    bool many = __builtin_popcount(m->outliers & 255) >= RECENT_OUTLIERS;
    bool recovering = log(fmax(loss, SMALLEST)) < m->beginning - log(2) && __builtin_popcount(m->outliers) < LASTING;
    return many && !recovering;
}

/** A loss that jumps and stays there, though no single one is far enough off to tell. */
static void check_jump(watching *w, const standing *now)
{
    mixt_monitor *m = w->monitor;
    double sigma = m->options.loss_sigma;
    m->raised = m->raised << 1 | (now->known && sigma > 0 && now->deviations > sigma / 2 && now->ratio > LOSS_LEVEL);
    if (__builtin_popcount(m->raised & ((1u << RAISED) - 1)) < RAISED_MOST)
        return;
    mixt_alert *a = raise_alert(w, MIXT_CAUSE_LOSS_ANOMALY, MIXT_SEVERITY_WARNING, w->signals->loss);
    if (!a)
        return;
    unusual(a, now, "the loss has jumped:");
}

/** A loss that is above where it began, which no window that moves along with it can tell. */
static void check_course(watching *w)
{
    mixt_monitor *m = w->monitor;
    double now;
    mixt__level_sign sign = mixt__level_sign_of(&m->level, &now);
    if (!(m->options.loss_sigma > 0) || (sign != MIXT_LEVEL_EXPLODED && sign != MIXT_LEVEL_ABOVE))
        return;
    mixt_alert *a = raise_alert(w, MIXT_CAUSE_LOSS_ANOMALY, MIXT_SEVERITY_WARNING, w->signals->loss);
    if (!a)
        return;
    a->usual = exp(m->level.first);
    SAY(a, "the loss is above where it began: %.4g over the last updates, %.4g at the first", exp(now), a->usual);
}

bool mixt__monitor_risen(const mixt_monitor *m)
{
    double now;
    return mixt__level_sign_of(&m->level, &now) != MIXT_LEVEL_FINE;
}

double mixt__monitor_healthy(const mixt_monitor *m)
{
    return exp(mixt__level_healthy(&m->level));
}

double mixt__monitor_began(const mixt_monitor *m)
{
    return m->level.seen ? exp(m->level.first) : (double)NAN;
}

void mixt__monitor_accept(mixt_monitor *m)
{
    mixt__level_accept(&m->level);
}

static void check_loss(watching *w)
{
    mixt_monitor *m = w->monitor;
    const mixt_signals *s = w->signals;
    if (!isfinite(s->loss)) {
        mixt_severity severity = s->skipped && s->scaling ? MIXT_SEVERITY_WARNING : MIXT_SEVERITY_CRITICAL;
        mixt_alert *a = raise_alert(w, MIXT_CAUSE_LOSS_ANOMALY, severity, s->loss);
        m->outliers = m->outliers << 1 | 1;
        if (a)
            SAY(a, "the loss is not finite");
        return;
    }
    standing now = stand(&m->loss, s->loss);
    bool out = is_outlier(m, &now, s->loss);
    m->outliers = m->outliers << 1 | out;
    if (out) {
        mixt_severity severity = is_lost(m, s->loss) ? MIXT_SEVERITY_CRITICAL : MIXT_SEVERITY_WARNING;
        mixt_alert *a = raise_alert(w, MIXT_CAUSE_LOSS_ANOMALY, severity, s->loss);
        if (a) {
            a->limit = m->options.loss_sigma;
            unusual(a, &now, "loss");
        }
    }
    check_jump(w, &now);
    mixt__detector_take(&m->loss, log(fmax(s->loss, SMALLEST)));
    if (s->loss > SMALLEST)
        mixt__level_take(&m->level, log(s->loss));
    check_course(w);
    if (isnan(m->beginning) && mixt__detector_count(&m->loss) >= BEGINNING)
        mixt__detector_usual(&m->loss, &m->beginning, &now.deviations);
    if (!out)
        check_level(w, s->loss);
}

/** Once in a run, and silencing nothing: how large norms are depends on the scale of targets and on the number of
 *  weights, so being above a fixed limit says little, and saying it again nothing. */
static void tell_limit(watching *w, double norm)
{
    mixt_monitor *m = w->monitor;
    if (m->above || w->count == MIXT_ALERTS_MAX)
        return;
    m->above = true;
    mixt_alert *a = add_alert(w, w->signals->step, MIXT_CAUSE_GRADIENT_ANOMALY, norm);
    a->severity = MIXT_SEVERITY_WARNING;
    a->usual = a->deviations = NAN;
    a->limit = m->options.grad_norm_max;
    SAY(a, "gradient norm %.4g is above watch.grad_norm_max %g (shown once)", norm, a->limit);
}

bool mixt__alert_of_limit(const mixt_alert *a)
{
    return a->cause == MIXT_CAUSE_GRADIENT_ANOMALY && isnan(a->usual) && isfinite(a->limit);
}

static void check_gradient(watching *w)
{
    mixt_monitor *m = w->monitor;
    const mixt_monitor_options *o = &m->options;
    double norm = w->signals->grad_norm;
    mixt_alert *a = NULL;
    if (!isfinite(norm))
        return; // an overflow, which has a check of its own
    standing now = stand(&m->norm, norm);
    m->low = norm < o->grad_norm_min ? m->low + 1 : 0;
    if (now.known && o->grad_sigma > 0 && now.deviations > o->grad_sigma && now.ratio > NORM_RISE) {
        a = raise_alert(w, MIXT_CAUSE_GRADIENT_ANOMALY, MIXT_SEVERITY_WARNING, norm);
        if (a)
            unusual(a, &now, "gradient norm");
    } else if (o->grad_norm_max > 0 && norm > o->grad_norm_max) {
        tell_limit(w, norm);
    } else if (m->low >= m->norm.window / 4) {
        a = raise_alert(w, MIXT_CAUSE_GRADIENT_ANOMALY, MIXT_SEVERITY_WARNING, norm);
        if (a) {
            a->limit = o->grad_norm_min;
            SAY(a, "gradient norm %.4g: for %lld updates below watch.grad_norm_min %g", norm, (long long)m->low,
                a->limit);
        }
    }
    mixt__detector_take(&m->norm, log(fmax(norm, SMALLEST)));
}

/** Skipped updates: a few are how a moving loss scale finds its place, many are not. */
static void check_skips(watching *w)
{
    mixt_monitor *m = w->monitor;
    const mixt_signals *s = w->signals;
    m->skips = m->skips << 1 | s->skipped;
    if (!s->skipped)
        return;
    int recent = __builtin_popcount(m->skips & ((1u << RECENT) - 1));
    bool collapsed = s->scaling && s->scale <= m->options.scale_floor;
    bool many = recent >= RECENT_SKIPS && m->updates > FIRST_UPDATES;
    mixt_severity severity = collapsed             ? MIXT_SEVERITY_CRITICAL
                             : many || !s->scaling ? MIXT_SEVERITY_WARNING
                                                   : MIXT_SEVERITY_INFO;
    mixt_alert *a = raise_alert(w, collapsed ? MIXT_CAUSE_SCALE_COLLAPSE : MIXT_CAUSE_OVERFLOW, severity, s->scale);
    if (!a)
        return;
    const char *layer = s->overflow_layer ? s->overflow_layer : "a layer";
    snprintf(words_of(a)->layer, sizeof words_of(a)->layer, "%s", s->overflow_layer ? s->overflow_layer : "");
    if (collapsed)
        SAY(a, "the loss scale has fallen to %g and the gradient of %s still overflows", s->scale, layer);
    else if (many)
        SAY(a, "%d of the last %d updates were skipped: the gradient of %s is not finite", recent, RECENT, layer);
    else
        SAY(a, "an update was skipped: the gradient of %s is not finite", layer);
}

static void check_speed(watching *w)
{
    mixt_monitor *m = w->monitor;
    double seconds = w->signals->seconds;
    if (!(seconds > 0))
        return;
    standing now = stand(&m->time, seconds);
    m->slow = now.known && now.ratio > SLOW_FACTOR && seconds > SLOW_SECONDS ? m->slow + 1 : 0;
    bool stall = now.known && now.ratio > STALL_FACTOR && seconds > STALL_SECONDS;
    if (stall || m->slow == m->time.window / 4) {
        mixt_alert *a = raise_alert(w, MIXT_CAUSE_STALL, MIXT_SEVERITY_WARNING, seconds);
        if (a && stall)
            unusual(a, &now, "seconds of this update:");
        else if (a)
            SAY(a, "%lld updates in a row took more than %d times the usual %.3g ms", (long long)m->slow, SLOW_FACTOR,
                1e3 * now.usual);
        if (a)
            a->usual = now.usual;
    }
    mixt__detector_take(&m->time, log(seconds));
}

static void check_memory(watching *w)
{
    const mixt_signals *s = w->signals;
    double limit = w->monitor->options.memory_warn, share = s->memory_used / s->memory_total;
    if (!(limit > 0) || !(share > limit))
        return;
    mixt_alert *a = raise_alert(w, MIXT_CAUSE_MEMORY_WARNING, MIXT_SEVERITY_WARNING, share);
    if (!a)
        return;
    a->limit = limit;
    SAY(a, "%.1f%% of the memory is in use (%.2f of %.2f GiB), watch.memory_warn is %g%%", 100 * share,
        s->memory_used / 1073741824, s->memory_total / 1073741824, 100 * limit);
}

int mixt_monitor_step(mixt_monitor *m, const mixt_signals *signals, mixt_alert alerts[MIXT_ALERTS_MAX])
{
    if (mixt__need_open(m, "monitor") != MIXT_OK || mixt__need(signals) != MIXT_OK || mixt__need(alerts) != MIXT_OK)
        return 0;
    watching w = {.monitor = m, .signals = signals, .words = m->words, .alerts = alerts};
    m->updates++;
    check_loss(&w);
    check_gradient(&w);
    check_skips(&w);
    check_speed(&w);
    check_memory(&w);
    return w.count;
}

int mixt_monitor_layers(mixt_monitor *m, const mixt_layer_signals *layers, mixt_alert alerts[MIXT_ALERTS_MAX])
{
    mixt__layer_finding found[MIXT_LAYER_FINDINGS];
    if (mixt__need_open(m, "monitor") != MIXT_OK || mixt__need(layers) != MIXT_OK || mixt__need(alerts) != MIXT_OK)
        return 0;
    const mixt_signals signals = {.step = layers->step};
    watching w = {.monitor = m, .signals = &signals, .words = m->layer_words, .alerts = alerts};
    int count = mixt__layer_rules(&m->layers, layers, found);
    for (int i = 0; i < count; i++) {
        mixt_alert *a = raise_alert(&w, found[i].cause, MIXT_SEVERITY_WARNING, found[i].value);
        if (!a)
            continue;
        a->limit = found[i].limit;
        snprintf(words_of(a)->layer, sizeof words_of(a)->layer, "%s", found[i].layer);
        SAY(a, "%s", found[i].text);
    }
    return w.count;
}

/* ---- memory of its own, saved and found again ---- */

static json_t *pack_detector(const mixt__detector *d)
{
    json_t *values = json_array();
    for (int64_t i = 0; i < mixt__detector_count(d); i++)
        mixt__json_add_real(values, mixt__detector_at(d, i));
    return values;
}

json_t *mixt__monitor_pack(const mixt_monitor *m)
{
    json_t *told = json_array();
    for (int c = 0; c < MIXT_CAUSE_COUNT; c++)
        mixt__json_add(told, json_pack("[I,I,I,I]", (json_int_t)m->told[c].step, (json_int_t)m->told[c].silenced,
                                       (json_int_t)m->told[c].severity, (json_int_t)m->told[c].wait));
    return json_pack("{s:o, s:o, s:o, s:o, s:[I,I,I,I,I], s:I, s:b, s:o, s:o, s:o, s:o}", "loss",
                     pack_detector(&m->loss), "norm", pack_detector(&m->norm), "time", pack_detector(&m->time), "told",
                     told, "counts", (json_int_t)m->outliers, (json_int_t)m->skips, (json_int_t)m->updates,
                     (json_int_t)m->low, (json_int_t)m->slow, "raised", (json_int_t)m->raised, "above", m->above,
                     "lowest", isnan(m->lowest) ? json_null() : json_real(m->lowest), "beginning",
                     isnan(m->beginning) ? json_null() : json_real(m->beginning), "layers",
                     mixt__layer_memory_pack(&m->layers), "level", mixt__level_pack(&m->level));
}

static void unpack_detector(mixt__detector *d, const json_t *values)
{
    size_t i;
    json_t *value;
    json_array_foreach(values, i, value) if (json_is_number(value)) mixt__detector_take(d, json_number_value(value));
}

void mixt__monitor_unpack(mixt_monitor *m, const json_t *object)
{
    json_int_t outliers = 0, skips = 0, updates = 0, low = 0, slow = 0, step, silenced, severity, wait;
    unpack_detector(&m->loss, json_object_get(object, "loss"));
    unpack_detector(&m->norm, json_object_get(object, "norm"));
    unpack_detector(&m->time, json_object_get(object, "time"));
    mixt__layer_memory_unpack(&m->layers, json_object_get(object, "layers"));
    mixt__level_unpack(&m->level, json_object_get(object, "level"));
    const json_t *lowest = json_object_get(object, "lowest");
    m->lowest = json_is_number(lowest) ? json_number_value(lowest) : (double)NAN;
    const json_t *beginning = json_object_get(object, "beginning");
    m->beginning = json_is_number(beginning) ? json_number_value(beginning) : (double)NAN;
    m->raised = (uint32_t)json_integer_value(json_object_get(object, "raised"));
    m->above = json_is_true(json_object_get(object, "above"));
    json_t *counts = json_object_get(object, "counts"), *told = json_object_get(object, "told");
    if (counts && !json_unpack(counts, "[I,I,I,I,I]", &outliers, &skips, &updates, &low, &slow)) {
        m->outliers = (uint32_t)outliers;
        m->skips = (uint32_t)skips;
        m->updates = updates;
        m->low = low;
        m->slow = slow;
    }
    for (size_t c = 0; c < MIXT_CAUSE_COUNT && c < json_array_size(told); c++)
        if (!json_unpack(json_array_get(told, c), "[I,I,I,I]", &step, &silenced, &severity, &wait)) {
            m->told[c].step = step;
            m->told[c].silenced = silenced;
            m->told[c].severity = severity;
            m->told[c].wait = wait;
        }
}
