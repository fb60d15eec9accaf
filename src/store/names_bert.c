/* BERT as Hugging Face transformers writes it: query, key and value apart. Of BertForMaskedLM the decoder is the
 * embedding itself, with a bias of its own; BertForSequenceClassification has a layer over the first token and one of
 * classes. */
#include "store/names_families.h"

#include <stdio.h>
#include <string.h>

#define ENCODER                                                                                                        \
    {"wte.weight", "bert.embeddings.word_embeddings.weight", .layout = MIXT_LAYOUT_SAME, .vocabulary = true},          \
        {"wpe.weight", "bert.embeddings.position_embeddings.weight", .layout = MIXT_LAYOUT_SAME, .positions = true},   \
        {"wtt.weight", "bert.embeddings.token_type_embeddings.weight", .layout = MIXT_LAYOUT_SAME},                    \
        {"ln_e.*", "bert.embeddings.LayerNorm.*", .layout = MIXT_LAYOUT_SAME},                                         \
        {"h.#.attn.qkv.*", "bert.encoder.layer.#.attention.self.query.*", .layout = MIXT_LAYOUT_SAME, .part = 0,       \
         .parts = 3},                                                                                                  \
        {"h.#.attn.qkv.*", "bert.encoder.layer.#.attention.self.key.*", .layout = MIXT_LAYOUT_SAME, .part = 1,         \
         .parts = 3},                                                                                                  \
        {"h.#.attn.qkv.*", "bert.encoder.layer.#.attention.self.value.*", .layout = MIXT_LAYOUT_SAME, .part = 2,       \
         .parts = 3},                                                                                                  \
        {"h.#.attn.proj.*", "bert.encoder.layer.#.attention.output.dense.*", .layout = MIXT_LAYOUT_SAME},              \
        {"h.#.ln1.*", "bert.encoder.layer.#.attention.output.LayerNorm.*", .layout = MIXT_LAYOUT_SAME},                \
        {"h.#.mlp.fc.*", "bert.encoder.layer.#.intermediate.dense.*", .layout = MIXT_LAYOUT_SAME},                     \
        {"h.#.mlp.out.*", "bert.encoder.layer.#.output.dense.*", .layout = MIXT_LAYOUT_SAME},                          \
    {                                                                                                                  \
        "h.#.ln2.*", "bert.encoder.layer.#.output.LayerNorm.*", .layout = MIXT_LAYOUT_SAME                             \
    }

static const mixt__name_rule rules[] = {
    ENCODER,
    {"head.fc.*", "cls.predictions.transform.dense.*", .layout = MIXT_LAYOUT_SAME},
    {"head.ln.*", "cls.predictions.transform.LayerNorm.*", .layout = MIXT_LAYOUT_SAME},
    {"head.bias", "cls.predictions.bias", .layout = MIXT_LAYOUT_SAME, .vocabulary = true},
    {.here = NULL},
};

static const mixt__name_rule classify_rules[] = {
    ENCODER,
    {"pooler.*", "bert.pooler.dense.*", .layout = MIXT_LAYOUT_SAME},
    {"fc.*", "classifier.*", .layout = MIXT_LAYOUT_SAME},
    {.here = NULL},
};

static const mixt__name_pair aliases[] = {
    {"LayerNorm.weight", "LayerNorm.gamma"},
    {"LayerNorm.bias", "LayerNorm.beta"},
    {"cls.predictions.bias", "cls.predictions.decoder.bias"},
    {.first = NULL},
};

static const mixt__name_pair tied[] = {
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
    {"cls.predictions.decoder.bias", "cls.predictions.bias"},
    {.first = NULL},
};

/* The other task of BERT's first training, and a list of positions. */
static const char *const ignored[] = {"bert.pooler.*", "cls.seq_relationship.*", "*embeddings.position_ids", NULL};

#define FIELDS                                                                                                         \
    {"model_type", .json = "\"bert\""}, {"num_hidden_layers", .fact = MIXT_FACT(layers)},                              \
        {"hidden_size", .fact = MIXT_FACT(width)}, {"num_attention_heads", .fact = MIXT_FACT(heads)},                  \
        {"intermediate_size", .fact = MIXT_FACT(inner)},                                                               \
        {"max_position_embeddings", .fact = MIXT_FACT(positions), .free = true},                                       \
        {"type_vocab_size", .fact = MIXT_FACT(types), .free = true},                                                   \
        {"vocab_size", .fact = MIXT_FACT(vocab), .free = true}, {"hidden_act", .json = "\"gelu\""},                    \
        {"layer_norm_eps", .json = "1e-12"}, {"position_embedding_type", .json = "\"absolute\""},                      \
    {                                                                                                                  \
        "pad_token_id", .fact = MIXT_FACT(pad_token), .free = true                                                     \
    }

static const mixt__name_field fields[] = {
    {"architectures", .json = "[\"BertForMaskedLM\"]", .free = true},
    FIELDS,
    {"tie_word_embeddings", .json = "true"},
    {.key = NULL},
};

static const mixt__name_field classify_fields[] = {
    {"architectures", .json = "[\"BertForSequenceClassification\"]", .free = true},
    FIELDS,
    {"num_labels", .fact = MIXT_FACT(classes), .free = true},
    {"mixt_pool", .fact = MIXT_FACT(architecture), .free = true}, // "first", as transformers has it, or "mean"
    {.key = NULL},
};

/* What is of use for masked tokens alone. */
static const char *const classify_ignored[] = {"cls.*", "*embeddings.position_ids", NULL};

/** The vector that stands for a text is not told by any tensor. */
static mixt__name_differs classify_differs(const mixt__file_tensor *here, int64_t count, const char *architecture)
{
    mixt__name_differs differs = {{0}};
    (void)here;
    (void)count;
    if (strcmp(architecture, "mean") == 0)
        snprintf(differs.text, sizeof differs.text,
                 "transformers takes the first token's vector for a text, this model the mean over its tokens");
    return differs;
}

const mixt__names mixt__names_bert = {
    .family = "bert",
    .prefix = "bert.",
    .rules = rules,
    .aliases = aliases,
    .tied = tied,
    .ignored = ignored,
    .fields = fields,
};

const mixt__names mixt__names_bert_classify = {
    .family = "bert_classify",
    .type = "bert",
    .architecture = "BertForSequenceClassification",
    .prefix = "bert.",
    .rules = classify_rules,
    .aliases = aliases,
    .ignored = classify_ignored,
    .fields = classify_fields,
    .labels = true,
    .differs = classify_differs,
};
