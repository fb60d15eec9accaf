#!/usr/bin/env python3
"""Intervals, p values, effect sizes and power of mixt/compare.h next to SciPy's, on 200 random samples.

    compare_stats.py STATS_PROGRAM [SAMPLES]

STATS_PROGRAM is build/tests/stats. Every figure must be within 1e-6 of SciPy's, absolute or relative; the bootstrap, whose draws
differ, within 0.1 standard errors of the mean, for 8 numbers or more (of fewer there are so few resamples that gaps between them
matter) and up to a confidence of 95%. Status 77 where SciPy is missing.
"""
import json, math, subprocess, sys

try:
    import numpy as np
    from scipy import special, stats
except ImportError:
    print("compare_stats: SciPy is missing: nothing is compared")
    sys.exit(77)


def samples(count):
    rng = np.random.default_rng(20261116)
    for i in range(count):
        n = int(rng.integers(2, 31))
        x = rng.normal(rng.normal(), 10.0 ** rng.uniform(-3, 2), n)
        if i % 4 == 3:
            x = np.exp(rng.normal(0, 1, n))  # skewed
        yield float(rng.uniform(0.5, 0.999)), float(x.mean() + rng.normal() * x.std() / math.sqrt(n)), float(rng.uniform(0.001, 0.4)), x


def expected(confidence, value, level, x):
    n, mean, deviation = len(x), x.mean(), x.std(ddof=1)
    low, high = stats.t.interval(confidence, n - 1, mean, deviation / math.sqrt(n))
    e = {"mean": mean, "deviation": deviation, "skewness": stats.skew(x), "low": low, "high": high}
    h = (n - 1) / 2
    e["effect"] = mean / deviation * (special.gamma(h) / special.gamma(h - 0.5) / math.sqrt(h) if n > 2 else 1)
    for name, side in (("below", "less"), ("above", "greater"), ("both", "two-sided")):
        e["t_" + name] = stats.ttest_1samp(x, value, alternative=side).pvalue
        if n <= 11:
            e["flip_" + name] = stats.permutation_test((x - value,), np.mean, permutation_type="samples", alternative=side,
                                                       n_resamples=math.inf).pvalue
    power = lambda pairs, distance: stats.nct.cdf(stats.t.ppf(level, pairs - 1), pairs - 1, -distance / deviation * math.sqrt(pairs))
    e["power"] = power(n, value - mean)
    e["noncentral"] = stats.nct.cdf(value, n - 0.5, 3 * mean) if abs(3 * mean) < 30 else None
    one, other = n // 2, n // 3
    e["sign"] = stats.binomtest(one, one + other, 0.5, alternative="greater").pvalue if one + other else 1.0
    e["normal_at"], e["t_quantile"] = stats.norm.ppf(level), stats.t.ppf(level, n)
    pairs, distance = 2, abs(value - mean) + 0.1
    while power(pairs, distance) < 0.9 and pairs < 3000:
        pairs += 1
    e["pairs"] = pairs if pairs < 3000 else None
    return e


def main():
    given = list(samples(int(sys.argv[2]) if len(sys.argv) > 2 else 200))
    lines = "\n".join(" ".join(map(repr, [c, v, l])) + f" {len(x)} " + " ".join(repr(float(y)) for y in x) for c, v, l, x in given)
    got = [json.loads(line) for line in subprocess.run([sys.argv[1]], input=lines, text=True, check=True, capture_output=True).stdout.splitlines()]
    assert len(got) == len(given), f"{len(got)} answers to {len(given)} samples"
    worst, compared, bad = {}, {}, 0
    for (confidence, value, level, x), g in zip(given, got):
        for name, want in expected(confidence, value, level, x).items():
            if want is None or not math.isfinite(want):
                continue
            off = abs(g[name] - want) / max(1, abs(want)) if g[name] is not None else math.inf
            worst[name], compared[name] = max(worst.get(name, 0), off), compared.get(name, 0) + 1
            if off > 1e-6:
                bad += 1
                print(f"{name}: {g[name]}, SciPy {want}; n {len(x)}, confidence {confidence}, value {value}, level {level}")
        if len(x) >= 8 and confidence <= 0.95:
            b = stats.bootstrap((x,), np.mean, confidence_level=confidence, n_resamples=100000, method="BCa", random_state=1).confidence_interval
            off = max(abs(g["bootstrap_low"] - b.low), abs(g["bootstrap_high"] - b.high)) / stats.sem(x)
            worst["bootstrap"], compared["bootstrap"] = max(worst.get("bootstrap", 0), off), compared.get("bootstrap", 0) + 1
            bad += off > 0.1
    for name in worst:
        print(f"{name:12} {compared[name]:4} compared, largest difference {worst[name]:.2g}")
    print(f"{bad} of {sum(compared.values())} differ")
    return int(bad > 0)


sys.exit(main())
