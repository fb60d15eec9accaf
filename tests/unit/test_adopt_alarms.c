/* How often an adoption calls a format unsafe that loses nothing: 200 adoptions of trainings whose losses were
 * recorded, through the code that judges. Both sides of a pair are FP32's own runs of other seeds, so that pairs differ
 * by all that a training scatters by, or by a share of that, as pairs do that share their seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "judge/judge.h"
#include "mixt/compare.h"

#include <math.h>

enum { SEEDS = 16, TRAININGS = 5, ADOPTIONS = 200, SPREADS = 3 };
static const double margin = 0.005;

/** The loss on validation data after 120 updates of 8 samples in FP32, of 16 seeds: trainings of
 * tests/truth/faulty.txt. */
static const struct {
    const char *name;
    double loss[SEEDS];
} recorded[TRAININGS] = {{"clusters-mlp",
                          {0.9280, 0.8559, 0.9974, 0.9574, 0.9484, 0.9692, 1.0375, 0.8872, 0.8935, 0.8889, 0.7070,
                           0.8963, 0.8298, 0.7970, 0.9307, 0.7020}},
                         {"names-rnn",
                          {2.7452, 2.7599, 2.7563, 2.7155, 2.7339, 2.7479, 2.7649, 2.7461, 2.7606, 2.7680, 2.7883,
                           2.7906, 2.7510, 2.7360, 2.7574, 2.7812}},
                         {"prices-mlp",
                          {0.3275, 0.3294, 0.3058, 0.3284, 0.3281, 0.3061, 0.3479, 0.3501, 0.3246, 0.3297, 0.3026,
                           0.3007, 0.2951, 0.3360, 0.3579, 0.3384}},
                         {"series-mlp",
                          {0.3154, 0.3424, 0.2578, 0.3254, 0.2930, 0.2962, 0.2832, 0.3172, 0.3062, 0.3339, 0.3159,
                           0.3397, 0.3317, 0.2976, 0.3191, 0.2816}},
                         {"drawn-gpt",
                          {1.9992, 1.9638, 1.9146, 1.9613, 2.2019, 2.4286, 1.9366, 1.8713, 1.9347, 1.9757, 2.5397,
                           2.2283, 2.1138, 2.6164, 2.6409, 2.6126}}};

/** The deviation of a pair's difference: of two seeds. */
static double spread_of(const double *loss)
{
    mixt_stats_summary s = mixt_stats_summarise(loss, SEEDS);
    return sqrt(2) * s.deviation / s.mean;
}

static double truth; // by how much B is worse in the mean

/** By how much B is worse than A in a pair; `share` of what two seeds differ by. */
static double draw(const double *loss, double share, mixt__rng *rng)
{
    int64_t a = (int64_t)mixt__rng_below(rng, SEEDS), b = (int64_t)mixt__rng_below(rng, SEEDS - 1);
    b += b >= a;
    return truth + share * (loss[b] - loss[a]) / loss[a];
}

/** What mixt compare concludes by itself: a pilot, the pairs that it asks for if they are made, and one look. */
static mixt_verdict compare(const double *loss, double share, mixt__rng *rng)
{
    double worse[MIXT_COMPARE_PAIRS_PLANNED];
    mixt_stats_judgement j;
    for (int i = 0; i < MIXT_COMPARE_PAIRS_PLANNED; i++)
        worse[i] = draw(loss, share, rng);
    int64_t planned = mixt_stats_plan(worse, MIXT_STATS_PAIRS_MIN, margin),
            plainly = mixt_stats_plan_inferior(worse, MIXT_STATS_PAIRS_MIN, margin);
    if (planned > MIXT_COMPARE_PAIRS_PLANNED)
        planned = plainly > 0 && plainly <= MIXT_COMPARE_PAIRS_PLANNED ? plainly : 0;
    if (!planned)
        return MIXT_VERDICT_UNDECIDED; // more than are made without being asked for
    assert_int_equal(mixt_stats_judge(worse, planned, margin, NULL, 0, &j), MIXT_OK);
    return mixt__judgement_of(&j, margin, MIXT_UNIT_SHARE).verdict;
}

/** As in prove/adopt_proof.c: what the search has paired, or pairs of whole runs; the format of all layers where that
 * says no. */
static mixt_verdict adopt(const double *loss, double share, bool searched, mixt__rng *rng)
{
    double worse[MIXT_STATS_PAIRS_MIN];
    mixt_judgement j;
    mixt_verdict first;
    for (int i = 0; i < MIXT_STATS_PAIRS_MIN; i++)
        worse[i] = draw(loss, share, rng);
    assert_int_equal(mixt__judge_finalist(worse, MIXT_STATS_PAIRS_MIN, margin, NULL, 0, 1, &j), MIXT_OK);
    first = searched ? j.verdict : compare(loss, share, rng);
    return first == MIXT_VERDICT_NO ? compare(loss, share, rng) : first;
}

static void what_loses_nothing_is_hardly_called_unsafe(void **state)
{
    static const double spreads[SPREADS] = {0, 0.005, 0.0015}; // of pairs; 0: as recorded
    mixt__rng rng = mixt__rng_start(mixt__rng_key(20261120, 1, 1));
    (void)state;
    for (int t = 0; t < TRAININGS; t++)
        for (int s = 0; s < SPREADS; s++) {
            int64_t said[3] = {0, 0, 0};
            double share = spreads[s] > 0 ? spreads[s] / spread_of(recorded[t].loss) : 1;
            for (int i = 0; i < ADOPTIONS; i++)
                said[adopt(recorded[t].loss, share, i & 1, &rng)]++;
            print_message("%-14s pairs scatter by %.2f%%: safe %lld, undecided %lld, not safe %lld of %d\n",
                          recorded[t].name, 100 * share * spread_of(recorded[t].loss),
                          (long long)said[MIXT_VERDICT_YES], (long long)said[MIXT_VERDICT_UNDECIDED],
                          (long long)said[MIXT_VERDICT_NO], ADOPTIONS);
            assert_true(said[MIXT_VERDICT_NO] <= ADOPTIONS / 20);
            assert_true(s < SPREADS - 1 || said[MIXT_VERDICT_YES] >= ADOPTIONS * 7 / 10); // it can say yes
        }
}

/** The same code says no where a format loses four times what it may. */
static void what_loses_is_called_unsafe(void **state)
{
    mixt__rng rng = mixt__rng_start(mixt__rng_key(20261121, 1, 1));
    (void)state;
    truth = 4 * margin;
    for (int t = 0; t < TRAININGS; t++) {
        int64_t no = 0;
        for (int i = 0; i < ADOPTIONS; i++)
            no += adopt(recorded[t].loss, 0.0015 / spread_of(recorded[t].loss), i & 1, &rng) == MIXT_VERDICT_NO;
        assert_true(no >= ADOPTIONS * 9 / 10);
    }
    truth = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_loses_nothing_is_hardly_called_unsafe),
                                       cmocka_unit_test(what_loses_is_called_unsafe)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
