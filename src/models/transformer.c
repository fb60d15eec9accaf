/* GPT and BERT: learned positions, blocks of attention and a two-layer perceptron, an output head tied to the
 * embedding.
 *
 * GPT sees the past only and normalises before each part of a block; BERT sees both ways and normalises after. All
 * matrices begin with a standard deviation of 0.02.
 */
#include "models/models.h"

#include <stdio.h>

#define INIT 0.02f

static mixt_value attention(mixt_builder *b, mixt_value x, mixt_value places, const mixt__model_sizes *s, bool causal)
{
    mixt_value q_k_v[3]; // (B, T, C) each
    mixt_scope_push(b, "attn");
    mixt_split(b, mixt_linear(b, "qkv", x, .features = 3 * s->width, .init = INIT), 3, q_k_v);
    x = mixt_attention(b, q_k_v[0], q_k_v[1], q_k_v[2], .heads = s->heads, .causal = causal, .positions = places);
    x = mixt_linear(b, "proj", x, .features = s->width, .init = INIT);
    x = mixt_dropout(b, x, s->dropout);
    mixt_scope_pop(b);
    return x;
}

static mixt_value perceptron(mixt_builder *b, mixt_value x, const mixt__model_sizes *s)
{
    mixt_scope_push(b, "mlp");
    x = mixt_gelu(b, mixt_linear(b, "fc", x, .features = 4 * s->width, .init = INIT));
    x = mixt_linear(b, "out", x, .features = s->width, .init = INIT);
    x = mixt_dropout(b, x, s->dropout);
    mixt_scope_pop(b);
    return x;
}

static mixt_value block_before(mixt_builder *b, mixt_value x, mixt_value places, const mixt__model_sizes *s)
{
    x = mixt_add(b, x, attention(b, mixt_layer_norm(b, "ln1", x), places, s, true));
    return mixt_add(b, x, perceptron(b, mixt_layer_norm(b, "ln2", x), s));
}

static mixt_value block_after(mixt_builder *b, mixt_value x, const mixt__model_sizes *s)
{
    x = mixt_layer_norm(b, "ln1", mixt_add(b, x, attention(b, x, (mixt_value){0}, s, false)));
    return mixt_layer_norm(b, "ln2", mixt_add(b, x, perceptron(b, x, s)));
}

/** Token and position vectors, added; *table is the (rows, width) embedding, for the head.
 *  @param places of tokens in texts that share a row; none: a row is one text */
static mixt_value embed(mixt_builder *b, mixt_value ids, mixt_value places, const mixt__model_sizes *s,
                        mixt_value *table)
{
    mixt_scope_push(b, "wte");
    *table = mixt_param(b, "weight", .rank = 2, .dims = {s->rows, s->width}, .normal = INIT);
    mixt_value tokens = mixt_embedding_lookup(b, *table, ids); // (B, T, C)
    mixt_scope_pop(b);
    mixt_scope_push(b, "wpe");
    mixt_value positions = mixt_param(b, "weight", .rank = 2, .dims = {s->seq, s->width}, .normal = INIT);
    positions = places.id ? mixt_embedding_lookup(b, positions, places)  // (B, T, C)
                          : mixt_embedding_positions(b, positions, ids); // (T, C)
    mixt_value x = mixt_dropout(b, mixt_add(b, tokens, positions), s->dropout);
    mixt_scope_pop(b);
    return x;
}

static mixt_value transformer(mixt_builder *b, mixt_value ids, bool gpt)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value places = gpt ? mixt__model_places(b) : (mixt_value){0};
    mixt_value table, x = embed(b, ids, places, s, &table);
    for (int64_t i = 0; i < s->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "h.%lld", (long long)i);
        mixt_scope_push(b, name);
        x = gpt ? block_before(b, x, places, s) : block_after(b, x, s);
        mixt_scope_pop(b);
    }
    x = mixt_layer_norm(b, "ln_f", x);
    mixt_scope_push(b, "head");
    x = mixt_matmul(b, x, table, .trans_b = true);
    mixt_scope_pop(b);
    return x;
}

mixt_value mixt__model_gpt(mixt_builder *b, mixt_value x)
{
    return mixt__model_margins(b, mixt_builder_user(b), transformer(b, x, true));
}

mixt_value mixt__model_bert(mixt_builder *b, mixt_value x)
{
    return transformer(b, x, false);
}

mixt_status mixt__heads_check(const mixt__model_sizes *s)
{
    if (s->width % s->heads)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "heads %lld must divide width %lld: each head takes an equal share of it",
                          (long long)s->heads, (long long)s->width);
    return MIXT_OK;
}

mixt_status mixt__transformer_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    MIXT_TRY(mixt__heads_check(s));
    if (data->input_dims[0] > s->seq)
        return mixt__fail(MIXT_ERROR_SHAPE, "sequences of %lld tokens, but the model has only %lld positions",
                          (long long)data->input_dims[0], (long long)s->seq);
    return MIXT_OK;
}
