/* The arrays of a batch: how many bytes they take and how they are rounded on the way to the device. */
#include "model/model.h"

#include "base/block.h"
#include "base/threads.h"
#include "num/num.h"

#include <stdio.h>
#include <string.h>

static mixt__array array_of(const char *name, const char *fallback, bool target, mixt_dtype dtype,
                            const mixt__shape *shape)
{
    mixt__array a = {.target = target, .dtype = dtype, .shape = *shape};
    snprintf(a.name, sizeof a.name, "%s", *name ? name : fallback);
    return a;
}

bool mixt__spec_array(const mixt__batch_spec *s, int index, mixt__array *array)
{
    int inputs = 1;
    for (int i = 0; i < s->more_count; i++)
        inputs += !s->more[i].target;
    bool has_target = s->target_dtype != MIXT_DTYPE_NONE;
    if (index == 0)
        *array = array_of(s->input_name, "input", false, s->input_dtype, &s->input);
    else if (index < inputs)
        *array = s->more[index - 1];
    else if (index == inputs && has_target)
        *array = array_of(s->target_name, "target", true, s->target_dtype, &s->target);
    else if (has_target && index - 2 < s->more_count)
        *array = s->more[index - 2];
    else
        return false;
    return true;
}

static size_t array_bytes(const mixt__array *a)
{
    return (size_t)mixt__shape_count(&a->shape) * mixt_dtype_size(a->dtype);
}

static size_t block_bytes(const mixt__batch_spec *spec, bool target)
{
    mixt__array a;
    mixt__block block = {0};
    for (int i = 0; mixt__spec_array(spec, i, &a); i++)
        if (a.target == target)
            mixt__block_add(&block, array_bytes(&a));
    return mixt__block_bytes(&block);
}

size_t mixt__spec_input_bytes(const mixt__batch_spec *spec)
{
    return block_bytes(spec, false);
}

size_t mixt__spec_target_bytes(const mixt__batch_spec *spec)
{
    return block_bytes(spec, true);
}

void mixt__spec_resize(mixt__batch_spec *spec, int64_t batch)
{
    spec->input.dims[0] = spec->target.dims[0] = batch;
    for (int i = 0; i < spec->more_count; i++)
        spec->more[i].shape.dims[0] = batch;
}

bool mixt__spec_equal(const mixt__batch_spec *a, const mixt__batch_spec *b)
{
    mixt__array x, y;
    for (int i = 0;; i++) {
        bool has = mixt__spec_array(a, i, &x);
        if (has != mixt__spec_array(b, i, &y))
            return false;
        if (!has)
            return true;
        if (strcmp(x.name, y.name) || x.target != y.target || x.dtype != y.dtype ||
            !mixt__shape_equal(&x.shape, &y.shape))
            return false;
    }
}

mixt__batch_spec mixt__spec_fed(const mixt__batch_spec *spec, const mixt__graph *graph)
{
    mixt__batch_spec fed = *spec;
    fed.input_dtype = graph->values[graph->input].dtype;
    for (int i = 0; i < fed.more_count && !fed.more[i].target; i++)
        fed.more[i].dtype = graph->values[graph->arrays[i + 1].value].dtype;
    return fed;
}

bool mixt__spec_rounds(const mixt__batch_spec *given, const mixt__batch_spec *fed)
{
    bool rounds = given->input_dtype != fed->input_dtype;
    for (int i = 0; i < given->more_count; i++)
        rounds = rounds || given->more[i].dtype != fed->more[i].dtype;
    return rounds;
}

typedef struct rounding {
    char *dst;
    const float *src;
    mixt_dtype dtype;
} rounding;

static void round_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const rounding *r = argument;
    (void)thread;
    mixt__narrow(r->dtype)(r->dst + (size_t)begin * mixt_dtype_size(r->dtype), r->src + begin, end - begin);
}

void mixt__spec_round(const mixt__batch_spec *given, const mixt__batch_spec *fed, const void *from, void *to)
{
    enum { GRAIN = 8192 };
    mixt__array a, b;
    mixt__block source = {0}, place = {0};
    for (int i = 0; mixt__spec_array(given, i, &a) && mixt__spec_array(fed, i, &b) && !a.target; i++) {
        const char *src = (const char *)from + mixt__block_add(&source, array_bytes(&a));
        char *dst = (char *)to + mixt__block_add(&place, array_bytes(&b));
        if (a.dtype == b.dtype)
            memcpy(dst, src, array_bytes(&a));
        else
            mixt__parallel(mixt__shape_count(&a.shape), GRAIN, round_range,
                           &(rounding){dst, (const float *)(const void *)src, b.dtype});
    }
}
