/* Knowing a data set again: a resumed run must go on with what it was begun with. */
#include "data/data.h"

#include "store/checksum.h"

enum {
    WHOLE = 256 << 20, // bytes of a block up to which all of it is read
    PIECE = 1 << 20,   // of what is spread over a larger one
    SAMPLES = 24,      // of a kind that must read files for each
};

static void add(uint64_t *sum, const void *block, size_t bytes)
{
    uint64_t both[2] = {*sum, mixt__checksum(block, bytes)};
    *sum = mixt__checksum(both, sizeof both);
}

static void add_block(uint64_t *sum, const char *block, size_t bytes)
{
    if (bytes <= WHOLE) {
        add(sum, block, bytes);
        return;
    }
    enum { LAST = WHOLE / PIECE - 1 };
    for (int i = 0; i <= LAST; i++) // from the first bytes to the last
        add(sum, block + (size_t)((double)(bytes - PIECE) * i / LAST), PIECE);
}

static bool add_samples(uint64_t *sum, const mixt_data *data)
{
    const mixt_data_info *info = &data->info;
    size_t input = mixt_data_input_bytes(data, 1), target = mixt_data_target_bytes(data, 1);
    char *x = mixt__alloc(input), *y = mixt__alloc(target);
    int64_t valid, count = info->samples < SAMPLES ? info->samples : SAMPLES;
    bool good = x && y;
    for (int64_t i = 0; good && i < count; i++) {
        good = mixt_data_read(data, (int64_t)((double)i * (double)info->samples / (double)count), 1, x, y, &valid) ==
               MIXT_OK;
        if (good) {
            add(sum, x, input);
            add(sum, y, target);
        }
    }
    mixt__free(x);
    mixt__free(y);
    return good;
}

uint64_t mixt__data_fingerprint(const mixt_data *data)
{
    uint64_t sum = (uint64_t)data->info.samples;
    const void *block;
    size_t bytes;
    if (!data->kind->raw)
        return add_samples(&sum, data) ? sum : 0;
    for (int i = 0; (block = data->kind->raw(data, i, &bytes)); i++)
        add_block(&sum, block, bytes);
    return sum;
}
