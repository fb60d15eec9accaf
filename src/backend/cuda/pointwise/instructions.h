/* The instructions of pointwise programs on the GPU, one function each, named pw_<instruction>.
 *
 * Read twice: as code by the interpreter (plain.cu), and as text that the generator puts before each program
 * it compiles (text.c). The includer says which by defining MIXT_PW_CODE(...) as its arguments or as their
 * spelling; so there are no directives inside, and nothing that a header would have to declare. NaN goes where
 * ops/attrs.h says.
 */
// clang-format off
MIXT_PW_CODE(
static __device__ __forceinline__ float pw_copy(float a) { return a; }
static __device__ __forceinline__ float pw_add(float a, float b) { return a + b; }
static __device__ __forceinline__ float pw_sub(float a, float b) { return a - b; }
static __device__ __forceinline__ float pw_mul(float a, float b) { return a * b; }
static __device__ __forceinline__ float pw_div(float a, float b) { return a / b; }
static __device__ __forceinline__ float pw_max(float a, float b) { return a != a || a > b ? a : b; }
static __device__ __forceinline__ float pw_min(float a, float b) { return a != a || a < b ? a : b; }
static __device__ __forceinline__ float pw_select_ge(float a, float b, float c) { return a >= b ? c : 0.0f; }
static __device__ __forceinline__ float pw_select_lt(float a, float b, float c) { return a < b ? c : 0.0f; }
static __device__ __forceinline__ float pw_where(float a, float b) { return a > 0.0f ? b : 0.0f; }
static __device__ __forceinline__ float pw_affine(float a, float imm, float imm2) { return a * imm + imm2; }
static __device__ __forceinline__ float pw_relu(float a) { return a <= 0.0f ? 0.0f : a; }
static __device__ __forceinline__ float pw_relu_grad(float a, float b) { return a > 0.0f ? b : 0.0f; }
static __device__ __forceinline__ float pw_sigmoid(float a) { return __frcp_rn(1.0f + expf(-a)); }
static __device__ __forceinline__ float pw_sigmoid_grad(float a, float b) { return a * (1.0f - a) * b; }
static __device__ __forceinline__ float pw_tanh(float a) { return tanhf(a); }
static __device__ __forceinline__ float pw_tanh_grad(float a, float b) { return (1.0f - a * a) * b; }
static __device__ __forceinline__ float pw_exp(float a) { return expf(a); }
static __device__ __forceinline__ float pw_log(float a) { return logf(a); }
static __device__ __forceinline__ float pw_sqrt(float a) { return sqrtf(a); }
static __device__ __forceinline__ float pw_square(float a) { return a * a; }

/* GELU in the tanh form is a times 1 / (1 + exp(-2u)), u = sqrt(2/pi)·(a + 0.044715·a³); the constants below have
 * log2(e) in them. The gate's error counts absolutely, so the fast exponential and reciprocal do. */
static __device__ __forceinline__ float pw_gelu_gate(float a)
{
    float power = a * (-2.302208198f + -0.1029432396f * (a * a));
    float gate;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(power));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(gate) : "f"(1.0f + power));
    return gate;
}

static __device__ __forceinline__ float pw_gelu(float a) { return a * pw_gelu_gate(a); }

/* Beyond 40 the limits are reached and a³ may not be finite. */
static __device__ __forceinline__ float pw_gelu_grad(float a, float b)
{
    float s = pw_gelu_gate(a);
    float slope = s + a * (s * (1.0f - s)) * (1.5957691216f + 0.2140644488f * (a * a));
    return (fabsf(a) > 40.0f ? (a > 0.0f ? 1.0f : 0.0f) : slope) * b;
}

/* The exact form: a times the normal distribution's share below a. Far out, a times the bell is 0, not infinity times 0. */
static __device__ __forceinline__ float pw_gelu_erf(float a) { return a * normcdff(a); }
static __device__ __forceinline__ float pw_gelu_erf_grad(float a, float b)
{
    float near = fminf(fmaxf(a, -15.0f), 15.0f);
    float slope = normcdff(a) + near * (0.3989422804f * expf(-0.5f * near * near));
    return (a != a ? a : slope) * b;
}

/* a / (1 + exp(-a)) and its slope s + a·s·(1 - s). The share's error counts absolutely, as GELU's. Past 104 it is 0 or 1. */
static __device__ __forceinline__ float pw_silu_share(float a)
{
    float power = a * -1.442695041f;
    float share;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(power));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(1.0f + power));
    return share;
}

static __device__ __forceinline__ float pw_silu(float a) { return a * pw_silu_share(a); }
static __device__ __forceinline__ float pw_swiglu(float a, float b) { return a * pw_silu_share(a) * b; }
static __device__ __forceinline__ float pw_silu_grad(float a, float b)
{
    float near = fminf(fmaxf(a, -104.0f), 104.0f);
    float s = pw_silu_share(near);
    return (a != a ? a : s + near * (s * (1.0f - s))) * b;
}

static __device__ __forceinline__ float pw_abs(float a) { return fabsf(a); }
static __device__ __forceinline__ float pw_abs_grad(float a, float b) { return a > 0.0f ? b : a < 0.0f ? -b : 0.0f; }
static __device__ __forceinline__ float pw_floor(float a) { return floorf(a); }
static __device__ __forceinline__ float pw_ceil(float a) { return ceilf(a); }
static __device__ __forceinline__ float pw_round(float a) { return rintf(a); }
static __device__ __forceinline__ float pw_reciprocal(float a) { return 1.0f / a; }
static __device__ __forceinline__ float pw_reciprocal_grad(float a, float b) { return -(a * a) * b; }
static __device__ __forceinline__ float pw_leaky_relu(float a, float imm, float) { return a > 0.0f ? a : a * imm; }
static __device__ __forceinline__ float pw_leaky_relu_grad(float a, float b, float imm, float) { return a > 0.0f ? b : b * imm; }
static __device__ __forceinline__ float pw_hard_sigmoid(float a, float imm, float imm2)
{
    float line = fmaf(a, imm, imm2);
    return line < 0.0f ? 0.0f : line > 1.0f ? 1.0f : line;
}
static __device__ __forceinline__ float pw_hard_sigmoid_grad(float a, float b, float imm, float imm2)
{
    float line = fmaf(a, imm, imm2);
    return line > 0.0f && line < 1.0f ? b * imm : 0.0f;
}
static __device__ __forceinline__ float pw_hard_swish(float a)
{
    return a <= -3.0f ? 0.0f : a >= 3.0f ? a : a * fmaf(a, 1.0f / 6, 0.5f);
}
static __device__ __forceinline__ float pw_hard_swish_grad(float a, float b)
{
    return a <= -3.0f ? 0.0f : a >= 3.0f ? b : fmaf(a, 1.0f / 3, 0.5f) * b;
}
static __device__ __forceinline__ float pw_clip(float a, float imm, float imm2) { return a < imm ? imm : a > imm2 ? imm2 : a; }
static __device__ __forceinline__ float pw_clip_grad(float a, float b, float imm, float imm2)
{
    return a >= imm && a <= imm2 ? b : 0.0f;
}
static __device__ __forceinline__ float pw_equal(float a, float b) { return a == b ? 1.0f : 0.0f; }
static __device__ __forceinline__ float pw_less(float a, float b) { return a < b ? 1.0f : 0.0f; }
static __device__ __forceinline__ float pw_where_not(float a, float b) { return a > 0.0f ? 0.0f : b; }
static __device__ __forceinline__ float pw_select(float a, float b, float c) { return a > 0.0f ? b : c; }
static __device__ __forceinline__ float pw_sin(float a) { return sinf(a); }
static __device__ __forceinline__ float pw_cos(float a) { return cosf(a); }
static __device__ __forceinline__ float pw_erf(float a) { return erff(a); }
static __device__ __forceinline__ float pw_erf_grad(float a, float b) { return 1.12837917f * expf(-(a * a)) * b; }
static __device__ __forceinline__ float pw_pow(float a, float b) { return powf(a, b); }
static __device__ __forceinline__ float pw_power(float a, float imm, float) { return powf(a, imm); }
static __device__ __forceinline__ float pw_elu(float a, float imm, float imm2) { return imm2 * (a > 0.0f ? a : imm * expm1f(a)); }
static __device__ __forceinline__ float pw_elu_grad(float a, float b, float imm, float imm2)
{
    return imm2 * (a > 0.0f ? 1.0f : imm * expf(a)) * b;
}
static __device__ __forceinline__ float pw_softplus(float a) { return (a > 0.0f ? a : a != a ? a : 0.0f) + log1pf(expf(-fabsf(a))); }
static __device__ __forceinline__ float pw_softplus_grad(float a, float b) { return b / (1.0f + expf(-a)); }

/* tanh(log(1 + e^a)) = n / (n + 2) with n = e^a·(e^a + 2). */
static __device__ __forceinline__ float pw_mish(float a)
{
    float e = expf(fminf(a, 20.0f));
    float n = e * (e + 2.0f);
    return a * (n / (n + 2.0f));
}
static __device__ __forceinline__ float pw_mish_grad(float a, float b)
{
    float near = fminf(fmaxf(a, -104.0f), 104.0f);
    float e = expf(fminf(a, 20.0f));
    float n = e * (e + 2.0f), inverse = 1.0f / (n + 2.0f);
    float slope = n * inverse + near / (1.0f + expf(-near)) * (4.0f * (n + 1.0f) * inverse * inverse);
    return (a != a ? a : slope) * b;
}

/* base/rng.c: the key of a stream, and four random words for a counter. */
static __device__ __forceinline__ unsigned long long pw_stream_key(unsigned long long seed, unsigned stream)
{
    unsigned long long x = seed;
    for (int i = 0; i < 3; i++) {
        x += (i == 0 ? 0x9E3779B97F4A7C15ull : i == 1 ? stream : 0ull) + 0x9E3779B97F4A7C15ull * (i + 1);
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        x ^= x >> 31;
    }
    return x;
}

static __device__ __forceinline__ uint4 pw_random(unsigned long long key, unsigned long long counter)
{
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
    unsigned c0 = (unsigned)counter, c1 = (unsigned)(counter >> 32), c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        unsigned long long p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
        c0 = (unsigned)(p1 >> 32) ^ c1 ^ k0;
        c2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
        c1 = (unsigned)p1;
        c3 = (unsigned)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

static __device__ __forceinline__ unsigned pw_word(uint4 block, unsigned i)
{
    return i == 0 ? block.x : i == 1 ? block.y : i == 2 ? block.z : block.w;
}

static __device__ __forceinline__ float pw_dropout(float a, unsigned word, unsigned threshold, float scale)
{
    return word >> 8 >= threshold ? a * scale : 0.0f;
}
)
// clang-format on
