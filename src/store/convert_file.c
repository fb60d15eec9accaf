/* mixt_convert_file: opens the source, describes the result, and converts each tensor when the writer asks for it. */
#include "mixt/weights.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/rng.h"
#include "base/status.h"
#include "num/losses.h"
#include "num/num.h"
#include "store/file.h"
#include "store/npy.h"
#include "store/safetensors.h"

#include <sys/stat.h>

typedef struct conversion {
    mixt__safetensors *weights; // one of the two is open
    mixt__npy array;
    const mixt__file_tensor *sources;
    int64_t count;
    mixt__file_tensor *results; // without data
    mixt_dtype dtype;
    mixt_convert_options options;
    uint64_t seed;
    void *buffer; // the newest converted tensor
    const char *src;
    int64_t kept; // tensors
    mixt__losses losses;
} conversion;

static mixt_status check_paths(const char *src, const char *dst, mixt_dtype dtype, bool overwrite)
{
    const char *const paths[2] = {src, dst};
    for (int i = 0; i < 2; i++)
        if (!mixt__path_has_extension(paths[i], ".npy") && !mixt__path_has_extension(paths[i], ".safetensors"))
            return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: %s must end in .npy or .safetensors", paths[i],
                              i ? "a converted file" : "a file to convert");
    if (!mixt_dtype_size(dtype))
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: cannot be converted: format %d is not one of mixt's", src, (int)dtype);
    if (mixt__path_has_extension(dst, ".npy") && !mixt__npy_descr(dtype))
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: .npy has no format for %s; name a .safetensors file instead", dst,
                          mixt_dtype_name(dtype));
    struct stat info;
    if (!overwrite && lstat(dst, &info) == 0)
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: exists already and is not overwritten unless you ask for it (--overwrite)", dst);
    return MIXT_OK;
}

static mixt_status open_source(conversion *c)
{
    if (mixt__path_has_extension(c->src, ".npy")) {
        MIXT_TRY(mixt__npy_open(c->src, &c->array));
        c->sources = &c->array.tensor;
        c->count = 1;
    } else {
        MIXT_TRY(mixt__safetensors_open(c->src, &c->weights));
        c->sources = c->weights->tensors;
        c->count = c->weights->count;
    }
    return MIXT_OK;
}

/** Formats of the results, and a buffer for the largest that is converted. */
static mixt_status describe_results(conversion *c)
{
    size_t largest = 0;
    c->results = mixt__alloc(((size_t)c->count + 1) * sizeof *c->results);
    if (!c->results)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to convert %lld tensors", c->src, (long long)c->count);
    for (int64_t i = 0; i < c->count; i++) {
        const mixt__file_tensor *source = &c->sources[i];
        mixt__file_tensor *result = &c->results[i];
        *result = *source;
        result->data = NULL;
        if (c->weights && !mixt_dtype_is_float(source->dtype)) {
            c->kept++;
            continue;
        }
        result->dtype = c->dtype;
        int64_t count = mixt__file_tensor_count(c->dtype, source->rank, source->dims);
        if (count < 0)
            return mixt__fail(MIXT_ERROR_SHAPE, "%s: tensor '%s' of shape %s is too large in %s", c->src, source->name,
                              mixt__dims_print(source->rank, source->dims).text, mixt_dtype_name(c->dtype));
        result->bytes = (size_t)count * mixt_dtype_size(c->dtype);
        largest = result->bytes > largest ? result->bytes : largest;
    }
    c->buffer = mixt__alloc_uninit(largest);
    if (!c->buffer)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for a converted tensor of %zu bytes", c->src, largest);
    return MIXT_OK;
}

/** A scale that no tensor would be multiplied or divided by was meant for something else. */
static mixt_status check_scale(const conversion *c)
{
    bool used = c->options.scale == 0 || c->options.scale == 1 || mixt__dtype_has_scale(c->dtype);
    for (int64_t i = 0; i < c->count && !used; i++)
        used = c->results[i].dtype != c->sources[i].dtype && mixt__dtype_has_scale(c->sources[i].dtype);
    return used ? MIXT_OK
                : mixt__fail(MIXT_ERROR_ARGUMENT,
                             "%s: a scale of %g is not for a conversion to %s: only int8, uint8 and fp8 have one",
                             c->src, (double)c->options.scale, mixt_dtype_name(c->dtype));
}

static mixt_status fetch_converted(void *argument, int64_t index, const void **data)
{
    conversion *c = argument;
    const mixt__file_tensor *source = &c->sources[index], *result = &c->results[index];
    if (source->dtype == result->dtype && !c->options.saturate) {
        *data = source->data;
        return MIXT_OK;
    }
    c->options.seed = mixt__rng_key(c->seed, (uint64_t)index, 0);
    int64_t count = (int64_t)(source->bytes / mixt_dtype_size(source->dtype));
    *data = c->buffer;
    mixt_status status = mixt_convert(c->buffer, result->dtype, source->data, source->dtype, count, &c->options);
    if (status != MIXT_OK)
        return mixt__fail_context(status, "%s: tensor '%s'", c->src, source->name);
    mixt__losses_add(&c->losses, c->buffer, result->dtype, source->data, source->dtype, count, &c->options);
    return MIXT_OK;
}

static mixt_status write_result(conversion *c, const char *dst, bool overwrite)
{
    if (!mixt__path_has_extension(dst, ".npy"))
        return mixt__safetensors_write_from(dst, c->results, c->count, c->weights ? &c->weights->metadata : NULL,
                                            overwrite, fetch_converted, c);
    if (c->count != 1)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: holds %lld tensors, a .npy file exactly one; write %s as "
                          ".safetensors instead",
                          c->src, (long long)c->count, dst);
    MIXT_TRY(fetch_converted(c, 0, &c->results[0].data));
    return mixt__npy_write(dst, &c->results[0], overwrite);
}

mixt_status mixt_convert_file(const char *src, const char *dst, mixt_dtype dtype, const mixt_convert_options *options,
                              bool overwrite, mixt_convert_report *report)
{
    conversion c = {.src = src, .dtype = dtype, .options = MIXT_OPTIONS(mixt_convert_options)};
    MIXT_TRY(mixt__options(mixt_convert_options, &c.options, options));
    c.seed = c.options.seed;
    mixt_status status;
    MIXT_TRY(mixt__need(src));
    MIXT_TRY(mixt__need(dst));
    MIXT_TRY(check_paths(src, dst, dtype, overwrite));
    MIXT_TRY_CLEANUP(open_source(&c));
    MIXT_TRY_CLEANUP(describe_results(&c));
    MIXT_TRY_CLEANUP(check_scale(&c));
    status = write_result(&c, dst, overwrite);
    if (report)
        *report = (mixt_convert_report){c.kept, c.losses.overflowed, c.losses.clamped, c.losses.vanished, c.losses.nan};
cleanup:
    mixt__free(c.buffer);
    mixt__free(c.results);
    mixt__safetensors_close(c.weights);
    mixt__npy_close(&c.array);
    return status;
}
