/* ONNX: whatever a file says, it is refused in words or built; memory stays below four times the file and a margin. */
#include "fuzz.h"

#include "base/alloc.h"
#include "onnx/onnx.h"

static void read_tensors(mixt__onnx_file *f)
{
    mixt__onnx_tensor t;
    for (int64_t i = 0; i < f->initializer_count; i++) {
        if (!fuzz_taken(mixt__onnx_tensor_read(f, f->initializers[i], &t)))
            continue;
        double *numbers = malloc((size_t)(t.count + 1) * sizeof *numbers);
        fuzz_require(numbers);
        fuzz_taken(mixt__onnx_tensor_doubles(&t, numbers));
        free(numbers);
    }
}

void fuzz_input(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("input.onnx", data, size);
    mixt__onnx *onnx;
    char *text;
    size_t before = mixt__alloc_bytes();
    if (!fuzz_taken(mixt__onnx_open(path, &(mixt__onnx_options){.logits = true}, &onnx)))
        return;
    fuzz_require(mixt__alloc_bytes() - before < 64 * size + (1 << 16));
    read_tensors(onnx->file);
    mixt__onnx_close(onnx);
    if (!fuzz_taken(mixt__onnx_explain(path, &(mixt__onnx_options){0}, &text)))
        return;
    fuzz_require(text != NULL);
    mixt__free(text);
}
