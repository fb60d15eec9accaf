/* config.json: written from a family's table of fields, and read back against it. */
#include "store/names_families.h"

#include "base/status.h"
#include "store/file.h"
#include "store/json.h"
#include "store/names_layers.h"
#include "store/names_rope.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mixt__names *const families[] = {&mixt__names_gpt2,   &mixt__names_bert, &mixt__names_bert_classify,
                                              &mixt__names_resnet, &mixt__names_vgg,  NULL};

/** The decoders, then the others; NULL past the last. */
static const mixt__names *family_at(int index)
{
    int decoders = 0;
    while (mixt__names_decoders[decoders].family)
        decoders++;
    return index < decoders ? &mixt__names_decoders[index] : families[index - decoders];
}

const mixt__names *mixt__names_find(const char *family)
{
    for (int i = 0; family && family_at(i); i++)
        if (!strcmp(family_at(i)->family, family))
            return family_at(i);
    return NULL;
}

const char *mixt__names_layers_key(const mixt__names *names)
{
    const mixt__name_field *field = names->fields;
    while (field && field->key && field->fact != MIXT_FACT(layers))
        field++;
    return field && field->key ? field->key : "";
}

/** NULL: no memory. */
static json_t *constant(const char *text)
{
    json_error_t error;
    return mixt__json_load(text, strlen(text), JSON_DECODE_ANY, &error);
}

/** Whether the fact is a double. */
static bool is_real(const mixt__name_field *field)
{
    static const size_t reals[] = {MIXT_FACT(eps),          MIXT_FACT(rope_theta), MIXT_FACT(rope_local),
                                   MIXT_FACT(softcap),      MIXT_FACT(logit_cap),  MIXT_FACT(query_scale),
                                   MIXT_FACT(rope_original)};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        if (reals[i] == field->fact)
            return true;
    return false;
}

/** A field's value as JSON; NULL: no memory. */
static json_t *value_of(const mixt__name_field *field, const mixt__name_facts *facts)
{
    if (field->special == MIXT_FIELD_ROPE)
        return mixt__rope_pack(facts);
    if (field->special == MIXT_FIELD_ROPE_SHARE)
        return mixt__rope_pack_share(facts);
    if (field->special)
        return mixt__layers_pack(field->special, facts);
    if (!field->fact)
        return constant(field->json);
    if (field->fact == MIXT_FACT(architecture))
        return mixt__json_string(facts->architecture);
    if (field->fact == MIXT_FACT(fits) || field->fact == MIXT_FACT(tied))
        return json_boolean(field->fact == MIXT_FACT(fits) ? facts->fits : facts->tied);
    if (is_real(field)) {
        double real;
        memcpy(&real, (const char *)facts + field->fact - 1, sizeof real);
        bool whole = field->fact == MIXT_FACT(rope_original) || // of tokens
                     (field->fact == MIXT_FACT(query_scale) && real == floor(real));
        return real == 0 && field->none ? json_null() : whole ? json_integer((json_int_t)real) : json_real(real);
    }
    int64_t number;
    memcpy(&number, (const char *)facts + field->fact - 1, sizeof number);
    return number < 0 || (!number && field->none) ? json_null() : json_integer(number);
}

static const char *dtype_name(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_FP16 ? "float16" : dtype == MIXT_DTYPE_BF16 ? "bfloat16" : "float32";
}

/** Names of classes as transformers has them, by number and by name. Equal names would be one class there: then none.
 */
static bool put_labels(json_t *config, const mixt__name_facts *facts)
{
    json_t *names = json_object(), *numbers = json_object();
    bool complete = names && numbers;
    for (int64_t i = 0; complete && i < facts->label_count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        complete = !mixt__json_set_text(names, number, facts->labels[i]) &&
                   !mixt__json_set(numbers, facts->labels[i], json_integer(i));
    }
    bool apart = complete && (int64_t)json_object_size(numbers) == facts->label_count;
    if (apart)
        complete = !mixt__json_set(config, "id2label", json_incref(names)) &&
                   !mixt__json_set(config, "label2id", json_incref(numbers));
    json_decref(names);
    json_decref(numbers);
    return complete;
}

char *mixt__names_config(const mixt__names *names, const mixt__name_facts *facts)
{
    json_t *config = json_object();
    bool complete = config && names->fields;
    for (const mixt__name_field *field = names->fields; complete && field->key; field++)
        complete = !mixt__json_set(config, field->key, value_of(field, facts));
    if (complete && names->labels && facts->labels && facts->label_count == facts->classes)
        complete = put_labels(config, facts);
    complete = complete && !mixt__json_set_text(config, "dtype", dtype_name(facts->dtype));
    char *text =
        complete ? mixt__json_dumps(config, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(config);
    return text;
}

/** Whole numbers and others meet as doubles: 1e-12 may stand there as an integer's neighbour. */
static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

/** With batch norm, torchvision's VGG has "_bn" behind its name, which files of earlier versions of mixt lack; whether
 *  there is batch norm, the tensors tell. */
static bool same_architecture(const json_t *a, const json_t *b)
{
    const char *x = json_string_value(a), *y = json_string_value(b);
    size_t n = x ? strlen(x) : 0, m = y ? strlen(y) : 0;
    n -= n > 3 && !strcmp(x + n - 3, "_bn") ? 3 : 0;
    m -= m > 3 && !strcmp(y + m - 3, "_bn") ? 3 : 0;
    return x && y && n == m && !memcmp(x, y, n);
}

static mixt_status check_field(const mixt__name_field *field, const json_t *config, const mixt__name_facts *facts,
                               const char *path)
{
    const json_t *found = json_object_get(config, field->key);
    json_t *meant = !found && field->fallback ? constant(field->fallback) : NULL;
    if (!found && field->fallback && !meant)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to check %s", path);
    found = meant ? meant : found;
    if (!found || field->free || field->special) {
        json_decref(meant);
        return MIXT_OK;
    }
    json_t *expected = value_of(field, facts);
    mixt_status status = MIXT_OK;
    if (!expected) {
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to check %s", path);
    } else if (!same_value(expected, found) &&
               !(field->fact == MIXT_FACT(architecture) && same_architecture(expected, found))) {
        char *has = mixt__json_dumps(found, JSON_ENCODE_ANY), *needs = mixt__json_dumps(expected, JSON_ENCODE_ANY);
        status = mixt__fail(
            MIXT_ERROR_FORMAT,
            "%s: %s is %s, the model here has %s: set the model's sizes (net.…) to match, or use another file", path,
            field->key, has ? has : "?", needs ? needs : "?");
        free(has);
        free(needs);
    }
    json_decref(expected);
    json_decref(meant);
    return status;
}

/** An object, to be freed. */
static mixt_status load(const char *path, json_t **config)
{
    mixt__file_map map;
    MIXT_TRY(mixt__file_map_open(path, &map));
    mixt_status status = mixt__json_parse(path, map.data, map.bytes, JSON_REJECT_DUPLICATES, config);
    mixt__file_map_close(&map);
    MIXT_TRY(status);
    if (json_is_object(*config))
        return MIXT_OK;
    json_decref(*config);
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: is not a JSON object", path);
}

/* ---- a model by its config.json ---- */

#define NO_FACTS                                                                                                       \
    {                                                                                                                  \
        .first_token = -1, .last_token = -1, .pad_token = -1                                                           \
    }

static bool is_of(const mixt__names *names, const json_t *config)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const json_t *models = json_object_get(config, "architectures");
    bool named = !names->architecture;
    for (size_t i = 0; !named && i < json_array_size(models); i++) {
        const char *model = json_string_value(json_array_get(models, i));
        named = model && !strcmp(model, names->architecture);
    }
    return type && named && names->fields && !strcmp(names->type ? names->type : names->family, type);
}

/** A number from its field: a double or an int64_t. */
static mixt_status read_number(const mixt__name_field *field, const json_t *found, mixt__name_facts *facts,
                               const char *path)
{
    char *fact = (char *)facts + field->fact - 1;
    bool tokens = field->fact == MIXT_FACT(first_token) || field->fact == MIXT_FACT(last_token) ||
                  field->fact == MIXT_FACT(pad_token);
    if (is_real(field) && json_is_number(found)) {
        double real = json_number_value(found);
        if (!(real > 0))
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: %s is %g", path, field->key, real);
        memcpy(fact, &real, sizeof real);
        return MIXT_OK;
    }
    if (!found || json_is_null(found) || tokens || !json_is_integer(found)) {
        if (json_is_integer(found)) {
            int64_t token = json_integer_value(found);
            memcpy(fact, &token, sizeof token);
        }
        return !found || json_is_null(found) || tokens
                   ? MIXT_OK
                   : mixt__fail(MIXT_ERROR_FORMAT, "%s: %s is not a whole number", path, field->key);
    }
    int64_t number = json_integer_value(found);
    if (number < 0 || number > INT32_MAX)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %s is %lld", path, field->key, (long long)number);
    memcpy(fact, &number, sizeof number);
    return MIXT_OK;
}

/** A fact from its field; constants are held against the model here. */
static mixt_status read_field(const mixt__name_field *field, const json_t *config, mixt__name_facts *facts,
                              const char *path)
{
    const json_t *found = json_object_get(config, field->key);
    if (field->special || field->fact == MIXT_FACT(rope_theta) || field->fact == MIXT_FACT(rope_local) ||
        field->fact == MIXT_FACT(rope_original) || field->fact == MIXT_FACT(fits)) // see fill
        return MIXT_OK;
    if (!field->fact)
        return check_field(field, config, facts, path);
    json_t *meant = !found && field->fallback ? constant(field->fallback) : NULL;
    if (!found && field->fallback && !meant)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", path);
    found = found ? found : meant;
    mixt_status status = MIXT_OK;
    if (field->fact == MIXT_FACT(tied))
        facts->tied = json_is_true(found);
    else if (field->fact != MIXT_FACT(architecture))
        status = read_number(field, found, facts, path);
    else if (json_is_string(found))
        snprintf(facts->architecture, sizeof facts->architecture, "%s", json_string_value(found));
    json_decref(meant);
    return status;
}

/** What no field says. */
static mixt_status fill(const mixt__names *names, const json_t *config, mixt__name_facts *f, const char *path)
{
    if (!f->layers || !f->width || !f->heads || !f->vocab)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: does not say how many layers, heads, tokens, or how wide it is",
                          path);
    if (!f->classes) // transformers writes names of labels instead of their number
        f->classes = (int64_t)json_object_size(json_object_get(config, "id2label"));
    f->kv_heads = f->kv_heads ? f->kv_heads : f->heads;
    f->inner = f->inner ? f->inner : 4 * f->width;
    f->head_dim = f->head_dim ? f->head_dim : f->width / f->heads;
    if (names->rotary) {
        MIXT_TRY(mixt__rope_read(names, config, path, f));
        return mixt__layers_read(names, config, path, f);
    }
    return f->inner == 4 * f->width
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: a perceptron of %lld: the model here has 4 times its width",
                            path, (long long)f->inner);
}

/* ---- what nobody asked for ---- */

/** Keys that do not change what a model computes: of its file, its tokens, training, and of drawing tokens. */
static const char *const harmless[] = {"_name_or_path",
                                       "transformers_version",
                                       "transformers.js_config",
                                       "torch_dtype",
                                       "dtype",
                                       "use_cache",
                                       "initializer_range",
                                       "pad_token_id",
                                       "sep_token_id",
                                       "cls_token_id",
                                       "mask_token_id",
                                       "unk_token_id",
                                       "decoder_start_token_id",
                                       "forced_bos_token_id",
                                       "forced_eos_token_id",
                                       "attention_dropout",
                                       "resid_pdrop",
                                       "embd_pdrop",
                                       "hidden_dropout",
                                       "pretraining_tp",
                                       "output_attentions",
                                       "output_hidden_states",
                                       "return_dict",
                                       "return_dict_in_generate",
                                       "output_scores",
                                       "chunk_size_feed_forward",
                                       "id2label",
                                       "label2id",
                                       "num_labels",
                                       "problem_type",
                                       "auto_map",
                                       "cache_implementation",
                                       "_attn_implementation",
                                       "attn_implementation",
                                       "_attn_implementation_autoset",
                                       "_attn_implementation_internal",
                                       "_flash_attn_2_enabled",
                                       "model_max_length",
                                       "tokenizer_class",
                                       "finetuning_task",
                                       "task_specific_params",
                                       "prefix",
                                       "torchscript",
                                       "is_decoder",
                                       "is_llama_config",
                                       "unsloth_fixed",
                                       "unsloth_version",
                                       "router_aux_loss_coef",
                                       "max_length",
                                       "min_length",
                                       "temperature",
                                       "top_k",
                                       "top_p",
                                       "typical_p",
                                       "do_sample",
                                       "early_stopping",
                                       "num_beams",
                                       "num_beam_groups",
                                       "diversity_penalty",
                                       "repetition_penalty",
                                       "length_penalty",
                                       "no_repeat_ngram_size",
                                       "encoder_no_repeat_ngram_size",
                                       "bad_words_ids",
                                       "num_return_sequences",
                                       "remove_invalid_values",
                                       "exponential_decay_length_penalty",
                                       "suppress_tokens",
                                       "begin_suppress_tokens",
                                       "rope_parameters",
                                       "partial_rotary_factor",
                                       NULL};

static bool is_in(const char *const *list, const char *key)
{
    while (*list && strcmp(*list, key))
        list++;
    return *list != NULL;
}

static bool is_field(const mixt__names *names, const char *key)
{
    const mixt__name_field *field = names->fields;
    while (field->key && strcmp(field->key, key))
        field++;
    return field->key != NULL;
}

/** null, false, and what is empty, say that there is no such thing. */
static bool says_nothing(const json_t *value)
{
    return json_is_null(value) || json_is_false(value) || (json_is_object(value) && !json_object_size(value)) ||
           (json_is_array(value) && !json_array_size(value));
}

/** A part of a model that nobody here knows may change all that it computes. */
static mixt_status check_unknown(const mixt__names *names, const json_t *config, const char *path)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)config, key, value)
    {
        if (!names->known || is_in(harmless, key) || is_in(names->known, key) || is_field(names, key) ||
            says_nothing(value))
            continue;
        char *text = mixt__json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        mixt_status status = mixt__fail(MIXT_ERROR_UNSUPPORTED,
                                        "%s: %s is %.80s: the model here (%s) knows nothing of it, and would compute "
                                        "something else",
                                        path, key, text ? text : "?", names->family);
        free(text);
        return status;
    }
    return MIXT_OK;
}

/** All that a config.json says of a model of this family. */
static mixt_status read_facts(const mixt__names *names, const json_t *config, mixt__name_facts *facts, const char *path)
{
    for (const mixt__name_field *field = names->fields; field->key; field++)
        MIXT_TRY(read_field(field, config, facts, path));
    MIXT_TRY(check_unknown(names, config, path));
    return fill(names, config, facts, path);
}

mixt_status mixt__names_check_config(const mixt__names *names, const mixt__name_facts *facts, const char *path)
{
    json_t *config;
    mixt__name_facts there = NO_FACTS;
    MIXT_TRY(load(path, &config));
    mixt_status status = MIXT_OK;
    for (const mixt__name_field *field = names->fields; status == MIXT_OK && field && field->key; field++)
        status = check_field(field, config, facts, path);
    if (status == MIXT_OK && names->rotary)
        status = read_facts(names, config, &there, path);
    if (status == MIXT_OK && names->rotary)
        status = mixt__rope_check(path, &there, facts);
    json_decref(config);
    return status;
}

mixt_status mixt__names_read_config(const char *path, const mixt__names **names, mixt__name_facts *facts)
{
    json_t *config;
    *facts = (mixt__name_facts)NO_FACTS;
    *names = NULL;
    MIXT_TRY(load(path, &config));
    for (int i = 0; family_at(i); i++)
        if (is_of(family_at(i), config))
            *names = family_at(i);
    const char *type = json_string_value(json_object_get(config, "model_type"));
    mixt_status status =
        *names
            ? read_facts(*names, config, facts, path)
            : mixt__fail(MIXT_ERROR_UNSUPPORTED,
                         "%s: model_type '%s': of Hugging Face's, mixt has gpt2, bert, llama, mistral, qwen2, qwen3, "
                         "phi3, smollm3, gemma2, gemma3_text and olmo2",
                         path, type ? type : "");
    json_decref(config);
    return status;
}

mixt_status mixt__names_read_labels(const char *path, int64_t count, mixt__arena *arena, const char *const **labels)
{
    json_t *config;
    *labels = NULL;
    MIXT_TRY(load(path, &config));
    const json_t *names = json_object_get(config, "id2label");
    bool whole = count > 0 && (int64_t)json_object_size(names) == count;
    const char **list = whole ? mixt__arena_alloc(arena, (size_t)count * sizeof *list) : NULL;
    mixt_status status =
        whole && !list ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for the classes of %s", path) : MIXT_OK;
    for (int64_t i = 0; list && i < count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)i);
        const char *name = json_string_value(json_object_get(names, number));
        list[i] = name ? mixt__arena_strdup(arena, name) : NULL;
        whole = whole && list[i];
    }
    *labels = whole ? list : NULL;
    json_decref(config);
    return status;
}
