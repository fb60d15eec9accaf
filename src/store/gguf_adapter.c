/* Adapters (LoRA) in GGUF: of each layer's weight two matrices, "blk.0.attn_q.weight.lora_a" and ".lora_b". llama.cpp
 * multiplies by alpha over the rank.
 */
#include "store/gguf_model.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Where "lora_A" or "lora_B" begins in a name of PEFT's, behind the layer's; NULL: it is neither. */
static const char *half_in(const char *name, bool *second)
{
    const char *first = strstr(name, ".lora_A."), *other = strstr(name, ".lora_B.");
    *second = !first && other;
    return first ? first : other;
}

static mixt_status add_half(mixt__gguf_model *m, int64_t index)
{
    static const char before[] = "base_model.model.";
    const mixt__file_tensor *there = &m->view->tensors[index];
    const char *name = there->name;
    bool second;
    int64_t layer;
    name += !strncmp(name, before, sizeof before - 1) ? sizeof before - 1 : 0;
    const char *end = half_in(name, &second);
    char *weight = end ? mixt__arena_printf(&m->arena, "%.*s.weight", (int)(end - name), name) : NULL;
    if (end && !weight)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for an adapter");
    const mixt__gguf_name *row = weight ? mixt__gguf_row_of(m->family, weight, &layer) : NULL;
    if (!row || there->rank != 2 || !strcmp(row->name, "token_embd.weight"))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "tensor '%s': an adapter of GGUF's architecture %s has no place for it, but for LoRA beside "
                          "linear layers",
                          there->name, m->family->architecture);
    const char *base = mixt__gguf_name_of(m, row, layer);
    mixt__gguf_tensor t = {.rank = 2, .dims = {there->dims[0], there->dims[1]}};
    t.name = base ? mixt__arena_printf(&m->arena, "%s.lora_%c", base, second ? 'b' : 'a') : NULL;
    t.type = there->dims[1] % mixt__gguf_block(m->type) ? MIXT_GGUF_F16 : m->type;
    mixt__gguf_source s = {.there = index};
    bool rotated = row->move == MIXT_GGUF_QUERIES || row->move == MIXT_GGUF_KEYS;
    if (second && rotated && m->family->pairs) {
        s.move = row->move;
        s.heads = row->move == MIXT_GGUF_KEYS ? m->kv_heads : m->heads;
        if (there->dims[0] != s.heads * m->head)
            return mixt__fail(MIXT_ERROR_FORMAT,
                              "tensor '%s' has %lld rows, not %lld heads of %lld: it is another "
                              "model's",
                              there->name, (long long)there->dims[0], (long long)s.heads, (long long)m->head);
    }
    return mixt__gguf_model_push(m, &t, &s);
}

mixt_status mixt__gguf_adapter_open(mixt__gguf_model *m, const char *path, const json_t *config, mixt__view *view,
                                    mixt__gguf_type type)
{
    MIXT_TRY(mixt__gguf_model_begin(m, path, config, view, type));
    for (int64_t i = 0; i < view->count; i++)
        MIXT_TRY(add_half(m, i));
    return MIXT_OK;
}

mixt_status mixt__gguf_adapter_fields(const mixt__gguf_model *m, const json_t *about, mixt__gguf_fields *fields,
                                      const char *name)
{
    double alpha = json_number_value(json_object_get(about, "lora_alpha"));
    double rank = json_number_value(json_object_get(about, "r"));
    if (!(alpha > 0) || !(rank > 0))
        return mixt__fail(MIXT_ERROR_FORMAT, "adapter_config.json: lora_alpha and r make no sense");
    if (json_is_true(json_object_get(about, "use_rslora")))
        alpha *= sqrt(rank);
    mixt__gguf_put_text(fields, "general.architecture", m->family->architecture);
    mixt__gguf_put_text(fields, "general.type", "adapter");
    mixt__gguf_put_text(fields, "general.name", name);
    mixt__gguf_put_uint(fields, "general.file_type", mixt__gguf_file_type(m->type));
    if (mixt__gguf_block(m->type) > 1)
        mixt__gguf_put_uint(fields, "general.quantization_version", 2);
    mixt__gguf_put_text(fields, "adapter.type", "lora");
    mixt__gguf_put_float(fields, "adapter.lora.alpha", alpha);
    return MIXT_OK;
}
