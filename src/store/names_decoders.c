/* The decoders as Hugging Face transformers' <Name>ForCausalLM writes them: one table of names for each way to cut a
 * block's tensors, one table of config.json's fields for each family. What a field means where it is missing is what
 * configuration_<name>.py has.
 */
#include "store/names_families.h"

#define LAYER "model.layers.#."
#define PART(end, number, name)                                                                                        \
    {                                                                                                                  \
        "h.#.attn.qkv." end, LAYER "self_attn." name "_proj." end, .layout = MIXT_LAYOUT_SAME, .part = (number),       \
                                                                   .parts = 3, .heads = true                           \
    }
#define WHOLE(mine, theirs)                                                                                            \
    {                                                                                                                  \
        "h.#." mine ".weight", LAYER theirs ".weight", .layout = MIXT_LAYOUT_SAME                                      \
    }

#define QUERIES_APART(end) PART(end, 0, "q"), PART(end, 1, "k"), PART(end, 2, "v")
#define GATE_APART WHOLE("mlp.gate", "mlp.gate_proj"), WHOLE("mlp.up", "mlp.up_proj")
#define NORMS_BEFORE WHOLE("ln1", "input_layernorm"), WHOLE("ln2", "post_attention_layernorm")
#define NORMS_AFTER WHOLE("ln1_post", "post_attention_layernorm"), WHOLE("ln2_post", "post_feedforward_layernorm")
#define NORMS_AROUND WHOLE("ln1", "input_layernorm"), WHOLE("ln2", "pre_feedforward_layernorm"), NORMS_AFTER
#define NORMS_OF_HEADS WHOLE("attn.q_norm", "self_attn.q_norm"), WHOLE("attn.k_norm", "self_attn.k_norm")
#define REST                                                                                                           \
    {"wte.weight", "model.embed_tokens.weight", .layout = MIXT_LAYOUT_SAME, .vocabulary = true},                       \
        WHOLE("attn.proj", "self_attn.o_proj"), WHOLE("mlp.out", "mlp.down_proj"),                                     \
        {"ln_f.weight", "model.norm.weight", .layout = MIXT_LAYOUT_SAME},                                              \
        {"head.weight", "lm_head.weight", .layout = MIXT_LAYOUT_SAME, .vocabulary = true},                             \
    {                                                                                                                  \
        .here = NULL                                                                                                   \
    }

static const mixt__name_rule norms_before[] = {
    QUERIES_APART("weight"), QUERIES_APART("bias"), NORMS_OF_HEADS, GATE_APART, NORMS_BEFORE, REST};
static const mixt__name_rule norms_after[] = {QUERIES_APART("weight"), NORMS_OF_HEADS, GATE_APART, NORMS_AFTER, REST};
static const mixt__name_rule norms_around[] = {QUERIES_APART("weight"), NORMS_OF_HEADS, GATE_APART, NORMS_AROUND, REST};
static const mixt__name_rule together[] = {WHOLE("attn.qkv", "self_attn.qkv_proj"),
                                           WHOLE("mlp.gate_up", "mlp.gate_up_proj"), NORMS_BEFORE, REST};

static const mixt__name_pair tied[] = {{"lm_head.weight", "model.embed_tokens.weight"}, {.first = NULL}};

static const char *const ignored[] = {"*rotary_emb.inv_freq", NULL}; // frequencies, in old files

/* ---- config.json ---- */

#define BEGIN(model, type)                                                                                             \
    {"architectures", .json = "[\"" model "\"]", .free = true}, {"model_type", .json = "\"" type "\""},                \
        {"num_hidden_layers", .fact = MIXT_FACT(layers)}, {"hidden_size", .fact = MIXT_FACT(width)},                   \
        {"num_attention_heads", .fact = MIXT_FACT(heads)}, {"intermediate_size", .fact = MIXT_FACT(inner)},            \
        {"max_position_embeddings", .fact = MIXT_FACT(positions), .free = true},                                       \
    {                                                                                                                  \
        "vocab_size", .fact = MIXT_FACT(vocab), .free = true                                                           \
    }
#define HEADS(shared, dim)                                                                                             \
    {"num_key_value_heads", .fact = MIXT_FACT(kv_heads), .fallback = shared},                                          \
    {                                                                                                                  \
        "head_dim", .fact = MIXT_FACT(head_dim), .fallback = dim                                                       \
    }
#define EPS(number)                                                                                                    \
    {                                                                                                                  \
        "rms_norm_eps", .fact = MIXT_FACT(eps), .fallback = number                                                     \
    }
// Rotary positions: see names_rope.c.
#define ROPE                                                                                                           \
    {"rope_theta", .fact = MIXT_FACT(rope_theta), .free = true},                                                       \
    {                                                                                                                  \
        "rope_scaling", .special = MIXT_FIELD_ROPE                                                                     \
    }
#define SILU                                                                                                           \
    {                                                                                                                  \
        "hidden_act", .json = "\"silu\""                                                                               \
    }
#define NO_BIASES                                                                                                      \
    {"attention_bias", .json = "false"},                                                                               \
    {                                                                                                                  \
        "mlp_bias", .json = "false"                                                                                    \
    }
#define NO_ATTENTION_BIAS                                                                                              \
    {                                                                                                                  \
        "attention_bias", .json = "false"                                                                              \
    }
// Tensors tell, where they differ.
#define END(is_tied)                                                                                                   \
    {"tie_word_embeddings", .fact = MIXT_FACT(tied), .fallback = is_tied, .free = true},                               \
        {"bos_token_id", .fact = MIXT_FACT(first_token), .free = true},                                                \
        {"eos_token_id", .fact = MIXT_FACT(last_token), .free = true},                                                 \
        {"pad_token_id", .fact = MIXT_FACT(pad_token), .free = true},                                                  \
    {                                                                                                                  \
        .key = NULL                                                                                                    \
    }
#define WINDOW(number)                                                                                                 \
    {                                                                                                                  \
        "sliding_window", .fact = MIXT_FACT(window), .fallback = number, .free = true, .none = true                    \
    }
#define LAYER_TYPES                                                                                                    \
    {                                                                                                                  \
        "layer_types", .special = MIXT_FIELD_LAYER_TYPES                                                               \
    }
#define CAPS(scores, logits)                                                                                           \
    {"attn_logit_softcapping", .fact = MIXT_FACT(softcap), .fallback = scores, .none = true},                          \
    {                                                                                                                  \
        "final_logit_softcapping", .fact = MIXT_FACT(logit_cap), .fallback = logits, .none = true                      \
    }
#define GELU                                                                                                           \
    {                                                                                                                  \
        "hidden_activation", .json = "\"gelu_pytorch_tanh\""                                                           \
    }
#define SCALE                                                                                                          \
    {                                                                                                                  \
        "query_pre_attn_scalar", .fact = MIXT_FACT(query_scale), .fallback = "256"                                     \
    }

static const mixt__name_field llama[] = {
    BEGIN("LlamaForCausalLM", "llama"), HEADS(NULL, NULL), SILU, EPS("1e-06"), ROPE, NO_BIASES, END("false")};
static const mixt__name_field mistral[] = {
    BEGIN("MistralForCausalLM", "mistral"), HEADS("8", NULL), SILU, EPS("1e-06"), ROPE, WINDOW("4096"), END("false")};
static const mixt__name_field qwen2[] = {BEGIN("Qwen2ForCausalLM", "qwen2"),
                                         HEADS("32", NULL),
                                         SILU,
                                         EPS("1e-06"),
                                         ROPE,
                                         {"use_sliding_window", .special = MIXT_FIELD_USES_WINDOW},
                                         WINDOW("4096"),
                                         LAYER_TYPES,
                                         END("false")};
static const mixt__name_field qwen3[] = {BEGIN("Qwen3ForCausalLM", "qwen3"),
                                         HEADS("32", "128"),
                                         SILU,
                                         EPS("1e-06"),
                                         ROPE,
                                         NO_ATTENTION_BIAS,
                                         {"use_sliding_window", .special = MIXT_FIELD_USES_WINDOW},
                                         WINDOW("4096"),
                                         LAYER_TYPES,
                                         END("false")};
static const mixt__name_field phi3[] = {
    BEGIN("Phi3ForCausalLM", "phi3"),
    HEADS(NULL, NULL),
    SILU,
    EPS("1e-05"),
    ROPE,
    {"partial_rotary_factor", .special = MIXT_FIELD_ROPE_SHARE},
    {"original_max_position_embeddings", .fact = MIXT_FACT(rope_original), .free = true},
    WINDOW("null"),
    END("false")};
static const mixt__name_field smollm3[] = {BEGIN("SmolLM3ForCausalLM", "smollm3"),
                                           HEADS("4", NULL),
                                           SILU,
                                           EPS("1e-06"),
                                           ROPE,
                                           NO_BIASES,
                                           {"no_rope_layers", .special = MIXT_FIELD_POSITIONS},
                                           END("true")};
static const mixt__name_field gemma2[] = {BEGIN("Gemma2ForCausalLM", "gemma2"),
                                          HEADS("4", "256"),
                                          GELU,
                                          EPS("1e-06"),
                                          ROPE,
                                          NO_ATTENTION_BIAS,
                                          SCALE,
                                          CAPS("50.0", "30.0"),
                                          WINDOW("4096"),
                                          LAYER_TYPES,
                                          END("true")};
static const mixt__name_field gemma3[] = {
    BEGIN("Gemma3ForCausalLM", "gemma3_text"),
    HEADS("4", "256"),
    GELU,
    EPS("1e-06"),
    ROPE,
    {"rope_local_base_freq", .fact = MIXT_FACT(rope_local), .free = true},
    NO_ATTENTION_BIAS,
    SCALE,
    {"attn_logit_softcapping", .json = "null"}, // which transformers' model has, and does not read
    {"final_logit_softcapping", .fact = MIXT_FACT(logit_cap), .fallback = "null", .none = true},
    WINDOW("4096"),
    LAYER_TYPES,
    END("true")};
static const mixt__name_field olmo2[] = {
    BEGIN("Olmo2ForCausalLM", "olmo2"), HEADS(NULL, NULL), SILU, EPS("1e-05"), ROPE, NO_ATTENTION_BIAS, END("false")};

// Fields that are understood beside those above, and in older files some that transformers' model does not read.
static const char *const none[] = {NULL}, *const used[] = {"max_window_layers", NULL},
                         *const phi[] = {"full_attn_mod", "interpolate_factor", NULL},
                         *const without[] = {"no_rope_layer_interval", "use_sliding_window", "sliding_window",
                                             "max_window_layers",      "layer_types",        NULL},
                         *const gemma[] = {"hidden_act", "_sliding_window_pattern", "sliding_window_pattern",
                                           "sliding_window_size", NULL};

#define DECODER .prefix = "model.", .tied = tied, .ignored = ignored, .rotary = true

const mixt__names mixt__names_decoders[] = {
    {.family = "llama", .rules = norms_before, .fields = llama, .known = none, DECODER},
    {.family = "mistral",
     .rules = norms_before,
     .fields = mistral,
     .known = none,
     .windows = MIXT_WINDOWS_ALL,
     DECODER},
    {.family = "qwen2", .rules = norms_before, .fields = qwen2, .known = used, .windows = MIXT_WINDOWS_USED, DECODER},
    {.family = "qwen3", .rules = norms_before, .fields = qwen3, .known = used, .windows = MIXT_WINDOWS_USED, DECODER},
    {.family = "phi3",
     .rules = together,
     .fields = phi3,
     .known = phi,
     .partial = true,
     .windows = MIXT_WINDOWS_ALL,
     DECODER},
    {.family = "smollm3",
     .rules = norms_before,
     .fields = smollm3,
     .known = without,
     .rope_theta = 2000000,
     .no_positions = true,
     DECODER},
    {.family = "gemma2",
     .rules = norms_around,
     .fields = gemma2,
     .known = gemma,
     .windows = MIXT_WINDOWS_PATTERN,
     .full_every = 2,
     DECODER},
    {.family = "gemma3",
     .type = "gemma3_text",
     .rules = norms_around,
     .fields = gemma3,
     .known = gemma,
     .rope_theta = 1000000,
     .rope_local = 10000,
     .windows = MIXT_WINDOWS_PATTERN,
     .full_every = 6,
     DECODER},
    {.family = "olmo2", .rules = norms_after, .fields = olmo2, .known = none, DECODER},
    {.family = NULL},
};
