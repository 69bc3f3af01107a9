"""Table 2 of Li, Liu and Wang (AAAI 2020): five settings beside the paper's columns and a Gaussian SVM.

    python -m benchmarks.spectral.accuracy --data FOLDER --out FOLDER [--sets NAME ...] [--table | --defaults]

Protocol: 80 % of the rows to learn from, 20 % to test on, numeric targets scaled to [0, 100], features standardized or
brought to [-1, 1], by a closed-form risk on rows that are learned from; the machine gets the same. Classes are learned
with the paper's loss, the hinge loss of the margin over all classes, unless ``--loss`` says otherwise. Every setting
has its own (sigma, lam1, lam2) by 5-fold cross-validation on rows that are learned from (3,000 of them, 1,000
features): sigma from 2^-6, 2^-5.5, ..., 2^4.5, of which the three with the least closed-form risks are trained with;
lam1 from three powers of ten (for squared loss six, along the path of exact last solves); lam2 from two. Then it learns
from all of the 80 %, none held out. The paper has 30 splits, batches of 32 (`--batch-size 32`), wider grids of powers
of ten for lam1 and lam2. Results are appended to ``FOLDER/spectral.jsonl``; what is there is not run again. The last
column comes from ``rivals.jsonl`` (`benchmarks/spectral/rivals.py`), with the number of its splits. Paired t-tests say
which settings are not told from the best one, as the paper's underlines do.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import ttest_1samp
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.spectral.rivals import read, score, split, stored
from convexkernels import ConvexKernelsWarning, SpectralKernelClassifier, SpectralKernelRegressor, Training, warm_up
from models.automated_spectral import PAPER, REGRESSION, SETTINGS, lists


def measure(name, setting, parts, seed, options):
    X, y, T, t = parts
    kind = SpectralKernelRegressor if name in REGRESSION else SpectralKernelClassifier
    is_long = len(X) > 10_000
    model = kind(
        setting,
        n_components=options.features,
        max_time=options.time_per_fit,
        training=Training(
            max_epochs=max(1, options.epochs // 2) if is_long else options.epochs,
            batch_size=options.batch_size or (128 if is_long else None),
            validation_fraction=0.0,
        ),
        random_state=seed,
        loss="least_squares" if name in REGRESSION else options.loss,
        **lists(setting, name, len(X)),
    )
    began, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    record = {
        "set": name,
        "split": seed,
        "setting": setting,
        "loss": model.loss,
        "score": score(name, t, model.predict(T)),
    }
    record |= {"batch_size": options.batch_size, "most_epochs": options.epochs, "time_per_fit": options.time_per_fit}
    record |= {"wall_s": round(time.perf_counter() - began, 2), "processor_s": round(time.process_time() - cpu, 2)}
    record |= {"sigma": model.sigma_, "lam1": model.lam1_, "lam2_m": model.lam2_ * len(X)}
    record |= {"epochs": len(model.history_), "cv_score": float(model.selection_.scores.max())}
    return record | {"status": model.solution_.status.name, "features": options.features}


def with_defaults(name, folder, seed):
    """The estimator as it comes, after a StandardScaler."""
    X, y = read(folder, name)
    X, T, y, t = train_test_split(X, y, test_size=0.2, random_state=seed)
    kind = SpectralKernelRegressor if name in REGRESSION else SpectralKernelClassifier
    model = make_pipeline(StandardScaler(), kind(random_state=seed)).fit(X, y)
    return score(name, t, model.predict(T))


def learned_with(options, records):
    """Records of these settings; the oldest ones are of the logistic loss and 30 epochs, without a batch size."""
    records = [r for r in records if r.get("batch_size") == options.batch_size]
    records = [r for r in records if (r["features"], r.get("most_epochs", 30)) == (options.features, options.epochs)]
    records = [r for r in records if r.get("time_per_fit") == options.time_per_fit]
    return [r for r in records if r["set"] in REGRESSION or r.get("loss", "logistic") == options.loss]


def not_worse(name, columns):
    """The best setting, and those whose scores a paired t-test at 5 % does not tell from it (bold and underlined)."""
    means = {s: np.mean(list(c.values())) for s, c in columns.items() if c}
    if not means:
        return []
    best = min(means, key=means.get) if name in REGRESSION else max(means, key=means.get)
    found = [f"{best} is best"]
    for setting in means:
        common = sorted(set(columns[setting]) & set(columns[best]))
        differences = [columns[setting][i] - columns[best][i] for i in common]
        if setting != best and len(common) > 2:
            p = ttest_1samp(differences, 0.0).pvalue if np.any(differences) else 1.0
            found.append(f"{setting} p = {p:.3f}" + ("" if p < 0.05 else ", not worse"))
    return found


def show(folder, sets, options):
    """The table: means over the splits that all settings of a row have; of those the SVM has some (in brackets)."""
    ours, rivals = learned_with(options, stored(folder / "spectral.jsonl")), stored(folder / "rivals.jsonl")
    print("\n| set | " + " | ".join(f"{s} (paper)" for s in SETTINGS) + " | Gaussian SVM | splits |")
    print("|---" * (len(SETTINGS) + 3) + "|")
    for name in sets:
        columns = [{r["split"]: r["score"] for r in ours if (r["set"], r["setting"]) == (name, s)} for s in SETTINGS]
        common = set.intersection(*(set(column) for column in columns if column)) if any(columns) else set()
        means = [f"{np.mean([column[i] for i in common]):.2f}" if column else "-" for column in columns]
        cells = [f"{a} ({b:.2f})" if a != "-" else a for a, b in zip(means, PAPER[name], strict=True)]
        svm = [r["score"] for r in rivals if r["set"] == name and r["split"] in common]
        cells.append(f"{np.mean(svm):.2f} ({len(svm)})" if svm else "-")
        print(f"| {name} | " + " | ".join(cells) + f" | {len(common)} |")
    print("\npaired t-tests on the splits")
    for name in sets:
        columns = {s: {r["split"]: r["score"] for r in ours if (r["set"], r["setting"]) == (name, s)} for s in SETTINGS}
        if found := not_worse(name, columns):
            print(f"{name}: " + "; ".join(found))
    print("\n| set | ASKL | Gaussian SVM | splits |\n|---|---|---|---|")
    for name in sets:
        askl = {r["split"]: r["score"] for r in ours if (r["set"], r["setting"]) == (name, "ASKL")}
        rival = {r["split"]: r["score"] for r in rivals if r["set"] == name}
        both = sorted(set(askl) & set(rival)) or sorted(askl)
        cells = [
            f"{np.mean([c[i] for i in both]):.2f} +- {np.std([c[i] for i in both]):.2f}" if set(both) <= set(c) else "-"
            for c in (askl, rival)
            if both
        ]
        print(f"| {name} | " + " | ".join(cells) + f" | {len(both)} |" if both else f"| {name} | - | - | 0 |")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--sets", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--settings", nargs="+", default=SETTINGS, choices=SETTINGS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument(
        "--loss", default="hinge", choices=["hinge", "logistic", "least_squares"], help="of classification"
    )
    parser.add_argument("--features", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=30, help="half as many beyond 10,000 rows (%(default)s)")
    parser.add_argument("--batch-size", type=int, help="32 in the paper; 64, or 128 beyond 10,000 rows, if not given")
    parser.add_argument("--time-per-fit", type=float, default=None, help="seconds of one fit, selection included")
    parser.add_argument("--defaults", action="store_true", help="estimators as they come, nothing is stored")
    parser.add_argument("--table", action="store_true", help="only print the table of what is stored")
    parser.add_argument("--quick", action="store_true", help="segment alone, one split, 200 features, 3 epochs")
    options = parser.parse_args(argv)
    warm_up()
    if options.quick:
        options.sets, options.splits, options.features, options.epochs = ["segment"], 1, 200, 3
    if options.defaults:
        for name in options.sets:
            found = [with_defaults(name, options.data, seed) for seed in range(options.splits)]
            print(f"{name}: " + ", ".join(f"{value:.2f}" for value in found), flush=True)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "spectral.jsonl"
    warnings.simplefilter("ignore", ConvexKernelsWarning)
    for name in [] if options.table else options.sets:
        done = {(r["split"], r["setting"]) for r in learned_with(options, stored(path)) if r["set"] == name}
        wanted = [(s, w) for s in range(options.splits) for w in options.settings if (s, w) not in done]
        X, y = read(options.data, name) if wanted else (None, None)
        parts, at = None, None
        for seed, setting in wanted:
            if at != seed:
                parts, at = split(name, X, y, seed), seed
            record = measure(name, setting, parts, seed, options)
            with path.open("a") as lines:
                lines.write(json.dumps(record) + "\n")
            print(record, flush=True)
    show(options.out, options.sets, options)


if __name__ == "__main__":
    main()
