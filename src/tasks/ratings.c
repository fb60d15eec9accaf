/* Items ranked by what a user would think of them.
 *
 * Whatever is to be predicted is gathered into batches of pairs, so that ranking costs passes over full batches.
 */
#include "mixt/tasks/ratings.h"

#include "api/api.h"
#include "base/options.h"
#include "base/rng.h"
#include "data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 8192, OTHERS_MAX = 1 << 20, STREAM_OTHERS = 0x72616e6b };

/** All ratings of a set, by user. */
typedef struct by_user {
    int64_t *begin; // (users + 1)
    int32_t *item;  // of each user, in ascending order
    float *rating;  // beside
    int64_t users, items, count;
} by_user;

static void free_lists(by_user *l)
{
    mixt__free(l->begin);
    mixt__free(l->item);
    mixt__free(l->rating);
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to rank items");
}

/** A program's own arrays are ids and ratings alone: features of any other pair are not known. */
static mixt_status check_data(const mixt_data *data)
{
    const mixt_data_info *info = mixt_data_describe(data);
    bool whole = info->array_count == 3 || (info->array_count && data->kind == &mixt__data_ratings);
    if (whole && !strcmp(info->arrays[0].name, "user") && !strcmp(info->arrays[1].name, "item") &&
        info->arrays[0].ids && info->arrays[1].ids && info->target == MIXT_TARGET_VALUES)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: these are not ratings of items by users", info->path);
}

typedef struct rated {
    int32_t user, item;
    float rating;
} rated;

static int by_user_and_item(const void *a, const void *b)
{
    const rated *x = a, *y = b;
    return x->user != y->user ? (x->user < y->user ? -1 : 1) : x->item < y->item ? -1 : x->item > y->item;
}

/** Reads a whole set, in pieces. */
static mixt_status read_all(const mixt_data *data, rated *all)
{
    int64_t samples = mixt_data_describe(data)->samples, valid = 0;
    void *input = mixt__alloc(mixt_data_input_bytes(data, PAIRS)), *target = mixt__alloc(PAIRS * sizeof(float));
    mixt_status status = input && target ? MIXT_OK : no_memory();
    for (int64_t first = 0; first < samples && status == MIXT_OK; first += PAIRS) {
        mixt__data_places at = mixt__data_places_of(data, PAIRS, 0, input, target);
        status = mixt__data_read_some(data, first, PAIRS, PAIRS, input, target, &valid);
        for (int64_t i = 0; i < valid && status == MIXT_OK; i++)
            all[first + i] = (rated){((const int32_t *)(void *)at.at[0])[i], ((const int32_t *)(void *)at.at[1])[i],
                                     ((const float *)target)[i]};
    }
    mixt__free(input);
    mixt__free(target);
    return status;
}

static mixt_status make_lists(const mixt_data *data, by_user *l)
{
    const mixt_data_info *info = mixt_data_describe(data);
    *l = (by_user){.users = info->arrays[0].ids, .items = info->arrays[1].ids, .count = info->samples};
    rated *all = mixt__alloc_uninit((size_t)l->count * sizeof *all);
    l->begin = mixt__alloc((size_t)(l->users + 1) * sizeof *l->begin);
    l->item = mixt__alloc_uninit((size_t)l->count * sizeof *l->item);
    l->rating = mixt__alloc_uninit((size_t)l->count * sizeof *l->rating);
    mixt_status status = all && l->begin && l->item && l->rating ? read_all(data, all) : no_memory();
    if (status == MIXT_OK) {
        qsort(all, (size_t)l->count, sizeof *all, by_user_and_item);
        for (int64_t i = 0; i < l->count; i++) {
            l->begin[all[i].user + 1]++;
            l->item[i] = all[i].item;
            l->rating[i] = all[i].rating;
        }
        for (int64_t u = 0; u < l->users; u++)
            l->begin[u + 1] += l->begin[u];
    }
    mixt__free(all);
    return status;
}

/** Whether a user has rated an item. */
static bool has_rated(const by_user *l, int64_t user, int32_t item)
{
    int64_t low = l->begin[user], high = l->begin[user + 1];
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (l->item[middle] == item)
            return true;
        if (l->item[middle] < item)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* ---- predictions of pairs ---- */

typedef struct pairs {
    mixt_trainer *trainer;
    const mixt_data *data; // for the layout of a batch
    char *input;
    float *output;
} pairs;

static mixt_status open_pairs(pairs *p, mixt_trainer *trainer, const mixt_data *data)
{
    int64_t outputs;
    *p = (pairs){.trainer = trainer, .data = data};
    MIXT_TRY(mixt_trainer_outputs(trainer, &outputs));
    if (outputs != 1)
        return mixt__fail(MIXT_ERROR_SHAPE, "a model of ratings has one output, this one %lld", (long long)outputs);
    p->input = mixt__alloc(mixt_data_input_bytes(data, PAIRS));
    p->output = mixt__alloc(PAIRS * sizeof *p->output);
    return p->input && p->output ? MIXT_OK : no_memory();
}

static void close_pairs(pairs *p)
{
    mixt__free(p->input);
    mixt__free(p->output);
}

/** One user and `count` items, up to PAIRS, into p->output. */
static mixt_status predict(const pairs *p, int64_t user, const int32_t *items, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        mixt__data_places at = mixt__data_places_of(p->data, count, i, p->input, p->output);
        mixt__ratings_pair(p->data, (int32_t)user, items[i], at.at);
    }
    return mixt_trainer_predict(p->trainer, p->input, count, p->output);
}

/* ---- the best items ---- */

/** Takes an item into a list of the best; the list is short. */
static void offer(mixt_rated *items, int64_t top, int64_t *found, int64_t item, double rating)
{
    int64_t at = *found;
    if (at == top && !(rating > items[top - 1].rating))
        return;
    if (at == top)
        at--;
    else
        ++*found;
    for (; at > 0 && items[at - 1].rating < rating; at--)
        items[at] = items[at - 1];
    items[at] = (mixt_rated){item, rating};
}

static mixt_status find_top(const pairs *p, const by_user *seen, int64_t user, int64_t top, mixt_rated *items,
                            int64_t *found)
{
    int32_t list[PAIRS];
    for (int64_t next = 0; next < seen->items;) {
        int64_t count = 0;
        for (; next < seen->items && count < PAIRS; next++)
            if (!has_rated(seen, user, (int32_t)next))
                list[count++] = (int32_t)next;
        if (!count)
            break;
        MIXT_TRY(predict(p, user, list, count));
        for (int64_t i = 0; i < count; i++)
            offer(items, top, found, list[i], (double)p->output[i]);
    }
    return MIXT_OK;
}

static mixt_status top_of(mixt_trainer *trainer, const mixt_data *data, int64_t user, int64_t top, mixt_rated *items,
                          int64_t *found)
{
    by_user seen = {0};
    pairs p = {0};
    MIXT_TRY(check_data(data));
    if (user < 0 || user >= mixt_data_describe(data)->arrays[0].ids || top < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "the best %lld items of user %lld: there are %lld users", (long long)top,
                          (long long)user, (long long)mixt_data_describe(data)->arrays[0].ids);
    mixt_status status = make_lists(data, &seen);
    if (status == MIXT_OK)
        status = open_pairs(&p, trainer, data);
    if (status == MIXT_OK)
        status = find_top(&p, &seen, user, top, items, found);
    close_pairs(&p);
    free_lists(&seen);
    return status;
}

mixt_status mixt_ratings_top(mixt_trainer *trainer, const mixt_data *seen, int64_t user, int64_t top, mixt_rated *items,
                             int64_t *found)
{
    MIXT_TRY(mixt__need(found));
    *found = 0;
    MIXT_TRY(mixt__need(items));
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__need_made(seen, "data"));
    return mixt__context_note(trainer->context, top_of(trainer, seen, user, top, items, found));
}

/* ---- ranking ---- */

typedef struct contest {
    const by_user *seen, *held;
    mixt_ranking_options o;
    double liked;   // ratings that count begin here
    int32_t *items; // the one held out, then the others
    int64_t *drawn; // by item: one more than the number of the rating that it was drawn for last
    double hits, gain, among;
} contest;

/** Adds an item that the user has rated nowhere and that is not there yet. */
static int64_t add_other(const contest *c, int64_t user, int64_t number, int32_t item, int64_t count)
{
    if (c->drawn[item] == number + 1 || has_rated(c->seen, user, item) || has_rated(c->held, user, item))
        return count;
    c->drawn[item] = number + 1;
    c->items[count] = item;
    return count + 1;
}

/** Items that the user has rated nowhere, each once; all of them where there are hardly enough. */
static int64_t draw_others(const contest *c, int64_t user, int64_t number)
{
    int64_t count = 1, tries = 4 * c->o.others;
    for (int64_t i = 0; count <= c->o.others && i < tries; i++) {
        uint64_t key = mixt__rng_key(mixt__rng_key(c->o.seed, STREAM_OTHERS, (uint64_t)number), 0, (uint64_t)i);
        count = add_other(c, user, number, (int32_t)(key % (uint64_t)c->seen->items), count);
    }
    for (int64_t item = 0; count <= c->o.others && item < c->seen->items; item++)
        count = add_other(c, user, number, (int32_t)item, count);
    return count;
}

/** Ranks rating `number` of those held out. */
static mixt_status rank_one(contest *c, const pairs *p, int64_t user, int64_t number)
{
    c->items[0] = c->held->item[number];
    int64_t count = draw_others(c, user, number), place = 1;
    c->among += (double)count;
    float own = 0;
    for (int64_t first = 0; first < count; first += PAIRS) {
        int64_t piece = count - first < PAIRS ? count - first : PAIRS;
        MIXT_TRY(predict(p, user, c->items + first, piece));
        if (!first)
            own = p->output[0];
        for (int64_t i = first ? 0 : 1; i < piece; i++)
            place += p->output[i] >= own || isnan(p->output[i]);
    }
    if (place <= c->o.cut) {
        c->hits += 1;
        c->gain += 1 / log2((double)place + 1);
    }
    return MIXT_OK;
}

static mixt_status rank_all(contest *c, const pairs *p, mixt_ranking *r)
{
    for (int64_t user = 0; user < c->held->users; user++)
        for (int64_t i = c->held->begin[user]; i < c->held->begin[user + 1]; i++) {
            if ((double)c->held->rating[i] < c->liked)
                continue;
            MIXT_TRY(rank_one(c, p, user, i));
            r->count++;
        }
    r->hit_rate = r->count ? c->hits / (double)r->count : (double)NAN;
    r->ndcg = r->count ? c->gain / (double)r->count : (double)NAN;
    r->among = r->count ? c->among / (double)r->count : (double)NAN;
    return MIXT_OK;
}

static mixt_status check_ranking(const mixt_data *seen, const mixt_data *held, const mixt_ranking_options *o)
{
    MIXT_TRY(check_data(seen));
    MIXT_TRY(check_data(held));
    const mixt_data_array *a = mixt_data_describe(seen)->arrays, *b = mixt_data_describe(held)->arrays;
    if (a[0].ids != b[0].ids || a[1].ids != b[1].ids)
        return mixt__fail(MIXT_ERROR_DATA, "ratings seen and held out are of other users or items");
    if (o->others < 1 || o->others > OTHERS_MAX || o->cut < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "ranking among %lld others, the first %lld counting",
                          (long long)o->others, (long long)o->cut);
    return MIXT_OK;
}

static mixt_status rank(mixt_trainer *trainer, const mixt_data *seen, const mixt_data *held, mixt_ranking_options o,
                        mixt_ranking *r)
{
    by_user a = {0}, b = {0};
    pairs p = {0};
    MIXT_TRY(check_ranking(seen, held, &o));
    contest c = {.seen = &a, .held = &b, .o = o, .liked = mixt_data_describe(seen)->target_mean};
    c.items = mixt__alloc((size_t)(o.others + 1) * sizeof *c.items);
    c.drawn = mixt__alloc((size_t)mixt_data_describe(seen)->arrays[1].ids * sizeof *c.drawn);
    mixt_status status = c.items && c.drawn ? make_lists(seen, &a) : no_memory();
    if (status == MIXT_OK)
        status = make_lists(held, &b);
    if (status == MIXT_OK)
        status = open_pairs(&p, trainer, seen);
    if (status == MIXT_OK)
        status = rank_all(&c, &p, r);
    mixt__free(c.items);
    mixt__free(c.drawn);
    close_pairs(&p);
    free_lists(&a);
    free_lists(&b);
    return status;
}

mixt_status mixt_ratings_rank(mixt_trainer *trainer, const mixt_data *seen, const mixt_data *held,
                              const mixt_ranking_options *options, mixt_ranking *ranking)
{
    MIXT_TRY(mixt__need(ranking));
    *ranking = (mixt_ranking){.hit_rate = NAN, .ndcg = NAN, .among = NAN};
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__need_made(seen, "data"));
    MIXT_TRY(mixt__need_made(held, "data"));
    mixt_ranking_options own = MIXT_OPTIONS(mixt_ranking_options);
    mixt_status status = mixt__options(mixt_ranking_options, &own, options);
    if (status == MIXT_OK)
        status = rank(trainer, seen, held, own, ranking);
    return mixt__context_note(trainer->context, status);
}
