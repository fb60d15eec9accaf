/* From a pointwise program to CUDA C: formats, broadcasts and sizes become constants of the text.
 *
 * One function template holds the program: it loads `unroll` vectors of every input before it computes, so that many
 * accesses are in flight, and converts in registers. Two kernels use it: vectors of up to 16 bytes an access, and
 * single elements for memory that is not aligned. Vectors never cross a row: the vector divides the innermost
 * dimension, or the domain is one row, whose rest the last block does element by element.
 */
#include "backend/cuda/pointwise/pointwise.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- joining dimensions ---- */

static int64_t stride_of(const mixt__tensor *t, int rank, int d)
{
    int i = d - (rank - t->shape.rank);
    return i >= 0 && t->shape.dims[i] != 1 ? t->strides[i] : 0;
}

void mixt__pw_domain_of(const mixt__call *call, mixt__pw_domain *domain)
{
    const mixt__shape *shape = &call->out[0].shape;
    int rank = 0;
    memset(domain, 0, sizeof *domain);
    domain->count = mixt__tensor_count(&call->out[0]);
    for (int d = 0; d < shape->rank; d++) {
        int64_t size = shape->dims[d];
        bool joins = rank > 0;
        if (size == 1)
            continue;
        for (int i = 0; i < call->in_count && joins; i++)
            joins = domain->strides[i][rank - 1] == size * stride_of(&call->in[i], shape->rank, d);
        if (!joins)
            domain->dims[rank++] = 1;
        domain->dims[rank - 1] *= size;
        for (int i = 0; i < call->in_count; i++)
            domain->strides[i][rank - 1] = stride_of(&call->in[i], shape->rank, d);
    }
    if (rank == 0)
        domain->dims[rank++] = 1;
    domain->rank = rank;
}

/** Elements of an input that the program reads, repeats counted once. */
static int64_t distinct(const mixt__pw_domain *domain, int i)
{
    int64_t count = 1;
    for (int d = 0; d < domain->rank; d++)
        count *= domain->strides[i][d] ? domain->dims[d] : 1;
    return count;
}

mixt__pw_cut mixt__pw_cut_of(const mixt__call *call, const mixt__pw_domain *domain, int multiprocessors)
{
    enum { ACCESS = 16, FLYING = 4 };
    const mixt__pointwise_attrs *at = call->attrs;
    mixt__pw_cut cut = {.vector = 1, .unroll = 1, .wide = domain->count > INT32_MAX};
    size_t widest = 0, loaded = 0; // bytes of an element that come or go with each element of the domain
    for (int o = 0; o < call->out_count; o++)
        widest = mixt_dtype_size(call->out[o].dtype) > widest ? mixt_dtype_size(call->out[o].dtype) : widest;
    for (int i = 0; i < call->in_count; i++) {
        size_t size = mixt_dtype_size(call->in[i].dtype);
        if (distinct(domain, i) * 4 < domain->count) // stays in the cache
            continue;
        loaded += size;
        widest = size > widest ? size : widest;
    }
    int64_t inner = domain->dims[domain->rank - 1];
    cut.vector = ACCESS / (int)widest;
    while (domain->rank > 1 && inner % cut.vector)
        cut.vector /= 2;
    size_t bytes = loaded * (size_t)cut.vector;
    int64_t threads = domain->count / cut.vector;
    int most = FLYING;
    for (int k = 0; k < at->instr_count; k++)
        if (at->instrs[k].code == MIXT_PW_DROPOUT) // much code for each vector
            most = 2;
    while (cut.unroll < most && bytes * (size_t)cut.unroll * 2 <= (size_t)ACCESS * FLYING &&
           threads / cut.unroll >= (int64_t)8 * multiprocessors * MIXT_PW_THREADS)
        cut.unroll *= 2;
    return cut;
}

/* ---- text ---- */

typedef struct text {
    char *data;
    int64_t used, size;
    bool failed;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...)
{
    for (int attempt = 0; attempt < 2 && !t->failed; attempt++) {
        va_list list;
        va_start(list, format);
        int length = vsnprintf(t->data ? t->data + t->used : NULL, (size_t)(t->size - t->used), format, list);
        va_end(list);
        if (t->used + length < t->size) {
            t->used += length;
            return;
        }
        int64_t size = 2 * t->size + length + 4096;
        char *data = mixt__realloc(t->data, (size_t)size);
        t->failed = !data;
        t->data = data ? data : t->data;
        t->size = data ? size : t->size;
    }
}

#define MIXT_PW_CODE(...) #__VA_ARGS__
static const char instructions[] =
#include "backend/cuda/pointwise/instructions.h"
    ;
#undef MIXT_PW_CODE

/** Packs of 1 to 16 bytes that move in one access, and their elements as floats. */
static const char packs[] =
    "template <int N> struct pw_pack { unsigned w[(N + 3) / 4]; };\n"
    "static __device__ __forceinline__ void pw_load(pw_pack<1> &x, const void *p)"
    " { x.w[0] = *(const unsigned char *)p; }\n"
    "static __device__ __forceinline__ void pw_load(pw_pack<2> &x, const void *p)"
    " { x.w[0] = *(const unsigned short *)p; }\n"
    "static __device__ __forceinline__ void pw_load(pw_pack<4> &x, const void *p) { x.w[0] = *(const unsigned *)p; }\n"
    "static __device__ __forceinline__ void pw_load(pw_pack<8> &x, const void *p)"
    " { uint2 t = *(const uint2 *)p; x.w[0] = t.x; x.w[1] = t.y; }\n"
    "template <int N> static __device__ __forceinline__ void pw_load(pw_pack<N> &x, const void *p)\n"
    "{\n"
    "  _Pragma(\"unroll\") for (int i = 0; i < N / 16; i++) {\n"
    "    uint4 t = ((const uint4 *)p)[i];\n"
    "    x.w[4 * i] = t.x; x.w[4 * i + 1] = t.y; x.w[4 * i + 2] = t.z; x.w[4 * i + 3] = t.w;\n"
    "  }\n"
    "}\n"
    "static __device__ __forceinline__ void pw_store(const pw_pack<2> &x, void *p)"
    " { *(unsigned short *)p = (unsigned short)x.w[0]; }\n"
    "static __device__ __forceinline__ void pw_store(const pw_pack<4> &x, void *p) { *(unsigned *)p = x.w[0]; }\n"
    "static __device__ __forceinline__ void pw_store(const pw_pack<8> &x, void *p)"
    " { *(uint2 *)p = make_uint2(x.w[0], x.w[1]); }\n"
    "template <int N> static __device__ __forceinline__ void pw_store(const pw_pack<N> &x, void *p)\n"
    "{\n"
    "  _Pragma(\"unroll\") for (int i = 0; i < N / 16; i++)\n"
    "    ((uint4 *)p)[i] = make_uint4(x.w[4 * i], x.w[4 * i + 1], x.w[4 * i + 2], x.w[4 * i + 3]);\n"
    "}\n"
    "template <int N> static __device__ __forceinline__ float pw_get_fp32(const pw_pack<N> &x, int j)"
    " { return __uint_as_float(x.w[j]); }\n"
    "template <int N> static __device__ __forceinline__ float pw_get_bf16(const pw_pack<N> &x, int j)"
    " { return __uint_as_float(j & 1 ? x.w[j / 2] & 0xffff0000u : x.w[j / 2] << 16); }\n"
    "template <int N> static __device__ __forceinline__ float pw_get_fp16(const pw_pack<N> &x, int j)\n"
    "{\n"
    "  float f;\n"
    "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"((unsigned short)(j & 1 ? x.w[j / 2] >> 16 : x.w[j / 2])));\n"
    "  return f;\n"
    "}\n"
    // FP16's layout with three bits of mantissa fewer and exponents lower by 8; all ones is NaN
    "template <int N> static __device__ __forceinline__ float pw_get_fp8_e4m3(const pw_pack<N> &x, int j)\n"
    "{\n"
    "  unsigned b = x.w[j / 4] >> (8 * (j & 3));\n"
    "  float f;\n"
    "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"((unsigned short)((b & 0x80u) << 8 | (b & 0x7fu) << 7)));\n"
    "  return (b & 0x7fu) == 0x7fu ? __uint_as_float(0x7fc00000u) : f * 256.0f;\n"
    "}\n";

/** Floats to packs, nearest even: the two low formats as 16 bits, then whole packs. */
static const char halves_sm80[] =
    "static __device__ __forceinline__ unsigned pw_pair_bf16(float lo, float hi)"
    " { unsigned r; asm(\"cvt.rn.bf16x2.f32 %0, %1, %2;\" : \"=r\"(r) : \"f\"(hi), \"f\"(lo)); return r; }\n"
    "static __device__ __forceinline__ unsigned pw_pair_fp16(float lo, float hi)"
    " { unsigned r; asm(\"cvt.rn.f16x2.f32 %0, %1, %2;\" : \"=r\"(r) : \"f\"(hi), \"f\"(lo)); return r; }\n";
static const char halves_sm70[] =
    "static __device__ __forceinline__ unsigned pw_half_bf16(float f)\n"
    "{\n"
    "  unsigned u = __float_as_uint(f);\n"
    "  return f != f ? 0x7fffu : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;\n"
    "}\n"
    "static __device__ __forceinline__ unsigned pw_half_fp16(float f)"
    " { unsigned short r; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(f)); return r; }\n"
    "static __device__ __forceinline__ unsigned pw_pair_bf16(float lo, float hi)"
    " { return pw_half_bf16(lo) | pw_half_bf16(hi) << 16; }\n"
    "static __device__ __forceinline__ unsigned pw_pair_fp16(float lo, float hi)"
    " { return pw_half_fp16(lo) | pw_half_fp16(hi) << 16; }\n";
static const char puts_[] =
    "template <int V> static __device__ __forceinline__ void pw_put_fp32(void *p, const float *y)\n"
    "{\n"
    "  pw_pack<4 * V> x;\n"
    "  _Pragma(\"unroll\") for (int j = 0; j < V; j++) x.w[j] = __float_as_uint(y[j]);\n"
    "  pw_store(x, p);\n"
    "}\n"
    "template <int V> static __device__ __forceinline__ void pw_put_bf16(void *p, const float *y)\n"
    "{\n"
    "  pw_pack<2 * V> x;\n"
    "  _Pragma(\"unroll\") for (int j = 0; j < V; j += 2) x.w[j / 2] = pw_pair_bf16(y[j], V > 1 ? y[j + 1] : 0.0f);\n"
    "  pw_store(x, p);\n"
    "}\n"
    "template <int V> static __device__ __forceinline__ void pw_put_fp16(void *p, const float *y)\n"
    "{\n"
    "  pw_pack<2 * V> x;\n"
    "  _Pragma(\"unroll\") for (int j = 0; j < V; j += 2) x.w[j / 2] = pw_pair_fp16(y[j], V > 1 ? y[j + 1] : 0.0f);\n"
    "  pw_store(x, p);\n"
    "}\n";

/* ---- the program ---- */

typedef struct program {
    text *t;
    const mixt__call *call;
    const mixt__pointwise_attrs *at;
    const mixt__pw_domain *domain;
} program;

static const char *const instr_names[] = {
#define MIXT_PW_NAME(code, name, operands) name,
    MIXT_POINTWISE_LIST(MIXT_PW_NAME)
#undef MIXT_PW_NAME
};

static const int instr_operands[] = {
#define MIXT_PW_OPERANDS(code, name, operands) operands,
    MIXT_POINTWISE_LIST(MIXT_PW_OPERANDS)
#undef MIXT_PW_OPERANDS
};

static unsigned bits_of(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static bool repeated(const program *p, int i)
{
    return p->domain->strides[i][p->domain->rank - 1] == 0;
}

/** Positions c1 … c(rank - 1) in the inner dimensions and c0 in the outermost, then the place in each input. */
static void put_places(const program *p)
{
    const mixt__pw_domain *domain = p->domain;
    put(p->t, "      pw_index rest = e;\n");
    for (int d = domain->rank - 1; d > 0; d--)
        put(p->t, "      pw_index c%d = rest %% (pw_index)%lldull; rest /= (pw_index)%lldull;\n", d,
            (long long)domain->dims[d], (long long)domain->dims[d]);
    put(p->t, "      pw_index c0 = rest;\n");
    for (int i = 0; i < p->call->in_count; i++) {
        put(p->t, "      pw_load(x%d[u], (const char *)p.in[%d] + %zu * (unsigned long long)(", i, i,
            mixt_dtype_size(p->call->in[i].dtype));
        if (distinct(domain, i) == domain->count)
            put(p->t, "e + ");
        for (int d = 0; d < domain->rank && distinct(domain, i) < domain->count; d++)
            if (domain->strides[i][d])
                put(p->t, "c%d * (pw_index)%lldull + ", d, (long long)domain->strides[i][d]);
        put(p->t, "0));\n");
    }
}

static void put_instr(const program *p, int k)
{
    const mixt__pw_instr *in = &p->at->instrs[k];
    int operand[3] = {in->a, in->b, in->c};
    put(p->t, "        float r%d = pw_%s(", p->at->in_count + k, instr_names[in->code]);
    for (int i = 0; i < instr_operands[in->code]; i++)
        put(p->t, "%sr%d", i ? ", " : "", operand[i]);
    if (mixt__pw_has_constants(in->code))
        put(p->t, ", __uint_as_float(%uu), __uint_as_float(%uu)", bits_of(in->imm), bits_of(in->imm2));
    if (in->code == MIXT_PW_DROPOUT)
        put(p->t, ", word%d[j], %uu, __uint_as_float(%uu)", k, mixt__pw_threshold(in->imm),
            bits_of(mixt__pw_scale(in->imm)));
    put(p->t, ");\n");
}

/** The random words of a vector: whole blocks of four, or one word of a block for each element. */
static void put_words(const program *p, int k)
{
    put(p->t,
        "      unsigned word%d[V];\n"
        "      _Pragma(\"unroll\") for (int j = 0; j < V; j += V < 4 ? 1 : 4) {\n"
        "        uint4 block = pw_random(key%d, (unsigned long long)(e + j) / 4);\n"
        "        _Pragma(\"unroll\") for (int i = 0; i < (V < 4 ? 1 : 4); i++)\n"
        "          word%d[j + i] = pw_word(block, V < 4 ? (unsigned)(e + j) & 3u : i);\n"
        "      }\n",
        k, k, k);
}

static void put_elements(const program *p)
{
    const mixt__pointwise_attrs *at = p->at;
    put(p->t, "      float y[%d][V];\n", at->out_count);
    put(p->t, "      _Pragma(\"unroll\") for (int j = 0; j < V; j++) {\n");
    for (int i = 0; i < at->in_count; i++)
        put(p->t, "        float r%d = pw_get_%s(x%d[u], %s);\n", i, mixt_dtype_name(p->call->in[i].dtype), i,
            repeated(p, i) ? "0" : "j");
    for (int k = 0; k < at->instr_count; k++)
        put_instr(p, k);
    for (int o = 0; o < at->out_count; o++)
        put(p->t, "        y[%d][j] = r%d;\n", o, at->outs[o]);
    put(p->t, "      }\n");
    for (int o = 0; o < at->out_count; o++)
        put(p->t, "      pw_put_%s<V>((char *)p.out[%d] + %zu * (unsigned long long)e, y[%d]);\n",
            mixt_dtype_name(p->call->out[o].dtype), o, mixt_dtype_size(p->call->out[o].dtype), o);
}

/** `first` and `limit` count vectors; WHOLE: all of them are below the limit. */
static void put_group(const program *p)
{
    put(p->t, "template <int V, int U, bool WHOLE> static __device__ __forceinline__ void pw_group(const pw_arguments "
              "&p, pw_index first, pw_index limit)\n{\n");
    for (int k = 0; k < p->at->instr_count; k++)
        if (p->at->instrs[k].code == MIXT_PW_DROPOUT)
            put(p->t, "  const unsigned long long key%d = pw_stream_key(*p.rng_key, %uu);\n", k, p->at->instrs[k].key);
    for (int i = 0; i < p->at->in_count; i++)
        put(p->t, "  pw_pack<%zu%s> x%d[U];\n", mixt_dtype_size(p->call->in[i].dtype), repeated(p, i) ? "" : " * V", i);
    put(p->t, "  _Pragma(\"unroll\") for (int u = 0; u < U; u++) {\n"
              "    pw_index v = first + u * PW_THREADS;\n"
              "    if (WHOLE || v < limit) {\n      pw_index e = v * V;\n");
    put_places(p);
    put(p->t, "    }\n  }\n"
              "  _Pragma(\"unroll\") for (int u = 0; u < U; u++) {\n"
              "    pw_index v = first + u * PW_THREADS;\n"
              "    if (WHOLE || v < limit) {\n      pw_index e = v * V;\n");
    for (int k = 0; k < p->at->instr_count; k++)
        if (p->at->instrs[k].code == MIXT_PW_DROPOUT)
            put_words(p, k);
    put_elements(p);
    put(p->t, "    }\n  }\n}\n");
}

static void put_kernel(text *t, const char *name, int vector, int unroll, bool rest)
{
    put(t,
        "extern \"C\" __global__ void __launch_bounds__(PW_THREADS) %s(const pw_arguments p)\n"
        "{\n"
        "  const pw_index limit = (pw_index)(p.count / %d), start = (pw_index)blockIdx.x * (PW_THREADS * %d);\n"
        "  if (start + PW_THREADS * %d <= limit)\n"
        "    pw_group<%d, %d, true>(p, start + threadIdx.x, limit);\n"
        "  else\n"
        "    pw_group<%d, %d, false>(p, start + threadIdx.x, limit);\n",
        name, vector, unroll, unroll, vector, unroll, vector, unroll);
    if (rest)
        put(t,
            "  if (blockIdx.x == gridDim.x - 1)\n"
            "    pw_group<1, 1, false>(p, limit * %d + threadIdx.x, (pw_index)p.count);\n",
            vector);
    put(t, "}\n");
}

char *mixt__pw_text(const mixt__call *call, const mixt__pw_domain *domain, mixt__pw_cut cut, int sm)
{
    text t = {0};
    program p = {.t = &t, .call = call, .at = call->attrs, .domain = domain};
    put(&t, "%s\n%s%s%s", instructions, packs, sm >= 80 ? halves_sm80 : halves_sm70, puts_);
    put(&t,
        "enum { PW_THREADS = %d };\n"
        "typedef unsigned %s pw_index;\n"
        "struct pw_arguments { const void *in[%d]; void *out[%d]; const unsigned long long *rng_key; unsigned long "
        "long count; };\n",
        MIXT_PW_THREADS, cut.wide ? "long long" : "int", MIXT_PW_MAX_INPUTS, MIXT_PW_MAX_OUTPUTS);
    put_group(&p);
    put_kernel(&t, "pw_vector", cut.vector, cut.unroll, domain->rank == 1 && cut.vector > 1);
    put_kernel(&t, "pw_scalar", 1, cut.unroll, false);
    if (t.failed) {
        mixt__free(t.data);
        return NULL;
    }
    return t.data;
}
