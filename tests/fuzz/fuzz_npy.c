/* NumPy arrays: as samples, as labels, and as what the converter reads and writes. */
#include "fuzz.h"

#include "mixt/weights.h"
#include "store/npy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 4096 };

/** A file of `rows` labels. */
static const char *make_labels(int64_t rows)
{
    static uint8_t bytes[ROWS_MAX];
    for (int64_t i = 0; i < rows; i++)
        bytes[i] = (uint8_t)(i % 5);
    const char *path = fuzz_path("labels.npy");
    mixt__file_tensor labels = {.dtype = MIXT_DTYPE_UINT8, .rank = 1, .dims = {rows}, .data = bytes};
    fuzz_require(mixt__npy_write(path, &labels, true) == MIXT_OK);
    return path;
}

/** Converts to half precision; what was written must open again. */
static void convert(const char *path)
{
    const char *half = fuzz_path("half.npy");
    mixt__npy file;
    if (!fuzz_taken(mixt_convert_file(path, half, MIXT_DTYPE_FP16, NULL, true, NULL)))
        return;
    fuzz_require(mixt__npy_open(half, &file) == MIXT_OK);
    mixt__npy_close(&file);
    unlink(half);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static const uint8_t samples[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const char *path = fuzz_file("input.npy", data, size), *fixed = fuzz_path("fixed.npy");
    char spec[700];
    mixt__npy file;
    if (fuzz_taken(mixt__npy_open(path, &file))) {
        int64_t rows = file.tensor.rank ? file.tensor.dims[0] : 0;
        mixt__npy_close(&file);
        convert(path);
        snprintf(spec, sizeof spec, "npy:%s", path);
        if (rows > 0 && rows <= ROWS_MAX)
            fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .labels = make_labels(rows), .split = "all"));
        fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .labels = path));
    }
    mixt__file_tensor tensor = {.dtype = MIXT_DTYPE_UINT8, .rank = 2, .dims = {4, 2}, .data = samples};
    if (access(fixed, F_OK))
        fuzz_require(mixt__npy_write(fixed, &tensor, false) == MIXT_OK);
    snprintf(spec, sizeof spec, "npy:%s", fixed);
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .labels = path));
}
