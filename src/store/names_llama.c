/* Llama as Hugging Face transformers' LlamaForCausalLM writes it: query, key and value apart, keys and values perhaps
 * narrower; the output head is a matrix of its own, or the embedding. */
#include "store/names_families.h"

static const mixt__name_rule rules[] = {
    {"wte.weight", "model.embed_tokens.weight", .layout = MIXT_LAYOUT_SAME, .vocabulary = true},
    {"h.#.ln1.weight", "model.layers.#.input_layernorm.weight", .layout = MIXT_LAYOUT_SAME},
    {"h.#.attn.qkv.weight", "model.layers.#.self_attn.q_proj.weight", .layout = MIXT_LAYOUT_SAME, .part = 0, .parts = 3,
     .square = true},
    {"h.#.attn.qkv.weight", "model.layers.#.self_attn.k_proj.weight", .layout = MIXT_LAYOUT_SAME, .part = 1, .parts = 3,
     .square = true},
    {"h.#.attn.qkv.weight", "model.layers.#.self_attn.v_proj.weight", .layout = MIXT_LAYOUT_SAME, .part = 2, .parts = 3,
     .square = true},
    {"h.#.attn.proj.weight", "model.layers.#.self_attn.o_proj.weight", .layout = MIXT_LAYOUT_SAME},
    {"h.#.ln2.weight", "model.layers.#.post_attention_layernorm.weight", .layout = MIXT_LAYOUT_SAME},
    {"h.#.mlp.gate.weight", "model.layers.#.mlp.gate_proj.weight", .layout = MIXT_LAYOUT_SAME},
    {"h.#.mlp.up.weight", "model.layers.#.mlp.up_proj.weight", .layout = MIXT_LAYOUT_SAME},
    {"h.#.mlp.out.weight", "model.layers.#.mlp.down_proj.weight", .layout = MIXT_LAYOUT_SAME},
    {"ln_f.weight", "model.norm.weight", .layout = MIXT_LAYOUT_SAME},
    {"head.weight", "lm_head.weight", .layout = MIXT_LAYOUT_SAME, .vocabulary = true},
    {.here = NULL},
};

static const mixt__name_pair tied[] = {{"lm_head.weight", "model.embed_tokens.weight"}, {.first = NULL}};

static const char *const ignored[] = {"*rotary_emb.inv_freq", NULL}; // frequencies, in old files

static const mixt__name_field fields[] = {
    {"architectures", .json = "[\"LlamaForCausalLM\"]", .free = true},
    {"model_type", .json = "\"llama\""},
    {"num_hidden_layers", .fact = MIXT_FACT(layers)},
    {"hidden_size", .fact = MIXT_FACT(width)},
    {"num_attention_heads", .fact = MIXT_FACT(heads)},
    {"num_key_value_heads", .fact = MIXT_FACT(kv_heads)},
    {"head_dim", .fact = MIXT_FACT(head_dim)},
    {"intermediate_size", .fact = MIXT_FACT(inner)},
    {"max_position_embeddings", .fact = MIXT_FACT(positions), .free = true},
    {"vocab_size", .fact = MIXT_FACT(vocab), .free = true},
    {"hidden_act", .json = "\"silu\""},
    {"rms_norm_eps", .fact = MIXT_FACT(eps), .fallback = "1e-06"},
    {"rope_theta", .fact = MIXT_FACT(rope_theta), .free = true}, // with the scaling: see names_rope.c
    {"rope_scaling", .fact = MIXT_FACT(rope_factor), .free = true},
    {"attention_bias", .json = "false"},
    {"mlp_bias", .json = "false"},
    {"tie_word_embeddings", .fact = MIXT_FACT(tied), .free = true}, // tensors tell, where they differ
    {"bos_token_id", .fact = MIXT_FACT(first_token), .free = true},
    {"eos_token_id", .fact = MIXT_FACT(last_token), .free = true},
    {.key = NULL},
};

const mixt__names mixt__names_llama = {
    .family = "llama",
    .prefix = "model.",
    .rules = rules,
    .tied = tied,
    .ignored = ignored,
    .fields = fields,
    .rotary = true,
};
