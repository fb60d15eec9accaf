/* The recurrent language models: embedding, two layers of 512 by default, linear; lstm, gru and rnn differ in the cell.
 */
#include "models/models.h"

#include <stdio.h>

typedef mixt_value layer_fn(mixt_builder *b, const char *name, mixt_value x, int64_t features);

static mixt_value lstm(mixt_builder *b, const char *name, mixt_value x, int64_t features)
{
    return mixt_lstm(b, name, x, .features = features);
}

static mixt_value gru(mixt_builder *b, const char *name, mixt_value x, int64_t features)
{
    return mixt_gru(b, name, x, .features = features);
}

static mixt_value rnn(mixt_builder *b, const char *name, mixt_value x, int64_t features)
{
    return mixt_rnn(b, name, x, .features = features);
}

static mixt_value stacked(mixt_builder *b, mixt_value ids, layer_fn *layer)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value x = mixt_embedding(b, "emb", ids, .count = s->rows, .features = s->width, .init = 1.0f);
    for (int64_t i = 0; i < s->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "rnn.%lld", (long long)i);
        x = mixt_dropout(b, layer(b, name, x, s->width), s->dropout);
    }
    return mixt_linear(b, "out", x, .features = s->rows);
}

mixt_value mixt__model_lstm(mixt_builder *b, mixt_value ids)
{
    return stacked(b, ids, lstm);
}

mixt_value mixt__model_gru(mixt_builder *b, mixt_value ids)
{
    return stacked(b, ids, gru);
}

mixt_value mixt__model_rnn(mixt_builder *b, mixt_value ids)
{
    return stacked(b, ids, rnn);
}
