/* Initializers as parameters of the graph, and where their values come from. */
#include "onnx/import.h"

#include <math.h>
#include <string.h>

/* ---- recipes ---- */

static mixt__onnx_recipe *find_recipe(mixt__onnx *o, const char *name)
{
    for (int64_t i = 0; i < o->recipe_count; i++)
        if (!strcmp(o->recipes[i].name, name))
            return &o->recipes[i];
    return NULL;
}

/** Keeps a recipe, in place of that of an earlier build. Numbers are copied. */
static mixt_status keep_recipe(mixt__onnx *o, const mixt__onnx_recipe *recipe)
{
    mixt__onnx_recipe *kept = find_recipe(o, recipe->name);
    if (!kept) {
        if (!mixt__grow((void **)&o->recipes, &o->recipe_capacity, o->recipe_count, sizeof *o->recipes))
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the parameters of an ONNX file");
        kept = &o->recipes[o->recipe_count];
        *kept = (mixt__onnx_recipe){.name = mixt__arena_strdup(&o->arena, recipe->name)};
        if (!kept->name)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the name of a parameter");
        o->recipe_count++;
    }
    const char *name = kept->name;
    float *numbers = kept->count == recipe->count ? kept->numbers : NULL;
    if (recipe->numbers && !numbers)
        numbers = mixt__arena_alloc(&o->arena, (size_t)recipe->count * sizeof *numbers);
    if (recipe->numbers && !numbers)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a constant of an ONNX file");
    if (recipe->numbers)
        memcpy(numbers, recipe->numbers, (size_t)recipe->count * sizeof *numbers);
    *kept = *recipe;
    kept->name = name;
    kept->numbers = recipe->numbers ? numbers : NULL;
    return MIXT_OK;
}

mixt_status mixt__import_parameter(mixt__import *m, const mixt__onnx_recipe *recipe, const mixt__param *param,
                                   mixt_value *value)
{
    mixt__onnx_recipe named = *recipe;
    named.name = param->name;
    pthread_mutex_lock(&m->onnx->lock);
    mixt_status status = keep_recipe(m->onnx, &named);
    pthread_mutex_unlock(&m->onnx->lock);
    MIXT_TRY(status);
    char scope = m->b->scope[0]; // parameters have the file's names, whichever layer is being made
    m->b->scope[0] = '\0';
    *value = mixt__builder_param(m->b, param->name, NULL, param);
    m->b->scope[0] = scope;
    return mixt__import_check(m);
}

/* ---- initializers ---- */

/** As it is drawn where the file has no values: as a layer of such inputs would be. */
static void choose_draw(mixt__param *p)
{
    int64_t inputs = 1;
    for (int i = 1; i < p->shape.rank; i++)
        inputs *= p->shape.dims[i];
    p->init = p->shape.rank > 1 ? MIXT_INIT_UNIFORM : MIXT_INIT_ZERO;
    p->init_scale = 1.0f / sqrtf((float)(inputs > 0 ? inputs : 1));
}

/** The dimensions in memory of a parameter that is in the graph, as the item's. */
static void order_of(mixt__import *m, const mixt__item *item, int order[MIXT_ONNX_RANK])
{
    pthread_mutex_lock(&m->onnx->lock);
    const mixt__onnx_recipe *recipe = find_recipe(m->onnx, mixt__import_name(m, m->f->values[item->owner].name));
    for (int i = 0; i < item->rank; i++)
        order[i] = item->order[recipe ? recipe->order[i] : i];
    pthread_mutex_unlock(&m->onnx->lock);
}

static mixt_status make(mixt__import *m, mixt__item *item, const int *order, mixt__onnx_role role, bool decay)
{
    mixt__onnx_tensor t;
    mixt__onnx_recipe recipe = {.kind = MIXT_ONNX_AS_IS, .initializer = item->initializer};
    MIXT_TRY(mixt__onnx_tensor_read(m->onnx->file, m->f->initializers[item->initializer], &t));
    if (t.rank > MIXT_MAX_RANK)
        return mixt__import_refuse(m, "a parameter of %d dimensions: %d at most", t.rank, MIXT_MAX_RANK);
    mixt__param p = {.shape = {.rank = t.rank}, .trainable = role != MIXT_ONNX_STATISTIC, .decay = decay};
    for (int i = 0; i < t.rank; i++) {
        for (int k = 0; k < t.rank; k++)
            if (item->order[k] == (order ? order[i] : i))
                recipe.order[i] = k;
        p.shape.dims[i] = t.dims[recipe.order[i]];
    }
    choose_draw(&p);
    p.name = mixt__import_name(m, m->f->values[item->owner].name);
    return mixt__import_parameter(m, &recipe, &p, &m->made[item->owner]);
}

mixt_status mixt__item_parameter(mixt__import *m, mixt__item *item, const int *order, bool decay, mixt_value *value)
{
    if (item->kind == MIXT_ITEM_PARAMETER) {
        mixt__onnx_role role = m->onnx->roles[item->owner];
        int have[MIXT_ONNX_RANK];
        if (!m->made[item->owner].id)
            MIXT_TRY(make(m, item, order, role, decay));
        order_of(m, item, have);
        mixt__item_give_in(m, item, item->type, m->made[item->owner], have);
    }
    return mixt__item_full(m, item, order, value);
}

/* ---- constants in the graph ---- */

/** Drops a dimension along which all is the same; returns how many numbers are left. */
static int64_t collapse(double *numbers, int64_t *dims, int rank, int axis)
{
    int64_t inner = 1, outer = 1, size = dims[axis];
    for (int i = axis + 1; i < rank; i++)
        inner *= dims[i];
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = inner; k < size * inner; k++)
            if (memcmp(&numbers[o * size * inner + k], &numbers[o * size * inner + k % inner], sizeof *numbers))
                return outer * size * inner;
    for (int64_t o = 0; o < outer; o++)
        memmove(numbers + o * inner, numbers + o * size * inner, (size_t)inner * sizeof *numbers);
    dims[axis] = 1;
    return outer * inner;
}

/** A frozen parameter: sizes that repeat themselves, that of the batch for one, are left to broadcasting. */
static mixt_status compute_constant(mixt__import *m, mixt__item *item)
{
    const double *from = mixt__item_numbers(m, item);
    int64_t count = mixt__item_count(item), dims[MIXT_ONNX_RANK];
    int32_t id = (int32_t)(item - m->items);
    if (item->rank > MIXT_MAX_RANK || count < 1)
        return mixt__import_refuse(m, "a constant of %d dimensions and %lld elements in the graph", item->rank,
                                   (long long)count);
    double *numbers = mixt__arena_alloc(&m->arena, (size_t)count * sizeof *numbers);
    float *floats = mixt__arena_alloc(&m->arena, (size_t)count * sizeof *floats);
    if (!numbers || !floats || !from)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a constant of an ONNX file");
    memcpy(numbers, from, (size_t)count * sizeof *numbers);
    memcpy(dims, item->dims, sizeof dims);
    for (int i = 0; i < item->rank; i++)
        count = collapse(numbers, dims, item->rank, i);
    for (int64_t i = 0; i < count; i++) // what is beyond every number, as in masks, must not make NaNs
        floats[i] = numbers[i] < -3e38 ? -3e38f : numbers[i] > 3e38 ? 3e38f : (float)numbers[i];
    mixt__onnx_recipe recipe = {.kind = MIXT_ONNX_CONSTANTS, .initializer = -1, .numbers = floats, .count = count};
    mixt__param p = {.shape = mixt__shape_of(item->rank, dims), .trainable = true, .frozen = true, .constant = true};
    mixt__wire_span name = m->f->values[id > 0 && id < m->f->value_count ? id : 0].name;
    p.name = name.at ? mixt__import_name(m, name)
                     : mixt__arena_printf(&m->b->graph->arena, "constant.%lld", (long long)m->b->graph->param_count);
    mixt_value value;
    MIXT_TRY(mixt__import_parameter(m, &recipe, &p, &value));
    mixt__item made;
    mixt__item_give(m, &made, item->type, value);
    memcpy(made.dims, item->dims, sizeof made.dims);
    *item = made;
    return MIXT_OK;
}

mixt_status mixt__item_compute(mixt__import *m, mixt__item *item)
{
    mixt_value value;
    int order[MIXT_ONNX_RANK];
    memcpy(order, item->order, sizeof order);
    if (item->kind == MIXT_ITEM_COMPUTED)
        return MIXT_OK;
    if (item->kind == MIXT_ITEM_PARAMETER)
        return mixt__item_parameter(m, item, order, item->rank > 1, &value);
    if (item->kind == MIXT_ITEM_CONSTANT)
        return compute_constant(m, item);
    return mixt__import_refuse(m, "an input that nothing has made yet");
}

/* ---- values to begin with ---- */

/** Elements of a tensor in the order of a parameter. */
static void permute(const mixt__onnx_tensor *t, const mixt__onnx_recipe *r, const float *from, float *to)
{
    int64_t strides[MIXT_ONNX_RANK] = {0}, step[MIXT_ONNX_RANK], at[MIXT_ONNX_RANK] = {0}, stride = 1, place = 0;
    for (int i = t->rank - 1; i >= 0; stride *= t->dims[i--])
        strides[i] = stride;
    for (int i = 0; i < t->rank; i++)
        step[i] = strides[r->order[i]];
    for (int64_t k = 0; k < t->count; k++) {
        to[k] = from[place];
        for (int i = t->rank - 1; i >= 0; i--) {
            place += step[i];
            if (++at[i] < t->dims[r->order[i]])
                break;
            place -= step[i] * at[i];
            at[i] = 0;
        }
    }
}

static mixt_status read_values(mixt__onnx *o, const mixt__onnx_recipe *r, const mixt__param *param, float *values,
                               bool *given)
{
    mixt__onnx_tensor t;
    MIXT_TRY(mixt__onnx_tensor_read(o->file, o->file->initializers[r->initializer], &t));
    if (t.absent || t.count != param->count)
        return MIXT_OK; // in a checkpoint; or a new last layer's
    float *numbers = mixt__alloc_uninit((size_t)t.count * sizeof *numbers);
    mixt_status status = numbers ? mixt__onnx_tensor_floats(&t, numbers)
                                 : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %lld values", (long long)t.count);
    if (status == MIXT_OK)
        permute(&t, r, numbers, values);
    mixt__free(numbers);
    *given = status == MIXT_OK;
    for (int64_t i = 0; *given && i < param->count; i++)
        if (!isfinite(values[i]))
            return mixt__fail(MIXT_ERROR_DATA, "%s: '%s' holds a value that is not finite (element %lld)",
                              o->file->path, param->name, (long long)i);
    return status;
}

mixt_status mixt__onnx_begin(const void *user, const mixt__param *param, float *values, bool *given)
{
    mixt__onnx *o = (mixt__onnx *)(uintptr_t)user;
    *given = false;
    pthread_mutex_lock(&o->lock);
    const mixt__onnx_recipe *found = find_recipe(o, param->name);
    mixt__onnx_recipe r = found ? *found : (mixt__onnx_recipe){.initializer = -1};
    pthread_mutex_unlock(&o->lock);
    if (r.numbers && r.count == param->count) {
        memcpy(values, r.numbers, (size_t)r.count * sizeof *values);
        *given = true;
    }
    return r.initializer >= 0 ? read_values(o, &r, param, values, given) : MIXT_OK;
}
