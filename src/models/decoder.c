/* The decoder of today's language models: root-mean-square norms around the parts of a block, rotary positions, heads
 * of keys and values that several heads of queries may share, a perceptron with a gate; the output head is the
 * embedding or a matrix of its own. What families have otherwise is a row of a table; sizes and positions are numbers
 * that a user chooses. Weights lie as in Hugging Face's models, so that nothing but names changes on the way. All
 * matrices begin with a standard deviation of 0.02.
 */
#include "models/models.h"

#include "graph/builder.h"
#include "ops/attrs.h"

#include <math.h>
#include <stdio.h>

#define INIT 0.02f

/** What a head of queries and keys is divided by before its positions. */
typedef enum head_norms {
    NORMS_NONE,
    NORMS_OF_HEADS, // the root mean square of each head
    NORMS_OF_ALL,   // that of all heads together
} head_norms;

/** What a family has otherwise than Llama: the choices of Hugging Face's modeling_<name>.py. */
typedef struct family {
    bool biases; // of queries, keys and values
    head_norms head_norms;
    bool no_before, after; // a block's part is not normalised before it; its result is, before it is added
    bool from_one;         // weights of norms are counted from 1
    bool gelu;             // in the gate, in its tanh form; else SiLU
    bool one_matrix;       // gate and up
    bool scaled;           // the embedding, by the root of its width
} family;

static const family families[] = {
    [MIXT_DECODER_LLAMA] = {.biases = false},              // Touvron et al. 2023; Grattafiori et al. 2024
    [MIXT_DECODER_MISTRAL] = {.biases = false},            // Jiang et al. 2023
    [MIXT_DECODER_QWEN2] = {.biases = true},               // Yang et al. 2024
    [MIXT_DECODER_QWEN3] = {.head_norms = NORMS_OF_HEADS}, // Yang et al. 2025
    [MIXT_DECODER_PHI3] = {.one_matrix = true},            // Abdin et al. 2024
    [MIXT_DECODER_SMOLLM3] = {.biases = false},            // Bakouch et al. 2025
    [MIXT_DECODER_GEMMA2] = {.after = true, .from_one = true, .gelu = true, .scaled = true}, // Riviere et al. 2024
    [MIXT_DECODER_GEMMA3] = {.head_norms = NORMS_OF_HEADS,
                             .after = true,
                             .from_one = true,
                             .gelu = true,
                             .scaled = true},                                              // Kamath et al. 2025
    [MIXT_DECODER_OLMO2] = {.head_norms = NORMS_OF_ALL, .no_before = true, .after = true}, // Walsh et al. 2025
};

/** A model while it is built. */
typedef struct decoder {
    mixt_builder *b;
    const mixt__model_sizes *s;
    const family *f;
    int64_t dim;              // of a head
    mixt_value places;        // of tokens in texts that share a row; id 0: they do not
    mixt_value global, local; // angles of positions; local: of layers with a window
} decoder;

static bool has_window(const mixt__model_sizes *s, int64_t layer)
{
    return s->window && !(s->full_every && (layer + 1) % s->full_every == 0);
}

static bool has_positions(const mixt__model_sizes *s, int64_t layer)
{
    return !(s->nope_every && (layer + 1) % s->nope_every == 0);
}

static mixt_value norm(const decoder *d, const char *name, mixt_value x)
{
    return mixt_rms_norm(d->b, name, x, .eps = (float)d->s->eps, .from_one = d->f->from_one);
}

/** Queries or keys (B, T, heads · dim). */
static mixt_value norm_heads(const decoder *d, const char *name, mixt_value x, int64_t heads)
{
    if (d->f->head_norms != NORMS_OF_HEADS)
        return d->f->head_norms == NORMS_OF_ALL ? norm(d, name, x) : x;
    int64_t batch = mixt_value_dim(d->b, x, 0), tokens = mixt_value_dim(d->b, x, 1);
    x = mixt_reshape(d->b, x, 4, (int64_t[]){batch, tokens, heads, d->dim});
    return mixt_reshape(d->b, norm(d, name, x), 3, (int64_t[]){batch, tokens, heads * d->dim});
}

static mixt_value turn(const decoder *d, mixt_value x, mixt_value table, int64_t heads)
{
    return mixt_rotary_part(d->b, x, table, heads, d->dim);
}

static mixt_value attention(const decoder *d, mixt_value x, int64_t layer)
{
    const mixt__model_sizes *s = d->s;
    mixt_builder *b = d->b;
    mixt_value q_k_v[3]; // (B, T, heads · dim), (B, T, kv_heads · dim) twice
    int64_t wide = s->heads * d->dim, shared = s->kv_heads * d->dim, sizes[3] = {wide, shared, shared};
    bool window = has_window(s, layer), positions = has_positions(s, layer), norms = d->f->head_norms != NORMS_NONE;
    mixt_value table = window && d->local.id ? d->local : d->global;
    mixt_scope_push(b, "attn");
    bool one = d->f->one_matrix; // in files too: it has one adapter
    x = mixt_linear(b, "qkv", x, .features = wide + 2 * shared, .no_bias = !d->f->biases, .init = INIT,
                    .parts = {one ? 0 : wide, one ? 0 : shared, one ? 0 : shared});
    if (positions && !norms)
        x = turn(d, x, table, s->heads + s->kv_heads); // q and k lie side by side: one pass, in place
    mixt_split_at(b, x, 3, sizes, q_k_v);
    if (norms) {
        q_k_v[0] = norm_heads(d, "q_norm", q_k_v[0], s->heads);
        q_k_v[1] = norm_heads(d, "k_norm", q_k_v[1], s->kv_heads);
    }
    if (positions && norms) {
        q_k_v[0] = turn(d, q_k_v[0], table, s->heads);
        q_k_v[1] = turn(d, q_k_v[1], table, s->kv_heads);
    }
    x = mixt_attention(b, q_k_v[0], q_k_v[1], q_k_v[2], .heads = s->heads, .causal = true,
                       .scale = s->query_scale > 0 ? (float)(1 / sqrt(s->query_scale)) : MIXT_AUTO,
                       .window = window ? s->window : 0, .softcap = (float)s->softcap, .positions = d->places);
    x = mixt_linear(b, "proj", x, .features = s->width, .no_bias = true, .init = INIT);
    mixt_scope_pop(b);
    return x;
}

static mixt_value perceptron(const decoder *d, mixt_value x)
{
    const mixt__model_sizes *s = d->s;
    mixt_builder *b = d->b;
    mixt_value gate_up[2];
    mixt_scope_push(b, "mlp");
    if (d->f->one_matrix) {
        x = mixt_linear(b, "gate_up", x, .features = 2 * s->inner, .no_bias = true, .init = INIT);
        mixt_split_at(b, x, 2, (int64_t[]){s->inner, s->inner}, gate_up);
    } else {
        gate_up[0] = mixt_linear(b, "gate", x, .features = s->inner, .no_bias = true, .init = INIT);
        gate_up[1] = mixt_linear(b, "up", x, .features = s->inner, .no_bias = true, .init = INIT);
    }
    x = d->f->gelu ? mixt_mul(b, mixt_gelu(b, gate_up[0]), gate_up[1]) : mixt_swiglu(b, gate_up[0], gate_up[1]);
    x = mixt_linear(b, "out", x, .features = s->width, .no_bias = true, .init = INIT);
    mixt_scope_pop(b);
    return x;
}

static mixt_value block(const decoder *d, mixt_value x, int64_t layer)
{
    const family *f = d->f;
    mixt_value y = attention(d, f->no_before ? x : norm(d, "ln1", x), layer);
    x = mixt_add(d->b, x, f->after ? norm(d, "ln1_post", y) : y);
    y = perceptron(d, f->no_before ? x : norm(d, "ln2", x));
    return mixt_add(d->b, x, f->after ? norm(d, "ln2_post", y) : y);
}

/** Angles of the layers that see all tokens. Which divisors count depends on how long texts may become. */
static mixt_value angles(const decoder *d, mixt_value ids)
{
    const mixt__model_sizes *s = d->s;
    mixt_rotary_options o = MIXT_OPTIONS(mixt_rotary_options, .dim = s->rope_dim ? s->rope_dim : d->dim);
    o.theta = s->rope_theta;
    o.factor = s->rope_factor;
    o.low = s->rope_low;
    o.high = s->rope_high;
    o.original = s->rope_original;
    if (s->rope_magnitude > 0)
        o.magnitude = s->rope_magnitude;
    int64_t longest = mixt__builder_generating(d->b) ? d->b->graph->cache_rows : mixt_value_dim(d->b, ids, -1);
    bool wide = (double)longest > s->rope_original;
    o.divisor_count = wide ? s->rope_long.count : s->rope_short.count;
    for (int64_t i = 0; i < o.divisor_count; i++)
        o.divisors[i] = (wide ? s->rope_long.of : s->rope_short.of)[i];
    o.places = d->places.id != 0;
    return mixt_rotary_table_with(d->b, o.places ? d->places : ids, &o);
}

/** Logits of all tokens. */
static mixt_value output(const decoder *d, mixt_value x, mixt_value embedding)
{
    const mixt__model_sizes *s = d->s;
    mixt_builder *b = d->b;
    float cap = (float)s->logit_cap;
    mixt_scope_push(b, "head");
    if (!s->tied)
        embedding = mixt_param(b, "weight", .rank = 2, .dims = {s->rows, s->width}, .normal = INIT);
    x = mixt_matmul(b, x, embedding, .trans_b = true);
    if (cap > 0)
        x = mixt_affine(b, mixt_tanh(b, mixt_affine(b, x, 1 / cap, 0)), cap, 0);
    mixt_scope_pop(b);
    return x;
}

mixt_value mixt__model_decoder(mixt_builder *b, mixt_value ids)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    decoder d = {.b = b, .s = s, .f = &families[s->decoder], .dim = s->head_dim ? s->head_dim : s->width / s->heads};
    mixt_scope_push(b, "wte");
    mixt_value embedding = mixt_param(b, "weight", .rank = 2, .dims = {s->rows, s->width}, .normal = INIT);
    mixt_value x = mixt_embedding_lookup(b, embedding, ids); // (B, T, C)
    if (d.f->scaled)
        x = mixt_affine(b, x, sqrtf((float)s->width), 0);
    mixt_scope_pop(b);
    d.places = mixt__model_places(b);
    d.global = angles(&d, ids);
    if (s->rope_local > 0 && s->window)
        d.local = mixt_rotary_table(b, d.places.id ? d.places : ids, .places = d.places.id != 0, .dim = d.dim,
                                    .theta = s->rope_local);
    for (int64_t i = 0; i < s->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "h.%lld", (long long)i);
        mixt_scope_push(b, name);
        x = block(&d, x, i);
        mixt_scope_pop(b);
    }
    return mixt__model_margins(b, s, output(&d, norm(&d, "ln_f", x), embedding));
}

static mixt_status check_rope(const mixt__model_sizes *s, int64_t dim)
{
    int64_t turned = s->rope_dim ? s->rope_dim : dim;
    if (turned % 2 || turned > MIXT_ROTARY_DIM_MAX || turned > dim || dim > MIXT_ROTARY_DIM_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "width %lld in %lld heads of %lld, of which %lld turn: rotary positions need an even number "
                          "in each, %d at most",
                          (long long)s->width, (long long)s->heads, (long long)dim, (long long)turned,
                          MIXT_ROTARY_DIM_MAX);
    if (s->rope_high > 0 && (s->rope_factor <= 0 || s->rope_original <= 0 || s->rope_low >= s->rope_high))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "rope_high %g needs rope_factor and rope_original, and rope_low below it", s->rope_high);
    if (s->rope_short.count != s->rope_long.count || (s->rope_short.count && s->rope_short.count != turned / 2))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "rope_short has %lld numbers, rope_long %lld: both need one for each of the %lld pairs of a "
                          "head that turn",
                          (long long)s->rope_short.count, (long long)s->rope_long.count, (long long)turned / 2);
    if (s->rope_short.count && (s->rope_original <= 0 || s->rope_factor > 0))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "rope_short and rope_long need rope_original, and no rope_factor");
    for (int64_t i = 0; i < s->rope_short.count; i++)
        if (!(s->rope_short.of[i] > 0) || !(s->rope_long.of[i] > 0))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "rope_short and rope_long must be above 0");
    return MIXT_OK;
}

mixt_status mixt__decoder_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    (void)data; // of any length
    if (!s->head_dim)
        MIXT_TRY(mixt__heads_check(s));
    if (s->heads % s->kv_heads)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "kv_heads %lld must divide heads %lld: as many heads share each",
                          (long long)s->kv_heads, (long long)s->heads);
    return check_rope(s, s->head_dim ? s->head_dim : s->width / s->heads);
}
