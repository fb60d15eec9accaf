/* BERT for classes of texts: the encoder of bert_mlm.c, one vector a text, a layer with tanh, and the classes.
 *
 * The vector is that of the first token, [CLS], as in Hugging Face's BertForSequenceClassification, whose weights give
 * the same outputs here; or the mean over the tokens that a text has, which learns faster from little. Padding is seen
 * by nobody: attention stops at each text's length, and the mean counts no more.
 */
#include "models/models.h"

#define INIT 0.02f

/** (B, T, C) → (B, C): that of the first token. */
static mixt_value first_of(mixt_builder *b, mixt_value x)
{
    int64_t dims[] = {mixt_value_dim(b, x, 0), mixt_value_dim(b, x, 2)};
    return mixt_reshape(b, mixt_slice(b, x, 1, 0, 1), 2, dims);
}

mixt_value mixt__model_bert_classify(mixt_builder *b, mixt_value ids)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value words, x = mixt__bert_encode(b, ids, mixt_input_lengths(b, "text"), &words);
    x = s->pool == MIXT_POOL_MEAN ? mixt__mean_of_masked(b, mixt_input_mask(b, "text"), x) : first_of(b, x);
    x = mixt_tanh(b, mixt_linear(b, "pooler", x, .features = s->width, .init = INIT));
    return mixt_linear(b, "fc", mixt_dropout(b, x, s->dropout), .features = s->classes, .init = INIT);
}
