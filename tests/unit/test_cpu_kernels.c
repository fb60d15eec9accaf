/* The fast candidates of reductions, softmax, losses, embedding and copies against the plain ones, on random problems.
 */
#include "backend/cpu/kernels.h"
#include "backend/cpu/core/rows.h"
#include "base/rng.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { MAX_TENSORS = 8, GUARD = 64, SEED = 4711 };

static mixt__rng rng;

static int64_t below(int64_t limit)
{
    return (int64_t)mixt__rng_below(&rng, (uint64_t)limit);
}

static int64_t between(int64_t low, int64_t high)
{
    return low + below(high - low + 1);
}

/* ---- a problem: tensors of one call, outputs twice ---- */

typedef struct fixture {
    mixt__tensor in[MAX_TENSORS], out[MAX_TENSORS], expected[MAX_TENSORS];
    mixt__call call;
} fixture;

static mixt__tensor new_tensor(mixt_dtype dtype, mixt__shape shape)
{
    mixt__tensor t = {.dtype = dtype, .shape = shape, .contiguous = true};
    mixt__shape_strides(&shape, t.strides);
    size_t bytes = (size_t)mixt__shape_count(&shape) * mixt_dtype_size(dtype) + GUARD;
    t.data = malloc(bytes);
    memset(t.data, 0xA5, bytes); // poison, and guard bytes behind the tensor
    return t;
}

static mixt__tensor random_tensor(mixt_dtype dtype, mixt__shape shape)
{
    mixt__tensor t = new_tensor(dtype, shape);
    for (int64_t i = 0; i < mixt__shape_count(&shape); i++)
        mixt__store(t.data, dtype, i, 2.0f * mixt__rng_normal(&rng));
    return t;
}

static mixt_dtype random_dtype(void)
{
    const mixt_dtype dtypes[3] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    return dtypes[below(3)];
}

static void add_input(fixture *f, mixt__tensor t)
{
    f->in[f->call.in_count++] = t;
}

/** An output; when it accumulates, both copies start from the same random values. */
static void add_output(fixture *f, mixt_dtype dtype, mixt__shape shape, bool accumulate)
{
    int o = f->call.out_count++;
    f->out[o] = accumulate ? random_tensor(dtype, shape) : new_tensor(dtype, shape);
    f->expected[o] = new_tensor(dtype, shape);
    if (accumulate)
        memcpy(f->expected[o].data, f->out[o].data, (size_t)mixt__shape_count(&shape) * mixt_dtype_size(dtype));
    f->call.accumulate |= (uint32_t)accumulate << o;
}

static mixt_status run(const mixt__kernel *kernel, mixt__call call)
{
    mixt__arena arena = {0};
    mixt_status status = MIXT_OK;
    if (kernel->prepare)
        status = kernel->prepare(&call, &arena);
    call.workspace = call.workspace_bytes ? aligned_alloc(64, (call.workspace_bytes + 63) / 64 * 64) : NULL;
    if (status == MIXT_OK)
        status = kernel->run(&call);
    free(call.workspace);
    mixt__arena_free(&arena);
    return status;
}

static const mixt__kernel *plain_of(const mixt__kernel *const *list)
{
    while (list[1])
        list++;
    return list[0];
}

static void compare(const fixture *f, int o, double eps, double floor, const char *what)
{
    const mixt__tensor *got = &f->out[o], *expected = &f->expected[o];
    int64_t count = mixt__shape_count(&got->shape);
    double unit = eps + 2 * mixt__dtype_roundoff(got->dtype);
    for (int64_t i = 0; i < count; i++) {
        double x = (double)mixt__load(got->data, got->dtype, i),
               y = (double)mixt__load(expected->data, expected->dtype, i);
        if (!(fabs(x - y) <= unit * (fabs(y) + floor) + mixt__dtype_min_subnormal(got->dtype)) &&
            !(isnan(x) && isnan(y)))
            fail_msg("%s: output %d, element %lld of %lld (%s): %.9g, expected %.9g", what, o, (long long)i,
                     (long long)count, mixt_dtype_name(got->dtype), x, y);
    }
    const unsigned char *guard = (const unsigned char *)got->data + (size_t)count * mixt_dtype_size(got->dtype);
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != 0xA5)
            fail_msg("%s: output %d: byte %d behind the end was written", what, o, i);
}

static void release(fixture *f)
{
    for (int i = 0; i < f->call.in_count; i++)
        free(f->in[i].data);
    for (int o = 0; o < f->call.out_count; o++) {
        free(f->out[o].data);
        free(f->expected[o].data);
    }
}

/** Output copies of a run of one candidate; the first one's memory is fresh so that an accumulation starts over. */
static void run_on_threads(const fixture *f, const mixt__kernel *kernel, int threads, fixture *result)
{
    *result = *f;
    for (int o = 0; o < f->call.out_count; o++) {
        result->out[o] = new_tensor(f->out[o].dtype, f->out[o].shape);
        size_t bytes = (size_t)mixt__shape_count(&f->out[o].shape) * mixt_dtype_size(f->out[o].dtype);
        memcpy(result->out[o].data, f->out[o].data, bytes);
    }
    result->call.out = result->out;
    mixt__threads_set(threads);
    assert_int_equal(run(kernel, result->call), MIXT_OK);
    mixt__threads_set(0);
}

/** Runs the plain candidate, then every other that supports the call, on several thread counts: those must agree to the
 *  bit. `floor` is the size that errors against the plain candidate are relative to. */
static void check(fixture *f, const mixt__kernel *const *list, double eps, double floor, const char *what)
{
    f->call.in = f->in;
    f->call.out = f->expected;
    assert_int_equal(run(plain_of(list), f->call), MIXT_OK);
    f->call.out = f->out;
    for (; list[1]; list++) {
        fixture one, three;
        const char *reason = NULL;
        if (list[0]->supports && !list[0]->supports(&f->call, &reason))
            continue;
        run_on_threads(f, list[0], 1, &one);
        run_on_threads(f, list[0], 3, &three);
        for (int o = 0; o < f->call.out_count; o++) {
            size_t bytes = (size_t)mixt__shape_count(&f->out[o].shape) * mixt_dtype_size(f->out[o].dtype);
            compare(&one, o, eps, floor, what);
            if (memcmp(one.out[o].data, three.out[o].data, bytes))
                fail_msg("%s: output %d depends on the number of threads", what, o);
            if (!f->call.accumulate)
                memcpy(f->out[o].data, one.out[o].data, bytes);
            free(one.out[o].data);
            free(three.out[o].data);
        }
    }
}

static void repeat(void (*problem)(void), int times)
{
    for (int i = 0; i < times; i++) {
        rng = mixt__rng_start(mixt__rng_key(SEED, (uint64_t)i, 0));
        problem();
    }
}

/* ---- reductions ---- */

static void reduce_problem(void)
{
    fixture f = {0};
    mixt__shape shape = {.rank = (int)between(1, 4)}, kept = {0};
    mixt__reduce_attrs at = {.axes = (uint32_t)below(16), .mean = below(2)};
    int64_t count = 1;
    double summed = 1;
    for (int d = 0; d < shape.rank; d++) {
        int64_t most = 150000 / count;
        shape.dims[d] = below(30) == 0 ? 0 : between(1, below(2) ? most : most < 20 ? most : 20);
        count *= shape.dims[d] ? shape.dims[d] : 1;
        if (!(at.axes >> d & 1))
            kept.dims[kept.rank++] = shape.dims[d];
        else
            summed *= (double)shape.dims[d];
    }
    bool accumulate = below(2);
    mixt_dtype dtype = random_dtype();
    add_input(&f, random_tensor(dtype, shape));
    add_output(&f, accumulate ? MIXT_DTYPE_FP32 : dtype, kept, accumulate);
    f.call.attrs = &at;
    check(&f, mixt__cpu_reduce_kernels, 1e-6, at.mean ? 10 : 2 * summed, "reduce");
    release(&f);
}

static void reductions(void **state)
{
    (void)state;
    repeat(reduce_problem, 150);
}

/* ---- softmax ---- */

static void softmax_problem(void)
{
    fixture f = {0}, g = {0};
    mixt__shape shape = {2, {below(30), between(1, below(3) ? 70 : 3000)}};
    mixt_dtype dtype = random_dtype();
    mixt__tensor x = random_tensor(dtype, shape);
    for (int64_t i = 0; i < mixt__shape_count(&shape); i += 7) // masked positions; never a whole row of more than one
        if (shape.dims[1] > 1)
            mixt__store(x.data, dtype, i, -INFINITY);
    add_input(&f, x);
    add_output(&f, dtype, shape, false);
    check(&f, mixt__cpu_softmax_kernels, 4e-6, 0, "softmax");
    add_input(&g, f.out[0]);
    add_input(&g, random_tensor(dtype, shape));
    add_output(&g, dtype, shape, false);
    check(&g, mixt__cpu_softmax_grad_kernels, 2e-6, 1, "softmax_grad");
    free(g.in[1].data);
    g.call.in_count = 0;
    release(&f);
    release(&g);
}

static void softmaxes(void **state)
{
    (void)state;
    repeat(softmax_problem, 100);
}

/* ---- cross-entropy ---- */

static mixt__tensor random_ids(mixt__shape shape, int64_t limit, bool some_negative)
{
    mixt__tensor t = new_tensor(MIXT_DTYPE_INT32, shape);
    for (int64_t i = 0; i < mixt__shape_count(&shape); i++)
        ((int32_t *)t.data)[i] = some_negative && below(5) == 0 ? -1 : (int32_t)below(limit);
    return t;
}

static void cross_entropy_problem(void)
{
    fixture f = {0}, g = {0};
    int64_t rows = below(40), classes = between(1, below(3) ? 40 : 2500);
    mixt__loss_attrs at = {.smoothing = below(2) ? 0.1f : 0.0f};
    mixt_dtype dtype = random_dtype();
    mixt__tensor logits = random_tensor(dtype, (mixt__shape){2, {rows, classes}});
    mixt__tensor labels = random_ids((mixt__shape){1, {rows}}, classes, below(2));
    for (int64_t r = 0; r < rows; r += 2) // ties for the maximum: the first one counts
        for (int k = 0; k < 3; k++) {
            int64_t c = below(classes);
            mixt__store(logits.data, dtype, r * classes + c, 12.0f);
            if (k == 2 && ((int32_t *)labels.data)[r] >= 0)
                ((int32_t *)labels.data)[r] = (int32_t)c;
        }
    add_input(&f, logits);
    add_input(&f, labels);
    add_output(&f, MIXT_DTYPE_FP32, (mixt__shape){0}, false);
    add_output(&f, MIXT_DTYPE_FP32, (mixt__shape){1, {3}}, false);
    add_output(&f, MIXT_DTYPE_FP32, (mixt__shape){1, {rows}}, false);
    f.call.attrs = &at;
    check(&f, mixt__cpu_cross_entropy_kernels, 1e-6, 1, "cross_entropy");
    mixt__tensor seed = new_tensor(MIXT_DTYPE_FP32, (mixt__shape){0});
    *(float *)seed.data = 128;
    mixt__tensor in[5] = {logits, labels, f.out[2], f.out[1], seed};
    for (int i = 0; i < 5; i++)
        add_input(&g, in[i]);
    add_output(&g, dtype, (mixt__shape){2, {rows, classes}}, false);
    g.call.attrs = &at;
    check(&g, mixt__cpu_cross_entropy_grad_kernels, 3e-6, 128 / fmax(1, (double)rows), "cross_entropy_grad");
    // in place: the gradient takes the logits' memory
    free(g.out[0].data);
    g.out[0] = logits;
    g.call.out = g.out;
    assert_int_equal(run(mixt__cpu_cross_entropy_grad_kernels[0], g.call), MIXT_OK);
    compare(&g, 0, 3e-6, 128 / fmax(1, (double)rows), "cross_entropy_grad in place");
    free(seed.data);
    free(g.expected[0].data);
    release(&f);
}

static void cross_entropies(void **state)
{
    (void)state;
    repeat(cross_entropy_problem, 100);
}

static void wrong_labels(void **state)
{
    (void)state;
    float logits[6] = {0}, loss, metrics[3], lse[2], seed = 1;
    int32_t labels[2] = {1, 3};
    mixt__loss_attrs at = {0};
    mixt__shape matrix = {2, {2, 3}}, two = {1, {2}}, three = {1, {3}}, one = {0};
    mixt__tensor in[5] = {{.data = logits, .dtype = MIXT_DTYPE_FP32, .shape = matrix},
                          {.data = labels, .dtype = MIXT_DTYPE_INT32, .shape = two},
                          {.data = lse, .dtype = MIXT_DTYPE_FP32, .shape = two},
                          {.data = metrics, .dtype = MIXT_DTYPE_FP32, .shape = three},
                          {.data = &seed, .dtype = MIXT_DTYPE_FP32, .shape = one}};
    mixt__tensor out[3] = {{.data = &loss, .dtype = MIXT_DTYPE_FP32}, in[3], in[2]}, grad = in[0];
    mixt__call call = {.attrs = &at, .in = in, .in_count = 2, .out = out, .out_count = 3};
    mixt__call grad_call = {.attrs = &at, .in = in, .in_count = 5, .out = &grad, .out_count = 1};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(run(mixt__cpu_cross_entropy_kernels[k], call), MIXT_ERROR_DATA);
        assert_non_null(strstr(mixt_error_text(), "row 1 has label 3, but there are 3 classes"));
        assert_int_equal(run(mixt__cpu_cross_entropy_grad_kernels[k], grad_call), MIXT_ERROR_DATA);
    }
    labels[0] = labels[1] = -5; // nothing counts
    for (int k = 0; k < 2; k++) {
        loss = metrics[2] = 7;
        assert_int_equal(run(mixt__cpu_cross_entropy_kernels[k], call), MIXT_OK);
        assert_true(loss == 0 && metrics[0] == 0 && metrics[1] == 0 && metrics[2] == 0);
        assert_int_equal(run(mixt__cpu_cross_entropy_grad_kernels[k], grad_call), MIXT_OK);
        for (int i = 0; i < 6; i++)
            assert_true(logits[i] == 0);
    }
}

/* ---- embedding ---- */

static void embedding_problem(void)
{
    fixture f = {0}, g = {0};
    int64_t rows = between(1, 50), columns = between(1, below(4) ? 40 : 2000);
    mixt__shape ids_shape = {2, {below(9), between(1, 30)}}, out = {3, {ids_shape.dims[0], ids_shape.dims[1], columns}};
    mixt_dtype dtype = random_dtype();
    bool accumulate = below(2);
    mixt__embedding_attrs at = {.count = rows};
    mixt__tensor ids = random_ids(ids_shape, rows, false);
    add_input(&f, random_tensor(dtype, (mixt__shape){2, {rows, columns}}));
    add_input(&f, ids);
    add_output(&f, dtype, out, false);
    check(&f, mixt__cpu_embedding_kernels, 0, 0, "embedding");
    add_input(&g, ids);
    add_input(&g, random_tensor(dtype, out));
    add_output(&g, MIXT_DTYPE_FP32, (mixt__shape){2, {rows, columns}}, accumulate);
    g.call.attrs = &at;
    check(&g, mixt__cpu_embedding_grad_kernels, 0, 0, "embedding_grad");
    if (mixt__shape_count(&ids_shape) > 0) {
        ((int32_t *)ids.data)[0] = (int32_t)rows;
        assert_int_equal(run(mixt__cpu_embedding_kernels[0], f.call), MIXT_ERROR_DATA);
        assert_int_equal(run(mixt__cpu_embedding_grad_kernels[0], g.call), MIXT_ERROR_DATA);
    }
    release(&f);
    g.in[0].data = NULL;
    release(&g);
}

static void embeddings(void **state)
{
    (void)state;
    repeat(embedding_problem, 150);
}

/* ---- copies ---- */

static mixt__shape random_shape(int rank)
{
    mixt__shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++)
        shape.dims[d] = below(25) == 0 ? 0 : between(1, below(4) ? 9 : 70);
    return shape;
}

/** A strided view of a larger tensor: transposed dimensions of a slice. */
static mixt__tensor random_view(mixt_dtype dtype, int rank)
{
    mixt__tensor whole = random_tensor(dtype, random_shape(rank)), view = whole;
    view.contiguous = false;
    for (int d = 0; d < rank; d++) {
        int other = (int)below(rank);
        int64_t size = view.shape.dims[d], stride = view.strides[d];
        view.shape.dims[d] = view.shape.dims[other];
        view.strides[d] = view.strides[other];
        view.shape.dims[other] = size;
        view.strides[other] = stride;
    }
    int d = (int)below(rank);
    view.shape.dims[d] -= view.shape.dims[d] > 1;
    return view;
}

static void view_problem(void)
{
    mixt_dtype dtype = random_dtype();
    int rank = (int)between(1, 4);
    fixture r = {0}, t = {0}, s = {0};
    mixt__tensor view = random_view(dtype, rank);
    mixt__reshape_attrs flat = {.shape = {1, {mixt__shape_count(&view.shape)}}};
    add_input(&r, view);
    add_output(&r, dtype, flat.shape, false);
    r.call.attrs = &flat;
    check(&r, mixt__cpu_reshape_kernels, 0, 0, "reshape");

    mixt__transpose_attrs order = {{0}};
    mixt__shape turned = {.rank = rank};
    int shift = (int)below(rank);
    for (int d = 0; d < rank; d++) {
        order.order[d] = (d + shift) % rank;
        turned.dims[d] = view.shape.dims[order.order[d]];
    }
    add_input(&t, view);
    add_output(&t, dtype, turned, false);
    t.call.attrs = &order;
    check(&t, mixt__cpu_transpose_kernels, 0, 0, "transpose");

    int axis = (int)below(rank);
    int64_t full = view.shape.dims[axis], begin = full ? below(full) : 0, end = full ? between(begin + 1, full) : 0;
    mixt__slice_attrs part = {.axis = axis, .begin = begin, .end = end, .full = full};
    mixt__shape piece = view.shape;
    piece.dims[axis] = end - begin;
    add_input(&s, view);
    add_output(&s, dtype, piece, false);
    s.call.attrs = &part;
    check(&s, mixt__cpu_slice_kernels, 0, 0, "slice");

    fixture g = {0};
    bool accumulate = below(2);
    add_input(&g, random_tensor(dtype, piece));
    add_output(&g, accumulate ? MIXT_DTYPE_FP32 : dtype, view.shape, accumulate);
    g.call.attrs = &part;
    check(&g, mixt__cpu_slice_grad_kernels, 0, 0, "slice_grad");
    t.call.in_count = s.call.in_count = 0; // the view belongs to the first problem
    release(&r);
    release(&t);
    release(&s);
    release(&g);
}

static void views(void **state)
{
    (void)state;
    repeat(view_problem, 300);
}

/** Split and concat undo each other. */
static void split_concat_problem(void)
{
    fixture s = {0}, c = {0};
    mixt_dtype dtype = random_dtype();
    mixt__shape shape = random_shape((int)between(1, 4)), part = shape;
    mixt__split_attrs split = {.parts = (int)between(1, 4)};
    mixt__concat_attrs concat = {.axis = shape.rank - 1};
    shape.dims[shape.rank - 1] *= split.parts;
    add_input(&s, random_tensor(dtype, shape));
    for (int o = 0; o < split.parts; o++)
        add_output(&s, dtype, part, false);
    s.call.attrs = &split;
    check(&s, mixt__cpu_split_kernels, 0, 0, "split");
    for (int o = 0; o < split.parts; o++)
        add_input(&c, s.out[o]);
    add_output(&c, dtype, shape, false);
    c.call.attrs = &concat;
    check(&c, mixt__cpu_concat_kernels, 0, 0, "concat");
    assert_memory_equal(c.out[0].data, s.in[0].data, (size_t)mixt__shape_count(&shape) * mixt_dtype_size(dtype));
    c.call.in_count = 0;
    release(&s);
    release(&c);
}

static void split_concat(void **state)
{
    (void)state;
    repeat(split_concat_problem, 150);
}

/* ---- row loops ---- */

/** Every instruction-set level gives the same bits, at every length. */
static void row_loops(void **state)
{
    (void)state;
    enum { MOST = 300 };
    const mixt__row_loops *levels[3] = {&mixt__row_loops_scalar, &mixt__row_loops_avx2, &mixt__row_loops_avx512};
    const mixt__isa needs[3] = {MIXT_ISA_SCALAR, MIXT_ISA_AVX2, MIXT_ISA_AVX512};
    float a[MOST], b[MOST], expected[MOST], got[MOST];
    rng = mixt__rng_start(SEED);
    for (int i = 0; i < MOST; i++) {
        a[i] = mixt__rng_normal(&rng);
        b[i] = mixt__rng_normal(&rng);
    }
    for (int l = 1; l < 3 && needs[l] <= mixt__isa_level(); l++)
        for (int count = 0; count <= MOST; count++) {
            assert_true(levels[l]->sum(a, count) == levels[0]->sum(a, count));
            assert_true(levels[l]->dot(a, b, count) == levels[0]->dot(a, b, count));
            assert_true(levels[l]->max(a, count) == levels[0]->max(a, count));
            levels[0]->exp_below_affine(expected, a, 4, 0.1f, 3, count);
            levels[l]->exp_below_affine(got, a, 4, 0.1f, 3, count);
            assert_memory_equal(got, expected, (size_t)count * sizeof *got);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions),   cmocka_unit_test(softmaxes),  cmocka_unit_test(cross_entropies),
        cmocka_unit_test(wrong_labels), cmocka_unit_test(embeddings), cmocka_unit_test(views),
        cmocka_unit_test(split_concat), cmocka_unit_test(row_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
