/* The checklist: one function a line of it. It is printed beside the verdict, and decides nothing. */
#include "verify/verify.h"

#include "base/isa.h"
#include "num/num.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LOST = 2 }; // the line whose name depends on what is measured

static const mixt_verify_run *run_of(const mixt_verification *v, int64_t seed, int side)
{
    return &v->runs[seed][side];
}

/** Why a CPU cannot be faster in this policy; "" when it could. */
/** The line's note to write to: one of v->notes. */
static char *note_of(const mixt_verify_line *l)
{
    return (char *)(uintptr_t)l->note;
}

static const char *cpu_excuse(const mixt_verification *v)
{
    if (!v->host)
        return "";
    if (v->fp16)
        return "; this CPU's kernels have no FP16 arithmetic: FP16 is widened to FP32 for every sum and product, so it "
               "saves memory, not time";
    if (mixt__isa_level() < MIXT_ISA_AVX512_BF16)
        return "; this CPU has no BF16 products: BF16 is widened to FP32, so it saves memory, not time";
    return "";
}

static void judge_speed(const mixt_verification *v, mixt_verify_line *l)
{
    double lowest = INFINITY, before = NAN, after = NAN;
    for (int64_t i = 0; i < v->seeds; i++) {
        double fp32 = run_of(v, i, MIXT_VERIFY_FP32)->step_seconds,
               mixed = run_of(v, i, MIXT_VERIFY_MIXED)->step_seconds;
        if (!(fp32 / mixed >= lowest)) { // NaN stays
            lowest = fp32 / mixed;
            before = fp32;
            after = mixed;
        }
    }
    l->value = lowest;
    snprintf(note_of(l), MIXT_VERIFY_NOTE, "%.3g ms per step instead of %.3g%s%s", 1e3 * after, 1e3 * before,
             v->seeds > 1 ? "; the lowest of all seeds" : "", lowest > l->threshold ? "" : cpu_excuse(v));
}

/** "3.20 GiB" */
static const char *bytes_text(char text[32], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 5; unit++)
        bytes /= 1024;
    snprintf(text, 32, "%.*f %s", unit == 0 ? 0 : bytes < 10 ? 2 : bytes < 100 ? 1 : 0, bytes, units[unit]);
    return text;
}

static void judge_memory(const mixt_verification *v, mixt_verify_line *l)
{
    char before[32], after[32];
    const mixt_memory *fp32 = &run_of(v, 0, MIXT_VERIFY_FP32)->memory,
                      *mixed = &run_of(v, 0, MIXT_VERIFY_MIXED)->memory;
    bool as_planned = fp32->allocated == fp32->total && mixed->allocated == mixed->total;
    l->value = 100 * (1 - (double)mixed->total / (double)fp32->total);
    snprintf(note_of(l), MIXT_VERIFY_NOTE, "%s instead of %s, %s", bytes_text(after, (double)mixed->total),
             bytes_text(before, (double)fp32->total),
             as_planned ? "allocated as planned" : "planned: other amounts were allocated");
}

/** Appends to the note. */
__attribute__((format(printf, 2, 3))) static void add(mixt_verify_line *l, const char *format, ...)
{
    size_t used = strlen(l->note);
    va_list args;
    va_start(args, format);
    vsnprintf(note_of(l) + used, MIXT_VERIFY_NOTE - used, format, args);
    va_end(args);
}

/** Points of accuracy, or percent of the loss. */
static void judge_lost(const mixt_verification *v, mixt_verify_line *l)
{
    double a[MIXT_VERIFY_SEEDS_MAX], b[MIXT_VERIFY_SEEDS_MAX], fp32 = 0, mixed = 0;
    for (int64_t i = 0; i < v->seeds; i++) {
        const mixt_verify_run *x = run_of(v, i, MIXT_VERIFY_FP32), *y = run_of(v, i, MIXT_VERIFY_MIXED);
        a[i] = v->classes ? 100 * x->accuracy : 100 * y->loss / x->loss;
        b[i] = v->classes ? 100 * y->accuracy : 100;
        fp32 += (v->classes ? 100 * x->accuracy : x->loss) / (double)v->seeds;
        mixed += (v->classes ? 100 * y->accuracy : y->loss) / (double)v->seeds;
    }
    for (int64_t i = 0; i < v->seeds; i++)
        a[i] -= b[i];
    mixt_stats_summary all = mixt_stats_summarise(a, v->seeds);
    mixt_stats_interval r = mixt_stats_t_interval(&all, 0.95);
    l->value = all.mean;
    l->low = r.low;
    l->high = r.high;
    add(l, v->classes ? "accuracy %.2f%% instead of %.2f%%" : "loss %.4f instead of %.4f", mixed, fp32);
    add(l, v->validated ? "" : ", of the last updates");
    if (v->seeds > 1)
        add(l, "; 95%% interval over %lld seeds %+.3f to %+.3f", (long long)v->seeds, r.low, r.high);
    if (all.mean < l->threshold && v->seeds < 2)
        add(l, "; one seed does not show the spread");
}

/** What the products of a step take, and what Tensor Cores did meanwhile; nothing is judged by it. */
static void tell_products(const mixt_verify_run *r, mixt_verify_line *l)
{
    if (isnan(r->products_share))
        return;
    add(l, "; products take %.0f%% of the time of a step, at %.3g GFLOP/s", 100 * r->products_share,
        r->products_flops / 1e9);
    if (!isnan(r->products_active))
        add(l, ", and in them Tensor Cores were busy for %.1f%% of the time, by the GPU's counters",
            100 * r->products_active);
}

static void judge_tensor_cores(const mixt_verification *v, mixt_verify_line *l)
{
    const mixt_verify_run *r = run_of(v, 0, MIXT_VERIFY_MIXED);
    l->measured = !v->host;
    l->value = 100 * r->tensor_cores;
    if (v->host) {
        add(l, "no GPU: not measured");
        tell_products(r, l);
        return;
    }
    add(l, "measured: the share of the step's matrix FLOPs in kernels for Tensor Cores, by the plan; not measured: ");
    if (isnan(r->tensor_active))
        add(l, "their utilisation, because this GPU's counters are not accessible");
    else
        add(l, "they were busy for %.1f%% of the training time", 100 * r->tensor_active);
    tell_products(r, l);
}

static void judge_finite(const mixt_verification *v, mixt_verify_line *l)
{
    int64_t bad = 0, skipped = 0, updates = 0;
    for (int64_t i = 0; i < v->seeds; i++) {
        const mixt_verify_run *r = run_of(v, i, MIXT_VERIFY_MIXED);
        bad += r->not_finite;
        skipped += r->skipped;
        updates += r->steps;
    }
    l->value = (double)bad;
    int used =
        snprintf(note_of(l), MIXT_VERIFY_NOTE, "losses, gradients and outputs in %lld updates", (long long)updates);
    if (skipped)
        snprintf(note_of(l) + used, MIXT_VERIFY_NOTE - (size_t)used, "; %lld updates skipped, %s", (long long)skipped,
                 bad ? "not all by the loss scaler" : "all by the loss scaler");
}

static void judge_output(const mixt_verification *v, mixt_verify_line *l)
{
    double start = 0, end = 0, size = 0, rounding = 0;
    mixt_dtype format = run_of(v, 0, MIXT_VERIFY_MIXED)->format;
    for (int64_t i = 0; i < v->seeds; i++) {
        size += run_of(v, i, MIXT_VERIFY_MIXED)->output_size / (double)v->seeds;
        start += run_of(v, i, MIXT_VERIFY_MIXED)->difference / (double)v->seeds;
        end += run_of(v, i, MIXT_VERIFY_MIXED)->trained / (double)v->seeds;
        rounding += run_of(v, i, MIXT_VERIFY_MIXED)->rounding / (double)v->seeds;
    }
    l->value = start;
    add(l,
        "mean |difference| of the outputs (mean size %.2g) on a validation batch, at the initial weights; %.2g at the "
        "final ones",
        size, end);
    if (format == MIXT_DTYPE_NONE)
        return;
    // A significand of b bits, the first included, has a roundoff of 2^-b.
    add(l,
        "; the format allows %.2g: that much comes from rounding the weights to %s's %d bits, all arithmetic in FP32",
        rounding, mixt_dtype_name(format), (int)lround(-log2(mixt__dtype_roundoff(format))));
    if (rounding >= l->threshold)
        add(l, ", so that less than %g is not possible", l->threshold);
}

/** NaN never does. */
static bool holds(const mixt_verify_line *l)
{
    return l->rule == MIXT_VERIFY_ABOVE   ? l->value > l->threshold
           : l->rule == MIXT_VERIFY_BELOW ? l->value < l->threshold
                                          : l->value <= l->threshold;
}

void mixt__verify_lines(mixt_verification *v)
{
    static const struct {
        const char *name, *what, *unit;
        mixt__config_key key;
        mixt_verify_rule rule;
        void (*judge)(const mixt_verification *v, mixt_verify_line *l);
    } checks[MIXT_VERIFY_LINES] = {
        {"speedup", "speed-up over FP32", "x", MIXT_KEY_VERIFY_SPEEDUP, MIXT_VERIFY_ABOVE, judge_speed},
        {"memory_saved", "memory saved", "%", MIXT_KEY_VERIFY_MEMORY, MIXT_VERIFY_ABOVE, judge_memory},
        [LOST] = {"", "", "", MIXT_KEY_VERIFY_LOST, MIXT_VERIFY_BELOW, judge_lost},
        {"tensor_cores", "Tensor Core use", "%", MIXT_KEY_VERIFY_TENSOR_CORES, MIXT_VERIFY_ABOVE, judge_tensor_cores},
        {"not_finite", "NaN or Inf seen", "", MIXT_KEY_COUNT, MIXT_VERIFY_AT_MOST, judge_finite},
        {"output_difference", "output difference", "", MIXT_KEY_VERIFY_OUTPUT, MIXT_VERIFY_BELOW, judge_output},
    };
    for (int i = 0; i < MIXT_VERIFY_LINES; i++) {
        mixt_verify_line *l = &v->lines[i];
        *l = (mixt_verify_line){.name = checks[i].name, .what = checks[i].what, .unit = checks[i].unit};
        l->note = strcpy(v->notes[i], "");
        l->low = l->high = NAN;
        l->measured = true;
        l->rule = checks[i].rule;
        l->key = checks[i].key == MIXT_KEY_COUNT ? "" : mixt__config_table[checks[i].key].name;
        l->threshold = checks[i].key == MIXT_KEY_COUNT ? 0 : mixt__config_float(v->config, checks[i].key);
        checks[i].judge(v, l);
        l->pass = l->measured && holds(l);
    }
    v->lines[LOST].name = v->classes ? "accuracy_lost" : "loss_lost";
    v->lines[LOST].what = v->classes ? "accuracy lost" : "loss lost";
    v->lines[LOST].unit = v->classes ? " points" : "%";
}
