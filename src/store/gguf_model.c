/* The families, and their tensors. */
#include "store/gguf_model.h"

#include "base/status.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define BLOCK "model.layers.#."

/** Decoders with a norm in front of attention and one in front of the perceptron. */
#define DECODER                                                                                                        \
    {"model.embed_tokens.weight", "token_embd.weight", MIXT_GGUF_AS_IS},                                               \
        {"model.norm.weight", "output_norm.weight", MIXT_GGUF_NORM},                                                   \
        {"lm_head.weight", "output.weight", MIXT_GGUF_AS_IS},                                                          \
        {BLOCK "input_layernorm.weight", "blk.#.attn_norm.weight", MIXT_GGUF_NORM},                                    \
        {BLOCK "self_attn.q_proj.weight", "blk.#.attn_q.weight", MIXT_GGUF_QUERIES},                                   \
        {BLOCK "self_attn.k_proj.weight", "blk.#.attn_k.weight", MIXT_GGUF_KEYS},                                      \
        {BLOCK "self_attn.v_proj.weight", "blk.#.attn_v.weight", MIXT_GGUF_AS_IS},                                     \
        {BLOCK "self_attn.o_proj.weight", "blk.#.attn_output.weight", MIXT_GGUF_AS_IS},                                \
        {BLOCK "mlp.gate_proj.weight", "blk.#.ffn_gate.weight", MIXT_GGUF_AS_IS},                                      \
        {BLOCK "mlp.up_proj.weight", "blk.#.ffn_up.weight", MIXT_GGUF_AS_IS},                                          \
    {                                                                                                                  \
        BLOCK "mlp.down_proj.weight", "blk.#.ffn_down.weight", MIXT_GGUF_AS_IS                                         \
    }
#define BIASES                                                                                                         \
    {BLOCK "self_attn.q_proj.bias", "blk.#.attn_q.bias", MIXT_GGUF_QUERIES},                                           \
        {BLOCK "self_attn.k_proj.bias", "blk.#.attn_k.bias", MIXT_GGUF_KEYS},                                          \
    {                                                                                                                  \
        BLOCK "self_attn.v_proj.bias", "blk.#.attn_v.bias", MIXT_GGUF_AS_IS                                            \
    }
#define HEAD_NORMS                                                                                                     \
    {BLOCK "self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", MIXT_GGUF_NORM},                                     \
    {                                                                                                                  \
        BLOCK "self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", MIXT_GGUF_NORM                                    \
    }

static const mixt__gguf_name of_llama[] = {
    DECODER,
    BIASES,
    {BLOCK "post_attention_layernorm.weight", "blk.#.ffn_norm.weight", MIXT_GGUF_NORM},
    {BLOCK "self_attn.o_proj.bias", "blk.#.attn_output.bias", MIXT_GGUF_AS_IS},
    {BLOCK "mlp.gate_proj.bias", "blk.#.ffn_gate.bias", MIXT_GGUF_AS_IS},
    {BLOCK "mlp.up_proj.bias", "blk.#.ffn_up.bias", MIXT_GGUF_AS_IS},
    {BLOCK "mlp.down_proj.bias", "blk.#.ffn_down.bias", MIXT_GGUF_AS_IS},
    {.there = NULL},
};

static const mixt__gguf_name of_qwen2[] = {
    DECODER,
    BIASES,
    {BLOCK "post_attention_layernorm.weight", "blk.#.ffn_norm.weight", MIXT_GGUF_NORM},
    {.there = NULL},
};

static const mixt__gguf_name of_qwen3[] = {
    DECODER,
    HEAD_NORMS,
    {BLOCK "post_attention_layernorm.weight", "blk.#.ffn_norm.weight", MIXT_GGUF_NORM},
    {.there = NULL},
};

static const mixt__gguf_name of_phi3[] = {
    DECODER,
    {BLOCK "post_attention_layernorm.weight", "blk.#.ffn_norm.weight", MIXT_GGUF_NORM},
    {BLOCK "self_attn.qkv_proj.weight", "blk.#.attn_qkv.weight", MIXT_GGUF_AS_IS},
    {BLOCK "mlp.gate_up_proj.weight", "blk.#.ffn_up.weight", MIXT_GGUF_AS_IS},
    {.there = NULL},
};

/** With norms behind attention and the perceptron, too. */
static const mixt__gguf_name of_gemma[] = {
    DECODER,
    HEAD_NORMS,
    {BLOCK "post_attention_layernorm.weight", "blk.#.post_attention_norm.weight", MIXT_GGUF_NORM},
    {BLOCK "pre_feedforward_layernorm.weight", "blk.#.ffn_norm.weight", MIXT_GGUF_NORM},
    {BLOCK "post_feedforward_layernorm.weight", "blk.#.post_ffw_norm.weight", MIXT_GGUF_NORM},
    {.there = NULL},
};

static const mixt__gguf_name of_gpt2[] = {
    {"transformer.wte.weight", "token_embd.weight", MIXT_GGUF_AS_IS},
    {"transformer.wpe.weight", "position_embd.weight", MIXT_GGUF_AS_IS},
    {"transformer.ln_f.weight", "output_norm.weight", MIXT_GGUF_AS_IS},
    {"transformer.ln_f.bias", "output_norm.bias", MIXT_GGUF_AS_IS},
    {"lm_head.weight", "output.weight", MIXT_GGUF_AS_IS},
    {"transformer.h.#.ln_1.weight", "blk.#.attn_norm.weight", MIXT_GGUF_AS_IS},
    {"transformer.h.#.ln_1.bias", "blk.#.attn_norm.bias", MIXT_GGUF_AS_IS},
    {"transformer.h.#.attn.c_attn.weight", "blk.#.attn_qkv.weight", MIXT_GGUF_TURNED},
    {"transformer.h.#.attn.c_attn.bias", "blk.#.attn_qkv.bias", MIXT_GGUF_AS_IS},
    {"transformer.h.#.attn.c_proj.weight", "blk.#.attn_output.weight", MIXT_GGUF_TURNED},
    {"transformer.h.#.attn.c_proj.bias", "blk.#.attn_output.bias", MIXT_GGUF_AS_IS},
    {"transformer.h.#.ln_2.weight", "blk.#.ffn_norm.weight", MIXT_GGUF_AS_IS},
    {"transformer.h.#.ln_2.bias", "blk.#.ffn_norm.bias", MIXT_GGUF_AS_IS},
    {"transformer.h.#.mlp.c_fc.weight", "blk.#.ffn_up.weight", MIXT_GGUF_TURNED},
    {"transformer.h.#.mlp.c_fc.bias", "blk.#.ffn_up.bias", MIXT_GGUF_AS_IS},
    {"transformer.h.#.mlp.c_proj.weight", "blk.#.ffn_down.weight", MIXT_GGUF_TURNED},
    {"transformer.h.#.mlp.c_proj.bias", "blk.#.ffn_down.bias", MIXT_GGUF_AS_IS},
    {.there = NULL},
};

static const mixt__gguf_family families[] = {
    {.type = "llama", .architecture = "llama", .names = of_llama, .pairs = true, .smooth = true},
    {.type = "mistral", .architecture = "llama", .names = of_llama, .pairs = true, .smooth = true},
    {.type = "smollm3", .architecture = "smollm3", .names = of_llama, .pairs = true},
    {.type = "qwen2", .architecture = "qwen2", .names = of_qwen2},
    {.type = "qwen3", .architecture = "qwen3", .names = of_qwen3},
    {.type = "phi3", .architecture = "phi3", .names = of_phi3},
    {.type = "gemma2",
     .architecture = "gemma2",
     .names = of_gemma,
     .plus_one = true,
     .tied = true,
     .windows = 2,
     .widest = 46},
    {.type = "gemma3_text", .architecture = "gemma3", .names = of_gemma, .plus_one = true, .windows = 6, .widest = 62},
    {.type = "olmo2", .architecture = "olmo2", .names = of_gemma, .own_output = true},
    {.type = "gpt2", .architecture = "gpt2", .names = of_gpt2},
};

/** Ends of names that are known, and of no use there: frequencies and masks in old files. */
static const char *const ignored[] = {"rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias"};

/* ---- names ---- */

/** Whether a name is of a pattern; the layer's number in *layer, -1 where the pattern has none. */
static bool is_named(const char *pattern, const char *name, int64_t *layer)
{
    *layer = -1;
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*pattern != *name++)
                return false;
            continue;
        }
        if (!isdigit((unsigned char)*name))
            return false;
        for (*layer = 0; isdigit((unsigned char)*name) && *layer < 1000000; name++)
            *layer = *layer * 10 + (*name - '0');
    }
    return !*name;
}

const mixt__gguf_name *mixt__gguf_row_of(const mixt__gguf_family *family, const char *name, int64_t *layer)
{
    for (const mixt__gguf_name *row = family->names; row->there; row++) {
        const char *dot = strchr(row->there, '.');
        if (is_named(row->there, name, layer) || (strncmp(row->there, "lm_head", 7) && is_named(dot + 1, name, layer)))
            return row;
    }
    return NULL;
}

static bool is_ignored(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        size_t end = strlen(ignored[i]);
        if (length >= end && !strcmp(name + length - end, ignored[i]))
            return true;
    }
    return false;
}

const char *mixt__gguf_name_of(mixt__gguf_model *m, const mixt__gguf_name *row, int64_t layer)
{
    const char *at = strchr(row->name, '#');
    return at ? mixt__arena_printf(&m->arena, "%.*s%lld%s", (int)(at - row->name), row->name, (long long)layer, at + 1)
              : row->name;
}

/* ---- types ---- */

/** Vectors and positions stay FP32. Rows that are no whole blocks are FP16. Q4_0 keeps the head in Q8_0, and so the
 *  embedding that is the head: its errors go straight into the logits. */
static mixt__gguf_type type_of(const mixt__gguf_model *m, const mixt__gguf_tensor *t, bool tied)
{
    if (t->rank < 2 || !strcmp(t->name, "position_embd.weight"))
        return MIXT_GGUF_F32;
    if (t->dims[t->rank - 1] % mixt__gguf_block(m->type))
        return MIXT_GGUF_F16;
    bool head = !strcmp(t->name, tied ? "token_embd.weight" : "output.weight");
    return m->type == MIXT_GGUF_Q4_0 && head ? MIXT_GGUF_Q8_0 : m->type;
}

/* ---- tensors ---- */

mixt_status mixt__gguf_model_push(mixt__gguf_model *m, const mixt__gguf_tensor *tensor, const mixt__gguf_source *source)
{
    if (!tensor->name || !mixt__grow((void **)&m->tensors, &m->capacity, m->count, sizeof *m->tensors) ||
        !mixt__grow((void **)&m->sources, &m->source_capacity, m->count, sizeof *m->sources))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its tensors", m->path);
    m->tensors[m->count] = *tensor;
    m->sources[m->count++] = *source;
    return MIXT_OK;
}

mixt_status mixt__gguf_model_add(mixt__gguf_model *m, const char *name, float *values, int64_t count)
{
    mixt__gguf_tensor t = {.name = name, .type = MIXT_GGUF_F32, .rank = 1, .dims = {count}};
    mixt__gguf_source s = {.there = -1, .values = values};
    return mixt__gguf_model_push(m, &t, &s);
}

static mixt_status add_tensor(mixt__gguf_model *m, int64_t index, const mixt__gguf_name *row, int64_t layer)
{
    const mixt__file_tensor *there = &m->view->tensors[index];
    const mixt__gguf_family *f = m->family;
    if (there->rank < 1 || there->rank > 2)
        return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s': %d dimensions, where %s has 1 or 2", there->name,
                          there->rank, f->type);
    if (layer >= m->layers)
        return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s': there are %lld layers by %s", there->name,
                          (long long)m->layers, m->path);
    bool rotated = row->move == MIXT_GGUF_QUERIES || row->move == MIXT_GGUF_KEYS;
    mixt__gguf_source s = {.there = index, .move = rotated && !f->pairs ? MIXT_GGUF_AS_IS : row->move};
    s.heads = row->move == MIXT_GGUF_KEYS ? m->kv_heads : m->heads;
    s.add = row->move == MIXT_GGUF_NORM && f->plus_one;
    mixt__gguf_tensor t = {.name = mixt__gguf_name_of(m, row, layer), .rank = there->rank};
    t.dims[0] = there->dims[0];
    t.dims[1] = there->dims[1];
    t.whole = s.move == MIXT_GGUF_TURNED && there->rank == 2;
    if (t.whole) {
        t.dims[0] = there->dims[1];
        t.dims[1] = there->dims[0];
    }
    if (rotated && f->pairs && there->dims[0] != s.heads * m->head)
        return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s' has %lld rows, not %lld heads of %lld", there->name,
                          (long long)there->dims[0], (long long)s.heads, (long long)m->head);
    return mixt__gguf_model_push(m, &t, &s);
}

/** Whether a tensor there is the output head, of a model whose head is the embedding. */
static bool is_second_head(const mixt__gguf_model *m, const mixt__gguf_name *row)
{
    const json_t *tied = json_object_get(m->config, "tie_word_embeddings");
    bool is_tied = m->family->tied || json_is_true(tied) || (!tied && !strcmp(m->family->type, "gpt2"));
    return !strcmp(row->name, "output.weight") && is_tied;
}

static mixt_status find_tensors(mixt__gguf_model *m)
{
    int64_t embedding = -1, layer;
    bool head = false;
    for (int64_t i = 0; i < m->view->count; i++) {
        const mixt__gguf_name *row = mixt__gguf_row_of(m->family, m->view->tensors[i].name, &layer);
        if (!row && !is_ignored(m->view->tensors[i].name))
            return mixt__fail(MIXT_ERROR_UNSUPPORTED, "tensor '%s': GGUF's architecture %s has no place for it",
                              m->view->tensors[i].name, m->family->architecture);
        if (!row || is_second_head(m, row))
            continue;
        embedding = strcmp(row->name, "token_embd.weight") ? embedding : i;
        head = head || !strcmp(row->name, "output.weight");
        MIXT_TRY(add_tensor(m, i, row, layer));
    }
    if (embedding < 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: none of its tensors is the table of tokens (%s)", m->path,
                          m->family->names[0].there);
    m->vocab = m->view->tensors[embedding].dims[0];
    if (!head && m->family->own_output) { // the embedding once more
        static const mixt__gguf_name again = {"", "output.weight", MIXT_GGUF_AS_IS};
        MIXT_TRY(add_tensor(m, embedding, &again, -1));
        head = true;
    }
    for (int64_t i = 0; i < m->count; i++)
        m->tensors[i].type = type_of(m, &m->tensors[i], !head);
    return mixt__gguf_rope_tensors(m);
}

/* ---- opening ---- */

static mixt_status read_sizes(mixt__gguf_model *m)
{
    bool gpt2 = !strcmp(m->family->type, "gpt2");
    m->width = (int64_t)mixt__gguf_number(m, gpt2 ? "n_embd" : "hidden_size", 0);
    m->heads = (int64_t)mixt__gguf_number(m, gpt2 ? "n_head" : "num_attention_heads", 0);
    m->layers = (int64_t)mixt__gguf_number(m, gpt2 ? "n_layer" : "num_hidden_layers", 0);
    m->positions = (int64_t)mixt__gguf_number(m, gpt2 ? "n_positions" : "max_position_embeddings", gpt2 ? 1024 : 2048);
    m->kv_heads = (int64_t)mixt__gguf_number(m, "num_key_value_heads", (double)m->heads);
    if (m->width < 1 || m->heads < 1 || m->layers < 1 || m->kv_heads < 1 || m->positions < 1)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: does not say how many layers and heads there are, or how wide it is",
                          m->path);
    m->head = (int64_t)mixt__gguf_number(m, "head_dim", (double)(m->width / m->heads));
    return MIXT_OK;
}

mixt_status mixt__gguf_model_begin(mixt__gguf_model *m, const char *path, const json_t *config, mixt__view *view,
                                   mixt__gguf_type type)
{
    const char *name = json_string_value(json_object_get(config, "model_type"));
    *m = (mixt__gguf_model){.path = path, .config = config, .view = view, .type = type};
    for (size_t i = 0; name && i < sizeof families / sizeof families[0]; i++)
        if (!strcmp(families[i].type, name))
            m->family = &families[i];
    if (!m->family)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: model_type '%s' cannot be written as GGUF here: llama, mistral, smollm3, qwen2, qwen3, "
                          "phi3, gemma2, gemma3_text, olmo2 and gpt2 can",
                          path, name ? name : "");
    return read_sizes(m);
}

mixt_status mixt__gguf_model_open(mixt__gguf_model *m, const char *path, const json_t *config, mixt__view *view,
                                  mixt__gguf_type type)
{
    MIXT_TRY(mixt__gguf_model_begin(m, path, config, view, type));
    return find_tensors(m);
}

void mixt__gguf_model_close(mixt__gguf_model *m)
{
    mixt__free(m->tensors);
    mixt__free(m->sources);
    mixt__arena_free(&m->arena);
    *m = (mixt__gguf_model){0};
}

/* ---- rows ---- */

/** Where row `r` of the file is there: a head's neighbours are its two halves. */
static int64_t half_of(const mixt__gguf_source *s, int64_t rows, int64_t r)
{
    int64_t head = rows / s->heads, at = r % head;
    return r - at + at % 2 * (head / 2) + at / 2;
}

static mixt_status read_turned(mixt__gguf_model *m, const mixt__gguf_tensor *t, int64_t there, float *values)
{
    int64_t in = t->dims[1], out = t->dims[0];
    float *row = mixt__alloc_uninit((size_t)out * sizeof *row);
    mixt_status status = row ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for tensor '%s'", t->name);
    for (int64_t i = 0; status == MIXT_OK && i < in; i++) {
        status = m->view->rows(m->view, there, i, 1, row);
        for (int64_t o = 0; status == MIXT_OK && o < out; o++)
            values[o * in + i] = row[o];
    }
    mixt__free(row);
    return status;
}

mixt_status mixt__gguf_model_rows(void *model, int64_t index, int64_t first, int64_t rows, float *values)
{
    mixt__gguf_model *m = model;
    const mixt__gguf_tensor *t = &m->tensors[index];
    const mixt__gguf_source *s = &m->sources[index];
    int64_t row = t->rank == 1 ? 1 : t->dims[1];
    rows = t->rank == 1 ? t->dims[0] : rows;
    if (s->there < 0) {
        memcpy(values, s->values, (size_t)rows * sizeof *values);
        return MIXT_OK;
    }
    if (t->whole)
        MIXT_TRY(read_turned(m, t, s->there, values));
    else if (s->move != MIXT_GGUF_QUERIES && s->move != MIXT_GGUF_KEYS)
        MIXT_TRY(m->view->rows(m->view, s->there, first, rows, values));
    else
        for (int64_t r = 0; r < rows; r++)
            MIXT_TRY(m->view->rows(m->view, s->there, half_of(s, t->dims[0], first + r), 1, values + r * row));
    for (int64_t i = 0; s->add && i < rows * row; i++)
        values[i] += 1;
    return mixt__weights_finite(t->name, values, 0, rows * row, "nothing is written of weights that are damaged");
}
