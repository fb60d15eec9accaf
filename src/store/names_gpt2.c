/* GPT-2 as Hugging Face transformers' GPT2LMHeadModel writes it. Its Conv1D layers hold (in, out) matrices; the head is
 * the embedding itself. */
#include "store/names_families.h"

static const mixt__name_rule rules[] = {
    {"wte.weight", "transformer.wte.weight", .layout = MIXT_LAYOUT_SAME, .vocabulary = true},
    {"wpe.weight", "transformer.wpe.weight", .layout = MIXT_LAYOUT_SAME, .positions = true},
    {"h.#.ln1.*", "transformer.h.#.ln_1.*", .layout = MIXT_LAYOUT_SAME},
    {"h.#.attn.qkv.*", "transformer.h.#.attn.c_attn.*", .layout = MIXT_LAYOUT_TRANSPOSED},
    {"h.#.attn.proj.*", "transformer.h.#.attn.c_proj.*", .layout = MIXT_LAYOUT_TRANSPOSED},
    {"h.#.ln2.*", "transformer.h.#.ln_2.*", .layout = MIXT_LAYOUT_SAME},
    {"h.#.mlp.fc.*", "transformer.h.#.mlp.c_fc.*", .layout = MIXT_LAYOUT_TRANSPOSED},
    {"h.#.mlp.out.*", "transformer.h.#.mlp.c_proj.*", .layout = MIXT_LAYOUT_TRANSPOSED},
    {"ln_f.*", "transformer.ln_f.*", .layout = MIXT_LAYOUT_SAME},
    {.here = NULL},
};

static const mixt__name_pair tied[] = {{"lm_head.weight", "transformer.wte.weight"}, {.first = NULL}};

static const char *const ignored[] = {"*h.*.attn.bias", "*h.*.attn.masked_bias", NULL}; // causal masks of old files

static const mixt__name_field fields[] = {
    {"architectures", .json = "[\"GPT2LMHeadModel\"]", .free = true},
    {"model_type", .json = "\"gpt2\""},
    {"n_layer", .fact = MIXT_FACT(layers)},
    {"n_embd", .fact = MIXT_FACT(width)},
    {"n_head", .fact = MIXT_FACT(heads)},
    {"n_inner", .fact = MIXT_FACT(inner), .free = true},
    {"n_positions", .fact = MIXT_FACT(positions), .free = true},
    {"vocab_size", .fact = MIXT_FACT(vocab), .free = true},
    {"activation_function", .json = "\"gelu_new\""},
    {"layer_norm_epsilon", .json = "1e-05"},
    {"scale_attn_weights", .json = "true"},
    {"scale_attn_by_inverse_layer_idx", .json = "false"},
    {"tie_word_embeddings", .json = "true"},
    {"bos_token_id", .fact = MIXT_FACT(first_token), .free = true},
    {"eos_token_id", .fact = MIXT_FACT(last_token), .free = true},
    {.key = NULL},
};

const mixt__names mixt__names_gpt2 = {
    .family = "gpt2",
    .prefix = "transformer.",
    .rules = rules,
    .tied = tied,
    .ignored = ignored,
    .fields = fields,
};
