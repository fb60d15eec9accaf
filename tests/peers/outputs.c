/* A run's outputs on made-up samples: what other programs' outputs of its exported file are held against.
 *
 * Usage: outputs RUN COUNT IDS FOLDER
 * Writes each input of the batch to FOLDER/NAME.bin, INT32 ids below IDS or FP32 numbers, lengths and the masks that go
 * with them, and the outputs to FOLDER/outputs.bin. Used by compare_onnx_export.py.
 */
#include "mixt/mixt.h"

#include "base/block.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTHS_STEP = 3 };

static bool ends_in(const char *name, const char *end)
{
    size_t a = strlen(name), b = strlen(end);
    return a >= b && !strcmp(name + a - b, end);
}

/** Entry `sample` of arrays that say where texts end has so many places, of those that there are. */
static int64_t length_of(int64_t sample, int64_t places)
{
    return places - sample * LENGTHS_STEP % places;
}

static void fill(const mixt__array *a, int64_t ids, int64_t places, void *to)
{
    int64_t count = mixt__shape_count(&a->shape), row = count / a->shape.dims[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t sample = i / row;
        float *numbers = to;
        int32_t *whole = to;
        if (ends_in(a->name, ".length"))
            whole[i] = (int32_t)length_of(sample, places);
        else if (ends_in(a->name, ".mask"))
            numbers[i] = i % row < length_of(sample, places) ? 1.0f : 0.0f;
        else if (a->dtype == MIXT_DTYPE_INT32)
            whole[i] = (int32_t)((i * 37 + 11 * sample + 5) % ids);
        else
            numbers[i] = (float)(i * 29 % 101) / 50 - 1;
    }
}

static int put(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    FILE *f = fopen(path, "wb");
    int bad = !f || fwrite(data, 1, bytes, f) != bytes;
    return bad | (f && fclose(f));
}

/** Places that texts of an array's name have: "caption" of "caption.length". */
static int64_t places_of(const mixt__batch_spec *spec, const char *name)
{
    mixt__array a;
    for (int i = 0; mixt__spec_array(spec, i, &a); i++)
        if (strchr(name, '.') && !strncmp(a.name, name, strcspn(name, ".")) && a.name[strcspn(name, ".")] == '\0')
            return a.shape.dims[1];
    return 1;
}

int main(int argc, char **argv)
{
    mixt_run *run;
    mixt__array a;
    mixt__block block = {0};
    int64_t count = argc > 4 ? atoll(argv[2]) : 0, outputs;
    if (count < 1 || mixt_run_load(argv[1], "final", &run) != MIXT_OK)
        return fprintf(stderr, "outputs: %s\n", mixt_error_text()), 1;
    mixt__batch_spec spec = *mixt__trainer_spec(mixt_run_trainer(run)->inner);
    mixt__spec_resize(&spec, count);
    char *input = calloc(1, mixt__spec_input_bytes(&spec) + MIXT_BLOCK_ALIGNMENT);
    for (int i = 0; input && mixt__spec_array(&spec, i, &a); i++) {
        if (a.target)
            continue;
        size_t bytes = (size_t)mixt__shape_count(&a.shape) * sizeof(float);
        char *to = input + mixt__block_add(&block, bytes);
        fill(&a, atoll(argv[3]), places_of(&spec, a.name), to);
        if (put(argv[4], a.name, to, bytes))
            return fprintf(stderr, "outputs: cannot write to %s\n", argv[4]), 1;
    }
    float *y = NULL;
    bool well = input && mixt_trainer_outputs(mixt_run_trainer(run), &outputs) == MIXT_OK &&
                (y = malloc((size_t)(count * outputs) * sizeof *y)) &&
                mixt_trainer_predict(mixt_run_trainer(run), input, count, y) == MIXT_OK;
    if (!well || put(argv[4], "outputs", y, (size_t)(count * outputs) * sizeof *y))
        return fprintf(stderr, "outputs: %s\n", mixt_error_text()), 1;
    free(y);
    free(input);
    mixt_run_close(run);
    return 0;
}
