/* A translator: an encoder that reads a sentence both ways, and a decoder that writes its translation, looking at what
 * it has written and, by cross attention, at what the encoder has made of the sentence.
 *
 * Both normalise before each part of a block; one table holds the tokens of both languages and is the output head too.
 * What is padding in a sentence is never looked at. What is padding in a translation stands behind it, where a causal
 * decoder does not look, and the loss leaves it out.
 */
#include "models/models.h"

#include <math.h>
#include <stdio.h>

/** Of a matrix: keeps the size of what flows forward and, as well as one number can, of what flows back. */
static float spread(int64_t in, int64_t out)
{
    return sqrtf(2.0f / (float)(in + out));
}

/** Token vectors of unit size and positions, added. */
static mixt_value embed(mixt_builder *b, const char *name, mixt_value ids, mixt_value table, const mixt__model_sizes *s)
{
    float size = 1 / sqrtf((float)s->width);
    mixt_scope_push(b, name);
    mixt_value x = mixt_affine(b, mixt_embedding_lookup(b, table, ids), 1 / size, 0); // (B, T, C)
    mixt_value places = mixt_param(b, "positions", .rank = 2, .dims = {s->seq, s->width}, .normal = size);
    x = mixt_dropout(b, mixt_add(b, x, mixt_embedding_positions(b, places, ids)), s->dropout);
    mixt_scope_pop(b);
    return x;
}

static mixt_value self_attention(mixt_builder *b, mixt_value x, mixt_value lengths, const mixt__model_sizes *s)
{
    mixt_value q_k_v[3]; // (B, T, C) each
    bool causal = !lengths.id;
    mixt_scope_push(b, "attn");
    mixt_split(b, mixt_linear(b, "qkv", x, .features = 3 * s->width, .init = spread(s->width, s->width)), 3, q_k_v);
    x = mixt_attention(b, q_k_v[0], q_k_v[1], q_k_v[2], .heads = s->heads, .causal = causal, .lengths = lengths);
    x = mixt_linear(b, "proj", x, .features = s->width, .init = spread(s->width, s->width));
    x = mixt_dropout(b, x, s->dropout);
    mixt_scope_pop(b);
    return x;
}

/** Which layer's part of "memory" an attention looks at, where the sentence was read before. */
static mixt_value part_of(mixt_builder *b, int64_t layer, const mixt__model_sizes *s)
{
    return mixt_slice(b, mixt_input(b, "memory"), 2, layer * 2 * s->width, (layer + 1) * 2 * s->width);
}

/** From what is written, (B · beams, T, C), to the sentence that all beams of an entry share.
 *  @param read what it looks at there, (B, S, 2C), is put behind that of the layers before; NULL: nobody asks */
static mixt_value cross_attention(mixt_builder *b, mixt_value x, mixt_value memory, int64_t layer, mixt_value *read,
                                  const mixt__model_sizes *s)
{
    mixt_value k_v[2], lengths = mixt_input(b, "source.length");
    int64_t rows = mixt_value_dim(b, x, 0), places = mixt_value_dim(b, x, 1), batch = mixt_value_dim(b, memory, 0);
    float init = spread(s->width, s->width);
    mixt_scope_push(b, "cross");
    mixt_value kv = mixt_linear(b, "kv", memory, .features = 2 * s->width, .init = init);
    if (read)
        *read = layer ? mixt_concat(b, (mixt_value[]){*read, kv}, 2, 2) : kv;
    mixt_split(b, mixt_builder_has_input(b, "memory") ? part_of(b, layer, s) : kv, 2, k_v);
    mixt_value q = mixt_linear(b, "q", x, .features = s->width, .init = init);
    if (rows != batch)
        q = mixt_reshape(b, q, 3, (int64_t[]){batch, -1, s->width});
    x = mixt_attention(b, q, k_v[0], k_v[1], .heads = s->heads, .lengths = lengths);
    if (rows != batch)
        x = mixt_reshape(b, x, 3, (int64_t[]){rows, places, s->width});
    x = mixt_dropout(b, mixt_linear(b, "proj", x, .features = s->width, .init = init), s->dropout);
    mixt_scope_pop(b);
    return x;
}

static mixt_value perceptron(mixt_builder *b, mixt_value x, const mixt__model_sizes *s)
{
    float init = spread(s->width, 4 * s->width);
    mixt_scope_push(b, "mlp");
    x = mixt_gelu(b, mixt_linear(b, "fc", x, .features = 4 * s->width, .init = init));
    x = mixt_linear(b, "out", mixt_dropout(b, x, s->dropout), .features = s->width, .init = init);
    x = mixt_dropout(b, x, s->dropout);
    mixt_scope_pop(b);
    return x;
}

static void push_layer(mixt_builder *b, const char *part, int64_t i)
{
    char name[40];
    snprintf(name, sizeof name, "%s.%lld", part, (long long)i);
    mixt_scope_push(b, name);
}

/** (B, S) → (B, S, C) */
static mixt_value encode(mixt_builder *b, mixt_value table, const mixt__model_sizes *s)
{
    mixt_value lengths = mixt_input(b, "source.length"), x = embed(b, "enc", mixt_input(b, "source"), table, s);
    for (int64_t i = 0; i < s->layers; i++) {
        push_layer(b, "enc.h", i);
        x = mixt_add(b, x, self_attention(b, mixt_layer_norm(b, "ln1", x), lengths, s));
        x = mixt_add(b, x, perceptron(b, mixt_layer_norm(b, "ln2", x), s));
        mixt_scope_pop(b);
    }
    return mixt_layer_norm(b, "enc.ln_f", x);
}

/** (B · beams, T) → (B · beams, T, C). @param read see cross_attention */
static mixt_value decode(mixt_builder *b, mixt_value table, mixt_value memory, mixt_value *read,
                         const mixt__model_sizes *s)
{
    mixt_value x = embed(b, "dec", mixt_input(b, "previous"), table, s);
    for (int64_t i = 0; i < s->layers; i++) {
        push_layer(b, "dec.h", i);
        x = mixt_add(b, x, self_attention(b, mixt_layer_norm(b, "ln1", x), (mixt_value){0}, s));
        x = mixt_add(b, x, cross_attention(b, mixt_layer_norm(b, "ln2", x), memory, i, read, s));
        x = mixt_add(b, x, perceptron(b, mixt_layer_norm(b, "ln3", x), s));
        mixt_scope_pop(b);
    }
    return mixt_layer_norm(b, "dec.ln_f", x);
}

/** The whole model, whichever output is wanted: so parameters are the same, and what an output does not need is not
 *  computed. */
static mixt_value translate(mixt_builder *b, mixt_value *read)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value table =
        mixt_param(b, "wte.weight", .rank = 2, .dims = {s->rows, s->width}, .normal = 1 / sqrtf((float)s->width));
    mixt_value x = decode(b, table, encode(b, table, s), read, s);
    mixt_scope_push(b, "head");
    x = mixt_matmul(b, x, table, .trans_b = true);
    mixt_scope_pop(b);
    return x;
}

mixt_value mixt__model_seq2seq(mixt_builder *b, mixt_value x)
{
    (void)x;
    return translate(b, NULL);
}

mixt_value mixt__model_seq2seq_read(mixt_builder *b, mixt_value x)
{
    mixt_value read = {0};
    (void)x;
    (void)translate(b, &read);
    return read;
}
