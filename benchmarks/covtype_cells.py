"""Seven classes of covtype with a kernel learned on the whole table: the error on a fifth of the rows, time and memory.

    python -m benchmarks.covtype_cells covtype.csv.gz                          n = 10,000 and 50,000
    python -m benchmarks.covtype_cells covtype.csv.gz --rows 464809            four fifths of the table
    python -m benchmarks.covtype_cells covtype.csv.gz --method cells           in cells even where one matrix would do
    python -m benchmarks.covtype_cells covtype.csv.gz --peer                   LightGBM on the same rows, as it is
    python -m benchmarks.covtype_cells covtype.csv.gz --peer-settings 15       LightGBM, the best of so many settings
    python -m benchmarks.covtype_cells covtype.csv.gz --out FILE.csv           where lines are kept; one a fit

The test rows are a random fifth of all 581,012, the same for every number of training rows, and are looked at once,
after the fit; everything is the default of `HierarchicalGaussianClassifier`, but for the number of processes. Processor
seconds are those of this process and its children, wall time grows on a computer with other work. Settings of LightGBM
are drawn from the published space of `benchmarks.tabular`, stop early on a fifth of the training rows or after
`--peer-seconds`, and are judged by their error there; the best one is fitted to all training rows.
"""

import argparse
import csv
import os
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from sklearn.model_selection import train_test_split

from convexkernels import AllRows, HierarchicalGaussianClassifier, TreeSelection, warm_up

RESULTS = Path(__file__).parent / "results" / "covtype_cells.csv"
N_TEST = 116_203


def load(path):
    """Points and classes; the last rows are for testing."""
    values = pd.read_csv(path).to_numpy(dtype=np.float64)
    values = values[np.random.default_rng(0).permutation(len(values))]
    return values[:, :-1], values[:, -1].astype(int)


def busy():
    """Seconds of processor of this process and of children that have ended."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in (own, children))


def peak():
    """GiB of this process at most, and of its largest child."""
    return [resource.getrusage(who).ru_maxrss / 2**20 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]


def library(n_jobs, memory_limit, method):
    """The estimator of the library."""
    training = AllRows(method, memory_limit, n_jobs=n_jobs)
    return HierarchicalGaussianClassifier(selection=TreeSelection(training=training), random_state=0, verbose=True)


def peer(n_jobs):
    """Gradient boosting as its makers set it up."""
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=n_jobs, random_state=0, verbose=-1)


class TunedPeer:
    """Gradient boosting with the best of random settings, each of which may take some seconds of processor."""

    def __init__(self, n_settings, seconds, n_jobs):
        self.n_settings, self.seconds, self.n_jobs = n_settings, seconds, n_jobs

    def __repr__(self):
        return f"LightGBM, {self.n_settings} settings of {self.seconds:g} s"

    def fit(self, X, y):
        from benchmarks.tabular.methods import SPACES, VALIDATION

        rng, X = np.random.default_rng(0), pd.DataFrame(X)
        train, held = train_test_split(np.arange(len(y)), test_size=VALIDATION, random_state=0, stratify=y)
        least = np.inf
        for _ in range(self.n_settings):
            setting = {name: draw(rng) for name, draw in SPACES["LightGBM"].items()}
            model = self._model(setting).fit(X.iloc[train], y[train], (X.iloc[held], y[held]))
            error = float(np.mean(model.predict(X.iloc[held]) != y[held]))
            print(f"{100.0 * error:.3f} % wrong of the held-out rows: {setting | model.stopped()}", flush=True)
            if error < least:
                least, self.setting_ = error, setting | model.stopped()
        self.best_ = self._model(self.setting_).fit(X, y)
        return self

    def _model(self, setting):
        from lightgbm import callback, early_stopping

        from benchmarks.tabular.rivals import MOST_TREES, PATIENCE, LightGBM

        seconds = self.seconds

        class Timed(LightGBM):
            def fit_early(self, Z, y, V, v):
                end = time.process_time() + seconds

                def in_time(state):
                    if time.process_time() > end:
                        raise callback.EarlyStopException(state.iteration, state.evaluation_result_list)

                self.estimator_.set_params(n_estimators=MOST_TREES)
                self.estimator_.fit(
                    Z, y, eval_set=[(V, v)], callbacks=[early_stopping(PATIENCE, verbose=False), in_time]
                )

        return Timed("classification", 0, n_jobs=self.n_jobs, **setting)

    def predict(self, X):
        return self.best_.predict(pd.DataFrame(X))


def measured(model, X, y, n):
    """Fit on the first rows, predict the last ones, and say what both took."""
    began, used = time.perf_counter(), busy()
    model.fit(X[:n], y[:n])
    get_reusable_executor().shutdown(wait=True)  # the time of children is known when they have ended
    fitted, learned = time.perf_counter(), busy()
    wrong = model.predict(X[-N_TEST:]) != y[-N_TEST:]
    own, child = peak()
    return {
        "method": repr(model) if isinstance(model, TunedPeer) else type(model).__name__,
        "rows": n,
        "error_percent": round(100.0 * float(wrong.mean()), 3),
        "fit_processor_s": round(learned - used, 1),
        "fit_wall_s": round(fitted - began, 1),
        "predict_processor_s": round(busy() - learned, 1),
        "peak_GiB": round(own, 2),
        "peak_of_a_child_GiB": round(child, 2),
        "load_average": round(os.getloadavg()[2], 1),
        "plan": repr(getattr(model, "plan_", getattr(model, "setting_", ""))),
    }


def keep(line, path):
    """Append a line; the first one has the names."""
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(line))
        if is_new:
            writer.writeheader()
        writer.writerow(line)


def chosen(given):
    """What is asked for."""
    if given.peer_settings:
        return TunedPeer(given.peer_settings, given.peer_seconds, given.jobs)
    return peer(given.jobs) if given.peer else library(given.jobs, given.memory, given.method)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--memory", type=float, default=8 * 2**30, help="bytes, 8 GiB if not given")
    parser.add_argument("--method", default="auto", help="of AllRows")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--peer-settings", type=int, default=0, help="random settings of the peer, the best one counts")
    parser.add_argument("--peer-seconds", type=float, default=150.0, help="of processor for a setting of the peer")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(argv)
    X, y = load(given.path)
    warm_up()
    for n in given.rows:
        line = measured(chosen(given), X, y, n)
        print(line, flush=True)
        keep(line, given.out)


if __name__ == "__main__":
    main()
