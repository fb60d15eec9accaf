/* Which items would a user like, and how well are items ranked? Models of ratings are asked. */
#ifndef MIXT_TASKS_RATINGS_H
#define MIXT_TASKS_RATINGS_H

#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An item and what a user would think of it. */
typedef struct mixt_rated {
    int64_t item;  /**< its number; names of the data's array "item" say what it is called */
    double rating; /**< as predicted */
} mixt_rated;

/**
 * The items that a user would like most, of those that he has not rated.
 * @param trainer compiled, of a model with inputs "user" and "item" and one output.
 * @param seen ratings that are known; also says how many items there are.
 * @param user from 0.
 * @param top how many items to find, at least 1.
 * @param items room for `top` of them, best first; of equal ratings the lower number.
 * @param found set to how many there are: fewer than `top` where the user has rated nearly all.
 */
MIXT_API mixt_status mixt_ratings_top(mixt_trainer *trainer, const mixt_data *seen, int64_t user, int64_t top,
                                      mixt_rated *items, int64_t *found);

typedef struct mixt_ranking_options {
    size_t struct_size;
    int64_t others; /**< items that each one held out is ranked with; default 99 */
    int64_t cut;    /**< places that count; default 10 */
    uint64_t seed;  /**< of which items those are; default 0 */
} mixt_ranking_options;
MIXT_API void mixt_ranking_options_default(mixt_ranking_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_ranking_options .struct_size = sizeof(mixt_ranking_options), .others = 99, .cut = 10

/** How well items are ranked. */
typedef struct mixt_ranking {
    int64_t count;   /**< ratings held out that were ranked */
    double hit_rate; /**< share of them whose item came among the first `cut`; NaN where there is none */
    double ndcg;     /**< the mean of 1 / log2(place + 1), 0 behind the cut */
    double among;    /**< items that each was ranked among, itself counted: others + 1, or on average fewer where users
                          have rated almost all items */
} mixt_ranking;

/**
 * Ranks each item that was held out and liked (rated at least as the mean of all) among others that its user has rated
 * nowhere, drawn at random: the protocol of He et al. (2017). Of equal ratings those of the others come first.
 * @param trainer as of mixt_ratings_top.
 * @param seen ratings that it was trained on.
 * @param held ratings that it was not; of the same users and items.
 * @param options NULL: all defaults.
 */
MIXT_API mixt_status mixt_ratings_rank(mixt_trainer *trainer, const mixt_data *seen, const mixt_data *held,
                                       const mixt_ranking_options *options, mixt_ranking *ranking);

#ifdef __cplusplus
}
#endif
#endif
