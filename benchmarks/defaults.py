"""Every estimator as it comes beside cross-validated rivals: ``python -m benchmarks.defaults --data FOLDER``.

    python -m benchmarks.defaults --data FOLDER [--tables NAME ...] [--methods NAME ...] [--splits 3]
    python -m benchmarks.defaults --report

FOLDER holds ``manifest.json`` and the tables it names (random splits), and perhaps a folder ``uci`` with tables and
published splits. At most 2,000 training rows, no parameter of ours set, everything chosen from training rows. A row
per table, split and method is appended to ``benchmarks/results/defaults.csv``, and what is there is never run again, so
that an interrupted run goes on where it was. Seconds are those of the processor, of fitting alone; a fit that takes
more than ``--limit`` of them has no score. What meets a time limit because other work shares the machine is not kept.
Where an estimator has chosen a regularization parameter, ``chosen`` are the seconds of a fit at the chosen values: what
choosing costs is the ratio of the two.
"""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

import convexkernels as ck
from benchmarks.tabular.rivals import cross_validated_rbf
from benchmarks.tabular.rows import append, known, measure_or_report, resumable_parser
from benchmarks.tabular.tables import manifests, published_splits
from convexkernels.datasets import load_table
from convexkernels.estimators import ESTIMATORS

RESULTS = Path(__file__).parent / "results" / "defaults.csv"
FIELDS = ["table", "split", "method", "task", "rows", "features", "score", "seconds", "wall", "status", "chosen"]
TRAINING_ROWS, TEST_ROWS = 2000, 5000
# Rows beyond which parameters of the RBF methods are found by successive halving: all pairs take ten minutes.
MANY_ROWS = 1000
# Wall seconds to a second of the processor beyond which other work is to blame.
BUSY = 1.5
OURS = ["TessellatedSVC", "TessellatedSVR", "TessellatedRidge"]
OURS += ["MultipleKernelSVC", "MultipleKernelSVR", "MultipleKernelRidge"]
OURS += ["HierarchicalGaussianClassifier", "HierarchicalGaussianRegressor"]
OURS += ["VoronoiSVC", "VoronoiSVR", "VoronoiRidge", "VoronoiQuantile"]
OURS += ["SpectralKernelClassifier", "SpectralKernelRegressor"]
OURS += ["ConcatenatedKernelClassifier", "ConcatenatedKernelRegressor"]
RBF = ["rbf svm", "rbf ridge"]
RIVALS = [*RBF, "random forest", "histogram boosting"]
# Tables whose test rows were seen while defaults were made.
SEEN = {"heart", "ionosphere", "autompg", "servo", "concreteslump", "machine", "housing", "letter", "usps", "mnist"}
# Seconds of a fit from which on somebody notices what choosing costs, and what it may cost, in fits.
NOTICED, BAR = 0.2, 5.0
# What a method may lose to the best RBF method: two points of accuracy, or 0.03 of R^2.
ALLOWED = {"classification": 0.02, "regression": 0.03}


class OutOfTimeError(Exception):
    """The limit of a fit has come."""


def parts(place, entry, split):
    """Training and test rows of a split: the published one, or a random one."""
    X, y, _ = load_table(place / entry["file"], "y")
    rng = np.random.default_rng(split)
    order = rng.permutation(len(X))
    published = published_splits(place, entry)
    if published is not None:
        marks = published[:, split]
        train, test = order[marks[order] == 0], order[marks[order] == 1]
    else:
        count = min(TRAINING_ROWS, int(0.8 * len(X)))
        train, test = order[:count], order[count:]
    train, test = train[:TRAINING_ROWS], test[:TEST_ROWS]
    y = np.asarray(y, dtype=np.float64) if entry["task"] == "regression" else np.asarray(y).astype(str)
    return X[train], y[train], X[test], y[test]


def make(method, task, n, split, rows=0):
    """The estimator of a name for tables of so many features and rows, None where it is not for the task."""
    if method in RBF:
        unsuited = method == "rbf ridge" and task == "classification"
        halving = rows if rows > MANY_ROWS else None
        return None if unsuited else cross_validated_rbf(method.removeprefix("rbf "), task, n, halving)
    if method in RIVALS:
        forest, boosting = (
            (RandomForestClassifier, HistGradientBoostingClassifier)
            if task == "classification"
            else (RandomForestRegressor, HistGradientBoostingRegressor)
        )
        return forest(300, random_state=split) if method == "random forest" else boosting(random_state=split)
    kind = {"labels": "classification", "numbers": "regression"}[ESTIMATORS[method][0]]
    if kind != task:
        return None
    estimator = getattr(ck, method)()
    return estimator.set_params(random_state=split) if "random_state" in estimator.get_params() else estimator


def run(estimator, X, y, T, t, limit):
    """(score, processor seconds, wall seconds, status) of one fit."""

    def stop(*_):
        raise OutOfTimeError

    began, wall, score, status = time.process_time(), time.monotonic(), float("nan"), ""
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X, y)
    except OutOfTimeError:
        status = "no answer in time"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds, wall = time.process_time() - began, time.monotonic() - wall
    if not status:
        score = float(estimator.score(T, t))
        solution = getattr(estimator, "solution_", None)
        status = "" if solution is None else solution.status.name
    return score, seconds, wall, status


def seconds_at_chosen(estimator, X, y, limit):
    """Processor seconds of a fit at the values that the estimator has chosen, None where it chooses none."""
    names = {"C", "epsilon", "kernels", "lam", "loss", "mu"} & set(estimator.get_params())
    given = {name: getattr(estimator, f"{name}_") for name in sorted(names) if hasattr(estimator, f"{name}_")}
    if not given or getattr(estimator, "selection_", None) is None:
        return None
    return run(clone(estimator).set_params(**given), X, y, X[:2], y[:2], limit)[1]


def measure(args):
    """Run what is missing, small tables first."""
    ck.warm_up()
    found = manifests(args.data)
    names = args.tables or sorted(
        found, key=lambda name: min(found[name][1]["rows"], 2500) * found[name][1]["features"]
    )
    done = {(row["table"], int(row["split"]), row["method"]) for row in known(args.out)}
    for split in range(args.splits):
        for name in names:
            place, entry = found[name]
            missing = [method for method in args.methods if (name, split, method) not in done]
            missing = [method for method in missing if make(method, entry["task"], 1, 0) is not None]
            if not missing:
                continue
            X, y, T, t = parts(place, entry, split)
            for method in missing:
                estimator = make(method, entry["task"], X.shape[1], split, len(X))
                score, seconds, wall, status = run(estimator, X, y, T, t, args.limit)
                row = {"table": name, "split": split, "method": method, "task": entry["task"], "rows": len(X)}
                row |= {"features": X.shape[1], "score": f"{score:.5f}", "seconds": f"{seconds:.2f}"}
                row |= {"wall": f"{wall:.2f}", "status": status, "chosen": ""}
                if status == "TIME_LIMIT" and wall > BUSY * seconds:
                    print("not kept, the machine is busy:", *row.values(), flush=True)
                    continue
                chosen = seconds_at_chosen(estimator, X, y, args.limit) if seconds <= args.cost_below else None
                row["chosen"] = "" if chosen is None else f"{chosen:.2f}"
                append(args.out, row, FIELDS)
                print(*row.values(), flush=True)


def report(path):
    """Scores, mean ranks, and where an estimator loses to the best RBF method."""
    rows = known(path)
    for task, allowed in ALLOWED.items():
        cells = defaultdict(list)
        for row in rows:
            if row["task"] == task:
                cells[row["table"], row["method"]].append((float(row["score"]), float(row["seconds"]), row["status"]))
        names = sorted({table for table, _ in cells})
        if not names:
            continue
        methods = [
            m for m in dict.fromkeys([*OURS, *(r["method"] for r in rows)]) if any((t, m) in cells for t in names)
        ]
        means = {key: float(np.mean([score for score, _, _ in cell])) for key, cell in cells.items()}
        print(f"\n{task}: {'accuracy' if task == 'classification' else 'R^2'} (seconds)\n")
        print("| table | " + " | ".join(methods) + " |\n|" + "---|" * (len(methods) + 1))
        for name in names:
            print(f"| {name} | " + " | ".join(_cell(cells.get((name, method))) for method in methods) + " |")
        unseen = [name for name in names if name not in SEEN]
        ranks = [_ranks(some, methods, means) for some in (names, unseen)]
        print(f"\nTables seen while defaults were made: {', '.join(sorted(SEEN & set(names))) or 'none'}.\n")
        print(f"| {task} | mean rank, {len(names)} tables | {len(unseen)} unseen | behind the best RBF method ", end="")
        print("| longest fit, s | cost of choosing: median, largest, above 5 | ends |\n|" + "---|" * 7)
        for k, method in enumerate(methods):
            some = [row for row in rows if row["method"] == method and row["task"] == task]
            parts_of_row = [f"{found[k]:.2f}" for found in ranks]
            parts_of_row += [_losses(method, names, means, allowed), _longest(some), _cost(some), _ends(some)]
            print(f"| {method} | " + " | ".join(parts_of_row) + " |")


def _cell(cell):
    """The mean score and the mean seconds."""
    return "" if not cell else f"{np.mean([c[0] for c in cell]):.3f} ({np.mean([c[1] for c in cell]):.1f})"


def _ranks(names, methods, means):
    """Mean ranks on the tables that all methods have."""
    whole = [name for name in names if all((name, method) in means for method in methods)]
    scores = np.array([[means[name, method] for method in methods] for name in whole]).reshape(-1, len(methods))
    order = -np.where(np.isfinite(scores), scores, -math.inf)
    ranks = [(order < order[:, [k]]).sum(1) + 0.5 * ((order == order[:, [k]]).sum(1) + 1) for k in range(len(methods))]
    return [float(r.mean()) if len(r) else math.nan for r in ranks]


def _losses(method, names, means, allowed):
    """The tables where a method is clearly behind the best RBF method."""
    if method in RIVALS:
        return "-"
    compared, lost = 0, []
    for name in names:
        best = max((means[name, rival] for rival in RBF if (name, rival) in means), default=math.nan)
        if (name, method) not in means or math.isnan(best):
            continue
        compared += 1
        if not means[name, method] >= best - allowed:
            lost.append(f"{name}{' [seen]' * (name in SEEN)} ({means[name, method] - best:+.3f})")
    return f"{len(lost)} of {compared}: {', '.join(lost) or 'none'}"


def _longest(rows):
    longest = max(rows, key=lambda row: float(row["seconds"]))
    return f"{longest['seconds']} ({longest['table']})"


def _cost(rows):
    """What choosing costs, beside the fit at the chosen values: the median, and the rest where anybody notices."""
    pairs = [(float(row["seconds"]), float(row["chosen"])) for row in rows if row["chosen"]]
    if not pairs:
        return "-"
    whole, at_chosen = np.array(pairs).T
    ratios = whole / np.maximum(at_chosen, 1e-3)
    noticed = ratios[at_chosen >= NOTICED]
    return f"{np.median(ratios):.1f}, {noticed.max(initial=0.0):.1f}, {(noticed > BAR).sum()} of {len(noticed)}"


def _ends(rows):
    ends = Counter(row["status"] or "ended" for row in rows)
    return ", ".join(f"{number} {end}" for end, number in ends.most_common())


def main(argv=None):
    parser = resumable_parser(__doc__, RESULTS)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--methods", nargs="+", default=[*OURS, *RIVALS], help="names of estimators, or of rivals")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0, help="processor seconds of a fit")
    parser.add_argument("--cost-below", type=float, default=math.inf, help="of longer fits no cost of choosing")
    measure_or_report(parser, argv, measure, report)


if __name__ == "__main__":
    main()
