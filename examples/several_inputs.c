/* Several named inputs and a loss of one's own: ratings of films by people, a person and a film at a time.
 *
 * The model asks for its inputs by name, makes the loss from ops (a Huber loss, which mixt does not have) and adds a
 * second one to it: factors are to stay small. The data are a program's own arrays.
 */
#include <mixt/mixt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PEOPLE = 40, FILMS = 30, RATINGS = 1200, FACTORS = 4 };

/** Squares where the error is small, straight lines beyond: e·(2·|error| - e) with e = min(|error|, 1). */
static mixt_value huber(mixt_builder *b, mixt_value output, mixt_value wanted)
{
    mixt_value error = mixt_sub(b, output, wanted);
    mixt_value size = mixt_maximum(b, error, mixt_neg(b, error));
    mixt_value near = mixt_neg(b, mixt_relu(b, mixt_affine(b, mixt_neg(b, size), 1, 1))); // -max(1 - size, 0)
    near = mixt_affine(b, near, 1, 1);                                                    // min(size, 1)
    return mixt_loss_mean(b, mixt_mul(b, near, mixt_sub(b, mixt_affine(b, size, 2, 0), near)), wanted);
}

static mixt_value taste(mixt_builder *b, mixt_value x)
{
    mixt_value person = mixt_input(b, "person"), film = mixt_input(b, "film"), wanted = mixt_target(b, "rating");
    mixt_value p = mixt_embedding(b, "person", person, .count = PEOPLE, .features = FACTORS, .init = 0.3f);
    mixt_value f = mixt_embedding(b, "film", film, .count = FILMS, .features = FACTORS, .init = 0.3f);
    mixt_value rating = mixt_sum(b, mixt_mul(b, p, f), .axes = {-1}, .axis_count = 1); // (N)
    (void)x;                                                                           // the first input again
    mixt_loss_add(b, huber(b, rating, wanted), 1);
    if (mixt_builder_training(b))
        mixt_loss_add(b, mixt_mean(b, mixt_square(b, p)), 0.001f);
    return rating;
}

static float number(void)
{
    return (float)rand() / (float)RAND_MAX - 0.5f;
}

int main(void)
{
    static int32_t person[RATINGS], film[RATINGS];
    static float rating[RATINGS], p[PEOPLE][2], f[FILMS][2];
    srand(1);
    for (int i = 0; i < PEOPLE * 2; i++)
        p[i / 2][i % 2] = 2 * number();
    for (int i = 0; i < FILMS * 2; i++)
        f[i / 2][i % 2] = 2 * number();
    for (int i = 0; i < RATINGS; i++) {
        person[i] = rand() % PEOPLE;
        film[i] = rand() % FILMS;
        rating[i] = p[person[i]][0] * f[film[i]][0] + p[person[i]][1] * f[film[i]][1];
    }
    const mixt_data_column columns[] = {
        {.name = "person", .dtype = MIXT_DTYPE_INT32, .values = person, .ids = PEOPLE},
        {.name = "film", .dtype = MIXT_DTYPE_INT32, .values = film, .ids = FILMS},
        {.name = "rating", .target = true, .values = rating},
    };
    mixt_data_options train = MIXT_OPTIONS(mixt_data_options, .split = "train"),
                      val = MIXT_OPTIONS(mixt_data_options, .split = "val");
    mixt_data *seen = NULL, *unseen = NULL;
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_model *model = mixt_model_new(context, taste, MIXT_LOSS_CUSTOM);
    mixt_trainer *t = mixt_trainer_new(model, .precision = "bf16", .batch = 60, .lr = 0.02f);
    mixt_evaluation before, after;
    mixt_status status = mixt_data_from_columns("ratings", columns, 3, RATINGS, &train, &seen);
    if (status == MIXT_OK)
        status = mixt_data_from_columns("ratings", columns, 3, RATINGS, &val, &unseen);
    if (status == MIXT_OK)
        status = mixt_trainer_evaluate(t, unseen, &before);
    for (int step = 0; step < 600 && status == MIXT_OK; step++)
        status = mixt_trainer_step(t, seen, NULL);
    if (status == MIXT_OK)
        status = mixt_trainer_evaluate(t, unseen, &after);
    if (status != MIXT_OK) {
        fprintf(stderr, "several_inputs: %s\n", mixt_error_text());
    } else {
        printf("Huber loss on %lld ratings not seen before: %.4f at first, %.4f after 600 steps\n",
               (long long)after.count, before.loss, after.loss);
        status = after.loss < 0.25 * before.loss ? MIXT_OK : MIXT_ERROR_INTERNAL;
    }
    mixt_close(context);
    mixt_data_close(seen);
    mixt_data_close(unseen);
    return status == MIXT_OK ? 0 : 1;
}
