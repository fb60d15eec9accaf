/* Programs of oneDNN primitives: the engine, memory, steps. */
#include "backend/cpu/core/program_onednn.h"

#include "base/isa.h"
#include "base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <string.h>

enum { ALIGN = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_stream_t stream; // work on the CPU is done when execute returns, so one stream serves all callers

static void make_engine(void)
{
    static const dnnl_cpu_isa_t limit[MIXT_ISA_COUNT] = {dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2,
                                                         dnnl_cpu_isa_avx512_core, dnnl_cpu_isa_avx512_core_bf16,
                                                         dnnl_cpu_isa_all};
    dnnl_set_max_cpu_isa(
        limit[mixt__isa_level()]); // fails when the program itself used oneDNN before: then its limit holds
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
    else if (dnnl_stream_create(&stream, engine, dnnl_stream_in_order) != dnnl_success) {
        dnnl_engine_destroy(engine);
        engine = NULL;
    }
}

dnnl_engine_t mixt__onednn_engine(void)
{
    pthread_once(&once, make_engine);
    return engine;
}

mixt_status mixt__onednn_failed(dnnl_status_t status, const char *what)
{
    if (status == dnnl_out_of_memory)
        return mixt__fail(MIXT_ERROR_MEMORY, "oneDNN has no memory for %s: use a smaller batch", what);
    return mixt__fail(MIXT_ERROR_DEVICE,
                      "oneDNN failed in %s (its status %d): build with -DMIXT_ONEDNN=OFF to do without", what,
                      (int)status);
}

dnnl_data_type_t mixt__onednn_type(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_FP32 ? dnnl_f32 : dtype == MIXT_DTYPE_BF16 ? dnnl_bf16 : dnnl_data_type_undef;
}

dnnl_memory_desc_t mixt__onednn_plain(const int64_t *dims, int rank, const int *order, dnnl_data_type_t type)
{
    dnnl_dims_t strides = {0}, sizes = {0}, turned = {0};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= dims[i];
    }
    for (int i = 0; i < rank; i++) {
        sizes[i] = dims[order[i]];
        turned[i] = strides[order[i]];
    }
    dnnl_memory_desc_t desc;
    if (dnnl_memory_desc_init_by_strides(&desc, rank, sizes, type, turned) != dnnl_success)
        desc = (dnnl_memory_desc_t){0};
    return desc;
}

dnnl_primitive_attr_t mixt__onednn_attributes(bool add)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t after = NULL;
    if (dnnl_primitive_attr_create(&attributes) != dnnl_success)
        return NULL;
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && add) {
        status = dnnl_post_ops_create(&after);
        if (status == dnnl_success)
            status = dnnl_post_ops_append_sum(after, 1.0f);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(attributes, after);
        dnnl_post_ops_destroy(after);
    }
    if (status == dnnl_success)
        return attributes;
    dnnl_primitive_attr_destroy(attributes);
    return NULL;
}

mixt_status mixt__onednn_memory(mixt__onednn_program *p, const dnnl_memory_desc_t *desc, mixt__onednn_source source,
                                int *index)
{
    if (p->memory_count == MIXT_ONEDNN_MEMORIES)
        return mixt__fail(MIXT_ERROR_INTERNAL, "a oneDNN program has more than %d memories", MIXT_ONEDNN_MEMORIES);
    int i = p->memory_count;
    MIXT_TRY_ONEDNN(dnnl_memory_create(&p->memory[i].object, desc, mixt__onednn_engine(), DNNL_MEMORY_NONE),
                    "a memory");
    size_t bytes = (dnnl_memory_desc_get_size(desc) + ALIGN - 1) / ALIGN * ALIGN;
    p->memory[i].source = source;
    if (source == MIXT_ONEDNN_WORKSPACE) {
        p->memory[i].offset = p->workspace_bytes;
        p->workspace_bytes += bytes;
    } else if (source == MIXT_ONEDNN_SCRATCH && bytes > p->scratch_bytes) {
        p->scratch_bytes = bytes;
    }
    p->memory_count++;
    *index = i;
    return MIXT_OK;
}

mixt_status mixt__onednn_step(mixt__onednn_program *p, const_dnnl_primitive_desc_t desc, mixt__onednn_when when,
                              const mixt__onednn_arg *args, int count)
{
    const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    if (p->step_count == MIXT_ONEDNN_STEPS || count >= MIXT_ONEDNN_ARGS)
        return mixt__fail(MIXT_ERROR_INTERNAL, "a oneDNN program has too many steps or arguments");
    int s = p->step_count;
    MIXT_TRY_ONEDNN(dnnl_primitive_create(&p->step[s].primitive, desc), "a primitive");
    p->step_count++;
    p->step[s].when = when;
    for (int i = 0; i < count; i++)
        p->step[s].args[i] = (dnnl_exec_arg_t){args[i].name, p->memory[args[i].memory].object};
    p->step[s].arg_count = count;
    if (scratch && dnnl_memory_desc_get_size(scratch) > 0) {
        int memory;
        MIXT_TRY(mixt__onednn_memory(p, scratch, MIXT_ONEDNN_SCRATCH, &memory));
        p->step[s].args[p->step[s].arg_count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, p->memory[memory].object};
    }
    return MIXT_OK;
}

mixt_status mixt__onednn_reorder(mixt__onednn_program *p, int from, int to, bool add, mixt__onednn_when when)
{
    const dnnl_memory_desc_t *source, *target;
    dnnl_primitive_desc_t desc = NULL;
    MIXT_TRY_ONEDNN(dnnl_memory_get_memory_desc(p->memory[from].object, &source), "a reorder");
    MIXT_TRY_ONEDNN(dnnl_memory_get_memory_desc(p->memory[to].object, &target), "a reorder");
    dnnl_primitive_attr_t attributes = mixt__onednn_attributes(add);
    if (!attributes)
        return mixt__onednn_failed(dnnl_out_of_memory, "attributes");
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&desc, source, mixt__onednn_engine(), target,
                                                              mixt__onednn_engine(), attributes);
    dnnl_primitive_attr_destroy(attributes);
    MIXT_TRY_ONEDNN(status, "a reorder");
    mixt__onednn_arg args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    mixt_status result = mixt__onednn_step(p, desc, when, args, 2);
    dnnl_primitive_desc_destroy(desc);
    return result;
}

static void *address(const mixt__onednn_program *p, const mixt__call *call, int memory)
{
    mixt__onednn_source source = p->memory[memory].source;
    if (source == MIXT_ONEDNN_WORKSPACE)
        return (char *)call->workspace + p->memory[memory].offset;
    if (source == MIXT_ONEDNN_SCRATCH)
        return (char *)call->workspace + p->workspace_bytes;
    return source == MIXT_ONEDNN_OUT ? call->out[0].data : call->in[source - MIXT_ONEDNN_IN0].data;
}

mixt_status mixt__onednn_run(const mixt__call *call)
{
    const mixt__onednn_program *p = call->state;
    bool accumulate = call->accumulate & 1u;
    if (omp_get_max_threads() != mixt__threads_count())
        omp_set_num_threads(mixt__threads_count());
    for (int i = 0; i < p->memory_count; i++)
        MIXT_TRY_ONEDNN(dnnl_memory_set_data_handle(p->memory[i].object, address(p, call, i)), "binding memory");
    for (int i = 0; i < p->step_count; i++) {
        if (p->step[i].when == (accumulate ? MIXT_ONEDNN_IF_OVERWRITING : MIXT_ONEDNN_IF_ACCUMULATING))
            continue;
        MIXT_TRY_ONEDNN(dnnl_primitive_execute(p->step[i].primitive, stream, p->step[i].arg_count, p->step[i].args),
                        "a primitive");
    }
    return MIXT_OK;
}

static void destroy(mixt__onednn_program *p)
{
    for (int i = 0; i < p->step_count; i++)
        dnnl_primitive_destroy(p->step[i].primitive);
    for (int i = 0; i < p->memory_count; i++)
        dnnl_memory_destroy(p->memory[i].object);
    p->step_count = p->memory_count = 0;
}

mixt_status mixt__onednn_keep(mixt__call *call, mixt__onednn_program *program, mixt_status built)
{
    if (built != MIXT_OK) {
        destroy(program);
        return built;
    }
    call->state = program;
    call->workspace_bytes = program->workspace_bytes + program->scratch_bytes;
    return MIXT_OK;
}

void mixt__onednn_release(mixt__call *call)
{
    if (call->state)
        destroy(call->state);
}

bool mixt__onednn_is_fast(const_dnnl_primitive_desc_t desc)
{
    const char *name = NULL;
    return dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name) == dnnl_success && name &&
           (strstr(name, "jit") || strstr(name, "brg"));
}
