/* The monitor: what is injected is found where it was injected, what is healthy is left alone, and a stop between
 * changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "base/rng.h"
#include "monitor/detector.h"
#include "monitor/monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is usual ---- */

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median_of(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

static double uniform(uint64_t seed, int64_t i)
{
    return (double)(mixt__rng_key(seed, 7, (uint64_t)i) >> 11) * 0x1p-53;
}

static double normal(uint64_t seed, int64_t i)
{
    double u = uniform(seed, 2 * i), v = uniform(seed, 2 * i + 1);
    return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

static void test_usual(void **state)
{
    (void)state;
    static mixt__detector d;
    const int64_t windows[] = {1, 2, 10, 101, 1024};
    for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
        double all[3000], part[1024], median, deviation;
        mixt__detector_start(&d, windows[w]);
        for (int64_t i = 0; i < 3000; i++) {
            all[i] = floor(20 * normal(w, i)) / 4; // with many ties
            mixt__detector_take(&d, all[i]);
            if (i % 37)
                continue;
            int64_t n = i + 1 < windows[w] ? i + 1 : windows[w];
            memcpy(part, all + i + 1 - n, (size_t)n * sizeof *part);
            double middle = median_of(part, n);
            for (int64_t k = 0; k < n; k++)
                part[k] = fabs(all[i + 1 - n + k] - middle);
            qsort(part, (size_t)n, sizeof *part, ascending);
            mixt__detector_usual(&d, &median, &deviation);
            assert_true(median == middle);
            assert_true(fabs(deviation - 1.4826 * part[n / 2]) < 1e-12);
            assert_true(mixt__detector_at(&d, n - 1) == all[i]);
        }
    }
}

/* ---- injected ---- */

typedef struct heard {
    mixt_alert last;
    char layer[128], text[256]; // of the last: its own are the monitor's
    int64_t count, critical, warnings, steps[64];
    mixt_cause causes[64];
} heard;

static mixt_monitor *make(void)
{
    mixt_monitor *m;
    assert_int_equal(mixt_monitor_new(NULL, &m), MIXT_OK);
    return m;
}

static void tell(mixt_monitor *m, const mixt_signals *s, heard *h)
{
    mixt_alert alerts[MIXT_ALERTS_MAX];
    int n = mixt_monitor_step(m, s, alerts);
    for (int i = 0; i < n; i++) {
        if (alerts[i].severity == MIXT_SEVERITY_INFO)
            continue;
        h->last = alerts[i];
        snprintf(h->layer, sizeof h->layer, "%s", alerts[i].layer);
        snprintf(h->text, sizeof h->text, "%s", alerts[i].text);
        h->critical += alerts[i].severity == MIXT_SEVERITY_CRITICAL;
        h->steps[h->count % 64] = alerts[i].step;
        h->causes[h->count++ % 64] = alerts[i].cause;
    }
}

/** A net that learns: losses fall by a power law with noise of batches, norms and times are noisy, the rate warms up.
 */
static mixt_signals healthy(uint64_t seed, int64_t step, double noise)
{
    double at = (double)step;
    mixt_signals s = {.step = step, .scale = 65536, .scaling = true, .memory_used = NAN, .memory_total = NAN};
    s.loss = (0.05 + 4 / pow(1 + at / 50, 0.6)) * exp(noise * normal(seed, 4 * step));
    s.grad_norm = (0.5 + 3 / (1 + at / 100)) * exp(2 * noise * normal(seed, 4 * step + 1));
    s.seconds = 0.01 * exp(0.1 * fabs(normal(seed, 4 * step + 2)));
    s.lr = step < 200 ? 1e-3 * at / 200 : 1e-3;
    return s;
}

static void test_calm(void **state)
{
    (void)state;
    int64_t alerts = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        mixt_monitor *m = make();
        heard h = {0};
        for (int64_t step = 1; step <= 10000; step++) {
            mixt_signals s = healthy(seed, step, seed % 2 ? 0.05 : 0.3);
            tell(m, &s, &h);
        }
        alerts += h.count;
        mixt_monitor_free(m);
    }
    assert_true(alerts <= 1); // in 100,000 updates
}

/** Updates of a tenth of a millisecond that take four times as long are other work on the machine, not a stall. */
static void test_tiny_times(void **state)
{
    (void)state;
    mixt_monitor *m = make();
    heard h = {0};
    for (int64_t step = 1; step <= 2000; step++) {
        mixt_signals s = healthy(3, step, 0.05);
        s.seconds *= step < 1000 ? 0.01 : 0.04;
        tell(m, &s, &h);
    }
    mixt_monitor_free(m);
    assert_int_equal(h.count, 0);
}

/** One update of a healthy run is changed. Returns what was heard about it. */
static heard injected(int64_t at, int64_t until, void (*change)(mixt_signals *s, int64_t since))
{
    mixt_monitor *m = make();
    heard h = {0};
    for (int64_t step = 1; step <= 2000; step++) {
        mixt_signals s = healthy(3, step, 0.05);
        if (step >= at && step < until)
            change(&s, step - at);
        tell(m, &s, &h);
    }
    mixt_monitor_free(m);
    return h;
}

static void not_finite(mixt_signals *s, int64_t since)
{
    (void)since;
    s->loss = NAN;
}

static void high_loss(mixt_signals *s, int64_t since)
{
    (void)since;
    s->loss *= 3;
}

static void rising_loss(mixt_signals *s, int64_t since)
{
    s->loss *= 1 + 0.002 * (double)since;
}

static void high_norm(mixt_signals *s, int64_t since)
{
    (void)since;
    s->grad_norm = 101;
}

static void unusual_norm(mixt_signals *s, int64_t since)
{
    (void)since;
    s->grad_norm *= 20;
}

static void no_norm(mixt_signals *s, int64_t since)
{
    (void)since;
    s->grad_norm = 0;
}

static void collapsing(mixt_signals *s, int64_t since)
{
    s->skipped = true;
    s->scale = 65536 * pow(0.5, (double)since);
    s->overflow_layer = "h.3.fc.weight";
}

static void stalled(mixt_signals *s, int64_t since)
{
    (void)since;
    s->seconds = 7;
}

static void slower(mixt_signals *s, int64_t since)
{
    (void)since;
    s->seconds *= 4;
}

static void much_memory(mixt_signals *s, int64_t since)
{
    (void)since;
    s->memory_used = 95e9;
    s->memory_total = 100e9;
}

static void test_injected(void **state)
{
    (void)state;
    const struct {
        void (*change)(mixt_signals *s, int64_t since);
        int64_t length, first, last; // the first alert comes so many updates after the change began
        mixt_cause cause;
        mixt_severity severity;
        const char *layer, *text;
    } cases[] = {
        {not_finite, 1, 0, 0, MIXT_CAUSE_LOSS_ANOMALY, MIXT_SEVERITY_CRITICAL, "", "not finite"},
        {high_loss, 1, 0, 0, MIXT_CAUSE_LOSS_ANOMALY, MIXT_SEVERITY_WARNING, "", "times the usual"},
        {high_loss, 8, 0, 0, MIXT_CAUSE_LOSS_ANOMALY, MIXT_SEVERITY_CRITICAL, "", "times the usual"},
        {rising_loss, 600, 20, 300, MIXT_CAUSE_LOSS_ANOMALY, MIXT_SEVERITY_WARNING, "", "has risen"},
        {high_norm, 1, 0, 0, MIXT_CAUSE_GRADIENT_ANOMALY, MIXT_SEVERITY_WARNING, "", "times the usual"},
        {unusual_norm, 1, 0, 0, MIXT_CAUSE_GRADIENT_ANOMALY, MIXT_SEVERITY_WARNING, "", "times the usual"},
        {no_norm, 40, 24, 24, MIXT_CAUSE_GRADIENT_ANOMALY, MIXT_SEVERITY_WARNING, "", "grad_norm_min"},
        {collapsing, 20, 9, 16, MIXT_CAUSE_SCALE_COLLAPSE, MIXT_SEVERITY_CRITICAL, "h.3.fc.weight", "fallen to 1 "},
        {stalled, 1, 0, 0, MIXT_CAUSE_STALL, MIXT_SEVERITY_WARNING, "", "seconds"},
        {slower, 30, 24, 24, MIXT_CAUSE_STALL, MIXT_SEVERITY_WARNING, "", "in a row"},
        {much_memory, 1, 0, 0, MIXT_CAUSE_MEMORY_WARNING, MIXT_SEVERITY_WARNING, "", "95.0%"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        heard h = injected(1000, 1000 + cases[i].length, cases[i].change);
        if (!h.count || h.steps[0] < 1000 + cases[i].first || h.steps[0] > 1000 + cases[i].last)
            fail_msg("case %zu: %lld alerts, the first at %lld", i, (long long)h.count, (long long)h.steps[0]);
        assert_int_equal(h.last.cause, cases[i].cause);
        assert_int_equal(h.last.severity, cases[i].severity);
        assert_string_equal(h.layer, cases[i].layer);
        assert_non_null(strstr(h.text, cases[i].text));
    }
}

/** What stays wrong is told ever more rarely; what was held back is counted. */
static void test_cooldown(void **state)
{
    (void)state;
    heard h = injected(1000, 2001, no_norm);
    const int64_t steps[] = {1024, 1124, 1324, 1724};
    assert_int_equal(h.count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(h.steps[i], steps[i]);
    assert_int_equal(h.last.silenced, 399);
}

/** One as long as there are updates: told once, and no sum of it turns negative. */
static void test_longest_cooldown(void **state)
{
    (void)state;
    const int64_t cooldowns[] = {INT64_MAX, INT64_MAX / 2 + 1};
    for (size_t i = 0; i < sizeof cooldowns / sizeof cooldowns[0]; i++) {
        mixt_monitor *m;
        mixt_alert alerts[MIXT_ALERTS_MAX];
        int64_t told = 0;
        assert_int_equal(mixt_monitor_new(MIXT_OPTIONS_AT(mixt_monitor_options, .cooldown = cooldowns[i]), &m),
                         MIXT_OK);
        const int64_t steps[] = {1, 2, INT64_MAX - 2, INT64_MAX - 1};
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
            mixt_signals s = healthy(7, 1, 0.05);
            s.step = steps[k];
            much_memory(&s, 0);
            told += mixt_monitor_step(m, &s, alerts);
        }
        assert_int_equal(told, 1 + (cooldowns[i] < INT64_MAX - 2));
        mixt_monitor_free(m);
    }
}

/** Norms of a regression in raw units are above the limit from the first update on: told once, also after a resume, and
 *  a norm that stands out among them is told all the same. */
static void test_limit(void **state)
{
    (void)state;
    mixt_monitor *m = make();
    mixt_alert alerts[MIXT_ALERTS_MAX];
    for (int64_t step = 1; step <= 300; step++) {
        mixt_signals s = healthy(7, step, 0.05);
        s.grad_norm *= step == 60 ? 20000 : 200;
        int count = mixt_monitor_step(m, &s, alerts);
        assert_int_equal(count, step == 1 || step == 60);
        if (count)
            assert_int_equal(mixt__alert_of_limit(&alerts[0]), step == 1);
        if (step != 100)
            continue;
        json_t *kept = mixt__monitor_pack(m);
        mixt_monitor_free(m);
        m = make();
        mixt__monitor_unpack(m, kept);
        json_decref(kept);
    }
    mixt_monitor_free(m);
}

/** Saved and found again at every turn: the same alerts. */
static void test_goes_on(void **state)
{
    (void)state;
    mixt_monitor *one = make(), *other = make();
    heard a = {0}, b = {0};
    for (int64_t step = 1; step <= 3000; step++) {
        mixt_signals s = healthy(5, step, 0.05);
        s.loss *= step % 400 == 399 ? 4 : step > 2500 ? 1.5 : 1;
        s.grad_norm *= step % 700 == 0 ? 30 : 1;
        tell(one, &s, &a);
        tell(other, &s, &b);
        if (step % 50)
            continue;
        json_t *saved = mixt__monitor_pack(other);
        char *text = json_dumps(saved, 0);
        mixt_monitor_free(other);
        json_decref(saved);
        other = make();
        saved = json_loads(text, 0, NULL);
        mixt__monitor_unpack(other, saved);
        json_decref(saved);
        free(text);
    }
    assert_true(a.count >= 8);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.steps, b.steps, sizeof a.steps);
    assert_memory_equal(a.causes, b.causes, sizeof a.causes);
    mixt_monitor_free(one);
    mixt_monitor_free(other);
}

static void test_misuse(void **state)
{
    (void)state;
    mixt_monitor *m = (mixt_monitor *)1;
    mixt_monitor_options o = MIXT_OPTIONS(mixt_monitor_options);
    mixt_alert alerts[MIXT_ALERTS_MAX];
    o.window = 9;
    assert_int_equal(mixt_monitor_new(&o, &m), MIXT_ERROR_ARGUMENT);
    assert_null(m);
    assert_int_equal(mixt_monitor_new(NULL, NULL), MIXT_ERROR_ARGUMENT);
    m = make();
    assert_int_equal(mixt_monitor_step(m, NULL, alerts), 0);
    mixt_monitor_free(m);
    mixt_monitor_free(m); // said, not crashed
    mixt_monitor_free(NULL);
    assert_int_equal(mixt_monitor_step(NULL, &(mixt_signals){0}, alerts), 0);
    assert_string_equal(mixt_cause_name(MIXT_CAUSE_STALL), "stall");
    assert_string_equal(mixt_cause_name(MIXT_CAUSE_COUNT), "none");
}

/* ---- layers ---- */

enum { LAYERS = 3, PARAMS = 4 };

/** Healthy layers of a run in FP16. */
static void look_at(mixt_layer_signals *s, mixt_layer_signal layers[LAYERS], mixt_param_signal params[PARAMS])
{
    static const char *const names[LAYERS] = {"a", "b", "c"}, *const params_of[PARAMS] = {"a.w", "b.w", "b.v", "c.w"};
    *s = (mixt_layer_signals){.scale = 1024, .layers = layers, .layer_count = LAYERS, .params = params};
    s->param_count = PARAMS;
    for (int i = 0; i < LAYERS; i++) {
        mixt_tensor_signal t = {
            .dtype = MIXT_DTYPE_FP16, .amax = 16, .rms = 1, .zero = 0.5, .margin = 12, .flushed = 0.1};
        layers[i] = (mixt_layer_signal){names[i], t, t};
    }
    for (int i = 0; i < PARAMS; i++)
        params[i] = (mixt_param_signal){params_of[i], 1, 0.1, 0.2, 0};
}

/** What the monitor says after `looks` of the same. */
static int alerts_after(const mixt_layer_signals *signals, int looks, bool saved, mixt_alert alerts[MIXT_ALERTS_MAX])
{
    static char layer[128]; // of the first alert: its own goes with the monitor
    mixt_monitor *monitor;
    mixt_layer_signals s = *signals;
    int count = 0;
    assert_int_equal(mixt_monitor_new(NULL, &monitor), MIXT_OK);
    for (int i = 0; i < looks; i++) {
        s.step = 100 * (i + 1);
        count = mixt_monitor_layers(monitor, &s, alerts);
        assert_true(count == 0 || i + 1 == looks);
        snprintf(layer, sizeof layer, "%s", count ? alerts[0].layer : "");
        alerts[0].layer = layer;
        if (saved) { // a stop between two looks changes nothing
            json_t *packed = mixt__monitor_pack(monitor);
            mixt_monitor_free(monitor);
            assert_int_equal(mixt_monitor_new(NULL, &monitor), MIXT_OK);
            mixt__monitor_unpack(monitor, packed);
            json_decref(packed);
        }
    }
    mixt_monitor_free(monitor);
    return count;
}

static void test_layers(void **state)
{
    mixt_layer_signal layers[LAYERS];
    mixt_param_signal params[PARAMS];
    mixt_layer_signals s;
    mixt_alert a[MIXT_ALERTS_MAX];
    (void)state;
    look_at(&s, layers, params);
    assert_int_equal(alerts_after(&s, 10, false, a), 0);
    layers[1].activation.margin = 0.5; // one layer close to the end of its format
    layers[2].activation.margin = 0.9;
    assert_int_equal(alerts_after(&s, 1, false, a), 1);
    assert_true(a[0].cause == MIXT_CAUSE_OVERFLOW && a[0].value == 0.5 && a[0].limit == 1 && a[0].step == 100);
    assert_string_equal(a[0].layer, "b");
    layers[1].activation.dtype = layers[2].activation.dtype = MIXT_DTYPE_BF16; // which has no such end
    assert_int_equal(alerts_after(&s, 3, false, a), 0);
    look_at(&s, layers, params);
    layers[0].gradient.margin = 0.5; // of a gradient only where the scale does not look for it by itself
    s.scaling = true;
    assert_int_equal(alerts_after(&s, 3, false, a), 0);
    s.scaling = false;
    assert_int_equal(alerts_after(&s, 1, false, a), 1);
    look_at(&s, layers, params);
    layers[2].gradient.flushed = 0.8; // not in a single look
    assert_int_equal(alerts_after(&s, 2, true, a), 1);
    assert_true(a[0].cause == MIXT_CAUSE_UNDERFLOW && a[0].value == 0.8);
    assert_string_equal(a[0].layer, "c");
    look_at(&s, layers, params);
    params[2].zero = params[3].zero = 1; // nor here
    assert_int_equal(alerts_after(&s, 3, true, a), 1);
    assert_true(a[0].cause == MIXT_CAUSE_GRADIENT_ANOMALY && a[0].value == 2);
    assert_string_equal(a[0].layer, "b.v");
    layers[1].gradient.zero = 1; // FP16 has lost it
    assert_int_equal(alerts_after(&s, 3, false, a), 1);
    assert_true(a[0].cause == MIXT_CAUSE_UNDERFLOW);
    assert_int_equal(mixt_monitor_layers(NULL, &s, a), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),           cmocka_unit_test(test_usual),    cmocka_unit_test(test_calm),
        cmocka_unit_test(test_tiny_times),       cmocka_unit_test(test_injected), cmocka_unit_test(test_cooldown),
        cmocka_unit_test(test_longest_cooldown), cmocka_unit_test(test_goes_on),  cmocka_unit_test(test_limit),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
