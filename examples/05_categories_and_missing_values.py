"""Categories and missing values: a table as people have it.

Forms come back with holes, and holes may say something: here people with a high value are less likely to have been
measured. Columns of text become indicators, missing numbers the median beside an indicator, and the kernel weighs these
like any other column. New rows have holes, too; a model that has never seen one needs them filled by somebody.
Needs pandas.

    python examples/05_categories_and_missing_values.py [--quick] [--out figures]
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import convexkernels as ck
from convexkernels.plotting.canvas import color, legend, new_axes


def with_holes(frame, share, rng):
    """The table with this share of the cells of four columns missing, high values twice as often as others."""
    holed = frame.copy()
    for name in ("bmi", "bp", "s3", "s5"):
        high = frame[name] > frame[name].median()
        holed.loc[rng.uniform(size=len(frame)) < share * np.where(high, 4 / 3, 2 / 3), name] = np.nan
    return holed


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two shares instead of six")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    # Diabetes patients once more; sex and an age group as text.
    data = load_diabetes(scaled=False, as_frame=True)
    frame = data.data.assign(
        sex=data.data.sex.map({1.0: "first", 2.0: "second"}),
        group=np.select([data.data.age < 40, data.data.age < 60], ["young", "middle"], "old"),
    ).drop(columns="age")
    train, test, y, t = train_test_split(frame, data.target, random_state=0)

    # Nothing has to be prepared. What became of the columns is kept with the model.
    rng = np.random.default_rng(0)
    model = ck.TessellatedRidge(tol=1e-2, max_time=None).fit(with_holes(train, 0.2, rng), y)
    print("columns of the kernel:", ", ".join(model.columns_.encoded_names))
    new = test.head(2).assign(bmi=[np.nan, 25.0], group=["middle", "never seen"])
    print("two new patients, one without a body mass index, one of a new group:", model.predict(new).round())

    # The price of holes: R^2 on new rows that have holes, too, against the share of cells that are missing. The other
    # way is to learn from complete rows only, and to fill new holes by the medians. Means over several draws of holes.
    shares, draws = ([0.0, 0.3], 2) if options.quick else ([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], 5)
    scores = np.zeros((2, len(shares), draws))
    for k, share in enumerate(shares):
        for draw in range(draws):
            holed, new = with_holes(train, share, rng), with_holes(test, share, rng)
            complete = holed.notna().all(axis=1)
            everything = ck.TessellatedRidge(lam=model.lam_, tol=1e-2).fit(holed, y)
            careful = ck.TessellatedRidge(lam=model.lam_, tol=1e-2).fit(holed[complete], y[complete])
            scores[0, k, draw] = everything.score(new, t)
            scores[1, k, draw] = careful.score(new.fillna(holed[complete].median(numeric_only=True)), t)
        print(
            f"{share:4.0%} missing: R^2 {scores[0, k].mean():.3f} from all {len(holed)} rows, "
            f"{scores[1, k].mean():.3f} from {complete.sum()} complete ones"
        )

    # Dates, and text among numbers, are refused by name and with the remedy, before any work.
    try:
        ck.TessellatedRidge().fit(train.assign(bp=train.bp.astype(object).where(train.bp < 110, "high")), y)
    except ck.InvalidInputError as error:
        print(f"refused: {error}")

    ax = new_axes()
    for k, name in enumerate(("all rows as they are", "complete rows, new holes filled by medians")):
        spread = scores[k].std(axis=1, ddof=1) / np.sqrt(draws)
        ax.errorbar(shares, scores[k].mean(axis=1), spread, fmt=("o-", "s--")[k], color=color(k), capsize=3, label=name)
    ax.set(xlabel="share of cells missing in four columns", ylabel="R² on new rows with holes (bars: standard errors)")
    legend(ax, loc="lower left", bbox_to_anchor=(0.0, 1.01))
    ax.figure.savefig(options.out / "price_of_holes.png", dpi=130)


if __name__ == "__main__":
    main()
