/* The plan between adapters here and PEFT's tensors, and values through it. */
#include "store/adapter.h"

#include "base/status.h"
#include "mixt/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "base_model.model."
#define WEIGHT ".weight"

enum { NAME = 512, PARTS = 8 };

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of adapters");
}

static bool ends(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && !strcmp(name + length - tail, end);
}

/** Whether a tensor here is an adapter's. */
static bool is_adapter(const char *name)
{
    const char *b = strstr(name, ".lora_b");
    return ends(name, ".lora_a") || (b && (!b[7] || b[7] == '.'));
}

static int64_t find_here(const mixt__adapter_plan *plan, const char *name)
{
    for (int64_t i = 0; i < plan->here_count; i++)
        if (!strcmp(plan->here[i].name, name))
            return i;
    return -1;
}

/* ---- the plan ---- */

static mixt_status plan_base(mixt__adapter_plan *plan)
{
    int64_t count = 0;
    plan->own = mixt__alloc((size_t)(plan->here_count + 1) * sizeof *plan->own);
    plan->own_here = mixt__alloc((size_t)(plan->here_count + 1) * sizeof *plan->own_here);
    if (!plan->own || !plan->own_here)
        return no_memory();
    for (int64_t i = 0; i < plan->here_count; i++)
        if (!is_adapter(plan->here[i].name)) {
            plan->own_here[count] = i;
            plan->own[count++] = plan->here[i];
        }
    return mixt__name_plan_make(&plan->base, plan->names, plan->facts, plan->own, count, 0, 0);
}

static mixt_status add_entry(mixt__adapter_plan *plan, mixt__adapter_entry entry)
{
    if (!entry.there.name || !mixt__grow((void **)&plan->entries, &plan->capacity, plan->count, sizeof entry))
        return no_memory();
    plan->entries[plan->count++] = entry;
    return MIXT_OK;
}

static mixt__file_tensor matrix(const char *name, int64_t rows, int64_t columns)
{
    return (mixt__file_tensor){.name = name, .dtype = MIXT_DTYPE_FP32, .rank = 2, .dims = {rows, columns}};
}

/** One module there. @param module without ".weight" @param slot of its rows in A */
static mixt_status add_module(mixt__adapter_plan *plan, int64_t a, int64_t b, int64_t slot, const char *module)
{
    int64_t rank = plan->here[b].dims[1], rows = plan->here[b].dims[0];
    mixt__adapter_entry first = {.here = a, .first = slot * rank, .rows = rank, .whole = -1},
                        second = {.here = b, .rows = rows, .whole = -1};
    first.there =
        matrix(mixt__arena_printf(&plan->arena, PREFIX "%s.lora_A.weight", module), rank, plan->here[a].dims[1]);
    second.there = matrix(mixt__arena_printf(&plan->arena, PREFIX "%s.lora_B.weight", module), rows, rank);
    MIXT_TRY(add_entry(plan, first));
    MIXT_TRY(add_entry(plan, second));
    if (!mixt__grow((void **)&plan->modules, &plan->module_capacity, plan->module_count, sizeof *plan->modules))
        return no_memory();
    plan->modules[plan->module_count] = mixt__arena_strdup(&plan->arena, module);
    return plan->modules[plan->module_count++] ? MIXT_OK : no_memory();
}

/** The B of a layer, or of one of its parts; -1: it has none. */
static int64_t find_b(const mixt__adapter_plan *plan, const char *layer, int part)
{
    char name[NAME];
    int length = part < 0 ? snprintf(name, sizeof name, "%s.lora_b", layer)
                          : snprintf(name, sizeof name, "%s.lora_b.%d", layer, part);
    return length < (int)sizeof name ? find_here(plan, name) : -1;
}

/** A layer under the same name on both sides. */
static mixt_status plan_same(mixt__adapter_plan *plan, int64_t a, const char *layer, int64_t *slots)
{
    char module[NAME + 16];
    int64_t whole = find_b(plan, layer, -1);
    if (whole >= 0) {
        (*slots)++;
        return add_module(plan, a, whole, 0, layer);
    }
    for (int k = 0; k < PARTS; k++) {
        int64_t b = find_b(plan, layer, k);
        snprintf(module, sizeof module, "%s.%d", layer, k);
        if (b >= 0)
            MIXT_TRY(add_module(plan, a, b, (*slots)++, module));
    }
    return MIXT_OK;
}

/** A layer under the names of a family. */
static mixt_status plan_named(mixt__adapter_plan *plan, int64_t a, const char *layer, int64_t *slots)
{
    char weight[NAME + 16], module[NAME];
    snprintf(weight, sizeof weight, "%s" WEIGHT, layer);
    for (int64_t i = 0; i < plan->base.count; i++) {
        const mixt__name_entry *e = &plan->base.entries[i];
        if (strcmp(plan->own[e->here].name, weight) || !ends(e->there.name, WEIGHT))
            continue;
        int64_t b = find_b(plan, layer, e->rule->parts ? e->rule->part : -1);
        snprintf(module, sizeof module, "%.*s", (int)(strlen(e->there.name) - strlen(WEIGHT)), e->there.name);
        plan->transposed |= e->rule->layout == MIXT_LAYOUT_TRANSPOSED;
        if (b >= 0)
            MIXT_TRY(add_module(plan, a, b, (*slots)++, module));
    }
    return MIXT_OK;
}

static mixt_status plan_adapter(mixt__adapter_plan *plan, int64_t a)
{
    char layer[NAME];
    const char *name = plan->here[a].name;
    int64_t slots = 0, before = plan->count;
    snprintf(layer, sizeof layer, "%.*s", (int)(strlen(name) - strlen(".lora_a")), name);
    MIXT_TRY(plan->names ? plan_named(plan, a, layer, &slots) : plan_same(plan, a, layer, &slots));
    int64_t rank = slots ? plan->entries[before].rows : 0;
    return slots && slots * rank == plan->here[a].dims[0]
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_UNSUPPORTED, "the adapter of layer '%s' has no counterpart in the names of %s",
                            layer, plan->names ? plan->names->family : "PEFT");
}

static mixt_status plan_beside(mixt__adapter_plan *plan, int64_t entry)
{
    const mixt__name_entry *e = &plan->base.entries[entry];
    mixt__adapter_entry whole = {.here = plan->own_here[e->here], .first = e->first, .rows = e->rows, .whole = entry};
    whole.there = e->there;
    whole.there.name = mixt__arena_printf(&plan->arena, PREFIX "%s", e->there.name);
    return add_entry(plan, whole);
}

static mixt_status make(mixt__adapter_plan *plan, const bool *beside)
{
    MIXT_TRY(plan_base(plan));
    for (int64_t i = 0; i < plan->here_count; i++)
        if (ends(plan->here[i].name, ".lora_a"))
            MIXT_TRY(plan_adapter(plan, i));
    for (int64_t i = 0; i < plan->base.count; i++)
        if (beside[plan->own_here[plan->base.entries[i].here]])
            MIXT_TRY(plan_beside(plan, i));
    return plan->module_count ? MIXT_OK : mixt__fail(MIXT_ERROR_STATE, "the model has no adapters (lora.rank)");
}

mixt_status mixt__adapter_plan_make(mixt__adapter_plan *plan, const mixt__names *names, const mixt__name_facts *facts,
                                    const mixt__file_tensor *here, const bool *beside, int64_t count)
{
    *plan = (mixt__adapter_plan){.names = names, .facts = facts, .here = here, .here_count = count};
    mixt_status status = make(plan, beside);
    if (status != MIXT_OK)
        mixt__adapter_plan_free(plan);
    return status;
}

void mixt__adapter_plan_free(mixt__adapter_plan *plan)
{
    mixt__name_plan_free(&plan->base);
    mixt__free(plan->own);
    mixt__free(plan->own_here);
    mixt__free(plan->entries);
    mixt__free(plan->modules);
    mixt__arena_free(&plan->arena);
    *plan = (mixt__adapter_plan){0};
}

/* ---- values ---- */

static int64_t row_elements(const mixt__file_tensor *t)
{
    int64_t count = 1;
    for (int i = 1; i < t->rank; i++)
        count *= t->dims[i];
    return count;
}

static int64_t elements(const mixt__file_tensor *t)
{
    return t->rank ? t->dims[0] * row_elements(t) : 1;
}

typedef struct writing {
    const mixt__adapter_plan *plan;
    mixt__adapter_values *values;
    void *user;
    float *here, *there;
} writing;

static mixt_status fetch(void *argument, int64_t index, const void **data)
{
    writing *w = argument;
    const mixt__adapter_entry *e = &w->plan->entries[index];
    const mixt__file_tensor *here = &w->plan->here[e->here];
    MIXT_TRY(w->values(w->user, e->here, w->here));
    *data = w->there;
    if (e->whole >= 0)
        mixt__name_to_there(&w->plan->base, &w->plan->base.entries[e->whole], w->here, w->there);
    else
        *data = w->here + e->first * row_elements(here);
    return MIXT_OK;
}

mixt_status mixt__adapter_write_tensors(const mixt__adapter_plan *plan, const char *path, bool overwrite,
                                        mixt__adapter_values *values, void *user)
{
    int64_t most = 1;
    static const mixt__text_pair format = {"format", "pt"};
    const mixt__metadata metadata = {.pairs = &format, .count = 1};
    for (int64_t i = 0; i < plan->here_count; i++)
        most = elements(&plan->here[i]) > most ? elements(&plan->here[i]) : most;
    writing w = {.plan = plan, .values = values, .user = user};
    w.here = mixt__alloc_uninit((size_t)most * sizeof *w.here);
    w.there = mixt__alloc_uninit((size_t)most * sizeof *w.there);
    mixt__file_tensor *there = mixt__alloc((size_t)(plan->count + 1) * sizeof *there);
    for (int64_t i = 0; there && i < plan->count; i++)
        there[i] = plan->entries[i].there;
    mixt_status status = w.here && w.there && there
                             ? mixt__safetensors_write_from(path, there, plan->count, &metadata, overwrite, fetch, &w)
                             : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write it", path);
    mixt__free(there);
    mixt__free(w.here);
    mixt__free(w.there);
    return status;
}

/* ---- reading ---- */

static bool file_path(const char *folder, const char *name, char path[4200])
{
    return snprintf(path, 4200, "%s/%s", folder, name) < 4200;
}

bool mixt__adapter_is(const char *folder)
{
    char path[4200];
    return file_path(folder, MIXT_ADAPTER_CONFIG, path) && !access(path, F_OK);
}

static mixt_status check_tensor(const char *path, const mixt__file_tensor *wanted, const mixt__file_tensor *tensor)
{
    if (!tensor)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: tensor '%s' is missing: it is an adapter of other layers, or of "
                          "another model; nothing was loaded",
                          path, wanted->name);
    bool same = tensor->rank == wanted->rank && mixt_dtype_is_float(tensor->dtype);
    for (int i = 0; same && i < tensor->rank; i++)
        same = tensor->dims[i] == wanted->dims[i];
    return same ? MIXT_OK
                : mixt__fail(MIXT_ERROR_FORMAT,
                             "%s: tensor '%s' is %s %s, the model here needs a float tensor %s: it is an adapter of "
                             "another model, or of another rank; nothing was loaded",
                             path, tensor->name, mixt_dtype_name(tensor->dtype),
                             mixt__dims_print(tensor->rank, tensor->dims).text,
                             mixt__dims_print(wanted->rank, wanted->dims).text);
}

static mixt_status check_finite(const char *path, const mixt__file_tensor *t)
{
    int64_t count = elements(t);
    float *values = mixt__alloc_uninit((size_t)count * sizeof *values + 1);
    mixt_status status = values ? mixt_convert(values, MIXT_DTYPE_FP32, t->data, t->dtype, count, NULL) : no_memory();
    for (int64_t i = 0; status == MIXT_OK && i < count; i++)
        if (!isfinite(values[i]))
            status = mixt__fail(MIXT_ERROR_DATA, "%s: tensor '%s' holds a value that is not finite; nothing was loaded",
                                path, t->name);
    mixt__free(values);
    return status;
}

static mixt_status check(const mixt__adapter_plan *plan, const char *path, const mixt__safetensors *file)
{
    for (int64_t i = 0; i < plan->count; i++) {
        const mixt__file_tensor *wanted = &plan->entries[i].there, *tensor = mixt__safetensors_find(file, wanted->name);
        MIXT_TRY(check_tensor(path, wanted, tensor));
        MIXT_TRY(check_finite(path, tensor));
    }
    for (int64_t i = 0; i < file->count; i++) {
        bool known = false;
        for (int64_t k = 0; k < plan->count && !known; k++)
            known = !strcmp(plan->entries[k].there.name, file->tensors[i].name);
        if (!known)
            return mixt__fail(MIXT_ERROR_FORMAT,
                              "%s: its tensor '%s' has no counterpart among what is trained here: name its layer "
                              "(lora.layers, lora.also), or it is an adapter of another model; nothing was loaded",
                              path, file->tensors[i].name);
    }
    return MIXT_OK;
}

mixt_status mixt__adapter_open(const mixt__adapter_plan *plan, const char *folder, mixt__safetensors **file)
{
    char path[4200];
    *file = NULL;
    if (!file_path(folder, MIXT_ADAPTER_FILE, path))
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    MIXT_TRY(mixt__safetensors_open(path, file));
    mixt_status status = check(plan, path, *file);
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt__safetensors_close(*file);
    *file = NULL;
    return status;
}

mixt_status mixt__adapter_read(const mixt__adapter_plan *plan, const mixt__safetensors *file, int64_t here,
                               float *values, bool *found)
{
    *found = false;
    for (int64_t i = 0; i < plan->count; i++) {
        const mixt__adapter_entry *e = &plan->entries[i];
        if (e->here != here)
            continue;
        const mixt__file_tensor *t = mixt__safetensors_find(file, e->there.name);
        int64_t count = elements(t);
        float *there = mixt__alloc_uninit((size_t)count * sizeof *there + 1);
        mixt_status status = there ? mixt_convert(there, MIXT_DTYPE_FP32, t->data, t->dtype, count, NULL) : no_memory();
        if (status == MIXT_OK && e->whole >= 0)
            mixt__name_from_there(&plan->base, &plan->base.entries[e->whole], there, values);
        else if (status == MIXT_OK)
            memcpy(values + e->first * row_elements(&plan->here[here]), there, (size_t)count * sizeof *there);
        mixt__free(there);
        MIXT_TRY(status);
        *found = true;
    }
    return MIXT_OK;
}
