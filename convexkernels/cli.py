"""The command line: ``convexkernels learn | predict | show | demo | warm-up | solvers``."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convexkernels import __version__
from convexkernels.commands.catalog import MODELS, RIVALS, TASKS
from convexkernels.exceptions import ConvexKernelsError, InvalidInputError, MemoryLimitError

if TYPE_CHECKING:
    from convexkernels.commands.learn import Learned

FIGURE_SUFFIXES = (".png", ".pdf", ".svg")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, with the arguments of the process when none are given, and return the exit status.

    0 when the command did what it says, 1 when the system got in the way, 2 when the input was refused, 130 when the
    user interrupted before there was an answer.
    """
    # argparse answers --help and mistakes before numpy, let alone a solver, is loaded.
    arguments = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            arguments.run(arguments)
        sys.stdout.flush()
    except ConvexKernelsError as error:
        more = " Tables of any length: --model hierarchical, voronoi or spectral."
        print(f"convexkernels: {error}{more if isinstance(error, MemoryLimitError) else ''}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("convexkernels: interrupted before there was an answer.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is left must not be written when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"convexkernels: {error}", file=sys.stderr)
        return 1
    return 0


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"note: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="convexkernels",
        description="Learn the kernel of an SVM or of ridge regression, with a certificate of the answer.",
    )
    parser.add_argument("--version", action="version", version=f"convexkernels {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_learn(commands)
    _add_predict(commands)
    show = commands.add_parser("show", help="say what a model learned")
    show.add_argument("model", type=Path, metavar="MODEL.skops")
    show.set_defaults(run=_show)
    demo = commands.add_parser("demo", help="learn a kernel on a table that needs no download")
    demo.add_argument("--out", metavar="DIR", type=Path, default=Path("figures"), help="folder of the figure (figures)")
    demo.add_argument("--quick", action="store_true", help="fewer rows")
    demo.set_defaults(run=_demo)
    warm_up = commands.add_parser("warm-up", help="compile the numerical code now instead of before the first fit")
    warm_up.set_defaults(run=_warm_up)
    solvers = commands.add_parser("solvers", help="say which convex solvers are installed and licensed")
    solvers.set_defaults(run=_solvers)
    return parser


def _add_learn(commands: Any) -> None:
    models = "\n".join(f"  {name:<20} {model.about}" for name, model in MODELS.items())
    learn = commands.add_parser(
        "learn",
        help="learn a kernel from a CSV file",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Learn a kernel from a CSV file (plain or gzip, the first line names the columns), prove how good\n"
        "it is where that can be proved, and compare it with other models on rows that none of them has seen.\n"
        "Parameters that are not given are chosen by the model. Columns may hold text; values may be missing.",
        epilog=f"models:\n{models}\nand the name of every estimator, for example VoronoiQuantile.",
    )
    add = learn.add_argument
    add("table", type=Path, metavar="TABLE.csv")
    add("--target", required=True, metavar="COLUMN", help="column to predict; its values may be text")
    add("--task", choices=("auto", *TASKS), default="auto", help="by the target: text or few whole numbers are classes")
    add("--drop", action="append", default=[], metavar="COLUMN", help="column to leave out; may be repeated")
    add("--category", action="append", default=[], metavar="COLUMN", help="column of numbers that are names of groups")
    add("--model", default="auto", metavar="MODEL", help="auto (by rows and columns), or one of those below")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="parameter of the model, for example C=10")
    add("--tol", type=float, help="relative gap to prove (default of the model)")
    add(
        "--against", default="svm", metavar="LIST", help=f"models to compare with, of {','.join(RIVALS)}, or none (svm)"
    )
    add("--test-size", type=float, default=0.2, metavar="SHARE", help="share of the rows to test on (%(default)s)")
    add("--seed", type=int, default=0, help="seed of the split and of the model (%(default)s)")
    add("--max-time", type=float, metavar="SECONDS", help="time for all of it, the other models included")
    add("--out", type=Path, metavar="MODEL.skops", help="write the fitted model to this file")
    add("--figure", type=Path, metavar="FIGURE.png", help="draw the result into this file (png, pdf, svg)")
    add("--force", action="store_true", help="replace files that exist")
    add("--quiet", action="store_true", help="do not show the progress of the work")
    learn.set_defaults(run=_learn)


def _add_predict(commands: Any) -> None:
    predict = commands.add_parser(
        "predict",
        help="predict the rows of a CSV file with a model that was learned",
        description="Predict the rows of a CSV file. Columns are found by their names, whatever their order.",
    )
    add = predict.add_argument
    add("model", type=Path, metavar="MODEL.skops")
    add("table", type=Path, metavar="NEW.csv")
    add("--out", type=Path, metavar="PREDICTIONS.csv", help="write to this file instead of standard output")
    add("--proba", action="store_true", help="write the probability of every class as well")
    add("--interval", type=float, metavar="COVERAGE", help="write intervals that hold this share of new values as well")
    add("--force", action="store_true", help="replace a file that exists")
    predict.set_defaults(run=_predict)


# --- learn, predict, show ---------------------------------------------------------------------


def _learn(arguments: argparse.Namespace) -> None:
    """Refuse what can be refused, then work, then write."""
    _check_output("--out", arguments.out, (".skops",), "skops", "persist", arguments.force)
    _check_output("--figure", arguments.figure, FIGURE_SUFFIXES, "matplotlib", "plot", arguments.force)

    from convexkernels.commands.request import Request, check_target, estimator_of, parameters_of, task_of
    from convexkernels.tables import load_table

    request = Request(
        model=arguments.model,
        task=arguments.task,
        given=arguments.set,
        rivals=[] if arguments.against == "none" else arguments.against.split(","),
        tol=arguments.tol,
        max_time=arguments.max_time,
        test_size=arguments.test_size,
        seed=arguments.seed,
        quiet=arguments.quiet,
    )
    X, y, names = load_table(arguments.table, arguments.target, drop=arguments.drop, category=arguments.category)
    task = task_of(y) if request.task == "auto" else request.task
    parameters_of(estimator_of(request.model, task, *X.shape)[0], request.given)
    check_target(y, task)

    # From here on the work is slow, and so is loading what does it.
    from convexkernels.commands.learn import learn, saved

    learned = learn(arguments.table.name, X, y, names, request)
    if arguments.out is not None:
        from convexkernels.commands.model_file import save_model

        texts = [name for j, name in enumerate(names) if X.dtype == object and any(isinstance(x, str) for x in X[:, j])]
        save_model(saved(learned, names, texts, arguments.target, arguments.table), arguments.out)
        print(f"\nwrote {arguments.out}; use it with\n    convexkernels predict {arguments.out} NEW.csv")
    if arguments.figure is not None:
        _draw(learned, names, arguments.figure)


def _predict(arguments: argparse.Namespace) -> None:
    _check_output("--out", arguments.out, (".csv",), "csv", "", arguments.force)
    if arguments.interval is not None and not 0.0 < arguments.interval < 1.0:
        raise InvalidInputError(f"--interval must lie strictly between 0 and 1, got {arguments.interval}.")

    from convexkernels.commands.model_file import columns_of, load_model
    from convexkernels.tables import load_features

    features, categories = columns_of(arguments.model)
    X, others = load_features(arguments.table, features, category=categories)

    # From here on the work is slow, and so is loading what does it.
    from convexkernels.commands.predict import predict

    model = load_model(arguments.model)
    ignored = [name for name in others if name != model.target]
    if ignored:
        print(f"note: not used: {', '.join(ignored)}", file=sys.stderr)
    n_rows = predict(model, X, arguments.out, proba=arguments.proba, interval=arguments.interval)
    if arguments.out is not None:
        print(f"wrote {n_rows} predictions of {model.target} to {arguments.out}")


def _show(arguments: argparse.Namespace) -> None:
    from convexkernels.commands.model_file import columns_of, load_model

    columns_of(arguments.model)
    from convexkernels.commands.predict import show

    show(load_model(arguments.model))


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
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInputError(
            f"{flag} {str(path)!r} cannot be written; check the permissions, or choose another place."
        )
    if find_spec(library) is None:
        raise InvalidInputError(
            f"{flag} needs {library}, which is not installed: pip install 'convexkernels[{extra}]'."
        )


def _draw(learned: Learned, names: list[str], path: Path) -> None:
    from convexkernels.commands.picture import draw_page

    unfinished = path.with_name(f"{path.stem}.unfinished{path.suffix}")
    draw_page(learned.estimator, learned.split, names).savefig(unfinished, dpi=120)
    os.replace(unfinished, path)
    print(f"\nwrote {path}")


# --- demo, warm-up and solvers ----------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> None:
    """Friedman's function of five columns among fifteen: which columns matter is what a kernel can learn."""
    from convexkernels.commands.learn import Request, learn
    from convexkernels.datasets import make_friedman1

    X, y = make_friedman1(150 if arguments.quick else 400, n_features=15, random_state=0)
    names = [f"x{j + 1}" for j in range(X.shape[1])]
    learned = learn("Friedman's function (generated)", X, y, names, Request(model="multiple-kernel"))
    if find_spec("matplotlib") is None:
        print("\nno figure: matplotlib is not installed (pip install 'convexkernels[plot]').")
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    _draw(learned, names, _free_name(arguments.out / "demo.png"))


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
