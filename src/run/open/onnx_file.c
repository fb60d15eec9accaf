/* A run as an ONNX file: its model built for two numbers of samples, its weights, and what its inputs are. */
#include "mixt/weights.h"

#include "base/options.h"
#include "onnx/export.h"
#include "run/open/inputs.h"
#include "run/run.h"
#include "store/file.h"
#include "store/json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SAMPLES = 2, OTHER_SAMPLES = 3, PAIRS = 8 };

/** Lines of metadata, and the texts that they have. */
typedef struct metadata {
    mixt__onnx_pair pairs[PAIRS];
    char *texts[PAIRS]; // of free(); NULL: the text is another's
    int count;
} metadata;

static mixt_status values_of(void *user, int32_t param, float *values)
{
    return mixt__params_get(user, param, values);
}

static void add_text(metadata *d, const char *key, const char *value)
{
    if (value && *value)
        d->pairs[d->count++] = (mixt__onnx_pair){key, value};
}

static mixt_status add_json(metadata *d, const char *key, const json_t *value)
{
    if (!json_array_size(value)) // tokens have no mean, and some classes no names
        return MIXT_OK;
    char *text = mixt__json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the metadata of the ONNX file");
    d->texts[d->count] = text;
    d->pairs[d->count++] = (mixt__onnx_pair){key, text};
    return MIXT_OK;
}

/** What the model was, what its inputs are in, and what its outputs stand for. */
static mixt_status describe(metadata *d, const mixt_run *run, const json_t *inputs)
{
    const json_t *data = json_object_get(inputs, "data");
    add_text(d, "mixt.model", mixt__config_string(run->config, MIXT_KEY_MODEL));
    MIXT_TRY(add_json(d, "mixt.mean", json_object_get(data, "mean")));
    MIXT_TRY(add_json(d, "mixt.std", json_object_get(data, "std")));
    return add_json(d, "mixt.classes", json_object_get(data, "class_names"));
}

static mixt_status build(const mixt__trainer *t, int64_t samples, mixt__graph **graph)
{
    mixt__batch_spec spec = *mixt__trainer_spec(t);
    mixt__spec_resize(&spec, samples);
    return mixt__model_build_outputs(mixt__trainer_model(t), &spec, 0, graph);
}

static mixt_status write_graphs(const mixt_run *run, const mixt__onnx_model_out *made, const char *source,
                                const char *path, bool overwrite, mixt_onnx_report *report)
{
    mixt__onnx_model_out model = *made;
    mixt__graph *graphs[2] = {NULL, NULL};
    mixt__onnx_written written = {0};
    const mixt__trainer *t = run->experiment.trainer->inner;
    mixt_status status = build(t, SAMPLES, &graphs[0]);
    if (status == MIXT_OK)
        status = build(t, OTHER_SAMPLES, &graphs[1]);
    model.graph = graphs[0];
    model.other = graphs[1];
    model.values = values_of;
    model.user = mixt__trainer_params(t);
    if (status == MIXT_OK)
        status = mixt__onnx_write_model(&model, source, path, overwrite, &written);
    report->nodes = written.nodes;
    report->tensors = written.tensors;
    report->bytes = written.bytes;
    for (int i = 0; i < 2; i++)
        if (graphs[i])
            mixt__graph_free(graphs[i]);
    return status;
}

static mixt_status write_run(const mixt_run *run, const char *folder, const mixt_onnx_write_options *o,
                             mixt_onnx_report *report)
{
    metadata d = {.count = 0};
    json_t *inputs = NULL;
    MIXT_TRY(mixt__run_inputs_read(folder, &inputs));
    mixt_status status = describe(&d, run, inputs);
    const mixt__onnx_model_out model = {
        .name = mixt__config_string(run->config, MIXT_KEY_MODEL), .pairs = d.pairs, .pair_count = d.count};
    if (status == MIXT_OK)
        status = write_graphs(run, &model, folder, report->file, o->overwrite, report);
    for (int i = 0; i < d.count; i++)
        free(d.texts[i]);
    json_decref(inputs);
    return status;
}

mixt_status mixt_onnx_write(const char *run, const mixt_onnx_write_options *options, mixt_onnx_report *report)
{
    mixt_onnx_report own = {0};
    mixt_onnx_write_options o = MIXT_OPTIONS(mixt_onnx_write_options);
    struct stat facts;
    mixt_run *open;
    report = report ? report : &own;
    *report = (mixt_onnx_report){0};
    MIXT_TRY(mixt__options(mixt_onnx_write_options, &o, options));
    MIXT_TRY(mixt__need(run));
    bool given = o.file && *o.file;
    MIXT_TRY(given ? mixt__give_text(&report->file, "%s", o.file)
                   : mixt__give_text(&report->file, "%s/export.onnx", run));
    mixt_status status = MIXT_OK;
    if (!o.overwrite && !lstat(report->file, &facts))
        status =
            mixt__fail(MIXT_ERROR_FILE, "%s: exists already and is not overwritten unless you ask for it (--overwrite)",
                       report->file);
    if (status == MIXT_OK)
        status = mixt_run_load_with(run, o.weights ? o.weights : "final", NULL, &open);
    if (status == MIXT_OK) {
        status = write_run(open, run, &o, report);
        mixt_run_close(open);
    }
    mixt_free(own.file);
    return status;
}
