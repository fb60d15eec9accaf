/* Every figure of mixt/compare.h on samples from standard input, for compare_stats.py.
 *
 * A line in: CONFIDENCE VALUE LEVEL COUNT NUMBER…; a line out: one JSON object. NaN is printed as null.
 */
#include <mixt/compare.h>

#include <math.h>
#include <stdio.h>

enum { COUNT_MAX = 1000 };

static void print(const char *name, double value, const char *end)
{
    if (isnan(value))
        printf("\"%s\": null%s", name, end);
    else
        printf("\"%s\": %.17g%s", name, value, end);
}

static void print_p(const double *x, const mixt_stats_summary *s, double value)
{
    static const char *const names[2][3] = {{"t_cdf", "t_above", "t_both"}, {"flip_below", "flip_above", "flip_both"}};
    for (int side = 0; side < 3; side++) {
        print(names[0][side], mixt_stats_t_p(s, value, (mixt_stats_side)side), ", ");
        print(names[1][side], mixt_stats_flip_p(x, s->count, value, (mixt_stats_side)side, 0), ", ");
    }
}

static void print_sample(const double *x, int64_t count, double confidence, double value, double level)
{
    mixt_stats_summary s = mixt_stats_summarise(x, count);
    mixt_stats_interval t = mixt_stats_t_interval(&s, confidence), b = {NAN, NAN};
    mixt_stats_bootstrap_options options =
        MIXT_OPTIONS(mixt_stats_bootstrap_options, .confidence = confidence, .draws = 100000);
    (void)mixt_stats_bootstrap(x, count, &options, &b);
    int64_t pairs = mixt_stats_pairs(s.deviation, INFINITY, fabs(value - s.mean) + 0.1, level, 0.9);
    printf("{");
    print("mean", s.mean, ", ");
    print("deviation", s.deviation, ", ");
    print("skewness", s.skewness, ", ");
    print("effect", mixt_stats_effect(&s), ", ");
    print("low", t.low, ", ");
    print("high", t.high, ", ");
    print("bootstrap_low", b.low, ", ");
    print("bootstrap_high", b.high, ", ");
    print_p(x, &s, value);
    print("power", mixt_stats_power(count, s.deviation, value - s.mean, level), ", ");
    print("noncentral", mixt_stats_noncentral_t_cdf(value, (double)count - 0.5, 3 * s.mean), ", ");
    print("sign", mixt_stats_sign_p(count / 2, count / 3), ", ");
    print("normal_at", mixt_stats_normal_at(level), ", ");
    print("t_quantile", mixt_stats_t_quantile(level, (double)count), ", ");
    print("pairs", (double)pairs, "}\n");
}

int main(void)
{
    double confidence, value, level, x[COUNT_MAX];
    long long count;
    while (scanf("%lf %lf %lf %lld", &confidence, &value, &level, &count) == 4 && count > 0 && count <= COUNT_MAX) {
        for (long long i = 0; i < count; i++)
            if (scanf("%lf", &x[i]) != 1)
                return 1;
        print_sample(x, count, confidence, value, level);
    }
    return 0;
}
