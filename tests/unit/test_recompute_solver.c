/* What is computed again is the best choice: held against all choices on small random problems, and on the graphs of
 * large models, which are compiled here without taking their memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/sanitized.h"

#include "api/api.h"
#include "graph/op.h"
#include "models/models.h"
#include "ops/attrs.h"
#include "passes/memory.h"
#include "passes/passes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PROBLEMS = 260 / CASE_STRIDE, UNITS_MAX = 18, LATE_MAX = 24, UNITS_LARGE = 60 };

/* ---- random problems ---- */

static uint64_t random_state;

static int64_t draw(int64_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((random_state >> 33) % (uint64_t)below);
}

typedef struct random_problem {
    mixt__recompute_problem p;
    mixt__recompute_unit units[UNITS_LARGE];
    mixt__recompute_value values[2 * UNITS_LARGE];
    int32_t in[UNITS_LARGE][3];
    size_t base[UNITS_LARGE + LATE_MAX];
} random_problem;

static void draw_value(random_problem *r, int32_t unit, int64_t late)
{
    mixt__recompute_value *v = &r->values[r->p.value_count++];
    *v = (mixt__recompute_value){
        .unit = unit, .bytes = (size_t)(1 + draw(9)), .last_early = unit, .first_late = INT64_MAX, .last_late = -1};
    for (int64_t readers = draw(3); readers > 0; readers--) {
        // mostly in the order of a backward pass, sometimes anywhere
        int64_t place = draw(4) ? late - 1 - unit * late / r->p.unit_count + draw(4) - 2 : draw(late);
        place = r->p.late + (place < 0 ? 0 : place >= late ? late - 1 : place);
        v->first_late = place < v->first_late ? place : v->first_late;
        v->last_late = place > v->last_late ? place : v->last_late;
    }
    v->taken = v->last_late >= 0 && !draw(6);
}

static void draw_problem(random_problem *r, int64_t units)
{
    int64_t late = 3 + draw(LATE_MAX - 3);
    *r = (random_problem){.p = {.unit_count = units, .late = units, .times = units + late}};
    r->p.units = r->units;
    r->p.values = r->values;
    r->p.base = r->base;
    for (int32_t u = 0; u < units; u++) {
        mixt__recompute_unit *unit = &r->units[u];
        *unit = (mixt__recompute_unit){.seconds = (double)draw(20), .may = draw(8) != 0, .in = r->in[u], .node = u};
        for (int64_t k = u ? draw(4) : 0; k > 0 && r->p.value_count; k--) {
            int64_t back = draw(5) ? draw(4) : draw(r->p.value_count);
            int32_t v = (int32_t)(r->p.value_count - 1 - (back < r->p.value_count ? back : 0));
            bool twice = false;
            for (int32_t j = 0; j < unit->in_count; j++)
                twice |= r->in[u][j] == v;
            if (twice)
                continue;
            r->in[u][unit->in_count++] = v;
            r->values[v].last_early = u;
        }
        unit->first = (int32_t)r->p.value_count;
        for (int64_t k = 1 + (draw(4) == 0); k > 0; k--)
            draw_value(r, u, late);
        unit->count = (int32_t)r->p.value_count - unit->first;
    }
    for (int64_t t = 0; t < r->p.times; t++)
        r->base[t] = (size_t)draw(10);
    for (int64_t v = 0; v < r->p.value_count; v++)
        for (int64_t t = r->values[v].unit; t <= r->values[v].last_early; t++)
            r->base[t] += r->values[v].bytes;
}

/** Seconds of the best set of all; infinite: none fits. */
static double by_force(const mixt__recompute_problem *p, size_t budget, size_t *least)
{
    double best = INFINITY;
    *least = SIZE_MAX;
    for (uint32_t set = 0; set < 1u << p->unit_count; set++) {
        bool again[UNITS_MAX];
        double seconds;
        size_t peak;
        for (int64_t u = 0; u < p->unit_count; u++)
            again[u] = set >> u & 1;
        assert_true(mixt__recompute_measure(p, again, &seconds, &peak));
        *least = peak < *least ? peak : *least;
        if (peak <= budget && seconds < best)
            best = seconds;
    }
    return best;
}

static void expect_best(const mixt__recompute_problem *p, size_t budget, double best, int problem)
{
    bool again[UNITS_MAX];
    double seconds;
    size_t peak;
    mixt__recompute_answer answer;
    assert_int_equal(mixt__recompute_solve(p, budget, false, again, &answer), MIXT_OK);
    if (answer.found != (best < INFINITY) || (answer.found && answer.seconds != best))
        fail_msg("problem %d, budget %zu: %g seconds, the best is %g", problem, budget,
                 answer.found ? answer.seconds : (double)INFINITY, best);
    if (!answer.found)
        return;
    assert_true(mixt__recompute_measure(p, again, &seconds, &peak));
    assert_true(seconds == answer.seconds && peak == answer.peak && peak <= budget);
    assert_true(answer.lower == answer.seconds && answer.dropped == 0);
    assert_int_equal(mixt__recompute_solve(p, budget, true, again, &answer), MIXT_OK);
    assert_true(answer.found);
    assert_true(mixt__recompute_measure(p, again, &seconds, &peak));
    assert_true(peak <= budget);
}

static void test_all_choices(void **state)
{
    static random_problem r;
    int fits = 0, saved = 0;
    (void)state;
    random_state = 20;
    for (int i = 0; i < PROBLEMS; i++) {
        int64_t units = i % 20 == 19 ? UNITS_MAX : 3 + draw(i % 4 == 3 ? 12 : 9);
        size_t kept, least;
        double seconds;
        bool none[UNITS_MAX] = {false};
        draw_problem(&r, units);
        assert_true(mixt__recompute_measure(&r.p, none, &seconds, &kept));
        size_t budget = kept - (size_t)draw((int64_t)kept / 2 + 1);
        double best = by_force(&r.p, budget, &least);
        expect_best(&r.p, budget, best, i);
        fits += best < INFINITY;
        saved += best > 0 && best < INFINITY;
        if (best == INFINITY) // as little as can be
            expect_best(&r.p, least, by_force(&r.p, least, &kept), i);
    }
    print_message("%d of %d budgets fit, %d of them with recomputation\n", fits, PROBLEMS, saved);
    assert_true(saved > PROBLEMS / 4 && fits < PROBLEMS);
}

/** More states than are followed: what is found fits, and the bound says how far it may be from the best. */
static void test_ends_early(void **state)
{
    static random_problem r;
    bool again[UNITS_LARGE] = {false};
    mixt__recompute_answer answer;
    double seconds;
    size_t kept, peak;
    (void)state;
    random_state = 2;
    draw_problem(&r, UNITS_LARGE);
    assert_true(mixt__recompute_measure(&r.p, again, &seconds, &kept));
    size_t budget = kept * 60 / 100;
    assert_int_equal(mixt__recompute_solve(&r.p, budget, false, again, &answer), MIXT_OK);
    print_message("%g seconds, at least %g, %lld states, %lld left aside\n", answer.seconds, answer.lower,
                  (long long)answer.states, (long long)answer.dropped);
    assert_true(answer.found && answer.dropped > 0 && answer.lower > 0 && answer.lower < answer.seconds);
    assert_true(mixt__recompute_measure(&r.p, again, &seconds, &peak));
    assert_true(seconds == answer.seconds && peak == answer.peak && peak <= budget);
}

/* ---- large models ---- */

/** GPT-2 of so many layers, a batch of 32 texts of 1024 tokens, as it is built. */
static mixt__graph *gpt2(int64_t layers)
{
    enum { SEQ = 1024, VOCABULARY = 50304 };
    mixt_data_info info = {.input_dtype = MIXT_DTYPE_INT32, .input_rank = 1, .input_dims = {SEQ}};
    info.classes = VOCABULARY;
    info.target = MIXT_TARGET_TOKENS;
    info.target_dtype = MIXT_DTYPE_INT32;
    info.target_elements = SEQ;
    mixt__model_sizes sizes = {.layers = layers, .width = 768, .heads = 12, .vocab = VOCABULARY, .seq = SEQ};
    mixt__batch_spec spec = {.input_dtype = MIXT_DTYPE_INT32, .target_dtype = MIXT_DTYPE_INT32};
    spec.input = spec.target = (mixt__shape){2, {32, SEQ}};
    mixt__model model;
    mixt__graph *graph;
    assert_int_equal(mixt__zoo_model("gpt", &info, &sizes, &model), MIXT_OK);
    assert_int_equal(mixt__model_build(&model, &spec, true, &graph), MIXT_OK);
    return graph;
}

typedef struct compiled {
    mixt_status status;
    size_t arena;
    double cpu_seconds;
    mixt__recompute_choice choice;
} compiled;

/** About an H200. */
static double seconds(const void *device, const mixt__graph *graph, const mixt__node *node)
{
    (void)device;
    double compute = mixt__node_flops(graph, node) / (node->op->matrix_work ? 7e14 : 5e13);
    return 2e-6 + fmax(compute, mixt__node_bytes(graph, node) / 4e12);
}

/** Through all passes in BF16, with the fused forms and costs of a GPU. */
static compiled compile(const mixt__graph *source, size_t budget)
{
    compiled c = {0};
    mixt__graph *graph;
    mixt_policy *policy;
    mixt__memory_plan plan;
    assert_int_equal(mixt__policy_choose("bf16", NULL, &policy), MIXT_OK);
    mixt__compile_options options = {.policy = policy->formats, .backward = true, .activation_budget = budget};
    options.fused = MIXT_FUSED_MATMUL | MIXT_FUSED_NORM | MIXT_FUSED_BATCH_NORM | MIXT_FUSED_LOSS;
    options.recompute = &c.choice;
    options.seconds = seconds;
    clock_t begin = clock();
    c.status = mixt__passes_run(source, &options, &graph);
    c.cpu_seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (c.status == MIXT_OK) {
        assert_int_equal(mixt__memory_plan_make(graph, &plan), MIXT_OK);
        c.arena = plan.arena_bytes;
        mixt__memory_plan_free(&plan);
        mixt__graph_free(graph);
    }
    mixt_policy_free(policy);
    return c;
}

/** Less memory, more time; and the search is proven to its end with few states. */
static void descend(int64_t layers, size_t most, size_t least, int budgets, int64_t states)
{
    mixt__graph *graph = gpt2(layers);
    double seconds = INFINITY;
    for (int i = 0; i <= budgets; i++) {
        size_t budget = least + (most - least) / (size_t)budgets * (size_t)i;
        compiled c = compile(graph, budget);
        if (c.status != MIXT_OK)
            fail_msg("%zu bytes: %s", budget, mixt_error_text());
        print_message("%lld layers, %.2f GB: %lld nodes again, %.3f ms more, %lld states, %.3f s\n", (long long)layers,
                      (double)budget / 1e9, (long long)c.choice.nodes, 1e3 * c.choice.seconds,
                      (long long)c.choice.states, c.cpu_seconds);
        assert_true(c.arena <= budget && c.choice.kept_all > budget);
        assert_true((double)c.arena > 0.98 * (double)budget); // what may be used is used
        assert_true(c.choice.seconds <= seconds && c.choice.lower == c.choice.seconds);
        assert_true(c.choice.states < states);
        seconds = c.choice.seconds;
    }
    assert_int_equal(compile(graph, 1 << 30).status, MIXT_ERROR_MEMORY);
    mixt__graph_free(graph);
}

static void test_gpt2(void **state)
{
    (void)state;
    descend(12, 10500000000u, 1500000000u, 12 / CASE_STRIDE, 200000);
}

static void test_gpt2_48_layers(void **state)
{
    (void)state;
    if (CASE_STRIDE > 1)
        skip(); // the same code for longer
    descend(48, 38000000000u, 3000000000u, 3, 2000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_choices),
        cmocka_unit_test(test_ends_early),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_gpt2_48_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
