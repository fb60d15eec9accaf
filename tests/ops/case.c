/* One test case: memory that dies with it, random inputs, outputs as the op's record infers them. */
#include "oracle/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_block {
    struct test_block *next;
    double data[];
} test_block;

void *case_alloc(test_case *c, size_t bytes)
{
    test_block *block = calloc(1, sizeof *block + bytes + 8);
    if (!block) {
        fprintf(stderr, "ops: out of memory\n");
        exit(2);
    }
    block->next = c->blocks;
    c->blocks = block;
    return block->data;
}

test_case *case_new(const char *op, problem *p, mixt_dtype dtype, uint64_t seed)
{
    test_case *c = calloc(1, sizeof *c);
    if (!c) {
        fprintf(stderr, "ops: out of memory\n");
        exit(2);
    }
    c->op = mixt__op_find(op);
    c->problem = p;
    c->dtype = dtype;
    c->arithmetic = MIXT_DTYPE_FP32;
    c->random = seed;
    c->grad_dst = -1;
    return c;
}

test_case *case_inner(test_case *c, const char *op)
{
    test_case *inner = case_new(op, c->problem, c->dtype, c->random ^ 0x9e3779b97f4a7c15u);
    inner->arithmetic = c->arithmetic;
    inner->rounds = c->rounds;
    inner->integers = c->integers;
    inner->unrounded = c->unrounded;
    c->forward = inner;
    return inner;
}

void case_free(test_case *c)
{
    if (!c)
        return;
    case_free(c->forward);
    case_free(c->strict);
    while (c->blocks) {
        test_block *next = c->blocks->next;
        free(c->blocks);
        c->blocks = next;
    }
    free(c);
}

/** SplitMix64: the tests' own numbers, which never change with the library. */
static uint64_t next_random(test_case *c)
{
    uint64_t z = c->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double case_uniform(test_case *c, double low, double high)
{
    return low + (high - low) * ((double)(next_random(c) >> 11) * 0x1p-53);
}

static test_tensor *append(test_case *c, mixt_dtype dtype, mixt__shape shape)
{
    test_tensor *t = &c->in[c->in_count++];
    *t = (test_tensor){.dtype = dtype, .shape = shape, .count = mixt__shape_count(&shape)};
    t->value = case_alloc(c, (size_t)t->count * sizeof(double));
    return t;
}

test_tensor *case_input_between(test_case *c, mixt_dtype dtype, mixt__shape shape, double low, double high)
{
    test_tensor *t = append(c, dtype, shape);
    for (int64_t i = 0; i < t->count; i++) {
        double x = case_uniform(c, low, high);
        t->value[i] = c->unrounded ? x : number_round(x, dtype);
    }
    return t;
}

test_tensor *case_input(test_case *c, mixt_dtype dtype, mixt__shape shape)
{
    if (!c->integers)
        return case_input_between(c, dtype, shape, -1, 1);
    test_tensor *t = append(c, dtype, shape);
    for (int64_t i = 0; i < t->count; i++)
        t->value[i] = (double)(next_random(c) % 5) - 2;
    return t;
}

test_tensor *case_scaled(test_case *c, mixt_dtype dtype, mixt__shape shape)
{
    test_tensor *t = append(c, dtype, shape);
    t->number = case_alloc(c, (size_t)t->count * sizeof(double));
    t->scale = case_alloc(c, sizeof(double));
    t->scales = 1;
    t->scale_kind = MIXT_SCALE_TENSOR;
    t->scale[0] = c->integers ? 1 : ldexp(1, (int)case_uniform(c, -12, 3));
    for (int64_t i = 0; i < t->count; i++) {
        double x = c->integers ? (double)(next_random(c) % 5) - 2 : number_round(case_uniform(c, -448, 448), dtype);
        t->number[i] = x;
        t->value[i] = x * t->scale[0];
    }
    return t;
}

test_tensor *case_pair(test_case *c, mixt__shape shape)
{
    test_tensor *t = append(c, MIXT_DTYPE_INT8, shape);
    int64_t rows = shape.dims[0], width = rows ? t->count / rows : 0;
    t->scales = rows;
    t->scale_kind = MIXT_SCALE_CHANNEL;
    t->number = case_alloc(c, (size_t)t->count * sizeof(double));
    t->scale = case_alloc(c, (size_t)rows * sizeof(double));
    for (int64_t r = 0; r < rows; r++) {
        double scale = c->integers ? 1 : number_round(case_uniform(c, 0.5, 1) / 127, MIXT_DTYPE_FP32);
        t->scale[r] = next_random(c) % 8 ? scale : 0;
    }
    for (int64_t i = 0; i < t->count; i++) {
        double x = c->integers ? (double)(next_random(c) % 5) - 2 : floor(case_uniform(c, -127, 128));
        t->number[i] = t->scale[i / width] > 0 ? x : 0;
        t->value[i] = t->number[i] * t->scale[i / width];
    }
    return t;
}

test_tensor *case_indices(test_case *c, mixt__shape shape, int64_t low, int64_t high)
{
    test_tensor *t = append(c, MIXT_DTYPE_INT32, shape);
    for (int64_t i = 0; i < t->count; i++)
        t->value[i] = floor(case_uniform(c, (double)low, (double)high));
    return t;
}

test_tensor *case_copy(test_case *c, const test_tensor *from)
{
    test_tensor *t = append(c, from->dtype, from->shape);
    for (int64_t i = 0; i < t->count; i++)
        t->value[i] = c->unrounded ? from->value[i] : number_round(from->value[i], from->dtype);
    return t;
}

test_tensor *case_after(test_case *c, int i)
{
    c->after[i] = c->in[i];
    c->after[i].value = case_alloc(c, (size_t)c->in[i].count * sizeof(double));
    c->after[i].slack = case_alloc(c, (size_t)c->in[i].count * sizeof(double));
    memcpy(c->after[i].value, c->in[i].value, (size_t)c->in[i].count * sizeof(double));
    return &c->after[i];
}

void case_infer(test_case *c)
{
    mixt__graph *graph = NULL;
    int32_t in[MAX_TENSORS];
    int64_t node;
    if (c->error || mixt__graph_new(&graph) != MIXT_OK)
        return;
    for (int i = 0; i < c->in_count; i++)
        if (mixt__graph_value(graph, MIXT_ROLE_ACTIVATION, c->in[i].dtype, &c->in[i].shape, "in", &in[i]) != MIXT_OK)
            c->error = mixt_error_text();
        else if (c->in[i].scale &&
                 mixt__graph_pair(graph, in[i], MIXT_ROLE_ACTIVATION, c->in[i].scale_kind, 0) != MIXT_OK)
            c->error = mixt_error_text();
    if (c->error || mixt__graph_node(graph, c->op, "test", &c->attrs, in, c->in_count, &node) != MIXT_OK) {
        c->error = mixt_error_text();
    } else {
        c->out_count = graph->nodes[node].out_count;
        for (int o = 0; o < c->out_count; o++) {
            const mixt__value *v = &graph->values[graph->nodes[node].out[o]];
            test_tensor *t = &c->out[o];
            *t = (test_tensor){.dtype = v->dtype, .shape = v->shape, .count = mixt__shape_count(&v->shape)};
            t->value = case_alloc(c, (size_t)t->count * sizeof(double));
            t->slack = case_alloc(c, (size_t)t->count * sizeof(double));
        }
    }
    mixt__graph_free(graph);
}

void case_run(test_case *c)
{
    case_infer(c);
    if (!c->error)
        oracle_find(c->op->name)->expect(c);
}
