/* BERT for classes of texts: the encoder of bert_mlm.c, one vector a text, a layer with tanh, and the classes.
 *
 * The vector is that of the first token, [CLS], as in Hugging Face's BertForSequenceClassification, whose weights give
 * the same outputs here; or the mean over the tokens that a text has, which learns faster from little. Padding is seen
 * by nobody: attention stops at each text's length, and the mean counts no more.
 */
#include "models/models.h"

#define INIT 0.02f

/** (B, T, C) → (B, C): the mean over the tokens that are there, in FP32. */
static mixt_value mean_of(mixt_builder *b, mixt_value x)
{
    mixt_value mask = mixt_input_mask(b, "text"); // (B, T)
    int64_t batch = mixt_value_dim(b, mask, 0), places = mixt_value_dim(b, mask, 1);
    mixt_value here = mixt_reshape(b, mask, 3, (int64_t[]){batch, places, 1});
    mixt_value sum = mixt_sum(b, mixt_mul(b, mixt_cast(b, x, MIXT_DTYPE_FP32), here), .axes = {1}, .axis_count = 1);
    return mixt_div(b, sum, mixt_sum(b, mask, .axes = {1}, .axis_count = 1, .keep = true));
}

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
    x = s->pool == MIXT_POOL_MEAN ? mean_of(b, x) : first_of(b, x);
    x = mixt_tanh(b, mixt_linear(b, "pooler", x, .features = s->width, .init = INIT));
    return mixt_linear(b, "fc", mixt_dropout(b, x, s->dropout), .features = s->classes, .init = INIT);
}
