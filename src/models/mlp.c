/* The multi-layer perceptron: 784-512-512-10 by default on images of 28 × 28. */
#include "models/models.h"

#include "data/data.h"

#include <stdio.h>

/** Numbers (N, F) and the vectors of words (N, K) → (N, F + K · width). */
static mixt_value beside_words(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value ids = mixt_input(b, MIXT_WORDS_INPUT);
    mixt_value table = mixt_param(b, "words.weight", .rank = 2, .dims = {s->ids, s->word_width}, .normal = 0.1f);
    mixt_value both[2] = {x, mixt_flatten(b, mixt_embedding_lookup(b, table, ids))};
    return mixt_concat(b, both, 2, 1);
}

mixt_value mixt__model_mlp(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    char name[32];
    if (mixt_value_rank(b, x) > 2)
        x = mixt_flatten(b, x);
    if (s->words)
        x = beside_words(b, x);
    for (int64_t i = 0; i < s->hidden_count; i++) {
        snprintf(name, sizeof name, "fc.%lld", (long long)i);
        x = mixt_linear(b, name, x, .features = s->hidden[i]);
        snprintf(name, sizeof name, "norm.%lld", (long long)i);
        x = mixt_relu(b, mixt__model_norm_layer(b, name, x, s->norm));
        x = mixt_dropout(b, x, s->dropout);
    }
    snprintf(name, sizeof name, "fc.%lld", (long long)s->hidden_count);
    return mixt_linear(b, name, x, .features = s->classes);
}
