"""Holds tables trained by one command each, mixt train data.path=FILE, against scikit-learn: gradient boosting, and logistic or
linear regression, whichever is better. Six tables as people have them (words, gaps, dates), made here: R2 and accuracy may be
2% lower at most, and pandas must read what predict writes. Three of the six tables were not looked at when the settings that mixt chooses were tuned.
Usage: compare_tables.py MIXT. Without numpy, pandas or scikit-learn: SKIPPED, status 77.
"""

import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
except ImportError as missing:
    print("SKIPPED:", missing)
    sys.exit(77)


def incomes(n, rng):
    """As the census set Adult has them."""
    work, school = ["Private", "State-gov", "Self-emp", "Federal"], ["9th", "HS-grad", "Bachelors", "Masters", "Doctorate"]
    t = pd.DataFrame({"age": rng.integers(17, 80, n), "workclass": rng.choice(work, n), "education": rng.choice(school, n),
                      "hours-per-week": rng.integers(10, 70, n), "capital-gain": np.where(rng.random(n) < 0.1, rng.integers(1000, 20000, n), 0)})
    z = (t["age"] - 45) / 12 - ((t["age"] - 50) / 20) ** 2 + t["education"].map(dict(zip(school, [-2, -0.7, 0.8, 1.5, 2.2])))
    z = z + (t["hours-per-week"] - 40) / 12 + t["capital-gain"] / 5000 + t["workclass"].map(dict(zip(work, [0, 0.2, 0.5, 1])))
    t["income"] = np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 * z)), ">50K", "<=50K")
    t.loc[rng.random(n) < 0.05, "workclass"] = "?"
    return t, "income"


def houses(n, rng):
    quality, towns = ["Po", "Fa", "TA", "Gd", "Ex"], ["Town %d" % i for i in range(40)]
    t = pd.DataFrame({"Id": np.arange(1, n + 1), "LotArea": rng.lognormal(9, 0.4, n).astype(int), "GrLivArea": rng.integers(400, 3500, n),
                      "OverallQual": rng.integers(1, 11, n), "KitchenQual": rng.choice(quality, n), "Neighborhood": rng.choice(towns, n),
                      "Sold": pd.to_datetime("2006-01-01") + pd.to_timedelta(rng.integers(0, 1800, n), "D"),
                      "GarageArea": rng.integers(0, 900, n).astype(float)})
    p = 20000 + 60 * t["GrLivArea"] + 9000 * t["OverallQual"] + 1.5 * t["LotArea"] + 40 * t["GarageArea"]
    p = p + t["KitchenQual"].map(dict(zip(quality, [-12000, -6000, 0, 9000, 25000])))
    p = p + t["Neighborhood"].map({town: 1500 * ((i * 17) % 40 - 20) for i, town in enumerate(towns)})
    p = p + 8 * (t["Sold"] - pd.Timestamp("2006-01-01")).dt.days + rng.normal(0, 12000, n)
    t.loc[rng.random(n) < 0.06, "GarageArea"] = np.nan
    t["SalePrice"] = p.round().astype(int)
    return t, "SalePrice"


def passengers(n, rng):
    t = pd.DataFrame({"PassengerId": np.arange(1, n + 1), "Pclass": rng.integers(1, 4, n), "Name": ["Doe, Mr. John %d" % i for i in range(n)],
                      "Sex": rng.choice(["male", "female"], n, p=[0.6, 0.4]), "Age": rng.integers(1, 75, n).astype(float),
                      "Fare": rng.lognormal(3, 0.8, n).round(2), "Embarked": rng.choice(["S", "C", "Q"], n)})
    z = 2.8 - 1.0 * t["Pclass"] - 2.6 * (t["Sex"] == "male") - 0.03 * (t["Age"] - 30) + 1.6
    t["Survived"] = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    t.loc[rng.random(n) < 0.2, "Age"] = np.nan
    return t, "Survived"


# Settings that mixt chooses for tables were tuned on the three above, among others, and not on the three below.


def charges(n, rng):
    t = pd.DataFrame({"age": rng.integers(18, 65, n), "sex": rng.choice(["male", "female"], n), "bmi": rng.normal(30, 6, n).round(2),
                      "children": rng.poisson(1.1, n), "smoker": rng.choice(["yes", "no"], n, p=[0.2, 0.8]),
                      "region": rng.choice(["southwest", "southeast", "northwest", "northeast"], n)})
    smokes = (t["smoker"] == "yes") * 1.0
    p = 3.2 * t["age"] ** 2 + 450 * t["children"] + smokes * (12000 + 900 * (t["bmi"] - 25) + 9000 * (t["bmi"] > 30))
    t["charges"] = (p + rng.gamma(1.5, 1800, n)).round(2)
    return t, "charges"


def mushrooms(n, rng):
    t = pd.DataFrame({name: rng.choice(list(letters), n) for name, letters in (
        ("cap-shape", "bcxfks"), ("cap-colour", "nbcgrpuewy"), ("odour", "alcyfmnps"), ("gill-size", "bn"), ("ring", "cefln"), ("habitat", "glmpuwd"))})
    bad = t["odour"].isin(list("cyfps")) | ((t["odour"] == "n") & t["cap-colour"].isin(list("gw")) & (t["gill-size"] == "n"))
    bad = bad | ((t["habitat"] == "d") & (t["ring"] == "e"))
    t.insert(0, "class", np.where(bad ^ (rng.random(n) < 0.03), "p", "e"))
    t.loc[rng.random(n) < 0.1, "ring"] = np.nan
    return t, "class"


def flights(n, rng):
    airports, delays = ["%s%s%s" % tuple(rng.choice(list("ABCDEFGHJKLMNPRSTUVWXYZ"), 3)) for _ in range(120)], rng.normal(0, 9, 120)
    at = rng.integers(0, 120, n)
    t = pd.DataFrame({"Date": pd.to_datetime("2006-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D"), "Origin": np.array(airports)[at],
                      "Carrier": rng.choice(["AA", "DL", "UA", "WN", "B6"], n), "Departure": rng.integers(5, 24, n), "Distance": rng.lognormal(6.5, 0.6, n).round()})
    late = delays[at] + t["Carrier"].map({"AA": 2, "DL": -4, "UA": 5, "WN": 0, "B6": 8}) + 0.12 * (t["Departure"] - 5) ** 2
    t["Delay"] = (late + 8 * np.sin((t["Date"] - pd.Timestamp("2006-01-01")).dt.days / 365 * 2 * np.pi) + rng.normal(0, 12, n)).round(1)
    return t, "Delay"


def best_of_sklearn(train, test, target, classes):
    def inputs(t):
        t = t.drop(columns=[target] + [c for c in t if c in ("Id", "PassengerId", "Name")])
        return t.assign(**{c: (t[c] - pd.Timestamp("2006-01-01")).dt.days for c in t if str(t[c].dtype).startswith("datetime")})
    x, xt = inputs(train), inputs(test)
    words = [c for c in x if not pd.api.types.is_numeric_dtype(x[c])]
    numbers = [c for c in x if c not in words]
    linear = make_column_transformer((make_pipeline(SimpleImputer(), StandardScaler()), numbers), (OneHotEncoder(handle_unknown="ignore"), words))
    x2, xt2 = x.copy(), xt.copy()
    for c in words:
        x2[c] = x2[c].astype("category")
        xt2[c] = pd.Categorical(xt2[c], categories=x2[c].cat.categories)
    trees = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    scores = [trees(categorical_features=[c in words for c in x], random_state=0).fit(x2, train[target]).score(xt2, test[target]),
              make_pipeline(linear, LogisticRegression(max_iter=2000) if classes else LinearRegression()).fit(x, train[target]).score(xt, test[target])]
    return max(scores), ("boosting", "linear")[int(np.argmax(scores))]


def main():
    mixt, failures = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, make, rows, classes in (("incomes", incomes, 6000, True), ("houses", houses, 1500, False), ("passengers", passengers, 900, True),
                                          ("charges", charges, 1300, False), ("mushrooms", mushrooms, 3000, True), ("flights", flights, 8000, False)):
            table, target = make(rows + 3000, np.random.default_rng(7))
            train, test = table[:rows], table[rows:]
            train.to_csv(name + ".csv", index=False)
            test.to_csv("new.csv", index=False)
            subprocess.run([mixt, "train", "data.path=%s.csv" % name, "data.labels=" + target, "out=" + name, "threads=2", "-q"], check=True)
            subprocess.run([mixt, "predict", name, "new.csv", "--out", name + "-out.csv"], check=True, stdout=subprocess.DEVNULL)
            made = pd.read_csv(name + "-out.csv")
            assert list(made.columns)[:len(test.columns)] == list(test.columns) and len(made) == len(test), made.columns
            y = made[target]
            ours = (made["prediction"] == y).mean() if classes else 1 - ((made["prediction"] - y) ** 2).sum() / ((y - y.mean()) ** 2).sum()
            best, which = best_of_sklearn(train, test, target, classes)
            good = ours >= 0.98 * best
            failures += not good
            print("%-10s %s: mixt %.4f, scikit-learn %.4f (%s)%s" % (name, "accuracy" if classes else "R2", ours, best, which, "" if good else "  TOO LOW"))
    return failures > 0


sys.exit(main())
