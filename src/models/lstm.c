/* The recurrent language model: embedding, two LSTM layers of 512 by default, linear. */
#include "models/models.h"

#include <stdio.h>

mixt_value mixt__model_lstm(mixt_builder *b, mixt_value ids)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value x = mixt_embedding(b, "emb", ids, .count = s->rows, .features = s->width, .init = 1.0f);
    for (int64_t i = 0; i < s->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "rnn.%lld", (long long)i);
        x = mixt_dropout(b, mixt_lstm(b, name, x, .features = s->width), s->dropout);
    }
    return mixt_linear(b, "out", x, .features = s->rows);
}
