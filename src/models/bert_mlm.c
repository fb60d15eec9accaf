/* BERT as Hugging Face has it, and its head for masked tokens: word, position and token-type vectors with a norm of
 * their own, blocks that normalise after each part, and a head of a linear layer, GELU and norm in front of the
 * embedding, which has a bias here. bert_classify.c has another head.
 *
 * GELU is the exact one and norms divide by sqrt(variance + 1e-12), so that weights of Hugging Face's BertForMaskedLM
 * give the same outputs. All tokens are of the first type. Which tokens are hidden is the data's business: a target
 * below 0 does not count. The simpler `bert` in transformer.c stays as the benchmark's model.
 */
#include "models/models.h"

#include <stdio.h>

#define INIT 0.02f
#define EPS 1e-12f

enum { TOKEN_TYPES = 2 };

static mixt_value table(mixt_builder *b, const char *name, int64_t rows, int64_t width)
{
    mixt_scope_push(b, name);
    mixt_value t = mixt_param(b, "weight", .rank = 2, .dims = {rows, width}, .normal = INIT);
    mixt_scope_pop(b);
    return t;
}

/** *words is the (rows, width) embedding, for the head. */
static mixt_value embed(mixt_builder *b, mixt_value ids, const mixt__model_sizes *s, mixt_value *words)
{
    *words = table(b, "wte", s->rows, s->width);
    mixt_value positions = table(b, "wpe", s->seq, s->width);
    mixt_value types = table(b, "wtt", TOKEN_TYPES, s->width);
    mixt_value x = mixt_embedding_lookup(b, *words, ids); // (B, T, C)
    x = mixt_add(b, x, mixt_slice(b, types, 0, 0, 1));
    x = mixt_add(b, x, mixt_slice(b, positions, 0, 0, mixt_value_dim(b, ids, 1)));
    return mixt_dropout(b, mixt_layer_norm(b, "ln_e", x, .eps = EPS), s->dropout);
}

/** @param lengths of the texts, INT32 (B); none: all are whole */
static mixt_value block(mixt_builder *b, mixt_value x, const mixt__model_sizes *s, mixt_value lengths)
{
    mixt_value q_k_v[3], y; // (B, T, C) each
    mixt_split(
        b,
        mixt_linear(b, "attn.qkv", x, .features = 3 * s->width, .init = INIT, .parts = {s->width, s->width, s->width}),
        3, q_k_v);
    y = mixt_attention(b, q_k_v[0], q_k_v[1], q_k_v[2], .heads = s->heads, .lengths = lengths);
    y = mixt_dropout(b, mixt_linear(b, "attn.proj", y, .features = s->width, .init = INIT), s->dropout);
    x = mixt_layer_norm(b, "ln1", mixt_add(b, x, y), .eps = EPS);
    y = mixt_gelu_erf(b, mixt_linear(b, "mlp.fc", x, .features = 4 * s->width, .init = INIT));
    y = mixt_dropout(b, mixt_linear(b, "mlp.out", y, .features = s->width, .init = INIT), s->dropout);
    return mixt_layer_norm(b, "ln2", mixt_add(b, x, y), .eps = EPS);
}

mixt_value mixt__bert_encode(mixt_builder *b, mixt_value ids, mixt_value lengths, mixt_value *words)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value x = embed(b, ids, s, words);
    for (int64_t i = 0; i < s->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "h.%lld", (long long)i);
        mixt_scope_push(b, name);
        x = block(b, x, s, lengths);
        mixt_scope_pop(b);
    }
    return x;
}

mixt_value mixt__model_bert_mlm(mixt_builder *b, mixt_value ids)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value words, x = mixt__bert_encode(b, ids, (mixt_value){0}, &words);
    mixt_scope_push(b, "head");
    x = mixt_gelu_erf(b, mixt_linear(b, "fc", x, .features = s->width, .init = INIT));
    x = mixt_matmul(b, mixt_layer_norm(b, "ln", x, .eps = EPS), words, .trans_b = true);
    x = mixt_add(b, x, mixt_param(b, "bias", .rank = 1, .dims = {s->rows}, .no_decay = true));
    mixt_scope_pop(b);
    return x;
}
