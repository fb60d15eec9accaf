/* Parallel text: what the reader of pairs, the drawn pairs and the vocabulary of a set share. */
#ifndef MIXT_DATA_PARALLEL_H
#define MIXT_DATA_PARALLEL_H

#include "data/data.h"
#include "data/text/tokenizer.h"

enum { MIXT_SIDES = 2 }; // source and target

/** Sentences in two languages, as many of each. */
typedef struct mixt__pairs {
    mixt__bytes text[MIXT_SIDES]; // owned; of a single file the first only
    mixt__span *line[MIXT_SIDES]; // (count) without their ends
    int64_t count;
} mixt__pairs;

void mixt__pairs_free(mixt__pairs *pairs);
/** Room for the lines of texts that are there; false: no memory. */
bool mixt__pairs_room(mixt__pairs *pairs, int64_t count);

/** The pairs of the part's own files, or of the file that it has a share in.
 *  @param shared set where it is a share: the training file, or the only one */
mixt_status mixt__pairs_read(mixt_data *data, mixt__part part, mixt__pairs *pairs, bool *shared);

/** Whether a part has files of its own, so that it takes no share of the training file. */
mixt_status mixt__pairs_have_files(mixt_data *data, mixt__part part, bool *have);

/** Sums of numbers in words, English and German, a function of seed and part. */
mixt_status mixt__pairs_draw(mixt_data *data, mixt__part part, mixt__pairs *pairs);

/** English sums alone, a line each: whole lines, until there are at least so many bytes. A function of the seed. */
mixt_status mixt__sums_write(uint64_t seed, int64_t least, mixt__bytes *text);

/** The tokenizer of a set: of options.vocab; without one its vocabulary is learned from the training part, once, kept
 *  in the cache folder and from then on options.vocab. */
mixt_status mixt__pairs_tokenizer(mixt_data *data, mixt_tokenizer **tokenizer);

#endif
