/* Parts of a set (train, val, test), how one file is shared out among them, and shapes written as text. */
#include "data/data.h"

#include <errno.h>
#include <stdlib.h>

const char *const mixt__part_names[MIXT_PART_COUNT] = {"train", "val", "test", "all"};

mixt_status mixt__part_missing(const mixt_data *data)
{
    const char *part = mixt__part_names[data->part];
    if (data->part == MIXT_PART_TRAIN || data->part == MIXT_PART_ALL)
        return mixt__fail(MIXT_ERROR_FILE, "%s:%s: no training file found there", data->kind->name, data->path);
    return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                      "%s:%s: has no %s part: no file of its own, and no held-out share of the training file "
                      "(data.val_fraction, data.test_fraction)",
                      data->kind->name, data->path, part);
}

/** A share of at least one row, so that a small file still has the part that was asked for. */
static int64_t share_rows(double share, int64_t count)
{
    if (share <= 0)
        return 0;
    int64_t rows = (int64_t)(share * (double)count + 0.5);
    return rows > 0 ? rows : 1;
}

mixt_status mixt__shares_of(const mixt_data *data, int64_t count, bool has_val, bool has_test, mixt__shares *shares)
{
    double val = data->options.val, test = data->options.test;
    *shares = (mixt__shares){.train = count};
    if (data->part == MIXT_PART_ALL)
        return MIXT_OK;
    shares->val = has_val ? 0 : share_rows(val, count);
    shares->test = has_test ? 0 : share_rows(test, count);
    shares->train = count - shares->val - shares->test;
    if (shares->train < 1)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s:%s: of %lld samples none is left for training after %lld for val and %lld for test: "
                          "lower data.val_fraction and data.test_fraction",
                          data->kind->name, data->path, (long long)count, (long long)shares->val,
                          (long long)shares->test);
    return MIXT_OK;
}

mixt__part mixt__part_of_row(const mixt__shares *shares, int64_t row)
{
    int64_t count = shares->train + shares->val + shares->test;
    int64_t position = mixt__order_at(mixt__rng_key(0, MIXT_STREAM_PARTS, 0), count, row);
    return position < shares->train                 ? MIXT_PART_TRAIN
           : position < shares->train + shares->val ? MIXT_PART_VAL
                                                    : MIXT_PART_TEST;
}

bool mixt__shape_elements(int rank, const int64_t *dims, int64_t *elements)
{
    int64_t product = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(product, dims[i], &product) || product > INT64_MAX / 16)
            return false;
    *elements = product;
    return true;
}

mixt_status mixt__shape_parse(const char *text, int *rank, int64_t dims[MIXT_MAX_RANK])
{
    const char *at = text;
    *rank = 0;
    for (;;) {
        char *end;
        errno = 0;
        long long dim = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : -1;
        if (dim < 1 || errno || (*end != 'x' && *end != 0))
            return mixt__fail(MIXT_ERROR_CONFIG, "shape '%s': expected whole numbers joined by x, as in 28x28x1", text);
        if (*rank == MIXT_MAX_RANK - 1)
            return mixt__fail(MIXT_ERROR_CONFIG, "shape '%s': more than %d dimensions", text, MIXT_MAX_RANK - 1);
        dims[(*rank)++] = dim;
        if (*end == 0)
            break;
        at = end + 1;
    }
    int64_t elements;
    if (!mixt__shape_elements(*rank, dims, &elements))
        return mixt__fail(MIXT_ERROR_CONFIG, "shape '%s': too many elements", text);
    return MIXT_OK;
}
