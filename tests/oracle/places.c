/* The place of each sample in its batch; `skip=k`: every k-th does not count. */
#include "oracle/oracle.h"

static void make(test_case *c)
{
    int64_t skip = problem_int(c, "skip", 0);
    test_tensor *t = case_indices(c, problem_shape(c, "targets"), 0, 100);
    for (int64_t i = 0; skip && i < t->count; i += skip)
        t->value[i] = -1 - (double)(i % 3);
}

static void expect(test_case *c)
{
    for (int64_t i = 0; i < c->in[0].count; i++)
        c->out[0].value[i] = c->in[0].value[i] < 0 ? -1 : (double)i;
}

const oracle oracle_places = {.op = "places", .make = make, .expect = expect, .exact_integers = true};
