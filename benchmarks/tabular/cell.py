"""One cell of the result: a method on a split of a table, in a process of its own with limits."""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import time
import warnings
from functools import cache
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.tabular.methods import Method
from benchmarks.tabular.tables import Table

FIELDS = [
    *("table", "split", "method", "rows", "status", "task", "features", "classes", "test_rows", "rmse", "rmse_std"),
    *("accuracy", "log_loss", "auc", "fit_seconds", "predict_seconds", "wall_seconds", "peak_mb", "limit", "settings"),
    "version",
]
GIGABYTES = 6
# Processor seconds that importing and reading may take before the clock begins.
IMPORTS = 20.0
# Wall seconds to a second of the processor after which a cell is given up: other work may hold the machine.
WALL, BUSY = 60.0, "wall time"


@cache
def library_commit() -> str:
    """The commit that changed the library last, with a + where files differ from it."""
    git = ["git", "-C", str(Path(__file__).parents[2])]
    asked = [["log", "-1", "--format=%h"], ["status", "--porcelain"]]
    said = [subprocess.run([*git, *what, "--", "convexkernels"], capture_output=True, text=True) for what in asked]
    return said[0].stdout.strip() + ("+" if said[1].stdout.strip() else "")


def made_by(method: Method) -> str:
    """The commit of this library, or the release of the package that does the work."""
    return library_commit() if method.ours else version((*method.packages, "scikit-learn")[0])


def run(
    method: Method, table: Table, split: int, rows: int, limit: float, budget: float, gigabytes: int = GIGABYTES
) -> dict[str, Any]:
    """The row of a cell, whatever happens to the process; the status BUSY says that other work is to blame."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    job = (theirs, method, table, split, rows, limit, budget, gigabytes)
    process = multiprocessing.get_context("fork").Process(target=_child, args=job)
    process.start()
    theirs.close()
    row = {"table": table.entry.name, "split": split, "method": method.name, "rows": rows}
    row |= {"task": table.entry.task, "limit": limit, "version": made_by(method)}
    try:
        row |= ours.recv() if ours.poll(WALL * limit) else {"status": BUSY}
    except EOFError:
        row["status"] = "killed"
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()
    if row["status"] == "killed" and process.exitcode == -24:
        row["status"] = "time"
    return row


def _child(
    pipe: Connection, method: Method, table: Table, split: int, rows: int, limit: float, budget: float, gigabytes: int
) -> None:
    """Measure, and send what was found; processor time and memory of the process are limited by the system."""
    os.setpgid(0, 0)
    spent = time.process_time()
    hard = int(spent + IMPORTS + limit + (1.5 * budget if method.tuned else 0.0))
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (gigabytes << 30, gigabytes << 30))
    warnings.simplefilter("ignore")
    try:
        found = measured(method, table, split, rows, budget)
        late = found["fit_seconds"] > (1.5 * budget + limit if method.tuned else limit)
        pipe.send(found | {"status": "time" if late else "done"})
    except Exception as reason:
        pipe.send({"status": f"{type(reason).__name__}: {reason}"[:160].replace("\n", " ")})
    finally:
        pipe.close()


def processor_seconds() -> float:
    """Of this process and of the children it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def measured(method: Method, table: Table, split: int, rows: int, budget: float) -> dict[str, Any]:
    """Scores, seconds and memory; what has to be imported or compiled comes before the clock."""
    train, test = table.split(split, rows)
    X, y, T, t = table.X.iloc[train], table.y[train], table.X.iloc[test], table.y[test]
    prepare(method)
    model = method.build(table.entry.task, split, budget)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, wall = processor_seconds(), time.monotonic()
    model.fit(X, y)
    fitted = processor_seconds()
    found = scores(model, table.entry.task, T, t, y)
    memory, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    found |= {"fit_seconds": round(fitted - began, 3), "predict_seconds": round(processor_seconds() - fitted, 3)}
    found |= {"wall_seconds": round(time.monotonic() - wall, 3), "peak_mb": max(memory - before, children) // 1024}
    found |= {"rows": len(train), "test_rows": len(test), "features": X.shape[1]}
    return found | {"classes": len(np.unique(y)) if table.entry.task == "classification" else 0} | _settings(model)


def _settings(model: Any) -> dict[str, int]:
    return {"settings": getattr(model, "n_tried", 1)}


def prepare(method: Method) -> None:
    """Import what a method needs; processes that are forked afterwards have it."""
    for package in method.packages:
        __import__(package)
    if "torch" in method.packages:
        __import__("torch").set_num_threads(1)


def scores(model: Any, task: str, T: Any, t: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """RMSE, also over the standard deviation of the test targets; or accuracy, log loss and area under the curve."""
    found = np.asarray(model.predict(T))
    if task == "regression":
        if not np.all(np.isfinite(found)):
            raise FloatingPointError("a prediction is not finite")
        rmse = float(np.sqrt(np.mean((found - t) ** 2)))
        return {"rmse": rmse, "rmse_std": rmse / float(np.std(t))}
    row = {"accuracy": float(np.mean(found.astype(str) == t))}
    labels = np.unique(y)
    rows = np.isin(t, labels)
    t = t[rows]
    probabilities = _called(model, "predict_proba", T)
    if probabilities is not None:
        probabilities = probabilities[rows] / probabilities[rows].sum(1, keepdims=True)
        row["log_loss"] = float(log_loss(t, np.clip(probabilities, 1e-7, 1.0), labels=labels))
    values = probabilities
    if values is None and len(labels) == 2:
        values = _called(model, "decision_function", T)
        values = None if values is None else values.reshape(len(rows), -1)[rows]
    if values is not None and set(t) == set(labels):
        binary = len(labels) == 2
        row["auc"] = float(
            roc_auc_score(t == labels[1], values[:, -1]) if binary else roc_auc_score(t, values, multi_class="ovr")
        )
    return row


def _called(model: Any, name: str, T: Any) -> np.ndarray | None:
    """What a function of the model gives, None where it has no such function."""
    function = getattr(model, name, None)
    try:
        return None if function is None else np.asarray(function(T), dtype=np.float64)
    except (AttributeError, NotImplementedError):
        return None
