/* Logits of each family of decoders from a folder of Hugging Face, next to transformers' (tests/data/families, made by
 * tests/peers/golden_families.py): token by token through the caches, and of pieces of a text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/temp_folder.h"
#include "base/status.h"
#include "mixt/generate.h"
#include "mixt/mixt.h"
#include "store/json.h"
#include "store/safetensors.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TENSORS = 128, TOKENS = 64 };

/** As tests/support/hf_folder.py has it. */
static double fraction(uint64_t i)
{
    uint32_t x = (uint32_t)(i * 2654435761u + 12345);
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return x / 4294967296.0;
}

static int64_t whole(const json_t *list, size_t i)
{
    return json_integer_value(json_array_get(list, i));
}

/** Weights by the formula. */
static void write_weights(const json_t *golden, const char *path)
{
    const json_t *list = json_object_get(golden, "tensors");
    mixt__file_tensor tensors[TENSORS];
    const mixt__text_pair format = {"format", "pt"};
    size_t count = json_array_size(list);
    assert_in_range(count, 1, TENSORS);
    for (size_t n = 0; n < count; n++) {
        const json_t *entry = json_array_get(list, n), *dims = json_array_get(entry, 1);
        mixt__file_tensor *t = &tensors[n];
        *t = (mixt__file_tensor){.dtype = MIXT_DTYPE_FP32, .rank = (int)json_array_size(dims)};
        t->name = json_string_value(json_array_get(entry, 0));
        for (int d = 0; d < t->rank; d++)
            t->dims[d] = whole(dims, (size_t)d);
        int64_t numbers = mixt__file_tensor_count(t->dtype, t->rank, t->dims);
        double middle = json_is_true(json_array_get(entry, 2)) ? 0 : 1;
        float *values = malloc((size_t)numbers * sizeof *values);
        for (int64_t i = 0; i < numbers; i++) {
            double u = fraction((uint64_t)n * 1000003 + (uint64_t)i) - 0.5;
            values[i] = (float)(t->rank > 1 ? u * 3.4 / sqrt((double)t->dims[t->rank - 1]) : 0.6 * u + middle);
        }
        t->data = values;
        t->bytes = (size_t)numbers * sizeof *values;
    }
    assert_int_equal(
        mixt__safetensors_write(path, tensors, (int64_t)count, &(const mixt__metadata){.pairs = &format, .count = 1}),
        MIXT_OK);
    for (size_t n = 0; n < count; n++)
        free((void *)tensors[n].data);
}

static void check_row(const char *name, mixt_generator *generator, const json_t *expected, double largest)
{
    const float *logits;
    int64_t vocab;
    assert_int_equal(mixt_generator_logits(generator, &logits, &vocab), MIXT_OK);
    assert_int_equal(vocab, json_array_size(expected));
    for (int64_t i = 0; i < vocab; i++) {
        double want = json_real_value(json_array_get(expected, (size_t)i));
        if (!(fabs((double)logits[i] - want) <= 1e-4 * largest))
            fail_msg("%s: logit %lld is %g, expected %g", name, (long long)i, (double)logits[i], want);
    }
}

static double largest_of(const json_t *rows)
{
    double largest = 0;
    for (size_t t = 0; t < json_array_size(rows); t++)
        for (size_t i = 0; i < json_array_size(json_array_get(rows, t)); i++)
            largest = fmax(largest, fabs(json_real_value(json_array_get(json_array_get(rows, t), i))));
    return largest;
}

static void check_family(const char *name, const json_t *golden)
{
    char folder[4096], path[4200];
    const json_t *rows = json_object_get(golden, "logits"), *list = json_object_get(golden, "tokens");
    double largest = largest_of(rows);
    int32_t tokens[TOKENS];
    size_t count = json_array_size(rows);
    assert_in_range(count, 1, TOKENS);
    for (size_t t = 0; t < count; t++)
        tokens[t] = (int32_t)whole(list, t);
    snprintf(folder, sizeof folder, "%s", temp_path(name));
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(json_dump_file(json_object_get(golden, "config"), path, 0), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    write_weights(golden, path);
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_generator *generator;
    mixt_tokenizer *tokenizer;
    if (mixt_generator_load(context, folder, "final", &generator, &tokenizer) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error(context));
    for (size_t t = 0; t < count; t++) { // texts of all lengths, each read as one piece
        assert_int_equal(mixt_generator_start(generator, tokens, (int64_t)t + 1), MIXT_OK);
        check_row(name, generator, json_array_get(rows, t), largest);
    }
    mixt_close(context);
}

static void logits(void **state)
{
    (void)state;
    const char *data = "tests/data/families";
    DIR *folder = opendir(data);
    assert_non_null(folder);
    int checked = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512], name[256];
        size_t length = strlen(entry->d_name);
        if (length < 6 || strcmp(entry->d_name + length - 5, ".json"))
            continue;
        snprintf(path, sizeof path, "%s/%s", data, entry->d_name);
        snprintf(name, sizeof name, "%.*s", (int)length - 5, entry->d_name);
        json_t *golden = json_load_file(path, 0, NULL);
        assert_non_null(golden);
        check_family(name, golden);
        json_decref(golden);
        checked++;
    }
    closedir(folder);
    assert_in_range(checked, 12, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits)};
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
