/* inputs.json of a run: what is taken has the shape, scales and classes of a data set; packed and unpacked again it is
 * the same; and pictures and arrays become finite samples of it, or are refused. */
#include "fuzz.h"

#include "data/facts.h"
#include "mixt/predict.h"
#include "run/open/inputs.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { ELEMENTS_MAX = 1 << 16, ROWS = 512 };

static const char PICTURE[] = "P6 3 2 255\n0123456789abcdefgh";
static const char ARRAY[] = "\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }"
                            "                                                          \n"
                            "\0\0\x80?\0\0\0@\0\0@@\0\0\x80@\0\0\x80\xbf\0\0\0?\0\0\0\0\0\0\xa0@";

static void check_info(const mixt_data_info *info)
{
    int64_t elements = 1;
    for (int i = 0; i < info->input_rank; i++)
        elements *= info->input_dims[i];
    fuzz_require(info->input_rank >= 1 && elements == info->input_elements && elements >= 1);
    fuzz_require(info->kind && info->path && info->classes >= 0 && info->target_elements >= 1);
    for (int64_t c = 0; c < info->channels; c++)
        fuzz_require(isfinite(info->mean[c]) && isfinite(info->std[c]) && info->std[c] > 0);
    for (int64_t i = 0; info->class_names && i < info->classes; i++)
        fuzz_require(info->class_names[i] != NULL);
}

/** Packed and unpacked, facts say the same again. */
static void check_pack(const mixt_data *data)
{
    mixt_data *again;
    json_t *first = mixt__data_facts_pack(data), *second;
    fuzz_require(first && mixt__data_facts_unpack(first, &again) == MIXT_OK);
    second = mixt__data_facts_pack(again);
    fuzz_require(second && json_equal(first, second));
    mixt_data_close(again);
    json_decref(first);
    json_decref(second);
}

/** A file of a user's beside those facts. */
static void check_sample(const mixt_data *data, const char *name, const void *bytes, size_t size)
{
    static float sample[ELEMENTS_MAX];
    mixt_inputs *inputs;
    if (mixt_data_describe(data)->input_elements > ELEMENTS_MAX)
        return;
    if (!fuzz_taken(mixt_inputs_open(fuzz_file(name, bytes, size), data, &inputs)))
        return;
    fuzz_require(mixt_inputs_count(inputs) >= 1);
    if (fuzz_taken(mixt_inputs_read(inputs, 0, 1, sample)))
        for (int64_t i = 0; i < mixt_data_describe(data)->input_elements; i++)
            fuzz_require(!isnan(sample[i])); // large numbers over a small deviation may be infinite
    mixt_inputs_close(inputs);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    json_t *inputs;
    mixt_data *facts;
    mkdir(fuzz_path("run"), 0700); // may be there
    fuzz_file("run/inputs.json", data, size);
    int64_t places = mixt__run_inputs_positions(fuzz_path("run/model.safetensors"), ROWS);
    fuzz_require(places >= 1 && places <= ROWS);
    if (!fuzz_taken(mixt__run_inputs_read(fuzz_path("run"), &inputs)))
        return;
    fuzz_require(inputs != NULL);
    if (fuzz_taken(mixt__data_facts_unpack(json_object_get(inputs, "data"), &facts))) {
        check_info(mixt_data_describe(facts));
        check_pack(facts);
        check_sample(facts, "one.ppm", PICTURE, sizeof PICTURE - 1);
        check_sample(facts, "two.npy", ARRAY, sizeof ARRAY - 1);
        mixt_data_close(facts);
    }
    json_decref(inputs);
}
