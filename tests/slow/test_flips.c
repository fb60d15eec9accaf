/* slow_flips COUNT SEED FOLDER [key=value …]: flips COUNT random bits, of any part of the state, in live runs of six
 * models; each must be found at the next update, named, and the run end with the bits of one without. With
 * device=cuda on a GPU; under mpirun with that many ranks, on one of them in turn. Prints a line a model. */
#include "../support/flips.h"

#include <stdlib.h>

static int rank_of(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    return rank ? atoi(rank) : 0;
}

/** Settings with as many updates as flips need. @param steps room for two texts */
static void settings_of(int count, char steps[2][60], const char *const *more, const char *settings[24])
{
    int used = 0;
    snprintf(steps[0], sizeof steps[0], "train.steps=%d", 90 + 6 * count);
    snprintf(steps[1], sizeof steps[1], "train.validate_every=%d", 90 + 6 * count);
    settings[used++] = steps[0];
    settings[used++] = steps[1];
    for (int i = 0; more[i] && used < 23; i++)
        settings[used++] = more[i];
    settings[used] = NULL;
}

static flips flips_of(int count, uint64_t seed)
{
    flips f = {.rng = mixt__rng_start(mixt__rng_key(seed, 77, (uint64_t)rank_of())), .wanted = count};
    f.print = getenv("FLIPS_PRINT") != NULL;
    return f;
}

static void tell(const flip_model *m, const flips *f, const char *end)
{
    printf("%-8s %d flips: %d found and named, %d later than the next update, %d wrong; %s\n", m->name, f->made,
           f->found, f->late, f->wrong, end);
}

/** One run with a share of the flips. @return whether all was as it must be */
static bool try_model(const flip_model *m, int count, uint64_t seed, const char *folder, const char *const *more,
                      flips *all)
{
    char plain[500], disturbed[500], a[600], b[600], steps[2][60];
    const char *settings[24];
    flips f = flips_of(count, seed);
    settings_of(count, steps, more, settings);
    snprintf(plain, sizeof plain, "%s/%s-plain", folder, m->name);
    snprintf(disturbed, sizeof disturbed, "%s/%s-flips-%llu", folder, m->name, (unsigned long long)seed);
    mixt_status status = flip_train(m, plain, NULL, settings);
    if (status == MIXT_OK)
        status = flip_train(m, disturbed, &f, settings);
    if (status != MIXT_OK)
        printf("%s: %s\n", m->name, mixt_error_text());
    snprintf(a, sizeof a, "%s/model.safetensors", plain);
    snprintf(b, sizeof b, "%s/model.safetensors", disturbed);
    bool same = status == MIXT_OK && flip_same(a, b);
    tell(m, &f, same ? "bits as without" : "bits DIFFER");
    all->made += f.made;
    all->found += f.found;
    all->late += f.late;
    return same && f.found == f.made && !f.wrong && !f.late && f.made == count;
}

/** Of ranks, a process each: one run of one model, with flips on one of the ranks. */
static int try_rank(const char *name, int count, int rank, uint64_t seed, const char *out, const char *const *more)
{
    char steps[2][60];
    const char *settings[24];
    flips f = flips_of(rank_of() == rank ? count : 0, seed);
    settings_of(count, steps, more, settings);
    for (int i = 0; i < FLIP_MODELS; i++)
        if (!strcmp(flip_models[i].name, name)) {
            mixt_status status = flip_train(&flip_models[i], out, &f, settings);
            if (status != MIXT_OK)
                fprintf(stderr, "%s, rank %d: %s\n", name, rank_of(), mixt_error_text());
            if (rank_of() == rank)
                tell(&flip_models[i], &f, "on one of the ranks");
            bool all = rank_of() != rank || (f.found == count && !f.wrong && !f.late);
            return status == MIXT_OK && all ? 0 : 1;
        }
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        printf("usage: %s COUNT SEED FOLDER [key=value …]\n", argv[0]);
        return 2;
    }
    int count = atoi(argv[1]), wrong = 0;
    if (argc > 6 && !strcmp(argv[4], "--rank")) // COUNT SEED OUT --rank RANK MODEL
        return try_rank(argv[6], count, atoi(argv[5]), strtoull(argv[2], NULL, 10), argv[3],
                        (const char *const *)argv + 7);
    flips all = {0};
    for (int i = 0; i < FLIP_MODELS; i++) {
        int share = count * (i + 1) / FLIP_MODELS - count * i / FLIP_MODELS;
        wrong += !try_model(&flip_models[i], share, strtoull(argv[2], NULL, 10) + (uint64_t)i, argv[3],
                            (const char *const *)argv + 4, &all);
    }
    printf("%d of %d found at the next update and named\n", all.found - all.late, all.made);
    return wrong ? 1 : 0;
}
