/* config.json: written from a family's table of fields, and read back against it. */
#include "store/names_families.h"

#include "base/status.h"
#include "store/file.h"
#include "store/json.h"
#include "store/names_rope.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const mixt__names *const families[] = {&mixt__names_gpt2,
                                              &mixt__names_bert,
                                              &mixt__names_bert_classify,
                                              &mixt__names_llama,
                                              &mixt__names_resnet,
                                              &mixt__names_vgg,
                                              NULL};

const mixt__names *mixt__names_find(const char *family)
{
    for (int i = 0; family && families[i]; i++)
        if (!strcmp(families[i]->family, family))
            return families[i];
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

/** A field's value as JSON; NULL: no memory. */
static json_t *value_of(const mixt__name_field *field, const mixt__name_facts *facts)
{
    if (!field->fact)
        return constant(field->json);
    if (field->fact == MIXT_FACT(architecture))
        return mixt__json_string(facts->architecture);
    if (field->fact == MIXT_FACT(fits) || field->fact == MIXT_FACT(tied))
        return json_boolean(field->fact == MIXT_FACT(fits) ? facts->fits : facts->tied);
    if (field->fact == MIXT_FACT(eps) || field->fact == MIXT_FACT(rope_theta))
        return json_real(field->fact == MIXT_FACT(eps) ? facts->eps : facts->rope_theta);
    if (field->fact == MIXT_FACT(rope_factor))
        return mixt__rope_pack(facts);
    int64_t number;
    memcpy(&number, (const char *)facts + field->fact - 1, sizeof number);
    return number < 0 ? json_null() : json_integer(number);
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
    if (!found || field->free)
        return MIXT_OK;
    json_t *expected = value_of(field, facts);
    mixt_status status = MIXT_OK;
    if (!expected) {
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to check %s", path);
    } else if (!same_value(expected, found) &&
               !(field->fact == MIXT_FACT(architecture) && same_architecture(expected, found))) {
        char *has = mixt__json_dumps(found, JSON_ENCODE_ANY), *needs = mixt__json_dumps(expected, JSON_ENCODE_ANY);
        status = mixt__fail(MIXT_ERROR_FORMAT,
                            "%s: %s is %s, the model here has %s: choose the model's sizes (net.…) to fit, or another "
                            "file",
                            path, field->key, has ? has : "?", needs ? needs : "?");
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

mixt_status mixt__names_check_config(const mixt__names *names, const mixt__name_facts *facts, const char *path)
{
    json_t *config;
    MIXT_TRY(load(path, &config));
    mixt_status status = MIXT_OK;
    for (const mixt__name_field *field = names->fields; status == MIXT_OK && field && field->key; field++)
        status = check_field(field, config, facts, path);
    if (status == MIXT_OK && names->rotary)
        status = mixt__rope_check(config, path, facts);
    json_decref(config);
    return status;
}

/* ---- a model by its config.json ---- */

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

/** A fact from its field; constants are held against the model here. */
static mixt_status read_field(const mixt__name_field *field, const json_t *config, mixt__name_facts *facts,
                              const char *path)
{
    const json_t *found = json_object_get(config, field->key);
    if (!field->fact)
        return check_field(field, config, facts, path);
    if (field->fact == MIXT_FACT(eps)) {
        json_t *meant = found ? NULL : constant(field->fallback);
        if (!found && !meant)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", path);
        facts->eps = json_number_value(found ? found : meant);
        json_decref(meant);
        return facts->eps > 0 ? MIXT_OK : mixt__fail(MIXT_ERROR_FORMAT, "%s: %s makes no sense", path, field->key);
    }
    if (field->fact == MIXT_FACT(tied))
        facts->tied = json_is_true(found);
    if (field->fact == MIXT_FACT(architecture) && json_is_string(found))
        snprintf(facts->architecture, sizeof facts->architecture, "%s", json_string_value(found));
    if (field->fact == MIXT_FACT(tied) || field->fact == MIXT_FACT(rope_theta) ||
        field->fact == MIXT_FACT(rope_factor) || field->fact == MIXT_FACT(architecture) ||
        field->fact == MIXT_FACT(fits))
        return MIXT_OK;
    if (!json_is_integer(found)) // none, null, or a list of tokens
        return MIXT_OK;
    int64_t number = json_integer_value(found);
    if (number < 0 || number > INT32_MAX)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %s is %lld", path, field->key, (long long)number);
    memcpy((char *)facts + field->fact - 1, &number, sizeof number);
    return MIXT_OK;
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
    if (f->head_dim && f->head_dim * f->heads != f->width)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: %lld heads of %lld in a width of %lld: the model here has none "
                          "but whole shares of it",
                          path, (long long)f->heads, (long long)f->head_dim, (long long)f->width);
    if (names->rotary)
        return mixt__rope_read(config, path, f);
    return f->inner == 4 * f->width
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: a perceptron of %lld: the model here has 4 times its width",
                            path, (long long)f->inner);
}

mixt_status mixt__names_read_config(const char *path, const mixt__names **names, mixt__name_facts *facts)
{
    json_t *config;
    *facts = (mixt__name_facts){.first_token = -1, .last_token = -1};
    *names = NULL;
    MIXT_TRY(load(path, &config));
    for (int i = 0; families[i]; i++)
        if (is_of(families[i], config))
            *names = families[i];
    const char *type = json_string_value(json_object_get(config, "model_type"));
    mixt_status status = *names ? MIXT_OK
                                : mixt__fail(MIXT_ERROR_UNSUPPORTED,
                                             "%s: model_type '%s': mixt has gpt2, llama and bert of Hugging Face", path,
                                             type ? type : "");
    for (const mixt__name_field *field = *names ? (*names)->fields : NULL; status == MIXT_OK && field->key; field++)
        status = read_field(field, config, facts, path);
    if (status == MIXT_OK)
        status = fill(*names, config, facts, path);
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
