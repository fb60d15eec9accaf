/* Ratings as a file has them: ratings_read.c. */
#ifndef MIXT_DATA_RATINGS_H
#define MIXT_DATA_RATINGS_H

#include "data/data.h"
#include "data/names.h"

/** A rating a line. Begins as zeros. */
typedef struct mixt__ratings {
    int32_t *user, *item;
    float *value;
    double *time; // NaN: the line does not say
    int64_t count;
    mixt__names users, items;
    bool *trained; // (count) of the training part; NULL: nobody asks
} mixt__ratings;

/** Room for so many; false: memory ends. */
bool mixt__ratings_room(mixt__ratings *ratings, int64_t count);
void mixt__ratings_free(mixt__ratings *ratings);
/** Reads a file. Users and items have the numbers that data->options.like gives their names; ratings of others, of
 * which its model knows nothing, are left out, which is a warning. Else they have numbers in the order of the file. */
mixt_status mixt__ratings_read(mixt_data *data, const char *path, mixt__ratings *ratings);

#endif
