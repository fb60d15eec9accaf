/* Llama: root-mean-square norms before each part of a block, rotary positions, heads of keys and values that several
 * heads of queries may share, a perceptron with a gate (SwiGLU), no biases; the output head is the embedding or a
 * matrix of its own. Weights lie as in Hugging Face's Llama, so that nothing but names changes on the way. All
 * matrices begin with a standard deviation of 0.02.
 */
#include "models/models.h"

#include "ops/rotary_attrs.h"

#include <stdio.h>

#define INIT 0.02f

static mixt_value attention(mixt_builder *b, mixt_value x, mixt_value table, const mixt__model_sizes *s)
{
    mixt_value q_k_v[3]; // (B, T, heads · dim), (B, T, kv_heads · dim) twice
    int64_t shared = s->width / s->heads * s->kv_heads, sizes[3] = {s->width, shared, shared};
    mixt_scope_push(b, "attn");
    x = mixt_linear(b, "qkv", x, .features = s->width + 2 * shared, .no_bias = true, .init = INIT,
                    .parts = {s->width, shared, shared});
    x = mixt_rotary(b, x, table, s->heads + s->kv_heads); // q and k lie side by side: one pass, in place
    mixt_split_at(b, x, 3, sizes, q_k_v);
    x = mixt_attention(b, q_k_v[0], q_k_v[1], q_k_v[2], .heads = s->heads, .causal = true);
    x = mixt_linear(b, "proj", x, .features = s->width, .no_bias = true, .init = INIT);
    mixt_scope_pop(b);
    return x;
}

static mixt_value perceptron(mixt_builder *b, mixt_value x, const mixt__model_sizes *s)
{
    mixt_scope_push(b, "mlp");
    mixt_value gate = mixt_linear(b, "gate", x, .features = s->inner, .no_bias = true, .init = INIT);
    mixt_value up = mixt_linear(b, "up", x, .features = s->inner, .no_bias = true, .init = INIT);
    x = mixt_linear(b, "out", mixt_swiglu(b, gate, up), .features = s->width, .no_bias = true, .init = INIT);
    mixt_scope_pop(b);
    return x;
}

mixt_value mixt__model_llama(mixt_builder *b, mixt_value ids)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    float eps = (float)s->eps;
    mixt_scope_push(b, "wte");
    mixt_value head = mixt_param(b, "weight", .rank = 2, .dims = {s->rows, s->width}, .normal = INIT);
    mixt_value x = mixt_embedding_lookup(b, head, ids); // (B, T, C)
    mixt_scope_pop(b);
    mixt_value table =
        mixt_rotary_table(b, ids, .dim = s->width / s->heads, .theta = s->rope_theta, .factor = s->rope_factor,
                          .low = s->rope_low, .high = s->rope_high, .original = s->rope_original);
    for (int64_t i = 0; i < s->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "h.%lld", (long long)i);
        mixt_scope_push(b, name);
        x = mixt_add(b, x, attention(b, mixt_rms_norm(b, "ln1", x, .eps = eps), table, s));
        x = mixt_add(b, x, perceptron(b, mixt_rms_norm(b, "ln2", x, .eps = eps), s));
        mixt_scope_pop(b);
    }
    x = mixt_rms_norm(b, "ln_f", x, .eps = eps);
    mixt_scope_push(b, "head");
    if (!s->tied)
        head = mixt_param(b, "weight", .rank = 2, .dims = {s->rows, s->width}, .normal = INIT);
    x = mixt_matmul(b, x, head, .trans_b = true);
    mixt_scope_pop(b);
    return x;
}

mixt_status mixt__llama_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    (void)data; // of any length
    MIXT_TRY(mixt__heads_check(s));
    if (s->heads % s->kv_heads)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "kv_heads %lld must divide heads %lld: as many heads share each",
                          (long long)s->kv_heads, (long long)s->heads);
    int64_t dim = s->width / s->heads;
    if (dim % 2 || dim > MIXT_ROTARY_DIM_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "width %lld in %lld heads: rotary positions need an even number in each, %d at most",
                          (long long)s->width, (long long)s->heads, MIXT_ROTARY_DIM_MAX);
    if (s->rope_high > 0 && (s->rope_factor <= 0 || s->rope_original <= 0 || s->rope_low >= s->rope_high))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "rope_high %g needs rope_factor and rope_original, and rope_low below it", s->rope_high);
    return MIXT_OK;
}
