/* The generic op test: every line of tests/cases/<op>.txt × candidate × format × variant, against the FP64 oracle.
 *
 * Usage: ops_runner OP|all [--line N] [--kernel NAME] [--without NAME] [--dtype D] [--variant V] [--seed S] [--verbose]
 *        [--memory] [--one-format] [--no-oracle-check] [--cases DIR] [--device cpu|cuda]
 * A failure prints the command that repeats it alone. A candidate that runs on no line is one too, where the processor
 * has its instruction set (tests/ops/required.txt). Gradient oracles are first checked themselves, against central
 * differences of their forward oracle.
 */
#include "ops/execute.h"
#include "ops/required.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *op, *kernel, *without, *dtype, *variant, *cases, *program;
    int64_t line;
    uint64_t seed;
    bool verbose;
    bool one_format;      // each line in one of FP32, FP16 and BF16: enough for kernels that only differ in their
                          // instructions
    bool memory;          // only what touches other memory: integers, TF32 on the CPU, one 16-bit format are left out
    bool no_oracle_check; // another run checks them: they are the same on every device and instruction set
    mixt__device *device;
} options;

typedef struct totals {
    int64_t lines, runs, refused, failures;
    bool ran[32]; // by candidate
    double worst; // largest error over tolerance
} totals;

static const variant variants[] = {
    {"plain", 1, LAYOUT_PLAIN, LAYOUT_PLAIN, false, false, -1},
    {"threads", 2, LAYOUT_PLAIN, LAYOUT_PLAIN, false, false, -1},
    {"integers", 2, LAYOUT_PLAIN, LAYOUT_PLAIN, false, true, -1},
    {"gradient", 2, LAYOUT_PLAIN, LAYOUT_PLAIN, true, false, -1},
    {"gradient_integers", 1, LAYOUT_PLAIN, LAYOUT_PLAIN, true, true, -1},
    {"padded", 2, LAYOUT_PADDED, LAYOUT_PADDED, false, false, -1},
    {"permuted", 2, LAYOUT_PERMUTED, LAYOUT_PERMUTED, false, false, -1},
    {"packed", 1, LAYOUT_PACKED, LAYOUT_PACKED, false, false, -1},
    {"strided_gradient", 1, LAYOUT_PADDED, LAYOUT_PLAIN, true, false, -1},
    {"in_place_0", 2, LAYOUT_PLAIN, LAYOUT_PLAIN, false, false, 0},
    {"in_place_1", 2, LAYOUT_PLAIN, LAYOUT_PLAIN, false, false, 1},
};

/** TF32: FP32 tensors whose products may run in TF32. */
static const mixt_dtype dtypes[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_TF32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};

static uint64_t line_seed(const options *o, const char *text)
{
    uint64_t hash = o->seed * 0x9e3779b97f4a7c15u + 1469598103934665603u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

static test_case *case_make(const oracle *oracle, problem *p, const options *o, test_case like)
{
    bool tf32 = like.dtype == MIXT_DTYPE_TF32;
    test_case *c = case_new(oracle->op, p, tf32 ? MIXT_DTYPE_FP32 : like.dtype, line_seed(o, p->text));
    c->arithmetic = c->op->matrix_work ? like.dtype : MIXT_DTYPE_FP32;
    c->rounds = like.rounds;
    c->integers = like.integers;
    c->unrounded = like.unrounded;
    oracle->make(c);
    if (problem_int(c, "special", 0) && !c->error) { // infinities and NaN must come out where they belong, only there
        c->in[0].value[0] = INFINITY;
        c->in[0].value[c->in[0].count - 1] = NAN;
    }
    case_run(c);
    for (int i = 0; i < p->count && !c->error; i++)
        if (!p->used[i])
            c->error = "a key of this line is not known";
    return c;
}

/* ---- checking gradient oracles by differences ---- */

/** Sum of grad_dst times the forward output 0, and the same of magnitudes. */
static double contracted(test_case *c, double *size)
{
    test_case *f = c->forward;
    for (int o = 0; o < f->out_count; o++) {
        memset(f->out[o].value, 0, (size_t)f->out[o].count * sizeof(double));
        memset(f->out[o].slack, 0, (size_t)f->out[o].count * sizeof(double));
    }
    oracle_find(f->op->name)->expect(f);
    double sum = 0;
    *size = 0;
    for (int64_t i = 0; i < f->out[0].count; i++) {
        sum += c->in[c->grad_dst].value[i] * f->out[0].value[i];
        *size += fabs(c->in[c->grad_dst].value[i] * f->out[0].value[i]);
    }
    return sum;
}

static bool difference(test_case *c, int o, int64_t i)
{
    double *x = &c->forward->in[c->grad_of[o]].value[i], kept = *x, h = 1e-5 * fmax(1, fabs(kept)), size;
    *x = kept + h;
    double above = contracted(c, &size);
    *x = kept - h;
    double slope = (above - contracted(c, &size)) / (2 * h), got = c->out[o].value[i];
    *x = kept;
    // Differences of order h² in the slope, and the rounding of two FP64 sums divided by 2h.
    double tolerance = 1e-8 * (size + fabs(slope)) + 1e-7 * fabs(slope) + 1e-15 * size / h;
    if (fabs(got - slope) <= tolerance)
        return true;
    printf("FAIL oracle %s: output %d, element %lld: formula %.12g, differences %.12g\n     line: %s\n", c->op->name, o,
           (long long)i, got, slope, c->problem->text);
    return false;
}

static bool check_oracle(const oracle *oracle, problem *p, const options *o)
{
    enum { SAMPLES = 48 };
    test_case *c = case_make(oracle, p, o, (test_case){.dtype = MIXT_DTYPE_FP64, .unrounded = true});
    bool good = true;
    for (int out = 0; !c->error && c->forward && out < c->out_count; out++) {
        if (c->grad_of[out] < 0)
            continue; // no gradient of an input
        int64_t count = c->out[out].count, samples = c->forward->out[0].count > 5000 ? 4 : SAMPLES;
        if (samples > count)
            samples = count;
        for (int64_t s = 0; s < samples && good; s++)
            good = difference(c, out, samples == count ? s : (int64_t)case_uniform(c, 0, (double)count));
    }
    case_free(c);
    return good;
}

/* ---- one line ---- */

static const char *format_name(const test_case *c)
{
    return mixt_dtype_name(c->arithmetic == MIXT_DTYPE_TF32 ? MIXT_DTYPE_TF32 : c->dtype);
}

static void report(const options *o, const test_case *c, const mixt__kernel *kernel, const variant *v, int64_t line,
                   const result *r)
{
    printf("FAIL %s, candidate %s, %s, variant %s (%d threads), seed %llu\n     line %lld: %s\n     %s\n     repeat: "
           "%s %s --line %lld "
           "--kernel %s --dtype %s --variant %s --seed %llu --device %s\n",
           c->op->name, kernel->name, format_name(c), v->name, v->threads, (unsigned long long)o->seed, (long long)line,
           c->problem->text, r->text, o->program, c->op->name, (long long)line, kernel->name, format_name(c), v->name,
           (unsigned long long)o->seed, o->device->backend->name);
}

/** Plain candidates are slow: on large problems they run in one variant only. */
static bool too_slow(const test_case *c, const mixt__kernel *kernel, const variant *v)
{
    int64_t elements = 0;
    for (int i = 0; i < c->in_count; i++)
        elements += c->in[i].count;
    return elements > 30000 && !strcmp(kernel->name, "plain") && strcmp(v->name, "plain") &&
           strcmp(v->name, "gradient_integers");
}

static bool asked_for(const options *o, const mixt__kernel *kernel)
{
    return (!o->kernel || !strcmp(o->kernel, kernel->name)) && (!o->without || strcmp(o->without, kernel->name));
}

static void run_candidate(const options *o, const test_case *c, const mixt__kernel *kernel, int index, const variant *v,
                          int64_t line, uint64_t *dropped, totals *t)
{
    result r;
    if (!asked_for(o, kernel) || too_slow(c, kernel, v))
        return;
    execute(c, kernel, v, &r);
    if (r.outcome == OUTCOME_PASS &&
        c->zero_or_value) { // every candidate, format and thread count drops the same elements
        if (!*dropped)
            *dropped = r.zero_hash;
        if (*dropped != r.zero_hash) {
            r.outcome = OUTCOME_FAIL;
            snprintf(r.text, sizeof r.text, "dropout: other elements were dropped than by the first run of this line");
        }
    }
    t->refused += r.outcome == OUTCOME_REFUSED;
    t->runs += r.outcome != OUTCOME_REFUSED;
    t->ran[index] |= r.outcome != OUTCOME_REFUSED;
    t->worst = r.worst > t->worst ? r.worst : t->worst;
    if (r.outcome == OUTCOME_FAIL) {
        t->failures++;
        report(o, c, kernel, v, line, &r);
    }
    if (o->verbose)
        printf("%-6s %s line %lld %s %s %s: %s%.3g of the tolerance\n", r.outcome == OUTCOME_REFUSED ? "no" : "ran",
               c->op->name, (long long)line, kernel->name, format_name(c), v->name,
               r.outcome == OUTCOME_REFUSED ? r.text : "", r.worst);
}

static void run_dtype(const options *o, const oracle *oracle, problem *p, int64_t line, mixt_dtype dtype,
                      uint64_t *dropped, totals *t)
{
    bool rounds = dtype == MIXT_DTYPE_TF32 && !o->device->backend->host_memory;
    test_case *cases[2] = {case_make(oracle, p, o, (test_case){.dtype = dtype, .rounds = rounds}),
                           oracle->exact_integers && !o->memory
                               ? case_make(oracle, p, o, (test_case){.dtype = dtype, .integers = true})
                               : NULL};
    if (rounds && !oracle->partly_tensor)
        cases[0]->strict = case_make(oracle, p, o, (test_case){.dtype = dtype});
    if (cases[0]->error) {
        printf("FAIL %s line %lld is wrong: %s\n     %s\n", oracle->op, (long long)line, cases[0]->error, p->text);
        t->failures++;
    }
    const mixt__kernel *const *list = o->device->backend->kernels(cases[0]->op);
    for (size_t i = 0; !cases[0]->error && i < sizeof variants / sizeof variants[0]; i++) {
        const variant *v = &variants[i];
        if ((o->variant && strcmp(o->variant, v->name)) || !variant_applies(v, cases[0], oracle) ||
            (o->memory && v->integers) ||
            (dtype == MIXT_DTYPE_TF32 && !rounds && i > 0)) // the CPU's kernels are those of FP32: seen there
            continue;
        for (int k = 0; list && list[k]; k++)
            run_candidate(o, cases[v->integers], list[k], k, v, line, dropped, t);
    }
    case_free(cases[0]);
    case_free(cases[1]);
}

/** FP16 and BF16 touch the same memory: where that is all that counts, a line is run in one of them. */
static bool same_memory(const options *o, mixt_dtype dtype, int64_t line)
{
    return o->memory && dtype == (line % 2 ? MIXT_DTYPE_FP16 : MIXT_DTYPE_BF16);
}

/** Of formats that take turns from line to line, whether this one's turn is another line's. */
static bool another_format(const options *o, mixt_dtype dtype, int64_t line)
{
    static const mixt_dtype turns[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    return o->one_format && dtype != turns[line % 3];
}

static void run_line(const options *o, const oracle *oracle, problem *p, int64_t line, totals *t)
{
    uint64_t dropped = 0;
    t->lines++;
    if (!o->no_oracle_check && !check_oracle(oracle, p, o))
        t->failures++;
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
        if ((!o->dtype || !strcmp(o->dtype, mixt_dtype_name(dtypes[d]))) &&
            (dtypes[d] != MIXT_DTYPE_TF32 || (mixt__op_find(oracle->op)->matrix_work && !o->memory)) &&
            !same_memory(o, dtypes[d], line) && !another_format(o, dtypes[d], line))
            run_dtype(o, oracle, p, line, dtypes[d], &dropped, t);
}

/* ---- one op ---- */

/** Whether each candidate ran where it must. Nothing is known of those of a GPU, nor when only a part was run. */
static bool all_ran(const options *o, const char *op, const mixt__kernel *const *list, const totals *t)
{
    bool good = true;
    for (int k = 0; list[k] && !o->kernel && !o->line && !o->dtype && !o->variant; k++)
        if (asked_for(o, list[k]) && o->device->backend->host_memory)
            good = required_check(op, list[k]->name, t->ran[k]) && good;
        else if (asked_for(o, list[k]) && !t->ran[k])
            printf("%-20s candidate %s never ran here: --verbose says why\n", op, list[k]->name);
    return good;
}

static bool run_op(const options *o, const oracle *oracle)
{
    char path[512], text[512];
    totals t = {0};
    const mixt__kernel *const *list = o->device->backend->kernels(mixt__op_find(oracle->op));
    if (!list || !list[0]) {
        printf("%-20s not on this device\n", oracle->op);
        return strcmp(o->device->backend->name, "cpu") != 0; // which has all
    }
    bool any = false;
    for (int k = 0; list[k]; k++)
        any |= asked_for(o, list[k]);
    if (!any) {
        printf("%-20s has no candidate that was asked for\n", oracle->op);
        return true;
    }
    snprintf(path, sizeof path, "%s/%s.txt", o->cases, oracle->op);
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "ops: cannot read %s: run from the repository root or give --cases\n", path);
        return false;
    }
    if (oracle->self_check && !o->no_oracle_check && !oracle->self_check())
        t.failures++;
    for (int64_t line = 1; fgets(text, sizeof text, file); line++) {
        static problem p;
        if ((o->line && o->line != line) || !problem_parse(&p, text) || !p.op ||
            (p.device && strcmp(p.device, o->device->backend->name)))
            continue;
        if (strcmp(p.op, oracle->op)) {
            printf("FAIL %s:%lld is about another op: %s\n", path, (long long)line, p.op);
            t.failures++;
            continue;
        }
        run_line(o, oracle, &p, line, &t);
    }
    fclose(file);
    printf("%-20s %3lld lines, %5lld runs, %4lld refused, worst %.2f of its tolerance, %lld failures, seed %llu\n",
           oracle->op, (long long)t.lines, (long long)t.runs, (long long)t.refused, t.worst, (long long)t.failures,
           (unsigned long long)o->seed);
    return all_ran(o, oracle->op, list, &t) && t.failures == 0 && (t.runs > 0 || o->line || o->kernel || o->without);
}

static bool read_options(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(name, "--memory")) {
            o->memory = true;
            continue;
        }
        if (!strcmp(name, "--one-format")) {
            o->one_format = true;
            continue;
        }
        if (!strcmp(name, "--no-oracle-check")) {
            o->no_oracle_check = true;
            continue;
        }
        if (!strcmp(name, "--verbose")) {
            o->verbose = true;
            continue;
        }
        if (name[0] != '-') {
            o->op = name;
            continue;
        }
        if (!value)
            return false;
        i++;
        if (!strcmp(name, "--line"))
            o->line = atoll(value);
        else if (!strcmp(name, "--seed"))
            o->seed = strtoull(value, NULL, 0);
        else if (!strcmp(name, "--kernel"))
            o->kernel = value;
        else if (!strcmp(name, "--without"))
            o->without = value;
        else if (!strcmp(name, "--dtype"))
            o->dtype = value;
        else if (!strcmp(name, "--variant"))
            o->variant = value;
        else if (!strcmp(name, "--cases"))
            o->cases = value;
        else if (!strcmp(name, "--device"))
            o->device = strcmp(value, "cuda") ? o->device : NULL;
        else
            return false;
    }
    return o->op != NULL;
}

int main(int argc, char **argv)
{
    options o = {.cases = "tests/cases", .seed = 1, .program = argv[0], .device = &mixt__device_cpu};
    bool good = true, found = false;
    if (!read_options(&o, argc, argv)) {
        fprintf(stderr,
                "usage: %s OP|all [--line N] [--kernel NAME] [--without NAME] [--dtype D] [--variant V] [--seed S] "
                "[--verbose] [--memory] [--one-format] [--no-oracle-check] [--cases DIR] [--device cpu|cuda]\n",
                argv[0]);
        return 2;
    }
    const mixt__backend *cuda;
    if (!o.device && (mixt__backend_cuda(&cuda) != MIXT_OK || cuda->open(0, 0, &o.device) != MIXT_OK)) {
        fprintf(stderr, "ops: %s\n", mixt_error_text());
        return 2;
    }
    execute_on(o.device);
    good = required_read("tests/ops/required.txt");
    for (int i = 0; oracle_list[i]; i++)
        if (!strcmp(o.op, "all") || !strcmp(o.op, oracle_list[i]->op)) {
            found = true;
            good = run_op(&o, oracle_list[i]) && good;
        }
    if (!found)
        fprintf(stderr, "ops: there is no op '%s'\n", o.op);
    return good && found ? 0 : 1;
}
