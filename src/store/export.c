/* Writing weights under another program's names and layouts, with its config.json. */
#include "base/status.h"
#include "num/format.h"
#include "num/num.h"
#include "mixt/num.h"
#include "store/file.h"
#include "store/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct exporter {
    const mixt__export_request *request;
    mixt__safetensors *file;          // NULL: values are the caller's
    const mixt__file_tensor *tensors; // (count) that there are
    int64_t count;
    mixt__name_plan plan;
    mixt__file_tensor *there; // what is written, by entry
    float *here, *moved;      // one tensor: as it is in the file, in its new layout
    void *low;                // and in its new format
    mixt__name_differs differs;
} exporter;

/* ---- facts ---- */

/** The number behind "h." in "h.12.ln1.weight"; -1: there is none. */
static int64_t block_number(const char *name)
{
    long long number = -1;
    return sscanf(name, "h.%lld.", &number) == 1 ? (int64_t)number : -1;
}

void mixt__name_facts_read(mixt__name_facts *facts, const mixt__file_tensor *here, int64_t count)
{
    int64_t both = 0; // gate and up in one
    const struct {
        const char *name;
        int64_t *rows, *columns;
    } sizes[] = {
        {"wte.weight", &facts->vocab, &facts->width},
        {MIXT_POSITIONS_TENSOR, &facts->positions, NULL},
        {"wtt.weight", &facts->types, NULL},
        {"h.0.mlp.fc.weight", &facts->inner, NULL},
        {"h.0.mlp.gate.weight", &facts->inner, NULL},
        {"h.0.mlp.gate_up.weight", &both, NULL},
        {"fc.weight", &facts->classes, NULL},
        {"classifier.3.weight", &facts->classes, NULL}, // VGG: the last one there is
        {"classifier.6.weight", &facts->classes, NULL},
        {"classifier.9.weight", &facts->classes, NULL},
    };
    for (int64_t i = 0; i < count; i++) {
        int64_t block = block_number(here[i].name);
        if (block >= facts->layers)
            facts->layers = block + 1;
        if (here[i].rank == 4 && (!strcmp(here[i].name, "conv1.weight") || !strcmp(here[i].name, "features.0.weight")))
            facts->channels = here[i].dims[3];
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            if (here[i].rank != 2 || strcmp(here[i].name, sizes[k].name))
                continue;
            *sizes[k].rows = here[i].dims[0];
            if (sizes[k].columns)
                *sizes[k].columns = here[i].dims[1];
        }
    }
    facts->inner = both ? both / 2 : facts->inner;
    if (!facts->head_dim)
        facts->head_dim = facts->heads ? facts->width / facts->heads : 0;
    if (!(facts->query_scale > 0))
        facts->query_scale = (double)facts->head_dim;
}

/* ---- tensors ---- */

/** More tokens than the table has rows cannot be real. */
static mixt_status check_vocab(const exporter *x)
{
    mixt__name_facts facts = {0};
    mixt__name_facts_read(&facts, x->tensors, x->count);
    if (!facts.vocab || x->request->vocab <= facts.vocab)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: its table has %lld tokens: %lld of them cannot be real",
                      x->request->source, (long long)facts.vocab, (long long)x->request->vocab);
}

static mixt_status prepare(exporter *x)
{
    const mixt__export_request *r = x->request;
    int64_t most = 1;
    if (!r->values)
        MIXT_TRY(mixt__safetensors_open_weights(r->source, &x->file));
    x->tensors = x->file ? x->file->tensors : r->tensors;
    x->count = x->file ? x->file->count : r->tensor_count;
    MIXT_TRY(check_vocab(x));
    MIXT_TRY(mixt__name_plan_make(&x->plan, r->names, &r->facts, x->tensors, x->count, r->vocab, r->positions));
    x->there = mixt__alloc((size_t)(x->plan.count + 1) * sizeof *x->there);
    for (int64_t i = 0; i < x->count; i++) {
        const mixt__file_tensor *t = &x->tensors[i];
        int64_t n = mixt__file_tensor_count(t->dtype, t->rank, t->dims);
        if (!mixt_dtype_is_float(t->dtype))
            return mixt__fail(MIXT_ERROR_DTYPE, "%s: tensor '%s' is %s, expected a float format", r->source, t->name,
                              mixt_dtype_name(t->dtype));
        most = n > most ? n : most;
    }
    for (int64_t i = 0; x->there && i < x->plan.count; i++) {
        x->there[i] = x->plan.entries[i].there;
        if (x->there[i].dtype != MIXT_DTYPE_INT64)
            x->there[i].dtype = r->dtype;
    }
    x->here = mixt__alloc_uninit((size_t)most * sizeof *x->here);
    x->moved = mixt__alloc_uninit((size_t)most * sizeof *x->moved);
    x->low = mixt__alloc_uninit((size_t)most * sizeof *x->moved);
    if (!x->there || !x->here || !x->moved || !x->low)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to export it", r->source);
    return MIXT_OK;
}

/** A weight that becomes infinite is a broken model: better no file. */
static mixt_status check_range(const exporter *x, const char *name, int64_t count)
{
    mixt_dtype dtype = x->request->dtype;
    const float limit = mixt__dtype_beyond(dtype); // from here on it rounds to infinity
    for (int64_t i = 0; mixt__format_narrow(dtype) && i < count; i++)
        if (isfinite(x->moved[i]) && fabsf(x->moved[i]) >= limit)
            return mixt__fail(MIXT_ERROR_DTYPE, "tensor '%s' holds %g, beyond %s's largest %g: export bf16 or fp32",
                              name, (double)x->moved[i], mixt_dtype_name(dtype), mixt__dtype_max(dtype));
    return MIXT_OK;
}

/** The numbers of an entry in their new layout, FP32, in x->moved. */
static mixt_status move_entry(exporter *x, int64_t index)
{
    const mixt__name_entry *e = &x->plan.entries[index];
    const mixt__file_tensor *source = &x->tensors[e->here];
    int64_t whole = (int64_t)(source->bytes / mixt_dtype_size(source->dtype));
    if (x->request->values)
        MIXT_TRY(x->request->values(x->request->user, e->here, x->here));
    else
        MIXT_TRY(mixt_convert(x->here, MIXT_DTYPE_FP32, source->data, source->dtype, whole, NULL));
    MIXT_TRY(mixt__safetensors_check(x->file));
    if (!x->request->not_finite)
        MIXT_TRY(mixt__weights_finite(
            source->name, x->here, 0, whole,
            "damaged weights, or those of failed training, are not exported unless you ask for it (--not-finite)"));
    mixt__name_to_there(&x->plan, e, x->here, x->moved);
    return MIXT_OK;
}

static mixt_status fetch(void *argument, int64_t index, const void **data)
{
    exporter *x = argument;
    static const int64_t zero = 0;
    const mixt__name_entry *e = &x->plan.entries[index];
    if (e->rule->layout == MIXT_LAYOUT_COUNTER) {
        *data = &zero;
        return MIXT_OK;
    }
    MIXT_TRY(move_entry(x, index));
    int64_t count = mixt__file_tensor_count(e->there.dtype, e->there.rank, e->there.dims);
    MIXT_TRY(check_range(x, e->there.name, count));
    *data = x->low;
    return mixt_convert(x->low, x->request->dtype, x->moved, MIXT_DTYPE_FP32, count, NULL);
}

static mixt_status write_weights(exporter *x)
{
    char path[4096];
    const mixt__text_pair format = {"format", x->request->names ? "pt" : "mixt"};
    const mixt__metadata metadata = {.pairs = &format, .count = 1};
    snprintf(path, sizeof path, "%s/model.safetensors", x->request->folder);
    return mixt__safetensors_write_from(path, x->there, x->plan.count, &metadata, x->request->overwrite, fetch, x);
}

/** config.json of what is exported; NULL: no memory, or the family has none. */
static char *config_of(const exporter *x)
{
    mixt__name_facts facts = x->request->facts;
    mixt__name_facts_read(&facts, x->tensors, x->count);
    facts.dtype = x->request->dtype;
    facts.fits = !x->differs.text[0];
    if (x->request->vocab && x->request->vocab < facts.vocab)
        facts.vocab = x->request->vocab;
    if (!x->request->names->rotary && x->request->positions && x->request->positions < facts.positions)
        facts.positions = x->request->positions;
    return mixt__names_config(x->request->names, &facts);
}

static mixt_status write_config(exporter *x)
{
    char path[4096];
    char *text = config_of(x);
    if (!text)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for config.json");
    snprintf(path, sizeof path, "%s/config.json", x->request->folder);
    mixt__file_writer writer = {.fd = -1};
    mixt_status status = mixt__file_writer_open(&writer, path, x->request->overwrite);
    if (status == MIXT_OK)
        status = mixt__file_writer_append(&writer, text, strlen(text));
    if (status == MIXT_OK)
        status = mixt__file_writer_append(&writer, "\n", 1);
    if (status == MIXT_OK)
        status = mixt__file_writer_commit(&writer);
    mixt__file_writer_abandon(&writer);
    free(text);
    return status;
}

static void finish(exporter *x)
{
    mixt__free(x->low);
    mixt__free(x->moved);
    mixt__free(x->here);
    mixt__free(x->there);
    mixt__name_plan_free(&x->plan);
    mixt__safetensors_close(x->file);
}

mixt_status mixt__weights_export(const mixt__export_request *request, int64_t *tensors, mixt__name_differs *differs)
{
    exporter x = {.request = request};
    mixt_status status = prepare(&x);
    if (status == MIXT_OK && request->names && request->names->differs)
        x.differs = request->names->differs(x.tensors, x.count, request->facts.architecture);
    *tensors = x.plan.count;
    *differs = x.differs;
    if (status == MIXT_OK)
        status = write_weights(&x);
    if (status == MIXT_OK && request->names)
        status = write_config(&x);
    finish(&x);
    return status;
}

/* ---- a view of the same ---- */

typedef struct export_view {
    mixt__view view;
    exporter x;
    int64_t moved; // the entry that x.moved has, plus 1; 0: none
} export_view;

static mixt_status view_rows(mixt__view *view, int64_t index, int64_t first, int64_t count, float *values)
{
    export_view *v = (export_view *)view;
    const mixt__file_tensor *t = &v->x.there[index];
    int64_t all = mixt__file_tensor_count(MIXT_DTYPE_FP32, t->rank, t->dims), row = t->rank ? all / t->dims[0] : 1;
    if (v->moved != index + 1)
        MIXT_TRY(move_entry(&v->x, index));
    v->moved = index + 1;
    memcpy(values, v->x.moved + first * row, (size_t)(count * row) * sizeof *values);
    return MIXT_OK;
}

static void view_close(mixt__view *view)
{
    export_view *v = (export_view *)view;
    finish(&v->x);
    mixt__free(v);
}

mixt_status mixt__view_export(const mixt__export_request *request, mixt__view **view)
{
    *view = NULL;
    export_view *v = mixt__alloc(sizeof *v);
    if (!v)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to export it", request->source);
    v->x.request = request;
    mixt_status status = prepare(&v->x);
    if (status != MIXT_OK) {
        view_close(&v->view);
        return status;
    }
    v->view = (mixt__view){.tensors = v->x.there, .count = v->x.plan.count, .rows = view_rows, .close = view_close};
    *view = &v->view;
    return MIXT_OK;
}

char *mixt__view_config(const mixt__export_request *request, const mixt__view *view)
{
    return request->names ? config_of(&((const export_view *)view)->x) : NULL;
}
