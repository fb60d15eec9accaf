/* From adapter files to keys and parameters, and back. */
#include "run/open/adapter.h"

#include "base/c_locale.h"
#include "base/status.h"
#include "data/data.h"
#include "run/open/lora.h"
#include "run/open/weights.h"
#include "store/checksum.h"
#include "store/json.h"

#include <stdio.h>
#include <string.h>

/* ---- keys ---- */

static mixt_status set(mixt_config *config, mixt__config_key key, const char *value, const char *origin)
{
    if (mixt__config_was_set(config, key))
        return MIXT_OK;
    size_t size = strlen(value) + 64;
    char *setting = mixt__alloc(size);
    if (!setting)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", origin);
    snprintf(setting, size, "%s=%s", mixt__config_table[key].name, value);
    mixt_status status = mixt_config_set(config, setting, origin);
    mixt__free(setting);
    return status;
}

static mixt_status set_number(mixt_config *config, mixt__config_key key, double value, const char *origin)
{
    char text[64];
    mixt__print_number(text, sizeof text, "%.17g", value);
    return set(config, key, text, origin);
}

static mixt_status fill(mixt_config *config, const char *folder, mixt__arena *arena)
{
    mixt__adapter_facts facts;
    const mixt__names *names;
    mixt__name_facts model;
    const mixt__zoo_entry *entry;
    const char *layers, *also;
    MIXT_TRY(mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry));
    MIXT_TRY(mixt__adapter_read_config(folder, arena, &facts));
    MIXT_TRY(mixt__experiment_names(config, &names, &model));
    int64_t count = mixt__config_int(config, MIXT_KEY_NET_LAYERS);
    count = count ? count : entry->sizes.layers;
    MIXT_TRY(mixt__adapter_read_layers(folder, names, count, arena, &layers, &also));
    MIXT_TRY(set_number(config, MIXT_KEY_LORA_RANK, (double)facts.rank, folder));
    MIXT_TRY(set_number(config, MIXT_KEY_LORA_ALPHA, facts.alpha, folder));
    MIXT_TRY(set_number(config, MIXT_KEY_LORA_DROPOUT, facts.dropout, folder));
    MIXT_TRY(set(config, MIXT_KEY_LORA_RSLORA, facts.rslora ? "true" : "false", folder));
    MIXT_TRY(set(config, MIXT_KEY_LORA_LAYERS, layers, folder));
    return *also ? set(config, MIXT_KEY_LORA_ALSO, also, folder) : MIXT_OK;
}

mixt_status mixt__adapter_config_fill(mixt_config *config)
{
    const char *folder = mixt__config_string(config, MIXT_KEY_LORA_INIT);
    mixt__arena arena = {0};
    if (!*folder)
        return MIXT_OK;
    if (!*mixt__config_string(config, MIXT_KEY_INIT))
        return mixt__fail(MIXT_ERROR_CONFIG, "lora.init=%s is an adapter: say which model it is of with init=…",
                          folder);
    mixt_status status = fill(config, folder, &arena);
    mixt__arena_free(&arena);
    return status;
}

bool mixt__adapter_only(const mixt_config *config)
{
    return mixt__config_int(config, MIXT_KEY_LORA_RANK) > 0 && *mixt__config_string(config, MIXT_KEY_INIT);
}

/* ---- parameters ---- */

/** A trainer's parameters as the plan wants them. */
typedef struct listing {
    mixt__params *params;
    mixt__file_tensor *here;
    bool *beside;
    mixt__adapter_plan plan;
} listing;

static void close_listing(listing *l)
{
    mixt__adapter_plan_free(&l->plan);
    mixt__free(l->here);
    mixt__free(l->beside);
}

static mixt_status open_listing(listing *l, const mixt_config *config, mixt__params *params)
{
    const mixt__names *names;
    mixt__name_facts facts;
    *l = (listing){.params = params};
    MIXT_TRY(mixt__experiment_names(config, &names, &facts));
    int64_t count = l->params->count;
    l->here = mixt__alloc((size_t)(count + 1) * sizeof *l->here);
    l->beside = mixt__alloc((size_t)(count + 1) * sizeof *l->beside);
    if (!l->here || !l->beside)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of adapters");
    for (int64_t i = 0; i < count; i++) {
        const mixt__param *p = &l->params->table[i];
        l->here[i] = (mixt__file_tensor){.name = p->name, .dtype = MIXT_DTYPE_FP32, .rank = p->shape.rank};
        memcpy(l->here[i].dims, p->shape.dims, (size_t)p->shape.rank * sizeof p->shape.dims[0]);
        l->beside[i] = p->beside;
    }
    return mixt__adapter_plan_make(&l->plan, names, &facts, l->here, l->beside, count);
}

static mixt_status read_all(listing *l, const mixt__safetensors *file)
{
    for (int64_t i = 0; i < l->params->count; i++) {
        const mixt__param *p = &l->params->table[i];
        if (!p->adapter && !p->beside)
            continue;
        bool found = false;
        float *values = mixt__alloc((size_t)p->count * sizeof *values + 1);
        mixt_status status = values ? mixt__params_get(l->params, (int32_t)i, values)
                                    : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read '%s'", p->name);
        if (status == MIXT_OK)
            status = mixt__adapter_read(&l->plan, file, i, values, &found);
        if (status == MIXT_OK && found)
            status = mixt__params_set(l->params, (int32_t)i, values);
        mixt__free(values);
        MIXT_TRY(status);
    }
    return mixt__params_refresh_copies(l->params);
}

mixt_status mixt__experiment_adapter_init(mixt__experiment *e, bool load, mixt__note *note, void *user)
{
    const char *folder = mixt__config_string(e->config, MIXT_KEY_LORA_INIT);
    mixt__safetensors *file = NULL;
    listing l;
    if (!*folder)
        return MIXT_OK;
    mixt_status status = open_listing(&l, e->config, mixt__trainer_params(e->trainer->inner));
    if (status == MIXT_OK)
        status = mixt__adapter_open(&l.plan, folder, &file);
    if (status == MIXT_OK && load)
        status = mixt__trainer_take_weights(e->trainer->inner);
    if (status == MIXT_OK && load)
        status = read_all(&l, file);
    if (status == MIXT_OK && note)
        note(user, "lora.init: %lld tensors of %s", (long long)file->count, folder);
    mixt__safetensors_close(file);
    close_listing(&l);
    return status;
}

mixt_status mixt__adapter_load(const mixt_config *config, mixt__params *params)
{
    mixt__safetensors *file = NULL;
    listing l;
    mixt_status status = open_listing(&l, config, params);
    if (status == MIXT_OK)
        status = mixt__adapter_open(&l.plan, mixt__config_string(config, MIXT_KEY_LORA_INIT), &file);
    if (status == MIXT_OK)
        status = read_all(&l, file);
    mixt__safetensors_close(file);
    close_listing(&l);
    return status;
}

static mixt_status value_of(void *user, int64_t here, float *values)
{
    mixt__params *params = user;
    const mixt__param *p = &params->table[here];
    MIXT_TRY(mixt__params_get(params, (int32_t)here, values));
    return mixt__weights_finite(p->name, values, 0, p->count, "training went wrong, and its adapters are not written");
}

/** What transformers calls what a model is for. */
static const char *task_of(const mixt_config *config)
{
    const mixt__zoo_entry *entry;
    if (mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry) != MIXT_OK)
        return NULL;
    if (entry->input == MIXT_MODEL_TEXTS)
        return "SEQ_CLS";
    return entry->input == MIXT_MODEL_TOKENS && !entry->bidirectional ? "CAUSAL_LM" : NULL;
}

mixt_status mixt__experiment_adapter_write(mixt__experiment *e, const char *folder, bool overwrite, int64_t *tensors)
{
    const mixt__lora *lora = &mixt__trainer_model(e->trainer->inner)->lora;
    mixt__adapter_facts facts = {.rank = lora->rank, .dropout = (double)lora->dropout, .rslora = lora->rslora};
    facts.alpha = lora->alpha > 0 ? (double)lora->alpha : 2 * (double)lora->rank;
    facts.base = mixt__config_string(e->config, MIXT_KEY_INIT);
    facts.task = task_of(e->config);
    listing l;
    mixt_status status = open_listing(&l, e->config, mixt__trainer_params(e->trainer->inner));
    if (status == MIXT_OK)
        status = mixt__adapter_write(&l.plan, &facts, folder, overwrite, value_of, l.params);
    if (tensors)
        *tensors = l.plan.count;
    close_listing(&l);
    return status;
}

/** The file that `init` means. */
static bool base_file(const char *init, char path[MIXT_WEIGHTS_PATH])
{
    static const char *const names[] = {"", "/model.safetensors", "/model.safetensors.index.json",
                                        "/state.safetensors"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++)
        found =
            snprintf(path, MIXT_WEIGHTS_PATH, "%s%s", init, names[i]) < MIXT_WEIGHTS_PATH && mixt__path_is_file(path);
    return found;
}

enum { SUMMED = 4096 }; // bytes of each tensor: who has other weights has others there

json_t *mixt__adapter_base_sum(mixt__experiment *e)
{
    char path[MIXT_WEIGHTS_PATH], text[24];
    mixt__safetensors *file;
    if (e->base_summed)
        return mixt__json_string(e->base_sum);
    if (!base_file(mixt__config_string(e->config, MIXT_KEY_INIT), path) ||
        mixt__safetensors_open_weights(path, &file) != MIXT_OK)
        return NULL;
    uint64_t sum = 0;
    for (int64_t i = 0; i < file->count; i++) {
        const mixt__file_tensor *t = &file->tensors[i];
        uint64_t all[4] = {sum, mixt__checksum(t->name, strlen(t->name)), t->bytes,
                           mixt__checksum(t->data, t->bytes < SUMMED ? t->bytes : SUMMED)};
        sum = mixt__checksum(all, sizeof all);
    }
    mixt__safetensors_close(file);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    memcpy(e->base_sum, text, sizeof text);
    e->base_summed = true;
    return mixt__json_string(text);
}

mixt_status mixt__experiment_load_weights(mixt__experiment *e, const char *path)
{
    bool partial;
    MIXT_TRY(mixt__weights_are_partial(path, &partial));
    if (partial)
        MIXT_TRY(mixt__experiment_base(e));
    if (partial && !mixt__config_int(e->config, MIXT_KEY_LORA_RANK)) // asked for without its adapters
        return MIXT_OK;
    return mixt_trainer_load(e->trainer, path);
}
