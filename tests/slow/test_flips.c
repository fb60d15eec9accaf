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

/** One run with a share of the flips. @return whether all was as it must be */
static bool try_model(const flip_model *m, int count, uint64_t seed, const char *folder, const char *const *more,
                      flips *all)
{
    char plain[500], disturbed[500], a[600], b[600];
    flips f = {.rng = mixt__rng_start(mixt__rng_key(seed, 77, (uint64_t)rank_of())), .wanted = count};
    f.print = getenv("FLIPS_PRINT") != NULL;
    snprintf(plain, sizeof plain, "%s/%s-plain", folder, m->name);
    snprintf(disturbed, sizeof disturbed, "%s/%s-flips-%llu", folder, m->name, (unsigned long long)seed);
    mixt_status status = flip_train(m, plain, NULL, more);
    if (status == MIXT_OK)
        status = flip_train(m, disturbed, &f, more);
    if (status != MIXT_OK)
        printf("%s: %s\n", m->name, mixt_error_text());
    snprintf(a, sizeof a, "%s/model.safetensors", plain);
    snprintf(b, sizeof b, "%s/model.safetensors", disturbed);
    bool same = status == MIXT_OK && flip_same(a, b);
    printf("%-8s %d flips: %d found and named, %d later than the next update, %d wrong; bits %s\n", m->name, f.made,
           f.found, f.late, f.wrong, same ? "as without" : "DIFFER");
    all->made += f.made;
    all->found += f.found;
    all->late += f.late;
    return same && f.found == f.made && !f.wrong && !f.late && f.made == count;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        printf("usage: %s COUNT SEED FOLDER [key=value …]\n", argv[0]);
        return 2;
    }
    int count = atoi(argv[1]), wrong = 0;
    flips all = {0};
    for (int i = 0; i < FLIP_MODELS; i++) {
        int share = count * (i + 1) / FLIP_MODELS - count * i / FLIP_MODELS;
        wrong += !try_model(&flip_models[i], share, strtoull(argv[2], NULL, 10) + (uint64_t)i, argv[3],
                            (const char *const *)argv + 4, &all);
    }
    printf("%d of %d found at the next update and named\n", all.found - all.late, all.made);
    return wrong ? 1 : 0;
}
