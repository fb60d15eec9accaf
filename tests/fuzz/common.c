/* Parts that fuzz targets share: the entry point, files in memory, and a data set read as training would. */
#include "fuzz.h"

#include "base/alloc.h"

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READ_SAMPLES = 3, ELEMENTS_MAX = 1 << 20 };

static char folder[256];

/** A single allocation above this is out of proportion to any input here; the sanitizer then ends the program. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=16:max_allocation_size_mb=64:allocator_may_return_null=0:handle_abort=1:detect_leaks=1";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1:abort_on_error=1"; // so that it ends as other findings do
}

void fuzz_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: must hold: %s (newest message: %s)\n", file, line, condition, mixt_error_text());
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t before = mixt__alloc_bytes();
    fuzz_input(data, size);
    fuzz_require(mixt__alloc_bytes() == before);
    return 0;
}

static void make_folder(void)
{
    const char *base = getenv("TMPDIR");
    if (!base || !*base)
        base = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
    snprintf(folder, sizeof folder, "%.200s/mixt-fuzz-XXXXXX", base);
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(1);
    }
    atexit(fuzz_folder_remove);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void fuzz_folder_remove(void)
{
    if (folder[0])
        nftw(folder, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
    folder[0] = '\0';
}

const char *fuzz_path(const char *name)
{
    static char paths[8][600];
    static unsigned next;
    char *path = paths[next++ % 8];
    if (!folder[0])
        make_folder();
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *fuzz_file(const char *name, const void *data, size_t size)
{
    const char *path = fuzz_path(name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = file >= 0 && (size == 0 || write(file, data, size) == (ssize_t)size);
    if (!good || close(file)) {
        perror(path);
        exit(1);
    }
    return path;
}

bool fuzz_taken(mixt_status status)
{
    fuzz_require(status == MIXT_OK || *mixt_error_text());
    fuzz_require(status != MIXT_ERROR_INTERNAL);
    return status == MIXT_OK;
}

/** @param batch by which arrays are placed
 *  @param count samples of it that were read */
static void check_input(const mixt_data *set, const void *input, int64_t batch, int64_t count)
{
    const mixt_data_info *info = mixt_data_describe(set);
    for (int a = 0; a < info->array_count && !info->arrays[a].target; a++) {
        const void *at = (const char *)input + mixt_data_array_at(set, batch, a);
        const float *numbers = at;
        const int32_t *ids = at;
        for (int64_t i = 0; i < count * info->arrays[a].elements; i++)
            if (info->arrays[a].dtype == MIXT_DTYPE_FP32)
                fuzz_require(isfinite(numbers[i]));
            else
                fuzz_require(ids[i] >= 0 && ids[i] < info->arrays[a].ids);
    }
}

/** Labels may be -1 where there are several in a sample: those are padding, or do not count. */
static void check_target(const mixt_data *set, const void *target, int64_t batch, int64_t count)
{
    const mixt_data_info *info = mixt_data_describe(set);
    for (int a = 0; a < info->array_count; a++) {
        const mixt_data_array *array = &info->arrays[a];
        const void *at = (const char *)target + mixt_data_array_at(set, batch, a);
        const float *values = at;
        const int32_t *labels = at;
        for (int64_t i = 0; array->target && i < count * array->elements; i++)
            if (array->dtype == MIXT_DTYPE_FP32)
                fuzz_require(isfinite(values[i]));
            else
                fuzz_require(labels[i] >= (array->rank ? -1 : 0) && labels[i] < array->ids);
    }
}

/** A batch in training order, then the first and the last samples. */
static void read_samples(const mixt_data *set, float *input, float *target)
{
    const mixt_data_info *info = mixt_data_describe(set);
    int64_t batch = info->samples < READ_SAMPLES ? info->samples : READ_SAMPLES, valid;
    for (int64_t number = 0; number < 2; number++) {
        fuzz_require(mixt_data_batch(set, batch, number, input, target) == MIXT_OK);
        check_input(set, input, batch, batch);
        check_target(set, target, batch, batch);
    }
    for (int end = 0; end < 2; end++) {
        int64_t first = end ? info->samples - 1 : 0;
        fuzz_require(mixt_data_read(set, first, READ_SAMPLES, input, target, &valid) == MIXT_OK);
        fuzz_require(valid >= 1 && valid <= READ_SAMPLES && first + valid <= info->samples);
        check_input(set, input, READ_SAMPLES, valid);
        check_target(set, target, READ_SAMPLES, valid);
    }
}

void fuzz_data_set(const char *spec, mixt_data_options options)
{
    mixt_data *set = NULL;
    if (!fuzz_taken(mixt_data_open_with(spec, &options, &set))) {
        fuzz_require(!set);
        return;
    }
    const mixt_data_info *info = mixt_data_describe(set);
    fuzz_require(info->samples >= 1 && info->input_elements >= 1 && info->target_elements >= 1);
    fuzz_require(info->input_rank >= (info->array_count == 2) && info->input_rank < MIXT_MAX_RANK);
    fuzz_require((info->target == MIXT_TARGET_VALUES) == (info->classes == 0));
    if (info->input_elements <= ELEMENTS_MAX && info->target_elements <= ELEMENTS_MAX) {
        float *input = malloc(mixt_data_input_bytes(set, READ_SAMPLES));
        float *target = malloc(mixt_data_target_bytes(set, READ_SAMPLES));
        if (input && target)
            read_samples(set, input, target);
        free(input);
        free(target);
    }
    mixt_data_close(set);
}
