/* Which pictures and captions belong together? Models of both are asked. */
#ifndef MIXT_TASKS_PAIRS_H
#define MIXT_TASKS_PAIRS_H

#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MIXT_RECALL_CUTS = 2 }; /**< the first, and the first five */

/** How often the right one is among the first found. */
typedef struct mixt_recall {
    int64_t pictures, captions;              /**< held against each other; equal captions are one */
    double captions_found[MIXT_RECALL_CUTS]; /**< share of pictures whose caption is the first, among the first five */
    double pictures_found[MIXT_RECALL_CUTS]; /**< share of captions one of whose pictures is */
} mixt_recall;

/**
 * Holds every picture of a set against every caption of it, both ways. Of equal cosines the wrong ones come first.
 * @param trainer compiled, of a model with inputs "picture" and "caption" that returns two vectors side by side, as the
 * zoo's `pair` does.
 * @param data pictures with captions.
 * @param recall receives it.
 */
MIXT_API mixt_status mixt_pairs_recall(mixt_trainer *trainer, const mixt_data *data, mixt_recall *recall);

/** A caption and how close it is to a picture. */
typedef struct mixt_match {
    int64_t caption; /**< its number: names of the data's array "target" say it in words */
    double cosine;   /**< -1 to 1 */
} mixt_match;

/**
 * The captions of a set that are closest to some of its pictures.
 * @param trainer as of mixt_pairs_recall.
 * @param data whose captions are looked at.
 * @param first the first picture, from 0.
 * @param count how many pictures.
 * @param top captions to find for each, at least 1.
 * @param matches room for count × top of them, the closest first.
 * @param found set to how many there are for each: fewer than `top` where the set has fewer captions.
 */
MIXT_API mixt_status mixt_pairs_best(mixt_trainer *trainer, const mixt_data *data, int64_t first, int64_t count,
                                     int64_t top, mixt_match *matches, int64_t *found);

#ifdef __cplusplus
}
#endif
#endif
