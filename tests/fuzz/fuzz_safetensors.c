/* safetensors: every tensor that is given out lies within the file, and a file that opens can be converted. */
#include "fuzz.h"

#include "mixt/weights.h"
#include "store/safetensors.h"

#include <string.h>
#include <unistd.h>

static volatile uint8_t sink;

static void read_tensors(const mixt__safetensors *file, size_t size)
{
    size_t total = 0;
    for (int64_t i = 0; i < file->count; i++) {
        const mixt__file_tensor *tensor = &file->tensors[i];
        const uint8_t *bytes = tensor->data;
        fuzz_require(tensor->rank >= 0 && tensor->rank <= MIXT__FILE_RANK && tensor->dtype != MIXT_DTYPE_NONE);
        fuzz_require(mixt__safetensors_find(file, tensor->name));
        total += tensor->bytes;
        fuzz_require(total <= size);
        for (size_t k = 0; k < tensor->bytes; k++)
            sink ^= bytes[k];
    }
    for (int64_t i = 0; i < file->metadata.count; i++)
        fuzz_require(mixt__safetensors_metadata(file, file->metadata.pairs[i].key));
}

/** Converts to half precision; what was written must open again with as many tensors. */
static void convert(const char *path, int64_t count)
{
    const char *half = fuzz_path("half.safetensors");
    mixt__safetensors *file;
    if (!fuzz_taken(mixt_convert_file(path, half, MIXT_DTYPE_FP16, NULL, true, NULL)))
        return;
    fuzz_require(mixt__safetensors_open(half, &file) == MIXT_OK);
    fuzz_require(file->count == count);
    mixt__safetensors_close(file);
    unlink(half);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("input.safetensors", data, size);
    mixt__safetensors *file;
    if (!fuzz_taken(mixt__safetensors_open(path, &file)))
        return;
    int64_t count = file->count;
    read_tensors(file, size);
    mixt__safetensors_close(file);
    convert(path, count);
}
