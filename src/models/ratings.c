/* Ratings of items by users: matrix factorisation with biases, and neural collaborative filtering.
 *
 * Tables follow the policy; what is made from their rows, which is the rating itself, is computed in FP32. What the
 * factors of a batch weigh is added to the loss in training: a penalty of each rating. Biases have none: weight decay,
 * which shrinks every row alike however often it comes up, is what few ratings of a user call for.
 *
 * Features of items weigh something for everybody and something more for each user, and features of users likewise:
 * what is known of an item that hardly anybody has rated is then known of its ratings, too. Features of both meet in a
 * table of all pairs of them.
 */
#include "models/models.h"

#include "mixt/loss.h"

#include <stdio.h>
#include <string.h>

/** A row of a table for each id, in FP32. @param init standard deviation; 0: zeros */
static mixt_value rows_of(mixt_builder *b, const char *name, mixt_value ids, int64_t count, int64_t width, float init)
{
    mixt_value table = mixt_param(b, name, .rank = 2, .dims = {count, width}, .normal = init);
    return mixt_cast(b, mixt_embedding_lookup(b, table, ids), MIXT_DTYPE_FP32);
}

/** The penalty of rows (N, width): the mean over the batch of their squared lengths. */
static void penalise(mixt_builder *b, mixt_value rows)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    if (s->penalty > 0 && mixt_builder_training(b))
        mixt_loss_add(b, mixt_mean(b, mixt_square(b, rows)), s->penalty * (float)mixt_value_dim(b, rows, 1));
}

static void judge(mixt_builder *b, mixt_value rating)
{
    if (mixt_builder_has_loss(b))
        mixt_loss_add(b, mixt_loss_mse(b, rating, mixt_target(b, "rating")), 1);
}

static mixt_value dot(mixt_builder *b, mixt_value x, mixt_value y)
{
    return mixt_sum(b, mixt_mul(b, x, y), .axes = {1}, .axis_count = 1, .keep_dims = true);
}

/* Factors of what features add. A smaller one makes updates smaller and weight decay stronger: what one user thinks of
 * a feature is known less surely than what he thinks of all; and what all share moves with every rating of a batch. */
static const float OF_ONE = 0.3f, OF_ALL = 0.2f, OF_DAY = 0.5f;

/** What the features of one side add, (N, 1): for everybody, and for each of the other side.
 *  @param weights, table names of parameters; ids, count the other side's */
static mixt_value weigh(mixt_builder *b, mixt_value x, const char *weights, const char *table, mixt_value ids,
                        int64_t count)
{
    int64_t width = mixt_value_dim(b, x, 1);
    mixt_value all = mixt_cast(b, mixt_param(b, weights, .rank = 2, .dims = {1, width}), MIXT_DTYPE_FP32);
    mixt_value one = rows_of(b, table, ids, count, width, 0);
    return mixt_add(b, mixt_affine(b, dot(b, x, all), OF_ALL, 0), mixt_affine(b, dot(b, x, one), OF_ONE, 0));
}

/** Adds what features say to a rating (N, 1), where the data has any. */
static mixt_value add_features(mixt_builder *b, mixt_value rating)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value of_user = {0}, of_item = {0};
    if (s->user_features) {
        of_user = mixt_input(b, "user.features");
        rating = mixt_add(b, rating, weigh(b, of_user, "user.weights", "item.appeal", mixt_input(b, "item"), s->items));
    }
    if (s->item_features) {
        of_item = mixt_input(b, "item.features");
        rating = mixt_add(b, rating, weigh(b, of_item, "item.weights", "user.tastes", mixt_input(b, "user"), s->users));
    }
    if (!s->user_features || !s->item_features)
        return rating;
    mixt_value table = mixt_param(b, "features.pairs", .rank = 2, .dims = {s->user_features, s->item_features});
    mixt_value weights = mixt_cast(b, mixt_matmul(b, of_user, table), MIXT_DTYPE_FP32);
    return mixt_add(b, rating, mixt_affine(b, dot(b, of_item, weights), OF_ALL, 0));
}

/** What user and item add by themselves, on the day, and by their features, (N, 1), and the mean of all ratings. */
static mixt_value biases(mixt_builder *b)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value user = rows_of(b, MIXT_RATINGS_BIAS, mixt_input(b, "user"), s->users, 1, 0);
    mixt_value item = rows_of(b, "item.bias", mixt_input(b, "item"), s->items, 1, 0);
    mixt_value rating = mixt_affine(b, mixt_add(b, user, item), 1, s->shift);
    if (s->days) {
        mixt_value day = rows_of(b, "user.days", mixt_input(b, "user.day"), s->days, 1, 0);
        rating = mixt_add(b, rating, mixt_affine(b, day, OF_DAY, 0));
    }
    return add_features(b, rating);
}

mixt_value mixt__model_mf(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    (void)x;
    mixt_value p = rows_of(b, "user.factors", mixt_input(b, "user"), s->users, s->width, 0.1f);
    mixt_value q = rows_of(b, "item.factors", mixt_input(b, "item"), s->items, s->width, 0.1f);
    mixt_value rating = mixt_add(b, dot(b, p, q), biases(b)); // (N, 1)
    judge(b, rating);
    penalise(b, p);
    penalise(b, q);
    return rating;
}

mixt_value mixt__model_ncf(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value user = mixt_input(b, "user"), item = mixt_input(b, "item");
    char name[32];
    (void)x;
    mixt_value p = rows_of(b, "user.factors", user, s->users, s->width, 0.1f);
    mixt_value q = rows_of(b, "item.factors", item, s->items, s->width, 0.1f);
    mixt_value deep[2] = {rows_of(b, "user.features", user, s->users, s->hidden[0] / 2, 0.1f),
                          rows_of(b, "item.features", item, s->items, s->hidden[0] / 2, 0.1f)};
    mixt_value h = mixt_concat(b, deep, 2, 1);
    for (int64_t i = 1; i < s->hidden_count; i++) {
        snprintf(name, sizeof name, "fc%lld", (long long)i);
        h = mixt_relu(b, mixt_linear(b, name, mixt_dropout(b, h, s->dropout), .features = s->hidden[i]));
    }
    mixt_value both[2] = {mixt_mul(b, p, q), mixt_cast(b, h, MIXT_DTYPE_FP32)};
    mixt_value out = mixt_linear(b, "out", mixt_concat(b, both, 2, 1), .features = 1);
    mixt_value rating = mixt_add(b, out, biases(b)); // (N, 1)
    judge(b, rating);
    const mixt_value rows[] = {p, q, deep[0], deep[1]};
    for (int i = 0; i < 4; i++)
        penalise(b, rows[i]);
    return rating;
}

const char *mixt__ratings_rows_of(const char *parameter)
{
    static const struct {
        const char *parameter, *ids;
    } tables[] = {{"user.factors", "user"},  {MIXT_RATINGS_BIAS, "user"}, {"user.tastes", "user"},
                  {"user.features", "user"}, {"user.days", "user.day"},   {"item.factors", "item"},
                  {"item.bias", "item"},     {"item.appeal", "item"},     {"item.features", "item"}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (!strcmp(tables[i].parameter, parameter))
            return tables[i].ids;
    return NULL;
}

mixt_status mixt__ncf_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    (void)data;
    if (s->hidden_count >= 1 && s->hidden[0] % 2 == 0)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "hidden %lld: the first width is shared by user and item and must be even",
                      (long long)s->hidden[0]);
}
