/* Matrix products by oneDNN, in BF16 on CPUs that multiply it.
 *
 * The second operand is a parameter in most products and changes at every step: it is reordered at each run into the
 * layout that oneDNN prefers. FP32 products are left to the engine, which measures as fast.
 */
#include "backend/cpu/core/program_onednn.h"
#include "base/isa.h"
#include "ops/attrs.h"

extern const mixt__kernel mixt__cpu_matmul_onednn;

enum { FEWEST_PRODUCTS = 64 * 1024 }; // below, the cost of calling oneDNN shows

typedef struct descs {
    int64_t batch, m, n, k;
    dnnl_memory_desc_t a, b, b_any, bias, c; // (batch, …, …), or without batch where there is but one product
} descs;

static dnnl_memory_desc_t matrix(const descs *d, int64_t rows, int64_t cols, bool turned, dnnl_data_type_t type)
{
    static const int plain[] = {0, 1, 2}, swapped[] = {0, 2, 1};
    int64_t stored[] = {d->batch, turned ? cols : rows, turned ? rows : cols};
    static const int plain2[] = {0, 1}, swapped2[] = {1, 0};
    if (d->batch == 1)
        return mixt__onednn_plain(stored + 1, 2, turned ? swapped2 : plain2, type);
    return mixt__onednn_plain(stored, 3, turned ? swapped : plain, type);
}

static descs descs_of(const mixt__call *call)
{
    const mixt__matmul_attrs *attrs = call->attrs;
    const mixt__shape *a = &call->in[0].shape, *b = &call->in[1].shape;
    bool rows = b->rank == 2 && a->rank != 2;
    descs d = {.batch = 1, .m = 1};
    d.n = b->dims[b->rank - 1 - attrs->trans_b];
    d.k = b->dims[b->rank - 2 + attrs->trans_b];
    if (!rows)
        d.m = a->dims[a->rank - 2 + attrs->trans_a];
    for (int i = 0; i < a->rank - (rows ? 1 : 2); i++)
        *(rows ? &d.m : &d.batch) *= a->dims[i];
    dnnl_data_type_t type = mixt__onednn_type(call->in[0].dtype);
    d.a = matrix(&d, d.m, d.k, attrs->trans_a, type);
    d.b = matrix(&d, d.k, d.n, attrs->trans_b, type);
    d.c = matrix(&d, d.m, d.n, false, mixt__onednn_type(call->out[0].dtype));
    if (dnnl_memory_desc_init_by_tag(&d.b_any, d.b.ndims, d.b.dims, type, dnnl_format_tag_any) != dnnl_success)
        d.b_any = d.b;
    int64_t bias[] = {1, 1, d.n};
    static const int order[] = {0, 1, 2};
    d.bias = mixt__onednn_plain(bias + 3 - d.c.ndims, d.c.ndims, order, dnnl_f32);
    return d;
}

static dnnl_status_t make_desc(const mixt__call *call, const descs *d, bool add, dnnl_primitive_desc_t *desc)
{
    const mixt__matmul_attrs *attrs = call->attrs;
    dnnl_matmul_desc_t m;
    dnnl_status_t status = dnnl_matmul_desc_init(&m, &d->a, &d->b_any, attrs->bias ? &d->bias : NULL, &d->c);
    if (status != dnnl_success)
        return status;
    dnnl_primitive_attr_t attributes = mixt__onednn_attributes(add);
    status =
        attributes ? dnnl_primitive_desc_create(desc, &m, attributes, mixt__onednn_engine(), NULL) : dnnl_out_of_memory;
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

typedef struct operands {
    int a, b, bias, c;
} operands;

static mixt_status add_product(mixt__onednn_program *p, const mixt__call *call, const operands *o,
                               const_dnnl_primitive_desc_t desc, mixt__onednn_when when)
{
    const mixt__matmul_attrs *attrs = call->attrs;
    mixt__onednn_arg args[] = {
        {DNNL_ARG_SRC, o->a}, {DNNL_ARG_WEIGHTS, o->b}, {DNNL_ARG_DST, o->c}, {DNNL_ARG_BIAS, o->bias}};
    return mixt__onednn_step(p, desc, when, args, attrs->bias ? 4 : 3);
}

/** The product that overwrites, and for a parameter gradient the one that adds: both read the same layout. */
static mixt_status build(mixt__onednn_program *p, const mixt__call *call, descs *d, const_dnnl_primitive_desc_t desc)
{
    const mixt__matmul_attrs *attrs = call->attrs;
    const dnnl_memory_desc_t *preferred = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    operands o = {0};
    MIXT_TRY(mixt__onednn_memory(p, &d->a, MIXT_ONEDNN_IN0, &o.a));
    MIXT_TRY(mixt__onednn_memory(p, &d->b, MIXT_ONEDNN_IN1, &o.b));
    MIXT_TRY(mixt__onednn_memory(p, &d->c, MIXT_ONEDNN_OUT, &o.c));
    if (attrs->bias)
        MIXT_TRY(mixt__onednn_memory(p, &d->bias, MIXT_ONEDNN_IN2, &o.bias));
    if (!dnnl_memory_desc_equal(preferred, &d->b)) {
        int user = o.b;
        MIXT_TRY(mixt__onednn_memory(p, preferred, MIXT_ONEDNN_WORKSPACE, &o.b));
        MIXT_TRY(mixt__onednn_reorder(p, user, o.b, false, MIXT_ONEDNN_ALWAYS));
    }
    if (call->out[0].dtype != MIXT_DTYPE_FP32)
        return add_product(p, call, &o, desc, MIXT_ONEDNN_ALWAYS);
    MIXT_TRY(add_product(p, call, &o, desc, MIXT_ONEDNN_IF_OVERWRITING));
    dnnl_primitive_desc_t adding = NULL;
    d->b_any = *preferred;
    MIXT_TRY_ONEDNN(make_desc(call, d, true, &adding), "a matrix product");
    mixt_status status = add_product(p, call, &o, adding, MIXT_ONEDNN_IF_ACCUMULATING);
    dnnl_primitive_desc_destroy(adding);
    return status;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    descs d = descs_of(call);
    dnnl_primitive_desc_t desc = NULL;
    mixt__onednn_program *program = mixt__arena_alloc(arena, sizeof *program);
    if (!program)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a matrix product");
    MIXT_TRY_ONEDNN(make_desc(call, &d, false, &desc), "a matrix product");
    mixt_status status = build(program, call, &d, desc);
    dnnl_primitive_desc_destroy(desc);
    return mixt__onednn_keep(call, program, status);
}

static bool has_fast_code(const mixt__call *call, const descs *d)
{
    dnnl_primitive_desc_t desc = NULL;
    if (make_desc(call, d, false, &desc) != dnnl_success)
        return false;
    bool fast = mixt__onednn_is_fast(desc);
    dnnl_primitive_desc_destroy(desc);
    return fast;
}

static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__matmul_attrs *attrs = call->attrs;
    const mixt__tensor *a = &call->in[0], *b = &call->in[1], *c = &call->out[0];
    *reason = NULL;
    if (a->dtype != MIXT_DTYPE_BF16 || b->dtype != MIXT_DTYPE_BF16)
        *reason = "oneDNN: only bf16, FP32 is as fast in the engine";
    else if (c->dtype != MIXT_DTYPE_BF16 && c->dtype != MIXT_DTYPE_FP32)
        *reason = "oneDNN: the result must be bf16 or fp32";
    else if (mixt__isa_level() < MIXT_ISA_AVX512_BF16)
        *reason = "this CPU has no BF16 products";
    else if (!a->contiguous || !b->contiguous || !c->contiguous)
        *reason = "oneDNN: an operand is a strided view";
    else if (attrs->addend || attrs->row_sums || attrs->epilogue != MIXT_EPILOGUE_NONE)
        *reason = "oneDNN: an addend or an activation in the product";
    else if (attrs->alpha != 1.0f)
        *reason = "oneDNN: a scaled product";
    else if (!mixt__onednn_engine())
        *reason = "oneDNN cannot start";
    if (*reason)
        return false;
    descs d = descs_of(call);
    if ((double)d.batch * (double)d.m * (double)d.n * (double)d.k < FEWEST_PRODUCTS)
        *reason = "too small to be worth a call of oneDNN";
    else if (!has_fast_code(call, &d))
        *reason = "oneDNN has only its reference code for this shape";
    return !*reason;
}

const mixt__kernel mixt__cpu_matmul_onednn = {.name = "onednn",
                                              .supports = supports,
                                              .prepare = prepare,
                                              .run = mixt__onednn_run,
                                              .release = mixt__onednn_release};
