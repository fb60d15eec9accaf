/* CIFAR: a folder whose record file repeats the input to a whole number of records, or is the input itself. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIXELS = 3 * 32 * 32, RECORDS_MAX = 3 };

/** Records of the input over and over; their labels are its first bytes, mostly in range. */
static const char *write_records(const char *name, const uint8_t *data, size_t size, size_t label_bytes)
{
    static uint8_t file[RECORDS_MAX * (PIXELS + 2)];
    size_t record = label_bytes + PIXELS, records = 1 + size % RECORDS_MAX;
    for (size_t i = 0; i < records * record; i++)
        file[i] = size ? data[i % size] : 0;
    for (size_t i = 0; i < records; i++)
        file[i * record + label_bytes - 1] = size > i && data[i] < 16 ? data[i] : (uint8_t)i;
    return fuzz_file(name, file, records * record);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static const char *const files[] = {"data_batch_1.bin", "data_batch_2.bin", "train.bin",
                                        "test.bin",         "batches.meta.txt", "fine_label_names.txt"};
    char spec[700];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(fuzz_path(files[i]));
    snprintf(spec, sizeof spec, "cifar:%s", fuzz_path(""));
    bool large = size % 2;
    write_records(large ? "train.bin" : "data_batch_1.bin", data, size, large ? 2 : 1);
    fuzz_file(large ? "fine_label_names.txt" : "batches.meta.txt", data, size);
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = "all"));
    fuzz_file(large ? "test.bin" : "data_batch_2.bin", data, size);
    fuzz_data_set(spec, MIXT_OPTIONS(mixt_data_options, .split = large ? "test" : "train"));
}
