"""The command line: ``convexkernels learn | demo | warm-up | solvers``."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convexkernels import __version__
from convexkernels.catalog import MODELS, Model
from convexkernels.exceptions import ConvexKernelsError, InvalidInputError

if TYPE_CHECKING:
    from convexkernels.learning import Learned, Split

__all__ = ["main"]

SCORES = {"classification": "accuracy", "regression": "R^2"}
FIGURE_SUFFIXES = (".png", ".pdf", ".svg")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; those of the process when not given.

    Returns
    -------
    int
        0 when the command did what it says, 1 when the system got in the way, 2 when the input was
        refused, 130 when the user interrupted before there was an answer.
    """
    # argparse answers --help and mistakes before numpy, let alone a solver, is loaded.
    arguments = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            arguments.run(arguments)
    except ConvexKernelsError as error:
        print(f"convexkernels: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("convexkernels: interrupted before there was an answer.", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"convexkernels: {error}", file=sys.stderr)
        return 1
    return 0


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"note: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="convexkernels",
        description="Learn the kernel of a kernel machine by optimization, with a certificate of the answer.",
    )
    parser.add_argument("--version", action="version", version=f"convexkernels {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_learn(commands)
    demo = commands.add_parser("demo", help="learn a kernel on a table that ships with scikit-learn")
    demo.add_argument("--out", metavar="DIR", type=Path, default=Path("figures"), help="folder of the figure (figures)")
    demo.add_argument("--quick", action="store_true", help="fewer rows and candidates")
    demo.set_defaults(run=_demo)
    warm_up = commands.add_parser("warm-up", help="compile the numerical code now instead of before the first fit")
    warm_up.set_defaults(run=_warm_up)
    solvers = commands.add_parser("solvers", help="say which convex solvers are installed and licensed")
    solvers.set_defaults(run=_solvers)
    return parser


def _add_learn(commands: Any) -> None:
    learn = commands.add_parser(
        "learn",
        help="learn a kernel from a CSV file",
        description="Learn a kernel from a CSV file (plain or gzip, the first line names the columns), prove how good "
        "it is and compare it with a cross-validated RBF machine on the same rows. Parameters of the model that are "
        "searched (C, margin) and not given are chosen by cross-validation.",
    )
    add = learn.add_argument
    add("table", type=Path, metavar="TABLE.csv")
    add("--target", required=True, metavar="COLUMN", help="column to predict; its values may be text")
    add("--drop", action="append", default=[], metavar="COLUMN", help="column to leave out; may be repeated")
    add("--model", choices=sorted(MODELS), default="tessellated", help="kernel to learn (%(default)s)")
    # An option that is not given is absent, so that the estimator's own default holds.
    option = {"default": argparse.SUPPRESS}
    add("--C", type=float, **option, metavar="COST", help="weight of the errors, > 0")
    add("--degree", type=int, **option, help="degree of the monomials, >= 0")
    add("--z-degree", type=_whole_or_full, **option, help="degree in the variable of integration, or full")
    add("--margin", type=float, **option, help="distance from the data, scaled to [0, 1], to the walls of the box, > 0")
    add("--solver", **option, help="solver of the convex problem")
    add("--test-size", type=float, default=0.2, metavar="SHARE", help="share of the rows to test on (%(default)s)")
    add("--seed", type=int, default=0, help="seed of the split and the folds (%(default)s)")
    add("--tol", type=float, default=1e-4, help="relative gap to prove (%(default)s)")
    add("--max-time", type=float, metavar="SECONDS", help="time for choosing and learning together")
    add("--out", type=Path, metavar="MODEL.skops", help="write the fitted model to this file")
    add("--figure", type=Path, metavar="FIGURE.png", help="draw the result into this file (png, pdf, svg)")
    add("--force", action="store_true", help="replace files that exist")
    add("--quiet", action="store_true", help="do not show the progress of the work")
    learn.set_defaults(run=_learn)


def _whole_or_full(text: str) -> int | None:
    return None if text == "full" else int(text)


# --- learn ------------------------------------------------------------------------------------


def _learn(arguments: argparse.Namespace) -> None:
    """Refuse what can be refused, then work, then write."""
    model = MODELS[arguments.model]
    given = _given(arguments, model)
    _check_output("--out", arguments.out, (".skops",), "skops", "persist", arguments.force)
    _check_output("--figure", arguments.figure, FIGURE_SUFFIXES, "matplotlib", "plot", arguments.force)

    from convexkernels.datasets import load_table
    from convexkernels.learning import split_table
    from convexkernels.validation import check_number, check_whole_number

    check_whole_number("--seed", arguments.seed, low=0)
    check_number("--tol", arguments.tol, low=0.0, high=1.0, open_low=True)
    if arguments.max_time is not None:
        check_number("--max-time", arguments.max_time, low=0.0, open_low=True)
    X, y, names = load_table(arguments.table, arguments.target, drop=arguments.drop)
    split = split_table(X, y, model.task, test_size=arguments.test_size, seed=arguments.seed)
    limits = {"tol": arguments.tol, "max_time": arguments.max_time, "quiet": arguments.quiet}
    learned = _learn_and_report(arguments.table.name, model, split, given, **limits)
    if arguments.out is not None:
        _save(learned.estimator, names, arguments.out)
    if arguments.figure is not None:
        _draw(learned, split, names, arguments.figure)


def _given(arguments: argparse.Namespace, model: Model) -> dict[str, Any]:
    """Parameters the user set; one that the model does not have is refused."""
    every = sorted({option for other in MODELS.values() for option in other.options})
    given = {name: getattr(arguments, name) for name in every if hasattr(arguments, name)}
    flags = {name: "--" + name.replace("_", "-") for name in every}
    for name in given:
        if name not in model.options:
            raise InvalidInputError(
                f"{flags[name]} is not a parameter of the model {arguments.model!r}; "
                f"it has {', '.join(flags[option] for option in model.options)}."
            )
    return given


def _check_output(
    flag: str, path: Path | None, suffixes: tuple[str, ...], library: str, extra: str, force: bool
) -> None:
    """Refuse, before any work, a file that could not be written at its end."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InvalidInputError(f"{flag} must end in {' or '.join(suffixes)}, got {str(path)!r}.")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{flag} {str(path)!r}: there is no folder {str(path.parent)!r}; create it first.")
    if path.is_dir():
        raise InvalidInputError(f"{flag} {str(path)!r} is a folder; name a file.")
    if path.exists() and not force:
        raise InvalidInputError(f"{flag} {str(path)!r} exists; choose another name, or replace it with --force.")
    if find_spec(library) is None:
        raise InvalidInputError(
            f"{flag} needs {library}, which is not installed: pip install 'convexkernels[{extra}]'."
        )


def _learn_and_report(
    title: str,
    model: Model,
    split: Split,
    given: dict[str, Any],
    *,
    tol: float = 1e-4,
    max_time: float | None = None,
    quiet: bool = False,
) -> Learned:
    from convexkernels.learning import learn, rbf_machine
    from convexkernels.progress import Table

    rows, features = split.X.shape
    what = f"{len(set(split.y.tolist()))} classes" if model.task == "classification" else "a number to predict"
    print(f"{title}: {features} features, {what}; {rows} rows to learn from, {len(split.y_test)} to test on")
    progress = None if quiet else Table()
    learned = learn(model, split, given=given, tol=tol, max_time=max_time, progress=progress)
    solution = learned.estimator.solution_
    parameters = learned.estimator.get_params(deep=False)
    described = ", ".join(f"{name}={parameters[name]}" for name in model.options)
    print(f"\nmodel        {model.estimator}({described})")
    print(f"certificate  {solution.certificate}")
    print(f"status       {solution.status.value}")
    if progress is not None:
        progress.note("\nchoosing the RBF machine to compare with, on the same folds")
    rival = rbf_machine(split, model.task, max_time=max_time)
    print(f"\n{SCORES[model.task]:<20} {'cross-validated':>19}  {'test':>17}  chosen")
    for name, one in (("learned kernel", learned), ("RBF machine", rival)):
        _print_scores(name, one, model.task, len(split.y_test))
    return learned


def _print_scores(name: str, learned: Learned, task: str, n_test: int) -> None:
    choice, score = learned.choice, learned.test_score
    compared = f"{choice.score:.4f} +- {choice.deviation:.4f}" if choice.tried else "-"
    # The test score of a classifier is a share of n_test rows: its standard error comes from that alone.
    error = f" +- {(score * (1 - score) / n_test) ** 0.5:.4f}" if task == "classification" else ""
    chosen = "  ".join(f"{key}={value:g}" for key, value in choice.parameters.items()) or "nothing"
    of = f" ({choice.tried} of {choice.offered} candidates)" if choice.tried < choice.offered else ""
    print(f"{name:<20} {compared:>19}  {f'{score:.4f}{error}':>17}  {chosen}{of}")


def _save(estimator: Any, names: list[str], path: Path) -> None:
    import skops.io

    # Written beside its final place first: an interrupted write leaves no half a model behind.
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_bytes(skops.io.dumps(estimator))
    os.replace(unfinished, path)
    print(f"\nwrote {path}; it expects the features in the order {', '.join(names)}. Load it with")
    print(f"    skops.io.load({str(path)!r}, trusted=skops.io.get_untrusted_types(file={str(path)!r}))")


def _draw(learned: Learned, split: Split, names: list[str], path: Path) -> None:
    from convexkernels.picture import draw_page

    unfinished = path.with_name(f"{path.stem}.unfinished{path.suffix}")
    draw_page(learned.estimator, split, names).savefig(unfinished, dpi=120)
    os.replace(unfinished, path)
    print(f"\nwrote {path}")


# --- demo, warm-up and solvers -------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> None:
    """Breast cancer, the ten columns of worst values: quick, certified, and worth learning a kernel for."""
    from convexkernels.datasets import load_worst_cells
    from convexkernels.learning import split_table

    X, y, names = load_worst_cells()
    rows = slice(0, 150) if arguments.quick else slice(None)
    model = MODELS["tessellated"]
    # A part of the grid of `learn`, so that nobody waits for a demonstration.
    model = replace(model, grid={"C": (0.1, 1.0)} if arguments.quick else {"margin": (0.1, 0.5), "C": (0.01, 0.1, 1.0)})
    split = split_table(X[rows], y[rows], model.task)
    learned = _learn_and_report("breast cancer (scikit-learn)", model, split, {})
    if find_spec("matplotlib") is None:
        print("\nno figure: matplotlib is not installed (pip install 'convexkernels[plot]').")
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    _draw(learned, split, names, _free_name(arguments.out / "demo.png"))


def _free_name(path: Path) -> Path:
    """`path`, or the first of path-2, path-3, ... that does not exist."""
    number, free = 2, path
    while free.exists():
        free, number = path.with_stem(f"{path.stem}-{number}"), number + 1
    return free


def _warm_up(arguments: argparse.Namespace) -> None:
    from convexkernels.compiled import warm_up

    warm_up(print)
    print("compiled code is ready")


def _solvers(arguments: argparse.Namespace) -> None:
    from convexkernels.solvers.convex.conic import available_solvers

    print(f"{'solver':<12} {'installed':<10} {'usable':<7} remark")
    for name, installed, usable, remark in available_solvers():
        print(f"{name:<12} {'yes' if installed else 'no':<10} {'yes' if usable else 'no':<7} {remark}")
