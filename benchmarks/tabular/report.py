"""The report: a page of tables, and three figures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tabular import figures, plan, sizes, statistics
from benchmarks.tabular.methods import METHODS

# Nobody may read a rank without this.
NOT_RUN = (
    "Foundation models that need downloaded weights (TabPFN, TabICL, ...) are not run. Training rows are cut by the "
    "size rule of `PROTOCOL.md`."
)
SCORES = {"regression": ("rmse_std",), "classification": ("error", "log_loss", "auc_loss")}
ROPE = 0.01
ANCHOR = "random forest"
# A column with fewer rows than this share of the longest one is left out until it is complete.
BEGUN = 0.9


@dataclass(frozen=True)
class Matrix:
    """Losses of methods (columns) on tables (rows), mean over the splits that every method of the matrix has."""

    tables: list[str]
    methods: list[str]
    losses: statistics.Losses
    seconds: statistics.Losses

    def only(self, chosen: Callable[[str], bool]) -> Matrix:
        rows = [k for k, name in enumerate(self.tables) if chosen(name)]
        return Matrix([self.tables[k] for k in rows], self.methods, self.losses[rows], self.seconds[rows])


def _loss(row: dict[str, str], score: str) -> float:
    """A loss, infinite where the method has failed, NaN where it does not say that number."""
    if row["status"] != "done":
        return np.inf
    name = {"error": "accuracy", "auc_loss": "auc"}.get(score, score)
    if row[name] == "":
        return np.nan
    return float(row[name]) if name == score else 1.0 - float(row[name])


def matrix(rows: Iterable[dict[str, str]], task: str, score: str) -> Matrix:
    """All methods that have a number for the score on nearly all tables and splits that one of them has.

    A split on which one of these columns is still missing is left out for all of them, so that means are paired.
    """
    cells: dict[tuple[str, str], dict[str, tuple[float, float]]] = defaultdict(dict)
    for row in rows:
        if row["task"] == task:
            spent = float(row["fit_seconds"] or row["limit"])
            cells[row["table"], row["split"]][row["method"]] = (_loss(row, score), spent)
    # A split where nobody has the number (a class without test rows) is left out; a method that alone is silent is.
    cells = {key: cell for key, cell in cells.items() if any(np.isfinite(loss) for loss, _ in cell.values())}
    silent = {m for cell in cells.values() for m, (loss, _) in cell.items() if np.isnan(loss)}
    said = {m for cell in cells.values() for m, (loss, _) in cell.items() if np.isfinite(loss)}
    counts = Counter(m for cell in cells.values() for m in cell)
    most = max(counts.values(), default=0)
    methods = [name for name in METHODS if name in said - silent and counts[name] >= BEGUN * most]
    whole = {key: cell for key, cell in cells.items() if all(name in cell for name in methods)}
    tables = sorted({table for table, _ in whole})
    values = np.array(
        [
            np.mean([[cell[m] for m in methods] for (name, _), cell in whole.items() if name == table], axis=0)
            for table in tables
        ]
    ).reshape(len(tables), len(methods), 2)
    return Matrix(tables, methods, values[..., 0], values[..., 1])


def kinds(table: str, listed: dict[str, dict[str, str]]) -> list[str]:
    """The kinds of table one belongs to."""
    row = listed.get(table)
    if row is None:
        return ["all"]
    found = ["all", "shaped a choice" if row["shaped"] == "1" else "shaped no choice"]
    found.append("under 2,500 rows" if int(row["rows"]) < 2500 else "2,500 rows or more")
    found.append("under 15 columns" if int(row["features"]) < 15 else "15 columns or more")
    if int(row["categorical"]):
        found.append("text columns")
    if float(row["missing"]):
        found.append("missing values")
    if float(row["duplicates"]) > 0.05:
        found.append("duplicates")
    return found


def summary(part: Matrix, title: str) -> list[str]:
    """A line per method: rank, Elo, share, seconds, and the comparison of our best default column with it."""
    if len(part.tables) == 0:
        return []
    ranks, share = statistics.mean_ranks(part.losses), statistics.shares(part.losses)
    anchor = part.methods.index(ANCHOR) if ANCHOR in part.methods else 0
    rating, seconds = statistics.elo(part.losses, anchor), np.median(part.seconds, axis=0)
    ours = [k for k, name in enumerate(part.methods) if METHODS[name].ours and not METHODS[name].tuned]
    best = min(ours or range(len(part.methods)), key=lambda k: ranks[k])
    lines = [f"\n### {title}: {len(part.tables)} tables\n", f"Paired with {part.methods[best]}. {NOT_RUN}\n"]
    lines += ["| method | mean rank | Elo | share of the best | seconds | wins/ties/losses | p | better/equal/worse |"]
    lines += ["|" + "---|" * 8]
    for k in np.argsort(ranks, kind="stable"):
        cells = [part.methods[k], f"{ranks[k]:.2f}", f"{rating[k]:.0f}", f"{share[k]:.3f}", f"{seconds[k]:.2f}"]
        lines.append(f"| {' | '.join(cells + _paired(part, best, int(k)))} |")
    return lines


def _paired(part: Matrix, ours: int, other: int) -> list[str]:
    """Wins, ties and losses by 1 %, Wilcoxon's p, and the probabilities of the Bayesian signed rank test."""
    if ours == other:
        return ["", "", ""]
    counts = statistics.against(part.losses, ours, other, ROPE)
    change = statistics.log_ratios(part.losses, ours, other)
    p = statistics.wilcoxon_p(part.losses, ours, other)
    probabilities = statistics.signed_rank(change, ROPE)
    return ["/".join(map(str, counts)), f"{p:.3g}", "/".join(f"{value:.2f}" for value in probabilities)]


def by_kind(part: Matrix, listed: dict[str, dict[str, str]]) -> list[str]:
    """Mean ranks by kind of table."""
    names = list(dict.fromkeys(kind for table in part.tables for kind in kinds(table, listed)))
    parts = {name: part.only(lambda table, name=name: name in kinds(table, listed)) for name in names}
    lines = ["\n| mean rank | " + " | ".join(f"{name} ({len(parts[name].tables)})" for name in names) + " |"]
    lines.append("|" + "---|" * (len(names) + 1))
    ranks = {name: statistics.mean_ranks(parts[name].losses) for name in names}
    for k, method in enumerate(part.methods):
        lines.append(f"| {method} | " + " | ".join(f"{ranks[name][k]:.2f}" for name in names) + " |")
    return lines


def run_so_far(out: Path) -> list[str]:
    """How many cells of the first split of every stage have a row."""
    names = ("first defaults", "first tuned", "other defaults", "other tuned", "slow ones")
    done, counts = plan.done(out), {(stage, shaped): [0, 0] for shaped in (0, 1) for stage in range(len(names))}
    for one in plan.cells(None, None, quick=False, splits=1):
        count = counts[one.method.stage, int(one.entry.shaped)]
        count[0], count[1] = count[0] + (one.key in done), count[1] + 1
    lines = ["\n| first split, cells | shaped no choice | shaped a choice |", "|---|---|---|"]
    for stage, name in enumerate(names):
        shown = ["{} of {}".format(*counts[stage, shaped]) for shaped in (0, 1)]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return lines


def failures(rows: list[dict[str, str]]) -> list[str]:
    """What has no score, and why."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        if row["status"] != "done":
            counts[row["method"], row["status"]] += 1
    missing = [f"- {m.name}: not run, {', '.join(m.missing())} not installed" for m in METHODS.values() if m.missing()]
    return ["\n## Without a score\n", *missing, *(f"- {m}: {n} cells, {why}" for (m, why), n in sorted(counts.items()))]


def write(rows: list[dict[str, str]], out: Path, splits: int = sizes.FIRST_SPLITS) -> Path:
    """``REPORT.md`` of the frozen unit and its figures beside the rows; a page of more splits in a folder of its own.

    A report of more splits has the tables of which more than the first one have been run, and the columns that have
    rows on nearly all of them. Fits that passed their limit are there with what they reached with more time.
    """
    more = {row["table"] for row in rows if int(row["split"]) >= sizes.FIRST_SPLITS}
    rows = [row for row in rows if int(row["split"]) < splits]
    listed, lines = plan.frozen(), ["# Tables: what was measured\n", NOT_RUN, *run_so_far(out)]
    if splits > sizes.FIRST_SPLITS:
        longer = {plan.key(row): row for row in plan.results(out / plan.LONGER)}
        rows = [longer.get(plan.key(row), row) for row in rows if row["table"] in more]
        times = Counter((row["method"], row["limit"]) for row in longer.values())
        lines += [
            f"\n{method}: {n} fits that passed their limit had {limit} s." for (method, limit), n in times.items()
        ]
        out, lines[0] = out / f"{splits}_splits", f"# Tables: what was measured on {splits} splits\n"
    out.mkdir(parents=True, exist_ok=True)
    for task, scores in SCORES.items():
        for score in scores:
            whole = matrix(rows, task, score)
            if not whole.tables:
                continue
            lines.append(f"\n## {task}, {score}")
            titles = ("shaped no choice", "shaped a choice", "all")
            parts = [matrix([row for row in rows if t in kinds(row["table"], listed)], task, score) for t in titles]
            for title, part in zip(titles, parts, strict=True):
                lines += summary(part, title)
            lines += by_kind(whole, listed)
            if splits > sizes.FIRST_SPLITS:
                continue  # few columns make no picture
            drawn = parts[0] if parts[0].tables else whole  # claims rest on the first
            figures.draw(drawn, f"{task}_{score}", {t: kinds(t, listed) for t in drawn.tables}, out)
    page = out / "REPORT.md"
    page.write_text("\n".join([*lines, *failures(rows), ""]))
    return page


def cross_checked(part: Matrix) -> dict[str, Any]:
    """The same tests by `autorank` and `baycomp`, where they are installed: a check of ours."""
    import autorank
    import baycomp
    import pandas as pd

    found: dict[str, Any] = {"autorank": autorank.autorank(pd.DataFrame(-part.losses, columns=part.methods))}
    change = statistics.log_ratios(part.losses, 0, 1)
    found["baycomp"] = baycomp.two_on_multiple(np.zeros(len(change)), -change, rope=ROPE)
    return found
