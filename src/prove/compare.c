/* From two configurations to an experiment: whether they can be compared, how many pairs it takes, and making them. */
#include "prove/compare.h"

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/threads.h"
#include "prove/prove.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 100 };

static const mixt__compare_metric metrics[] = {
    {"loss", offsetof(mixt_compare_run, loss), .share = true, .needs = "a loss"},
    {"accuracy", offsetof(mixt_compare_run, accuracy), .higher = true, .needs = "classes and a validation part"},
    {"train_loss", offsetof(mixt_compare_run, train_loss), .share = true, .needs = "a loss"},
    {"best_loss", offsetof(mixt_compare_run, best_loss), .share = true, .needs = "a validation part"},
};

/* ---- telling ---- */

bool mixt__compare_tell(mixt_comparison *c, mixt_progress p)
{
    p.parts = c->info.wanted > c->count ? c->info.wanted : c->count;
    p.seconds = mixt__time_now() - c->started;
    p.budget = c->options.budget == MIXT_AUTO ? (double)NAN : c->options.budget;
    if (!mixt__tell_on((mixt__teller){c->options.progress, c->options.user}, &p))
        c->halted = true;
    return !c->halted;
}

void mixt__compare_note(mixt_comparison *c, mixt_progress_kind kind, const char *format, ...)
{
    char text[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mixt_progress p = mixt__progress(kind, "comparing");
    p.text = text;
    (void)mixt__compare_tell(c, p);
}

/* ---- whether they can be compared ---- */

mixt__compare_relation mixt__compare_relation_of(mixt__config_key key)
{
    static const struct {
        const char *begins;
        mixt__compare_relation relation;
    } rules[] = {
        // the first that fits
        {"precision", MIXT_RELATION_POLICY},
        {"train.loss_scale", MIXT_RELATION_POLICY},
        {"train.scale_", MIXT_RELATION_POLICY},
        {"train.activations", MIXT_RELATION_POLICY},
        {"out", MIXT_RELATION_IGNORED},
        {"seed", MIXT_RELATION_IGNORED},
        {"watch.", MIXT_RELATION_IGNORED},
        {"verify.", MIXT_RELATION_IGNORED},
        {"train.tensorboard", MIXT_RELATION_IGNORED},
        {"data.threads", MIXT_RELATION_MORE},
        {"net.dropout", MIXT_RELATION_MORE},
        {"model", MIXT_RELATION_SAME_NEEDED},
        {"net.", MIXT_RELATION_SAME_NEEDED},
        {"data.", MIXT_RELATION_SAME_NEEDED},
        {"init", MIXT_RELATION_SAME_NEEDED},
    };
    const char *name = mixt__config_table[key].name;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (!strncmp(name, rules[i].begins, strlen(rules[i].begins)))
            return rules[i].relation;
    return MIXT_RELATION_MORE;
}

/** Takes over both texts, which are of free(). */
static mixt_status add_change(mixt_comparison *c, mixt__config_key key, char *a, char *b)
{
    mixt__compare_relation r = mixt__compare_relation_of(key);
    const char *name = mixt__config_table[key].name;
    mixt_status status = MIXT_OK;
    if (r == MIXT_RELATION_SAME_NEEDED)
        status =
            mixt__fail(MIXT_ERROR_CONFIG,
                       "%s is %.200s in A and %.200s in B: only runs of the same model from the same weights on the "
                       "same data can be compared",
                       name, a, b);
    else if (!mixt__grow((void **)&c->changes, &c->change_capacity, c->change_count, sizeof *c->changes))
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a comparison");
    if (status == MIXT_OK) {
        c->changes[c->change_count++] =
            (mixt_compare_change){.key = name, .a = a, .b = b, .policy = r == MIXT_RELATION_POLICY};
        return MIXT_OK;
    }
    free(a);
    free(b);
    return status;
}

mixt_status mixt__compare_find_changes(mixt_comparison *c)
{
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        char *a = mixt__config_text(c->configs[MIXT_COMPARE_A], (mixt__config_key)key);
        char *b = mixt__config_text(c->configs[MIXT_COMPARE_B], (mixt__config_key)key);
        if (a && b && strcmp(a, b) && mixt__compare_relation_of((mixt__config_key)key) != MIXT_RELATION_IGNORED) {
            MIXT_TRY(add_change(c, (mixt__config_key)key, a, b));
            continue;
        }
        free(a);
        free(b);
        if (!a || !b)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a comparison");
    }
    return MIXT_OK;
}

/* ---- what was asked for ---- */

mixt_status mixt__compare_take_options(mixt_comparison *c, const mixt_compare_options *given)
{
    char text[40];
    c->options = MIXT_OPTIONS(mixt_compare_options);
    MIXT_TRY(mixt__options(mixt_compare_options, &c->options, given));
    const mixt_compare_options *o = &c->options;
    const char *wanted = o->metric ? o->metric : "loss";
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
        if (!strcmp(metrics[i].name, wanted))
            c->metric = &metrics[i];
    if (!c->metric)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "metric '%.60s': expected loss, accuracy, train_loss or best_loss",
                          wanted);
    double margin = o->margin;
    if (!(margin > 0) || isinf(margin) || !(o->price >= 0 || o->price == MIXT_AUTO) ||
        !(o->budget >= 0 || o->budget == MIXT_AUTO))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "margin %g, budget %g s, price %g: expected a margin above 0 and no negative numbers", margin,
                          o->budget, o->price);
    if (!(o->failures >= 0 && o->failures < 1) ||
        (o->failures > 0 && mixt_stats_pairs_to_see(o->failures) > MIXT_COMPARE_PAIRS_MAX))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "failures %g: expected a share of runs of at least 0.003, for which %d pairs are enough",
                          o->failures, MIXT_COMPARE_PAIRS_MAX);
    mixt__print_number(text, sizeof text, "%.9g", margin); // as it will be read back
    c->info.margin = mixt__read_double(text, NULL);
    c->info.metric = c->metric->name;
    c->options.absolute = c->info.absolute = o->absolute || !c->metric->share;
    return MIXT_OK;
}

static mixt_status check_pairs(const mixt_comparison *c)
{
    int64_t pairs = c->options.pairs, least = mixt_stats_pairs_to_see(c->options.failures),
            seed = mixt__config_int(c->configs[MIXT_COMPARE_A], MIXT_KEY_SEED);
    if (pairs && (pairs < MIXT_STATS_PAIRS_MIN || pairs > MIXT_COMPARE_PAIRS_MAX))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%lld pairs: expected %d to %d; fewer cannot separate a difference from chance",
                          (long long)pairs, MIXT_STATS_PAIRS_MIN, MIXT_COMPARE_PAIRS_MAX);
    if (pairs && pairs < least)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld pairs: to exclude failures in %g%% of runs takes %lld",
                          (long long)pairs, 100 * c->options.failures, (long long)least);
    if (seed > INT64_MAX - MIXT_COMPARE_PAIRS_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "seed: %lld is too large for the seeds of pairs", (long long)seed);
    return MIXT_OK;
}

/* ---- making pairs ---- */

/** Whether time is left for one more run. */
static bool in_time(const mixt_comparison *c)
{
    double budget = c->options.budget;
    return budget == MIXT_AUTO || mixt__time_now() - c->started + c->longest < budget;
}

/** Makes what is missing of the first `wanted` pairs, A before B in every other one. */
static mixt_status make_pairs(mixt_comparison *c, int64_t wanted)
{
    MIXT_TRY(mixt__compare_state_grow(c, wanted));
    for (int64_t i = 0; i < 2 * wanted; i++) {
        int64_t pair = i / 2;
        mixt_compare_side side = (mixt_compare_side)((i % 2) ^ (pair % 2));
        bool done = c->pairs[pair].done[side];
        if (!done && (c->halted || !in_time(c)))
            c->info.stopped = true;
        if (done || c->info.stopped)
            continue;
        MIXT_TRY(mixt__compare_train(c, pair, side, &done));
        c->info.stopped = !done;
        const mixt_compare_run *run = &c->pairs[pair].runs[side];
        if (done && !run->diverged && isnan(*(const double *)((const char *)run + c->metric->offset)))
            return mixt__fail(MIXT_ERROR_CONFIG, "metric %s: these runs have none: it needs %s", c->metric->name,
                              c->metric->needs);
    }
    return MIXT_OK;
}

/** Pairs that are needed, from the pilot: always the first ones, whatever was made since. */
static mixt_status plan(mixt_comparison *c)
{
    double worse[MIXT_STATS_PAIRS_MIN];
    int64_t all = c->count;
    c->count = MIXT_STATS_PAIRS_MIN;
    int64_t used = mixt__compare_differences(c, worse);
    c->count = all;
    int64_t planned = used > 1 ? mixt_stats_plan(worse, used, c->info.margin) : MIXT_STATS_PAIRS_MIN,
            least = mixt_stats_pairs_to_see(c->options.failures);
    int64_t plainly = used > 1 ? mixt_stats_plan_inferior(worse, used, c->info.margin) : 0;
    bool too_many = planned > MIXT_COMPARE_PAIRS_PLANNED && planned > least, asked = c->options.pairs;
    plainly = too_many && plainly <= MIXT_COMPARE_PAIRS_PLANNED ? plainly : 0;
    c->info.needed = plainly ? plainly : planned > least ? planned : least;
    c->info.wanted = asked ? c->options.pairs : too_many && !plainly ? MIXT_STATS_PAIRS_MIN : c->info.needed;
    if (!asked && c->look_count && c->looks[c->look_count - 1] > c->info.wanted)
        c->info.wanted = c->looks[c->look_count - 1]; // it was asked for before
    c->info.pilot = too_many && !plainly && !asked && !c->look_count;
    const char *made = asked ? "were asked for" : "will be made";
    if (plainly)
        mixt__compare_note(c, MIXT_PROGRESS_NOTE,
                           "the pilot says: if B is as much worse as it looks, %lld pairs decide; %lld %s",
                           (long long)plainly, (long long)c->info.wanted, made);
    else if (c->info.needed > MIXT_COMPARE_PAIRS_MAX)
        mixt__compare_note(c, MIXT_PROGRESS_NOTE,
                           "the pilot's %lld pairs vary so much that more than %d pairs are needed", (long long)used,
                           MIXT_COMPARE_PAIRS_MAX);
    else
        mixt__compare_note(c, MIXT_PROGRESS_NOTE,
                           "the pilot says: %lld pairs are needed for a power of %g%% at the margin; %lld %s",
                           (long long)c->info.needed, 100 * MIXT_STATS_POWER, (long long)c->info.wanted, made);
    return MIXT_OK;
}

/** The rest of an experiment; where it is complete a verdict is given, and that counts. A pilot that asks for more than
 *  is made is no look: those who then ask for the pairs have all of the error to spend. */
static mixt_status experiment(mixt_comparison *c)
{
    MIXT_TRY(make_pairs(c, MIXT_STATS_PAIRS_MIN));
    if (!c->info.stopped) {
        MIXT_TRY(plan(c));
        MIXT_TRY(make_pairs(c, c->info.wanted));
    }
    if (c->info.pilot) {
        c->count = MIXT_STATS_PAIRS_MIN; // pairs beyond were asked for once, and not finished
    } else if (!c->info.stopped) {
        MIXT_TRY(mixt__compare_state_look(c, c->info.wanted));
        c->count = c->looks[c->look_count - 1]; // pairs beyond belong to a look that was not finished
    }
    MIXT_TRY(mixt__rows_flush(&c->rows));
    MIXT_TRY(mixt__compare_conclude(c));
    return mixt__compare_draw(c);
}

static mixt_status open_comparison(mixt_comparison *c, const mixt_config *a, const mixt_config *b,
                                   const mixt_compare_options *o)
{
    MIXT_TRY(mixt__compare_take_options(c, o));
    MIXT_TRY(mixt__prove_check_name(c->options.name, NAME_MAX_LENGTH));
    snprintf(c->folder, sizeof c->folder, "runs/compare-%s", c->options.name);
    MIXT_TRY(mixt_config_copy(a, &c->configs[MIXT_COMPARE_A]));
    MIXT_TRY(mixt_config_copy(b, &c->configs[MIXT_COMPARE_B]));
    MIXT_TRY(check_pairs(c));
    for (int side = 0; side < MIXT_COMPARE_SIDES; side++)
        MIXT_TRY(mixt_config_check(c->configs[side]));
    MIXT_TRY(mixt__compare_find_changes(c));
    return mixt__compare_state_open(c);
}

mixt_status mixt__compare_new(mixt_comparison **c)
{
    *c = mixt__alloc(sizeof **c);
    if (!*c)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a comparison");
    mixt__handle_add(&(*c)->handle, *c, "comparison", NULL);
    (*c)->started = mixt__time_now();
    return MIXT_OK;
}

mixt_status mixt_compare_with(const mixt_config *a, const mixt_config *b, const mixt_compare_options *options,
                              mixt_comparison **comparison)
{
    mixt_comparison *c;
    MIXT_TRY(mixt__need(comparison));
    *comparison = NULL;
    MIXT_TRY(mixt__need_open(a, "configuration"));
    MIXT_TRY(mixt__need_open(b, "configuration"));
    MIXT_TRY(mixt__need(options));
    MIXT_TRY(mixt__compare_new(&c));
    mixt_status status = open_comparison(c, a, b, options);
    if (status == MIXT_OK)
        status = experiment(c);
    if (status != MIXT_OK)
        mixt__compare_state_discard(c);
    mixt__rows_close(&c->rows);
    if (status == MIXT_OK)
        *comparison = c;
    else
        mixt_comparison_free(c);
    return status;
}

/* ---- what is known ---- */

const char *mixt_compare_verdict_name(mixt_stats_verdict verdict)
{
    return verdict == MIXT_STATS_NON_INFERIOR ? "non-inferior"
           : verdict == MIXT_STATS_INFERIOR   ? "inferior"
                                              : "undecided";
}

mixt_comparison_info mixt_comparison_describe(const mixt_comparison *c)
{
    if (mixt__need_open(c, "comparison") != MIXT_OK)
        return (mixt_comparison_info){.reason = "", .advice = "", .metric = "", .folder = ""};
    mixt_comparison_info info = c->info;
    info.reason = c->reason;
    info.advice = c->advice;
    info.folder = c->folder;
    return info;
}

const mixt_compare_figure *mixt_comparison_figure(const mixt_comparison *c, int64_t index)
{
    bool there = mixt__need_open(c, "comparison") == MIXT_OK && index >= 0 && index < MIXT_COMPARE_FIGURES;
    return there ? &c->figures[index] : NULL;
}

const mixt_compare_figure *mixt_comparison_find(const mixt_comparison *c, const char *name)
{
    const mixt_compare_figure *f;
    for (int64_t i = 0; name && (f = mixt_comparison_figure(c, i)); i++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

const mixt_compare_change *mixt_comparison_change(const mixt_comparison *c, int64_t index)
{
    bool there = mixt__need_open(c, "comparison") == MIXT_OK && index >= 0 && index < c->change_count;
    return there ? &c->changes[index] : NULL;
}

const mixt_compare_run *mixt_comparison_run(const mixt_comparison *c, int64_t pair, mixt_compare_side side)
{
    bool there = mixt__need_open(c, "comparison") == MIXT_OK && pair >= 0 && pair < c->count && (unsigned)side < 2;
    return there && c->pairs[pair].done[side] ? &c->pairs[pair].runs[side] : NULL;
}

double mixt_comparison_worse(const mixt_comparison *c, int64_t pair)
{
    bool there = mixt__need_open(c, "comparison") == MIXT_OK && pair >= 0 && pair < c->count;
    return there ? mixt__compare_worse(c, &c->pairs[pair]) : (double)NAN;
}

void mixt_comparison_free(mixt_comparison *c)
{
    if (!c || mixt__need_open(c, "comparison") != MIXT_OK)
        return;
    mixt__handle_remove(c);
    mixt__rows_close(&c->rows);
    for (int64_t i = 0; i < c->change_count; i++) {
        free((char *)(uintptr_t)c->changes[i].a);
        free((char *)(uintptr_t)c->changes[i].b);
    }
    mixt__free(c->changes);
    mixt__free(c->pairs);
    for (int side = 0; side < MIXT_COMPARE_SIDES; side++)
        mixt_config_free(c->configs[side]);
    mixt__free(c);
}
